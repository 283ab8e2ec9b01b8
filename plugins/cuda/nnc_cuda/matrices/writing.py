"""Writing plans of decompositions and solutions: where matrices lie meanwhile, and the nests and routines that work on
them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import NamedTuple, TypeAlias

from nnc_core.base.command import Command
from nnc_core.base.dtype import DType, int32
from nnc_core.base.layout import Layout
from nnc_core.base.loopnest import LoopNest
from nnc_core.operator.loops import broadcast_layout
from nnc_cuda.kernel import NestStep
from nnc_cuda.matrices.lapack import LapackRoutine
from nnc_cuda.matrices.nests import Part, copied, marked, turned
from nnc_cuda.matrices.stacks import POINTED, WITHOUT_STATUS, in_one_call

ALIGNED = 256
WORD = 4
"""Bytes of a status."""

Scratch: TypeAlias = Callable[[LapackRoutine], int]


class TablePlace(NamedTuple):
    """Addresses in a row: those of a plan's table from a number on."""

    first: int


class CallStep(NamedTuple):
    """A routine, and where in the workspace its arrays and its status lie, in bytes."""

    routine: LapackRoutine
    arrays: tuple[int | TablePlace, ...]
    status: int


class MatrixPlan(NamedTuple):
    steps: tuple[NestStep | CallStep, ...]
    statuses: int
    """Words at the beginning of the workspace that are 0 where all is well."""
    exchanges: tuple[int, ...]
    """The shape of the exchanges of rows behind them that make an order of rows; empty if none is asked for."""
    table: tuple[int, ...]
    """Places in the workspace whose addresses routines read from the device's memory."""
    scratch: int
    """Where in the workspace the memory of routines begins."""
    workspace: int
    """Bytes in all."""


class PlanWriter:
    """Writes the plan of a command."""

    def __init__(self, command: Command, scratch: Scratch, words: int) -> None:
        """`words`: statuses and exchanges that there are room for."""
        self.command, self.scratch, self.stacked = command, scratch, in_one_call(command)
        self.steps: list[NestStep | CallStep] = []
        self._table: list[int] = []
        self.place = len(command.inputs) + len(command.outputs)
        """The number of the workspace."""
        self._words, self._statuses, self._most = words, 0, 0
        self._used = _aligned(words * WORD)

    def array(self, shape: Sequence[int], dtype: DType) -> Layout:
        """Room for an array, packed."""
        made = Layout.packed(tuple(shape), dtype, self._used)
        self._used = _aligned(self._used + made.nbytes)
        return made

    def columns(self, shape: Sequence[int], dtype: DType) -> Layout:
        """Room for matrices, each lying column by column."""
        *batch, m, n = shape
        return turned(self.array((*batch, n, m), dtype))

    def nest(self, nest: LoopNest, *buffers: int) -> None:
        self.steps.append(NestStep(nest, tuple([n % (self.place + 1) for n in buffers])))

    def output(self, number: int) -> int:
        return len(self.command.inputs) + number

    def mark(self, number: int, part: Part = "whole", singular: bool = False) -> None:
        """Look at the matrices of an input."""
        x = self.command.inputs[number]
        marks = Layout.packed(x.shape[:-2], int32, self._statuses * WORD)
        self._statuses += marks.size
        self.nest(marked(x, marks, part, singular), number, self.place)

    def calls(self, routine: LapackRoutine, *arrays: Sequence[int]) -> None:
        """Call a routine for each matrix of a stack, whose arrays lie at these places, or once for all of them."""
        if not self.stacked:
            for each_array in zip(*arrays, strict=True):
                self._call(routine, each_array, 1)
            return
        places = [TablePlace(self._in_table(some)) if n in POINTED.get(routine.name, ()) else some[0]
                  for n, some in enumerate(arrays)]
        self._call(routine._replace(times=len(arrays[0])), places, len(arrays[0]))

    def _in_table(self, places: Sequence[int]) -> int:
        self._table += places
        return len(self._table) - len(places)

    def _call(self, routine: LapackRoutine, arrays: Sequence[int | TablePlace], statuses: int) -> None:
        self._most = max(self._most, self.scratch(routine))
        self.steps.append(CallStep(routine, tuple(arrays), self._statuses * WORD))
        self._statuses += 0 if routine.name in WITHOUT_STATUS[routine.times > 0] else statuses

    def plan(self, exchanges: Sequence[int] = ()) -> MatrixPlan:
        left = self._words - self._statuses
        assert left == prod(exchanges) if exchanges else left >= 0, self.command
        return MatrixPlan(tuple(self.steps), self._statuses, tuple(exchanges), tuple(self._table), self._used,
                          self._used + _aligned(self._most))


def _aligned(nbytes: int) -> int:
    return -(-nbytes // ALIGNED) * ALIGNED


def times(x: Layout) -> int:
    """The matrices of a stack."""
    return prod(x.shape[:-2])


def each(x: Layout) -> list[int]:
    """The places in the workspace at which the matrices of a stack begin."""
    return [x.offset + n * prod(x.shape[-2:]) * x.dtype.itemsize for n in range(times(x))]


def each_row(x: Layout) -> list[int]:
    """The same of the rows of an array."""
    return [x.offset + n * x.shape[-1] * x.dtype.itemsize for n in range(prod(x.shape[:-1]))]


def rows_copied(x: Layout, y: Layout) -> LoopNest:
    """Arrays of numbers copied."""
    one_more = [layout._replace(shape=(*layout.shape, 1), strides=(*layout.strides, 0)) for layout in (x, y)]
    return copied(broadcast_layout(one_more[0], one_more[1].shape), one_more[1])
