"""Softmax and losses."""

from __future__ import annotations

from nnc_core.base.errors import AttributeValueError
from nnc_core.dynamic.dispatch import F
from nnc_core.dynamic.functions.face import ArrayLike, as_value, as_values, located
from nnc_core.dynamic.tensor import Tensor
from nnc_core.shape.axes import normalise_axis

__all__ = ["cross_entropy", "log_softmax", "softmax"]


@located
def softmax(x: ArrayLike, /, *, axis: int = -1) -> Tensor:
    """exp(x) / sum(exp(x)) along an axis."""
    v = as_value(x)
    return Tensor(F.softmax(v, axis=normalise_axis(axis, v.ndim)))


@located
def log_softmax(x: ArrayLike, /, *, axis: int = -1) -> Tensor:
    """log(softmax(x)) along an axis."""
    v = as_value(x)
    return Tensor(F.log_softmax(v, axis=normalise_axis(axis, v.ndim)))


@located
def cross_entropy(logits: ArrayLike, labels: ArrayLike, /, *, reduction: str = "mean") -> Tensor:
    """-log softmax(logits)[label]; logits (..., classes), integer labels (...); reduction "mean", "sum" or "none"."""
    rows = F.cross_entropy(*as_values(logits, labels))
    if reduction == "none":
        return Tensor(rows)
    if reduction not in ("mean", "sum"):
        raise AttributeValueError(f"reduction {reduction!r} is none of 'mean', 'sum', 'none'")
    axes = tuple(range(rows.ndim))
    return Tensor(F.mean(rows, axis=axes) if reduction == "mean" else F.sum(rows, axis=axes))
