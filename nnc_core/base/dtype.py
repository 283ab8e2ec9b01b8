"""The element types: NumPy dtypes, with bfloat16 and those of at most 8 bits from ml_dtypes.

Storage dtypes are kept, moved and cast, and nothing computes in them.  Each element fills a byte, in files too but for
those of 2 and 4 bits, which `base.packed` puts together there.
"""

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
float8_e4m3fn: DType = np.dtype(ml_dtypes.float8_e4m3fn)
float8_e4m3fnuz: DType = np.dtype(ml_dtypes.float8_e4m3fnuz)
float8_e5m2: DType = np.dtype(ml_dtypes.float8_e5m2)
float8_e5m2fnuz: DType = np.dtype(ml_dtypes.float8_e5m2fnuz)
float8_e8m0fnu: DType = np.dtype(ml_dtypes.float8_e8m0fnu)
float4_e2m1fn: DType = np.dtype(ml_dtypes.float4_e2m1fn)
int4: DType = np.dtype(ml_dtypes.int4)
uint4: DType = np.dtype(ml_dtypes.uint4)
int2: DType = np.dtype(ml_dtypes.int2)
uint2: DType = np.dtype(ml_dtypes.uint2)

SIGNED = (int8, int16, int32, int64)
UNSIGNED = (uint8, uint16, uint32, uint64)
INTEGERS = SIGNED + UNSIGNED
FLOATS = (bfloat16, float16, float32, float64)
NUMBERS = INTEGERS + FLOATS
"""Real numbers."""
COMPLEX = (complex64, complex128)
DTYPES: dict[str, DType] = {d.name: d for d in (boolean, *NUMBERS, *COMPLEX)}
"""Dtypes that are computed with, by name."""
STORED_FLOATS = (float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz, float8_e8m0fnu, float4_e2m1fn)
STORED_INTEGERS = (int4, uint4, int2, uint2)
STORAGE = STORED_FLOATS + STORED_INTEGERS
ALL_DTYPES: dict[str, DType] = DTYPES | {d.name: d for d in STORAGE}
"""Every dtype by name, those that are only stored too."""
REAL_DTYPES = frozenset(d.name for d in (boolean, *NUMBERS))
"""Dtypes that a device has unless it says otherwise: complex numbers are something it has to offer."""

_FLOAT_SET = frozenset(FLOATS)
_INEXACT_SET = frozenset(FLOATS + COMPLEX)
_INTEGER_SET = frozenset(INTEGERS)
_STORAGE_SET = frozenset(STORAGE)
_BITS = {float4_e2m1fn: 4, int4: 4, uint4: 4, int2: 2, uint2: 2}


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


def is_storage(dtype: DType) -> bool:
    """True for what is kept, moved and cast, and not computed with: numbers of at most 8 bits from ml_dtypes."""
    return dtype in _STORAGE_SET


def is_stored_integer(dtype: DType) -> bool:
    """True for integers of 2 and 4 bits."""
    return dtype in STORED_INTEGERS


def opened(dtype: DType) -> DType:
    """The dtype that holds every number of a storage dtype and can be computed with; any other dtype itself."""
    return dtype if dtype not in _STORAGE_SET else int8 if is_stored_integer(dtype) else float32


def bits_of(dtype: DType) -> int:
    """The number of bits that tell the elements of a dtype apart: fewer than their bytes have for some."""
    return _BITS.get(dtype, 8 * dtype.itemsize)


def element_of(dtype: DType) -> DType:
    """The dtype that loop nests see: real parts of complex numbers, the bytes of what is only stored."""
    return uint8 if dtype in _STORAGE_SET else real_of(dtype)


def integer_limits(dtype: DType) -> tuple[int, int]:
    """The least and the largest integer of a dtype, those of a few bits among them."""
    limits: Any = ml_dtypes.iinfo(dtype)  # type: ignore[no-untyped-call]
    return int(limits.min), int(limits.max)


def accumulator(dtype: DType) -> DType:
    """The dtype in which sums and products of many elements are formed: never narrower than float32."""
    return float32 if dtype in (float16, bfloat16) else dtype
