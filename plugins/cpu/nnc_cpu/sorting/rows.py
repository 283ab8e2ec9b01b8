"""Rows whose order one code finds: words that hold an element's rank above its position, sorted by the digits of ranks.

A digit is a byte, so that the counts of a short row are soon made.  Ranks of up to 32 bits leave as many for positions;
those of 64 have a second word beside them for it.  Words come in the order of their positions, and each pass keeps that
of equal digits: so do equal elements.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from nnc_core.base.command import Command
from nnc_core.base.dtype import DType, boolean, float32, float64, is_integer
from nnc_core.base.errors import NotSupportedError

DIGITS, WORD = 256, 8
"""Values of a digit, and bytes of a word."""


class RowKind(NamedTuple):
    """All that the code depends on; everything else is a number that it is given."""

    element_type: str
    """Its type in LLVM."""
    bits: int
    signed: bool
    descending: bool

    @property
    def passes(self) -> int:
        return self.bits // 8

    @property
    def words(self) -> int:
        """Words for each element."""
        return 2 if self.bits > 32 else 1


class RowNumbers(NamedTuple):
    """Numbers that the code is given: rows of `length` elements, `inner` of which begin side by side; tasks are `each`
    of them, and have `room` bytes of scratch memory."""

    rows: int
    length: int
    inner: int
    x_offset: int
    out_offset: int
    each: int
    room: int


class RowProblem(NamedTuple):
    """A kind, and the numbers of one command in one task."""

    kind: RowKind
    numbers: RowNumbers


def rows_of(command: Command) -> RowProblem:
    """The problem of an `argsort`; NotSupportedError where there is no code for it."""
    axis, descending = command.attributes
    assert isinstance(axis, int)
    [x], out = command.inputs, command.output
    element, bits = _element(x.dtype)
    if not (x.contiguous and out.contiguous) or not x.size:
        raise NotSupportedError("the array is empty, or has gaps")
    length, inner = x.shape[axis], prod(x.shape[axis + 1 :])
    kind = RowKind(element, bits, x.dtype.kind in "if", bool(descending))
    rows = x.size // length
    return RowProblem(kind, RowNumbers(rows, length, inner, x.offset, out.offset, each=rows,
                                       room=WORD * (2 * kind.words * length + kind.passes * DIGITS)))


def _element(dtype: DType) -> tuple[str, int]:
    """The type of elements, and the bits of their ranks."""
    if dtype in (float32, float64):
        return ("float", 32) if dtype == float32 else ("double", 64)
    if dtype == boolean or (is_integer(dtype) and dtype.kind in "iu"):
        return f"i{8 * dtype.itemsize}", 8 * dtype.itemsize
    raise NotSupportedError(f"no code for ranks of {dtype}")
