"""Composites of neural networks: bodies of other operators, which a device may claim whole."""

from __future__ import annotations

from typing import Any, Generic

from nnc_core.base import dtype as dt
from nnc_core.base.errors import DTypeError, ShapeError
from nnc_core.operator.declare import Base, V, op
from nnc_core.shape.axes import check_axes
from nnc_core.shape.elementwise import floating
from nnc_core.type import TensorSpec


def _along_axis(x: TensorSpec, axis: int) -> TensorSpec:
    check_axes((axis,), x.ndim)
    return floating(x)


def _cross_entropy_spec(logits: TensorSpec, labels: TensorSpec) -> TensorSpec:
    if not dt.is_integer(labels.dtype):
        raise DTypeError(f"labels are {labels.dtype}, not integers")
    if logits.shape[:-1] != labels.shape or not logits.shape:
        raise ShapeError(f"labels {labels} should have the shape of {logits} without its last axis")
    return TensorSpec(labels.shape, floating(logits).dtype)


def _softmax_jvp(F: Any, t: Any, y: Any, x: Any, axis: int) -> Any:
    weighted = F.multiply(y, t[0])
    return F.subtract(weighted, F.multiply(y, F.sum(weighted, axis=(axis,), keepdims=True)))


class Neural(Base[V], Generic[V]):
    @op(composite=True, infer=_along_axis, vjp=lambda F, g, y, x, axis: (_softmax_jvp(F, (g,), y, x, axis),),
        jvp=_softmax_jvp)
    def softmax(self, x: V, *, axis: int) -> V:
        """exp(x) / sum(exp(x)) along an axis, without overflow."""
        if x.shape[axis] == 0:
            return x  # nothing has no maximum
        F: Any = self
        e = F.exp(F.subtract(x, F.max(x, axis=(axis,), keepdims=True)))
        return F.divide(e, F.sum(e, axis=(axis,), keepdims=True))  # type: ignore[no-any-return]

    @op(composite=True, infer=_along_axis,
        vjp=lambda F, g, y, x, axis: (
            F.subtract(g, F.multiply(F.exp(y), F.sum(g, axis=(axis,), keepdims=True))),),
        jvp=lambda F, t, y, x, axis: F.subtract(
            t[0], F.sum(F.multiply(F.exp(y), t[0]), axis=(axis,), keepdims=True)))
    def log_softmax(self, x: V, *, axis: int) -> V:
        """log(softmax(x)), exact where softmax underflows."""
        if x.shape[axis] == 0:
            return x  # nothing has no maximum
        F: Any = self
        shifted = F.subtract(x, F.max(x, axis=(axis,), keepdims=True))
        return F.subtract(shifted, F.log(F.sum(F.exp(shifted), axis=(axis,), keepdims=True)))  # type: ignore[no-any-return]

    @op(composite=True, infer=_cross_entropy_spec)
    def cross_entropy(self, logits: V, labels: V) -> V:
        """-log softmax(logits)[label] for each row of logits (..., classes); labels (...) are integers."""
        F: Any = self
        axis = len(logits.shape) - 1
        chosen = F.one_hot(labels, depth=logits.shape[axis], dtype=logits.dtype)
        picked = F.multiply(chosen, F.log_softmax(logits, axis=axis))
        return F.negative(F.sum(picked, axis=(axis,)))  # type: ignore[no-any-return]
