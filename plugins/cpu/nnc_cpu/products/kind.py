"""Kinds of products: all that their code depends on; everything else is a number that it is given."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from nnc_core.base.dtype import DType
from nnc_core.operator.products.ending import Ending
from nnc_core.operator.products.problem import Left, sum_dtype
from nnc_cpu.products.dots import Dots, is_moved

STEPS = 256
"""Steps of the sum that are packed, and gone through by all tiles of a block of rows, at once."""
WIDE_STEPS = 512
"""The same of float32 in the widest vectors, whose processors have larger caches."""
WORDS = 128
"""The same of words of several steps."""
AMX_WORDS, AMX_ROWS = 256, 256
"""The same of words, and rows of a task, where AMX goes through them: many, so that sums are loaded and stored, and B
is packed, seldom."""
MOST_LANES = 16
"""Elements of float32 in the widest vectors."""
ROWS = 192
"""Rows of a task, at most."""
TABLE = 4096
"""Addresses that a task holds."""
AXES = 3
"""Axes of batches."""
MOST_STRIP = 16
"""Panels of a task."""

Right: TypeAlias = Literal["rows", "columns", "panels"]
Windows: TypeAlias = Literal["", "whole", "apart"]


class Kind(NamedTuple):
    """Products that share their code: C[m, n] = sum over k of A[m, k] B[k, n], in order, by fused multiply-add."""

    dtype: DType
    """Of the elements of A; float16 and bfloat16 are converted to float32 when they are packed."""
    lanes: int
    rows: int
    """Of a register tile."""
    vectors: int
    """Of a row of a register tile."""
    last: int
    """Vectors of a row in the last panel, if that is another number, or if not all their lanes are columns; else 0."""
    left: Left
    """How A lies: what is contiguous is the sum within each row, or the column of each step of the sum.  "each": there
    is an element of A for each column of C, and these are contiguous: C[m, n] = sum over k of A[m, k, n] B[k, n]."""
    right: Right
    """How B lies: rows or columns are contiguous, and packed first; or rows and panels can be read where they are."""
    windows: Windows
    """A is what windows of images see; apart: the product consists of parts, whose rows lie apart in the result."""
    ending: Ending
    order: tuple[int, ...]
    """Places of A, B, the operands of the ending and its outputs among the arguments."""
    b_dtype: DType | None = None
    """Of the elements of B; None: that of A's."""
    dots: Dots | None = None
    """Several steps are one word, in A and B as they are packed; None: each step is by itself."""
    strips: bool = False
    """Tasks have several panels, no more than `MOST_STRIP`."""
    taps: int = 1
    """Elements of windows that share the rows of a tile among them: see `taps.py`."""

    @property
    def wide(self) -> DType:
        """The dtype of sums."""
        return sum_dtype(self.dtype)

    @property
    def is_moved(self) -> bool:
        """True where the elements of A that are multiplied are 128 greater than they are."""
        return is_moved(self.dots, self.dtype)

    @property
    def most_steps(self) -> int:
        """Steps of a block, at most."""
        return self.most_words * (1 if self.dots is None else self.dots.steps)

    @property
    def most_words(self) -> int:
        """Elements of A and of B, as they are packed, that the steps of a block are."""
        if self.is_amx:
            return AMX_WORDS
        if self.dots is not None:
            return WORDS
        return WIDE_STEPS if self.lanes == MOST_LANES and self.taps == 1 else STEPS

    @property
    def is_amx(self) -> bool:
        """True where tiles are those of the processor: see `amx.py`."""
        return self.dots is not None and self.dots.is_amx

    @property
    def most_rows(self) -> int:
        """Rows of a task, at most: those of A that are converted lie on the stack."""
        if self.dots is not None:
            return AMX_ROWS if self.is_amx else 2 * ROWS // 3
        return ROWS if self.wide == self.dtype else ROWS // 4

    @property
    def copies(self) -> bool:
        """Columns of A are copied side by side for all panels of a strip: they lie pages apart."""
        plain = self.left == "columns" and not self.windows and self.wide == self.dtype and self.dots is None
        return plain and self.strips and self.right != "panels"

    @property
    def packs_in_tiles(self) -> bool:
        """The first tile of rows packs B as it goes through it: copies, while multiply-adders are busy anyhow."""
        return self.right == "rows" and self.looks_ahead and self.wide == self.dtype

    @property
    def looks_ahead(self) -> bool:
        """Tiles have the next steps of B come into the cache."""
        return not self.windows and self.left != "each" and self.dots is None

    @property
    def streams(self) -> bool:
        """Tiles have what the next block of rows reads of A come into the cache."""
        return self.windows == ("whole" if self.left == "each" else "") and self.left != "columns"

    @property
    def ends_late(self) -> bool:
        """Tiles end what the one before has summed: what takes long, in a unit that multiplications do not need."""
        return self.looks_ahead and self.wide == self.dtype and ends_slowly(self.ending)

    @property
    def width(self) -> int:
        """Columns of a panel."""
        return self.vectors * self.lanes


def ends_slowly(ending: Ending) -> bool:
    """Tell whether an ending needs the unit that takes long."""
    return any([x.operation in ("sqrt", "divide") for x in ending.body])
