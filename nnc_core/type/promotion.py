"""Type promotion: the Array API table within a kind, and the other operand's dtype for Python numbers.

Between kinds (which the Array API leaves open) the wider kind decides: boolean < integer < float < complex, as in
PyTorch and JAX, so that int64 + float32 is float32 on every device, with or without float64.  Floats beside complex
numbers count as their parts would: float64 with complex64 is complex128.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from nnc_core.base import dtype as dt
from nnc_core.base.config import config
from nnc_core.base.dtype import DType
from nnc_core.base.errors import DTypeError, OperandError


def kind_rank(dtype: DType) -> int:
    """0 boolean, 1 integer, 2 float, 3 complex."""
    return 3 if dt.is_complex(dtype) else 2 if dt.is_float(dtype) else 1 if dt.is_integer(dtype) else 0


def not_computed(dtype: DType) -> DTypeError:
    """The error of computing with what is only stored."""
    return DTypeError(f"{dtype} is a storage dtype: it is kept, moved and cast, and not computed with",
                      hint=f"cast it first, with astype({dt.opened(dtype).name!r})")


@lru_cache(maxsize=1024)
def promote(a: DType, b: DType) -> DType:
    """The dtype of an operator on arrays of these two."""
    if a == b:
        return a
    if dt.is_storage(a) or dt.is_storage(b):
        raise DTypeError(f"{a} and {b} have no common dtype: storage dtypes do not promote",
                         hint="cast one of them with astype")
    ranks = kind_rank(a), kind_rank(b)
    if min(ranks) >= 2 and max(ranks) == 3:
        return dt.complex_of(promote(dt.real_of(a), dt.real_of(b)))
    if ranks[0] != ranks[1]:
        return a if ranks[0] > ranks[1] else b
    if dt.bfloat16 in (a, b):
        other = b if a == dt.bfloat16 else a
        return dt.float32 if other == dt.float16 else other
    common: DType = np.promote_types(a, b)
    if kind_rank(common) != kind_rank(a):
        raise DTypeError(f"{a} and {b} have no common integer dtype", hint="cast one of them with astype")
    return common


def default_float() -> DType:
    return dt.DTYPES[config.default_float]


def default_for(number: Any) -> DType:
    """The dtype of a Python number on its own."""
    if isinstance(number, (bool, np.bool_)):
        return dt.boolean
    if isinstance(number, (int, np.integer)):
        return dt.int64
    if isinstance(number, (float, np.floating)):
        return default_float()
    if isinstance(number, (complex, np.complexfloating)):
        return dt.complex_of(default_float())
    raise OperandError(f"{type(number).__name__} is no array and no number",
                       hint="make it an array with nnc.asarray")


def promote_number(dtype: DType, number: Any) -> DType:
    """The dtype of an operator on an array and a Python number: the number is weak, but its kind is not."""
    if isinstance(number, np.generic):
        return promote(dtype, admit_numpy(number.dtype))
    if dt.is_storage(dtype):
        raise DTypeError(f"{dtype} and the number {number!r} have no common dtype: storage dtypes do not promote",
                         hint=f"make it an array with nnc.asarray({number!r}, dtype={dtype.name!r})")
    other = default_for(number)
    if kind_rank(dtype) >= kind_rank(other):
        return dtype
    return dt.complex_of(dtype) if kind_rank(dtype) == 2 else other


_ADMITTED: dict[Any, DType] = {**{d: d for d in dt.ALL_DTYPES.values()}, **dt.ALL_DTYPES}
"""What is asked for most: dtypes of nnc, and their names."""


def admit_numpy(dtype: Any) -> DType:
    """A dtype of nnc from anything that NumPy takes as one; DTypeError for strings, objects, dates."""
    try:
        return _ADMITTED[dtype]
    except (KeyError, TypeError):
        return _admitted(dtype)


def _admitted(dtype: Any) -> DType:
    try:
        wanted = np.dtype(dtype)
    except TypeError as error:
        raise DTypeError(f"{dtype!r} is no dtype: {error}", hint=f"one of {', '.join(dt.ALL_DTYPES)}") from None
    if (name := dt.name_of(wanted)) not in dt.ALL_DTYPES:
        raise DTypeError(f"dtype {wanted} is not supported", hint=f"one of {', '.join(dt.ALL_DTYPES)}")
    return dt.ALL_DTYPES[name]
