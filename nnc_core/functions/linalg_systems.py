"""Linear systems, inverses and determinants of matrices, which lie along the last two axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import nan, prod
from typing import Any, NamedTuple

import numpy as np

from nnc_core.base.dtype import int64, is_complex, is_inexact, real_of
from nnc_core.base.errors import DTypeError, ShapeError
from nnc_core.functions.linalg_decompositions import LUFactors
from nnc_core.functions.pieces import moved
from nnc_core.operator.matrices import h, mm, real
from nnc_core.operator.solvers import rank_by
from nnc_core.shape import linalg as rule
from nnc_core.shape.axes import normalise_axis
from nnc_core.values.argument_checks import mismatch_error
from nnc_core.values.arguments import ArrayLike, as_value, as_value_beside, as_values, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.from_host import host_value
from nnc_core.values.modes import use_device
from nnc_core.values.repetition import by_shapes
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

__all__ = [
    "LstsqResult", "SlogdetResult", "cholesky_solve", "det", "inv", "logdet", "lstsq", "lu_solve", "matrix_rank",
    "pinv", "slogdet", "solve", "solve_triangular", "tensorinv", "tensorsolve",
]  # fmt: skip


class SlogdetResult(NamedTuple):
    """Signs of determinants, and logarithms of their magnitudes."""

    sign: Tensor
    logabsdet: Tensor


class LstsqResult(NamedTuple):
    """Solutions (..., n, k), sums of squared residuals (..., k), ranks int64 (...), singular values, falling."""

    x: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


def solved(solve: Callable[[Value], Value], b: Value) -> Value:
    """For right-hand sides in columns, or for one vector."""
    if b.ndim != 1:
        return solve(b)
    y = solve(F.reshape(b, shape=(b.shape[0], 1)))
    return F.reshape(y, shape=y.shape[:-1])


@by_shapes
@names_itself
def solve(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """y of x1 y = x2: x1 (..., n, n), x2 (..., n, k) or, of one dimension, (n,); leading axes are broadcast.

    LinAlgError if a matrix is singular.
    """
    a, b = as_values(x1, x2)
    return Tensor(solved(lambda columns: F.solve(a, columns), b))


@by_shapes
@names_itself
def solve_triangular(x1: ArrayLike, x2: ArrayLike, /, *, lower: bool = False, unit_diagonal: bool = False) -> Tensor:
    """y of x1 y = x2, where x1 is a lower or an upper triangle: its other half is not read, nor is its diagonal with
    `unit_diagonal`, which takes it for ones.  Shapes as for solve."""
    a, b = as_values(x1, x2)
    return Tensor(solved(lambda c: F.solve_triangular(a, c, lower=lower, unit_diagonal=unit_diagonal), b))


@by_shapes
@names_itself
def cholesky_solve(factor: ArrayLike, b: ArrayLike, /, *, upper: bool = False) -> Tensor:
    """y of a y = b, by what cholesky(a, upper=upper) gave.  Shapes as for solve."""
    c, rhs = as_values(factor, b)
    rule.matrix(c.spec)
    left, right = (h(F, c), c) if upper else (c, h(F, c))

    def both(columns: Value) -> Value:
        return F.solve_triangular(right, F.solve_triangular(left, columns, lower=True), lower=False)

    return Tensor(solved(both, rhs))


@by_shapes
@names_itself
def lu_solve(factors: LUFactors | tuple[ArrayLike, ArrayLike], b: ArrayLike, /) -> Tensor:
    """y of a y = b, by what lu_factor(a) gave.  Shapes as for solve."""
    if not isinstance(factors, (tuple, list)) or len(factors) != 2:
        raise mismatch_error("factors", factors, "a pair of arrays", "give what lu_factor gave")
    lu, order, rhs = as_values(*factors, b)
    rule.square(lu.spec)

    def both(columns: Value) -> Value:
        exchanged = F.matmul(F.one_hot(order, depth=lu.shape[-1], dtype=real_of(lu.dtype)), columns)
        forward = F.solve_triangular(lu, exchanged, lower=True, unit_diagonal=True)
        return F.solve_triangular(lu, forward, lower=False)

    return Tensor(solved(both, rhs))


@by_shapes
@names_itself
def inv(x: ArrayLike, /) -> Tensor:
    """Inverses of square matrices (..., n, n); LinAlgError if one is singular."""
    return Tensor(F.inv(as_value(x)))


@by_shapes
@names_itself
def pinv(x: ArrayLike, /, *, rtol: ArrayLike | None = None) -> Tensor:
    """Pseudoinverses (..., n, m) of matrices (..., m, n) (Moore and Penrose).

    Singular values up to rtol times the largest count as zero; without rtol up to the larger side times the dtype's
    epsilon.  An array of rtol has the values for each matrix (...), which have to be known when the function is called.
    The gradient is the one at constant rank.
    """
    v = as_value(x)
    if rtol is None or isinstance(rtol, (int, float)):
        return Tensor(F.pinv(v, rtol=None if rtol is None else float(rtol)))
    each = as_value(rtol, v.stack, real_of(v.dtype) if is_inexact(v.dtype) else None)
    if is_complex(each.dtype):
        raise DTypeError(f"rtol is {each.spec}: tolerances are real numbers", hint="nnc.real gives the real part")
    host = np.asarray(Tensor(F.stop_gradient(each)))
    return Tensor(_pinv_of_each(v, host.astype(np.float64)))


def _pinv_of_each(v: Value, rtol: np.ndarray[Any, Any]) -> Value:
    """Pseudoinverses with a tolerance for each matrix: those of every tolerance there is, and of them the one meant."""
    tolerances = np.unique(rtol).tolist() or [0.0]
    y = F.pinv(v, rtol=tolerances[0])
    fits = [not isinstance(d, int) or n in (1, d) for n, d in zip(rtol.shape[::-1], y.shape[-3::-1], strict=False)]
    if rtol.ndim > y.ndim - 2 or not all(fits):
        raise ShapeError(f"rtol of shape {rtol.shape} does not fit {v.spec}", hint="one value for each matrix, or one")
    place = np.searchsorted(tolerances, rtol)
    for i, tolerance in enumerate(tolerances if rtol.ndim else ()):
        meant = host_value((place == i)[..., None, None], stack=v.stack)
        y = F.where(meant, F.pinv(v, rtol=tolerance) if i else y, y)
    return y


@by_shapes
@names_itself
def lstsq(a: ArrayLike, b: ArrayLike, /, *, rtol: float | None = None) -> LstsqResult:
    """The shortest y for which a y is nearest to b: a (..., m, n), b (..., m, k) or, of one dimension, (m,).

    `rtol` as for pinv.  Unlike NumPy's, the sums of squared residuals are there for every rank and shape, and leading
    axes are broadcast.
    """
    v, rhs = as_values(a, b)
    rtol = None if rtol is None else float(rtol)
    columns = F.reshape(rhs, shape=(rhs.shape[0], 1)) if rhs.ndim == 1 else rhs
    x = F.lstsq(v, columns, rtol=rtol)
    rest = F.subtract(columns, mm(F, v, x))
    residuals = F.sum(real(F, F.multiply(F.conjugate(rest), rest)), axis=(rest.ndim - 2,))
    solution = F.reshape(x, shape=x.shape[:-1]) if rhs.ndim == 1 else x
    values = F.svdvals(v)
    with use_device(v.stack):
        rank = rank_by(F, v, values, rtol)
    return LstsqResult(Tensor(solution), Tensor(residuals), Tensor(rank), Tensor(values))


@by_shapes
@names_itself
def matrix_rank(x: ArrayLike, /, *, rtol: ArrayLike | None = None) -> Tensor:
    """int64 (...): how many singular values of matrices (..., m, n) are above rtol times the largest; without rtol
    above the larger side times the dtype's epsilon.  Vectors count as rows."""
    v = as_value(x)
    if v.ndim < 2:
        v = F.reshape(v, shape=(1,) * (2 - v.ndim) + v.shape)
    if rtol is None or isinstance(rtol, (int, float)):
        return Tensor(F.matrix_rank(v, rtol=None if rtol is None else float(rtol)))
    values, relative = F.svdvals(v), as_value_beside(rtol, v)
    if values.shape[-1] == 0:
        return Tensor(F.sum(F.cast(values, dtype=int64), axis=(values.ndim - 1,)))
    largest = F.max(values, axis=(values.ndim - 1,), keepdims=True)
    counts = F.greater(values, F.multiply(largest, F.reshape(relative, shape=(*relative.shape, 1))))
    return Tensor(F.sum(F.cast(counts, dtype=int64), axis=(values.ndim - 1,)))


@by_shapes
@names_itself
def det(x: ArrayLike, /) -> Tensor:
    """Determinants (...) of square matrices (..., n, n)."""
    return Tensor(F.det(as_value(x)))


@by_shapes
@names_itself
def slogdet(x: ArrayLike, /) -> SlogdetResult:
    """Signs of the determinants of square matrices (..., n, n), of complex ones numbers of magnitude 1, and logarithms
    of their magnitudes; of a singular matrix 0 and -inf, which have no gradient (LinAlgError)."""
    sign, logarithm = F.picks(F.slogdet(as_value(x)))
    return SlogdetResult(Tensor(sign), Tensor(logarithm))


@by_shapes
@names_itself
def logdet(x: ArrayLike, /) -> Tensor:
    """Logarithms of the determinants of square matrices (..., n, n): -inf for 0, NaN for a negative one; of complex
    matrices complex numbers."""
    sign, logarithm = F.picks(F.slogdet(as_value(x)))
    if is_complex(sign.dtype):
        return Tensor(F.add(F.log(sign), logarithm))
    return Tensor(F.where(F.less(sign, 0), nan, logarithm))


# ---- of more dimensions
@by_shapes
@names_itself
def tensorsolve(a: ArrayLike, b: ArrayLike, /, axes: Sequence[int] | None = None) -> Tensor:
    """y of tensordot(a, y, y.ndim) = b; `axes` of a go to its right end first."""
    v, rhs = as_values(a, b)
    if axes is not None:
        v = moved(v, [normalise_axis(i, v.ndim) for i in axes], range(v.ndim - len(axes), v.ndim))
    shape = v.spec.static_shape[rhs.ndim :]
    n = prod(shape)
    if prod(v.spec.static_shape[: rhs.ndim]) != n or prod(rhs.spec.static_shape) != n:
        raise ShapeError(f"{v.spec} is not square: {n} unknowns for the elements of {rhs.spec}")
    y = F.solve(F.reshape(v, shape=(n, n)), F.reshape(rhs, shape=(n, 1)))
    return Tensor(F.reshape(y, shape=shape))


@by_shapes
@names_itself
def tensorinv(a: ArrayLike, /, ind: int = 2) -> Tensor:
    """The y for which tensordot(y, a, ind) is the identity; the first `ind` axes of a have as many elements as the
    others."""
    v = as_value(a)
    first, rest = v.spec.static_shape[:ind], v.spec.static_shape[ind:]
    if ind < 1 or prod(first) != prod(rest):
        raise ShapeError(f"{v.spec} is not square: {prod(first)} elements along its first {ind} axes, "
                         f"{prod(rest)} along the others")
    return Tensor(F.reshape(F.inv(F.reshape(v, shape=(prod(first), prod(rest)))), shape=(*rest, *first)))
