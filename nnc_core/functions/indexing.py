"""Reading and choosing by arrays of indices and by masks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nnc_core.base.dtype import boolean, int64, is_integer
from nnc_core.base.errors import AttributeValueError, DTypeError, OperandError, ShapeError
from nnc_core.functions.pieces import flat, with_length
from nnc_core.functions.selection import places_of
from nnc_core.operator.along import taken_along
from nnc_core.shape.axes import normalise_axis
from nnc_core.shape.elementwise import broadcast
from nnc_core.type import DimLike, admit_numpy, default_float
from nnc_core.values.arguments import ArrayLike, as_operands, as_value, as_values, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.repetition import by_shapes
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

__all__ = [
    "choose", "compress", "extract", "index_select", "masked_fill", "one_hot", "place", "select", "take",
    "take_along_axis",
]  # fmt: skip


# ---- by indices
@names_itself
def take(x: ArrayLike, indices: ArrayLike, /, *, axis: int | None = None) -> Tensor:
    """Slices of x along an axis; of the flattened x if it is None.  Negative indices count from the end."""
    v, i = as_values(x, indices)
    if axis is None:
        return Tensor(F.take(flat(v), i, axis=0))
    return Tensor(F.take(v, i, axis=normalise_axis(axis, v.ndim)))


@names_itself
def index_select(x: ArrayLike, axis: int, index: ArrayLike, /) -> Tensor:
    """`take` with PyTorch's name and order of arguments; the index is a vector."""
    v, i = as_values(x, index)
    if i.ndim > 1:
        raise ShapeError(f"the index {i.spec} is no vector", hint="take")
    i = F.reshape(i, shape=(1,)) if i.ndim == 0 else i
    return Tensor(F.take(v, i, axis=normalise_axis(axis, v.ndim)))


@by_shapes
@names_itself
def take_along_axis(x: ArrayLike, indices: ArrayLike, /, *, axis: int | None = -1) -> Tensor:
    """Elements of x at indices along an axis, each row of x by the same row of `indices`; the other axes are broadcast
    together.  Of the flattened x without an axis."""
    v, i = as_values(x, indices)
    if axis is None:
        if i.ndim != 1:
            raise ShapeError(f"indices {i.spec} of the flattened {v.spec} should be a vector", hint="name the axis")
        return Tensor(F.take(flat(v), i, axis=0))
    if v.ndim != i.ndim:
        raise ShapeError(f"{v.spec} and indices {i.spec} should have as many dimensions", hint="take")
    a = normalise_axis(axis, v.ndim)
    others = broadcast(with_length(v.shape, a, 1), with_length(i.shape, a, 1))
    v = spread(v, with_length(others, a, v.shape[a]))
    return Tensor(taken_along(F, v, spread(i, with_length(others, a, i.shape[a])), a))


def spread(v: Value, shape: Sequence[DimLike]) -> Value:
    """Broadcast where it has to be."""
    return v if v.shape == tuple(shape) else F.broadcast_to(v, shape=tuple(shape))


@names_itself
def one_hot(indices: ArrayLike, depth: int, *, dtype: Any = None) -> Tensor:
    """A new last axis of length `depth` with 1 at the index and 0 elsewhere; 0 alone for indices beyond it."""
    wanted = default_float() if dtype is None else admit_numpy(dtype)
    return Tensor(F.one_hot(as_value(indices), depth=depth, dtype=wanted))


@by_shapes
@names_itself
def choose(index: ArrayLike, choices: Sequence[ArrayLike], /, *, mode: str = "raise") -> Tensor:
    """For each element the array among `choices` that its number names; all are broadcast together.

    Numbers out of range: "raise" as `take` has it, "wrap" around, or "clip" to the first and the last.
    """
    if not len(choices):
        raise OperandError("nothing to choose from")
    i, *values = as_values(index, *choices)
    if not is_integer(i.dtype):
        raise DTypeError(f"indices are {i.dtype}, not integers", hint="cast with astype")
    shape = broadcast(i.shape, *[v.shape for v in values])
    stacked = F.concat(*[F.reshape(spread(v, shape), shape=(1, *shape)) for v in values], axis=0)
    i = spread(_within(i, len(values), mode), shape)
    return Tensor(F.reshape(taken_along(F, stacked, F.reshape(i, shape=(1, *shape)), 0), shape=shape))


def _within(i: Value, count: int, mode: str) -> Value:
    if mode not in ("raise", "wrap", "clip"):
        raise AttributeValueError(f"mode {mode!r} is none of 'raise', 'wrap', 'clip'")
    if mode == "raise":
        return i
    i = F.cast(i, dtype=int64)
    return F.remainder(i, count) if mode == "wrap" else F.clip(i, 0, count - 1)


# ---- by conditions
@by_shapes
@names_itself
def select(conditions: Sequence[ArrayLike], choices: Sequence[ArrayLike], /, default: Any = 0) -> Tensor:
    """For each element the choice whose condition is the first that holds; `default` where none does."""
    if len(conditions) != len(choices) or not len(conditions):
        raise AttributeValueError(f"{len(conditions)} conditions for {len(choices)} choices")
    values = as_operands(*conditions, *choices, default)
    found = values[-1]
    for condition, choice in reversed(list(zip(values[: len(choices)], values[len(choices) : -1], strict=True))):
        found = F.where(condition, choice, found)
    return Tensor(found)


@by_shapes
@names_itself
def masked_fill(x: ArrayLike, mask: ArrayLike, value: Any, /) -> Tensor:
    """x with a number where the mask is true; the mask is broadcast to x."""
    v, m, new = as_values(x, mask, value)
    new = new if new.dtype == v.dtype else F.cast(new, dtype=v.dtype)
    filled = F.where(m, new, v)
    if filled.shape != v.shape:
        raise ShapeError(f"the mask {m.spec} and the value {new.spec} do not fit {v.spec}")
    return Tensor(filled)


@names_itself
def compress(condition: ArrayLike, x: ArrayLike, /, axis: int | None = None) -> Tensor:
    """The slices of x along an axis whose condition holds, of the flattened x without one; a condition that is too
    short is false at the end."""
    c, v = as_values(condition, x)
    v, a = (flat(v), 0) if axis is None else (v, normalise_axis(axis, v.ndim))
    if c.ndim != 1:
        raise ShapeError(f"the condition {c.spec} is no vector")
    return Tensor(F.take(v, places_of(_boolean(c)), axis=a))


@names_itself
def extract(condition: ArrayLike, x: ArrayLike, /) -> Tensor:
    """The elements of x, in C order, where the condition holds."""
    c, v = as_values(condition, x)
    if c.shape != v.shape:
        raise ShapeError(f"a condition {c.spec} for {v.spec}")
    return Tensor(F.take(flat(v), places_of(_boolean(c)), axis=0))


@by_shapes
@names_itself
def place(x: ArrayLike, mask: ArrayLike, values: ArrayLike, /) -> Tensor:
    """x with the elements where the mask is true replaced, in C order, by those of a vector, from the first again when
    they end."""
    v, m, new = as_values(x, mask, values)
    if m.shape != v.shape:
        raise ShapeError(f"a mask {m.spec} for {v.spec}")
    m, new = _boolean(m), flat(new if new.dtype == v.dtype else F.cast(new, dtype=v.dtype))
    if new.shape[0] == 0:
        raise ShapeError("no values to place", hint="give one or more")
    turn = F.subtract(F.cumulative_sum(F.cast(flat(m), dtype=int64), axis=0), 1)
    turn = F.remainder(turn, int(new.shape[0]))
    return Tensor(F.where(m, F.reshape(F.take(new, turn, axis=0), shape=v.shape), v))


def _boolean(v: Value) -> Value:
    return v if v.dtype == boolean else F.cast(v, dtype=boolean)
