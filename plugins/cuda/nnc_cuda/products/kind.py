"""Kinds of products: all that their source depends on; everything else is a number that the kernel is given."""

from __future__ import annotations

from typing import Literal, NamedTuple

from nnc_core.base.dtype import DType, accumulator
from nnc_core.operator.products.ending import Ending
from nnc_core.operator.products.numbers import AXES, AlongRow, array_names, place_names

THREADS = 256
"""Threads of a block, 16 x 16."""
STEPS = 16
"""Steps of the sums whose factors are in shared memory at once."""



class ProductKind(NamedTuple):
    """Products that share their source: C[m, n] = sum over k of A[m, k] B[k, n], in order, by fused multiply-add."""

    dtype: DType
    """Of the elements of both factors; float16 and bfloat16 are converted to float32 where they are loaded."""
    rows: int
    """Rows and columns of the sums that each thread keeps: 4 or 8."""
    columns: int
    left: Literal["rows", "columns"]
    """Elements of A that neighbouring threads load: of one row, or of one column."""
    right: Literal["rows", "columns"]
    """The same of B."""
    whole: bool
    """Steps of B lie at even distances: segments need not be told apart."""
    axes: int
    """Spatial axes of windows; 0: A is a matrix."""
    run: bool
    """Neighbouring elements of windows on the last axis are neighbours in memory, and are gone through as one."""
    apart: bool
    """Rows of the result are found from the places of windows."""
    split: bool
    """Steps are split among blocks, whose sums another kernel adds up in order."""
    far: bool
    """Places of elements do not fit 32 bits."""
    ending: Ending
    along: tuple[AlongRow, ...]
    """How elements of a row of each operand of the ending, and of each output, lie."""
    order: tuple[int, ...]
    """Places of A, B, the operands of the ending and its outputs among the arguments."""

    @property
    def height(self) -> int:
        """Rows of a block's tile."""
        return 16 * self.rows

    @property
    def width(self) -> int:
        """Columns of a block's tile."""
        return 16 * self.columns

    @property
    def wide(self) -> DType:
        """The dtype of sums."""
        return accumulator(self.dtype)

    @property
    def arrays(self) -> list[str]:
        """Names: A, B, then operands and outputs of the ending."""
        return array_names(len(self.along))

    @property
    def dtypes(self) -> list[DType]:
        """The dtypes of all arrays."""
        return [self.dtype, self.dtype, *self.ending.dtypes]

    @property
    def numbers(self) -> list[str]:
        """Names of the numbers that a kernel is given, in order."""
        return ["rows", "columns", "steps", "panels", "blocks", "splits", "split_steps", "length", "channels",
                 *[f"batch{n}" for n in range(AXES)], *place_names(self.arrays, self.axes)]
