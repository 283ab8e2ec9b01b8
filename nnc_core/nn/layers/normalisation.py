"""Layers that normalise: over the batch, within examples, and over neighbouring channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nnc_core.base.dtype import accumulator
from nnc_core.base.errors import AttributeValueError, NotSupportedError
from nnc_core.functions.creation import ones, zeros
from nnc_core.functions.normalisation import (
    batch_norm,
    batch_norm_training,
    group_norm,
    instance_norm,
    layer_norm,
    local_response_norm,
    rms_norm,
)
from nnc_core.nn.layers.checks import Int, at_least_one, check_length, float_dtype, misfit, title, within
from nnc_core.nn.layers.settings import settings
from nnc_core.nn.module import Module
from nnc_core.nn.parameter import Parameter
from nnc_core.recording.symbols import SYMBOLS
from nnc_core.values.cell import Cell
from nnc_core.values.tensor import Tensor

__all__ = ["BatchNorm", "GroupNorm", "InstanceNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]

Read = Tensor | None


class _Affine(Module):
    """A scale and a bias, ones and zeros at first, or neither."""

    scale: Parameter | None
    bias: Parameter | None

    def _set_affine(self, shape: int | tuple[int, ...], affine: bool, epsilon: float, dtype: Any) -> None:
        kind = type(self).__name__
        within(kind, 0, float("inf"), epsilon=epsilon)
        self.affine, self.epsilon = affine, epsilon
        made = float_dtype(kind, dtype)
        self.scale = Parameter(ones(shape, dtype=made)) if affine else None
        self.bias = Parameter(zeros(shape, dtype=made)) if affine else None

    def _read(self) -> tuple[Read, Read]:
        return (None if self.scale is None else self.scale.read(), None if self.bias is None else self.bias.read())


# ---- over the batch
class BatchNorm(_Affine):
    """Every channel made mean 0 and variance 1, times `scale` plus `bias` (Ioffe and Szegedy 2015); any number of
    dimensions, the channels along `axis` (1 for layouts with channels first).

    In training by the moments of the batch, which also move the running ones, in every mode:
    running = momentum * running + (1 - momentum) * batch, with the variance divided by the count, as ONNX, NNC and
    Owl have it (PyTorch's momentum is 1 minus this one).  In evaluation by the running moments.  scale, bias,
    running_mean and running_variance (channels,); the last two are buffers, float32 for weights of 16 bits.
    """

    def __init__(self, channels: int, axis: int = -1, momentum: float = 0.9, epsilon: float = 1e-5,
                 affine: bool = True, *, dtype: Any = None) -> None:
        at_least_one("BatchNorm", channels=channels)
        within("BatchNorm", 0, 1 + 2**-52, momentum=momentum)
        self.channels, self.axis, self.momentum = channels, axis, momentum
        self._set_affine(channels, affine, epsilon, dtype)
        kept = accumulator(float_dtype("BatchNorm", dtype))
        self.running_mean, self.running_variance = Cell(zeros(channels, dtype=kept)), Cell(ones(channels, dtype=kept))

    def forward(self, x: Tensor) -> Tensor:
        """The same shape and dtype as x."""
        check_length(self, x, self.axis, self.channels, "channels")
        scale, bias = self._read()
        if not self.training:
            return batch_norm(x, self.running_mean.read(), self.running_variance.read(), scale, bias, axis=self.axis,
                              epsilon=self.epsilon)
        self._check_moments(x)
        y, mean, variance = batch_norm_training(x, scale, bias, axis=self.axis, epsilon=self.epsilon)
        self._move(self.running_mean, mean)
        self._move(self.running_variance, variance)
        return y

    def _check_moments(self, x: Tensor) -> None:
        if any(isinstance(n, int) and n == 0 for n in x.shape):
            raise misfit(self, x, "an empty batch, which has no mean", hint="layer.eval(), or leave the batch out")
        if _is_one([n for i, n in enumerate(x.shape) if i != self.axis % x.ndim]):
            raise misfit(self, x, "one value for each channel, which has no variance in training",
                         hint="layer.eval(), or more examples in a batch")
        if x._value.trace is SYMBOLS:
            raise NotSupportedError("the running statistics of an assigned symbol are not known", operator=title(self),
                                    hint="layer.eval(), or nnc.jit, which carries them from call to call")

    def _move(self, running: Cell, batch: Tensor) -> None:
        dtype = running.spec.dtype
        now = batch if batch.dtype == dtype else batch.astype(dtype)
        running.write(running.read() * self.momentum + now * (1 - self.momentum))

    def describe(self) -> str:
        return settings(self, "channels", "axis", "momentum", "epsilon", "affine")


def _is_one(sizes: Sequence[Any]) -> bool:
    """Tell whether axes of these sizes, as far as they are known, hold one element."""
    return all(isinstance(n, int) and n == 1 for n in sizes)


# ---- within examples
class _TrailingNorm(_Affine):
    """Norms over the last axes, whose lengths are `shape`."""

    def _set_shape(self, shape: Int) -> None:
        self.shape = (shape,) if isinstance(shape, int) else tuple(shape)
        at_least_one(type(self).__name__, **{f"shape[{i}]": n for i, n in enumerate(self.shape)})
        if not self.shape:
            raise AttributeValueError("shape is empty, expected the lengths of the last axes",
                                      operator=type(self).__name__)

    def _checked_axes(self, x: Tensor) -> tuple[int, ...]:
        axes = tuple(range(-len(self.shape), 0))
        for axis, length in zip(axes, self.shape, strict=True):
            check_length(self, x, axis, length, "length")
        return axes

    def describe(self) -> str:
        return settings(self, "shape", "epsilon", "affine")


class LayerNorm(_TrailingNorm):
    """Each example made mean 0 and variance 1 over its last axes, times `scale` plus `bias`, which have the shape of
    these axes (Ba, Kiros and Hinton 2016): (..., *shape) -> (..., *shape).  Without `bias` there is the scale alone."""

    def __init__(self, shape: Int, epsilon: float = 1e-5, affine: bool = True, bias: bool = True, *,
                 dtype: Any = None) -> None:
        self._set_shape(shape)
        self._set_affine(self.shape, affine, epsilon, dtype)
        if not bias:
            self.bias = None

    def describe(self) -> str:
        alone = self.affine and self.bias is None
        return super().describe() + ", bias=False" * alone

    def forward(self, x: Tensor) -> Tensor:
        """The same shape and dtype as x."""
        axes = self._checked_axes(x)
        return layer_norm(x, *self._read(), axis=axes, epsilon=self.epsilon)


class RMSNorm(_TrailingNorm):
    """x / sqrt(mean(x * x) + epsilon) over the last axes, times `scale`, which has the shape of these axes (Zhang and
    Sennrich 2019): (..., *shape) -> (..., *shape)."""

    def __init__(self, shape: Int, epsilon: float = 1e-6, affine: bool = True, *, dtype: Any = None) -> None:
        self._set_shape(shape)
        self._set_affine(self.shape, affine, epsilon, dtype)
        self.bias = None

    def forward(self, x: Tensor) -> Tensor:
        """The same shape and dtype as x."""
        axes = self._checked_axes(x)
        return rms_norm(x, self._read()[0], axis=axes, epsilon=self.epsilon)


class GroupNorm(_Affine):
    """Each group of channels of an example made mean 0 and variance 1, times `scale` plus `bias`, which have a number
    for each channel (Wu and He 2018).

    The first axis is the batch, the channels are along `axis` (1 for layouts with channels first).
    """

    def __init__(self, groups: int, channels: int, axis: int = -1, epsilon: float = 1e-5, affine: bool = True, *,
                 dtype: Any = None) -> None:
        at_least_one("GroupNorm", groups=groups, channels=channels)
        if channels % groups:
            raise AttributeValueError(f"{channels} channels do not divide into {groups} groups", operator="GroupNorm")
        self.groups, self.channels, self.axis = groups, channels, axis
        self._set_affine(channels, affine, epsilon, dtype)

    def forward(self, x: Tensor) -> Tensor:
        """The same shape and dtype as x."""
        check_length(self, x, self.axis, self.channels, "channels")
        return group_norm(x, self.groups, *self._read(), axis=self.axis, epsilon=self.epsilon)

    def describe(self) -> str:
        return settings(self, "groups", "channels", "axis", "epsilon", "affine")


class InstanceNorm(_Affine):
    """Each channel of each example made mean 0 and variance 1, times `scale` plus `bias`: `GroupNorm` with as many
    groups as channels (Ulyanov, Vedaldi and Lempitsky 2016)."""

    def __init__(self, channels: int, axis: int = -1, epsilon: float = 1e-5, affine: bool = True, *,
                 dtype: Any = None) -> None:
        at_least_one("InstanceNorm", channels=channels)
        self.channels, self.axis = channels, axis
        self._set_affine(channels, affine, epsilon, dtype)

    def forward(self, x: Tensor) -> Tensor:
        """The same shape and dtype as x."""
        check_length(self, x, self.axis, self.channels, "channels")
        return instance_norm(x, *self._read(), axis=self.axis, epsilon=self.epsilon)

    def describe(self) -> str:
        return settings(self, "channels", "axis", "epsilon", "affine")


# ---- over neighbouring channels
class LocalResponseNorm(Module):
    """x / (k + alpha * m)**beta, with m the mean of squares over `size` neighbouring channels, which are along `axis`
    and filled up with zeros (Krizhevsky et al. 2012)."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0, axis: int = -1) -> None:
        at_least_one("LocalResponseNorm", size=size)
        self.size, self.alpha, self.beta, self.k, self.axis = size, alpha, beta, k, axis

    def forward(self, x: Tensor) -> Tensor:
        """The same shape and dtype as x."""
        return local_response_norm(x, self.size, alpha=self.alpha, beta=self.beta, k=self.k, axis=self.axis)

    def describe(self) -> str:
        return settings(self, "size", "alpha", "beta", "k", "axis")
