"""Functions that join arrays, and that take them apart."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from nnc_core.base.errors import AttributeValueError, OperandError, ShapeError
from nnc_core.functions.movement import in_three_dims, with_dims
from nnc_core.functions.pieces import cut, flat, known
from nnc_core.shape.axes import normalise_axis
from nnc_core.type import DimLike
from nnc_core.values.arguments import ArrayLike, as_value, as_values, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.repetition import by_shapes
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value
from nnc_core.values.whole import as_whole

__all__ = [
    "append", "array_split", "block", "column_stack", "concat", "dsplit", "dstack", "hsplit", "hstack", "split",
    "stack", "unstack", "vsplit", "vstack",
]  # fmt: skip


def _some(arrays: Sequence[ArrayLike]) -> list[Value]:
    values = as_values(*arrays)
    if not values:
        raise OperandError("nothing to join", hint="give one array or more")
    return values


# ---- together
@by_shapes
@names_itself
def concat(arrays: Sequence[ArrayLike], /, *, axis: int | None = 0) -> Tensor:
    """One after another along an axis; flattened first if it is None.  Dtypes are promoted to one.

    (2, 3) and (4, 3) along axis 0 give (6, 3).  Raises ShapeError where other axes differ, OperandError for nothing.
    """
    values = _some(arrays)
    if axis is None:
        values, axis = [flat(v) for v in values], 0
    return Tensor(F.concat(*values, axis=normalise_axis(axis, values[0].ndim)))


@by_shapes
@names_itself
def stack(arrays: Sequence[ArrayLike], /, *, axis: int = 0) -> Tensor:
    """Joined along a new axis, which is at this place of the result: n arrays (2, 3) at axis 0 give (n, 2, 3).

    Raises ShapeError where shapes differ.
    """
    values = _some(arrays)
    at = normalise_axis(axis, values[0].ndim + 1)
    return Tensor(F.concat(*[F.reshape(v, shape=(*v.shape[:at], 1, *v.shape[at:])) for v in values], axis=at))


@by_shapes
@names_itself
def append(x: ArrayLike, values: ArrayLike, /, axis: int | None = None) -> Tensor:
    """Values after the end of x along an axis; after the flattened x without one."""
    return concat((x, values), axis=axis)


@by_shapes
@names_itself
def hstack(arrays: Sequence[ArrayLike], /) -> Tensor:
    """Side by side: along the second axis, vectors along their only one."""
    values = [with_dims(v, 1) for v in _some(arrays)]
    return Tensor(F.concat(*values, axis=0 if values[0].ndim == 1 else 1))


@by_shapes
@names_itself
def vstack(arrays: Sequence[ArrayLike], /) -> Tensor:
    """One below the other: along the first axis, vectors as rows."""
    return Tensor(F.concat(*[with_dims(v, 2) for v in _some(arrays)], axis=0))


@by_shapes
@names_itself
def dstack(arrays: Sequence[ArrayLike], /) -> Tensor:
    """One behind the other, along the third axis."""
    return Tensor(F.concat(*[in_three_dims(v) for v in _some(arrays)], axis=2))


@by_shapes
@names_itself
def column_stack(arrays: Sequence[ArrayLike], /) -> Tensor:
    """Vectors as columns of a matrix, beside matrices as they are."""
    values = _some(arrays)
    columns = [v if v.ndim > 1 else F.reshape(v, shape=(*(v.shape or (1,)), 1)) for v in values]
    return Tensor(F.concat(*columns, axis=1))


@by_shapes
@names_itself
def block(arrays: Any, /) -> Tensor:
    """One array from nested lists of blocks: the innermost lists along the last axis, those around them along the one
    before, and so on."""
    depth = _depth(arrays)
    leaves = _leaves(arrays)
    ndim = max([depth, *[v.ndim for v in leaves]])
    return Tensor(_assembled(arrays, iter([with_dims(v, ndim) for v in leaves]), ndim - depth))


def _depth(x: Any) -> int:
    """The depth of nested lists, everywhere the same."""
    if not isinstance(x, list):
        return 0
    depths = {_depth(y) for y in x}
    if len(depths) != 1:
        raise ShapeError("empty lists, or blocks in lists that are nested differently", hint="[[a, b], [c, d]]")
    return depths.pop() + 1


def _leaves(x: Any) -> list[Value]:
    def found(x: Any) -> list[Any]:
        return [leaf for y in x for leaf in found(y)] if isinstance(x, list) else [x]

    return as_values(*found(x))


def _assembled(x: Any, leaves: Any, axis: int) -> Value:
    if not isinstance(x, list):
        return next(leaves)  # type: ignore[no-any-return]
    return F.concat(*[_assembled(y, leaves, axis + 1) for y in x], axis=axis)


# ---- apart
@names_itself
def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices along an axis, which they do not have any more."""
    v = as_value(x)
    a = normalise_axis(axis, v.ndim)
    if (found := as_whole("unstacked", (v,), (a,))) is not None:
        return tuple(map(Tensor, found))
    rest = (*v.shape[:a], *v.shape[a + 1 :])
    return tuple([Tensor(F.reshape(cut(v, a, i, i + 1), shape=rest)) for i in range(int(v.shape[a]))])


@names_itself
def array_split(x: ArrayLike, indices_or_sections: Any, /, axis: int = 0) -> list[Tensor]:
    """Parts along an axis: between these indices, or so many of nearly equal length, the longer ones first."""
    v = as_value(x)
    a = normalise_axis(axis, v.ndim)
    if _is_count(indices_or_sections):
        return _parts(v, _ends(v, a, int(indices_or_sections)), a)
    return _parts(v, _between(v, a, indices_or_sections), a)


@names_itself
def split(x: ArrayLike, indices_or_sections: Any, /, axis: int = 0) -> list[Tensor]:
    """Parts along an axis: between these indices, or so many of equal length.

    Raises ShapeError where the axis does not divide into equal parts; `array_split` takes those, too.
    """
    v = as_value(x)
    a = normalise_axis(axis, v.ndim)
    if _is_count(indices_or_sections):
        count, length = int(indices_or_sections), v.shape[a]
        if count > 0 and (length // count) * count != length:
            raise ShapeError(f"axis {a} of {v.spec} does not divide into {count} equal parts", hint="array_split")
    return array_split(x, indices_or_sections, axis=axis)


def _is_count(x: Any) -> bool:
    return hasattr(x, "__index__") and np.ndim(x) == 0


def _ends(v: Value, axis: int, count: int) -> list[DimLike]:
    """0, and where each of `count` parts ends."""
    if count < 1:
        raise AttributeValueError(f"{count} parts", hint="one or more")
    length = v.shape[axis]
    each = length // count
    if each * count == length:
        return [each * i for i in range(count + 1)]
    longer = int(length) % count
    return [each * i + min(i, longer) for i in range(count + 1)]


def _between(v: Value, axis: int, indices: Any) -> list[DimLike]:
    """As slices have them: beyond the end is the end."""
    length = v.shape[axis]
    host = known(indices, "a list of indices")
    if host.ndim != 1:
        raise ShapeError(f"the indices have {host.ndim} dimensions, expected one", hint="[1, 3], or a number of parts")
    inner: list[Any] = host.tolist()
    if isinstance(length, int):
        inner = [slice(i, None).indices(length)[0] for i in inner]
    return [0, *inner, length]


def _parts(v: Value, ends: list[DimLike], axis: int) -> list[Tensor]:
    found = []
    for a, b in pairwise(ends):
        stop = max(a, b) if isinstance(a, int) and isinstance(b, int) else b
        found.append(Tensor(cut(v, axis, a, stop)))
    return found


def _split_along(name: str, axis: int, least: int) -> Any:
    def function(x: ArrayLike, indices_or_sections: Any, /) -> list[Tensor]:
        v = as_value(x)
        if v.ndim < least:
            raise ShapeError(f"{v.spec} has fewer than {least} dimensions")
        return split(x, indices_or_sections, axis=0 if axis == 1 and v.ndim == 1 else axis)

    function.__name__ = function.__qualname__ = name
    return names_itself(function)


hsplit, vsplit, dsplit = _split_along("hsplit", 1, 1), _split_along("vsplit", 0, 2), _split_along("dsplit", 2, 3)
hsplit.__doc__ = "`split` along the second axis; vectors along their only one."
vsplit.__doc__ = "`split` along the first axis, of matrices or more."
dsplit.__doc__ = "`split` along the third axis."
