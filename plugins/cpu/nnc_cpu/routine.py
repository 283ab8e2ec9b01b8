"""A command made ready for any arrays: which scratch memory it wants, and how it becomes a launch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from nnc_core.base.command import Command
from nnc_core.base.dtype import DType, accumulator
from nnc_core.base.layout import Layout
from nnc_core.device import Launch
from nnc_cpu.memory import ALIGNMENT, Array, packed_like


class Routine(NamedTuple):
    """`bind` takes the arrays of inputs, outputs and scratch; scratch layouts are packed, their offsets 0."""

    bind: Callable[..., Launch]
    scratch: tuple[Layout, ...] = ()
    fresh: Callable[..., Any] | None = None
    """Gives of the arrays of inputs those of outputs, in memory of their own, where that is as good."""

    @property
    def workspace(self) -> int:
        """Bytes of all scratch arrays, each aligned."""
        return sum(_aligned(s.nbytes) for s in self.scratch)

    @property
    def placed(self) -> tuple[Layout, ...]:
        """The scratch arrays where they lie in a stretch of memory."""
        ends = [*accumulate((_aligned(s.nbytes) for s in self.scratch), initial=0)]
        return tuple([s._replace(offset=begin) for s, begin in zip(self.scratch, ends, strict=False)])

    def scratch_in(self, workspace: Array) -> list[Array]:
        """The scratch arrays in a stretch of memory."""
        return [np.ndarray(s.shape, s.dtype, workspace, s.offset) for s in self.placed]


Make: TypeAlias = Callable[[Command], Routine]


def attributes_of(command: Command) -> tuple[Any, ...]:
    """They are of the types that the operator's declaration says."""
    return command.attributes


def _aligned(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def scratch(shape: Sequence[int], dtype: DType) -> Layout:
    return Layout.packed(tuple(shape), dtype)


def in_order(steps: Sequence[Launch]) -> Launch:
    """One launch that does one after the other."""
    if len(steps) == 1:
        return steps[0]

    def launch() -> None:
        for step in steps:
            step()

    return launch


def converting(source: Array, target: Array) -> Launch:
    """Copy elements, to another dtype if need be."""
    return partial(np.copyto, target, source, casting="unsafe")


def prepared(make: Make, *, wide: bool = False) -> Make:
    """Give `make` packed arrays only, so that results do not depend on strides; `wide`: halves as float32.

    What is not so is copied to scratch memory before, or from it after."""

    def made(command: Command) -> Routine:
        given, count = (*command.inputs, *command.outputs), len(command.inputs)
        wanted = [Layout.packed(x.shape, accumulator(x.dtype) if wide else x.dtype) for x in given]
        copied = [i for i, x in enumerate(given) if x.dtype != wanted[i].dtype or not x.contiguous]
        inner = make(command._replace(inputs=tuple(wanted[:count]), outputs=tuple(wanted[count:])))
        if not copied:
            canonical = all([x.strides == w.strides for x, w in zip(given, wanted, strict=True)])
            return inner if canonical else inner._replace(bind=partial(_bind_canonical, inner.bind), fresh=None)
        return Routine(partial(_bind_copies, inner.bind, copied, count, len(given)),
                       (*inner.scratch, *[wanted[i] for i in copied]))

    return made


def _bind_canonical(bind: Callable[..., Launch], *arrays: Array) -> Launch:
    return bind(*map(packed_like, arrays))


def _bind_copies(bind: Callable[..., Launch], copied: Sequence[int], inputs: int, given: int, *arrays: Array) -> Launch:
    """`copied` are the positions, among inputs and outputs, of the arrays that scratch stands in for."""
    split = len(arrays) - len(copied)
    used, before, after = list(arrays[:split]), [], []
    for i, stand_in in zip(copied, arrays[split:], strict=True):
        if i < inputs:
            before.append(converting(arrays[i], stand_in))
        else:
            after.append(converting(stand_in, arrays[i]))
        used[i] = stand_in
    for i in range(given):
        used[i] = packed_like(used[i])
    return in_order([*before, bind(*used), *after])
