"""The error for a name that is not there, with what to write instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from sys import modules
from typing import NoReturn

from nnc_core.base.errors import UnknownNameError


def unknown_name(message: str, name: str, of: object, hint: str | None) -> UnknownNameError:
    """With what Python needs to suggest a name that is nearly the same."""
    error = UnknownNameError(message, hint=hint)
    error.name, error.obj = name, of
    return error


def unknown_member(of: object, name: str, advice: Mapping[str, str]) -> UnknownNameError:
    """The error for an attribute that an object has not."""
    return unknown_name(f"{type(of).__name__!r} object has no attribute {name!r}", name, of, advice.get(name))


def nothing(name: str) -> None:
    """No advice."""


def answers(module: str, advice: Mapping[str, str],
            otherwise: Callable[[str], str | None] = nothing) -> Callable[[str], NoReturn]:
    """`__getattr__` of a Python module: each name that it has not is an error, with advice where there is some, of the
    table or `otherwise`."""

    def unknown(name: str) -> NoReturn:
        hint = advice.get(name) or otherwise(name)
        raise unknown_name(f"module {module!r} has no attribute {name!r}", name, modules[module], hint)

    return unknown
