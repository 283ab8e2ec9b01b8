"""A cuFFT that does what its manual says, by NumPy on memory of the driver of these tests, when its streams come to it.
Transforms of complex to real numbers spoil what they read; scratch memory is spoilt; nothing is scaled."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np

from nnc_core.base.dtype import complex64, complex128, float32, float64
from tests.cuda.host_calls import checked, memory
from tests.cuda.host_driver import HostDriver

TYPES = {0x2A: (float32, complex64), 0x2C: (complex64, float32), 0x29: (complex64, complex64),
         0x6A: (float64, complex128), 0x6C: (complex128, float64), 0x69: (complex128, complex128)}
CALLS = {"cufftExecR2C": 0x2A, "cufftExecC2R": 0x2C, "cufftExecC2C": 0x29,
         "cufftExecD2Z": 0x6A, "cufftExecZ2D": 0x6C, "cufftExecZ2Z": 0x69}
DECLARED = {
    "cufftCreate": "plan*", "cufftDestroy": "plan", "cufftSetAutoAllocation": "plan int",
    "cufftMakePlanMany64": "plan int long* long* long long long* long long int long size*",
    "cufftSetStream": "plan stream", "cufftSetWorkArea": "plan address",
    **{name: "plan address address" + " int" * (kind % 16 == 9) for name, kind in CALLS.items()}}
INVALID_PLAN, INVALID_VALUE, NO_WORKSPACE = 1, 4, 13
WORKSPACE = 4096


class FakeCufft:
    """The functions of cuFFT that are called."""

    def __init__(self, driver: HostDriver) -> None:
        self.driver, self._numbers = driver, count(1)
        self.plans: dict[int, dict[str, Any]] = {}
        self.calls: list[str] = []
        self.refuses = False

    def __getattr__(self, name: str) -> Any:
        if name not in DECLARED:
            raise AttributeError(name)

        def call(*arguments: Any) -> int:
            given = checked(name, DECLARED[name], arguments)
            if name != "cufftCreate" and given[0] not in self.plans:
                return INVALID_PLAN
            if name in CALLS:
                return self._execute(name, *given)
            return int(getattr(self, f"_{name}")(*given))

        return call

    def _cufftCreate(self, plan: Any) -> int:  # noqa: N802
        plan.value = next(self._numbers)
        self.plans[plan.value] = {"automatic": 1}
        return 0

    def _cufftDestroy(self, plan: int) -> int:  # noqa: N802
        del self.plans[plan]
        return 0

    def _cufftSetAutoAllocation(self, plan: int, automatic: int) -> int:  # noqa: N802
        self.plans[plan]["automatic"] = automatic
        return 0

    def _cufftMakePlanMany64(self, plan: int, rank: int, n: Any, inembed: Any, istride: int, idist: int,  # noqa: N802
                             onembed: Any, ostride: int, odist: int, kind: int, batch: int, size: Any) -> int:
        assert rank == 1 and kind in TYPES and self.plans[plan]["automatic"] == 0, "it would allocate by itself"
        if self.refuses or min(n.value, istride, ostride, batch, idist, odist) < 1:
            return INVALID_VALUE
        self.plans[plan] |= {"made": (n.value, istride, idist, ostride, odist, kind, batch)}
        size.value = WORKSPACE
        return 0

    def _cufftSetStream(self, plan: int, stream: int) -> int:  # noqa: N802
        self.plans[plan]["stream"] = stream
        return 0

    def _cufftSetWorkArea(self, plan: int, address: int) -> int:  # noqa: N802
        self.plans[plan]["work"] = address
        return 0

    def _execute(self, name: str, plan: int, x: int, y: int, direction: int = 0) -> int:
        state = dict(self.plans[plan])
        points, istride, idist, ostride, odist, kind, batch = state["made"]
        assert kind == CALLS[name] and direction in ((-1, 1) if kind % 16 == 9 else (0,))
        before, after = TYPES[kind]
        wide = max(before.itemsize, after.itemsize)
        assert x % wide == y % wide == 0, "real numbers are aligned as complex ones"
        if not (self.driver.holds(state["work"]) and self.driver.holds(state["work"] + WORKSPACE - 1)):
            return NO_WORKSPACE
        half = points // 2 + 1
        given = _rows(x, batch, half if name[-3:] in ("C2R", "Z2D") else points, istride, idist, before)
        room = _rows(y, batch, half if name[-3:] in ("R2C", "D2Z") else points, ostride, odist, after)
        self.calls.append(name)

        def run() -> None:
            memory(state["work"], WORKSPACE, np.dtype(np.uint8)).fill(0xA5)
            found = _transformed(name[-3:], given, points, direction)
            if name[-3:] in ("C2R", "Z2D"):
                alone = given[:, :: points // 2] if points % 2 == 0 and points > 1 else given[:, :1]
                assert not alone.imag.any(), "what comes of imaginary parts here is not said"
                given[...] = np.nan
            room[...] = found

        self.driver._enqueue(state["stream"], run)
        return 0


def _transformed(way: str, x: Any, points: int, direction: int) -> Any:
    if way in ("R2C", "D2Z"):
        return np.fft.rfft(x, axis=-1)
    if way in ("C2R", "Z2D"):
        return np.fft.irfft(x, points, axis=-1, norm="forward")
    return np.fft.fft(x, axis=-1) if direction == -1 else np.fft.ifft(x, axis=-1, norm="forward")


def _rows(address: int, rows: int, points: int, step: int, distance: int, dtype: Any) -> Any:
    flat = memory(address, (rows - 1) * distance + (points - 1) * step + 1, dtype)
    return np.lib.stride_tricks.as_strided(flat, (rows, points), (distance * dtype.itemsize, step * dtype.itemsize))
