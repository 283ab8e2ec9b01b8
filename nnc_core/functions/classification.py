"""Losses of classifiers: cross-entropies with labels or probabilities, of many classes or two."""

from __future__ import annotations

from math import nan, prod
from typing import Any, NamedTuple

from nnc_core.base.dtype import DType, boolean, int64, is_float, is_integer
from nnc_core.base.errors import AttributeValueError, DTypeError, OutOfRangeError, ShapeError
from nnc_core.functions.constants import is_recorded
from nnc_core.functions.floats import as_like, in_wide
from nnc_core.functions.pieces import moved
from nnc_core.functions.reduction import as_inexact
from nnc_core.shape.axes import normalise_axis
from nnc_core.shape.elementwise import broadcast
from nnc_core.type import NO_INDEX
from nnc_core.values.arguments import ArrayLike, as_value, as_values, names_itself, stack_of
from nnc_core.values.as_one import as_one
from nnc_core.values.dispatch import F
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "categorical_cross_entropy", "cross_entropy",
    "nll_loss",
]  # fmt: skip

IGNORED = -100
"""The label that is ignored where nothing else is said, as in PyTorch."""
REDUCTIONS = ("none", "mean", "sum")


def check_reduction(reduction: str) -> None:
    if reduction not in REDUCTIONS:
        raise AttributeValueError(f"reduction {reduction!r} is none of {', '.join(map(repr, REDUCTIONS))}")


def reduced(losses: Value, reduction: str, total: Value | None = None) -> Tensor:
    """The losses, their sum, or their mean, which is the sum divided by `total` where that is given: NaN, whose
    gradients are 0, where nothing counts."""
    axes = tuple(range(losses.ndim))
    if reduction == "none":
        return Tensor(losses)
    if reduction == "mean" and total is None:
        return Tensor(F.mean(losses, axis=axes))
    found = F.sum(losses, axis=axes)
    if reduction == "sum" or total is None:
        return Tensor(found)
    whole = F.sum(total, axis=axes)
    nothing = F.equal(whole, 0)
    return Tensor(F.where(nothing, nan, F.divide(found, F.where(nothing, 1, whole))))


# ---- many classes
class _Task(NamedTuple):
    """Predictions, with the classes along the last axis; targets; and how much each counts."""

    predicted: Value
    labels: Value
    weights: Value | None
    smoothing: float
    ignored: int | None
    reduction: str
    all_count: bool
    """Whether the labels are known, and each of them is a class that is not ignored."""

    @property
    def classes(self) -> Any:
        return self.predicted.shape[-1]

    @property
    def last(self) -> tuple[int, ...]:
        return (self.predicted.ndim - 1,)


def _task(predicted: ArrayLike, labels: ArrayLike, axis: int, weights: ArrayLike | None, smoothing: float,
          ignored: int | None, reduction: str) -> _Task:
    check_reduction(reduction)
    if not 0 <= smoothing < 1:
        raise AttributeValueError(f"label_smoothing is {smoothing}, expected 0 <= label_smoothing < 1")
    v, y = as_values(predicted, labels)
    v = as_inexact(v)
    at = normalise_axis(axis, v.ndim)
    soft = is_float(y.dtype)
    if not soft and not is_integer(y.dtype):
        raise DTypeError(f"labels are {y.dtype}: neither integers, one for each row, nor probabilities of all classes")
    if y.shape != (v.shape if soft else (*v.shape[:at], *v.shape[at + 1 :])):
        raise ShapeError(f"labels {y.spec} do not fit {v.spec}, whose classes are axis {at}: integers have the other "
                         "axes, probabilities all of them")
    w = None if weights is None else as_value(weights, stack_of((predicted, labels)))
    if w is not None and w.shape != (v.shape[at],):
        raise ShapeError(f"the weights are {w.spec}, expected one for each of {v.shape[at]} classes")
    if soft and ignored not in (None, IGNORED):
        raise AttributeValueError("ignore_index is a label, and there are probabilities", hint="weights of 0")
    all_count = not soft and _check_labels(y, v.shape[at], ignored)
    if at != v.ndim - 1:
        v, y = (moved(x, (at,), (v.ndim - 1,)) if x.ndim == v.ndim else x for x in (v, y))
    return _Task(v, y, None if w is None else _as_dtype(w, v.dtype), smoothing, ignored, reduction, all_count)


def _check_labels(labels: Value, classes: Any, ignored: int | None) -> bool:
    """OutOfRangeError for a label that is no class and is not ignored, where labels lie in the host's memory; True if
    they do and every row counts."""
    host = None if is_recorded(labels) else labels.stack.device.expose(labels.array)
    if host is None or not isinstance(classes, int):
        return False
    labels.stack.device.default_stream.synchronize()
    if not host.size or (host.min() >= 0 and host.max() < classes):
        return not (ignored is not None and 0 <= ignored < classes and (host == ignored).any())
    wrong = (host < 0) | (host >= classes)
    wrong = wrong if ignored is None else wrong & (host != ignored)
    if wrong.any():
        said = "none is ignored" if ignored is None else f"ignore_index is {ignored}"
        raise OutOfRangeError(f"label {host[wrong][0]} is none of {classes} classes, and {said}",
                              device=labels.stack.device.spec.id,
                              hint=f"0 <= label < {classes}, or give the label as ignore_index")
    return False


def _soft_loss(task: _Task, logarithms: Value) -> Tensor:
    """Probabilities of 0 cost nothing, however unlikely their class is."""
    wanted = _as_dtype(task.labels, logarithms.dtype)
    costs = F.multiply(wanted, F.where(F.equal(wanted, 0), 0, logarithms))
    rows = F.negative(F.sum(_weighted(costs, task.weights), axis=task.last))
    return reduced(_smoothed(task, rows, _spread(task, logarithms)) if task.smoothing else rows, task.reduction)


def _spread(task: _Task, logarithms: Value) -> Value:
    """The loss if all classes were wanted alike."""
    return F.negative(F.mean(_weighted(logarithms, task.weights), axis=task.last))


def _smoothed(task: _Task, rows: Value, spread: Value) -> Value:
    return F.add(F.multiply(rows, 1 - task.smoothing), F.multiply(spread, task.smoothing))


def _picked(logarithms: Value, labels: Value) -> Value:
    """-log p of the label, 0 where that is no class."""
    chosen = F.one_hot(labels, depth=logarithms.shape[-1], dtype=boolean)
    return F.negative(F.sum(F.where(chosen, logarithms, 0), axis=(logarithms.ndim - 1,)))


def _label_loss(task: _Task, rows: Value, logarithms: Value | None, labels: Value) -> Tensor:
    """`rows` are the losses without weights and smoothing; a row whose label is no class is 0 and does not count."""
    counted = None
    if task.weights is not None:
        chosen = F.one_hot(labels, depth=task.classes, dtype=rows.dtype)
        counted = F.sum(F.multiply(chosen, task.weights), axis=task.last)
        rows = F.multiply(rows, counted)
    elif task.reduction == "mean" and not _is_counted(task):
        counted = F.cast(F.is_class(task.predicted, labels), dtype=rows.dtype)
    if logarithms is not None:
        spread = _spread(task, logarithms)
        if not task.all_count:
            spread = F.where(F.is_class(task.predicted, labels), spread, 0)
        rows = _smoothed(task, rows, spread)
    if counted is None and task.reduction == "mean":  # to the bit what it is where rows have to be counted
        return Tensor(F.divide(F.sum(rows, axis=tuple(range(rows.ndim))), float(prod(rows.shape))))
    return reduced(rows, task.reduction, counted)


def _is_counted(task: _Task) -> bool:
    """True if Python knows how many rows count, some, as a number that float32 holds."""
    return task.all_count and 0 < prod(task.labels.shape) <= 2**24


def _labels(task: _Task) -> Value:
    """No class, and no mistake, where they are ignored."""
    if task.ignored is None or task.all_count:
        return task.labels
    wide = F.cast(task.labels, dtype=int64)
    return F.where(F.equal(wide, task.ignored), NO_INDEX, wide)


def _loss(task: _Task, logarithms: Value) -> Tensor:
    if is_float(task.labels.dtype):
        return _soft_loss(task, logarithms)
    labels = _labels(task)
    return _label_loss(task, _picked(logarithms, labels), logarithms if task.smoothing else None, labels)


@as_one
def _loss_of_logarithms(task: _Task) -> Tensor:
    return _loss(task, task.predicted)


@as_one
def _loss_of_probabilities(task: _Task) -> Tensor:
    return _loss(task, F.log(task.predicted))


@as_one
def _loss_of_logits(task: _Task) -> Tensor:
    if is_float(task.labels.dtype):
        return _soft_loss(task, F.log_softmax(task.predicted, axis=task.last[0]))
    wanted = _labels(task)
    logarithms = F.log_softmax(task.predicted, axis=task.last[0]) if task.smoothing else None
    return _label_loss(task, F.cross_entropy(task.predicted, wanted), logarithms, wanted)


@names_itself
@in_wide
def cross_entropy(logits: ArrayLike, labels: ArrayLike, /, *, axis: int = -1, weights: ArrayLike | None = None,
                  label_smoothing: float = 0.0, ignore_index: int | None = IGNORED, reduction: str = "mean") -> Tensor:
    """-log softmax(logits)[label]; the classes are along an axis of the logits.

    Labels are integers, without that axis, or probabilities of all classes.  `label_smoothing` gives that share of each
    row to all classes alike.  `weights` has a number for each class.  Rows whose label is `ignore_index` cost nothing
    and do not count.  Another label that is no class is an OutOfRangeError where labels lie in the host's memory when
    the loss is computed eagerly, and everywhere if `config.check_indices` is on; elsewhere (recorded, compiled, on
    devices with a memory of their own) its row costs nothing and does not count either.  reduction "mean" (weighted,
    over the rows that count; NaN, whose gradients are 0, if none does), "sum" or "none".
    """
    return _loss_of_logits(_task(logits, labels, axis, weights, label_smoothing, ignore_index, reduction))


@names_itself
@in_wide
def categorical_cross_entropy(probabilities: ArrayLike, labels: ArrayLike, /, *, axis: int = -1,
                              weights: ArrayLike | None = None, label_smoothing: float = 0.0,
                              ignore_index: int | None = IGNORED, reduction: str = "mean") -> Tensor:
    """`cross_entropy` of what is a probability already: -log p[label]."""
    return _loss_of_probabilities(
        _task(probabilities, labels, axis, weights, label_smoothing, ignore_index, reduction))


@names_itself
@in_wide
def nll_loss(log_probabilities: ArrayLike, labels: ArrayLike, /, *, axis: int = -1, weights: ArrayLike | None = None,
             ignore_index: int | None = IGNORED, reduction: str = "mean") -> Tensor:
    """`cross_entropy` of logarithms of probabilities: -log_probabilities[label]."""
    return _loss_of_logarithms(_task(log_probabilities, labels, axis, weights, 0.0, ignore_index, reduction))


# ---- two classes
def _pair(predicted: ArrayLike, target: ArrayLike,
          *others: ArrayLike | None) -> tuple[Value, Value, list[Value | None]]:
    """The target and the others in the prediction's dtype."""
    stack = stack_of((predicted, target))
    v, y = as_inexact(as_value(predicted, stack)), as_value(target, stack)
    if y.shape != v.shape:
        raise ShapeError(f"the target {y.spec} should have the shape of {v.spec}")
    return v, _as_dtype(y, v.dtype), [None if x is None else _fitting(as_like(x, v), v) for x in others]


def _as_dtype(v: Value, dtype: DType) -> Value:
    return v if v.dtype == dtype else F.cast(v, dtype=dtype)


def _fitting(w: Value, v: Value) -> Value:
    if broadcast(w.shape, v.shape) != v.shape:
        raise ShapeError(f"the weights {w.spec} do not broadcast to {v.shape}")
    return _as_dtype(w, v.dtype)


def _weighted(losses: Value, weights: Value | None) -> Value:
    return losses if weights is None else F.multiply(losses, weights)


@names_itself
@as_one
@in_wide
def binary_cross_entropy(probabilities: ArrayLike, target: ArrayLike, /, *, weights: ArrayLike | None = None,
                         pos_weight: ArrayLike | None = None, reduction: str = "mean") -> Tensor:
    """-(target * log(p) + (1 - target) * log(1 - p)) for targets in [0, 1]; infinite where p rules out what is so.

    `pos_weight` multiplies the first term, `weights` both; they are broadcast.  reduction "mean", "sum" or "none".
    """
    check_reduction(reduction)
    p, y, (w, positive) = _pair(probabilities, target, weights, pos_weight)
    yes = _weighted(F.xlogy(y, p), positive)
    return reduced(_weighted(F.negative(F.add(yes, F.xlog1py(F.subtract(1.0, y), F.negative(p)))), w), reduction)


@names_itself
@as_one
@in_wide
def binary_cross_entropy_with_logits(logits: ArrayLike, target: ArrayLike, /, *, weights: ArrayLike | None = None,
                                     pos_weight: ArrayLike | None = None, reduction: str = "mean") -> Tensor:
    """`binary_cross_entropy` of sigmoid(logits), exact however large they are."""
    check_reduction(reduction)
    x, y, (w, positive) = _pair(logits, target, weights, pos_weight)
    no = F.multiply(F.subtract(1.0, y), F.softplus(x))  # both terms are positive: nothing cancels
    yes = F.multiply(_weighted(y, positive), F.softplus(F.negative(x)))
    return reduced(_weighted(F.add(no, yes), w), reduction)
