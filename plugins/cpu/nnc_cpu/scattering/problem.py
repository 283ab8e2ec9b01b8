"""Scatters that one code goes through: rows of an array, which indices say, changed by rows of updates."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import NamedTuple, TypeAlias

from nnc_core.base.command import Command
from nnc_core.base.dtype import DType, boolean, is_complex, is_float, is_integer
from nnc_core.base.errors import NotSupportedError
from nnc_core.base.layout import Layout

COMBINED = ("add", "multiply")
"""Modes with arithmetic; of floats NumPy's extremes and those of machine code may be zeros of other signs."""
WORD = 8
"""Bytes of the longest elements that are moved at once."""

Mode: TypeAlias = str


class ScatterKind(NamedTuple):
    """All that the code of a scatter depends on; everything else is a number that it is given."""

    mode: Mode
    element_type: str
    """Its type in LLVM: an integer where elements are only moved."""
    index_type: str
    signed: bool
    """The type of indices, and whether they may count from the end."""
    spread: bool
    """True if an update is one element for a whole row."""
    lanes: int
    inner: int
    """Elements of a row, if these are no more than a vector's; else 0."""
    beside: bool
    """True if indices lie side by side, and so do updates."""

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return {"float": 4, "double": 8}.get(self.element_type) or int(self.element_type[1:]) // 8


class ScatterNumbers(NamedTuple):
    """Numbers that the code is given, in elements of its type but for offsets, which are bytes.

    The array is `batch` x `outer` rows of rows, `length` of `inner` elements each; `updated` indices for each of the
    batch say which of them change.  Tasks are pieces of so many columns.
    """

    batch: int
    outer: int
    updated: int
    length: int
    inner: int
    pieces: int
    columns: int
    x_offset: int
    index_offset: int
    index_batch: int
    index_step: int
    update_offset: int
    update_batch: int
    update_outer: int
    update_step: int
    out_offset: int


class ScatterProblem(NamedTuple):
    """A kind, for vectors of some bytes, and the numbers of one scatter in one piece."""

    kind: ScatterKind
    numbers: ScatterNumbers

    @property
    def rows(self) -> int:
        return self.numbers.batch * self.numbers.outer


def scatter_of(command: Command, vector: int) -> ScatterProblem:
    """The problem of a command, for vectors of so many bytes; NotSupportedError where there is no code for it."""
    axis, mode, batch = command.attributes
    assert isinstance(axis, int) and isinstance(mode, str) and isinstance(batch, int)
    x, indices, updates = command.inputs
    out = command.output
    element, size = _element(out.dtype, mode)
    words = out.dtype.itemsize // size
    if updates.dtype != out.dtype or not is_integer(indices.dtype):
        raise NotSupportedError(f"no code for updates of {updates.dtype} where indices of {indices.dtype} say")
    if not (x.contiguous and out.contiguous) or not out.size:
        raise NotSupportedError("the array is empty, or has gaps")
    ends = (batch, axis, axis + len(indices.shape) - batch, len(updates.shape))
    update_batch, update_outer, update_step, column = _steps(updates, ends)
    index_batch, index_step = _steps(indices, (batch, len(indices.shape)))
    inner = prod(x.shape[axis + 1 :])
    column = column if updates.size else 1
    spread = column == 0 and inner > 1
    if (not spread and inner > 1 and column != 1) or (spread and words > 1):
        raise NotSupportedError("rows of updates have gaps")
    index = indices.dtype
    lanes, elements = vector // size, inner * words
    kind = ScatterKind(mode, element, f"i{8 * index.itemsize}", index.kind == "i", spread, lanes,
                       elements if elements <= lanes else 0, index_step == 1 and update_step == inner)
    return ScatterProblem(kind, ScatterNumbers(
        batch=prod(x.shape[:batch]), outer=prod(x.shape[batch:axis]), updated=prod(indices.shape[batch:]),
        length=x.shape[axis], inner=elements, pieces=1, columns=elements, x_offset=x.offset,
        index_offset=indices.offset, index_batch=index_batch, index_step=index_step, update_offset=updates.offset,
        update_batch=update_batch * words, update_outer=update_outer * words, update_step=update_step * words,
        out_offset=out.offset))


def _element(dtype: DType, mode: Mode) -> tuple[str, int]:
    """The type that the code computes with, and its bytes: complex numbers are moved and added as two numbers."""
    size = dtype.itemsize
    if mode == "set":
        return f"i{8 * min(size, WORD)}", min(size, WORD)
    if mode not in COMBINED or dtype == boolean or (is_complex(dtype) and mode == "multiply"):
        raise NotSupportedError(f"no code for {mode} of {dtype}")
    part = size // 2 if is_complex(dtype) else size
    if is_integer(dtype):
        return f"i{8 * size}", size
    if (not is_float(dtype) and not is_complex(dtype)) or part < 4:
        raise NotSupportedError(f"{dtype} is combined in a wider dtype")
    return "float" if part == 4 else "double", part


def _steps(layout: Layout, ends: Sequence[int]) -> tuple[int, ...]:
    """The distance in elements of what follows each other on groups of axes, each of which lies as one axis would."""
    begins = (0, *ends[:-1])
    return tuple([step_of(layout, begin, end) for begin, end in zip(begins, ends, strict=True)])


def step_of(layout: Layout, begin: int, end: int) -> int:
    """The distance in elements of what follows each other on some axes; NotSupportedError where they do not lie as one
    axis would."""
    axes = [(n, s) for n, s in zip(layout.shape[begin:end], layout.strides[begin:end], strict=True) if n != 1]
    if not axes or 0 in layout.shape:
        return 0
    if any([step != length * inner for (_, step), (length, inner) in pairwise(axes)]):
        raise NotSupportedError("axes do not lie as one axis would")
    step, rest = divmod(axes[-1][1], layout.dtype.itemsize)
    if rest:
        raise NotSupportedError("elements are not aligned")
    return step
