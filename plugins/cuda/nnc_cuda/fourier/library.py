"""The interface of a vendor's library of Fourier transforms."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from nnc_core.base.dtype import DType
from nnc_core.operator.steps.fourier_text import Way


class RowSteps(NamedTuple):
    """Steps between elements of an array, in elements: within a row, and from one row to the next."""

    step: int
    distance: int


class Transform(NamedTuple):
    """Transforms of so many rows, without a scale.  "fft": complex to complex; "rfft": real to the points // 2 + 1
    frequencies that are not conjugates of others; "irfft": the other way, where the imaginary parts of frequencies that
    are their own conjugates are 0."""

    way: Way
    dtype: DType
    """Of the complex numbers."""
    points: int
    rows: int
    x: RowSteps
    y: RowSteps
    inverse: bool


class FourierPlan(Protocol):
    """An algorithm for such transforms."""

    workspace: int
    """Bytes that it wants."""

    def enqueue(self, x: int, y: int, workspace: int, stream: int) -> None:
        """Enqueue the transforms of rows at addresses; what is real is aligned as complex numbers are.  Of "irfft" x
        may be overwritten; of "fft" both may be the same.  Nothing is allocated, and the host waits for nothing.
        CudaError if it is refused."""
        ...


class FourierLibrary(Protocol):
    """The library on one device.  Any thread may call it."""

    def plan(self, transform: Transform) -> FourierPlan:
        """The plan of a kind of transforms, made once and kept; CudaError if the library has none."""
        ...
