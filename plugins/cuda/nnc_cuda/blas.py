"""The interface of a vendor's library of matrix products."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from nnc_core.base.dtype import DType


class BlasMatrix(NamedTuple):
    """A matrix of each of several products, in elements."""

    address: int
    turned: bool
    """It lies column by column rather than row by row."""
    distance: int
    """From one row, or column, to the next."""
    step: int
    """From one product to the next."""


class BlasProduct(NamedTuple):
    """C = A B, several times.  Halves are added in float32."""

    dtype: DType
    rows: int
    columns: int
    steps: int
    times: int
    a: BlasMatrix
    b: BlasMatrix
    c: BlasMatrix
    tf32: bool = False
    """Factors of float32 may be rounded to ten bits behind the point."""


class Blas(Protocol):
    """The library on one device."""

    def product(self, product: BlasProduct, workspace: tuple[int, int], stream: int) -> None:
        """Enqueue a product, whose workspace, address and bytes, is its own until it is done: nothing is allocated,
        and the host waits for nothing.  CudaError if it is refused."""
        ...
