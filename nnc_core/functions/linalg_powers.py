"""Powers and exponentials of square matrices, out of products and systems."""

from __future__ import annotations

from math import factorial

import numpy as np

from nnc_core.base.dtype import float32, float64, int64, real_of
from nnc_core.base.errors import ShapeError
from nnc_core.control.constructs import while_loop
from nnc_core.functions.constants import constant_beside
from nnc_core.functions.linalg_norms import floats
from nnc_core.operator.matrices import diagonal_mask
from nnc_core.shape import linalg as rule
from nnc_core.type import whole
from nnc_core.values.arguments import ArrayLike, as_value, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.modes import use_device
from nnc_core.values.operands import value_of
from nnc_core.values.repetition import by_shapes
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

__all__ = ["expm", "matrix_power"]


@by_shapes
@names_itself
def matrix_power(x: ArrayLike, n: int, /) -> Tensor:
    """x (..., m, m) times itself n times, by squaring; the identity for 0, powers of the inverse for negative n."""
    v = as_value(x)
    if v.ndim < 2 or v.shape[-2] != v.shape[-1]:
        raise ShapeError(f"needs square matrices, not {v.spec}")
    n = whole(n, "the power")
    square = F.inv(v) if n < 0 else v
    if n == 0:
        return Tensor(_identity(v))
    power = abs(n)
    while not power & 1:
        power, square = power >> 1, F.matmul(square, square)
    result = square
    while power := power >> 1:
        square = F.matmul(square, square)
        result = F.matmul(result, square) if power & 1 else result
    return Tensor(result)


def _identity(like: Value) -> Value:
    with use_device(like.stack):
        ones = F.cast(diagonal_mask(F, like), dtype=like.dtype)
    return ones if like.ndim == 2 else F.broadcast_to(ones, shape=like.shape)


DEGREES = {float32: (7, 3.925724783138660, 126), float64: (13, 5.371920351148152, 1022)}
"""Of the Padé approximant, the norm up to which it is right to the last bit, and how often the norm may be halved."""


@by_shapes
@names_itself
def expm(x: ArrayLike, /) -> Tensor:
    """Exponentials of square matrices (..., n, n), by scaling and squaring of a Padé approximant.

    As in Higham, "The scaling and squaring method for the matrix exponential revisited" (2005), with one degree for
    each dtype; every matrix of a stack is squared as often as its own norm asks for.
    """
    v = floats(x)
    rule.square(v.spec)
    if 0 in v.shape:
        return Tensor(v)
    degree, limit, most = DEGREES[real_of(v.dtype)]
    with use_device(v.stack):
        times = _squarings(F.stop_gradient(v), limit, most)
        halves = constant_beside(v, np.ldexp(np.ones(most + 1), -np.arange(most + 1)), real_of(v.dtype))
        factors = F.reshape(F.take(halves, times, axis=0), shape=(*v.shape[:-2], 1, 1))
        first = _pade(F.multiply(v, factors), degree)
        return Tensor(_squared(first, times))


def _squarings(v: Value, limit: float, most: int) -> Value:
    """int64 (...): how often the norm must be halved to be within the limit; 0 if it is not finite."""
    norms = F.max(F.sum(F.abs(v), axis=(v.ndim - 2,)), axis=(v.ndim - 2,), keepdims=True)
    bounds = constant_beside(v, limit * np.exp2(np.arange(most)), real_of(v.dtype))
    counts = F.logical_and(F.greater(norms, bounds), F.less(F.subtract(norms, norms), 1))
    return F.sum(F.cast(counts, dtype=int64), axis=(norms.ndim - 1,))


def _pade(a: Value, degree: int) -> Value:
    """Padé approximant of exp: the quotient of p(a) and p(-a), whose even parts agree."""
    b = [factorial(2 * degree - j) * factorial(degree) / (factorial(2 * degree) * factorial(degree - j) * factorial(j))
         for j in range(degree + 1)]
    one, a2 = _identity(a), F.matmul(a, a)
    a4 = F.matmul(a2, a2)
    powers = [one, a2, a4, F.matmul(a4, a2)]
    odd, even = _combined(b[1::2], powers), _combined(b[::2], powers)
    odd = F.matmul(a, odd)
    return F.solve(F.subtract(even, odd), F.add(even, odd))


def _combined(b: list[float], powers: list[Value]) -> Value:
    """b[0] + b[1] a² + b[2] a⁴ ..., where powers go up to a⁶."""
    low, high = b[:4], b[4:]
    total = F.multiply(powers[0], low[0])
    for factor, power in zip(low[1:], powers[1:], strict=True):
        total = F.add(total, F.multiply(power, factor))
    if not high:
        return total
    rest = F.multiply(powers[1], high[0])
    for factor, power in zip(high[1:], powers[2:], strict=False):
        rest = F.add(rest, F.multiply(power, factor))
    return F.add(total, F.matmul(powers[3], rest))


def _squared(first: Value, times: Value) -> Value:
    """Each matrix squared its number of times."""
    last = F.max(times, axis=tuple(range(times.ndim)))
    each = F.reshape(times, shape=(*times.shape, 1, 1))

    def unfinished(k: Tensor, x: Tensor) -> Tensor:
        return Tensor(F.less(value_of(k), last))

    def square(k: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        v = value_of(x)
        return Tensor(F.add(value_of(k), 1)), Tensor(F.where(F.less(value_of(k), each), F.matmul(v, v), v))

    start = F.full(shape=(), value=0, dtype=int64)
    return value_of(while_loop(unfinished, square, (Tensor(start), Tensor(first)))[1])
