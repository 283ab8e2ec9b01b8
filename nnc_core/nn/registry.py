"""Names in files: nnc's own modules, functions and initialisers, and what users have registered."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from typing import Any, TypeVar, overload

from nnc_core.base.errors import AttributeValueError, OperandError
from nnc_core.nn import initialise
from nnc_core.nn.layers.function import public_functions

T = TypeVar("T", bound=Callable[..., Any])
_registered: dict[str, Callable[..., Any]] = {}


@overload
def register(thing: T, /) -> T: ...
@overload
def register(name: str, /) -> Callable[[T], T]: ...
def register(thing: Any, /) -> Any:
    """Let files name a class of modules, or a function: `@nn.register`, or `@nn.register("name")`.

    A file then holds the name and the arguments of the constructor, and loading calls it again, so that the name must
    be registered where the file is loaded too.  Arguments that a file can hold are None, numbers, texts, dtypes,
    tensors, arrays, modules, generators, nnc's functions, what is registered, and tuples, lists and dicts of these.
    """
    if isinstance(thing, str):
        return lambda real: _put(thing, real)
    return _put(getattr(thing, "__qualname__", ""), thing)


def _put(name: str, thing: T) -> T:
    if not callable(thing):
        raise OperandError(f"{type(thing).__name__} is neither a class of modules nor a function", operator="register")
    if not name or "<" in name:
        raise AttributeValueError(f"{name!r} is no name that can be found again", operator="register",
                                  hint='@nn.register("name")')
    known = _registered.get(name)
    if known is not None and _place(known) != _place(thing):
        raise AttributeValueError(f"{name!r} is registered already, by {_place(known)}", operator="register",
                                  hint='@nn.register("another name")')
    _registered[name] = thing
    return thing


def _place(thing: Any) -> str:
    return f"{thing.__module__}.{thing.__qualname__}"


def registered_name(thing: Any) -> str | None:
    """Under which name a class or a function is registered."""
    return next((name for name, x in _registered.items() if x is thing), None)


def registered(name: str) -> Callable[..., Any] | None:
    """The class or function that is registered under a name."""
    return _registered.get(name)


# ---- nnc's own
def own_class(name: str) -> type[Any] | None:
    """A class of nnc_core.nn by its name there, "Linear", or with its module, "zoo.resnet.ResNet"."""
    inner, _, last = name.rpartition(".")
    if not inner:
        package = sys.modules[__package__]
        found = getattr(package, last, None) if last in package.__all__ else None
        return found if isinstance(found, type) else None
    path = f"nnc_core.nn.{inner}"
    found = getattr(import_module(path), last, None) if path in _own_modules() else None
    return found if isinstance(found, type) and found.__module__ == path else None


@cache
def _own_modules() -> frozenset[str]:
    package = sys.modules[__package__]
    return frozenset(info.name for info in walk_packages(package.__path__, "nnc_core.nn."))


def own_name(cls: type[Any]) -> str | None:
    """Under which name `own_class` finds it."""
    inner = cls.__module__.removeprefix("nnc_core.nn.")
    names = (cls.__name__, f"{inner}.{cls.__name__}") if inner != cls.__module__ else ()
    return next((name for name in names if own_class(name) is cls), None)


def function_name(f: Any) -> str | None:
    """The name of one of nnc's public functions."""
    return next((name for name, known in public_functions().items() if known is f), None)


def initialiser(name: str) -> Any:
    """The initialiser of that name in nn.initialise."""
    found = getattr(initialise, name, None)
    own = getattr(found, "__module__", "") == initialise.__name__ and not name.startswith("_")
    return found if own else None
