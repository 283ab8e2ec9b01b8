"""cuFFT through ctypes."""

from __future__ import annotations

from contextlib import suppress
from ctypes import byref, c_int, c_longlong, c_size_t, c_void_p
from threading import Lock
from typing import Any

from nnc_core.base.cache import LRU
from nnc_core.base.dtype import complex64
from nnc_cuda.driver import CudaError, Driver
from nnc_cuda.fourier.library import RowSteps, Transform
from nnc_cuda.vendor import load, opened

TYPES = {("rfft", True): 0x2A, ("irfft", True): 0x2C, ("fft", True): 0x29,
         ("rfft", False): 0x6A, ("irfft", False): 0x6C, ("fft", False): 0x69}
"""CUFFT_R2C, _C2R, _C2C of single precision, CUFFT_D2Z, _Z2D, _Z2Z of double precision."""
CALLS = {0x2A: "cufftExecR2C", 0x2C: "cufftExecC2R", 0x29: "cufftExecC2C",
         0x6A: "cufftExecD2Z", 0x6C: "cufftExecZ2D", 0x69: "cufftExecZ2Z"}
FORWARD, INVERSE = -1, 1
"""CUFFT_FORWARD, CUFFT_INVERSE."""
KEPT = 256
"""Plans that are kept; programs keep theirs for as long as they live."""


class CufftPlan:
    """A plan of the library, which goes with this.  Any thread may enqueue it."""

    def __init__(self, driver: Driver, functions: Any, transform: Transform) -> None:
        self.driver, self.functions, self._handle, self._lock = driver, functions, c_int(), Lock()
        self._made = False
        self._type = TYPES[transform.way, transform.dtype == complex64]
        self._directions = (c_int(INVERSE if transform.inverse else FORWARD),) if transform.way == "fft" else ()
        self._call("cufftCreate", byref(self._handle))
        self._made = True
        self._call("cufftSetAutoAllocation", self._handle, c_int(0))
        size, n = c_size_t(), c_longlong(transform.points)
        self._call("cufftMakePlanMany64", self._handle, c_int(1), byref(n), *_placed(transform.x, transform.points),
                   *_placed(transform.y, transform.points), c_int(self._type), c_longlong(transform.rows), byref(size))
        self.workspace = int(size.value)

    def enqueue(self, x: int, y: int, workspace: int, stream: int) -> None:
        with self._lock, self.driver.current():
            self._call("cufftSetStream", self._handle, c_void_p(stream))
            if self.workspace:
                self._call("cufftSetWorkArea", self._handle, c_void_p(workspace))
            self._call(CALLS[self._type], self._handle, c_void_p(x), c_void_p(y), *self._directions)

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self.functions, name)(*arguments)
        if status:
            raise CudaError(status, f"{name} fails with status {status} of cuFFT")

    def __del__(self) -> None:
        if self._made:
            with suppress(CudaError), self.driver.current():
                self._call("cufftDestroy", self._handle)


def _placed(rows: RowSteps, points: int) -> tuple[Any, ...]:
    """Places of rows: lengths in storage, which a single axis does not need but which say that steps count; steps."""
    return byref(c_longlong(points)), c_longlong(rows.step), c_longlong(rows.distance)


class Cufft:
    """The library on one device."""

    def __init__(self, driver: Driver, functions: Any) -> None:
        """`functions`: the library, or something that has its functions."""
        self.driver, self.functions = driver, functions
        self._plans: LRU[Transform, CufftPlan] = LRU(KEPT)

    def plan(self, transform: Transform) -> CufftPlan:
        return self._plans.find(transform, lambda: self._planned(transform))

    def _planned(self, transform: Transform) -> CufftPlan:
        with self.driver.current():
            return CufftPlan(self.driver, self.functions, transform)


def open_fourier(driver: Driver) -> Cufft | None:
    """cuFFT on a device; None where there is none, which is said once."""
    return opened("Fourier transforms run", lambda: Cufft(driver, load("cufft")))
