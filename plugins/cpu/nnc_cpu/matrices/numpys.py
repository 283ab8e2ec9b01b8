"""NumPy's own loops around LAPACK: what its functions of matrices run, as addresses.

A generalised ufunc has a C function for each signature of dtypes, which goes through a stack of matrices: it packs
them, has LAPACK work on them in as much scratch memory as this asks for, and tells by the floating-point status that
one has no result.  The object begins with where these functions are: `PyUFuncObject` of NumPy's C interface.
"""

from __future__ import annotations

import ctypes
import re
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.linalg import _umath_linalg

KNOWN = sys.implementation.name == "cpython" and not sysconfig.get_config_var("Py_GIL_DISABLED")
"""Objects begin as `_Head` takes them to."""
INVALID = 0x10 if sys.platform == "win32" else 1
"""FE_INVALID of the C library."""


class _Head(ctypes.Structure):
    """`PyUFuncObject` up to its functions."""

    _fields_ = (("count", ctypes.c_ssize_t), ("type", ctypes.c_void_p), ("nin", ctypes.c_int), ("nout", ctypes.c_int),
                ("nargs", ctypes.c_int), ("identity", ctypes.c_int), ("functions", ctypes.POINTER(ctypes.c_void_p)),
                ("data", ctypes.POINTER(ctypes.c_void_p)), ("ntypes", ctypes.c_int))


class NumpyLoop(NamedTuple):
    """A C function of NumPy's: `address(arguments, sizes, strides, data)`."""

    address: int
    data: int
    operands: tuple[tuple[str, ...], ...]
    """The names of the sizes of each operand, inputs first."""

    @property
    def names(self) -> Sequence[str]:
        """The names of all sizes, in the order in which the function takes them."""
        return [*dict.fromkeys([name for operand in self.operands for name in operand])]

    def sizes(self, shapes: Sequence[Sequence[int]]) -> list[int]:
        """Sizes for one matrix with operands of these shapes, behind the length of the stack."""
        known: Mapping[str, int] = {name: size for names, shape in zip(self.operands, shapes, strict=True)
                                    for name, size in zip(names, shape, strict=True)}
        return [1, *[known[name] for name in self.names]]


@cache
def loop_of(name: str, types: str) -> NumpyLoop | None:
    """The loop of a function of `numpy.linalg` for dtypes such as "d->dd"; None where there is none."""
    f: Any = getattr(_umath_linalg, name, None)
    if not KNOWN or f is None or types not in f.types:
        return None
    head = _Head.from_address(id(f))
    if (head.nin, head.nout, head.nargs, head.ntypes) != (f.nin, f.nout, f.nargs, f.ntypes):
        return None
    place = f.types.index(types)
    operands = tuple([tuple(re.findall(r"\w+", sizes)) for sizes in re.findall(r"\(([^)]*)\)", f.signature)])
    data = head.data[place] if head.data else None
    return NumpyLoop(head.functions[place] or 0, data or 0, operands)


def types_of(inputs: Sequence[bool], outputs: Sequence[bool]) -> str:
    """Signatures in float64; True: complex numbers."""
    before, after = ("".join(["D" if is_complex else "d" for is_complex in side]) for side in (inputs, outputs))
    return f"{before}->{after}"


def itemsize(is_complex: bool) -> int:
    """Bytes of an element of what loops take."""
    return np.dtype(np.complex128 if is_complex else np.float64).itemsize
