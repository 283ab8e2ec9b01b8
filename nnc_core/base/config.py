"""Settings of the process, each of which a context (thread, coroutine) may override for a while."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any

from nnc_core.base.errors import UnknownAttributeError


@dataclass(slots=True)
class Settings:
    """The settings and their defaults."""

    deterministic: bool = False
    """Fixed kernels, no contraction or reassociation: eager, deferred and compiled agree bit for bit."""
    eager: bool = False
    """Run compiled graphs command by command, waiting after each: for debugging."""
    default_float: str = "float32"
    """The dtype of Python floats and of creation functions."""
    default_device: str | None = None
    """Device id used where none is named; None means the first of cpu, opencl, cuda, strict that is there."""


_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Config:
    """`config.deterministic = True` sets for the process; `with config.using(deterministic=True)` for a context."""

    _names = frozenset(f.name for f in fields(Settings))

    def __init__(self) -> None:
        object.__setattr__(self, "_process", Settings())
        object.__setattr__(self, "_override", ContextVar[Mapping[str, Any]]("nnc_config", default=_NOTHING))

    def __getattr__(self, name: str) -> Any:
        override = self._override.get()
        return override[name] if name in override else getattr(self._process, self._known(name))

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._process, self._known(name), value)

    @contextmanager
    def using(self, **settings: Any) -> Iterator[None]:
        """Override settings in this context only."""
        for name in settings:
            self._known(name)
        token = self._override.set({**self._override.get(), **settings})
        try:
            yield
        finally:
            self._override.reset(token)

    def _known(self, name: str) -> str:
        if name not in self._names:
            raise UnknownAttributeError(f"no setting {name!r}", hint=f"one of {', '.join(sorted(self._names))}")
        return name


config = Config()
