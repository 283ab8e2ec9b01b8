"""cuBLAS through ctypes: its library comes with CuPy's requirements or with CUDA, and is asked for one function.

CuPy's own wrapper has no call for the workspace, without which a product allocates memory, and so cannot be captured.
"""

from __future__ import annotations

import ctypes
import threading
import warnings
from ctypes import byref, c_int, c_longlong, c_void_p
from functools import cache
from typing import Any

from nnc_core.base.dtype import DType, bfloat16, float16, float32, float64
from nnc_core.base.errors import FallbackWarning, PluginError
from nnc_cuda.blas import BlasMatrix, BlasProduct
from nnc_cuda.driver import CudaError, Driver

TYPES: dict[DType, int] = {float32: 0, float64: 1, float16: 2, bfloat16: 14}
"""CUDA_R_32F, CUDA_R_64F, CUDA_R_16F, CUDA_R_16BF."""
IN_FLOAT32, IN_FLOAT64, IN_TF32 = 68, 70, 77
"""CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_64F, CUBLAS_COMPUTE_32F_FAST_TF32."""
AS_IT_IS, TURNED = 0, 1
"""CUBLAS_OP_N, CUBLAS_OP_T."""
DEFAULT_ALGORITHM = -1
INSTALL = "`pip install nnc-cuda[cuda12x]` or `nnc-cuda[cuda13x]`, whichever the driver is for"


@cache
def library() -> Any:
    """cuBLAS, loaded; PluginError if there is none."""
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib  # the extras bring it, not the plugin

        return ctypes.CDLL(load_nvidia_dynamic_lib("cublas").abs_path)
    except (ImportError, RuntimeError, OSError) as error:
        raise PluginError(f"cuBLAS cannot be loaded: {error}", hint=INSTALL) from error


class CuBlas:
    """One handle on one device.  Calls come one at a time, since a handle has one stream."""

    def __init__(self, driver: Driver, functions: Any) -> None:
        """`functions`: the library, or something that has its functions."""
        self.driver, self.functions = driver, functions
        self._lock, self._handle = threading.Lock(), c_void_p()
        driver.make_current()
        _check("cublasCreate", functions.cublasCreate_v2(byref(self._handle)))

    def product(self, product: BlasProduct, workspace: tuple[int, int], stream: int) -> None:
        """Enqueue C = A B of matrices that lie row by row; `workspace`: address and bytes."""
        wide = ctypes.c_double if product.dtype == float64 else ctypes.c_float
        kind = c_int(TYPES[product.dtype])
        compute = IN_FLOAT64 if product.dtype == float64 else IN_TF32 if product.tf32 else IN_FLOAT32
        a, b, c, f = product.a, product.b, product.c, self.functions
        with self._lock:
            self.driver.make_current()
            _check("cublasSetStream", f.cublasSetStream_v2(self._handle, c_void_p(stream)))
            _check("cublasSetWorkspace",
                   f.cublasSetWorkspace_v2(self._handle, c_void_p(workspace[0]), ctypes.c_size_t(workspace[1])))
            # Its matrices lie column by column: what lies row by row is the transposed one, and C' = B' A'.
            _check("cublasGemmStridedBatchedEx", f.cublasGemmStridedBatchedEx(
                self._handle, c_int(_operation(b)), c_int(_operation(a)), c_int(product.columns), c_int(product.rows),
                c_int(product.steps), byref(wide(1)), *_matrix(b, kind), *_matrix(a, kind), byref(wide(0)),
                *_matrix(c, kind), c_int(product.times), c_int(compute), c_int(DEFAULT_ALGORITHM)))


def open_blas(driver: Driver) -> CuBlas | None:
    """cuBLAS on a device; None where there is none, which is said once."""
    try:
        return CuBlas(driver, library())
    except (PluginError, CudaError) as error:
        warnings.warn(f"products run without NVIDIA's library: {error}", FallbackWarning, stacklevel=2)
        return None


def _operation(matrix: BlasMatrix) -> int:
    return TURNED if matrix.turned else AS_IT_IS


def _matrix(matrix: BlasMatrix, kind: c_int) -> tuple[Any, ...]:
    return c_void_p(matrix.address), kind, c_int(matrix.distance), c_longlong(matrix.step)


def _check(call: str, status: int) -> None:
    if status:
        raise CudaError(status, f"{call} fails with status {status} of cuBLAS")
