"""Plans of decompositions and solutions: where matrices lie meanwhile, and the nests and routines that work on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from nnc_core.base.command import Command
from nnc_core.base.dtype import DType, int32, is_complex, real_of
from nnc_core.base.layout import Layout
from nnc_core.base.loopnest import LoopNest
from nnc_core.operator.loops import broadcast_layout
from nnc_cuda.kernel import NestStep
from nnc_cuda.matrices.determinants import (
    complex_pivots,
    determinants,
    elements_copied,
    first_of_rows,
    halves_multiplied,
    log_determinants,
    rows_added,
    whole_determinants,
)
from nnc_cuda.matrices.lapack import LapackRoutine
from nnc_cuda.matrices.nests import (
    Part,
    copied,
    hermitian,
    identity,
    marked,
    part_of,
    settled,
    turned,
)

ALIGNED = 256
WORD = 4
"""Bytes of a status."""

Scratch: TypeAlias = Callable[[LapackRoutine], int]


class CallStep(NamedTuple):
    """A routine, and where in the workspace its arrays and its status lie, in bytes."""

    routine: LapackRoutine
    arrays: tuple[int, ...]
    status: int


class MatrixPlan(NamedTuple):
    steps: tuple[NestStep | CallStep, ...]
    statuses: int
    """Words at the beginning of the workspace that are 0 where all is well."""
    exchanges: tuple[int, ...]
    """The shape of the exchanges of rows behind them that make an order of rows; empty if none is asked for."""
    scratch: int
    """Where in the workspace the memory of routines begins."""
    workspace: int
    """Bytes in all."""


class PlanWriter:
    """Writes the plan of a command."""

    def __init__(self, command: Command, scratch: Scratch, words: int) -> None:
        """`words`: statuses and exchanges that there are room for."""
        self.command, self.scratch = command, scratch
        self.steps: list[NestStep | CallStep] = []
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

    def call(self, routine: LapackRoutine, *arrays: int) -> None:
        self._most = max(self._most, self.scratch(routine))
        self.steps.append(CallStep(routine, arrays, self._statuses * WORD))
        self._statuses += routine.name != "trsm"

    def plan(self, exchanges: Sequence[int] = ()) -> MatrixPlan:
        assert self._statuses + prod(exchanges) * bool(exchanges) == self._words, self.command
        return MatrixPlan(tuple(self.steps), self._statuses, tuple(exchanges), self._used,
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


# ---- plans of operators
def cholesky(command: Command, scratch: Scratch) -> MatrixPlan:
    [a], out = command.inputs, command.output
    to = PlanWriter(command, scratch, 2 * times(a))
    w = to.columns(a.shape, a.dtype)
    to.mark(0)
    to.nest(hermitian(a, w), 0, -1)
    for at in each(w):
        to.call(LapackRoutine("potrf", a.dtype, a.shape[-1], a.shape[-1]), at)
    to.nest(copied(w, out, "lower"), -1, to.output(0))
    return to.plan()


def qr(command: Command, scratch: Scratch) -> MatrixPlan:
    [a], (q, r) = command.inputs, command.outputs
    (*batch, m, n), k = a.shape, min(a.shape[-2:])
    to = PlanWriter(command, scratch, 3 * times(a))
    w, factors = to.columns(a.shape, a.dtype), to.array((*batch, k), a.dtype)
    to.mark(0)
    to.nest(copied(a, w), 0, -1)
    for at, t in zip(each(w), each_row(factors), strict=True):
        to.call(LapackRoutine("geqrf", a.dtype, m, n), at, t)
    to.nest(copied(part_of(w, k, n), r, "upper"), -1, to.output(1))
    for at, t in zip(each(w), each_row(factors), strict=True):
        to.call(LapackRoutine("orgqr", a.dtype, m, k), at, t)
    to.nest(copied(part_of(w, m, k), q), -1, to.output(0))
    return to.plan()


def lu(command: Command, scratch: Scratch) -> MatrixPlan:
    [a], factors = command.inputs, command.outputs[0]
    (*_, m, n), k = a.shape, min(a.shape[-2:])
    kept = (*a.shape[:-2], k)
    words = 2 * times(a) + prod(kept)
    to = PlanWriter(command, scratch, words)
    w = to.columns(a.shape, a.dtype)
    to.mark(0)
    to.nest(copied(a, w), 0, -1)
    exchanges = (words - prod(kept)) * WORD
    for number, at in enumerate(each(w)):
        to.call(LapackRoutine("getrf", a.dtype, m, n), at, exchanges + number * k * WORD)
    to.nest(copied(w, factors), -1, to.output(0))
    return to.plan(kept)


def solve(command: Command, scratch: Scratch) -> MatrixPlan:
    (a, b), out = command.inputs, command.output
    to = PlanWriter(command, scratch, 2 * times(a) + times(b) + times(out))
    to.mark(0)
    to.mark(1)
    x = to.columns(out.shape, out.dtype)
    to.nest(copied(b, x), 1, -1)
    _solved(to, a, x, out)
    return to.plan()


def inv(command: Command, scratch: Scratch) -> MatrixPlan:
    [a], out = command.inputs, command.output
    to = PlanWriter(command, scratch, 3 * times(a))
    to.mark(0)
    x = to.columns(out.shape, out.dtype)
    to.nest(identity(x), -1)
    _solved(to, a, x, out)
    return to.plan()


def _solved(to: PlanWriter, a: Layout, x: Layout, out: Layout) -> None:
    """Let x of the workspace become the solution."""
    n, columns = x.shape[-2:]
    w, exchanges = _factored(to, a)
    for number, at in zip(_repeated(a, out), each(x), strict=True):
        to.call(LapackRoutine("getrs", a.dtype, n, columns), each(w)[number], each_row(exchanges)[number], at)
    to.nest(copied(x, out), -1, to.output(0))


def determinants_of(command: Command, scratch: Scratch) -> MatrixPlan:
    """Determinants, or signs and logarithms of them."""
    [a], outputs = command.inputs, command.outputs
    to = PlanWriter(command, scratch, 2 * times(a))
    to.mark(0)
    w, exchanges = _factored(to, a)
    if is_complex(a.dtype):
        _complex_determinants(to, w, exchanges)
        return to.plan()
    nest = determinants(w, exchanges, *outputs) if len(outputs) == 1 else log_determinants(w, exchanges, *outputs)
    to.nest(nest, -1, -1, *map(to.output, range(len(outputs))))
    return to.plan()


def _complex_determinants(to: PlanWriter, w: Layout, exchanges: Layout) -> None:
    outputs, real = to.command.outputs, real_of(w.dtype)
    signs, logs = to.array(w.shape[:-1], w.dtype), to.array(w.shape[:-1], real)
    to.nest(complex_pivots(w, exchanges, signs, logs), -1, -1, -1, -1)
    for nest in halves_multiplied(signs):
        to.nest(nest, -1, -1, -1)
    sign = first_of_rows(signs)
    if len(outputs) > 1:
        to.nest(elements_copied(sign, outputs[0]), -1, to.output(0))
        to.nest(rows_added(logs, outputs[1]), -1, to.output(1))
        return
    total = to.array(w.shape[:-2], real)
    to.nest(rows_added(logs, total), -1, -1)
    to.nest(whole_determinants(sign, total, outputs[0]), -1, -1, to.output(0))


def _factored(to: PlanWriter, a: Layout) -> tuple[Layout, Layout]:
    """The triangular factors of square matrices, and the exchanges of rows before them, in the workspace."""
    n = a.shape[-1]
    w, exchanges = to.columns(a.shape, a.dtype), to.array(a.shape[:-1], int32)
    to.nest(copied(a, w), 0, -1)
    for at, order in zip(each(w), each_row(exchanges), strict=True):
        to.call(LapackRoutine("getrf", a.dtype, n, n), at, order)
    return w, exchanges


def solve_triangular(command: Command, scratch: Scratch) -> MatrixPlan:
    (a, b), out, (lower, unit) = command.inputs, command.output, command.attributes
    to = PlanWriter(command, scratch, times(a) + times(b))
    side = "lower" if lower else "upper"
    part: Any = f"strictly {side}" if unit else side
    to.mark(0, part, singular=not unit)
    to.mark(1)
    w, x = to.columns(a.shape, a.dtype), to.columns(out.shape, out.dtype)
    to.nest(copied(a, w), 0, -1)
    to.nest(copied(b, x), 1, -1)
    for number, at in zip(_repeated(a, out), each(x), strict=True):
        routine = LapackRoutine("trsm", a.dtype, out.shape[-2], out.shape[-1], lower=bool(lower), unit=bool(unit))
        to.call(routine, each(w)[number], at)
    to.nest(copied(x, out), -1, to.output(0))
    return to.plan()


def _repeated(a: Layout, out: Layout) -> list[int]:
    """For each matrix of the result the number of the matrix of a that it belongs to."""
    batch = a.shape[:-2]
    numbers = np.broadcast_to(np.arange(prod(batch)).reshape(batch), out.shape[:-2])
    return [int(n) for n in numbers.reshape(-1)]


def eigh(command: Command, scratch: Scratch) -> MatrixPlan:
    """With vectors, and without."""
    [a], outputs = command.inputs, command.outputs
    to = PlanWriter(command, scratch, 2 * times(a))
    w, values = to.columns(a.shape, a.dtype), to.array(a.shape[:-1], real_of(a.dtype))
    to.mark(0)
    to.nest(hermitian(a, w), 0, -1)
    for at, v in zip(each(w), each_row(values), strict=True):
        to.call(LapackRoutine("syevd", a.dtype, a.shape[-1], a.shape[-1], vectors=len(outputs) > 1), at, v)
    to.nest(_rows_copied(values, outputs[0]), -1, to.output(0))
    if len(outputs) > 1:
        if is_complex(a.dtype):
            to.nest(settled(w, w, outputs[1], rows=False), -1, -1, to.output(1))
        else:
            to.nest(copied(w, outputs[1]), -1, to.output(1))
    return to.plan()


def svd(command: Command, scratch: Scratch) -> MatrixPlan:
    """With vectors, and without.  The routine takes no fewer rows than columns: of others, aᵀ = V̄ S Uᵀ."""
    [a], outputs = command.inputs, command.outputs
    (*batch, m, n), vectors = a.shape, len(outputs) > 1
    wide = m < n
    rows, k = max(m, n), min(m, n)
    to = PlanWriter(command, scratch, 2 * times(a))
    w, values = to.columns((*batch, rows, k), a.dtype), to.array((*batch, k), real_of(a.dtype))
    tall, square = [to.columns((*batch, side, k), a.dtype) if vectors else w for side in (rows, k)]
    to.mark(0)
    to.nest(copied(turned(a) if wide else a, w), 0, -1)
    for at, v, u, vh in zip(each(w), each_row(values), each(tall), each(square), strict=True):
        to.call(LapackRoutine("gesvd", a.dtype, rows, k, vectors=vectors), at, v, u, vh)
    to.nest(_rows_copied(values, outputs[1] if vectors else outputs[0]), -1, to.output(1 if vectors else 0))
    if vectors:
        _vectors_given(to, *((turned(square), turned(tall)) if wide else (tall, square)))
    return to.plan()


def _vectors_given(to: PlanWriter, u: Layout, vh: Layout) -> None:
    """Singular vectors as they are in the workspace to where they belong; complex ones with their phases settled."""
    left, _, right = to.command.outputs
    if is_complex(u.dtype):
        to.nest(settled(u, u, left, rows=False), -1, -1, to.output(0))
        to.nest(settled(u, vh, right, rows=True), -1, -1, to.output(2))
    else:
        to.nest(copied(u, left), -1, to.output(0))
        to.nest(copied(vh, right), -1, to.output(2))


def _rows_copied(x: Layout, y: Layout) -> LoopNest:
    """Arrays of numbers copied."""
    one_more = [layout._replace(shape=(*layout.shape, 1), strides=(*layout.strides, 0)) for layout in (x, y)]
    return copied(broadcast_layout(one_more[0], one_more[1].shape), one_more[1])


PLANS: dict[str, Callable[[Command, Scratch], MatrixPlan]] = {
    "cholesky": cholesky, "qr": qr, "lu": lu, "solve": solve, "inv": inv, "solve_triangular": solve_triangular,
    "det": determinants_of, "slogdet": determinants_of, "eigh": eigh, "eigvalsh": eigh, "svd": svd, "svdvals": svd}
