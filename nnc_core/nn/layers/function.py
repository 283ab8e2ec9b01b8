"""nnc's own functions as modules, known by name, so that files can hold them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType
from typing import Any

from nnc_core import functions
from nnc_core.base.errors import UnknownAttributeError
from nnc_core.nn.module import Module


@cache
def public_functions() -> Mapping[str, Callable[..., Any]]:
    """nnc's public functions of arrays, by name."""
    found: dict[str, Callable[..., Any]] = {}
    for info in iter_modules(functions.__path__, f"{functions.__name__}."):
        family = import_module(info.name)
        found |= {name: getattr(family, name) for name in getattr(family, "__all__", ())
                  if callable(getattr(family, name)) and not isinstance(getattr(family, name), type)}
    return MappingProxyType(found)


class Function(Module):
    """One of nnc's functions as a layer: `Function("concat", axis=-1)([a, b])`, with keywords for every call.

    Other than a `Lambda` it can be saved.
    """

    def __init__(self, name: str, **options: Any) -> None:
        if name not in public_functions():
            raise UnknownAttributeError(f"nnc has no function {name!r} of arrays", operator="Function",
                                        hint="nn.Lambda takes any Python function")
        self.name, self.options = name, options

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The function of these arguments."""
        return public_functions()[self.name](*args, **self.options, **kwargs)

    def describe(self) -> str:
        return ", ".join([repr(self.name), *[f"{name}={value!r}" for name, value in self.options.items()]])
