"""cuSOLVER, and cuBLAS for triangles and for stacks, through ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import byref, c_int, c_void_p
from functools import lru_cache
from threading import Lock
from typing import Any

from nnc_core.base.dtype import is_complex
from nnc_cuda.driver import Driver
from nnc_cuda.matrices.calls import (
    AS_IT_IS,
    BY_TURNS,
    LETTERS,
    LOWER,
    NONE,
    SOME,
    VALUES,
    VECTORS,
    JacobiSettings,
    blas_arguments,
    check,
    stack_arguments,
    stack_sizes,
)
from nnc_cuda.matrices.general import GeneralEigenvalues
from nnc_cuda.matrices.lapack import LapackRoutine
from nnc_cuda.vendor import load, opened

OF_COMPLEX = {"orgqr": "ungqr", "syevd": "heevd", "syevj": "heevj"}
"""Routines that have another name for complex numbers."""
WITHOUT_SCRATCH = frozenset(("getrs", "trsm"))
OF_BLAS = (frozenset(("trsm",)), frozenset(("getrf", "getrs", "geqrf", "trsm")))
"""Routines that are cuBLAS', for one matrix and for many."""


class Cusolver:
    """The library on one device."""

    def __init__(self, driver: Driver, solver: Any, blas: Any) -> None:
        """`solver`, `blas`: the libraries, or something that has their functions."""
        self.driver, self.solver, self.blas, self.lock = driver, solver, blas, Lock()
        self._solver_handle, self._blas_handle = c_void_p(), c_void_p()
        self.scratch = lru_cache(maxsize=1024)(self._scratch)
        with driver.current():
            check("cusolverDnCreate", solver.cusolverDnCreate(byref(self._solver_handle)))
            check("cublasCreate", blas.cublasCreate_v2(byref(self._blas_handle)))
        self._general = GeneralEigenvalues(solver, self._solver_handle)
        self._settings = JacobiSettings(solver)

    def _scratch(self, routine: LapackRoutine) -> int:
        with self.driver.current():
            if routine.name == "geev":
                return self._general.scratch(routine)
            return self._scratch_of_stacks(routine) if routine.times else self._scratch_of_one(routine)

    def _scratch_of_one(self, routine: LapackRoutine) -> int:
        if routine.name in WITHOUT_SCRATCH:
            return 0
        elements = c_int()
        self._call(routine, "_bufferSize", *_sizes(routine), byref(elements))
        return elements.value * routine.dtype.itemsize

    def _scratch_of_stacks(self, routine: LapackRoutine) -> int:
        if routine.name not in BY_TURNS:
            return 0
        elements = c_int()
        self._call(routine, "Batched_bufferSize", *stack_sizes(routine), byref(elements),
                   self._settings.of(routine.name), c_int(routine.times))
        return elements.value * routine.dtype.itemsize

    def enqueue(self, routine: LapackRoutine, arrays: Sequence[int], scratch: int, status: int, stream: int) -> None:
        with self.driver.current():
            self._enqueue(routine, [c_void_p(address) for address in arrays], scratch, status, stream)

    def _enqueue(self, routine: LapackRoutine, at: Sequence[c_void_p], scratch: int, status: int, stream: int) -> None:
        check("cusolverDnSetStream", self.solver.cusolverDnSetStream(self._solver_handle, c_void_p(stream)))
        if routine.name == "geev":
            self._general.enqueue(routine, at, c_void_p(scratch), c_void_p(status))
            self.driver.synchronize(stream)  # its memory on the host is its own until then
        elif routine.name in OF_BLAS[routine.times > 0]:
            self._call_blas(routine, at, status, stream)
        elif routine.times:
            self._call_stacks(routine, at, scratch, status)
        else:
            work = c_void_p(scratch), c_int(self.scratch(routine) // routine.dtype.itemsize)
            self._call(routine, "", *_arguments(routine, at, *work), c_void_p(status))

    def _call_stacks(self, routine: LapackRoutine, at: Sequence[c_void_p], scratch: int, status: int) -> None:
        info, times = c_void_p(status), c_int(routine.times)
        if routine.name == "potrf":
            n = c_int(routine.rows)
            self._call(routine, "Batched", c_int(LOWER), n, at[0], n, info, times)
            return
        work = c_void_p(scratch), c_int(self.scratch(routine) // routine.dtype.itemsize)
        self._call(routine, "Batched", *stack_arguments(routine, at), *work, info, self._settings.of(routine.name),
                   times)

    def _call_blas(self, routine: LapackRoutine, at: Sequence[c_void_p], status: int, stream: int) -> None:
        check("cublasSetStream", self.blas.cublasSetStream_v2(self._blas_handle, c_void_p(stream)))
        suffix = "Batched" if routine.times else "_v2"
        name, wrong = f"cublas{LETTERS[routine.dtype]}{routine.name}{suffix}", c_int()
        arguments = blas_arguments(routine, at, c_void_p(status), wrong)
        check(name, getattr(self.blas, name)(self._blas_handle, *arguments))
        check(f"{name}, whose argument {-wrong.value} is wrong,", wrong.value)

    def _call(self, routine: LapackRoutine, suffix: str, *arguments: Any) -> None:
        own = BY_TURNS[routine.name] if routine.times and routine.name in BY_TURNS else routine.name
        own = OF_COMPLEX.get(own, own) if is_complex(routine.dtype) else own
        name = f"cusolverDn{LETTERS[routine.dtype]}{own}{suffix}"
        check(name, getattr(self.solver, name)(self._solver_handle, *arguments))


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


def open_lapack(driver: Driver) -> Cusolver | None:
    """cuSOLVER on a device; None where there is none, which is said once."""
    return opened("linear algebra runs", lambda: Cusolver(driver, load("cusolver"), load("cublas")))
