"""Kinds of attention: all that their code depends on; everything else is a number that it is given."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from nnc_core.base.dtype import DType
from nnc_core.operator.attention_problem import AttentionProblem
from nnc_core.operator.products.ending import plain_ending
from nnc_core.operator.products.problem import Left
from nnc_cpu.products.kind import Kind, Right

BLOCK = 96
"""Keys that a panel of queries looks at at once, or queries that look at a panel of keys: a multiple of the rows of all
tiles."""
WIDEST = 64
"""Bytes of the vectors of processors that have 32 of them; others have 16."""

MaskWay: TypeAlias = Literal["same", "along", "turned", "single"]
"""How a mask lies, seen from the lanes: they share an element, or find neighbouring ones; or the steps do; or neither
does."""


class Mask(NamedTuple):
    """A mask that is boolean, or of the dtype of scores and added to them."""

    dtype: DType
    way: MaskWay


class AttentionKind(NamedTuple):
    """Attention whose code is the same, ahead or back."""

    back: bool
    dtype: DType
    lanes: int
    vectors: int
    """Of a panel: of queries ahead, of keys on the way back."""
    feature_rows: int
    value_rows: int
    """Rows of the tiles whose rows are features, of queries and of values."""
    mask: Mask | None
    causal: bool

    @property
    def width(self) -> int:
        """Queries, or keys, of a panel."""
        return self.vectors * self.lanes

    @property
    def rows(self) -> int:
        """Rows of a register tile beside a panel."""
        return tile_rows(self.vectors, self.lanes * self.dtype.itemsize)

    @property
    def hides(self) -> bool:
        """True if there may be queries that see nothing."""
        return self.causal or self.mask is not None

    def tile(self, rows: int, left: Left, right: Right = "panels") -> Kind:
        """The kind of product that a tile of so many rows is one of."""
        ending = plain_ending(self.dtype, self.dtype)
        return Kind(self.dtype, self.lanes, rows, self.vectors, 0, left, right, "", ending, ())


def mask_kind(problem: AttentionProblem) -> Mask | None:
    """The dtype of the mask, and how it lies, seen from the lanes."""
    if problem.mask is None:
        return None
    place = problem.places[problem.mask]
    step, lane = (place.row, place.column) if problem.back else (place.column, place.row)
    way: MaskWay = "same" if lane == 0 else "along" if lane == 1 else "turned" if step == 1 else "single"
    return Mask(problem.layouts[problem.mask].dtype, way)


def tile_rows(vectors: int, nbytes: int) -> int:
    """Rows of a tile of so many vectors, of so many bytes each: all sums are in registers."""
    return {4: 6, 3: 8}.get(vectors, 12) if nbytes == WIDEST else {2: 6}.get(vectors, 12)


def panel_vectors(length: int, lanes: int, nbytes: int) -> int:
    """The vectors of panels that waste the fewest lanes of a length; the more the better."""
    choices = range(4 if nbytes == WIDEST else 2, 0, -1)
    return min(choices, key=lambda vectors: -(-length // (vectors * lanes)) * vectors)
