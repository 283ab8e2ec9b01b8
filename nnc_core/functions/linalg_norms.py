"""Norms of vectors and matrices, and what else measures them."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from nnc_core.base.dtype import is_complex, is_inexact
from nnc_core.base.errors import AttributeValueError, LinAlgError, ShapeError
from nnc_core.functions import diagonals
from nnc_core.functions.pieces import flat, moved
from nnc_core.operator.matrices import diagonal_mask
from nnc_core.shape import linalg as rule
from nnc_core.shape.axes import normalise_axes, normalise_axis
from nnc_core.type import default_float
from nnc_core.values.arguments import ArrayLike, Axis, as_value, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.modes import use_device
from nnc_core.values.repetition import by_shapes
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

__all__ = ["cond", "diagonal", "matrix_norm", "norm", "trace", "vector_norm"]

Order = float | str | None


def floats(x: ArrayLike) -> Value:
    """Real or complex floats as they are, anything else in the default float dtype."""
    v = as_value(x)
    return v if is_inexact(v.dtype) else F.cast(v, dtype=default_float())


def _vector_norm(v: Value, axes: tuple[int, ...], keepdims: bool, order: float) -> Value:
    sizes = F.abs(v) if is_complex(v.dtype) else v
    return F.vector_norm(sizes, axis=tuple(sorted(axes)), ord=order, keepdims=keepdims)


@by_shapes
@names_itself
def vector_norm(x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False, ord: float = 2) -> Tensor:
    """(sum of |x| ** ord) ** (1 / ord) over axes, all of them for None.

    `ord` inf and -inf give the largest and smallest magnitude, 0 the number of elements that are not zero.  The
    gradient of zeros is zero.
    """
    v = floats(x)
    return Tensor(_vector_norm(v, normalise_axes(axis, v.ndim), keepdims, _number(ord)))


def _number(order: Order) -> float:
    if order is None:
        return 2.0
    if isinstance(order, str):
        raise AttributeValueError(f"{order!r} is no norm of vectors", hint="a number, inf or -inf")
    return float(order)


def _largest(v: Value, axis: tuple[int, ...], keepdims: bool = False) -> Value:
    """The largest of magnitudes; 0 of none."""
    nothing = any(v.shape[a] == 0 for a in axis)
    return (F.sum if nothing else F.max)(v, axis=axis, keepdims=keepdims)


def _matrix_norm(v: Value, keepdims: bool, order: Order) -> Value:
    """Norm of the matrices along the last two axes."""
    if v.ndim < 2:
        raise ShapeError(f"{v.spec} is no matrix", hint="vector_norm")
    rows, columns = v.ndim - 2, v.ndim - 1
    if order in (None, "fro"):
        return _vector_norm(v, (rows, columns), keepdims, 2)
    if order in (2, -2, "nuc"):
        values = F.svdvals(v)
        fold = F.sum if order == "nuc" else _largest if order == 2 else F.min
        y = fold(values, axis=(values.ndim - 1,))
        return F.reshape(y, shape=(*y.shape, 1, 1)) if keepdims else y
    if order in (1, -1, inf, -inf):
        summed, kept = (rows, columns) if order in (1, -1) else (columns, rows)
        sums = F.sum(F.abs(v), axis=(summed,), keepdims=True)
        y = (_largest if order in (1, inf) else F.min)(sums, axis=(kept,), keepdims=True)
        return y if keepdims else F.reshape(y, shape=y.shape[:-2])
    raise AttributeValueError(f"{order!r} is no norm of matrices", hint="'fro', 'nuc', 1, -1, 2, -2, inf or -inf")


@by_shapes
@names_itself
def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: Order = "fro") -> Tensor:
    """Norms of matrices (..., m, n): "fro" of all elements, "nuc" the sum of the singular values, 2 and -2 the largest
    and smallest of them, 1 and -1 of the columns' sums of magnitudes, inf and -inf of the rows'."""
    return Tensor(_matrix_norm(floats(x), keepdims, ord))


@by_shapes
@names_itself
def norm(x: ArrayLike, /, ord: Order = None, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    """NumPy's: vector_norm along one axis, matrix_norm over two; without an axis of the whole x, flattened if `ord` is
    None."""
    v = floats(x)
    if axis is None:
        if ord is None:
            y = _vector_norm(flat(v), (0,), False, 2)
            return Tensor(F.reshape(y, shape=(1,) * v.ndim) if keepdims else y)
        axes = tuple(range(v.ndim))
    else:
        given = axis if isinstance(axis, (tuple, list)) else (axis,)
        axes = tuple([normalise_axis(a, v.ndim) for a in given])
    if len(axes) == 1:
        return Tensor(_vector_norm(v, axes, keepdims, _number(ord)))
    if len(axes) != 2 or axes[0] == axes[1]:
        raise AttributeValueError(f"axis {axis}: {v.spec} has norms over one axis or over two", hint="vector_norm")
    y = _matrix_norm(moved(v, axes, [v.ndim - 2, v.ndim - 1]), False, ord)
    return Tensor(F.reshape(y, shape=tuple([1 if i in axes else d for i, d in enumerate(v.shape)])) if keepdims else y)


@by_shapes
@names_itself
def cond(x: ArrayLike, /, p: Order = None) -> Tensor:
    """Condition numbers (...) of matrices (..., m, n): norm `p` times that of the inverse; of singular ones inf.

    None, 2 and -2 compare the singular values, and take matrices that are not square.
    """
    v = floats(x)
    if 0 in rule.matrix(v.spec).shape[-2:]:
        raise LinAlgError(f"{v.spec} has no condition number: it is empty")
    if p in (None, 2, -2):
        values = F.svdvals(v)
        high, low = (f(values, axis=(values.ndim - 1,)) for f in (F.max, F.min))
        ratio = F.divide(low, high) if p == -2 else F.divide(high, low)
        return Tensor(F.where(F.not_equal(ratio, ratio), inf, ratio))
    singular = F.equal(F.pick(F.slogdet(v), index=0), 0)
    with use_device(v.stack):
        identity = F.cast(diagonal_mask(F, v), dtype=v.dtype)
    regular = F.where(F.reshape(singular, shape=(*singular.shape, 1, 1)), identity, v)
    product = F.multiply(_matrix_norm(v, False, p), _matrix_norm(F.inv(regular), False, p))
    return Tensor(F.where(singular, inf, product))


@names_itself
def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Tensor:
    """The diagonals of matrices (..., m, n), as the last axis; `offset` above the main one, below if negative."""
    return diagonals.diagonal(x, offset, -2, -1)


@names_itself
def trace(x: ArrayLike, /, *, offset: int = 0, dtype: object = None) -> Tensor:
    """The sums (...) of the diagonals of matrices (..., m, n)."""
    return diagonals.trace(x, offset, -2, -1, dtype=dtype)
