"""Polynomials as vectors of coefficients, the highest power first, as NumPy's `poly` functions have them.

Shapes follow from shapes alone: leading zeros stay where they are.
"""

from __future__ import annotations

from math import factorial
from typing import Any, NamedTuple

import numpy as np

from nnc_core.base.dtype import is_complex, real_of
from nnc_core.base.errors import ShapeError
from nnc_core.functions.constants import constant_beside
from nnc_core.functions.linear import vander
from nnc_core.functions.pieces import cut
from nnc_core.functions.reduction import all_inexact, as_dtype, as_inexact
from nnc_core.functions.signals import convolve
from nnc_core.type import promote, whole
from nnc_core.values.arguments import ArrayLike, as_value, as_value_beside, as_values, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.operands import value_of
from nnc_core.values.repetition import by_shapes
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

__all__ = ["poly", "polyadd", "polyder", "polydiv", "polyfit", "polyint", "polymul", "polysub", "polyval", "roots"]


class PolyDivision(NamedTuple):
    """u = quotient v + remainder."""

    quotient: Tensor
    remainder: Tensor


def _coefficients(*given: ArrayLike) -> list[Value]:
    values = as_values(*given)
    for v in values:
        if v.ndim > 1:
            raise ShapeError(f"{v.spec} are no coefficients", hint="a vector, the highest power first")
    return [v if v.ndim else F.reshape(v, shape=(1,)) for v in values]


def _length(v: Value) -> int:
    return v.spec.static_shape[0]


@by_shapes
@names_itself
def polyval(p: ArrayLike, x: ArrayLike, /) -> Tensor:
    """p[0] x**(n - 1) + ... + p[n - 1] at every element of x, by Horner's rule."""
    c, v = as_values(p, x)
    (c,) = _coefficients(Tensor(c))
    dtype = promote(c.dtype, v.dtype)
    c, v = as_dtype(c, dtype), as_dtype(v, dtype)
    y = F.zeros_like(v)
    for k in range(_length(c)):
        y = F.add(F.multiply(y, v), F.reshape(cut(c, 0, k, k + 1), shape=()))
    return Tensor(y)


# ---- arithmetic
def _aligned(p1: ArrayLike, p2: ArrayLike) -> list[Value]:
    """With zeros before the shorter one."""
    values = _coefficients(p1, p2)
    n = max(map(_length, values))
    return [v if _length(v) == n else F.pad(v, low=(n - _length(v),), high=(0,), interior=(0,)) for v in values]


@by_shapes
@names_itself
def polyadd(p1: ArrayLike, p2: ArrayLike, /) -> Tensor:
    """The sum of two polynomials."""
    return Tensor(F.add(*_aligned(p1, p2)))


@by_shapes
@names_itself
def polysub(p1: ArrayLike, p2: ArrayLike, /) -> Tensor:
    """The difference of two polynomials."""
    return Tensor(F.subtract(*_aligned(p1, p2)))


@names_itself
def polymul(p1: ArrayLike, p2: ArrayLike, /) -> Tensor:
    """The product of two polynomials."""
    a, b = _coefficients(p1, p2)
    return convolve(Tensor(a), Tensor(b))


@by_shapes
@names_itself
def polydiv(u: ArrayLike, v: ArrayLike, /) -> PolyDivision:
    """The quotient of two polynomials, and the remainder: as many coefficients as v has, less one, or those of u if it
    is shorter than v.  v[0] is not zero."""
    a, b = all_inexact(_coefficients(u, v))
    dtype = promote(a.dtype, b.dtype)
    a, b = as_dtype(a, dtype), as_dtype(b, dtype)
    n, m = _length(a), _length(b)
    if m == 0:
        raise ShapeError("there is nothing to divide by")
    if n < m:
        return PolyDivision(Tensor(F.zeros_like(cut(b, 0, 0, 1))), Tensor(a))
    steps: list[Value] = []
    for k in range(n - m + 1):
        factor = F.divide(cut(a, 0, k, k + 1), cut(b, 0, 0, 1))
        taken = F.pad(F.multiply(b, factor), low=(k,), high=(n - m - k,), interior=(0,))
        a = F.subtract(a, taken)
        steps.append(factor)
    return PolyDivision(Tensor(F.concat(*steps, axis=0)), Tensor(cut(a, 0, n - m + 1, n)))


# ---- calculus
def _falling(n: int, m: int) -> np.ndarray[Any, Any]:
    """k! / (k - m)! for the powers k = n - 1 ... m."""
    return np.array([factorial(k) // factorial(k - m) for k in range(n - 1, m - 1, -1)], np.float64)


def _order(m: int) -> int:
    return whole(m, "the order", 0)


@by_shapes
@names_itself
def polyder(p: ArrayLike, /, m: int = 1) -> Tensor:
    """The m-th derivative: m coefficients fewer."""
    (c,), m = _coefficients(p), _order(m)
    n = _length(c)
    kept = cut(c, 0, 0, max(n - m, 0))
    return Tensor(F.multiply(kept, constant_beside(c, _falling(n, m), kept.dtype)) if n > m and m else kept)


@by_shapes
@names_itself
def polyint(p: ArrayLike, /, m: int = 1, k: ArrayLike = 0) -> Tensor:
    """The m-th antiderivative: m coefficients more, the last ones from the constants k, in the order in which the
    integrals are taken; one constant counts for all if it is a number."""
    (c,), m = [as_inexact(v) for v in _coefficients(p)], _order(m)
    constants = as_value_beside(k, c)
    if constants.ndim > 1 or (constants.ndim == 1 and _length(constants) not in (1, m)):
        raise ShapeError(f"constants {constants.spec} for {m} integrals")
    constants = as_dtype(constants, promote(c.dtype, constants.dtype))
    one = constants.ndim == 0 or _length(constants) == 1
    for i in range(m):
        n = _length(c)
        c = F.divide(c, constant_beside(c, np.arange(n, 0, -1), real_of(c.dtype))) if n else c
        constant = constants if one else cut(constants, 0, i, i + 1)
        c = F.concat(as_dtype(c, constants.dtype), F.reshape(constant, shape=(1,)), axis=0)
    return Tensor(c)


# ---- roots
@by_shapes
@names_itself
def roots(p: ArrayLike, /) -> Tensor:
    """The n - 1 complex numbers at which a polynomial of n coefficients is zero, in no order; p[0] is not zero
    (LinAlgError).

    They are the eigenvalues of the companion matrix.  Roots that are equal have no derivative.
    """
    (c,) = [as_inexact(v) for v in _coefficients(p)]
    n = _length(c) - 1
    if n < 1:
        return Tensor(F.eigvals(constant_beside(c, np.zeros((0, 0)), c.dtype)))
    row = F.reshape(F.negative(F.divide(cut(c, 0, 1, n + 1), cut(c, 0, 0, 1))), shape=(1, n))
    below = constant_beside(c, np.eye(n - 1, n), c.dtype)
    return Tensor(F.eigvals(F.concat(row, below, axis=0)))


@by_shapes
@names_itself
def poly(x: ArrayLike, /) -> Tensor:
    """The polynomial that has these roots, or the characteristic polynomial of a square matrix; its highest coefficient
    is 1.  Complex roots make complex coefficients."""
    v = as_inexact(as_value(x))
    if v.ndim not in (0, 1, 2):
        raise ShapeError(f"{v.spec} is neither a vector of roots nor a matrix")
    zeros = F.eigvals(v) if v.ndim == 2 else F.reshape(v, shape=(1,)) if v.ndim == 0 else v
    c = constant_beside(zeros, np.ones(1), zeros.dtype)
    for k in range(_length(zeros)):
        shifted = F.pad(c, low=(1,), high=(0,), interior=(0,))
        c = F.subtract(F.pad(c, low=(0,), high=(1,), interior=(0,)), F.multiply(shifted, cut(zeros, 0, k, k + 1)))
    return Tensor(F.real(c) if is_complex(c.dtype) and not is_complex(v.dtype) else c)


@by_shapes
@names_itself
def polyfit(x: ArrayLike, y: ArrayLike, deg: int, /, *, rcond: float | None = None,
            w: ArrayLike | None = None) -> Tensor:
    """The coefficients (deg + 1,) of the polynomial nearest to the points (x, y) by least squares; (deg + 1, k) for k
    columns of y.

    `w` (n,) weighs the points' distances; `rcond` as `rtol` of linalg.lstsq has it, by default n times the dtype's
    epsilon.
    """
    places, values, *given = all_inexact(as_values(x, y, *([] if w is None else [w])))
    n = _order(deg) + 1
    if places.ndim != 1 or values.ndim not in (1, 2) or values.shape[0] != places.shape[0]:
        raise ShapeError(f"places {places.spec} and values {values.spec}: a vector, and as many values or rows of them")
    if given and given[0].shape != places.shape:
        raise ShapeError(f"weights {given[0].spec} do not go with places {places.spec}")
    dtype = promote(places.dtype, values.dtype)
    rows = as_dtype(value_of(vander(Tensor(places), n)), dtype)
    columns = as_dtype(values, dtype)
    columns = columns if columns.ndim == 2 else F.reshape(columns, shape=(columns.shape[0], 1))
    if given:
        factors = F.reshape(given[0], shape=(given[0].shape[0], 1))
        rows, columns = F.multiply(rows, factors), F.multiply(columns, factors)
    lengths = F.vector_norm(F.abs(rows), axis=(0,), ord=2.0, keepdims=True)
    lengths = F.where(F.equal(lengths, 0), 1, lengths)
    tolerance = _length(places) * float(np.finfo(dtype).eps) if rcond is None else float(rcond)
    found = F.divide(F.lstsq(F.divide(rows, lengths), columns, rtol=tolerance), F.reshape(lengths, shape=(n, 1)))
    return Tensor(found if values.ndim == 2 else F.reshape(found, shape=(n,)))
