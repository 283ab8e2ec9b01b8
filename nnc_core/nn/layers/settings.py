"""Settings in a layer's repr, as the constructor takes them."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import Parameter, signature
from types import MappingProxyType
from typing import Any

from nnc_core.nn.tree import ModuleNode

_NOTHING: Mapping[str, Any] = MappingProxyType({})


def settings(module: ModuleNode, *names: str, usual: Mapping[str, Any] = _NOTHING) -> str:
    """These arguments of the constructor, read from the attributes of the same name.

    Required ones stand bare, others by name and only where they are not the default, or what is `usual` instead.
    """
    arguments = signature(type(module).__init__).parameters
    parts = []
    for name in names:
        value, default = getattr(module, name), usual.get(name, arguments[name].default)
        if arguments[name].default is Parameter.empty:
            parts.append(_shown(value))
        elif isinstance(default, bool):
            given = value is not None and value is not False  # a Parameter stands for True
            parts += [f"{name}={given}"] * (given != default)
        elif not _same(value, default):
            parts.append(f"{name}={_shown(value)}")
    return ", ".join(parts)


def _shown(value: Any) -> str:
    return getattr(value, "__name__", repr(value)) if callable(value) else repr(value)


def _same(value: Any, default: Any) -> bool:
    """One number stands for the same one along each axis."""
    every = isinstance(value, tuple) and not isinstance(default, tuple) and len(value) > 0
    return all(v == default for v in value) if every else bool(value == default)
