"""Rules of products of 8-bit integers."""

from __future__ import annotations

from nnc_core.base.dtype import DType, float32, int8, int32, uint8
from nnc_core.base.errors import DTypeError
from nnc_core.shape import linear, window
from nnc_core.shape.window import Padding, Sizes
from nnc_core.type import TensorSpec

BYTES = (int8, uint8)
"""Dtypes of what is multiplied, the two factors each for itself."""
SUM: DType = int32
"""The dtype of sums, which wrap around."""


def matmul_integer(a: TensorSpec, b: TensorSpec, transpose_a: bool, transpose_b: bool) -> TensorSpec:
    _check_bytes(a, b)
    return linear.matmul(_as(a, SUM), _as(b, SUM), transpose_a, transpose_b)


def conv_integer(x: TensorSpec, kernel: TensorSpec, strides: Sizes, padding: Padding, dilation: Sizes, groups: int,
                 layout: str) -> TensorSpec:
    _check_bytes(x, kernel)
    return _as(window.conv(_as(x, float32), _as(kernel, float32), strides, padding, dilation, groups, layout), SUM)


def _as(x: TensorSpec, dtype: DType) -> TensorSpec:
    return TensorSpec(x.shape, dtype)


def _check_bytes(*operands: TensorSpec) -> None:
    for x in operands:
        if x.dtype not in BYTES:
            raise DTypeError(f"needs int8 or uint8, not {x.dtype}", hint="quantize_linear makes such of floats")
