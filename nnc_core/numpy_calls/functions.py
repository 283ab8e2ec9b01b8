"""`__array_function__`: `np.sum(x)`, `np.concatenate([array, x])`, `np.linalg.norm(x)`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from nnc_core.functions import public
from nnc_core.numpy_calls.operands import OURS, is_known, is_ours, not_written, on_host, refusal
from nnc_core.spellings import function_called
from nnc_core.values.tensor import Tensor

ON_HOST = frozenset({
    "array2string", "array_repr", "array_str", "may_share_memory", "save", "savetxt", "savez", "savez_compressed",
    "shares_memory",
})  # fmt: skip
"""Functions that write text or files, or ask of memory: they get the elements."""
WRITING = frozenset({"copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask"})
"""Functions that write into their first argument."""


def _tensor(x: Any) -> Tensor:
    return public.asarray(x)


def _broadcast(*arrays: Any, subok: bool = False) -> Any:
    """Ask NumPy itself where there are objects beside tensors, such as None and texts, which are no arrays of ours."""
    if all(map(is_known, arrays)):
        return public.broadcast_arrays(*arrays)
    return np.broadcast_arrays(*on_host(arrays), subok=subok)


OTHERWISE: dict[str, Callable[..., Any]] = {
    "broadcast_arrays": _broadcast, "copy": lambda a, **options: Tensor.copy(_tensor(a)),
    "ndim": lambda a: _tensor(a).ndim, "resize": public.resize_flat, "shape": lambda a: _tensor(a).shape,
    "size": lambda a, axis=None: _tensor(a).size if axis is None else _tensor(a).shape[axis],
}  # fmt: skip
"""Functions that are attributes or methods of tensors, or whose namesake here means something else."""

def array_function(self: Any, func: Callable[..., Any], types: Sequence[type], args: Sequence[Any],
                   kwargs: Mapping[str, Any]) -> Any:
    """A call of one of NumPy's functions with a tensor among its arguments."""
    if not all(issubclass(kind, (*OURS, np.ndarray)) for kind in types):
        return NotImplemented
    name = func.__name__
    if name in WRITING and args and is_ours(args[0]):
        raise not_written(name)
    if name in ON_HOST or name in WRITING:
        return func(*on_host(tuple(args)), **on_host(dict(kwargs)))
    ours = _namesake(func)
    if ours is None:
        raise refusal(name)
    positional, named = _arguments(func, ours, args, kwargs)
    out = named.pop("out", None)
    if out is None:
        return ours(*positional, **named)
    return _written(name, out, ours(*positional, **named))


@lru_cache(maxsize=1024)
def _namesake(func: Callable[..., Any]) -> Callable[..., Any] | None:
    """The function of ours that means the same."""
    package, _, space = func.__module__.partition(".")
    if package != "numpy" or space not in ("", "linalg", "fft"):
        return None
    found = None if space else OTHERWISE.get(func.__name__)
    return found or function_called(func.__name__, space)


def _written(name: str, out: Any, result: Any) -> Any:
    """NumPy's array, with the result in it."""
    if not isinstance(out, np.ndarray):
        raise not_written(name)
    np.copyto(out, np.asarray(result), casting="same_kind")
    return out


def _arguments(func: Callable[..., Any], ours: Callable[..., Any], args: Sequence[Any],
               kwargs: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Arguments without NumPy's defaults: operands by position, the rest by NumPy's names."""
    theirs = _signature(func)
    if theirs is None:
        return list(args), dict(kwargs)
    places = _leading(ours)
    positional: list[Any] = []
    named: dict[str, Any] = {}
    given = theirs.bind(*args, **kwargs).arguments
    for i, (name, parameter) in enumerate(theirs.parameters.items()):
        if name not in given or given[name] is parameter.default:
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            positional += given[name]
        elif parameter.kind is parameter.VAR_KEYWORD:
            named |= given[name]
        elif i == len(positional) and i < places:
            positional.append(given[name])
        else:
            named[name] = given[name]
    return positional, named


@lru_cache(maxsize=1024)
def _signature(func: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(func)
    except (TypeError, ValueError):
        return None


@lru_cache(maxsize=1024)
def _leading(ours: Callable[..., Any]) -> int:
    """The number of arguments that are taken by position alone, which stand where NumPy has them."""
    kinds = [p.kind for p in inspect.signature(ours).parameters.values()]
    return sum(kind is inspect.Parameter.POSITIONAL_ONLY for kind in kinds)
