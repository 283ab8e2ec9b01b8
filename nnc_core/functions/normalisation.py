"""Normalisations of arrays, and of weights.

float16 and bfloat16 are computed in float32; results have the dtype of x, whatever that of scales and biases.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from nnc_core.base.dtype import accumulator
from nnc_core.base.errors import OperandError, ShapeError
from nnc_core.functions.floats import in_wide
from nnc_core.functions.pieces import cut
from nnc_core.functions.reduction import all_inexact, as_inexact
from nnc_core.shape.axes import normalise_axes, normalise_axis
from nnc_core.type import whole
from nnc_core.values.arguments import ArrayLike, Axis, as_value, as_values, count_of, names_itself, stack_of
from nnc_core.values.as_one import as_one
from nnc_core.values.dispatch import F
from nnc_core.values.repetition import by_shapes
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

__all__ = [
    "batch_norm", "batch_norm_training", "group_norm", "instance_norm", "layer_norm", "local_response_norm",
    "normalise", "rms_norm", "spectral_norm", "weight_norm",
]  # fmt: skip


class BatchNorm(NamedTuple):
    """The result, and the batch's moments for each channel: the variance divided by the count, without correction."""

    output: Tensor
    mean: Tensor
    variance: Tensor


class SpectralNorm(NamedTuple):
    """The weight divided by its largest singular value, the vector to go on with, and that value."""

    weight: Tensor
    vector: Tensor
    value: Tensor


def _operands(x: ArrayLike, *parts: ArrayLike | None) -> tuple[Value, list[Value | None]]:
    """x as floats, the others on its device."""
    stack = stack_of((x, *parts))
    return as_inexact(as_value(x, stack)), [None if p is None else as_value(p, stack) for p in parts]


def _wide(v: Value) -> Value:
    wide = accumulator(v.dtype)
    return v if wide == v.dtype else F.cast(v, dtype=wide)


def _others(axes: Sequence[int], ndim: int) -> tuple[int, ...]:
    return tuple(a for a in range(ndim) if a not in axes)


def _shaped(part: Value, what: str, x: Value, axes: Sequence[int]) -> Value:
    """A part with the lengths of some axes of x, ready to be broadcast to x."""
    lengths = tuple(x.shape[a] for a in axes)
    if part.shape != lengths:
        raise ShapeError(f"the {what} is {part.spec}, expected shape {lengths}: axes {tuple(axes)} of {x.spec}")
    return F.reshape(_wide(part), shape=tuple(d if a in axes else 1 for a, d in enumerate(x.shape)))


def _affine(y: Value, scale: Value | None, bias: Value | None, x: Value, axes: Sequence[int]) -> Tensor:
    """y * scale + bias, in the dtype of x."""
    if scale is not None:
        y = F.multiply(y, _shaped(scale, "scale", x, axes))
    if bias is not None:
        y = F.add(y, _shaped(bias, "bias", x, axes))
    return Tensor(y if y.dtype == x.dtype else F.cast(y, dtype=x.dtype))


def _check_spread(v: Value, axes: Sequence[int], what: str) -> None:
    """ShapeError where each mean would be of one element, and so all results zero: PyTorch's rule."""
    lengths = [v.shape[a] for a in axes]
    if all(isinstance(n, int) and n == 1 for n in lengths):
        raise ShapeError(f"{v.spec} has one value for each {what}, which has no variance",
                         hint="more values to normalise over, or layer_norm over the channels")


# ---- over the batch
@names_itself
@as_one
def batch_norm(x: ArrayLike, mean: ArrayLike, variance: ArrayLike, scale: ArrayLike | None = None,
               bias: ArrayLike | None = None, /, *, axis: int = -1, epsilon: float = 1e-5) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon) * scale + bias, with a number of each for each channel, along an axis:
    batch normalisation by moments that are known (Ioffe and Szegedy 2015)."""
    v, (m, s, a, b) = _operands(x, mean, variance, scale, bias)
    at = normalise_axis(axis, v.ndim)
    if m is None or s is None:
        raise OperandError(f"the {'mean' if m is None else 'variance'} is None, expected an array",
                           hint="batch_norm_training takes those of x")
    ones = F.full_like(m, 1) if a is None else a
    zeros = F.zeros_like(m) if b is None else b
    return Tensor(F.batch_norm(v, m, s, ones, zeros, axis=at, epsilon=float(epsilon)))


@names_itself
@as_one
def batch_norm_training(x: ArrayLike, scale: ArrayLike | None = None, bias: ArrayLike | None = None, /, *,
                        axis: int = -1, epsilon: float = 1e-5) -> BatchNorm:
    """Batch normalisation by the moments of x over all axes but that of the channels, which are given as well.

    Gradients go through the output; the moments are what a module keeps running averages of, and constants to
    differentiation.
    """
    v, (a, b) = _operands(x, scale, bias)
    at = normalise_axis(axis, v.ndim)
    axes = _others((at,), v.ndim)
    _check_spread(v, axes, "channel")
    y = _affine(F.standardise(_wide(v), axis=axes, epsilon=float(epsilon)), a, b, v, (at,))
    still = _wide(F.stop_gradient(v))
    return BatchNorm(y, Tensor(F.mean(still, axis=axes)), Tensor(F.var(still, axis=axes, correction=0.0)))


# ---- within examples
@by_shapes
@names_itself
@as_one
def layer_norm(x: ArrayLike, scale: ArrayLike | None = None, bias: ArrayLike | None = None, /, *, axis: Axis = -1,
               epsilon: float = 1e-5) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon) over axes, times the scale, plus the bias, which have the shape of these
    axes (Ba, Kiros and Hinton 2016)."""
    v, (a, b) = _operands(x, scale, bias)
    axes = normalise_axes(axis, v.ndim)
    return _affine(F.standardise(_wide(v), axis=axes, epsilon=float(epsilon)), a, b, v, axes)


@by_shapes
@names_itself
@as_one
def rms_norm(x: ArrayLike, scale: ArrayLike | None = None, /, *, axis: Axis = -1, epsilon: float = 1e-6) -> Tensor:
    """x / sqrt(mean(x * x) + epsilon) over axes, times the scale (Zhang and Sennrich 2019)."""
    v, (a,) = _operands(x, scale)
    axes = normalise_axes(axis, v.ndim)
    return _affine(F.rms_normalise(_wide(v), axis=axes, epsilon=float(epsilon)), a, None, v, axes)


@by_shapes
@names_itself
@as_one
def group_norm(x: ArrayLike, groups: int, scale: ArrayLike | None = None, bias: ArrayLike | None = None, /, *,
               axis: int = -1, epsilon: float = 1e-5) -> Tensor:
    """Each group of channels of an example made mean 0 and variance 1; a scale and a bias for each channel, which are
    along an axis; the first axis is the batch (Wu and He 2018).

    A single value, of one example and one group's channel, is an error, as in PyTorch."""
    v, (a, b) = _operands(x, scale, bias)
    at = normalise_axis(axis, v.ndim)
    channels = v.shape[at]
    if at == 0 or whole(groups, "groups") < 1 or (isinstance(channels, int) and channels % groups):
        raise ShapeError(f"the channels, axis {at} of {v.spec}, cannot be taken in {groups} groups",
                         hint="the first axis is the batch" if at == 0 else None)
    if channels == groups:
        _check_spread(v, _others((at,), v.ndim), "group of channels")
    split = F.reshape(_wide(v), shape=(*v.shape[:at], groups, channels // groups, *v.shape[at + 1 :]))
    y = F.standardise(split, axis=_others((0, at), split.ndim), epsilon=float(epsilon))
    return _affine(F.reshape(y, shape=v.shape), a, b, v, (at,))


@by_shapes
@names_itself
@as_one
def instance_norm(x: ArrayLike, scale: ArrayLike | None = None, bias: ArrayLike | None = None, /, *, axis: int = -1,
                  epsilon: float = 1e-5) -> Tensor:
    """Each channel of each example made mean 0 and variance 1: `group_norm` with as many groups as channels.

    One value for each channel is an error, as in PyTorch."""
    v, (a, b) = _operands(x, scale, bias)
    at = normalise_axis(axis, v.ndim)
    if at == 0:
        raise ShapeError(f"axis 0 of {v.spec} is the batch, not the channels")
    _check_spread(v, _others((0, at), v.ndim), "channel")
    y = F.standardise(_wide(v), axis=_others((0, at), v.ndim), epsilon=float(epsilon))
    return _affine(y, a, b, v, (at,))


@names_itself
@in_wide
def local_response_norm(x: ArrayLike, /, size: int, *, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0,
                        axis: int = -1) -> Tensor:
    """x / (k + alpha * m)**beta, with m the mean of squares over `size` neighbours along the channels' axis, which is
    filled up with zeros: size // 2 of them before (Krizhevsky et al. 2012)."""
    size = whole(size, "size", 1)
    v = as_inexact(as_value(x))
    at = normalise_axis(axis, v.ndim)
    low, high = (tuple(n if i == at else 0 for i in range(v.ndim)) for n in (size // 2, (size - 1) // 2))
    squares = F.pad(F.multiply(v, v), low=low, high=high, interior=(0,) * v.ndim)
    total = cut(squares, at, 0, v.shape[at])
    for first in range(1, size):
        total = F.add(total, cut(squares, at, first, v.shape[at] + first))
    return Tensor(F.divide(v, F.power(F.add(F.multiply(total, alpha / size), k), beta)))


@names_itself
@in_wide
def normalise(x: ArrayLike, /, *, p: float = 2.0, axis: Axis = -1, epsilon: float = 1e-12) -> Tensor:
    """x divided by its p-norm over axes, which is held at `epsilon` from below."""
    v = as_inexact(as_value(x))
    norm = F.vector_norm(v, axis=normalise_axes(axis, v.ndim), ord=float(p), keepdims=True)
    return Tensor(F.divide(v, F.maximum(norm, epsilon)))


# ---- weights
@names_itself
def weight_norm(direction: ArrayLike, size: ArrayLike, /, *, axis: int | None = -1) -> Tensor:
    """size * direction / |direction|, with a norm for each index of an axis, or one for all without an axis (Salimans
    and Kingma 2016); `size` has a number for each norm."""
    v, g = all_inexact(as_values(direction, size))
    at = () if axis is None else (normalise_axis(axis, v.ndim),)
    norm = F.vector_norm(v, axis=_others(at, v.ndim), ord=2.0, keepdims=True)
    return Tensor(F.multiply(F.divide(v, norm), _shaped(g, "size", v, at)))


def _unit(v: Value, epsilon: float) -> Value:
    return F.divide(v, F.maximum(F.vector_norm(v, axis=(0,), ord=2.0, keepdims=True), epsilon))


def _times(matrix: Value, vector: Value) -> Value:
    column = F.reshape(vector, shape=(vector.shape[0], 1))
    return F.reshape(F.matmul(matrix, column), shape=(matrix.shape[0],))


@names_itself
def spectral_norm(weight: ArrayLike, vector: ArrayLike, /, *, axis: int = -1, iterations: int = 1,
                  epsilon: float = 1e-12) -> SpectralNorm:
    """A weight divided by the largest singular value of the matrix (index of the axis, all others), found by power
    iteration from a vector with an element for each index of the axis (Miyato et al. 2018).

    The iteration is constant to differentiation, the value is not.  No iterations take the vector as it is.
    """
    w, u = all_inexact(as_values(weight, vector))
    at = normalise_axis(axis, w.ndim)
    if u.shape != (w.shape[at],) or iterations < 0:
        raise ShapeError(f"a vector {u.spec} and {iterations} iterations, expected one of {w.shape[at]} elements, and "
                         "at least 0 iterations")
    matrix = _matrix(w, at)
    still, back = F.stop_gradient(matrix), F.stop_gradient(F.permute(matrix, axes=(1, 0)))
    u = F.stop_gradient(u)
    for _ in range(iterations):
        u = _unit(_times(still, _unit(_times(back, u), epsilon)), epsilon)
    v = _unit(_times(back, u), epsilon)
    value = F.sum(F.multiply(u, _times(matrix, v)), axis=(0,))
    return SpectralNorm(Tensor(F.divide(w, value)), Tensor(u), Tensor(value))


def _matrix(w: Value, at: int) -> Value:
    order = (at, *_others((at,), w.ndim))
    turned = w if order == tuple(range(w.ndim)) else F.permute(w, axes=order)
    return F.reshape(turned, shape=(w.shape[at], count_of(turned.shape[1:])))

