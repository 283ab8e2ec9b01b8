"""Arguments of calls of cuBLAS, and of cuSOLVER for stacks of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import byref, c_double, c_float, c_int, c_void_p
from typing import Any

from nnc_core.base.dtype import DType, complex64, complex128, float32, float64, is_complex
from nnc_cuda.driver import CudaError
from nnc_cuda.matrices.lapack import LapackRoutine

LETTERS: dict[DType, str] = {float32: "S", float64: "D", complex64: "C", complex128: "Z"}
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
BY_TURNS = {"syevd": "syevj", "gesvd": "gesvdj"}
"""Routines that turn pairs of columns until they are orthogonal, for many matrices."""


class JacobiSettings:
    """The settings of such routines as the library has them: to the last bit, at most 100 sweeps, in order."""

    def __init__(self, solver: Any) -> None:
        self._solver, self._made = solver, dict[str, c_void_p]()

    def of(self, routine: str) -> c_void_p:
        if routine not in self._made:
            name = f"cusolverDnCreate{BY_TURNS[routine].capitalize()}Info"
            made = c_void_p()
            check(name, getattr(self._solver, name)(byref(made)))
            self._made[routine] = made
        return self._made[routine]


def stack_sizes(routine: LapackRoutine) -> Sequence[Any]:
    """The arguments of the question for scratch memory between the handle and the answer."""
    return stack_arguments(routine, [c_void_p()] * 4)


def stack_arguments(routine: LapackRoutine, at: Sequence[c_void_p]) -> Sequence[Any]:
    """The arguments between the handle and scratch memory."""
    job, m, n = c_int(VECTORS if routine.vectors else VALUES), c_int(routine.rows), c_int(routine.columns)
    if routine.name == "syevd":
        return job, c_int(LOWER), m, at[0], m, at[1]
    return job, m, n, at[0], m, at[1], at[2], m, at[3], n


def blas_arguments(routine: LapackRoutine, at: Sequence[c_void_p], status: c_void_p, wrong: c_int) -> Sequence[Any]:
    """The arguments behind the handle; `wrong` is given the number of one that makes no sense, negative."""
    m, n, times = c_int(routine.rows), c_int(routine.columns), c_int(routine.times)
    match routine.name:
        case "getrf":
            return m, at[0], m, at[1], status, times
        case "getrs":
            return c_int(AS_IT_IS), m, n, at[0], m, at[1], at[2], m, byref(wrong), times
        case "geqrf":
            return m, n, at[0], m, at[1], byref(wrong), times
        case "trsm":
            triangle = c_int(LOWER if routine.lower else UPPER), c_int(AS_IT_IS), c_int(routine.unit)
            one = byref(_one(routine.dtype))
            return c_int(AT_THE_LEFT), *triangle, m, n, one, at[0], m, at[1], m, *([times] if routine.times else [])
    raise AssertionError(routine.name)


def _one(dtype: DType) -> Any:
    """1, in memory of the host; of complex numbers the real part and the imaginary one."""
    part = c_float if dtype in (float32, complex64) else c_double
    return (part * 2)(1, 0) if is_complex(dtype) else part(1)


def check(call: str, status: int) -> None:
    """CudaError for a status of the library other than success."""
    if status:
        raise CudaError(status, f"{call} fails with status {status} of its library")
