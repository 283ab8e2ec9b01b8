"""Normalisations: by the moments of what is normalised, or by moments that are given.

Deviations are squared after the mean is taken from them (two passes), so that nothing cancels; halves are float32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic

from nnc_core.operator.declare import Base, V, op
from nnc_core.operator.wide import widely, widely_ruled
from nnc_core.shape import neural as rule

if TYPE_CHECKING:
    from nnc_core.operator import Namespace


def _mean(F: Namespace[V], x: V, axis: tuple[int, ...]) -> V:
    return F.mean(x, axis=axis, keepdims=True)


def _one_by_root(F: Namespace[V], square: V, epsilon: float) -> V:
    return F.divide(1.0, F.sqrt(F.add(square, epsilon)))


def _rate(F: Namespace[V], x: V, axis: tuple[int, ...], epsilon: float) -> V:
    """1 / sqrt(mean(x * x) + epsilon)."""
    return _one_by_root(F, _mean(F, F.multiply(x, x), axis), epsilon)


def _centred(F: Namespace[V], x: V, axis: tuple[int, ...]) -> V:
    return F.subtract(x, _mean(F, x, axis))


@widely_ruled
def _standardise_rule(F: Namespace[V], g: V, y: V, x: V, axis: tuple[int, ...], epsilon: float) -> V:
    """The Jacobian is symmetric: the same forwards and backwards."""
    along = F.multiply(y, _mean(F, F.multiply(g, y), axis))
    return F.multiply(_rate(F, _centred(F, x, axis), axis, epsilon), F.subtract(_centred(F, g, axis), along))


@widely_ruled
def _rms_rule(F: Namespace[V], g: V, y: V, x: V, axis: tuple[int, ...], epsilon: float) -> V:
    """Symmetric, too."""
    along = F.multiply(y, _mean(F, F.multiply(g, y), axis))
    return F.multiply(_rate(F, x, axis, epsilon), F.subtract(g, along))


class Normalisations(Base[V], Generic[V]):
    """`axis` is sorted, unique and non-negative; over nothing there is nothing to normalise."""

    @op(composite=True, infer=rule.along_axes,
        vjp=lambda F, g, y, x, axis, epsilon: (_standardise_rule(F, g, y, x, axis, epsilon),),
        jvp=lambda F, t, y, x, axis, epsilon: _standardise_rule(F, t[0], y, x, axis, epsilon))
    @widely
    def standardise(self, x: V, *, axis: tuple[int, ...], epsilon: float) -> V:
        """(x - mean(x)) / sqrt(var(x) + epsilon) over axes: layer, group, instance and batch norm without weights."""
        F: Any = self
        deviations = _centred(F, x, axis)
        return F.multiply(deviations, _rate(F, deviations, axis, epsilon))  # type: ignore[no-any-return]

    @op(composite=True, infer=rule.along_axes,
        vjp=lambda F, g, y, x, axis, epsilon: (_rms_rule(F, g, y, x, axis, epsilon),),
        jvp=lambda F, t, y, x, axis, epsilon: _rms_rule(F, t[0], y, x, axis, epsilon))
    @widely
    def rms_normalise(self, x: V, *, axis: tuple[int, ...], epsilon: float) -> V:
        """x / sqrt(mean(x * x) + epsilon) over axes."""
        F: Any = self
        return F.multiply(x, _rate(F, x, axis, epsilon))  # type: ignore[no-any-return]

    @op(composite=True, infer=rule.batch_norm)
    @widely
    def batch_norm(self, x: V, mean: V, variance: V, scale: V, bias: V, *, axis: int, epsilon: float) -> V:
        """(x - mean) / sqrt(variance + epsilon) * scale + bias, with a number of each for each channel."""
        F: Any = self
        shape = tuple(d if i == axis else 1 for i, d in enumerate(x.shape))
        rate = F.multiply(scale, _one_by_root(F, variance, epsilon))
        centred = F.subtract(x, F.reshape(mean, shape=shape))
        return F.add(F.multiply(centred, F.reshape(rate, shape=shape)), F.reshape(bias, shape=shape))  # type: ignore[no-any-return]
