"""Connectionist temporal classification (Graves et al. 2006), in logarithms, as one scan over time."""

from __future__ import annotations

from math import inf
from typing import Any

from nnc_core.base.dtype import int64, is_integer
from nnc_core.base.errors import DTypeError, ShapeError
from nnc_core.control.constructs import scan
from nnc_core.functions.classification import check_reduction, reduced
from nnc_core.functions.constants import beside
from nnc_core.functions.floats import in_wide
from nnc_core.functions.reduction import as_inexact
from nnc_core.operator.along import shifted, taken_along
from nnc_core.values.arguments import ArrayLike, as_value, as_value_beside, names_itself, stack_of
from nnc_core.values.dispatch import F
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

__all__ = ["ctc_loss"]


@names_itself
@in_wide
def ctc_loss(log_probabilities: ArrayLike, labels: ArrayLike, input_lengths: ArrayLike, label_lengths: ArrayLike, /, *,
             blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> Tensor:
    """Minus the logarithm of the probability of a sequence of labels, over all its alignments.

    log_probabilities (time, batch, classes), integer labels (batch, most labels) of which the first label_lengths
    (batch) count, input_lengths (batch) of at most `time`.  reduction "mean" divides each loss by its number of labels
    first; "sum"; "none".  Labels for which there is no time cost infinity, or 0, with derivative 0, if `zero_infinity`.
    """
    check_reduction(reduction)
    stack = stack_of((log_probabilities, labels, input_lengths, label_lengths))
    v = as_inexact(as_value(log_probabilities, stack))
    targets, times, counts = (_integers(x, v) for x in (labels, input_lengths, label_lengths))
    if v.ndim != 3 or targets.ndim != 2 or any(x.shape[:1] != v.shape[1:2] for x in (targets, times, counts)):
        raise ShapeError(f"{v.spec}, labels {targets.spec}, lengths {times.spec} and {counts.spec}, expected "
                         "(time, batch, classes), (batch, labels) and two (batch,)")
    losses = F.negative(_log_likelihood(v, _with_blanks(targets, blank), times, counts, blank))
    if zero_infinity:
        losses = F.where(F.equal(losses, inf), 0, losses)
    if reduction == "mean":
        losses = F.divide(losses, F.cast(F.maximum(counts, 1), dtype=losses.dtype))
    return reduced(losses, reduction)


def _integers(x: ArrayLike, like: Value) -> Value:
    v = as_value_beside(x, like)
    if not is_integer(v.dtype):
        raise DTypeError(f"labels and lengths are integers, not {v.dtype}", hint="cast with astype")
    return F.cast(v, dtype=int64)


def _with_blanks(targets: Value, blank: int) -> Value:
    """(batch, labels) as (batch, 2 labels + 1): a blank before, between and behind."""
    return F.pad(targets, low=(0, 1), high=(0, 1), interior=(0, 1), value=blank)


def _log_likelihood(v: Value, path: Value, times: Value, counts: Value, blank: int) -> Value:
    """The forward algorithm: a state for each element of the path, `alpha` the logarithm of how likely it is now.

    Before the first time all is at the first element, from where the first two can be reached.
    """
    batch, length = path.shape
    with beside(v):
        steps, places = (F.arange(size=n, dtype=int64) for n in (v.shape[0], length))
        nowhere = F.full(shape=(batch, length), value=-inf, dtype=v.dtype)
    ends = F.reshape(F.multiply(counts, 2), shape=(batch, 1))
    path = F.where(F.less_equal(places, ends), path, blank)  # what is behind the labels is never reached
    new = F.not_equal(path, shifted(F, path, 1, 2, blank))
    skips = F.logical_and(new, F.not_equal(path, blank))  # over the blank between two unlike labels
    until = F.reshape(times, shape=(batch, 1))

    def step(alpha: Tensor, given: Any) -> tuple[Tensor, None]:
        a, row, t = alpha._value, *[x._value for x in given]
        far = F.where(skips, shifted(F, a, 1, 2, -inf), -inf)
        total = F.logaddexp(F.logaddexp(a, shifted(F, a, 1, 1, -inf)), far)
        moved = F.add(total, taken_along(F, row, path, 1))
        return Tensor(F.where(F.less(t, until), moved, a)), None

    start = F.where(F.less(places, 1), 0, nowhere)
    last, _ = scan(step, Tensor(start), (Tensor(v), Tensor(steps)))
    at_blank = taken_along(F, last._value, ends, 1)
    at_label = taken_along(F, last._value, F.maximum(F.subtract(ends, 1), 0), 1)
    at_label = F.where(F.equal(ends, 0), -inf, at_label)
    return F.reshape(F.logaddexp(at_blank, at_label), shape=(batch,))
