"""Factors by elimination, and substitution, by NumPy's LAPACK, which NumPy itself does not call for them.

NaN and infinities, and a NumPy whose LAPACK is not found, are left to the references.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.linalg import _umath_linalg

from nnc_core.operator import linalg_reference as reference
from nnc_cpu.addresses import address_of
from nnc_cpu.memory import Array
from nnc_cpu.reference import by_reference
from nnc_cpu.routine import Make

NAMES = ("scipy_{}_64_", "scipy_{}_", "{}_64_", "{}_")
LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
_INTEGER: Any = ctypes.c_int64 if getattr(_umath_linalg, "_ilp64", False) else ctypes.c_int32
INTEGER_BITS = 8 * ctypes.sizeof(_INTEGER)
Routine = Callable[..., Any]


@cache
def routine(name: str, dtype: str) -> Routine | None:
    """A routine of LAPACK for a dtype; None where there is none."""
    try:
        library = ctypes.CDLL(_umath_linalg.__file__)
    except OSError:
        return None
    wanted = f"{LETTERS.get(dtype, '?')}{name}"
    return next((found for form in NAMES if (found := getattr(library, form.format(wanted), None)) is not None), None)


def routine_address(name: str, dtype: str) -> int | None:
    """The address of a routine; None where there is none, or it would read the wrong half of a number of 64 bits."""
    found: Any = routine(name, dtype)
    if found is None or (INTEGER_BITS < 64 and sys.byteorder == "big"):
        return None
    return ctypes.cast(found, ctypes.c_void_p).value


def _call(f: Routine, *arguments: Any) -> int:
    """LAPACK takes addresses alone; the last, of what became of it, is the result."""
    info = _INTEGER()
    given = [x if x.__class__ is bytes else ctypes.byref(_INTEGER(x)) if x.__class__ is int
             else ctypes.c_void_p(address_of(x)) for x in arguments]
    f(*given, ctypes.byref(info))
    return int(info.value)


def _columns(a: Any) -> Array:
    """A copy of matrices, column by column: LAPACK's order."""
    return np.array(np.swapaxes(a, -1, -2), order="C")


def lu(a: Any) -> tuple[Any, Any]:
    """L and U in one matrix, and the order of rows."""
    factor = routine("getrf", a.dtype.name)
    if factor is None or not a.size or not np.isfinite(a).all():
        return reference.lu(a)
    *batch, m, n = a.shape
    factors, orders = _columns(a), np.empty((*batch, m), np.int64)
    pivots = np.empty(min(m, n), _INTEGER)
    for at in np.ndindex(*batch):
        _call(factor, m, n, factors[at], m, pivots)
        order = list(range(m))
        for row, other in enumerate(pivots.tolist()):
            order[row], order[other - 1] = order[other - 1], order[row]
        orders[at] = order
    return np.swapaxes(factors, -1, -2), orders


def solve_triangular(a: Any, b: Any, lower: bool, unit_diagonal: bool) -> Any:
    """X of a X = b."""
    substitute = routine("trtrs", a.dtype.name)
    if substitute is None or not a.size or not b.size or not (np.isfinite(a).all() and np.isfinite(b).all()):
        return reference.solve_triangular(a, b, lower, unit_diagonal)
    n, k = b.shape[-2:]
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, x = np.broadcast_to(a, (*batch, n, n)), _columns(np.broadcast_to(b, (*batch, n, k)))
    triangle, diagonal = b"U" if lower else b"L", b"U" if unit_diagonal else b"N"  # rows are LAPACK's columns
    for at in np.ndindex(*batch):
        if _call(substitute, triangle, b"T", diagonal, n, k, np.ascontiguousarray(a[at]), n, x[at], n):
            return reference.solve_triangular(a, b, lower, unit_diagonal)  # which says what is wrong
    return np.swapaxes(x, -1, -2)


MAKERS: Mapping[str, Make] = {f.__name__: by_reference(f) for f in (lu, solve_triangular)}
