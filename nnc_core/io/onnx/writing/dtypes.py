"""Our dtypes as ONNX numbers them, and those that its operators are declared for."""

from __future__ import annotations

from nnc_core.base.dtype import (
    UNSIGNED,
    DType,
    bfloat16,
    boolean,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)

ELEMENT_TYPES: dict[DType, int] = {
    float32: 1, uint8: 2, int8: 3, uint16: 4, int16: 5, int32: 6, int64: 7, boolean: 9, float16: 10, float64: 11,
    uint32: 12, uint64: 13, bfloat16: 16,
}  # fmt: skip
"""The numbers of TensorProto.DataType."""

UNSIGNED_INTEGERS = frozenset(UNSIGNED)
WIDER: dict[DType, DType] = {
    boolean: int32, int8: int32, int16: int32, uint8: int32, uint16: int32, uint32: int64, float16: float32,
    bfloat16: float32,
}  # fmt: skip
"""Dtypes that hold others, and that implementations have of every operator."""


def wider(dtype: DType) -> DType:
    """The dtype in which sums are formed and elements ordered: sums of integers wrap around in it as well."""
    return WIDER.get(dtype, dtype)


def summed(dtype: DType) -> DType:
    """The same for sums, which 64 bits without a sign share with those that have one."""
    return int64 if dtype == uint64 else wider(dtype)
