"""The argument of a failed call that is of a kind that its function does not declare.

It is asked after a call has failed with an error that is none of ours, so that calls that work pay nothing for it.  The
house's own calls are held to the same declarations by the type checker: what contradicts one was given by the user.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import NoneType, UnionType
from typing import Any, Protocol, TypeVar, Union, get_args, get_origin

import numpy as np

from nnc_core.base.errors import Error, OperandError
from nnc_core.type import Dim, DimLike
from nnc_core.values.keyword_options import hints_of, options_in
from nnc_core.values.tensor import Tensor

FAILURES = (Error, TypeError, ValueError, AttributeError, LookupError, OverflowError)
"""nnc's own errors, and what Python raises for arguments of a wrong kind, among other reasons."""


def type_mismatch(f: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> OperandError | None:
    """The error for the first argument that is not what f declares; None if all are, or if f has no such parameters."""
    for name, x, kind in _declared(f, args, kwargs):
        if not fits(x, kind):
            return mismatch_error(name, x, words(kind), _next_step(x, kind))
    return None


def misplaced(f: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any],
              elsewhere: Mapping[str, tuple[str, str]]) -> OperandError | None:
    """The error for arguments that f has no place for, or that are missing; None if all are in place.

    elsewhere: for names of others, which parameter takes their place, and what to write.
    """
    signature = inspect.signature(f)
    try:
        signature.bind(*args, **kwargs)
        return None
    except TypeError as error:
        for name in [name for name in kwargs if name not in signature.parameters]:
            own, advice = elsewhere.get(name, ("", ""))
            if own in signature.parameters:
                return OperandError(f"there is no argument {name!r}", hint=advice)
        return OperandError(str(error), hint=f"it takes {', '.join(signature.parameters) or 'nothing'}")


def mismatch_error(name: str, x: Any, expected: str, hint: str | None = None) -> OperandError:
    """The error for one argument."""
    return OperandError(f"{name} is {shown(x)}, expected {expected}", hint=hint or f"give {expected}")


def _declared(f: Callable[..., Any], args: tuple[Any, ...],
              kwargs: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Name, argument and kind; each of `*args` and `**kwargs` on its own."""
    signature = inspect.signature(f)
    try:
        given = signature.bind(*args, **kwargs).arguments
    except TypeError:
        return
    kinds = hints_of(f, Dim=Dim, DimLike=DimLike)
    for name, x in given.items():
        how = signature.parameters[name].kind
        kind = kinds.get(name, Any)
        if how is inspect.Parameter.VAR_POSITIONAL:
            yield from ((f"{name}[{i}]", each, kind) for i, each in enumerate(x))
        elif how is inspect.Parameter.VAR_KEYWORD:
            options = options_in(kind)
            yield from ((n, each, kind if options is None else options.get(n, Any)) for n, each in x.items())
        else:
            yield name, x, kind


# ---- whether something is of a kind
def fits(x: Any, kind: Any) -> bool:
    """True if x may stand where `kind` is declared; numbers may be NumPy's, or tensors without dimensions."""
    if kind is Any or kind is object:
        return True
    if kind in _PLAIN:
        return _PLAIN[kind](x)
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        return any(fits(x, k) for k in get_args(kind))
    if origin is not None:
        return _fits_generic(x, origin, get_args(kind))
    if isinstance(kind, TypeVar):
        return fits(x, kind.__bound__ or Any)
    if getattr(kind, "_is_protocol", False):
        return all(hasattr(x, name) for name in _members(kind))
    return not isinstance(kind, type) or isinstance(x, kind)


def _members(protocol: type) -> set[str]:
    """The public names that a protocol asks for."""
    asking = [c for c in protocol.__mro__ if getattr(c, "_is_protocol", False) and c is not Protocol]
    return {name for c in asking for name in (*vars(c), *inspect.get_annotations(c)) if not name.startswith("_")}


def _fits_generic(x: Any, origin: Any, parts: tuple[Any, ...]) -> bool:
    if origin is type:
        return isinstance(x, type) and issubclass(x, parts)
    if origin is tuple and not (len(parts) == 2 and parts[1] is Ellipsis):
        return isinstance(x, (tuple, list)) and len(x) == len(parts) and all(map(fits, x, parts))
    if origin in (Sequence, tuple, list):
        return _is_sequence(x) and all(fits(each, parts[0]) for each in x)
    if origin is Callable:
        return callable(x)
    return isinstance(x, origin)


def _is_sequence(x: Any) -> bool:
    if isinstance(x, (Tensor, np.ndarray)):
        return x.ndim > 0
    return isinstance(x, Sequence) and not isinstance(x, (str, bytes))


def _is_number(x: Any, letters: str) -> bool:
    """A number of NumPy's, or an array without dimensions, whose dtype is of one of these kinds."""
    return isinstance(x, (np.generic, np.ndarray, Tensor)) and x.shape == () and x.dtype.kind in letters


_PLAIN: dict[Any, Callable[[Any], bool]] = {
    bool: lambda x: (isinstance(x, int) and x in (0, 1)) or _is_number(x, "b"),
    int: lambda x: (isinstance(x, int) and not isinstance(x, bool)) or _is_number(x, "iu"),
    float: lambda x: isinstance(x, (int, float)) or _is_number(x, "iufV"),
    str: lambda x: isinstance(x, str),
    NoneType: lambda x: x is None,
    Callable: callable,
}


# ---- in words
_WORDS = {bool: "True or False", int: "an integer", float: "a number", str: "a text", NoneType: "None",
          Dim: "a nnc.Dim", Any: "an array", object: "anything"}
_SEVERAL = {int: "integers", float: "numbers", str: "texts", Dim: "dimensions", Any: "arrays", object: "things"}


def words(kind: Any) -> str:
    """A kind, as it stands after "expected"."""
    if kind in _WORDS:
        return _WORDS[kind]
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return " or ".join(map(words, parts))
    if origin is tuple and not (len(parts) == 2 and parts[1] is Ellipsis):
        return f"a tuple of {', '.join(map(words, parts))}"
    if origin in (Sequence, Iterable, tuple, list):
        return f"a sequence of {_plural(parts[0])}"
    if origin is Callable or kind is Callable:
        return "a function"
    if origin is type:
        return f"a subclass of {_name(parts[0])}"
    if origin is Mapping:
        return f"a dict from {_plural(parts[0])} to {_plural(parts[1])}"
    return _with_article(_name(kind))


def _plural(kind: Any) -> str:
    if kind in _SEVERAL:
        return _SEVERAL[kind]
    if get_origin(kind) in (Union, UnionType):
        return " or ".join(map(_plural, get_args(kind)))
    if get_origin(kind) is Callable:
        return "functions"
    name = "tensor" if kind is Tensor else _name(kind)
    return name if name.endswith("s") else f"{name}s"


def _name(kind: Any) -> str:
    named = kind.__bound__ if isinstance(kind, TypeVar) else kind
    return str(getattr(named, "__name__", named))


def _with_article(name: str) -> str:
    return f"an {name}" if name[0] in "AEIOU" else f"a {name}"


def shown(x: Any) -> str:
    """Describe what was given, in a few words."""
    if isinstance(x, Tensor):
        return f"a tensor {x.spec}"
    if isinstance(x, np.ndarray):
        return f"a NumPy array {x.dtype}[{','.join(map(str, x.shape))}]"
    if x is None:
        return "None"
    text = repr(x)
    return f"{text} ({type(x).__name__})" if len(text) <= 60 else _with_article(type(x).__name__)


def _next_step(x: Any, kind: Any) -> str | None:
    """Advice on what to do, where more is known than what was expected."""
    kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    if Tensor in kinds and not isinstance(x, Tensor):
        return "make it a tensor with nnc.asarray"
    if int in kinds and (isinstance(x, float) or _is_number(x, "f")):
        return "round it, and make it an integer with int(...)"
    if any(get_origin(k) is Sequence and fits(x, get_args(k)[0]) for k in kinds) and isinstance(x, (int, str, Tensor)):
        return "put it into a list: [x]"
    return None
