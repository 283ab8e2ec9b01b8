"""Kinds of products: all that their source depends on; everything else is a number that the kernel is given."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from nnc_core.base.dtype import DType, accumulator
from nnc_core.operator.products.ending import Ending

AXES = 3
"""Axes of batches."""
SPATIAL = ("places", "image", "stride", "offset", "step", "window", "pixel", "tap", "row")
"""Numbers of each spatial axis of windows: see `WindowAxis`."""

Order: TypeAlias = Literal["rows", "columns"]
Column: TypeAlias = Literal["one", "dense", "apart"]


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
    left: Order
    """How A is packed: its rows one after another, or the column of each step."""
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
    columns: tuple[Column, ...]
    """How elements of a row of each operand of the ending, and of each output, lie."""
    order: tuple[int, ...]
    """Places of A, B, the operands of the ending and its outputs among the arguments."""

    @property
    def wide(self) -> DType:
        """The dtype of sums."""
        return accumulator(self.dtype)

    @property
    def arrays(self) -> list[str]:
        """Names: A, B, then operands and outputs of the ending."""
        return ["a", "b", *[f"x{n}" for n in range(len(self.columns))]]

    @property
    def dtypes(self) -> list[DType]:
        """The dtypes of all arrays."""
        operands = [operand.dtype for operand in self.ending.operands]
        return [self.dtype, self.dtype, *operands, *self.ending.outputs]

    @property
    def numbers(self) -> list[str]:
        """Names of the numbers that a kernel is given, in order."""
        names = ["rows", "columns", "steps", "panels", "blocks", "block_rows", "length", "channels",
                 *[f"batch{n}" for n in range(1, AXES)]]
        for name in self.arrays:
            names += [f"{name}_first", f"{name}_row", f"{name}_column", *[f"{name}_batch{n}" for n in range(AXES)]]
        if self.axes:
            names += [f"{field}{n}" for field in SPATIAL for n in range(self.axes)]
            names += ["image_step", "image_rows"]
        return names
