"""Products by the vendor's library, where it can: matrices that lie row by row or column by column, in batches, and
what it knows to follow them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from nnc_core.base.command import Command
from nnc_core.base.config import config
from nnc_core.base.dtype import bfloat16, float16, float32, int8
from nnc_core.base.errors import NotSupportedError
from nnc_core.device import Buffer, CommandBackend, Kernel, Launch, Stream
from nnc_core.operator.fused import FUSED
from nnc_core.operator.products.arrange import arranged, operator_of, read_where_written
from nnc_core.operator.products.problem import MatrixProduct, Strided
from nnc_cuda.blas import Addresses, Blas, BlasPlan, BlasProduct, MatrixPlace
from nnc_cuda.driver import Driver
from nnc_cuda.kernel import CapturableKernel, EnqueuedLaunch
from nnc_cuda.products.endings import SimpleEnding, simple_ending
from nnc_cuda.stream import CudaStream

WORTH = 1 << 18
"""Multiply-adds from which on a call of the library pays."""
MOST = 1 << 31
MOST_INTEGER_STEPS = 1 << 17
"""Steps from which on sums of integers of 8 bits may not fit int32, where ours wrap around."""
ALIGNED = 256
"""Bytes that buffers are aligned to, as far as anybody asks."""


class PlacedArray(NamedTuple):
    """The beginning of an array: the number of its buffer, and bytes."""

    buffer: int
    first: int


class PlacedProduct(NamedTuple):
    """A product for the library, and the places of A, B, C, D and the bias; D for those that are not there."""

    product: BlasProduct
    places: tuple[PlacedArray, PlacedArray, PlacedArray, PlacedArray, PlacedArray]


@lru_cache(maxsize=1024)
def placed(command: Command) -> PlacedProduct:
    """The product of a command; NotSupportedError where the library takes none like it."""
    problem = arranged(command)
    _refuse_others(problem)
    axes = [n for n, length in enumerate(problem.batch) if length > 1]
    if len(axes) > 1:
        raise NotSupportedError("batches lie apart on several axes")
    ending = simple_ending(problem.ending, problem.dtype)
    return _placed(problem, ending, axes[0] if axes else None)


def _refuse_others(problem: MatrixProduct) -> None:
    if problem.windows is not None or problem.parts or problem.each or problem.panel or problem.segments > 1:
        raise NotSupportedError("the library takes no windows")
    if problem.work < WORTH:
        raise NotSupportedError("it is too small to pay")
    if problem.b_dtype not in (None, problem.dtype):
        raise NotSupportedError("the factors have two dtypes")
    if problem.dtype.itemsize == 1 and (problem.dtype != int8 or problem.steps >= MOST_INTEGER_STEPS):
        raise NotSupportedError("sums may not fit, or are of integers without a sign")


def _placed(problem: MatrixProduct, ending: SimpleEnding, axis: int | None) -> PlacedProduct:
    rows, columns, steps, result = problem.rows, problem.columns, problem.steps, problem.ending.outputs[0]
    if result != problem.wide and not (result == problem.dtype and result in (float16, bfloat16)):
        raise NotSupportedError(f"the library gives no {result} for {problem.dtype}")
    a = _matrix(problem.a, rows, steps, axis, problem.dtype.itemsize)
    b = _matrix(problem.b, steps, columns, axis, problem.dtype.itemsize)
    d = _matrix(problem.others[-1], rows, columns, axis, result.itemsize)
    if d.turned:
        raise NotSupportedError("the result lies column by column")
    operands = _operands(problem, ending, axis)
    c, bias = operands.get("matrix"), operands.get("row")
    if max([rows, columns, steps, *[matrix.distance for matrix in (a, b, d)]]) >= MOST:
        raise NotSupportedError("the library counts with 32 bits")
    product = BlasProduct(
        problem.dtype, result, rows, columns, steps, 1 if axis is None else problem.batch[axis], a, b, d,
        None if c is None else _matrix(problem.others[c], rows, columns, axis, result.itemsize),
        0 if bias is None else _alignment(problem.others[bias].offset * result.itemsize), ending.relu, ending.scale)
    sizes = problem.dtype.itemsize, problem.dtype.itemsize, *[x.itemsize for x in problem.ending.dtypes]
    all_places = [PlacedArray(buffer, x.offset * size) for buffer, x, size in
                  zip(problem.order, (problem.a, problem.b, *problem.others), sizes, strict=True)]
    at_c, at_bias = (all_places[-1 if n is None else n + 2] for n in (c, bias))
    return PlacedProduct(product, (all_places[0], all_places[1], at_c, all_places[-1], at_bias))


def _operands(problem: MatrixProduct, ending: SimpleEnding, axis: int | None) -> dict[str, int]:
    """The number of the operand that is a matrix, and of the one that is a row for all."""
    found: dict[str, int] = {}
    for number in ending.operands:
        x = problem.others[number]
        if problem.ending.operands[number].dtype != problem.ending.outputs[0]:
            raise NotSupportedError("what is added has another dtype than the result")
        if problem.dtype == int8:
            raise NotSupportedError("integers are followed by nothing")
        row = not x.row and (axis is None or not x.batch[axis]) and (x.column == 1 or problem.columns == 1)
        kind = "row" if row and problem.rows > 1 else "matrix"
        if kind in found or (kind == "matrix" and _turns(x, problem)):
            raise NotSupportedError("the library adds one matrix, row by row, and one row")
        found[kind] = number
    return found


def _turns(x: Strided, problem: MatrixProduct) -> bool:
    return x.column != 1 and problem.columns > 1


def _matrix(x: Strided, rows: int, columns: int, axis: int | None, size: int) -> MatrixPlace:
    step, alignment = 0 if axis is None else x.batch[axis], _alignment(x.offset * size)
    if (x.column == 1 or columns == 1) and (x.row >= columns or rows == 1):
        return MatrixPlace(False, max(x.row, columns), step, alignment)
    if (x.row == 1 or rows == 1) and (x.column >= rows or columns == 1):
        return MatrixPlace(True, max(x.column, rows), step, alignment)
    raise NotSupportedError("elements lie apart on both axes, or are repeated")


def _alignment(address: int) -> int:
    """The power of two that an address is a multiple of, at most that which buffers are aligned to."""
    return min(address & -address, ALIGNED) if address else ALIGNED


class LibraryLaunch(EnqueuedLaunch):
    """A call of the library with its arguments set."""

    __slots__ = ("_addresses", "_kept", "_plan")

    def __init__(self, plan: BlasPlan, addresses: Addresses, kept: object, stream: CudaStream) -> None:
        super().__init__("a product of the library", stream)
        self._plan, self._addresses, self._kept = plan, addresses, kept

    def enqueue(self, driver: Driver, stream: int) -> None:
        self._plan.enqueue(self._addresses, stream)


class LibraryProduct(CapturableKernel):
    """A product by the library."""

    name = "a product of the library"

    def __init__(self, blas: Blas, placed: PlacedProduct, workspace: int, default: CudaStream) -> None:
        self.blas, self.placed, self.workspace, self.default = blas, placed, workspace, default

    def bind(self, buffers: Sequence[Buffer], stream: Stream | None = None) -> Launch:
        """Inputs, the output, and the workspace.  `config.matmul_precision` counts as it is now."""
        given: Sequence[Any] = buffers
        a, b, c, d, bias = [given[place.buffer].address + place.first for place in self.placed.places]
        addresses = Addresses(a, b, c, d, bias, given[-1].address if self.workspace else 0)
        plan = self._plan(self._as_it_lies(addresses))
        return LibraryLaunch(plan, addresses, buffers, self.queue(stream))

    def _as_it_lies(self, addresses: Addresses) -> BlasProduct:
        """The product, its arrays aligned as they are here: those of others may be less aligned than ours."""
        product = self.placed.product
        at = [_alignment(address) for address in addresses[:5]]
        known = [product.a, product.b, product.c or product.d, product.d]
        if all([place.alignment <= real for place, real in zip(known, at, strict=False)]) and product.bias <= at[4]:
            return product
        a, b, c, d = (place._replace(alignment=min(place.alignment, real))
                      for place, real in zip(known, at, strict=False))
        return product._replace(a=a, b=b, c=c if product.c else None, d=d, bias=min(product.bias, at[4]),
                                workspace=self.workspace)

    def _plan(self, product: BlasProduct) -> BlasPlan:
        with_tf32 = product.dtype == float32 and config.matmul_precision == "tf32"
        plan = self.blas.plan(product._replace(tf32=True)) if with_tf32 else None
        plan = plan or self.blas.plan(product)
        if plan is None:
            raise NotSupportedError("the library has no algorithm for arrays that are aligned like these")
        return plan


class LibraryProducts(CommandBackend):
    """Products of one operator by the library, which is opened when it is first wanted; None: there is none."""

    name = "library"
    fuses = True

    def __init__(self, operator: str, blas: Callable[[], Blas | None], default: CudaStream) -> None:
        self.operator, self.blas, self.default = operator, blas, default

    def refuse(self, command: Command) -> str | None:
        if operator_of(command) != self.operator:
            return f"it is made for {self.operator}"
        try:
            product = placed(command).product
        except NotSupportedError as error:
            return error.message
        if config.deterministic and command.name == FUSED.name:
            return "its steps would not be rounded one by one"
        blas = self.blas()
        if blas is None:
            return "there is no library"
        if product.relu and not blas.keeps_nan(product.dtype):
            return "its relu makes numbers of what is none"
        return None if blas.plan(product) else "the library has no algorithm for it"

    def prepare(self, command: Command) -> Kernel:
        blas = self.blas()
        assert blas is not None
        return LibraryProduct(blas, placed(command), self.workspace(command), self.default)

    def workspace(self, command: Command) -> int:
        """The bytes that the algorithms want for either precision."""
        blas, product = self.blas(), placed(command).product
        assert blas is not None
        precisions = (False, True) if product.dtype == float32 else (False,)
        plans = [blas.plan(product._replace(tf32=tf32)) for tf32 in precisions]
        return max([plan.workspace for plan in plans if plan])

    def inplace_of(self, command: Command, output: int, offered: tuple[int, ...]) -> tuple[int, ...]:
        """The matrix that is added, where it lies as the result does."""
        product, places = placed(command).product, placed(command).places
        return tuple([place for place in read_where_written(command, output)
                      if product.c == product.d and place == places[2].buffer])
