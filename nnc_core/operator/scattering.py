"""The one scatter: elements of an array replaced, or combined with updates, where indices say.

Every kind of combination has derivatives.  Extremes share them among all that attain them; products are
differentiated without division, so that zeros among the factors do no harm.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from nnc_core.base import dtype as dt
from nnc_core.base.command import Command
from nnc_core.base.errors import NotSupportedError
from nnc_core.base.moved_axes import moved
from nnc_core.operator.declare import Base, V, op
from nnc_core.operator.indexing import check_indices, indices_first, positions
from nnc_core.shape import indexing as rule
from nnc_core.type import index_range

if TYPE_CHECKING:
    from nnc_core.operator import Namespace

COMBINE: dict[str, np.ufunc] = {
    "add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum,
}  # fmt: skip


def scatter_into(out: Any, indices: Any, updates: Any, axis: int, mode: str, batch: int) -> None:
    """Change `out`.  Repeated indices: "set" keeps the last, the others combine all."""
    rows = moved(out, axis, batch)
    new = indices_first(updates, indices, axis, batch)
    key = positions(indices, batch)
    if mode == "set":
        rows[key] = new
    else:
        COMBINE[mode].at(rows, key, new)


def _scatter(x: Any, indices: Any, updates: Any, axis: int, mode: str, batch: int) -> Any:
    """float16 and bfloat16 are added and multiplied in float32."""
    indices = np.asarray(indices)
    check_indices("scatter", indices, np.shape(x)[axis])
    wide = dt.accumulator(x.dtype) if mode in ("add", "multiply") else x.dtype
    out = np.array(x, wide)
    scatter_into(out, indices, np.asarray(updates).astype(wide, copy=False), axis, mode, batch)
    return out.astype(x.dtype, copy=False)


# ---- derivatives
def _vjp(F: Namespace[V], g: V, y: V, x: V, indices: V, updates: V, axis: int, mode: str,
         batch: int) -> tuple[V | None, ...]:
    along: Any = {"axis": axis, "batch": batch}
    if mode in ("set", "add"):
        taken = F.take(g, indices, **along)
        if mode == "add":
            return g, None, taken
        kept = F.scatter(g, indices, F.zeros_like(updates), mode="set", **along)
        return kept, None, F.multiply(taken, _last_writers(F, x, indices, updates, axis, batch))
    if mode == "multiply":
        by_x, others = _factors(F, x, indices, updates, axis, batch)
        return (F.multiply(g, F.conjugate(by_x)), None,
                F.multiply(F.take(g, indices, **along), F.conjugate(others)))
    share, mine, theirs = _shares(F, y, x, indices, updates, along)
    g = F.multiply(g, share)
    return F.multiply(g, mine), None, F.multiply(F.take(g, indices, **along), theirs)


def _jvp(F: Namespace[V], t: Any, y: V, x: V, indices: V, updates: V, axis: int, mode: str, batch: int) -> V:
    along: Any = {"axis": axis, "batch": batch}
    dx = F.zeros_like(x) if t[0] is None else t[0]
    du = F.zeros_like(updates) if t[2] is None else t[2]
    if mode in ("set", "add"):
        return F.scatter(dx, indices, du, mode=mode, **along)
    if mode == "multiply":
        by_x, others = _factors(F, x, indices, updates, axis, batch)
        return F.scatter(F.multiply(dx, by_x), indices, F.multiply(du, others), mode="add", **along)
    share, mine, theirs = _shares(F, y, x, indices, updates, along)
    return F.multiply(share, F.scatter(F.multiply(dx, mine), indices, F.multiply(du, theirs), mode="add", **along))


def _shares(F: Namespace[V], y: V, x: V, indices: V, updates: V, along: Any) -> tuple[V, V, V]:
    """The shares of an extremum: one for each element that attains it; 1 for elements of x, and updates, that do."""
    mine = F.cast(F.logical_or(F.equal(x, y), F.not_equal(x, x)), dtype=x.dtype)
    top = F.take(y, indices, **along)
    theirs = F.cast(F.logical_or(F.equal(updates, top), F.not_equal(updates, updates)), dtype=x.dtype)
    return F.divide(1.0, F.scatter(mine, indices, theirs, mode="add", **along)), mine, theirs


def _length(shape: Any) -> Any:
    count: Any = 1
    for n in shape:
        count = n * count
    return count


def _beside(F: Namespace[V], v: V, indices: V, updates: V, axis: int, batch: int) -> V:
    """One number for each index, (shared..., all indices in a row), so that it broadcasts with the updates."""
    tail = len(updates.shape) - axis - (len(indices.shape) - batch)
    between = (1,) * (axis - batch)
    return F.reshape(v, shape=(*indices.shape[:batch], *between, *indices.shape[batch:], *(1,) * tail))


def _last_writers(F: Namespace[V], x: V, indices: V, updates: V, axis: int, batch: int) -> V:
    """1 for each update that is still there at the end, 0 for one that a later update of the same index replaced."""
    shared = indices.shape[:batch]
    row = _length(indices.shape[batch:])
    tickets = F.broadcast_to(F.arange(size=row, dtype=dt.int64), shape=(*shared, row))
    flat = F.reshape(indices, shape=(*shared, row))
    nobody = F.full(shape=(*shared, x.shape[axis]), value=-1, dtype=dt.int64)
    winners = F.scatter(nobody, flat, tickets, axis=batch, mode="set", batch=batch)
    alive = F.cast(F.equal(F.take(winners, flat, axis=batch, batch=batch), tickets), dtype=updates.dtype)
    return _beside(F, alive, indices, updates, axis, batch)


def _factors(F: Namespace[V], x: V, indices: V, updates: V, axis: int, batch: int) -> tuple[V, V]:
    """The derivative of a product: the factor of each element of x, and that of each update."""
    ones = F.full_like(x, 1)
    by_x = F.scatter(ones, indices, updates, axis=axis, mode="multiply", batch=batch)
    shape = updates.shape
    count = len(indices.shape) - batch
    row = _length(shape[axis : axis + count])
    if not isinstance(row, int):
        raise NotSupportedError(f"the derivative of a product over {row} indices needs their number",
                                operator="scatter", hint="give that axis a number")
    flat = F.reshape(_wrapped(F, indices, x.shape[axis]), shape=(*indices.shape[:batch], row))
    factors = F.reshape(updates, shape=(*shape[:axis], row, *shape[axis + count :]))
    before = _before(F, flat, factors, axis, batch, row)
    turned = F.flip(_before(F, F.flip(flat, axes=(batch,)), F.flip(factors, axes=(axis,)), axis, batch, row),
                    axes=(axis,))
    others = F.reshape(F.multiply(before, turned), shape=shape)
    return by_x, F.multiply(F.take(x, indices, axis=axis, batch=batch), others)


def _wrapped(F: Namespace[V], indices: V, length: Any) -> V:
    """Without negative ones: equal numbers for equal elements."""
    wide = F.cast(indices, dtype=dt.int64)
    if not isinstance(length, int):
        raise NotSupportedError(f"the derivative of a product along an axis of length {length} needs its number",
                                operator="scatter", hint="give that axis a number")
    return F.where(F.less(wide, 0), F.add(wide, length), wide)


def _before(F: Namespace[V], indices: V, factors: V, axis: int, batch: int, count: int) -> V:
    """For each factor the product of the earlier ones that have the same index.

    Each looks at the last one before it; products over twice as many each time, until all have been reached.
    """
    nearest = F.earlier(indices)
    place, product = nearest, factors
    for _ in range(max(count - 1, 0).bit_length()):
        product = _times_those_at(F, product, product, place, axis, batch)
        place = F.where(F.less(place, 0), -1, F.take(place, _somewhere(F, place), axis=batch, batch=batch))
    return _times_those_at(F, F.full_like(factors, 1), product, nearest, axis, batch)


def _times_those_at(F: Namespace[V], product: V, factors: V, place: V, axis: int, batch: int) -> V:
    """Times the factor at a place, where there is one."""
    there = F.take(factors, _somewhere(F, place), axis=axis, batch=batch)
    has = _beside(F, F.greater_equal(place, 0), place, factors, axis, batch)
    return F.where(has, F.multiply(product, there), product)


def _somewhere(F: Namespace[V], place: V) -> V:
    """A place that exists, where there is none."""
    return F.maximum(place, 0)


def _flops(command: Command) -> float:
    """One for each update that is combined with what is there."""
    _, mode, _ = command.attributes
    return 0 if mode == "set" else prod(command.inputs[2].shape)


class Scattering(Base[V], Generic[V]):
    @op(infer=rule.scatter, reference=_scatter, inplace=(0,), storage=True, vjp=_vjp, jvp=_jvp,
        indices=lambda shapes, axis, mode, batch: index_range.along(1, shapes[0][axis]), flops=_flops)
    def scatter(self, x: V, indices: V, updates: V, *, axis: int, mode: str, batch: int = 0) -> V:
        """x with the slices that `take` would read changed: "set" to the updates (of equal indices the last), or by
        "add", "multiply", "min" and "max" with all of them."""
        ...
