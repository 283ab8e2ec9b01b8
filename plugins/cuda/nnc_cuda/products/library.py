"""Products by the vendor's library, where it can: matrices that lie row by row or column by column, in batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from nnc_core.base.command import Command
from nnc_core.base.config import config
from nnc_core.base.dtype import float32
from nnc_core.base.errors import NotSupportedError
from nnc_core.device import Buffer, CommandBackend, Kernel, Launch, Stream
from nnc_core.operator.products.arrange import arranged, operator_of
from nnc_core.operator.products.ending import plain_ending
from nnc_core.operator.products.problem import MatrixProduct, Strided
from nnc_cuda.blas import Blas, BlasMatrix, BlasProduct
from nnc_cuda.driver import Driver
from nnc_cuda.kernel import CapturableKernel, EnqueuedLaunch
from nnc_cuda.stream import CudaStream

WORTH = 1 << 18
"""Multiply-adds from which on a call of the library pays."""
WORKSPACE = 32 << 20
"""Bytes that cuBLAS recommends for GPUs from compute capability 9.0 on."""
MOST = 1 << 31


class PlacedMatrix(NamedTuple):
    """Place of a matrix: the number of its buffer, and elements."""

    buffer: int
    first: int
    turned: bool
    distance: int
    step: int


class PlacedProduct(NamedTuple):
    problem: MatrixProduct
    times: int
    matrices: tuple[PlacedMatrix, PlacedMatrix, PlacedMatrix]


@lru_cache(maxsize=1024)
def placed(command: Command) -> PlacedProduct:
    """The matrices of a command; NotSupportedError where they are none that the library takes."""
    problem = arranged(command)
    if problem.ending != plain_ending(problem.wide, problem.dtype):
        raise NotSupportedError("the library gives products as they are")
    return placed_product(problem)


def placed_product(problem: MatrixProduct) -> PlacedProduct:
    """The same for a problem, whatever follows it."""
    if problem.windows is not None or problem.parts or problem.each or problem.panel or problem.segments > 1:
        raise NotSupportedError("the library takes no windows")
    if problem.work < WORTH:
        raise NotSupportedError("it is too small to pay")
    axes = [n for n, length in enumerate(problem.batch) if length > 1]
    if len(axes) > 1:
        raise NotSupportedError("batches lie apart on several axes")
    a, b, c = problem.a, problem.b, problem.others[-1]
    rows, columns, steps = problem.rows, problem.columns, problem.steps
    sizes = ((a, rows, steps), (b, steps, columns), (c, rows, columns))
    matrices = [_placed(x, size, buffer, axes) for (x, *size), buffer in
                zip(sizes, (*problem.order[:2], problem.order[-1]), strict=True)]
    if matrices[2].turned:
        raise NotSupportedError("the result lies column by column")
    if max([rows, columns, steps, *[matrix.distance for matrix in matrices]]) >= MOST:
        raise NotSupportedError("the library counts with 32 bits")
    count = problem.batch[axes[0]] if axes else 1
    return PlacedProduct(problem, count, (matrices[0], matrices[1], matrices[2]))


def _placed(x: Strided, size: Sequence[int], buffer: int, axes: Sequence[int]) -> PlacedMatrix:
    rows, columns = size
    step = x.batch[axes[0]] if axes else 0
    if (x.column == 1 or columns == 1) and (x.row >= columns or rows == 1):
        return PlacedMatrix(buffer, x.offset, False, max(x.row, columns), step)
    if (x.row == 1 or rows == 1) and (x.column >= rows or columns == 1):
        return PlacedMatrix(buffer, x.offset, True, max(x.column, rows), step)
    raise NotSupportedError("elements lie apart on both axes, or are repeated")


class LibraryLaunch(EnqueuedLaunch):
    """A call of the library with its arguments set."""

    __slots__ = ("_blas", "_kept", "_product", "_workspace")

    def __init__(self, blas: Blas, product: BlasProduct, workspace: tuple[int, int], kept: object,
                 stream: CudaStream) -> None:
        super().__init__("a product of the library", stream)
        self._blas, self._product, self._workspace, self._kept = blas, product, workspace, kept

    def enqueue(self, driver: Driver, stream: int) -> None:
        self._blas.product(self._product, self._workspace, stream)


class LibraryProduct(CapturableKernel):
    """A product by the library."""

    name = "a product of the library"

    def __init__(self, blas: Blas, placed: PlacedProduct, default: CudaStream) -> None:
        self.blas, self.placed, self.default = blas, placed, default

    def bind(self, buffers: Sequence[Buffer], stream: Stream | None = None) -> Launch:
        """Inputs, the output, and the workspace.  `config.matmul_precision` counts as it is now."""
        given: Sequence[Any] = buffers
        problem, size = self.placed.problem, self.placed.problem.dtype.itemsize
        a, b, c = (BlasMatrix(given[x.buffer].address + x.first * size, x.turned, x.distance, x.step)
                   for x in self.placed.matrices)
        product = BlasProduct(problem.dtype, problem.rows, problem.columns, problem.steps, self.placed.times, a, b, c,
                              problem.dtype == float32 and config.matmul_precision == "tf32")
        workspace = given[-1].address, given[-1].nbytes
        return LibraryLaunch(self.blas, product, workspace, buffers, self.queue(stream))


class LibraryProducts(CommandBackend):
    """Products of one operator by the library, which is opened when it is first wanted; None: there is none."""

    name = "library"

    def __init__(self, operator: str, blas: Callable[[], Blas | None], default: CudaStream) -> None:
        self.operator, self.blas, self.default = operator, blas, default

    def refuse(self, command: Command) -> str | None:
        if operator_of(command) != self.operator:
            return f"it is made for {self.operator}"
        try:
            placed(command)
        except NotSupportedError as error:
            return error.message
        return "there is no library" if self.blas() is None else None

    def prepare(self, command: Command) -> Kernel:
        blas = self.blas()
        assert blas is not None
        return LibraryProduct(blas, placed(command), self.default)

    def workspace(self, command: Command) -> int:
        return WORKSPACE
