"""NumPy's functions as eager kernels: silent where NumPy warns, and with Python's numbers beside arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from nnc_core.base import dtype as dt
from nnc_cpu.silence import retry_quietly, run_quietly

Eager: TypeAlias = Callable[..., Any]

PLAIN = 13
"""Dtypes that NumPy computes in as they are have numbers below this: not the halves."""
_BFLOAT16 = dt.bfloat16.num
_LIMITS = {dtype.num: (np.iinfo(dtype).min, np.iinfo(dtype).max) for dtype in dt.INTEGERS}


def is_number(x: Any) -> bool:
    return x.__class__ in (float, int, bool)


def guarded(f: Eager) -> Eager:
    """f without warnings, the quick way."""

    def call(*arguments: Any) -> Any:
        try:
            return run_quietly(f, *arguments)
        except RuntimeError as error:
            return retry_quietly(error, f, *arguments)

    return call


def unary(ufunc: np.ufunc) -> Eager:
    """`guarded`, a little quicker."""

    def call(x: Any) -> Any:
        try:
            return run_quietly(ufunc, x)
        except RuntimeError as error:
            return retry_quietly(error, ufunc, x)

    return call


def binary(ufunc: np.ufunc) -> Eager:
    """A kernel of arrays of one dtype, or of an array and a Python number."""

    def call(a: Any, b: Any) -> Any:
        try:
            if a.__class__ is not b.__class__:
                a, b = admit(a, b)
            return run_quietly(ufunc, a, b)
        except RuntimeError as error:
            return retry_quietly(error, ufunc, a, b)
        except OverflowError:  # a Python integer that the dtype cannot hold
            return NotImplemented

    return call


def admit(a: Any, b: Any) -> tuple[Any, Any]:
    """bfloat16, which is foreign to NumPy, would give way to a Python float: make that float one of its own.
    OverflowError for a Python integer that an array of integers cannot hold, which NumPy compares all the same."""
    if b.__class__ is int or a.__class__ is int:
        number, dtype = (b, a.dtype) if b.__class__ is int else (a, b.dtype)
        if dtype.num in _LIMITS and not _LIMITS[dtype.num][0] <= number <= _LIMITS[dtype.num][1]:
            raise OverflowError
        return a, b
    if b.__class__ is float:
        return (a, dt.bfloat16.type(b)) if a.dtype.num == _BFLOAT16 else (a, b)
    if a.__class__ is float:
        return (dt.bfloat16.type(a), b) if b.dtype.num == _BFLOAT16 else (a, b)
    return a, b
