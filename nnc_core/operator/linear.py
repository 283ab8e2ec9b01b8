"""Matrix products."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from nnc_core.base.command import Command
from nnc_core.base.dtype import accumulator
from nnc_core.base.loopnest import LoopNest
from nnc_core.operator.declare import ALL_INPUTS, Base, V, op
from nnc_core.operator.loops import open_nest
from nnc_core.shape import linear as rule

if TYPE_CHECKING:
    from nnc_core.operator import Namespace


def matmul_reference(a: Any, b: Any, transpose_a: bool, transpose_b: bool) -> Any:
    """float16 and bfloat16 are multiplied in float32."""
    wide = accumulator(a.dtype)
    x, y = np.asarray(a, wide), np.asarray(b, wide)
    out = np.matmul(x.swapaxes(-1, -2) if transpose_a else x, y.swapaxes(-1, -2) if transpose_b else y)
    return out.astype(a.dtype, copy=False)


def matmul_nest(command: Command) -> LoopNest:
    transpose_a, transpose_b = command.attributes
    a, b = command.inputs
    nest = open_nest(command)
    *batch, m, n = nest.outer(*command.output.shape)
    stacks = [[0 if d == 1 else i for i, d in zip(batch[len(batch) + 2 - len(x.shape) :], x.shape[:-2], strict=True)]
              for x in (a, b)]
    wide = accumulator(command.output.dtype)
    with nest.stage(a.shape[-2] if transpose_a else a.shape[-1]) as (k,):
        left = nest.load(0, *stacks[0], *((k, m) if transpose_a else (m, k))).cast(wide)
        right = nest.load(1, *stacks[1], *((n, k) if transpose_b else (k, n))).cast(wide)
        total = nest.fold("dot", left, right)
    nest.store(0, total, *batch, m, n)
    return nest.build()


def _by_a(F: Namespace[V], g: V, y: V, a: V, b: V, ta: bool, tb: bool) -> V:
    b = F.conjugate(b)
    da = F.matmul(b, g, transpose_a=tb, transpose_b=True) if ta else F.matmul(g, b, transpose_b=not tb)
    return F.sum_to(da, a.shape)


def _by_b(F: Namespace[V], g: V, y: V, a: V, b: V, ta: bool, tb: bool) -> V:
    a = F.conjugate(a)
    if b.ndim == 2 and a.ndim > 2 and not ta:  # all rows at once, not a matrix for each batch that is summed then
        a, g = (F.reshape(x, shape=(prod(x.shape[:-1]), x.shape[-1])) for x in (a, g))
    db = F.matmul(g, a, transpose_a=True, transpose_b=ta) if tb else F.matmul(a, g, transpose_a=not ta)
    return F.sum_to(db, b.shape)


class Linear(Base[V], Generic[V]):
    @op(infer=rule.matmul, reference=matmul_reference, nest=matmul_nest, promote=ALL_INPUTS, linear="each",
        vjp=(_by_a, _by_b))
    def matmul(self, a: V, b: V, *, transpose_a: bool = False, transpose_b: bool = False) -> V:
        """Products of the last two axes, the others broadcast; `transpose_*` swap the last two axes first."""
        ...
