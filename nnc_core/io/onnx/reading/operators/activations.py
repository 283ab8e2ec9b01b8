"""Activations with settings, and softmaxes."""

from __future__ import annotations

from math import prod

from nnc_core.functions import public as nnc
from nnc_core.io.onnx.reading.registry import operator
from nnc_core.values.tensor import Tensor


@operator("LeakyRelu")
def leaky_relu(x: Tensor, *, alpha: float = 0.01, consumed_inputs: tuple[int, ...] = ()) -> Tensor:
    return nnc.leaky_relu(x, slope=alpha)


@operator("Elu")
def elu(x: Tensor, *, alpha: float = 1.0, consumed_inputs: tuple[int, ...] = ()) -> Tensor:
    return nnc.elu(x, alpha=alpha)


@operator("Celu")
def celu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return nnc.celu(x, alpha=alpha)


@operator("Selu")
def selu(x: Tensor, *, alpha: float = 1.67326319217681884765625, gamma: float = 1.05070102214813232421875,
         consumed_inputs: tuple[int, ...] = ()) -> Tensor:
    return nnc.multiply(nnc.elu(x, alpha=alpha), gamma)


@operator("PRelu", since=7)
def prelu(x: Tensor, slope: Tensor, *, consumed_inputs: tuple[int, ...] = ()) -> Tensor:
    return nnc.where(nnc.less(x, 0), nnc.multiply(x, slope), x)


@operator("PRelu")
def prelu_first(x: Tensor, slope: Tensor, *, consumed_inputs: tuple[int, ...] = ()) -> Tensor:
    """Slopes of channels, which later versions broadcast."""
    if slope.ndim == 1 and x.ndim > 2 and slope.shape[0] != 1:
        slope = nnc.reshape(slope, (-1, *[1] * (x.ndim - 2)))
    return nnc.where(nnc.less(x, 0), nnc.multiply(x, slope), x)


@operator("HardSigmoid")
def hard_sigmoid(x: Tensor, *, alpha: float = 0.2, beta: float = 0.5, consumed_inputs: tuple[int, ...] = ()) -> Tensor:
    return nnc.clip(nnc.add(nnc.multiply(x, alpha), beta), 0.0, 1.0)


@operator("ThresholdedRelu")
def thresholded_relu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return nnc.where(nnc.greater(x, alpha), x, nnc.zeros_like(x))


@operator("Shrink")
def shrink(x: Tensor, *, lambd: float = 0.5, bias: float = 0.0) -> Tensor:
    below, above = nnc.add(x, bias), nnc.subtract(x, bias)
    kept = nnc.where(nnc.greater(x, lambd), above, nnc.where(nnc.less(x, -lambd), below, nnc.zeros_like(x)))
    return nnc.astype(kept, x.dtype)


@operator("Gelu")
def gelu(x: Tensor, *, approximate: str = "none") -> Tensor:
    return nnc.gelu(x, approximate=approximate)


@operator("Swish")
def swish(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return nnc.silu(x) if alpha == 1 else nnc.multiply(x, nnc.sigmoid(nnc.multiply(x, alpha)))


# ---- softmaxes
@operator("Softmax", since=13)
def softmax(x: Tensor, *, axis: int = -1) -> Tensor:
    return nnc.softmax(x, axis=axis)


@operator("LogSoftmax", since=13)
def log_softmax(x: Tensor, *, axis: int = -1) -> Tensor:
    return nnc.log_softmax(x, axis=axis)


@operator("Hardmax", since=13)
def hardmax(x: Tensor, *, axis: int = -1) -> Tensor:
    """1 at the first maximum along the axis, 0 elsewhere."""
    best = nnc.one_hot(nnc.argmax(x, axis=axis), int(x.shape[axis]), dtype=x.dtype)
    return nnc.moveaxis(best, -1, axis)


def _as_rows(x: Tensor, axis: int) -> Tensor:
    axis = axis % max(x.ndim, 1)
    return nnc.reshape(x, (prod(x.shape[:axis]), prod(x.shape[axis:])))


@operator("Softmax")
def softmax_first(x: Tensor, *, axis: int = 1) -> Tensor:
    """Before version 13: over all axes from this one on."""
    return nnc.reshape(nnc.softmax(_as_rows(x, axis), axis=-1), x.shape)


@operator("LogSoftmax")
def log_softmax_first(x: Tensor, *, axis: int = 1) -> Tensor:
    return nnc.reshape(nnc.log_softmax(_as_rows(x, axis), axis=-1), x.shape)


@operator("Hardmax")
def hardmax_first(x: Tensor, *, axis: int = 1) -> Tensor:
    return nnc.reshape(hardmax(_as_rows(x, axis)), x.shape)
