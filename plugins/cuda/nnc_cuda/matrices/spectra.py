"""Plans of eigenvalues and singular values."""

from __future__ import annotations

from nnc_core.base.command import Command
from nnc_core.base.dtype import complex_of, is_complex, real_of
from nnc_core.base.layout import Layout
from nnc_cuda.matrices.lapack import LapackRoutine
from nnc_cuda.matrices.nests import adjoint, copied, hermitian, paired, part_of, settled, turned
from nnc_cuda.matrices.writing import MatrixPlan, PlanWriter, Scratch, each, each_row, rows_copied, times


def eigh(command: Command, scratch: Scratch) -> MatrixPlan:
    """With vectors, and without."""
    [a], outputs = command.inputs, command.outputs
    to = PlanWriter(command, scratch, 2 * times(a))
    w, values = to.columns(a.shape, a.dtype), to.array(a.shape[:-1], real_of(a.dtype))
    to.mark(0)
    to.nest(hermitian(a, w), 0, -1)
    routine = LapackRoutine("syevd", a.dtype, a.shape[-1], a.shape[-1], vectors=len(outputs) > 1)
    to.calls(routine, each(w), each_row(values))
    to.nest(rows_copied(values, outputs[0]), -1, to.output(0))
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
    sides = ((rows, rows if to.stacked else k), (k, k))
    tall, square = [to.columns((*batch, *side), a.dtype) if vectors else w for side in sides]
    to.mark(0)
    to.nest(copied(turned(a) if wide else a, w), 0, -1)
    to.calls(LapackRoutine("gesvd", a.dtype, rows, k, vectors=vectors), each(w), each_row(values), each(tall),
             each(square))
    if vectors and to.stacked:  # all columns of U, and V in place of its adjoint
        tall, v, square = part_of(tall, rows, k), square, to.columns((*batch, k, k), a.dtype)
        to.nest(adjoint(v, square), -1, -1)
    to.nest(rows_copied(values, outputs[1] if vectors else outputs[0]), -1, to.output(1 if vectors else 0))
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


def eig(command: Command, scratch: Scratch) -> MatrixPlan:
    """General matrices, with vectors and without; those of real ones come in pairs of real columns."""
    [a], outputs = command.inputs, command.outputs
    vectors = len(outputs) > 1
    to = PlanWriter(command, scratch, 2 * times(a))
    w, values = to.columns(a.shape, a.dtype), to.array(a.shape[:-1], complex_of(a.dtype))
    found = to.columns(a.shape, a.dtype) if vectors else w
    to.mark(0)
    to.nest(copied(a, w), 0, -1)
    routine = LapackRoutine("geev", a.dtype, a.shape[-1], a.shape[-1], vectors=vectors)
    to.calls(routine, each(w), each_row(values), each(found))
    to.nest(rows_copied(values, outputs[0]), -1, to.output(0))
    if vectors:
        if not is_complex(a.dtype):
            real, found = found, to.columns(a.shape, values.dtype)
            to.nest(paired(values, real, found), -1, -1, -1)
        to.nest(settled(found, found, outputs[1], rows=False), -1, -1, to.output(1))
    return to.plan()
