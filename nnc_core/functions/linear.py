"""Products of vectors and matrices."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np

from nnc_core.base.dtype import int64
from nnc_core.base.errors import AttributeValueError, OperandError, ShapeError
from nnc_core.functions.pieces import cut, flat, moved, sequence
from nnc_core.shape.axes import normalise_axis
from nnc_core.shape.elementwise import broadcast
from nnc_core.type import Dims, is_static
from nnc_core.values.arguments import ArrayLike, as_value, as_values, count_of, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.modes import use_device
from nnc_core.values.repetition import by_shapes
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

__all__ = [
    "cross", "dot", "inner", "kron", "matmul", "matvec", "multi_dot", "outer", "tensordot", "vander", "vdot", "vecdot",
    "vecmat",
]  # fmt: skip


# ---- matrices
@by_shapes
@names_itself
def matmul(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Matrix products of the last two axes, the others broadcast: (..., n, k) and (..., k, m) give (..., n, m).

    A vector (k,) is a row on the left and a column on the right, and its axis is left out of the result.  Raises
    ShapeError for inner dimensions that differ, and for scalars.
    """
    return Tensor(_matmul(*as_values(x1, x2)))


def _matmul(a: Value, b: Value) -> Value:
    m, n = a.ndim, b.ndim
    if m > 1 and n > 1:
        return F.matmul(a, b)
    if m == 0 or n == 0:
        raise ShapeError(f"{a.spec} and {b.spec}: a scalar has no matrix product", hint="multiply it")
    left = F.reshape(a, shape=(1, *a.shape)) if m == 1 else a
    right = F.reshape(b, shape=(*b.shape, 1)) if n == 1 else b
    y = F.matmul(left, right)
    dropped = [y.ndim - 2] * (m == 1) + [y.ndim - 1] * (n == 1)
    return F.reshape(y, shape=tuple(d for i, d in enumerate(y.shape) if i not in dropped)) if dropped else y


@by_shapes
@names_itself
def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Matrices (..., m, n) times vectors (..., n), the other axes broadcast."""
    a, b = as_values(x1, x2)
    if a.ndim < 2 or b.ndim < 1:
        raise ShapeError(f"{a.spec} and {b.spec} are no matrices and vectors")
    y = F.matmul(a, F.reshape(b, shape=(*b.shape, 1)))
    return Tensor(F.reshape(y, shape=y.shape[:-1]))


@by_shapes
@names_itself
def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Vectors (..., n), conjugated, times matrices (..., n, m), the other axes broadcast."""
    a, b = as_values(x1, x2)
    if a.ndim < 1 or b.ndim < 2:
        raise ShapeError(f"{a.spec} and {b.spec} are no vectors and matrices")
    y = F.matmul(F.reshape(F.conjugate(a), shape=(*a.shape[:-1], 1, a.shape[-1])), b)
    return Tensor(F.reshape(y, shape=(*y.shape[:-2], y.shape[-1])))


@by_shapes
@names_itself
def multi_dot(arrays: Sequence[ArrayLike], /) -> Tensor:
    """The matrix product of a chain, in the order with the fewest multiplications; the first and the last may be
    vectors."""
    values = as_values(*arrays)
    if len(values) < 2:
        raise OperandError(f"{len(values)} arrays are no chain", hint="give two or more")
    ends, inner = (values[0], values[-1]), values[1:-1]
    if any(v.ndim not in (1, 2) for v in ends) or any(v.ndim != 2 for v in inner):
        raise ShapeError(f"{', '.join(repr(v.spec) for v in values)}: matrices, at the ends perhaps vectors")
    if not all(is_static(v.shape) for v in values):
        return Tensor(_product(values, {}, 0, len(values) - 1))
    lengths = [1 if values[0].ndim == 1 else values[0].spec.static_shape[0]]
    lengths += [v.spec.static_shape[-1] for v in values[:-1]]
    lengths.append(1 if values[-1].ndim == 1 else values[-1].spec.static_shape[-1])
    return Tensor(_product(values, _cheapest(lengths), 0, len(values) - 1))


def _cheapest(lengths: Sequence[int]) -> dict[tuple[int, int], int]:
    """The place to part each stretch of a chain of matrices lengths[i] x lengths[i + 1]."""
    n = len(lengths) - 1
    cost = {(i, i): 0.0 for i in range(n)}
    parts: dict[tuple[int, int], int] = {}
    for reach in range(1, n):
        for i in range(n - reach):
            j, best = i + reach, inf
            for k in range(i, j):
                total = cost[i, k] + cost[k + 1, j] + lengths[i] * lengths[k + 1] * lengths[j + 1]
                if total < best:
                    best, parts[i, j] = total, k
            cost[i, j] = best
    return parts


def _product(values: Sequence[Value], parts: dict[tuple[int, int], int], i: int, j: int) -> Value:
    """From left to right where nothing says otherwise."""
    if i == j:
        return values[i]
    k = parts.get((i, j), j - 1)
    return _matmul(_product(values, parts, i, k), _product(values, parts, k + 1, j))


# ---- vectors
@by_shapes
@names_itself
def vecdot(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Tensor:
    """Sums along an axis of x1, conjugated, times x2, the other axes broadcast."""
    a, b = as_values(x1, x2)
    if a.ndim == 0 or b.ndim == 0:
        raise ShapeError(f"{a.spec} and {b.spec}: a scalar is no vector", hint="multiply it")
    if a.ndim == b.ndim == 1:
        normalise_axis(axis, 1)
        return Tensor(_matmul(F.conjugate(a), b))
    i, j = (normalise_axis(axis, v.ndim) for v in (a, b))
    if a.shape[i] != b.shape[j]:
        raise ShapeError(f"axis {axis} of {a.spec} and {b.spec} has lengths {a.shape[i]} and {b.shape[j]}")
    product = F.multiply(F.conjugate(moved(a, [i], [a.ndim - 1])), moved(b, [j], [b.ndim - 1]))
    return Tensor(F.sum(product, axis=(product.ndim - 1,)))


@by_shapes
@names_itself
def vdot(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """The sum of x1, flattened and conjugated, times x2, flattened."""
    a, b = as_values(x1, x2)
    return Tensor(_matmul(F.conjugate(flat(a)), flat(b)))


@by_shapes
@names_itself
def dot(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """The sum over the last axis of x1 and the last but one of x2 (its only one); with a scalar the product."""
    a, b = as_values(x1, x2)
    if a.ndim == 0 or b.ndim == 0:
        return Tensor(F.multiply(a, b))
    if b.ndim == 1 or (a.ndim <= 2 and b.ndim == 2):
        return Tensor(_matmul(a, b))
    return Tensor(_contracted(a, b, [a.ndim - 1], [b.ndim - 2]))


@by_shapes
@names_itself
def inner(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Sums of products over the last axes of both, for all pairs of the others; with a scalar the product."""
    a, b = as_values(x1, x2)
    if a.ndim == 0 or b.ndim == 0:
        return Tensor(F.multiply(a, b))
    return Tensor(_contracted(a, b, [a.ndim - 1], [b.ndim - 1]))


@by_shapes
@names_itself
def outer(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """All products of an element of one and an element of the other, both flattened."""
    a, b = (flat(v) for v in as_values(x1, x2))
    return Tensor(F.multiply(F.reshape(a, shape=(a.shape[0], 1)), b))


@by_shapes
@names_itself
def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Tensor:
    """The vectors at right angles to pairs of vectors of three components along an axis; the other axes broadcast."""
    a, b = as_values(x1, x2)
    shape = broadcast(a.shape, b.shape)
    at = normalise_axis(axis, len(shape))
    for v in (a, b):
        k = at - (len(shape) - v.ndim)
        if k < 0 or v.shape[k] != 3:
            raise ShapeError(f"axis {axis} of {v.spec} should have length 3")
    a, b = (v if v.shape == shape else F.broadcast_to(v, shape=shape) for v in (a, b))
    x, y = ([cut(v, at, i, i + 1) for i in range(3)] for v in (a, b))
    return Tensor(F.concat(*[F.subtract(F.multiply(x[(i + 1) % 3], y[(i + 2) % 3]),
                                        F.multiply(x[(i + 2) % 3], y[(i + 1) % 3])) for i in range(3)], axis=at))


# ---- of more dimensions
@by_shapes
@names_itself
def tensordot(x1: ArrayLike, x2: ArrayLike, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Tensor:
    """Sums of products over some axes of x1 and as many of x2: a number of them, the last of x1 and the first of x2,
    or two lists of axes.  Of the result come first the other axes of x1, then those of x2."""
    a, b = as_values(x1, x2)
    if isinstance(axes, (int, np.integer)):
        if not 0 <= axes <= min(a.ndim, b.ndim):
            raise AttributeValueError(f"{axes} axes of {a.spec} and {b.spec} cannot be summed over",
                                      hint=f"0 to {min(a.ndim, b.ndim)} axes, or two lists of axes")
        first, second = list(range(a.ndim - axes, a.ndim)), list(range(axes))
    else:
        first, second = ([normalise_axis(i, v.ndim) for i in sequence(s)] for v, s in zip((a, b), axes, strict=True))
    if len(first) != len(second) or len(set(first)) < len(first) or len(set(second)) < len(second):
        raise AttributeValueError(f"axes {axes} do not pair axes of {a.spec} with axes of {b.spec}")
    return Tensor(_contracted(a, b, first, second))


def _contracted(a: Value, b: Value, first: Sequence[int], second: Sequence[int]) -> Value:
    for i, j in zip(first, second, strict=True):
        if a.shape[i] != b.shape[j]:
            raise ShapeError(f"axis {i} of {a.spec} and axis {j} of {b.spec} should have one length")
    left = [i for i in range(a.ndim) if i not in first]
    right = [j for j in range(b.ndim) if j not in second]
    shape = (*[a.shape[i] for i in left], *[b.shape[j] for j in right])
    k = count_of(tuple([a.shape[i] for i in first]))
    rows, columns = count_of(shape[: len(left)]), count_of(shape[len(left) :])
    y = F.matmul(_as_matrix(a, (*left, *first), (rows, k)), _as_matrix(b, (*second, *right), (k, columns)))
    return F.reshape(y, shape=shape)


def _as_matrix(v: Value, axes: tuple[int, ...], shape: Dims) -> Value:
    return F.reshape(v if axes == tuple(range(v.ndim)) else F.permute(v, axes=axes), shape=shape)


@by_shapes
@names_itself
def kron(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """x1 with each element replaced by its product with the whole x2."""
    a, b = as_values(x1, x2)
    ndim = max(a.ndim, b.ndim)
    m, n = ((*(1,) * (ndim - v.ndim), *v.shape) for v in (a, b))
    product = F.multiply(F.reshape(a, shape=tuple([d for k in m for d in (k, 1)])),
                         F.reshape(b, shape=tuple([d for k in n for d in (1, k)])))
    return Tensor(F.reshape(product, shape=tuple([i * j for i, j in zip(m, n, strict=True)])))


@by_shapes
@names_itself
def vander(x: ArrayLike, /, n: int | None = None, *, increasing: bool = False) -> Tensor:
    """(len(x), n): the powers of each element, the highest first, or the lowest if `increasing`; n is len(x) if not
    given."""
    v = as_value(x)
    if v.ndim != 1:
        raise ShapeError(f"{v.spec} is no vector")
    count: Any = v.shape[0] if n is None else n
    if isinstance(count, int) and count < 0:
        raise AttributeValueError(f"n {count} is negative")
    with use_device(v.stack):
        powers = F.arange(size=count, dtype=int64)
    powers = powers if increasing else F.flip(powers, axes=(0,))
    column = F.reshape(v, shape=(v.shape[0], 1))
    return Tensor(F.power(column, F.cast(powers, dtype=v.dtype)))
