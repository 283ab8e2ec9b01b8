"""Updates combined with what lies there: NumPy's loops until those of machine code pay, with the same bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from time import perf_counter
from typing import Any

from nnc_core.base.command import Command
from nnc_core.base.dtype import boolean, int64, is_complex
from nnc_core.base.layout import Layout
from nnc_core.base.loopnest import LoopNest
from nnc_core.device import Buffer, Kernel
from nnc_core.operator.loops import Index, NestBuilder
from nnc_cpu.nests import NestKernels, TieredKernel, Together, has_llvm

COMBINED = ("add", "multiply")
"""Modes of a scatter for which NumPy and loop nests give the same bits."""

_SOURCE = NestKernels()


class CombiningKernel(TieredKernel):
    """Takes arrays: indices, which are known to be in range, updates, and what is changed."""

    def __init__(self, nest: LoopNest, together: Together, by_numpy: Callable[..., None]) -> None:
        super().__init__(nest, together)
        self.by_numpy = by_numpy

    def interpret(self, buffers: Sequence[Buffer]) -> None:
        begin = perf_counter()
        self.by_numpy(*buffers)
        self.together.spent += perf_counter() - begin


def combining(command: Command, by_numpy: Callable[..., None]) -> Kernel | None:
    """The kernel that changes the output of a scatter; None where that is left to NumPy."""
    attributes: Any = command.attributes
    axis, mode, batch = attributes
    _, indices, updates = command.inputs
    out = command.output
    if mode not in COMBINED or is_complex(out.dtype) or out.dtype == boolean or not has_llvm():
        return None
    if not prod(out.shape) or not prod(updates.shape) or updates.dtype != out.dtype:
        return None
    together = Together(_SOURCE)
    return together.follow(CombiningKernel(combining_nest(indices, updates, out, axis, mode, batch), together,
                                           by_numpy))


def combining_nest(indices: Layout, updates: Layout, out: Layout, axis: int, mode: str, batch: int) -> LoopNest:
    """Go through the updates of each column in order.  What is written is read again, which the interpreter and machine
    code do in the order of the points."""
    layouts = [Layout(x.shape, x.dtype, 0, x.strides) for x in (indices, updates, out)]
    nest = NestBuilder(Command("scatter", (), tuple(layouts[:2]), (layouts[2],)))
    at = nest.outer(*out.shape[:axis], *out.shape[axis + 1 :])
    with nest.stage(*indices.shape[batch:]) as k:
        index = nest.load(0, *at[:batch], *k).cast(int64)
        place = (*at[:axis], Index(gather=(index < 0).select(index + out.shape[axis], index)), *at[axis:])
        old, new = nest.load(2, *place), nest.load(1, *at[:axis], *k, *at[axis:])
        nest.store(0, old + new if mode == "add" else old * new, *place)
    return nest.build()
