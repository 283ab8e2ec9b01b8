"""Keywords that a function takes by the name of a TypedDict, `**options: Unpack[Options]`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from inspect import Parameter
from typing import Any, Unpack, get_args, get_origin, get_type_hints, is_typeddict


def hints_of(f: Callable[..., Any], **names: Any) -> Mapping[str, Any]:
    """The kinds of f's parameters; nothing where a name is there for type checkers alone."""
    try:
        return get_type_hints(inspect.unwrap(f), localns=names)
    except NameError:
        return {}


def options_in(kind: Any) -> Mapping[str, Any] | None:
    """The keywords, and their kinds, that an annotation of `**options` names; None where it names none."""
    if get_origin(kind) is not Unpack or not is_typeddict(named := get_args(kind)[0]):
        return None
    return hints_of(named)


def spelled_out(f: Callable[..., Any]) -> inspect.Signature:
    """The signature of f with such keywords in the place of `**options`."""
    signature = inspect.signature(f)
    parameters = list(signature.parameters.values())
    if not parameters or parameters[-1].kind is not Parameter.VAR_KEYWORD or "Unpack" not in str(parameters[-1]):
        return signature
    options = options_in(hints_of(f).get(parameters[-1].name))
    if options is None:
        return signature
    named = [Parameter(name, Parameter.KEYWORD_ONLY, default=None) for name in options]
    return signature.replace(parameters=[*parameters[:-1], *named])
