"""cuSOLVER, and cuBLAS for triangles, through ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import byref, c_double, c_float, c_int, c_void_p
from functools import lru_cache
from threading import Lock
from typing import Any

from nnc_core.base.dtype import DType, complex64, complex128, float32, float64, is_complex
from nnc_cuda.driver import CudaError, Driver
from nnc_cuda.matrices.lapack import LapackRoutine
from nnc_cuda.vendor import load, opened

LETTERS: dict[DType, str] = {float32: "S", float64: "D", complex64: "C", complex128: "Z"}
OF_COMPLEX = {"orgqr": "ungqr", "syevd": "heevd"}
"""Routines that have another name for complex numbers."""
LOWER, UPPER = 0, 1
"""CUBLAS_FILL_MODE_LOWER, _UPPER."""
AS_IT_IS = 0
"""CUBLAS_OP_N."""
AT_THE_LEFT = 0
"""CUBLAS_SIDE_LEFT."""
VALUES, VECTORS = 0, 1
"""CUSOLVER_EIG_MODE_NOVECTOR, _VECTOR."""
NONE, SOME = ord("N"), ord("S")
"""Singular vectors: none, or those that belong to singular values."""
WITHOUT_SCRATCH = frozenset(("getrs", "trsm"))


class Cusolver:
    """The library on one device."""

    def __init__(self, driver: Driver, solver: Any, blas: Any) -> None:
        """`solver`, `blas`: the libraries, or something that has their functions."""
        self.driver, self.solver, self.blas, self.lock = driver, solver, blas, Lock()
        self._solver_handle, self._blas_handle = c_void_p(), c_void_p()
        self.scratch = lru_cache(maxsize=1024)(self._scratch)
        driver.make_current()
        check("cusolverDnCreate", solver.cusolverDnCreate(byref(self._solver_handle)))
        check("cublasCreate", blas.cublasCreate_v2(byref(self._blas_handle)))

    def _scratch(self, routine: LapackRoutine) -> int:
        if routine.name in WITHOUT_SCRATCH:
            return 0
        elements = c_int()
        self.driver.make_current()
        self._call(routine, "_bufferSize", *_sizes(routine), byref(elements))
        return elements.value * routine.dtype.itemsize

    def enqueue(self, routine: LapackRoutine, arrays: Sequence[int], scratch: int, status: int, stream: int) -> None:
        self.driver.make_current()
        at = [c_void_p(address) for address in arrays]
        if routine.name == "trsm":
            return self._solve_triangle(routine, at, stream)
        check("cusolverDnSetStream", self.solver.cusolverDnSetStream(self._solver_handle, c_void_p(stream)))
        work = c_void_p(scratch), c_int(self.scratch(routine) // routine.dtype.itemsize)
        self._call(routine, "", *_arguments(routine, at, *work), c_void_p(status))

    def _solve_triangle(self, routine: LapackRoutine, at: Sequence[c_void_p], stream: int) -> None:
        check("cublasSetStream", self.blas.cublasSetStream_v2(self._blas_handle, c_void_p(stream)))
        name, n, one = f"cublas{LETTERS[routine.dtype]}trsm_v2", c_int(routine.rows), _one(routine.dtype)
        check(name, getattr(self.blas, name)(
            self._blas_handle, c_int(AT_THE_LEFT), c_int(LOWER if routine.lower else UPPER), c_int(AS_IT_IS),
            c_int(routine.unit), n, c_int(routine.columns), byref(one), at[0], n, at[1], n))

    def _call(self, routine: LapackRoutine, suffix: str, *arguments: Any) -> None:
        own = OF_COMPLEX.get(routine.name, routine.name) if is_complex(routine.dtype) else routine.name
        name = f"cusolverDn{LETTERS[routine.dtype]}{own}{suffix}"
        check(name, getattr(self.solver, name)(self._solver_handle, *arguments))


def _one(dtype: DType) -> Any:
    """1, in memory of the host; of complex numbers the real part and the imaginary one."""
    part = c_float if dtype in (float32, complex64) else c_double
    return (part * 2)(1, 0) if is_complex(dtype) else part(1)


def _sizes(routine: LapackRoutine) -> Sequence[Any]:
    """The arguments of the question for scratch memory: no array is looked at."""
    m, n, nothing = c_int(routine.rows), c_int(routine.columns), c_void_p()
    match routine.name:
        case "potrf":
            return c_int(LOWER), m, nothing, m
        case "getrf" | "geqrf":
            return m, n, nothing, m
        case "orgqr":
            return m, n, n, nothing, m, nothing
        case "syevd":
            return c_int(VECTORS if routine.vectors else VALUES), c_int(LOWER), m, nothing, m, nothing
        case "gesvd":
            return m, n
    raise AssertionError(routine.name)


def _arguments(routine: LapackRoutine, at: Sequence[c_void_p], scratch: c_void_p, elements: c_int) -> Sequence[Any]:
    """The arguments between the handle and the status."""
    m, n = c_int(routine.rows), c_int(routine.columns)
    match routine.name:
        case "potrf":
            return c_int(LOWER), m, at[0], m, scratch, elements
        case "getrf":
            return m, n, at[0], m, scratch, at[1]
        case "getrs":
            return c_int(AS_IT_IS), m, n, at[0], m, at[1], at[2], m
        case "geqrf":
            return m, n, at[0], m, at[1], scratch, elements
        case "orgqr":
            return m, n, n, at[0], m, at[1], scratch, elements
        case "syevd":
            return c_int(VECTORS if routine.vectors else VALUES), c_int(LOWER), m, at[0], m, at[1], scratch, elements
        case "gesvd":
            job = ctypes.c_byte(SOME if routine.vectors else NONE)
            return job, job, m, n, at[0], m, at[1], at[2], m, at[3], n, scratch, elements, c_void_p()
    raise AssertionError(routine.name)


def check(call: str, status: int) -> None:
    """CudaError for a status of the library other than success."""
    if status:
        raise CudaError(status, f"{call} fails with status {status} of its library")


def open_lapack(driver: Driver) -> Cusolver | None:
    """cuSOLVER on a device; None where there is none, which is said once."""
    return opened("linear algebra runs", lambda: Cusolver(driver, load("cusolver"), load("cublas")))
