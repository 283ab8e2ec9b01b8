"""Reading and writing by rows of indices, each of which names one element or slice."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from nnc_core.base.dtype import int64, is_integer
from nnc_core.base.errors import AttributeValueError, DTypeError, NotSupportedError, ShapeError
from nnc_core.functions.constants import beside
from nnc_core.functions.pieces import cut
from nnc_core.shape.axes import normalise_axis
from nnc_core.shape.indexing import SCATTERS
from nnc_core.type import Dims
from nnc_core.values.arguments import ArrayLike, as_value, as_value_beside, as_values, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

__all__ = ["gather_nd", "reverse_sequence", "scatter_nd"]


class _Joint(NamedTuple):
    """Indexed axes merged into one, after `batch` axes that x and the indices share: x, and places along that axis."""

    x: Value
    places: Value
    batch: int


def _joint(v: Value, i: Value, batch: int) -> _Joint:
    if not is_integer(i.dtype):
        raise DTypeError(f"indices are {i.dtype}, not integers", hint="cast with astype")
    count = i.shape[-1] if i.ndim > batch else None
    if not isinstance(count, int) or batch < 0 or batch + count > v.ndim or i.shape[:batch] != v.shape[:batch]:
        raise ShapeError(f"indices {i.spec} do not name slices of {v.spec} behind {batch} axes of batches",
                         hint="the last axis of the indices has one number for each axis that is indexed")
    lengths, rest = v.shape[batch : batch + count], v.shape[batch + count :]
    if count == 1:
        return _Joint(v, F.reshape(i, shape=i.shape[:-1]), batch)
    if not all(isinstance(n, int) for n in lengths):
        raise NotSupportedError(f"rows of indices for axes of unknown lengths {lengths}", hint="give sizes")
    size = prod(map(int, lengths))
    merged = F.reshape(v, shape=(*v.shape[:batch], size, *rest))
    return _Joint(merged, _places(i, tuple([int(n) for n in lengths]), size), batch)


def _places(i: Value, lengths: tuple[int, ...], size: int) -> Value:
    """Places in C order; where an index is out of range, one that is out of range too."""
    if not lengths:
        with beside(i):
            return F.full(shape=i.shape[:-1], value=0, dtype=int64)
    total, last = None, i.ndim - 1
    for k, n in enumerate(lengths):
        one = F.reshape(cut(i, last, k, k + 1), shape=i.shape[:-1])
        offset = F.index_offset(one, length=n, stride=prod(lengths[k + 1 :]), size=size)
        total = offset if total is None else F.add(total, offset)
    return total if total is not None else i


@names_itself
def gather_nd(x: ArrayLike, indices: ArrayLike, /, *, batch_dims: int = 0) -> Tensor:
    """x[i], x[i, j] ... for each row (i, j, ...) along the last axis of the indices: (*indices.shape[:-1], *rest).

    The first `batch_dims` axes are those of both arrays: each example has indices of its own.  Negative indices count
    from the end.
    """
    v, i = as_values(x, indices)
    joint = _joint(v, i, batch_dims)
    return Tensor(F.take(joint.x, joint.places, axis=joint.batch, batch=joint.batch))


@names_itself
def scatter_nd(x: ArrayLike, indices: ArrayLike, updates: ArrayLike, /, *, mode: str = "set",
               batch_dims: int = 0) -> Tensor:
    """x with what `gather_nd` would read set to the updates (of equal indices the last), or changed by them: `mode` is
    "set", "add", "multiply", "min" or "max", and equal indices all count."""
    if mode not in SCATTERS:
        raise AttributeValueError(f"mode {mode!r} is none of {', '.join(SCATTERS)}")
    v, i = as_values(x, indices)
    new = as_value_beside(updates, v)
    new = new if new.dtype == v.dtype else F.cast(new, dtype=v.dtype)
    joint = _joint(v, i, batch_dims)
    wanted: Dims = (*i.shape[:-1], *joint.x.shape[joint.batch + 1 :])
    new = new if new.shape == wanted else F.broadcast_to(new, shape=wanted)
    done = F.scatter(joint.x, joint.places, new, axis=joint.batch, mode=mode, batch=joint.batch)
    return Tensor(F.reshape(done, shape=v.shape))


@names_itself
def reverse_sequence(x: ArrayLike, lengths: ArrayLike, /, *, axis: int = 0, batch_axis: int = 1) -> Tensor:
    """x with the first lengths[k] elements along an axis in reverse order, for each k along the axis of batches."""
    v = as_value(x)
    n = as_value_beside(lengths, v)
    a, b = normalise_axis(axis, v.ndim), normalise_axis(batch_axis, v.ndim)
    if a == b:
        raise AttributeValueError(f"axis {axis} is that of the batches")
    if n.shape != (v.shape[b],) or not is_integer(n.dtype):
        raise ShapeError(f"lengths are {n.spec}, expected an integer for each of {v.shape[b]} sequences")
    order = (b, a, *[k for k in range(v.ndim) if k not in (a, b)])
    with beside(v):
        steps = F.arange(size=v.shape[a], dtype=int64)
    left = F.reshape(F.subtract(F.cast(n, dtype=int64), 1), shape=(v.shape[b], 1))
    places = F.where(F.less_equal(steps, left), F.subtract(left, steps), steps)
    moved = F.take(F.permute(v, axes=order), places, axis=1, batch=1)
    return Tensor(F.permute(moved, axes=tuple([order.index(k) for k in range(v.ndim)])))
