"""Kinds of products: all that their source depends on; everything else is a number that the kernel is given."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from nnc_core.base.dtype import DType, accumulator
from nnc_core.operator.products.ending import Ending
from nnc_core.operator.products.numbers import AXES, AlongRow, array_names, place_names

Left: TypeAlias = Literal["rows", "columns", "each", "taps"]


class SumTile(NamedTuple):
    """Sums that are kept in registers at once: some rows, each of some vectors of lanes; and the steps of the sums
    that are packed at once."""

    rows: int
    vectors: int
    lanes: int
    steps: int

    @property
    def width(self) -> int:
        """Columns."""
        return self.vectors * self.lanes


class TiledKind(NamedTuple):
    """Products that share their source: C[m, n] = sum over k of A[m, k] B[k, n], in order, by fused multiply-add."""

    dtype: DType
    """Of the elements of both factors; float16 and bfloat16 are converted to float32 where they are packed."""
    tile: SumTile
    grouped: bool
    """A tile for each group of work items, with factors in local memory, rather than for each work item."""
    left: Left
    """How A is packed: its rows one after another, or the column of each step; in depthwise convolutions it is not:
    "each" where rows are windows, "taps" where they are elements of windows."""
    a_dense: bool
    """What is packed of A lies in one piece."""
    right: Literal["rows", "columns", "apart"]
    """How B lies: elements of its rows, or of its columns, are neighbours, or neither."""
    axes: int
    """Spatial axes of windows; 0: A is a matrix."""
    run: bool
    """Neighbouring elements of windows on the last axis are neighbours in memory, and are packed as one."""
    apart: bool
    """Rows of the result are found from the places of windows."""
    ending: Ending
    columns: tuple[AlongRow, ...]
    """How elements of a row of each operand of the ending, and of each output, lie."""
    order: tuple[int, ...]
    """Places of A, B, the operands of the ending and its outputs among the arguments."""

    @property
    def wide(self) -> DType:
        """The dtype of sums."""
        return accumulator(self.dtype)

    @property
    def is_plain(self) -> bool:
        """A sum is stored as it is, along memory."""
        stored = [instruction.operation for instruction in self.ending.body] == ["load", "store"]
        return stored and self.columns == ("dense",) and self.dtype == self.wide

    @property
    def arrays(self) -> list[str]:
        """Names: A, B, then operands and outputs of the ending."""
        return array_names(len(self.columns))

    @property
    def dtypes(self) -> list[DType]:
        """The dtypes of all arrays."""
        return [self.dtype, self.dtype, *self.ending.dtypes]

    @property
    def numbers(self) -> list[str]:
        """Names of the numbers that a kernel is given, in order."""
        return ["rows", "columns", "steps", "panels", "blocks", "block_rows", "length", "channels",
                 *[f"batch{n}" for n in range(1, AXES)], *place_names(self.arrays, self.axes)]
