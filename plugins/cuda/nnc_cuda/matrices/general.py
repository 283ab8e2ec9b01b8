"""Eigenvalues of general matrices by cuSOLVER, which has them since CUDA 12.6: through ctypes."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import byref, c_int, c_int64, c_size_t, c_void_p, create_string_buffer
from typing import Any

from nnc_core.base.dtype import DType, complex64, complex128, complex_of, float32, float64
from nnc_cuda.driver import CudaError
from nnc_cuda.matrices.calls import VALUES, VECTORS, check
from nnc_cuda.matrices.lapack import LapackRoutine

TYPES: dict[DType, int] = {float32: 0, float64: 1, complex64: 4, complex128: 5}
"""CUDA_R_32F, CUDA_R_64F, CUDA_C_32F, CUDA_C_64F."""
MISSING = -1


class GeneralEigenvalues:
    """The routine geev, part of whose work is done on the host."""

    def __init__(self, solver: Any, handle: c_void_p) -> None:
        self._solver, self._handle, self._settings = solver, handle, c_void_p()
        self._on_host: Any = create_string_buffer(1)
        """Memory of the host, of the call that is going on."""

    def scratch(self, routine: LapackRoutine) -> int:
        """Bytes of the device's memory that it wants; CudaError where the library is older."""
        return self._sizes(routine)[0]

    def enqueue(self, routine: LapackRoutine, at: Sequence[c_void_p], scratch: c_void_p, status: c_void_p) -> None:
        """Enqueue it; until it is done nobody calls this again."""
        on_device, on_host = self._sizes(routine)
        self._on_host = create_string_buffer(max(on_host, 1))
        self._call("cusolverDnXgeev", routine, at, scratch, c_size_t(on_device), self._on_host, c_size_t(on_host),
                   status)

    def _sizes(self, routine: LapackRoutine) -> tuple[int, int]:
        on_device, on_host = c_size_t(), c_size_t()
        self._call("cusolverDnXgeev_bufferSize", routine, [c_void_p()] * 3, byref(on_device), byref(on_host))
        return on_device.value, on_host.value

    def _call(self, name: str, routine: LapackRoutine, at: Sequence[c_void_p], *more: Any) -> None:
        function = getattr(self._solver, name, None)
        if function is None:
            raise CudaError(MISSING, "this cuSOLVER is older than CUDA 12.6, and knows no general eigenvalues")
        if not self._settings:
            check("cusolverDnCreateParams", self._solver.cusolverDnCreateParams(byref(self._settings)))
        n, own = c_int64(routine.rows), c_int(TYPES[routine.dtype])
        check(name, function(
            self._handle, self._settings, c_int(VALUES), c_int(VECTORS if routine.vectors else VALUES), n, own, at[0],
            n, c_int(TYPES[complex_of(routine.dtype)]), at[1], own, c_void_p(), n, own, at[2], n, own, *more))
