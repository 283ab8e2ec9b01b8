"""Buffers: memory of the device at addresses."""

from __future__ import annotations

from contextlib import suppress

from nnc_cuda.driver import CudaError, Driver


class CudaBuffer:
    """Bytes at an address; it keeps the buffer alive that it is a part of."""

    __slots__ = ("__weakref__", "address", "nbytes", "whole")

    def __init__(self, address: int, nbytes: int, whole: CudaBuffer | None) -> None:
        self.address, self.nbytes, self.whole = address, nbytes, whole

    def __repr__(self) -> str:
        return f"<CUDA buffer of {self.nbytes} bytes at {self.address:#x}>"


class Allocation(CudaBuffer):
    """Memory of the driver's, which goes back to it with this."""

    __slots__ = ("driver",)

    def __init__(self, driver: Driver, address: int, nbytes: int) -> None:
        super().__init__(address, nbytes, None)
        self.driver = driver

    def __del__(self) -> None:
        with suppress(CudaError):  # the context has died, and the memory with it
            self.driver.free(self.address)
