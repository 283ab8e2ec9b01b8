"""Plans of decompositions and solutions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from nnc_core.base.command import Command
from nnc_core.base.dtype import int32, is_complex, real_of
from nnc_core.base.layout import Layout
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
from nnc_cuda.matrices.nests import copied, hermitian, identity, part_of, reflected
from nnc_cuda.matrices.spectra import eig, eigh, svd
from nnc_cuda.matrices.writing import WORD, MatrixPlan, PlanWriter, Scratch, each, each_row, rows_copied, times


def cholesky(command: Command, scratch: Scratch) -> MatrixPlan:
    [a], out = command.inputs, command.output
    to = PlanWriter(command, scratch, 2 * times(a))
    w = to.columns(a.shape, a.dtype)
    to.mark(0)
    to.nest(hermitian(a, w), 0, -1)
    to.calls(LapackRoutine("potrf", a.dtype, a.shape[-1], a.shape[-1]), each(w))
    to.nest(copied(w, out, "lower"), -1, to.output(0))
    return to.plan()


def qr(command: Command, scratch: Scratch) -> MatrixPlan:
    [a], (q, r) = command.inputs, command.outputs
    (*batch, m, n), k = a.shape, min(a.shape[-2:])
    to = PlanWriter(command, scratch, 3 * times(a))
    w, factors = to.columns(a.shape, a.dtype), to.array((*batch, k), a.dtype)
    to.mark(0)
    to.nest(copied(a, w), 0, -1)
    to.calls(LapackRoutine("geqrf", a.dtype, m, n), each(w), each_row(factors))
    to.nest(copied(part_of(w, k, n), r, "upper"), -1, to.output(1))
    if to.stacked:
        return _with_reflections(to, part_of(w, m, k), factors, q)
    to.calls(LapackRoutine("orgqr", a.dtype, m, k), each(w), each_row(factors))
    to.nest(copied(part_of(w, m, k), q), -1, to.output(0))
    return to.plan()


def _with_reflections(to: PlanWriter, w: Layout, factors: Layout, q: Layout) -> MatrixPlan:
    """Q, which no routine makes of the reflections of many matrices."""
    own = to.columns(w.shape, w.dtype)
    to.nest(identity(own), -1)
    for number in reversed(range(w.shape[-1])):
        to.nest(reflected(w, factors, own, number), -1, -1, -1, -1)
    to.nest(copied(own, q), -1, to.output(0))
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
    to.calls(LapackRoutine("getrf", a.dtype, m, n), each(w),
             [exchanges + number * k * WORD for number in range(times(a))])
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
    if to.stacked and times(a) != times(out):  # the routine reads those of the next matrix behind
        few, exchanges = exchanges, to.array((*out.shape[:-2], n), int32)
        to.nest(rows_copied(few, exchanges), -1, -1)
        orders = each_row(exchanges)
    else:
        orders = _repeated(each_row(exchanges), a, out)
    to.calls(LapackRoutine("getrs", a.dtype, n, columns), _repeated(each(w), a, out), orders, each(x))
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
    to.calls(LapackRoutine("getrf", a.dtype, n, n), each(w), each_row(exchanges))
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
    routine = LapackRoutine("trsm", a.dtype, out.shape[-2], out.shape[-1], lower=bool(lower), unit=bool(unit))
    to.calls(routine, _repeated(each(w), a, out), each(x))
    to.nest(copied(x, out), -1, to.output(0))
    return to.plan()


def _repeated(places: Sequence[int], a: Layout, out: Layout) -> list[int]:
    """For each matrix of the result the place of what belongs to a matrix of a."""
    whole = np.broadcast_to(np.reshape(places, a.shape[:-2]), out.shape[:-2])
    return [int(place) for place in whole.reshape(-1)]


PLANS: dict[str, Callable[[Command, Scratch], MatrixPlan]] = {
    "cholesky": cholesky, "qr": qr, "lu": lu, "solve": solve, "inv": inv, "solve_triangular": solve_triangular,
    "det": determinants_of, "slogdet": determinants_of, "eigh": eigh, "eigvalsh": eigh, "svd": svd, "svdvals": svd,
    "eig": eig, "eigvals": eig}
