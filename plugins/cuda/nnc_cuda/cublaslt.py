"""cuBLASLt through ctypes: its library comes with CuPy's requirements or with CUDA.

It knows what may follow a product, takes a workspace with each call, so that calls are captured, and lets algorithms be
chosen before.  Its matrices lie column by column: what lies row by row is the transposed one, and D' = B' A' + C'.
"""

from __future__ import annotations

import ctypes
import threading
from contextlib import suppress
from ctypes import byref, c_float, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any

import numpy as np

from nnc_core.base.cache import LRU
from nnc_core.base.dtype import DType, bfloat16, float16, float32, float64, int8, int32
from nnc_cuda.blas import Addresses, BlasProduct, MatrixPlace
from nnc_cuda.driver import CudaError, Driver
from nnc_cuda.vendor import load, opened

TYPES: dict[DType, int] = {float32: 0, float64: 1, float16: 2, int8: 3, int32: 10, bfloat16: 14}
"""CUDA_R_32F, CUDA_R_64F, CUDA_R_16F, CUDA_R_8I, CUDA_R_32I, CUDA_R_16BF."""
IN_FLOAT32, IN_FLOAT64, IN_INT32, IN_TF32 = 68, 70, 72, 77
"""CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_64F, CUBLAS_COMPUTE_32I, CUBLAS_COMPUTE_32F_FAST_TF32."""
TURN_A, TURN_B, EPILOGUE, BIAS_POINTER = 3, 4, 7, 8
"""Attributes of a product: CUBLASLT_MATMUL_DESC_TRANSA, _TRANSB, _EPILOGUE, _BIAS_POINTER."""
BATCHES, BATCH_STEP = 5, 6
"""Attributes of a matrix: CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, _STRIDED_BATCH_OFFSET."""
MOST_WORKSPACE, REDUCTIONS, ALIGNMENTS = 1, 3, (5, 6, 7, 8)
"""What is preferred: CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, _REDUCTION_SCHEME_MASK, _MIN_ALIGNMENT_A_BYTES to D."""
IN_WIDE = 3
"""Steps that are split are added up in place or in the compute type, never in that of the output."""
PLAIN, RELU, BIAS = 1, 2, 4
"""CUBLASLT_EPILOGUE_DEFAULT, _RELU, _BIAS."""
AS_IT_IS, TURNED = 0, 1
"""CUBLAS_OP_N, CUBLAS_OP_T."""
NO_MEMORY, NOT_SUPPORTED = 3, 15
"""Statuses: CUBLAS_STATUS_ALLOC_FAILED, CUBLAS_STATUS_NOT_SUPPORTED."""
KEPT = 1024
"""Plans that are kept; programs keep theirs for as long as they live."""
PROBE = 16
"""Rows, columns and steps of the product that is asked what relu makes of NaN."""


def library() -> Any:
    """cuBLASLt, loaded; PluginError if there is none."""
    return load("cublasLt")


class Heuristic(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t: an algorithm, and the workspace that it wants."""

    _fields_ = [("algorithm", c_uint64 * 8), ("workspace", c_size_t), ("state", c_int), ("waves", c_float),
                ("reserved", c_int * 4)]


class Described:
    """A description that the library holds, which goes with this."""

    def __init__(self, functions: Any, kind: str, *arguments: Any) -> None:
        """`kind`: MatrixLayout, MatmulDesc or MatmulPreference."""
        self.functions, self.kind, self.handle = functions, kind, c_void_p()
        self._call("Create", byref(self.handle), *arguments)

    def set(self, attribute: int, value: Any) -> None:
        self._call("SetAttribute", self.handle, c_int(attribute), byref(value), c_size_t(ctypes.sizeof(value)))

    def _call(self, what: str, *arguments: Any) -> None:
        name = f"cublasLt{self.kind}{what}"
        check(name, getattr(self.functions, name)(*arguments))

    def __del__(self) -> None:
        if self.handle:
            with suppress(CudaError):
                self._call("Destroy", self.handle)


class LtPlan:
    """Products of one kind, and the algorithm that runs them.  Any thread may enqueue them."""

    def __init__(self, blas: CublasLt, product: BlasProduct) -> None:
        """CudaError, most of all NOT_SUPPORTED, where there is no algorithm."""
        self.blas, f = blas, blas.functions
        wide: Any = {float64: ctypes.c_double, int8: c_int32}.get(product.dtype, c_float)
        self._scale, self._beta = wide(int(product.scale) if wide is c_int32 else product.scale), wide(bool(product.c))
        self._product = Described(f, "MatmulDesc", c_int(compute_type(product)), c_int(scale_type(product.dtype)))
        self._has_bias, self._lock = product.bias > 0, threading.Lock()
        self._describe(product)
        rows, columns, steps, times = product.rows, product.columns, product.steps, product.times
        self._a = matrix(f, product.b, product.dtype, steps, columns, times)
        self._b = matrix(f, product.a, product.dtype, rows, steps, times)
        self._c = matrix(f, product.c or product.d, product.result, rows, columns, times)
        self._d = matrix(f, product.d, product.result, rows, columns, times)
        self._algorithm, self.workspace = self._chosen(product)

    def _describe(self, product: BlasProduct) -> None:
        """Set what becomes of factors and sums."""
        self._product.set(TURN_A, c_int32(TURNED if product.b.turned else AS_IT_IS))
        self._product.set(TURN_B, c_int32(TURNED if product.a.turned else AS_IT_IS))
        epilogue = (RELU if product.relu else 0) | (BIAS if product.bias else 0)
        self._product.set(EPILOGUE, c_uint32(epilogue or PLAIN))
        if product.bias:  # how an address is aligned is read off one
            self._product.set(BIAS_POINTER, c_void_p(product.bias))

    def _chosen(self, product: BlasProduct) -> tuple[Any, int]:
        """The first algorithm that the library names, and the bytes of its workspace."""
        wanted = Described(self.blas.functions, "MatmulPreference")
        wanted.set(MOST_WORKSPACE, c_uint64(product.workspace))
        wanted.set(REDUCTIONS, c_uint32(IN_WIDE))
        places = product.b, product.a, product.c or product.d, product.d
        for attribute, place in zip(ALIGNMENTS, places, strict=True):
            wanted.set(attribute, c_uint32(place.alignment))
        found, count = Heuristic(), c_int()
        name = "cublasLtMatmulAlgoGetHeuristic"
        check(name, getattr(self.blas.functions, name)(
            self.blas.handle, self._product.handle, self._a.handle, self._b.handle, self._c.handle, self._d.handle,
            wanted.handle, c_int(1), byref(found), byref(count)))
        check(name, found.state if count.value else NOT_SUPPORTED)
        return found.algorithm, int(found.workspace)

    def enqueue(self, addresses: Addresses, stream: int) -> None:
        a, b, c, d, bias, workspace = map(c_void_p, addresses)
        with self._lock, self.blas.driver.current():
            if self._has_bias:
                self._product.set(BIAS_POINTER, bias)
            check("cublasLtMatmul", self.blas.functions.cublasLtMatmul(
                self.blas.handle, self._product.handle, byref(self._scale), b, self._a.handle, a, self._b.handle,
                byref(self._beta), c, self._c.handle, d, self._d.handle, byref(self._algorithm), workspace,
                c_size_t(self.workspace), c_void_p(stream)))


def matrix(functions: Any, place: MatrixPlace, dtype: DType, rows: int, columns: int, times: int) -> Described:
    """The description of a matrix of rows and columns, which is the transposed of what lies column by column."""
    stored = (rows, columns) if place.turned else (columns, rows)
    made = Described(functions, "MatrixLayout", c_int(TYPES[dtype]), *map(c_uint64, stored), c_int64(place.distance))
    if times > 1:
        made.set(BATCHES, c_int32(times))
        made.set(BATCH_STEP, c_int64(place.step))
    return made


def compute_type(product: BlasProduct) -> int:
    """The type that products are added in."""
    if product.dtype == float32 and product.tf32:
        return IN_TF32
    return {float64: IN_FLOAT64, int8: IN_INT32}.get(product.dtype, IN_FLOAT32)


def scale_type(dtype: DType) -> int:
    """The type of what sums are multiplied by."""
    return TYPES[{float64: float64, int8: int32}.get(dtype, float32)]


class CublasLt:
    """The library on one device."""

    def __init__(self, driver: Driver, functions: Any) -> None:
        """`functions`: the library, or something that has its functions."""
        self.driver, self.functions, self.handle = driver, functions, c_void_p()
        self._plans: LRU[BlasProduct, LtPlan | None] = LRU(KEPT)
        self._keeps_nan: dict[DType, bool] = {}
        with driver.current():
            check("cublasLtCreate", functions.cublasLtCreate(byref(self.handle)))

    def plan(self, product: BlasProduct) -> LtPlan | None:
        return self._plans.find(product, lambda: self._planned(product))

    def _planned(self, product: BlasProduct) -> LtPlan | None:
        try:
            with self.driver.current():
                return LtPlan(self, product)
        except CudaError as error:
            if error.code == NO_MEMORY:
                raise
            return None

    def keeps_nan(self, dtype: DType) -> bool:
        """Tell it by a small product: its manual does not say."""
        if dtype not in self._keeps_nan:
            self._keeps_nan[dtype] = self._probe(dtype)
        return self._keeps_nan[dtype]

    def _probe(self, dtype: DType) -> bool:
        """Multiply NaN by 0."""
        place, driver = MatrixPlace(False, PROBE, 0, 256), self.driver
        plan = self.plan(BlasProduct(dtype, dtype, PROBE, PROBE, PROBE, 1, place, place, place, relu=True, workspace=0))
        if plan is None:
            return False
        found, stream, begun = np.zeros((PROBE, PROBE), dtype), driver.new_stream(), list[int]()
        try:
            for byte in (0xFF, 0, 0):
                begun.append(driver.allocate(found.nbytes))
                driver.fill(begun[-1], byte, found.nbytes, stream)
            plan.enqueue(Addresses(begun[0], begun[1], begun[2], begun[2], 0, 0), stream)
            driver.copy(found.ctypes.data, begun[2], found.nbytes, stream)
            driver.synchronize(stream)
        finally:
            for address in begun:
                driver.free(address)
            driver.end_stream(stream)
        return bool(np.isnan(found.astype(np.float64)).all())


def open_blas(driver: Driver) -> CublasLt | None:
    """cuBLASLt on a device; None where there is none, which is said once."""
    return opened("products run", lambda: CublasLt(driver, library()))


def check(call: str, status: int) -> None:
    """CudaError for a status of the library other than success."""
    if status:
        raise CudaError(status, f"{call} fails with status {status} of cuBLASLt")
