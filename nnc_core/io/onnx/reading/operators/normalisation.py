"""Normalisations and dropout."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnc_core.base.dtype import accumulator
from nnc_core.functions import public as nnc
from nnc_core.io.onnx.reading.lanes import Host, Statistic
from nnc_core.io.onnx.reading.registry import operator
from nnc_core.io.onnx.reading.run import NodeCall
from nnc_core.io.onnx.reading.types import dtype_of
from nnc_core.values.tensor import Tensor


def _channels(x: Tensor, v: Tensor) -> Tensor:
    """One number for each channel, which is the second axis, as x has it."""
    return nnc.reshape(v, (-1, *[1] * (x.ndim - 2))) if x.ndim > 1 else v


@operator("BatchNormalization", since=9)
def batch_norm(x: Tensor, scale: Tensor, bias: Tensor, mean: Statistic, variance: Statistic, *, epsilon: float = 1e-5,
               momentum: float = 0.9, training_mode: int = 0, call: NodeCall) -> Any:
    """With `training_mode` by the statistics of the batch, and with the running ones as further outputs."""
    if not training_mode:
        return nnc.batch_norm(x, mean, variance, scale, bias, axis=1 if x.ndim > 1 else 0, epsilon=epsilon)
    y, batch_mean, batch_variance = nnc.batch_norm_training(x, scale, bias, axis=1, epsilon=epsilon)[:3]
    running = [nnc.astype(nnc.add(nnc.multiply(old, momentum), nnc.multiply(new, 1 - momentum)), old.dtype)
               for old, new in ((mean, batch_mean), (variance, batch_variance))]
    return (y, *running)


@operator("BatchNormalization")
def batch_norm_first(x: Tensor, scale: Tensor, bias: Tensor, mean: Statistic, variance: Statistic, *,
                     consumed_inputs: Any = (), epsilon: float = 1e-5, is_test: int = 0, momentum: float = 0.9,
                     spatial: int = 1) -> Tensor:
    """Before version 9; with `spatial` 0 each element of an example has statistics of its own."""
    if spatial:
        return nnc.batch_norm(x, mean, variance, scale, bias, axis=1, epsilon=epsilon)
    return nnc.add(nnc.multiply(nnc.divide(nnc.subtract(x, mean), nnc.sqrt(nnc.add(variance, epsilon))), scale), bias)


@operator("InstanceNormalization")
def instance_norm(x: Tensor, scale: Tensor, bias: Tensor, *, consumed_inputs: Any = (),
                  epsilon: float = 1e-5) -> Tensor:
    return nnc.instance_norm(x, scale, bias, axis=1, epsilon=epsilon)


@operator("LayerNormalization", since=17)
def layer_norm(x: Tensor, scale: Tensor, bias: Tensor | None = None, *, axis: int = -1, epsilon: float = 1e-5,
               stash_type: int = 1, call: NodeCall) -> Any:
    """Over all axes from this one on; further outputs are the mean and one over the deviation."""
    axes = tuple(range(axis % x.ndim, x.ndim))
    if not (call.wants(1) or call.wants(2)) and tuple(scale.shape) == tuple(x.shape[axes[0]:]):
        return nnc.layer_norm(x, scale, bias, axis=axes, epsilon=epsilon)
    wide = nnc.astype(x, accumulator(x.dtype))
    mean = nnc.mean(wide, axis=axes, keepdims=True)
    centred = nnc.subtract(wide, mean)
    inverse = nnc.rsqrt(nnc.add(nnc.mean(nnc.square(centred), axis=axes, keepdims=True), epsilon))
    y = nnc.multiply(nnc.astype(nnc.multiply(centred, inverse), x.dtype), scale)
    stashed = [t if stash_type == 1 and wide.dtype == np.float32 else nnc.astype(t, dtype_of(stash_type))
               for t in (mean, inverse)]
    return (y if bias is None else nnc.add(y, bias)), *stashed


@operator("GroupNormalization", since=21)
def group_norm(x: Tensor, scale: Tensor, bias: Tensor, *, num_groups: int, epsilon: float = 1e-5,
               stash_type: int = 1) -> Tensor:
    return nnc.group_norm(x, num_groups, scale, bias, axis=1, epsilon=epsilon)


@operator("GroupNormalization", since=18)
def group_norm_first(x: Tensor, scale: Tensor, bias: Tensor, *, num_groups: int, epsilon: float = 1e-5) -> Tensor:
    """Before version 21 scale and bias belong to groups."""
    each = x.shape[1] // num_groups
    return nnc.group_norm(x, num_groups, nnc.repeat(scale, each), nnc.repeat(bias, each), axis=1, epsilon=epsilon)


@operator("RMSNormalization", since=23)
def rms_norm(x: Tensor, scale: Tensor, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1) -> Tensor:
    axes = tuple(range(axis % x.ndim, x.ndim))
    if tuple(scale.shape) == tuple(x.shape[axes[0]:]):
        return nnc.rms_norm(x, scale, axis=axes, epsilon=epsilon)
    wide = nnc.astype(x, accumulator(x.dtype))
    root = nnc.rsqrt(nnc.add(nnc.mean(nnc.square(wide), axis=axes, keepdims=True), epsilon))
    return nnc.multiply(nnc.astype(nnc.multiply(wide, root), x.dtype), scale)


@operator("LpNormalization")
def lp_norm(x: Tensor, *, axis: int = -1, p: int = 2) -> Tensor:
    """Divided by its norm along the axis; zeros where that is 0."""
    norm = (nnc.sum(nnc.abs(x), axis=axis, keepdims=True) if p == 1
            else nnc.sqrt(nnc.sum(nnc.square(x), axis=axis, keepdims=True)))
    there = nnc.not_equal(norm, 0)
    return nnc.where(there, nnc.divide(x, nnc.where(there, norm, nnc.ones_like(norm))), nnc.zeros_like(x))


@operator("LRN")
def local_response_norm(x: Tensor, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> Tensor:
    return nnc.local_response_norm(x, size, alpha=alpha, beta=beta, k=bias, axis=1)


# ---- dropout
@operator("Dropout")
def dropout_first(x: Tensor, *, consumed_inputs: Any = (), is_test: int = 0, ratio: float = 0.5) -> Any:
    """Before version 12 nothing is dropped: models are trained elsewhere.  The mask is of the dtype of x."""
    return x, nnc.ones_like(x)


@operator("Dropout", since=10)
def dropout_with_boolean_mask(x: Tensor, *, ratio: float = 0.5) -> Any:
    return x, nnc.ones_like(x, dtype=bool)


@operator("Dropout", since=12)
def dropout(x: Tensor, ratio: Host | None = None, training: Host | None = None, *, seed: int = 0) -> Any:
    """Drops where the model asks for training, by nnc's generator: numbers of other runtimes differ."""
    rate = 0.5 if ratio is None else float(ratio.reshape(()))
    if training is None or not bool(training.reshape(())) or rate == 0:
        return x, nnc.ones_like(x, dtype=bool)
    kept = nnc.not_equal(nnc.dropout(nnc.ones(x.shape, dtype=np.float32, device=x.device), rate), 0)
    return nnc.where(kept, nnc.divide(x, 1 - rate), nnc.zeros_like(x)), kept
