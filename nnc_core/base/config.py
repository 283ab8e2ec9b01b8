"""Settings of the process, each of which a context (thread, coroutine) may override for a while."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any

from nnc_core.base.errors import AttributeValueError, UnknownAttributeError


@dataclass(slots=True)
class Settings:
    """The settings and their defaults."""

    deterministic: bool = False
    """Fixed kernels, no contraction or reassociation: eager, deferred and compiled agree bit for bit."""
    eager: bool = False
    """Run compiled graphs command by command, waiting after each: for debugging."""
    check_nan: str = "off"
    """"nan": an operator that makes a NaN of operands without one is an error that names it, its line and its operands;
    "nonfinite": infinities as well.  Compiled graphs then run command by command.  "off" looks at nothing."""
    implicit_compute: str = "allow"
    """Response to a deferred value that is computed because it is converted or used in an eager operation,
    or because a shape depends on it: "allow", "warn" or "error".  `realize()` and `wait()` are always allowed."""
    trace_limit: int = 8
    """A compiled function that is traced more often than this says so once, and what changed."""
    memory_steps: int = 1 << 28
    """Number of steps that the memory planners may take for a graph: more give smaller plans where those found miss the
    bound, fewer make compiling quicker.  Not seconds, so that plans are the same everywhere; the default is about two
    of them at most.  What is compiled already stays as it is."""
    default_float: str = "float32"
    """The dtype of Python floats and of creation functions."""
    default_device: str | None = None
    """Device id used where none is named; None means the first of cpu, opencl, cuda, strict that is there."""


CHOICES = {"check_nan": ("off", "nan", "nonfinite"), "implicit_compute": ("allow", "warn", "error")}
"""Settings that are one of a few words."""

Watcher = Callable[[Any, object], None]
"""(value, holder): the setting has this value as long as `holder` lives, in the process for None."""

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class _Override(dict[str, Any]):
    """Settings of a context.  Tasks that were started in it may see them after the block has ended, so what depends on
    their end watches how long this lives."""


class Config:
    """`config.deterministic = True` sets for the process; `with config.using(deterministic=True)` for a context."""

    _names = frozenset(f.name for f in fields(Settings))

    def __init__(self) -> None:
        object.__setattr__(self, "_process", Settings())
        object.__setattr__(self, "_override", ContextVar[Mapping[str, Any]]("nnc_config", default=_NOTHING))
        object.__setattr__(self, "_watchers", {})

    def __getattr__(self, name: str) -> Any:
        override = self._override.get()
        return override[name] if name in override else getattr(self._process, self._known(name))

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._process, self._known(name), _checked(name, value))
        self._tell({name: value}, None)

    def as_dict(self) -> dict[str, Any]:
        """All settings by name, as they are here and now."""
        return {name: getattr(self, name) for name in sorted(self._names)}

    @property
    def of_traces(self) -> tuple[bool, str, str | None]:
        """The settings that what is traced depends on; asked for by every call of compiled code."""
        override, process = self._override.get(), self._process
        if override:
            return self.deterministic, self.default_float, self.default_device
        return process.deterministic, process.default_float, process.default_device

    @contextmanager
    def using(self, **settings: Any) -> Iterator[None]:
        """Override settings in this context only."""
        for name, value in settings.items():
            _checked(self._known(name), value)
        override = _Override({**self._override.get(), **settings})
        self._tell(override, override)
        token = self._override.set(override)
        del override  # it is gone with the last context that has it
        try:
            yield
        finally:
            self._override.reset(token)

    def watch(self, name: str, watcher: Watcher) -> None:
        """Tell `watcher` each value that a setting gets, and for how long."""
        self._watchers[self._known(name)] = watcher

    def _tell(self, settings: Mapping[str, Any], holder: object) -> None:
        for name in self._watchers.keys() & settings.keys():
            self._watchers[name](settings[name], holder)

    def _known(self, name: str) -> str:
        if name not in self._names:
            raise UnknownAttributeError(f"no setting {name!r}", hint=f"one of {', '.join(sorted(self._names))}")
        return name


def _checked(name: str, value: Any) -> Any:
    if name in CHOICES and value not in CHOICES[name]:
        raise AttributeValueError(f"{name} is {value!r}, expected one of {', '.join(CHOICES[name])}")
    return value


config = Config()
