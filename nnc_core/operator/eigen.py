"""Eigenvalues and triangular forms of general matrices: stacks along leading axes, by LAPACK on the host.

Derivatives are those of simple eigenvalues, as in Magnus, "On differentiating eigenvalues and eigenvectors" (1985); the
vectors have length 1 and the phase of `operator/phases.py`.  Equal eigenvalues have none: NaN or infinities, or
LinAlgError where there are fewer vectors than rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic

from nnc_core.base.dtype import is_complex
from nnc_core.operator import equations_reference as by_scipy
from nnc_core.operator import linalg_reference as by_numpy
from nnc_core.operator.declare import ALL_INPUTS, Base, V, op
from nnc_core.operator.decompositions import gaps
from nnc_core.operator.flops import cubic
from nnc_core.operator.matrices import added, by_row, diagonal, diagonal_matrix, h, hn, imaginary, mm, off_diagonal
from nnc_core.operator.phases import overlaps, turning, turning_back
from nnc_core.shape import linalg as rule

if TYPE_CHECKING:
    from nnc_core.operator import Namespace


def _back(F: Namespace[V], g: V, a: V) -> V:
    """The cotangent of a real matrix is real."""
    return g if is_complex(a.dtype) else F.real(g)


def _in_vectors(F: Namespace[V], v: V, da: V) -> V:
    """V⁻¹ da V"""
    return F.solve(v, mm(F, F.cast(da, dtype=v.dtype), v))


def _eig_vjp(F: Namespace[V], g: Any, y: Any, a: Any) -> Any:
    (w, v), (gw, gv) = F.picks(y), g
    middle = None if gw is None else diagonal_matrix(F, gw)
    if gv is not None:
        along = overlaps(F, v, gv)
        gv = F.subtract(gv, F.multiply(v, F.real(along)))
        gv = F.add(gv, turning_back(F, v, F.imag(along)))
        middle = added(F, middle, off_diagonal(F, F.divide(hn(F, v, gv), F.conj(gaps(F, v, w)))))
    return (_back(F, F.solve(h(F, v), mm(F, middle, h(F, v))), a),)


def _eig_jvp(F: Namespace[V], tangents: Any, y: V, a: V) -> tuple[V | None, ...]:
    w, v = F.picks(y)
    turned = _in_vectors(F, v, tangents[0])
    dv = mm(F, v, off_diagonal(F, F.divide(turned, gaps(F, v, w))))
    dv = F.subtract(dv, F.multiply(v, F.real(overlaps(F, v, dv))))
    return diagonal(F, turned), F.add(dv, F.multiply(v, imaginary(F, turning(F, v, dv))))


def _eigvals_vjp(F: Namespace[V], g: V, y: V, a: V) -> tuple[V | None, ...]:
    v = h(F, F.pick(F.eig(a), index=1))
    return (_back(F, F.solve(v, F.multiply(by_row(F, g), v)), a),)


def _eigvals_jvp(F: Namespace[V], tangents: Any, y: V, a: V) -> Any:
    return diagonal(F, _in_vectors(F, F.pick(F.eig(a), index=1), tangents[0]))


class Eigen(Base[V], Generic[V]):
    @op(infer=rule.eig, reference=by_numpy.eig, fallible=True, promote=ALL_INPUTS, to_float=True, vjp=_eig_vjp,
        jvp=_eig_jvp, flops=cubic(25))
    def eig(self, a: V) -> V:
        """Complex eigenvalues, in no order, and eigenvectors in columns, of length 1, whose largest components are
        positive."""
        ...

    @op(infer=rule.complex_eigenvalues, reference=by_numpy.eigvals, fallible=True, promote=ALL_INPUTS, to_float=True,
        vjp=_eigvals_vjp, jvp=_eigvals_jvp, flops=cubic(10))
    def eigvals(self, a: V) -> V:
        """Complex eigenvalues, in no order."""
        ...

    @op(infer=rule.schur, reference=by_scipy.schur, fallible=True, promote=ALL_INPUTS, to_float=True, flops=cubic(25))
    def schur(self, a: V, *, output: str = "real") -> V:
        """T and unitary Z with Z T Zᴴ = a: T is upper triangular, of real matrices with blocks of two by two for pairs
        of eigenvalues, unless the output is "complex".  No derivative."""
        ...

    @op(infer=rule.hessenberg, reference=by_scipy.hessenberg, fallible=True, promote=ALL_INPUTS, to_float=True,
        flops=cubic(14 / 3))
    def hessenberg(self, a: V) -> V:
        """H, zero below its first subdiagonal, and unitary Q with Q H Qᴴ = a.  No derivative."""
        ...
