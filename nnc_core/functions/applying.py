"""Functions of the user's over slices, axes and pieces of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from nnc_core.base.dtype import boolean
from nnc_core.base.errors import AttributeValueError, DTypeError, ShapeError
from nnc_core.control.vmap import vmap
from nnc_core.functions.indexing import select
from nnc_core.functions.pieces import moved
from nnc_core.functions.reduction import as_dtype
from nnc_core.shape.axes import normalise_axis
from nnc_core.values.arguments import ArrayLike, as_value, as_value_beside, as_values, count_of, located
from nnc_core.values.dispatch import F
from nnc_core.values.operands import value_of
from nnc_core.values.tensor import Tensor

__all__ = ["apply_along_axis", "apply_over_axes", "piecewise"]


@located
def apply_along_axis(func: Callable[..., Any], axis: int, x: ArrayLike, /, *args: Any, **kwargs: Any) -> Tensor:
    """func(slice, *args, **kwargs) for every vector of x along an axis; the axes of its results stand in that place.

    It runs once, for all slices (vmap): func is made of functions of this library, and its results' shape does not
    depend on data.
    """
    v = as_value(x)
    a = normalise_axis(axis, v.ndim)
    rows = moved(v, [a], [v.ndim - 1])
    others = rows.shape[:-1]
    table = F.reshape(rows, shape=(count_of(others), rows.shape[-1]))
    found = value_of(vmap(lambda row: func(row, *args, **kwargs))(Tensor(table)))
    result = F.reshape(found, shape=(*others, *found.shape[1:]))
    inner = result.ndim - len(others)
    return Tensor(moved(result, range(len(others), result.ndim), range(a, a + inner)))


@located
def apply_over_axes(func: Callable[[Tensor, int], Any], x: ArrayLike, axes: int | Sequence[int], /) -> Tensor:
    """func(x, axis) of one axis after the other; an axis that it takes away comes back with length 1."""
    y = Tensor(as_value(x))
    for axis in (axes,) if isinstance(axes, int) else axes:
        a = normalise_axis(axis, y.ndim)
        v = value_of(func(y, a))
        if v.ndim == y.ndim - 1:
            v = F.reshape(v, shape=(*v.shape[:a], 1, *v.shape[a:]))
        if v.ndim != y.ndim:
            raise ShapeError(f"the function makes {v.spec} of {y.spec}: neither as many axes nor one fewer")
        y = Tensor(v)
    return y


@located
def piecewise(x: ArrayLike, condlist: ArrayLike | Sequence[ArrayLike], funclist: Sequence[Any], /, *args: Any,
              **kwargs: Any) -> Tensor:
    """Apply the i-th function to x where the i-th condition is true, or take the i-th number; the last condition
    that is true decides, and one function more is for where none is, otherwise 0.  In the dtype of x.

    Functions see all of x: what they make of elements that are not theirs is dropped.
    """
    v, *given = as_values(x, *(condlist if isinstance(condlist, (tuple, list)) else [condlist]))
    if not isinstance(condlist, (tuple, list)) and given[0].ndim > v.ndim:
        given = [value_of(c) for c in Tensor(given[0])]
    if any(c.dtype != boolean for c in given):
        raise DTypeError(f"conditions are {', '.join(str(c.dtype) for c in given)}, not booleans")
    if len(funclist) not in (len(given), len(given) + 1):
        raise AttributeValueError(f"{len(funclist)} functions for {len(given)} conditions", hint="as many, or one more")
    made = [_piece(f, v, args, kwargs) for f in funclist]
    otherwise = made.pop() if len(made) > len(given) else Tensor(F.zeros_like(v))
    if not made:
        return otherwise
    return select([Tensor(c) for c in reversed(given)], list(reversed(made)), otherwise)


def _piece(f: Any, v: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    made = as_value_beside(f(Tensor(v), *args, **kwargs) if callable(f) else f, v)
    return Tensor(F.broadcast_to(as_dtype(made, v.dtype), shape=v.shape))
