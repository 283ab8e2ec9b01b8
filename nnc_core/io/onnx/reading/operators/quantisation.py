"""Quantised numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnc_core.functions import public as nnc
from nnc_core.io.onnx.reading.operators.convolution import conv_integer
from nnc_core.io.onnx.reading.registry import operator
from nnc_core.io.onnx.reading.types import dtype_of
from nnc_core.values.tensor import Tensor


@operator("QuantizeLinear", since=10)
def quantize_linear(x: Tensor, scale: Tensor, zero: Tensor | None = None, *, axis: int = 1, block_size: int = 0,
                    output_dtype: int = 0, precision: int = 0, saturate: int = 1) -> Tensor:
    dtype = zero.dtype if zero is not None else dtype_of(output_dtype) if output_dtype else np.dtype(np.uint8)
    return nnc.quantize_linear(x, scale, 0 if zero is None else zero, axis=axis if scale.ndim else None, dtype=dtype,
                               block_size=block_size or None, saturate=bool(saturate))


@operator("DequantizeLinear", since=10)
def dequantize_linear(x: Tensor, scale: Tensor, zero: Tensor | None = None, *, axis: int = 1, block_size: int = 0,
                      output_dtype: int = 0) -> Tensor:
    return nnc.dequantize_linear(x, scale, 0 if zero is None else zero, axis=axis if scale.ndim else None,
                                 dtype=dtype_of(output_dtype) if output_dtype else scale.dtype,
                                 block_size=block_size or None)


@operator("DynamicQuantizeLinear", since=11)
def dynamic_quantize_linear(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return nnc.dynamic_quantize_linear(x)


@operator("MatMulInteger", since=10)
def matmul_integer(a: Tensor, b: Tensor, a_zero: Tensor | None = None, b_zero: Tensor | None = None) -> Tensor:
    """Zero points of rows of a and of columns of b."""
    if a_zero is not None and a_zero.ndim == 1 and a_zero.shape[0] != 1:
        a_zero = nnc.expand_dims(a_zero, -1)
    return nnc.matmul_integer(a, b, a_zero, b_zero)


def _requantised(total: Tensor, factor: Tensor, zero: Tensor) -> Tensor:
    """Whole sums times a factor, rounded half to even, about the zero point, brought into its dtype's range."""
    limits = np.iinfo(zero.dtype)
    y = nnc.add(nnc.round(nnc.multiply(nnc.astype(total, factor.dtype), factor)), nnc.astype(zero, factor.dtype))
    return nnc.astype(nnc.clip(y, float(limits.min), float(limits.max)), zero.dtype)


@operator("QLinearMatMul", since=10)
def qlinear_matmul(a: Tensor, a_scale: Tensor, a_zero: Tensor, b: Tensor, b_scale: Tensor, b_zero: Tensor,
                   y_scale: Tensor, y_zero: Tensor) -> Tensor:
    rows = nnc.expand_dims(a_scale, -1) if a_scale.ndim == 1 and a_scale.shape[0] != 1 else a_scale
    factor = nnc.divide(nnc.multiply(nnc.astype(rows, np.float32), nnc.astype(b_scale, np.float32)),
                        nnc.astype(y_scale, np.float32))
    return _requantised(matmul_integer(a, b, a_zero, b_zero), factor, y_zero)


@operator("QLinearConv", since=10)
def qlinear_conv(x: Tensor, x_scale: Tensor, x_zero: Tensor, w: Tensor, w_scale: Tensor, w_zero: Tensor,
                 y_scale: Tensor, y_zero: Tensor, b: Tensor | None = None, *, auto_pad: str = "NOTSET",
                 dilations: Any = None, group: int = 1, kernel_shape: Any = None, pads: Any = None,
                 strides: Any = None) -> Tensor:
    total = conv_integer(x, w, x_zero, w_zero, auto_pad=auto_pad, dilations=dilations, group=group, pads=pads,
                         strides=strides)
    shape = (-1, *[1] * (x.ndim - 2))
    if b is not None:
        total = nnc.add(total, nnc.reshape(b, shape))
    scale = nnc.reshape(w_scale, shape) if w_scale.ndim else w_scale
    return _requantised(total, nnc.divide(nnc.multiply(x_scale, scale), y_scale), y_zero)
