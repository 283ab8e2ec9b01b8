"""Masks of attention, and diagonals that begin at any key, as numbers that are added to scores.

Scores that are hidden become far less than all others, but finite: blocks in which all are -inf have no maximum to take
exponentials from.  So a query that sees nothing has sums by which it is told, and is made 0 behind the library.
"""

from __future__ import annotations

from math import inf

from nnc_core.base.command import Command
from nnc_core.base.dtype import bfloat16, boolean, float16, float32, float64
from nnc_core.base.layout import Layout
from nnc_core.base.loopnest import LoopNest
from nnc_core.codegen.scalar import Scalar
from nnc_core.operator.loops import NestBuilder, broadcast_layout
from nnc_cuda.matrices.nests import begun

DTYPES = (boolean, float16, bfloat16, float32, float64)
HIDDEN, LEAST, NOTHING = -2e30, -1e30, -1.5e30
"""What is added where a query may not look; the least number that a mask adds elsewhere; the logarithms of sums are
less than the last of these where a query sees nothing."""


def bias_shape(mask: Layout | None, scores: tuple[int, ...], diagonal: bool) -> tuple[int, ...]:
    """The shape (..., heads, queries, keys) of the numbers of a mask: as small as the mask's, but all axes of batches
    or none, and all queries if there is a diagonal."""
    given = () if mask is None else mask.shape
    own = (1,) * (len(scores) - len(given)) + given
    batch = (1,) * len(own[:-3]) if set(own[:-3]) <= {1} else scores[:-3]
    return (*batch, own[-3], scores[-2] if diagonal else own[-2], scores[-1])


def bias_of(mask: Layout | None, diagonal: int | None, y: Layout) -> LoopNest:
    """y (float32) = what a mask adds to scores, of which query i sees those of keys up to i + `diagonal`."""
    nest, at = begun("masks made numbers", [] if mask is None else [broadcast_layout(mask, y.shape)], [y])
    added = nest.constant(0.0, float32) if mask is None else _added(nest.load(0, *at))
    if diagonal is not None:
        seen = nest.position(at[-1]) <= nest.position(at[-2]) + diagonal
        added = seen.select(added, added.constant(HIDDEN))
    nest.store(0, added, *at)
    return nest.build()


def _added(value: Scalar) -> Scalar:
    """The number that an element of a mask adds."""
    if value.dtype == boolean:
        return value.select(value.constant(0.0, float32), value.constant(HIDDEN, float32))
    wide = value.cast(float32)
    return wide.equal(-inf).select(wide.constant(HIDDEN), wide.maximum(LEAST))  # type: ignore[no-any-return]


def results_settled(sums: Layout, result: Layout) -> LoopNest:
    """Rows of the result (..., rows, features) become 0 where the sums (..., rows) say that nothing is seen."""
    nest = NestBuilder(Command("results of nothing", (), (sums, result), (result,)))
    at = nest.outer(*result.shape)
    value = nest.load(1, *at)
    nest.store(0, (nest.load(0, *at[:-1]) < NOTHING).select(value.constant(0), value), *at)
    return nest.build()


def sums_settled(sums: Layout) -> LoopNest:
    """Sums that say so become 0."""
    nest, at = begun("sums of nothing", [sums], [sums])
    value = nest.load(0, *at)
    nest.store(0, (value < NOTHING).select(value.constant(0), value), *at)
    return nest.build()
