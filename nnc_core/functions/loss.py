"""Losses of regression, of distances and margins, and between distributions."""

from __future__ import annotations

from math import log, pi

from nnc_core.base.errors import AttributeValueError, ShapeError
from nnc_core.functions.classification import check_reduction, reduced
from nnc_core.functions.floats import as_like, in_wide
from nnc_core.functions.reduction import all_inexact, as_inexact
from nnc_core.shape.axes import normalise_axis
from nnc_core.shape.elementwise import broadcast
from nnc_core.values.arguments import ArrayLike, as_value_beside, as_values, names_itself
from nnc_core.values.as_one import as_one
from nnc_core.values.dispatch import F
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

__all__ = [
    "cosine_embedding_loss", "cosine_similarity", "gaussian_nll_loss", "hinge_embedding_loss", "hinge_loss",
    "huber_loss", "kl_div", "l1_loss", "margin_ranking_loss", "mse_loss", "pairwise_distance", "poisson_nll_loss",
    "smooth_l1_loss", "triplet_margin_loss",
]  # fmt: skip


def _alike(x: ArrayLike, target: ArrayLike) -> tuple[Value, Value]:
    """Floats of one shape: a target that would be broadcast is most often a mistake."""
    v, y = all_inexact(as_values(x, target))
    if v.shape != y.shape:
        raise ShapeError(f"{v.spec} and {y.spec} differ in shape", hint="reshape or broadcast one of them")
    return v, y


def _check_fits(what: str, other: Value, v: Value) -> None:
    """Other numbers for the elements of v are one for all, or have axes of v's length or 1: none is left out, which
    would put those of rows to columns."""
    if other.ndim not in (0, v.ndim) or broadcast(other.shape, v.shape) != v.shape:
        raise ShapeError(f"the {what} {other.spec} does not broadcast to {v.spec}, axis by axis",
                         hint="reshape it: axes of length 1 are broadcast")


def _positive(**given: float) -> None:
    for name, number in given.items():
        if not number > 0:
            raise AttributeValueError(f"{name} is {number}, expected a positive number")


# ---- regression
@names_itself
@as_one
@in_wide
def mse_loss(x: ArrayLike, target: ArrayLike, /, *, reduction: str = "mean") -> Tensor:
    """(x - target)**2 of two arrays of one shape; reduction "mean" and "sum" give a scalar, "none" that shape.

    Raises ShapeError where shapes differ: nothing is broadcast.
    """
    check_reduction(reduction)
    d = F.subtract(*_alike(x, target))
    return reduced(F.multiply(d, d), reduction)


@names_itself
@as_one
@in_wide
def l1_loss(x: ArrayLike, target: ArrayLike, /, *, reduction: str = "mean") -> Tensor:
    """|x - target|; reduction "mean", "sum" or "none"."""
    check_reduction(reduction)
    return reduced(F.abs(F.subtract(*_alike(x, target))), reduction)


def _huber(d: Value, delta: float) -> Value:
    """d**2 / 2 up to delta, a straight line from there; one formula, so that nothing large is squared."""
    near = F.clip(d, -delta, delta)
    return F.multiply(near, F.subtract(d, F.multiply(near, 0.5)))


@names_itself
@as_one
@in_wide
def huber_loss(x: ArrayLike, target: ArrayLike, /, *, delta: float = 1.0, reduction: str = "mean") -> Tensor:
    """d**2 / 2 where |d| <= delta, delta * (|d| - delta / 2) elsewhere, for d = x - target."""
    check_reduction(reduction)
    _positive(delta=delta)
    return reduced(_huber(F.subtract(*_alike(x, target)), delta), reduction)


@names_itself
@as_one
@in_wide
def smooth_l1_loss(x: ArrayLike, target: ArrayLike, /, *, beta: float = 1.0, reduction: str = "mean") -> Tensor:
    """`huber_loss` with delta = beta, divided by it; `l1_loss` for beta 0."""
    check_reduction(reduction)
    if beta == 0:
        return l1_loss(x, target, reduction=reduction)
    _positive(beta=beta)
    return reduced(F.divide(_huber(F.subtract(*_alike(x, target)), beta), beta), reduction)


@names_itself
@as_one
@in_wide
def poisson_nll_loss(x: ArrayLike, target: ArrayLike, /, *, log_input: bool = True, full: bool = False,
                     epsilon: float = 1e-8, reduction: str = "mean") -> Tensor:
    """Minus the logarithm of the probability of `target` events where exp(x) are expected, or x without `log_input`,
    but for what does not depend on x; `full` adds Stirling's approximation of that for targets above 1."""
    check_reduction(reduction)
    v, y = _alike(x, target)
    if log_input:
        loss = F.subtract(F.exp(v), F.multiply(y, v))
    else:
        loss = F.subtract(v, F.multiply(y, F.log(F.add(v, epsilon))))
    if full:
        several = F.greater(y, 1)
        n = F.where(several, y, 1)
        stirling = F.add(F.subtract(F.multiply(n, F.log(n)), n), F.multiply(F.log(F.multiply(n, 2 * pi)), 0.5))
        loss = F.add(loss, F.where(several, stirling, 0))
    return reduced(loss, reduction)


@names_itself
@as_one
@in_wide
def gaussian_nll_loss(x: ArrayLike, target: ArrayLike, variance: ArrayLike, /, *, full: bool = False,
                      epsilon: float = 1e-6, reduction: str = "mean") -> Tensor:
    """(log(variance) + (x - target)**2 / variance) / 2, with the variance held at `epsilon` from below, for values and
    not for derivatives; `full` adds log(2 pi) / 2."""
    check_reduction(reduction)
    _positive(epsilon=epsilon)
    v, y = _alike(x, target)
    w = as_inexact(as_like(variance, v))
    _check_fits("variance", w, v)
    w = F.add(w, F.stop_gradient(F.subtract(F.maximum(w, epsilon), w)))
    d = F.subtract(v, y)
    loss = F.multiply(F.add(F.log(w), F.divide(F.multiply(d, d), w)), 0.5)
    return reduced(F.add(loss, 0.5 * log(2 * pi)) if full else loss, reduction)


@names_itself
@as_one
@in_wide
def kl_div(x: ArrayLike, target: ArrayLike, /, *, log_target: bool = False, reduction: str = "mean") -> Tensor:
    """target * (log(target) - x), 0 where the target is: how far the probabilities `target` are from exp(x).

    With `log_target` both are logarithms.  Besides "mean", "sum" and "none" there is the reduction "batchmean": the sum
    divided by the length of the first axis.
    """
    v, y = _alike(x, target)
    if reduction != "batchmean":
        check_reduction(reduction)
    elif not v.ndim:
        raise ShapeError(f"{v.spec} has no first axis to take the mean over")
    weight = F.exp(y) if log_target else y
    nothing = F.equal(weight, 0)
    loss = F.multiply(weight, F.where(nothing, 0, F.subtract(y if log_target else F.log(F.where(nothing, 1, y)), v)))
    if reduction == "batchmean":
        return Tensor(F.mean(F.sum(loss, axis=tuple(range(1, loss.ndim))), axis=(0,)))
    return reduced(loss, reduction)


# ---- margins
@names_itself
@as_one
@in_wide
def hinge_loss(x: ArrayLike, target: ArrayLike, /, *, margin: float = 1.0, reduction: str = "mean") -> Tensor:
    """max(0, margin - target * x) for targets -1 and 1."""
    check_reduction(reduction)
    v, y = _alike(x, target)
    return reduced(F.relu(F.subtract(margin, F.multiply(v, y))), reduction)


@names_itself
@as_one
@in_wide
def hinge_embedding_loss(x: ArrayLike, target: ArrayLike, /, *, margin: float = 1.0, reduction: str = "mean") -> Tensor:
    """The distance x where the target is 1, max(0, margin - x) where it is -1."""
    check_reduction(reduction)
    v, y = _alike(x, target)
    return reduced(F.where(F.greater(y, 0), v, F.relu(F.subtract(margin, v))), reduction)


@names_itself
@as_one
@in_wide
def margin_ranking_loss(x1: ArrayLike, x2: ArrayLike, target: ArrayLike, /, *, margin: float = 0.0,
                        reduction: str = "mean") -> Tensor:
    """max(0, margin - target * (x1 - x2)): x1 should be larger by the margin where the target is 1, smaller for -1."""
    check_reduction(reduction)
    a, b = _alike(x1, x2)
    y = as_inexact(as_like(target, a))
    _check_fits("target", y, a)
    return reduced(F.relu(F.subtract(margin, F.multiply(F.subtract(a, b), y))), reduction)


# ---- distances
def _cosine(a: Value, b: Value, axis: int, epsilon: float) -> Value:
    """Each norm is held at epsilon from below."""
    sizes = [F.maximum(F.vector_norm(u, axis=(axis,), ord=2.0, keepdims=False), epsilon) for u in (a, b)]
    return F.divide(F.divide(F.sum(F.multiply(a, b), axis=(axis,)), sizes[0]), sizes[1])


@names_itself
@as_one
@in_wide
def cosine_similarity(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1, epsilon: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along an axis; 0 for a vector of zeros.  The axes are broadcast."""
    a, b = all_inexact(as_values(x1, x2))
    shape = broadcast(a.shape, b.shape)
    a, b = (u if u.shape == shape else F.broadcast_to(u, shape=shape) for u in (a, b))
    return Tensor(_cosine(a, b, normalise_axis(axis, a.ndim), epsilon))


def _distance(a: Value, b: Value, p: float, epsilon: float, keepdims: bool = False) -> Value:
    d = F.add(F.subtract(a, b), epsilon)
    return F.vector_norm(d, axis=(d.ndim - 1,), ord=float(p), keepdims=keepdims)


@names_itself
@as_one
@in_wide
def pairwise_distance(x1: ArrayLike, x2: ArrayLike, /, *, p: float = 2.0, epsilon: float = 1e-6,
                      keepdims: bool = False) -> Tensor:
    """The p-norm of x1 - x2 + epsilon along the last axis."""
    a, b = all_inexact(as_values(x1, x2))
    return Tensor(_distance(a, b, p, epsilon, keepdims))


@names_itself
@as_one
@in_wide
def cosine_embedding_loss(x1: ArrayLike, x2: ArrayLike, target: ArrayLike, /, *, margin: float = 0.0,
                          reduction: str = "mean") -> Tensor:
    """1 - cos(x1, x2) where the target is 1, max(0, cos(x1, x2) - margin) where it is -1; vectors are along the last
    axis, which the target has not."""
    check_reduction(reduction)
    a, b = _alike(x1, x2)
    y = as_value_beside(target, a)
    if y.shape != a.shape[:-1]:
        raise ShapeError(f"the target is {y.spec}, expected a number for each vector of {a.spec}")
    cosine = _cosine(a, b, a.ndim - 1, 1e-8)
    return reduced(F.where(F.greater(y, 0), F.subtract(1.0, cosine), F.relu(F.subtract(cosine, margin))), reduction)


@names_itself
@as_one
@in_wide
def triplet_margin_loss(anchor: ArrayLike, positive: ArrayLike, negative: ArrayLike, /, *, margin: float = 1.0,
                        p: float = 2.0, epsilon: float = 1e-6, swap: bool = False, reduction: str = "mean") -> Tensor:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), with d of `pairwise_distance`; with `swap` the
    negative is held against the nearer of anchor and positive (Balntas et al. 2016)."""
    check_reduction(reduction)
    a, b, c = all_inexact(as_values(anchor, positive, negative))
    if not a.ndim == b.ndim == c.ndim:
        raise ShapeError(f"{a.spec}, {b.spec} and {c.spec} differ in their number of axes",
                         hint="reshape them: axes of length 1 are broadcast")
    near, far = _distance(a, b, p, epsilon), _distance(a, c, p, epsilon)
    far = F.minimum(far, _distance(b, c, p, epsilon)) if swap else far
    return reduced(F.relu(F.add(F.subtract(near, far), margin)), reduction)
