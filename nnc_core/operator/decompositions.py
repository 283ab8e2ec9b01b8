"""Decompositions of matrices: stacks along leading axes, of floats or complex numbers, by LAPACK on the host.

Derivatives: of Cholesky's as in Murray, "Differentiation of the Cholesky decomposition" (2016); of eigenvalues and
-vectors as in Giles (2008); of singular values and vectors as in Townsend, "Differentiating the singular value
decomposition" (2016); of Q and R as in Walter and Lehmann, "Algorithmic differentiation of linear algebra functions"
(2010).  Vectors of equal eigenvalues or singular values have no derivative: NaN or infinities say so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic

from nnc_core.base.dtype import is_complex, real_of
from nnc_core.base.errors import GradientError
from nnc_core.operator import linalg_reference as by_numpy
from nnc_core.operator.declare import ALL_INPUTS, Base, V, op
from nnc_core.operator.flops import cubic, rectangular
from nnc_core.operator.matrices import (
    added,
    by_column,
    by_row,
    columns_from,
    diagonal,
    diagonal_mask,
    diagonal_matrix,
    h,
    half_lower,
    hermitian,
    hn,
    imaginary,
    lower,
    mm,
    nh,
    off_diagonal,
    part,
    real,
    real_diagonal,
    upper,
)
from nnc_core.operator.phases import overlaps, turning, turning_back
from nnc_core.shape import linalg as rule

if TYPE_CHECKING:
    from nnc_core.operator import Namespace


# ---- Cholesky: a = L Lᴴ
def _cholesky_vjp(F: Namespace[V], g: V, y: V, a: V) -> tuple[V | None, ...]:
    middle = half_lower(F, hn(F, y, g))
    left = F.solve_triangular(h(F, y), middle, lower=False)
    return (hermitian(F, h(F, F.solve_triangular(h(F, y), h(F, left), lower=False))),)


def _cholesky_jvp(F: Namespace[V], tangents: Any, y: V, a: V) -> Any:
    left = F.solve_triangular(y, hermitian(F, tangents[0]), lower=True)
    return mm(F, y, half_lower(F, h(F, F.solve_triangular(y, h(F, left), lower=True))))


# ---- eigenvalues and eigenvectors: a = V diag(w) Vᴴ
def gaps(F: Namespace[V], v: V, w: V) -> V:
    """w_j - w_i; 1 on the diagonal."""
    return F.where(diagonal_mask(F, v), 1, F.subtract(by_column(F, w), by_row(F, w)))


def _eigh_vjp(F: Namespace[V], g: Any, y: Any, a: Any) -> Any:
    (w, v), (gw, gv) = F.picks(y), g
    if gv is not None and is_complex(v.dtype):
        gv = F.add(gv, turning_back(F, v, F.imag(overlaps(F, v, gv))))
    turns = None if gv is None else off_diagonal(F, F.divide(hn(F, v, gv), gaps(F, v, w)))
    middle = added(F, None if gw is None else diagonal_matrix(F, gw), turns)
    return (hermitian(F, nh(F, mm(F, v, middle), v)),)


def _eigh_jvp(F: Namespace[V], tangents: Any, y: V, a: V) -> tuple[V | None, ...]:
    w, v = F.picks(y)
    turned = mm(F, hn(F, v, hermitian(F, tangents[0])), v)
    dv = mm(F, v, off_diagonal(F, F.divide(turned, gaps(F, v, w))))
    if is_complex(v.dtype):
        dv = F.add(dv, F.multiply(v, imaginary(F, turning(F, v, dv))))
    return diagonal(F, real(F, turned)), dv


def _eigvalsh_vjp(F: Namespace[V], g: V, y: V, a: V) -> tuple[V | None, ...]:
    v = F.pick(F.eigh(a), index=1)
    return (nh(F, F.multiply(v, by_column(F, g)), v),)


def _eigvalsh_jvp(F: Namespace[V], tangents: Any, y: V, a: V) -> V:
    v = F.pick(F.eigh(a), index=1)
    return F.sum(real(F, F.multiply(F.conjugate(v), mm(F, hermitian(F, tangents[0]), v))), axis=(a.ndim - 2,))


# ---- singular values and vectors: a = U diag(s) Vᴴ
def _distances(F: Namespace[V], s: V, like: V) -> V:
    """s_j² - s_i²; 1 on the diagonal."""
    row, column = by_column(F, s), by_row(F, s)
    return F.where(diagonal_mask(F, like), 1, F.multiply(F.subtract(row, column), F.add(row, column)))


def _only_thin(a: Any, full_matrices: bool) -> None:
    if full_matrices and a.shape[-2] != a.shape[-1]:
        raise GradientError("of the vectors that fill up a basis there are many choices, and so no derivative",
                            operator="svd", hint="full_matrices=False, or svdvals")


def _svd_vjp(F: Namespace[V], g: Any, y: Any, a: Any, full_matrices: bool) -> Any:
    (u, s, vh), (gu, gs, gvh) = F.picks(y), g
    if full_matrices and a.shape[-2] != a.shape[-1] and gu is None and gvh is None:
        return _svdvals_vjp(F, gs, s, a)
    _only_thin(a, full_matrices)
    m, n = a.shape[-2:]
    k, row, column = s.shape[-1], by_column(F, s), by_row(F, s)
    middle = None if gs is None else diagonal_matrix(F, gs)
    outside = None
    if is_complex(a.dtype) and not (gu is None and gvh is None):
        gu, turns = _phases_vjp(F, gu, gvh, u, vh, row)
        middle = added(F, middle, turns)
    if gu is not None:
        turned = hn(F, u, gu)
        middle = added(F, middle, F.multiply(_skew(F, turned, s), row))
        if m != k:
            outside = mm(F, F.divide(F.subtract(gu, mm(F, u, turned)), row), vh)
    if gvh is not None:
        turned = nh(F, vh, gvh)
        middle = added(F, middle, F.multiply(_skew(F, turned, s), column))
        if n != k:
            rest = F.subtract(gvh, mm(F, h(F, turned), vh))
            outside = added(F, outside, mm(F, u, F.divide(rest, column)))
    return (added(F, mm(F, u, middle, vh), outside),)


def _skew(F: Namespace[V], turned: V, s: V) -> V:
    """(x - xᴴ) over the distances, with zeros on the diagonal."""
    skew = F.divide(F.subtract(turned, h(F, turned)), _distances(F, s, turned))
    return off_diagonal(F, skew) if is_complex(turned.dtype) else skew


def _phases_vjp(F: Namespace[V], gu: V | None, gvh: V | None, u: V, vh: V, s: V) -> tuple[Any, Any]:
    """gu with what the phase of U adds, and what the phase of V against that of U adds to the middle."""
    by_v = None if gvh is None else F.imag(overlaps(F, h(F, vh), h(F, gvh)))
    both = added(F, None if gu is None else F.imag(overlaps(F, u, gu)), by_v)
    gu = added(F, gu, turning_back(F, u, both))
    if by_v is None:
        return gu, None
    turns = F.negative(F.divide(by_v, s))
    return gu, diagonal_matrix(F, imaginary(F, F.reshape(turns, shape=(*turns.shape[:-2], turns.shape[-1]))))


def _svd_jvp(F: Namespace[V], tangents: Any, y: V, a: V, full_matrices: bool) -> tuple[V | None, ...]:
    _only_thin(a, full_matrices)
    (u, s, vh), da = F.picks(y), tangents[0]
    m, n = a.shape[-2:]
    k, row, column = s.shape[-1], by_column(F, s), by_row(F, s)
    from_right, from_left = nh(F, da, vh), hn(F, u, da)
    turned = hn(F, u, from_right)
    by_u, by_v = F.multiply(turned, row), F.multiply(turned, column)
    distances = _distances(F, s, turned)
    du = mm(F, u, off_diagonal(F, F.divide(F.add(by_u, h(F, by_u)), distances)))
    dvh = mm(F, h(F, off_diagonal(F, F.divide(F.add(by_v, h(F, by_v)), distances))), vh)
    if m != k:
        du = F.add(du, F.divide(F.subtract(from_right, mm(F, u, turned)), row))
    if n != k:
        dvh = F.add(dvh, F.divide(F.subtract(from_left, mm(F, turned, vh)), column))
    if not is_complex(a.dtype):
        return du, diagonal(F, turned), dvh
    angles = turning(F, u, du)
    behind = F.divide(F.imag(diagonal(F, turned)), s)
    other = F.subtract(F.reshape(angles, shape=behind.shape), behind)
    du = F.add(du, F.multiply(u, imaginary(F, angles)))
    return du, F.real(diagonal(F, turned)), F.subtract(dvh, F.multiply(vh, imaginary(F, by_row(F, other))))


def _svdvals_vjp(F: Namespace[V], g: V, y: V, a: V) -> tuple[V | None, ...]:
    u, _, vh = F.picks(F.svd(a, full_matrices=False))
    return (mm(F, F.multiply(u, by_column(F, g)), vh),)


def _svdvals_jvp(F: Namespace[V], tangents: Any, y: V, a: V) -> V:
    u, _, vh = F.picks(F.svd(a, full_matrices=False))
    return F.sum(real(F, F.multiply(F.conjugate(u), nh(F, tangents[0], vh))), axis=(a.ndim - 2,))


# ---- Q and R
def _qr_kind(a: Any, mode: str) -> bool:
    """Tell whether a is wide, so that its first columns are decomposed.  GradientError where a basis is filled."""
    m, n = a.shape[-2:]
    if m == n or (isinstance(m, int) and isinstance(n, int) and m < n):
        return bool(m != n)
    if mode == "complete":
        raise GradientError("of the columns of Q that fill up a basis there are many choices, and so no derivative",
                            operator="qr", hint="mode=\"reduced\"")
    return False


def _over(F: Namespace[V], x: V, r: V) -> V:
    """x r⁻¹ for upper triangles r."""
    return h(F, F.solve_triangular(h(F, r), h(F, x), lower=True))


def _over_h(F: Namespace[V], x: V, r: V) -> V:
    """x r⁻ᴴ for upper triangles r."""
    return h(F, F.solve_triangular(r, h(F, x), lower=False))


def _qr_vjp(F: Namespace[V], g: Any, y: Any, a: Any, mode: str) -> Any:
    (q, r), (gq, gr), wide = F.picks(y), g, _qr_kind(a, mode)
    m, rest = a.shape[-2], None
    if wide and gr is not None:
        r2, gr2 = columns_from(F, r, m), columns_from(F, gr, m)
        gq, rest = added(F, gq, mm(F, q, nh(F, r2, gr2))), mm(F, q, gr2)
    if wide:
        r, gr = part(F, r, m, m), None if gr is None else part(F, gr, m, m)
    middle = added(F, None if gr is None else nh(F, gr, r), None if gq is None else F.negative(hn(F, q, gq)))
    half = upper(F, middle)
    turns = real_diagonal(F, F.add(half, h(F, off_diagonal(F, half))))
    ga = _over_h(F, added(F, gq, mm(F, q, turns)), r)
    if not wide:
        return (ga,)
    return (F.concat(ga, F.zeros_like(columns_from(F, a, m)) if rest is None else rest, axis=a.ndim - 1),)


def _qr_jvp(F: Namespace[V], tangents: Any, y: V, a: V, mode: str) -> tuple[V | None, ...]:
    (q, r), da, wide = F.picks(y), tangents[0], _qr_kind(a, mode)
    n = r.shape[-2]
    first = part(F, da, a.shape[-2], n) if wide else da
    scaled = _over(F, first, part(F, r, n, n) if wide else r)
    turned = hn(F, q, scaled)
    below = lower(F, turned, strict=True)
    turns = F.subtract(below, h(F, below))
    if is_complex(a.dtype):  # the diagonal of R stays real
        turns = F.where(diagonal_mask(F, turns), imaginary(F, F.imag(turned)), turns)
    dq = F.add(mm(F, q, F.subtract(turns, turned)), scaled)
    return dq, F.subtract(hn(F, q, da), mm(F, turns, r))


# ---- L and U, with ones added to make them square
def _squared(F: Namespace[V], lu: V) -> V:
    m, n = lu.shape[-2:]
    if m == n:
        return lu
    more, most = (0, m - n) if m > n else (n - m, 0), max(m, n)
    lead = (0,) * (lu.ndim - 2)
    padded = F.pad(lu, low=(0,) * lu.ndim, high=(*lead, *more), interior=(0,) * lu.ndim)
    inside = F.pad(F.add(F.zeros_like(lu), 1), low=(0,) * lu.ndim, high=(*lead, *more), interior=(0,) * lu.ndim)
    extra = F.multiply(F.cast(diagonal_mask(F, padded), dtype=lu.dtype), F.subtract(1, inside))
    assert padded.shape[-1] == most
    return F.add(padded, extra)


def _exchange(F: Namespace[V], order: Any, like: V) -> V:
    """Permutation matrices: row i of the product is row order[i]."""
    return F.cast(F.one_hot(order, depth=like.shape[-2], dtype=real_of(like.dtype)), dtype=like.dtype)


def _widened(F: Namespace[V], x: V, square: V) -> V:
    """Zeros added at the right and below."""
    high = tuple(a - b for a, b in zip(square.shape, x.shape, strict=True))
    return F.pad(x, low=(0,) * x.ndim, high=high, interior=(0,) * x.ndim) if any(high) else x


def _lu_vjp(F: Namespace[V], g: Any, y: V, a: V) -> tuple[V | None, ...]:
    lu, order = F.picks(y)
    if g[0] is None:
        return (None,)
    both = _squared(F, lu)
    g = _widened(F, g[0], both)
    unit, triangle = F.add(lower(F, both, strict=True), _identity(F, both)), upper(F, both)
    middle = F.add(lower(F, hn(F, unit, lower(F, g, strict=True)), strict=True),
                   upper(F, nh(F, upper(F, g), triangle)))
    left = F.solve_triangular(h(F, both), middle, lower=False, unit_diagonal=True)
    whole = _over_h(F, left, both)
    return (hn(F, _exchange(F, order, a), part(F, whole, *a.shape[-2:])),)


def _lu_jvp(F: Namespace[V], tangents: Any, y: V, a: V) -> tuple[V | None, ...]:
    lu, order = F.picks(y)
    both = _squared(F, lu)
    moved = _widened(F, mm(F, _exchange(F, order, a), tangents[0]), both)
    unit, triangle = F.add(lower(F, both, strict=True), _identity(F, both)), upper(F, both)
    middle = _over(F, F.solve_triangular(both, moved, lower=True, unit_diagonal=True), both)
    dl, du = mm(F, unit, lower(F, middle, strict=True)), mm(F, upper(F, middle), triangle)
    return part(F, F.add(dl, du), *a.shape[-2:]), None


def _identity(F: Namespace[V], like: V) -> V:
    return F.cast(diagonal_mask(F, like), dtype=like.dtype)


class Decompositions(Base[V], Generic[V]):
    @op(infer=rule.square, reference=by_numpy.cholesky, fallible=True, promote=ALL_INPUTS, to_float=True,
        vjp=_cholesky_vjp,
        jvp=_cholesky_jvp, flops=cubic(1 / 3))
    def cholesky(self, a: V) -> V:
        """Lower triangles L with L Lᴴ = (a + aᴴ) / 2, which must be positive definite."""
        ...

    @op(infer=rule.qr, reference=by_numpy.qr, fallible=True, promote=ALL_INPUTS, to_float=True, vjp=_qr_vjp,
        jvp=_qr_jvp, flops=rectangular(4))
    def qr(self, a: V, *, mode: str = "reduced") -> V:
        """Orthonormal columns Q and upper triangles R, of real diagonals, with Q R = a."""
        ...

    @op(infer=rule.lu, reference=by_numpy.lu, fallible=True, promote=ALL_INPUTS, to_float=True, vjp=_lu_vjp,
        jvp=_lu_jvp, flops=rectangular(2 / 3))
    def lu(self, a: V) -> V:
        """The strict lower triangle of L, whose diagonal is ones, with U above it, and the order of rows: row i of L U
        is row order[i] of a."""
        ...

    @op(infer=rule.eigh, reference=by_numpy.eigh, fallible=True, promote=ALL_INPUTS, to_float=True, vjp=_eigh_vjp,
        jvp=_eigh_jvp, flops=cubic(9))
    def eigh(self, a: V) -> V:
        """Eigenvalues of (a + aᴴ) / 2, rising, and orthonormal eigenvectors in columns."""
        ...

    @op(infer=rule.eigenvalues, reference=by_numpy.eigvalsh, fallible=True, promote=ALL_INPUTS, to_float=True,
        vjp=_eigvalsh_vjp,
        jvp=_eigvalsh_jvp, flops=cubic(4 / 3))
    def eigvalsh(self, a: V) -> V:
        """Eigenvalues of (a + aᴴ) / 2, rising."""
        ...

    @op(infer=rule.svd, reference=by_numpy.svd, fallible=True, promote=ALL_INPUTS, to_float=True, vjp=_svd_vjp,
        jvp=_svd_jvp, flops=rectangular(20))
    def svd(self, a: V, *, full_matrices: bool = True) -> V:
        """Orthonormal columns U, singular values falling, orthonormal rows Vᴴ: a = U diag(s) Vᴴ."""
        ...

    @op(infer=rule.singular_values, reference=by_numpy.svdvals, fallible=True, promote=ALL_INPUTS, to_float=True,
        vjp=_svdvals_vjp,
        jvp=_svdvals_jvp, flops=rectangular(4))
    def svdvals(self, a: V) -> V:
        """Singular values, falling."""
        ...
