"""Linear systems, inverses, determinants: stacks of matrices along leading axes, of floats or complex
numbers.

LAPACK does them on the host, through NumPy; a device that has no kernel of its own says so once.  A singular matrix is
a LinAlgError.  Derivatives are those of Giles, "An extended collection of matrix derivative results for forward and
reverse mode algorithmic differentiation" (2008), of pseudoinverses those of Golub and Pereyra (1973).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from nnc_core.base.dtype import int64, is_complex
from nnc_core.operator import linalg_reference as by_numpy
from nnc_core.operator.declare import ALL_INPUTS, Base, V, op
from nnc_core.operator.flops import cubic, solving
from nnc_core.operator.matrices import (
    added,
    by_column,
    by_row,
    h,
    hn,
    imaginary,
    inner,
    lower,
    mm,
    nh,
    off_diagonal,
    t,
    trace,
    upper,
)
from nnc_core.shape import linalg as rule

if TYPE_CHECKING:
    from nnc_core.operator import Namespace


def _to(F: Namespace[V], g: V, x: V) -> V:
    """A cotangent with the broadcast along leading axes undone."""
    return F.sum_to(g, x.shape)


def _solve_vjp(F: Namespace[V], g: V, y: V, a: V, b: V) -> tuple[V | None, ...]:
    gb = F.solve(h(F, a), g)
    return _to(F, F.negative(nh(F, gb, y)), a), _to(F, gb, b)


def _solve_jvp(F: Namespace[V], tangents: Any, y: Any, a: Any, b: Any) -> Any:
    da, db = tangents
    return F.solve(a, added(F, db, None if da is None else F.negative(mm(F, da, y))))


def _triangle(F: Namespace[V], x: V, is_lower: bool, unit_diagonal: bool) -> V:
    """The part of a matrix that a triangular solver reads."""
    kept = lower(F, x) if is_lower else upper(F, x)
    return off_diagonal(F, kept) if unit_diagonal else kept


def _triangular_vjp(F: Namespace[V], g: V, y: V, a: V, b: V, is_lower: bool,
                    unit_diagonal: bool) -> tuple[V | None, ...]:
    gb = F.solve_triangular(h(F, a), g, lower=not is_lower, unit_diagonal=unit_diagonal)
    ga = F.negative(_triangle(F, nh(F, gb, y), is_lower, unit_diagonal))
    return _to(F, ga, a), _to(F, gb, b)


def _triangular_jvp(F: Namespace[V], tangents: Any, y: Any, a: Any, b: Any, is_lower: bool, unit_diagonal: bool) -> Any:
    da, db = tangents
    moved = None if da is None else F.negative(mm(F, _triangle(F, da, is_lower, unit_diagonal), y))
    return F.solve_triangular(a, added(F, db, moved), lower=is_lower, unit_diagonal=unit_diagonal)


def _cofactor_vjp(F: Namespace[V], g: V, y: V, a: V) -> tuple[V | None, ...]:
    """The derivative det(a) a⁻ᵀ, where a has an inverse."""
    back = h(F, F.inv(a))
    return (F.subtract(F.multiply(inner(F, y, g), back), mm(F, F.conjugate(y), t(F, g), back)),)


def _cofactor_jvp(F: Namespace[V], tangents: Any, y: V, a: V) -> V:
    (da,), back = tangents, F.inv(a)
    moved = mm(F, t(F, back), t(F, da), y)
    return F.subtract(F.multiply(trace(F, mm(F, back, da)), y), moved)


def _det_vjp(F: Namespace[V], g: V, y: V, a: V) -> tuple[V | None, ...]:
    return (F.multiply(by_row(F, by_row(F, g)), F.conjugate(F.cofactor(a))),)


def _det_jvp(F: Namespace[V], tangents: Any, y: V, a: V) -> V:
    return F.sum(F.multiply(F.cofactor(a), tangents[0]), axis=(a.ndim - 2, a.ndim - 1))


def _slogdet_vjp(F: Namespace[V], g: Any, y: V, a: V) -> tuple[V | None, ...]:
    """The sign of a real matrix is constant; that of a complex one turns."""
    by_sign, g = g
    if is_complex(a.dtype) and by_sign is not None:
        turn = F.imag(F.multiply(F.conj(F.pick(y, index=0)), by_sign))
        g = F.complex_(F.zeros_like(turn) if g is None else g, turn)
    return (None if g is None else F.multiply(by_row(F, by_row(F, g)), h(F, F.inv(a))),)


def _slogdet_jvp(F: Namespace[V], tangents: Any, y: V, a: V) -> tuple[V | None, ...]:
    moved = F.sum(F.multiply(t(F, F.inv(a)), tangents[0]), axis=(a.ndim - 2, a.ndim - 1))
    if not is_complex(a.dtype):
        return None, moved
    return F.multiply(F.pick(y, index=0), imaginary(F, F.imag(moved))), F.real(moved)


def _pinv_jvp(F: Namespace[V], tangents: Any, p: V, a: V, rtol: float | None) -> V:
    da = tangents[0]
    dah, gram, other = h(F, da), nh(F, p, p), hn(F, p, p)
    left, right = mm(F, gram, dah), mm(F, dah, other)
    first = F.subtract(left, mm(F, left, a, p))
    second = F.subtract(right, mm(F, p, mm(F, a, right)))
    return F.subtract(F.add(first, second), mm(F, p, da, p))


def _pinv_vjp(F: Namespace[V], g: V, p: V, a: V, rtol: float | None) -> tuple[V | None, ...]:
    gh, ph = h(F, g), h(F, p)
    left, right = mm(F, gh, p, ph), mm(F, ph, p, gh)
    first = F.subtract(left, mm(F, a, mm(F, p, left)))
    second = F.subtract(right, mm(F, right, p, a))
    return (F.subtract(F.add(first, second), mm(F, ph, g, ph)),)


def _lstsq_jvp(F: Namespace[V], tangents: Any, x: V, a: V, b: V, rtol: float | None) -> Any:
    da, db = tangents
    p = F.pinv(a, rtol=rtol)
    if da is None:
        return mm(F, p, db)
    dah, rest = h(F, da), F.subtract(b, mm(F, a, x))
    along = mm(F, p, added(F, db, F.negative(mm(F, da, x))))
    across = mm(F, dah, hn(F, p, x))
    return added(F, along, across, F.negative(mm(F, p, mm(F, a, across))), mm(F, p, hn(F, p, mm(F, dah, rest))))


def _lstsq_vjp(F: Namespace[V], g: V, x: V, a: V, b: V, rtol: float | None) -> tuple[V | None, ...]:
    p = F.pinv(a, rtol=rtol)
    gb, rest = hn(F, p, g), F.subtract(b, mm(F, a, x))
    across = F.subtract(g, mm(F, p, mm(F, a, g)))
    ga = F.subtract(F.add(nh(F, hn(F, p, x), across), nh(F, rest, mm(F, p, gb))), nh(F, gb, x))
    return _to(F, ga, a), _to(F, gb, b)


def _counts(F: Namespace[V], a: V, s: V, rtol: float | None) -> V:
    """Marks of the singular values that are no rounding errors."""
    relative = max(a.shape[-2:]) * float(np.finfo(a.dtype).eps) if rtol is None else rtol
    return F.greater(s, F.multiply(F.max(s, axis=(s.ndim - 1,), keepdims=True), relative))


def rank_by(F: Namespace[V], a: V, s: V, rtol: float | None) -> V:
    """int64: how many of the singular values s of a count."""
    if s.shape[-1] == 0:
        return F.full(shape=s.shape[:-1], value=0, dtype=int64)
    return F.sum(F.cast(_counts(F, a, s, rtol), dtype=int64), axis=(s.ndim - 1,))


def _kept(F: Namespace[V], a: V, rtol: float | None) -> tuple[V, V, V]:
    """U, reciprocals of the singular values that count (zero for the others), Vᴴ."""
    u, s, vh = F.picks(F.svd(a, full_matrices=False))
    if s.shape[-1] == 0:
        return u, s, vh
    counts = _counts(F, a, s, rtol)
    return u, F.where(counts, F.divide(1.0, F.where(counts, s, 1)), 0), vh


class Solvers(Base[V], Generic[V]):
    @op(infer=rule.square, reference=by_numpy.inv, fallible=True, promote=ALL_INPUTS, to_float=True,
        vjp=lambda F, g, y, a: (F.negative(mm(F, h(F, y), nh(F, g, y))),),
        jvp=lambda F, tangents, y, a: F.negative(mm(F, y, tangents[0], y)), flops=cubic(2))
    def inv(self, a: V) -> V:
        """Inverses of square matrices."""
        ...

    @op(infer=rule.solve, reference=by_numpy.solve, fallible=True, promote=ALL_INPUTS, to_float=True, vjp=_solve_vjp,
        jvp=_solve_jvp, flops=solving(2 / 3, 2))
    def solve(self, a: V, b: V) -> V:
        """X of a X = b; leading axes are broadcast."""
        ...

    @op(infer=rule.solve_triangular, reference=by_numpy.solve_triangular, fallible=True, promote=ALL_INPUTS,
        to_float=True,
        vjp=_triangular_vjp, jvp=_triangular_jvp, flops=solving(0, 1))
    def solve_triangular(self, a: V, b: V, *, lower: bool, unit_diagonal: bool = False) -> V:
        """X of a X = b, where of a one triangle is read; with `unit_diagonal` its diagonal is taken for ones."""
        ...

    @op(infer=rule.scalar_of, reference=by_numpy.det, fallible=True, promote=ALL_INPUTS, to_float=True, vjp=_det_vjp,
        jvp=_det_jvp, flops=cubic(2 / 3))
    def det(self, a: V) -> V:
        """Determinants of square matrices; of singular matrices too they have a gradient, which has a second
        derivative where there is an inverse."""
        ...

    @op(infer=rule.square, reference=by_numpy.cofactor, fallible=True, promote=ALL_INPUTS, to_float=True,
        vjp=_cofactor_vjp,
        jvp=_cofactor_jvp, flops=cubic(24))
    def cofactor(self, a: V) -> V:
        """Matrices of cofactors, the derivatives of determinants."""
        ...

    @op(infer=rule.slogdet, reference=by_numpy.slogdet, fallible=True, promote=ALL_INPUTS, to_float=True,
        vjp=_slogdet_vjp,
        jvp=_slogdet_jvp, flops=cubic(2 / 3))
    def slogdet(self, a: V) -> V:
        """Signs of determinants, numbers of magnitude 1 if they are complex, and logarithms of their magnitudes; 0 and
        -inf of singular matrices."""
        ...

    @op(composite=True, infer=rule.pinv, promote=ALL_INPUTS, to_float=True, vjp=_pinv_vjp, jvp=_pinv_jvp)
    def pinv(self, a: V, *, rtol: float | None = None) -> V:
        """Pseudoinverses (Moore and Penrose); singular values up to rtol times the largest count as zero, without one
        up to the larger side times the dtype's epsilon.  Derivatives are those at constant rank."""
        F: Any = self
        u, reciprocals, vh = _kept(F, a, rtol)
        return nh(F, F.multiply(h(F, vh), by_column(F, reciprocals)), u)  # type: ignore[no-any-return]

    @op(composite=True, infer=rule.rank, promote=ALL_INPUTS, to_float=True, differentiable=False)
    def matrix_rank(self, a: V, *, rtol: float | None = None) -> V:
        """int64: how many singular values count; `rtol` as for pinv."""
        F: Any = self
        return rank_by(F, a, F.svdvals(a), rtol)  # type: ignore[no-any-return]

    @op(composite=True, infer=rule.lstsq, promote=ALL_INPUTS, to_float=True, vjp=_lstsq_vjp, jvp=_lstsq_jvp)
    def lstsq(self, a: V, b: V, *, rtol: float | None = None) -> V:
        """The shortest X for which a X is nearest to b; `rtol` as for pinv."""
        F: Any = self
        u, reciprocals, vh = _kept(F, a, rtol)
        return hn(F, vh, F.multiply(by_row(F, reciprocals), hn(F, u, b)))  # type: ignore[no-any-return]
