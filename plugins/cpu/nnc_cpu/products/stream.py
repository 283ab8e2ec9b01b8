"""Images that do not fit into caches: tiles send for what the next block of rows will read of them.

A panel of a depthwise convolution reads some lines of each pixel, and tiles of other products many rows at once, which
processors foresee badly: memory then gives a fifth of what it can.  What a block reads is one run of memory, of which
each tile of the block before sends for a share.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from nnc_core.operator.products.problem import ImageWindows, MatrixProduct
from nnc_cpu.llvm.ir import FunctionWriter, Register, integer
from nnc_cpu.products.ending import LINE
from nnc_cpu.products.kind import Kind
from nnc_cpu.products.writing import moved, prefetch, product, total

LARGE = 1 << 21
"""Bytes of images from which on they come from memory."""


def stream_numbers(problem: MatrixProduct, kind: Kind, panels: int, block_rows: int, blocks: int) -> dict[str, int]:
    """`stream_first`: elements between what the first row of a block reads first and what it reads last, `stream_row`:
    those that each row reads anew, `stream_share`: those that a tile sends for at each of `stream_blocks` blocks of
    steps.  None of them, which are 0, where rows are few, or more is written than read."""
    if not kind.streams or prod(problem.batch) > 1 or block_rows >= problem.rows:
        return {}
    if problem.windows is None and problem.steps < problem.columns:
        return {}
    first, row = (0, problem.a.row) if problem.windows is None else _seen(problem.windows)
    if problem.rows * row * kind.dtype.itemsize < LARGE:
        return {}
    calls, line = panels * -(-block_rows // kind.rows) * blocks, LINE // kind.dtype.itemsize
    share = -(-block_rows * row // (calls * line)) * line
    return {"stream_first": first, "stream_row": row, "stream_share": share, "stream_blocks": blocks}


def _seen(windows: ImageWindows) -> tuple[int, int]:
    """Elements between the first pixel that a window sees and the last, and those that each window sees anew."""
    outer = max(windows.axes, key=lambda axis: axis.pixel)
    reach = (outer.window - 1) * outer.step + outer.offset
    pixels = prod([axis.stride for axis in windows.axes])
    return max(reach, 0) * outer.pixel, pixels * min([axis.pixel for axis in windows.axes])


class StreamWriter:
    """Writes what tiles send for."""

    def __init__(self, kind: Kind, function: FunctionWriter, type: str, numbers: Mapping[str, Register]) -> None:
        self.kind, self.function, self.type, self.numbers = kind, function, type, numbers
        self.next = function.variable("ptr")

    def begin(self, a: Register, first_row: Register, panel: Register, tiles: Register) -> None:
        """Note where a task is: A, the first row of its block, its panel, and the tiles of the block."""
        f, numbers = self.function, self.numbers
        following = product(f, total(f, first_row, numbers["block_rows"]), numbers["stream_row"])
        calls = product(f, product(f, panel, tiles), numbers["stream_blocks"])
        before = product(f, calls, numbers["stream_share"])
        f.set(self.next, moved(f, a, self.type, total(f, total(f, following, numbers["stream_first"]), before)))

    def of_tile(self) -> None:
        """Send for the share of a tile and a block of steps."""
        f, share = self.function, self.numbers["stream_share"]
        place = f.get(self.next, "ptr")
        f.set(self.next, moved(f, place, self.type, share))
        with f.loop(integer(0), share, LINE // self.kind.dtype.itemsize) as n:
            prefetch(f, moved(f, place, self.type, n))
