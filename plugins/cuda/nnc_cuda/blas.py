"""The interface of a vendor's library of matrix products."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from nnc_core.base.dtype import DType


class MatrixPlace(NamedTuple):
    """The place of a matrix of each of several products, in elements, and the alignment of its address in bytes."""

    turned: bool
    """It lies column by column rather than row by row."""
    distance: int
    """From one row, or column, to the next."""
    step: int
    """From one product to the next."""
    alignment: int


class BlasProduct(NamedTuple):
    """D = relu(scale A B + C + bias), several times; C, bias, relu only where they are asked for.

    Halves are added in float32, and rounded when all is done; integers of 8 bits are added as int32.
    """

    dtype: DType
    """Of A and B."""
    result: DType
    """Of all others."""
    rows: int
    columns: int
    steps: int
    times: int
    a: MatrixPlace
    b: MatrixPlace
    d: MatrixPlace
    c: MatrixPlace | None = None
    bias: int = 0
    """The alignment of the address of a number for each column, in bytes; 0 where there are none."""
    relu: bool = False
    scale: float = 1.0
    tf32: bool = False
    """Factors of float32 may be rounded to ten bits behind the point."""
    workspace: int = 32 << 20
    """Bytes of workspace, at most; these are what is recommended for GPUs from compute capability 9.0 on."""


class Addresses(NamedTuple):
    """The addresses of a product's arrays."""

    a: int
    b: int
    c: int
    d: int
    bias: int
    workspace: int


class BlasPlan(Protocol):
    """An algorithm for products of one kind."""

    workspace: int
    """Bytes that it wants."""

    def enqueue(self, addresses: Addresses, stream: int) -> None:
        """Enqueue such a product, whose workspace is its own until it is done: nothing is allocated, and the host waits
        for nothing.  CudaError if it is refused."""
        ...


class Blas(Protocol):
    """The library on one device.  Any thread may call it."""

    def plan(self, product: BlasProduct) -> BlasPlan | None:
        """The algorithm for a product, chosen once and kept; None where the library has none."""
        ...

    def keeps_nan(self, dtype: DType) -> bool:
        """Tell whether its relu gives NaN for NaN."""
        ...
