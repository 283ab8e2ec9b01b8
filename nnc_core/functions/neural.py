"""Softmax and its relatives."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from nnc_core.base.dtype import boolean
from nnc_core.base.errors import AttributeValueError, DTypeError
from nnc_core.functions.constants import beside
from nnc_core.functions.reduction import as_inexact
from nnc_core.random.generator import Generator, generator_for
from nnc_core.shape.axes import normalise_axis
from nnc_core.values.arguments import ArrayLike, as_value, as_values, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.repetition import by_shapes
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

__all__ = ["gumbel_softmax", "log_softmax", "softmax", "softmin"]


class _Row(NamedTuple):
    x: Value
    mask: Value | None
    axis: int


def _row(x: ArrayLike, axis: int, where: ArrayLike | None) -> _Row:
    if where is None:
        v = as_inexact(as_value(x))
        return _Row(v, None, normalise_axis(axis, v.ndim))
    v, mask = as_values(x, where)
    if mask.dtype != boolean:
        raise DTypeError(f"the mask is {mask.dtype}, not boolean", hint="compare it with 0")
    v = as_inexact(v)
    return _Row(v, mask, normalise_axis(axis, v.ndim))


def _softmax(row: _Row) -> Value:
    if row.mask is None:
        return F.softmax(row.x, axis=row.axis)
    return F.masked_softmax(row.x, row.mask, axis=row.axis)


@by_shapes
@names_itself
def softmax(x: ArrayLike, /, *, axis: int = -1, where: ArrayLike | None = None) -> Tensor:
    """exp(x) / sum(exp(x)) along an axis.

    With a mask `where` over the elements for which it is true; the others, and rows of which nothing is left, are 0.
    """
    return Tensor(_softmax(_row(x, axis, where)))


@by_shapes
@names_itself
def softmin(x: ArrayLike, /, *, axis: int = -1, where: ArrayLike | None = None) -> Tensor:
    """softmax(-x)"""
    row = _row(x, axis, where)
    return Tensor(_softmax(row._replace(x=F.negative(row.x))))


@by_shapes
@names_itself
def log_softmax(x: ArrayLike, /, *, axis: int = -1, where: ArrayLike | None = None) -> Tensor:
    """log(softmax(x)) along an axis, exact where softmax underflows; -inf where the mask `where` is false."""
    v, mask, at = _row(x, axis, where)
    if mask is None:
        return Tensor(F.log_softmax(v, axis=at))
    left = F.where(mask, v, -inf)
    total = F.logsumexp(left, axis=(at,), keepdims=True)
    return Tensor(F.subtract(left, F.where(F.equal(total, -inf), 0, total)))


@names_itself
def gumbel_softmax(logits: ArrayLike, /, *, temperature: float = 1.0, hard: bool = False, axis: int = -1,
                   generator: Generator | None = None) -> Tensor:
    """softmax((logits + noise) / temperature), with the noise of `Generator.gumbel`: a categorical variable made
    differentiable (Jang, Gu and Poole 2017).

    `hard` gives one-hot rows, whose gradient is that of the soft ones.
    """
    if not temperature > 0:
        raise AttributeValueError(f"temperature is {temperature}, expected a positive number")
    v = as_inexact(as_value(logits))
    at = normalise_axis(axis, v.ndim)
    with beside(v):
        noise = generator_for(generator, v.stack).gumbel(v.shape, dtype=v.dtype)
    soft = F.softmax(F.divide(F.add(v, noise._value), temperature), axis=at)
    if not hard:
        return Tensor(soft)
    chosen = F.one_hot(F.argmax(soft, axis=at, keepdims=False), depth=v.shape[at], dtype=v.dtype)
    order = (*range(at), v.ndim - 1, *range(at, v.ndim - 1))
    rows = chosen if at == v.ndim - 1 else F.permute(chosen, axes=order)
    return Tensor(F.add(rows, F.subtract(soft, F.stop_gradient(soft))))
