"""The element types: NumPy dtypes, with bfloat16 from ml_dtypes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

DType: TypeAlias = np.dtype[Any]

boolean: DType = np.dtype(np.bool_)
int8: DType = np.dtype(np.int8)
int16: DType = np.dtype(np.int16)
int32: DType = np.dtype(np.int32)
int64: DType = np.dtype(np.int64)
uint8: DType = np.dtype(np.uint8)
uint16: DType = np.dtype(np.uint16)
uint32: DType = np.dtype(np.uint32)
uint64: DType = np.dtype(np.uint64)
float16: DType = np.dtype(np.float16)
float32: DType = np.dtype(np.float32)
float64: DType = np.dtype(np.float64)
bfloat16: DType = np.dtype(ml_dtypes.bfloat16)
complex64: DType = np.dtype(np.complex64)
complex128: DType = np.dtype(np.complex128)

SIGNED = (int8, int16, int32, int64)
UNSIGNED = (uint8, uint16, uint32, uint64)
INTEGERS = SIGNED + UNSIGNED
FLOATS = (bfloat16, float16, float32, float64)
NUMBERS = INTEGERS + FLOATS
"""Real numbers."""
COMPLEX = (complex64, complex128)
DTYPES: dict[str, DType] = {d.name: d for d in (boolean, *NUMBERS, *COMPLEX)}
REAL_DTYPES = frozenset(d.name for d in (boolean, *NUMBERS))
"""Dtypes that a device has unless it says otherwise: complex numbers are something it has to offer."""

_FLOAT_SET = frozenset(FLOATS)
_INEXACT_SET = frozenset(FLOATS + COMPLEX)
_INTEGER_SET = frozenset(INTEGERS)


@lru_cache(maxsize=256)
def name_of(dtype: DType) -> str:
    """`dtype.name`, which NumPy makes anew each time that it is asked for."""
    return dtype.name


def is_float(dtype: DType) -> bool:
    """True for real floating-point numbers."""
    return dtype in _FLOAT_SET


def is_complex(dtype: DType) -> bool:
    return dtype.kind == "c"


def is_inexact(dtype: DType) -> bool:
    """True for real and complex floating-point numbers: what derivatives exist for."""
    return dtype in _INEXACT_SET


def real_of(dtype: DType) -> DType:
    """The dtype of the parts of a complex one; any other dtype itself."""
    return float32 if dtype == complex64 else float64 if dtype == complex128 else dtype


def complex_of(dtype: DType) -> DType:
    """The narrowest complex dtype that holds a float dtype (or the parts of a complex one)."""
    return complex128 if dtype in (float64, complex128) else complex64


def is_integer(dtype: DType) -> bool:
    """True for signed and unsigned integers, not for booleans."""
    return dtype in _INTEGER_SET


def accumulator(dtype: DType) -> DType:
    """The dtype in which sums and products of many elements are formed: never narrower than float32."""
    return float32 if dtype in (float16, bfloat16) else dtype
