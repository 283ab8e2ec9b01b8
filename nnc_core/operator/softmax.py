"""Softmax, its logarithm and what is made of it."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any, Generic

from nnc_core.base.dtype import boolean, int64
from nnc_core.operator.declare import Base, V, op
from nnc_core.operator.wide import widely, widely_ruled
from nnc_core.shape import neural as rule
from nnc_core.type import index_range

if TYPE_CHECKING:
    from nnc_core.operator import Namespace


def _divided_by_sum(F: Namespace[V], e: V, axis: int) -> V:
    return F.divide(e, F.sum(e, axis=(axis,), keepdims=True))


@widely_ruled
def _softmax_rule(F: Namespace[V], t: Any, y: V, axis: int) -> V:
    """The Jacobian is symmetric: the same forwards and backwards."""
    weighted = F.multiply(y, t)
    return F.subtract(weighted, F.multiply(y, F.sum(weighted, axis=(axis,), keepdims=True)))


@widely_ruled
def _log_softmax_vjp(F: Namespace[V], g: V, y: V, axis: int) -> V:
    return F.subtract(g, F.multiply(F.exp(y), F.sum(g, axis=(axis,), keepdims=True)))


@widely_ruled
def _log_softmax_jvp(F: Namespace[V], t: Any, y: V, axis: int) -> V:
    return F.subtract(t, F.sum(F.multiply(F.exp(y), t), axis=(axis,), keepdims=True))


def _chosen(F: Namespace[V], logits: V, labels: V) -> V:
    """1 at the label, 0 elsewhere."""
    return F.one_hot(labels, depth=logits.shape[-1], dtype=logits.dtype)


@widely_ruled
def _cross_entropy_slope(F: Namespace[V], logits: V, y: V, labels: V) -> V:
    """softmax(logits) less what is chosen; zero where no class is."""
    chosen = _chosen(F, logits, labels)
    last = len(logits.shape) - 1
    probabilities = F.multiply(F.softmax(logits, axis=last), F.sum(chosen, axis=(last,), keepdims=True))
    return F.subtract(probabilities, chosen)


def _cross_entropy_vjp(F: Namespace[V], g: V, y: V, logits: V, labels: V) -> tuple[V | None, ...]:
    rows = F.reshape(g, shape=(*logits.shape[:-1], 1))
    return F.multiply(rows, _cross_entropy_slope(F, logits, y, labels)), None


def _cross_entropy_jvp(F: Namespace[V], t: Any, y: V, logits: V, labels: V) -> V:
    grown = F.multiply(t[0], _cross_entropy_slope(F, logits, y, labels))
    return F.sum(grown, axis=(len(logits.shape) - 1,))


class Softmaxes(Base[V], Generic[V]):
    @op(composite=True, infer=rule.along_axis, vjp=lambda F, g, y, x, axis: (_softmax_rule(F, g, y, axis),),
        jvp=lambda F, t, y, x, axis: _softmax_rule(F, t[0], y, axis))
    @widely
    def softmax(self, x: V, *, axis: int) -> V:
        """exp(x) / sum(exp(x)) along an axis, without overflow."""
        if x.shape[axis] == 0:
            return x  # nothing has no maximum
        F: Any = self
        return _divided_by_sum(F, F.exp(F.subtract(x, F.max(x, axis=(axis,), keepdims=True))), axis)  # type: ignore[no-any-return]

    @op(composite=True, infer=rule.along_axis, vjp=lambda F, g, y, x, axis: (_log_softmax_vjp(F, g, y, axis),),
        jvp=lambda F, t, y, x, axis: _log_softmax_jvp(F, t[0], y, axis))
    @widely
    def log_softmax(self, x: V, *, axis: int) -> V:
        """log(softmax(x)), exact where softmax underflows."""
        if x.shape[axis] == 0:
            return x  # nothing has no maximum
        F: Any = self
        shifted = F.subtract(x, F.max(x, axis=(axis,), keepdims=True))
        return F.subtract(shifted, F.log(F.sum(F.exp(shifted), axis=(axis,), keepdims=True)))  # type: ignore[no-any-return]

    @op(composite=True, infer=rule.masked_along_axis,
        vjp=lambda F, g, y, x, mask, axis: (_softmax_rule(F, g, y, axis), None),
        jvp=lambda F, t, y, x, mask, axis: _softmax_rule(F, t[0], y, axis))
    @widely
    def masked_softmax(self, x: V, mask: V, *, axis: int) -> V:
        """Softmax over the elements where the mask is true, 0 elsewhere; the mask is broadcast to x.

        Rows of which nothing is left, or -inf alone, are 0.
        """
        if x.shape[axis] == 0:
            return x  # nothing has no maximum
        F: Any = self
        left = F.where(mask, x, -inf)
        highest = F.max(left, axis=(axis,), keepdims=True)
        e = F.exp(F.subtract(left, F.where(F.equal(highest, -inf), 0, highest)))
        total = F.sum(e, axis=(axis,), keepdims=True)
        return F.divide(e, F.where(F.equal(total, 0), 1, total))  # type: ignore[no-any-return]

    @op(composite=True, infer=rule.cross_entropy, vjp=_cross_entropy_vjp, jvp=_cross_entropy_jvp,
        indices=lambda shapes: index_range.of_classes(1, shapes[0][-1]))
    @widely
    def cross_entropy(self, logits: V, labels: V) -> V:
        """-log softmax(logits)[label] for each row of logits (..., classes); labels (...) are integers.

        0, with derivative 0, where the label is no class.
        """
        F: Any = self
        axis = len(logits.shape) - 1
        log_probabilities = F.log_softmax(logits, axis=axis)
        picked = F.where(F.one_hot(labels, depth=logits.shape[axis], dtype=boolean), log_probabilities, 0)
        return F.negative(F.sum(picked, axis=(axis,)))  # type: ignore[no-any-return]

    @op(composite=True, infer=rule.is_class, differentiable=False)
    def is_class(self, logits: V, labels: V) -> V:
        """Marks of which labels (...), which are integers, is a class of the logits (..., classes).

        The number of classes is read when the body is made: what was recorded for another number stays right.
        """
        F: Any = self
        classes = logits.shape[-1]
        if not isinstance(classes, int):
            return F.any(F.one_hot(labels, depth=classes, dtype=boolean), axis=(len(labels.shape),))  # type: ignore[no-any-return]
        wide = F.cast(labels, dtype=int64)
        return F.logical_and(F.greater_equal(wide, 0), F.less(wide, classes))  # type: ignore[no-any-return]
