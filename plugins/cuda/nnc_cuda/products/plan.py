"""Plans of products: the tile that suits the sizes, and the numbers that the kernels are given.

Sizes alone decide, not the GPU: the same product has the same bits on each.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from nnc_core.base.dtype import float64
from nnc_core.base.errors import NotSupportedError
from nnc_core.operator.products.numbers import AXES, along_row, numbers_of
from nnc_core.operator.products.problem import MatrixProduct
from nnc_core.operator.products.runs import is_run, with_runs
from nnc_cuda.products.kind import STEPS, ProductKind

LARGE = 96
"""Rows, or columns, from which on a thread keeps 8 of them, if then there are `MANY` tiles."""
MANY = 64
FEW, LONG = 96, 1024
"""Tiles that are too few to keep a GPU busy, and steps from which on they are split."""
PIECE, MOST_PIECES = 512, 64
"""Steps of a piece, at least, and the most pieces."""
ENOUGH = 256
"""Blocks from which on no more pieces are made."""


class ProductPart(NamedTuple):
    """One launch: its numbers, its blocks, and the elements that are added up behind it, if its steps are split."""

    numbers: tuple[int, ...]
    blocks: int
    elements: int


class BlockPlan(NamedTuple):
    kind: ProductKind
    parts: tuple[ProductPart, ...]
    partial: int
    """Sums that are kept for all pieces of the largest part."""


def plan_of(problem: MatrixProduct, tile: tuple[int, int] | None = None, pieces: int | None = None) -> BlockPlan:
    """The plan of a problem; `tile`, `pieces`: those to be used."""
    if problem.each:
        raise NotSupportedError("channels are multiplied one by one")
    if problem.panel:
        raise NotSupportedError("the second factor is packed")
    if len(problem.batch) > AXES:
        raise NotSupportedError(f"more than {AXES} axes of batches that lie apart")
    run = is_run(problem)
    problem = with_runs(problem) if run else problem
    parts = [part for part in problem.parts or (problem,) if prod(part.batch) * part.rows * part.columns]
    rows, columns = tile or _tile(problem, parts)
    splits = [pieces or _pieces(part, rows, columns) for part in parts]
    kind = kind_of(problem, (rows, columns), run, max(splits, default=1) > 1)
    planned = tuple([_planned(part, kind, split) for part, split in zip(parts, splits, strict=True)])
    partial = max([part.elements * split for part, split in zip(planned, splits, strict=True)], default=0)
    return BlockPlan(kind, planned, partial if kind.split else 0)


def _tile(problem: MatrixProduct, parts: list[MatrixProduct]) -> tuple[int, int]:
    """Rows and columns of a thread."""
    if problem.dtype == float64:
        return 4, 4
    rows, columns = (8 if max([getattr(part, side) for part in parts], default=0) > LARGE else 4
                     for side in ("rows", "columns"))
    if sum([_tiles(part, rows, columns) for part in parts]) >= MANY:
        return rows, columns
    return 4, 4


def _tiles(part: MatrixProduct, rows: int, columns: int) -> int:
    return _parts(part.rows, 16 * rows) * _parts(part.columns, 16 * columns) * prod(part.batch)


def _pieces(part: MatrixProduct, rows: int, columns: int) -> int:
    """Pieces of the steps."""
    tiles = _tiles(part, rows, columns)
    if tiles >= FEW or part.steps < LONG:
        return 1
    return max(1, min(_parts(ENOUGH, tiles), part.steps // PIECE, MOST_PIECES))


def kind_of(problem: MatrixProduct, tile: tuple[int, int], run: bool, split: bool) -> ProductKind:
    """The kind of a product."""
    a, b, windows = problem.a, problem.b, problem.windows
    by_rows = a.row == 0 if windows else a.column == 1 or a.row != 1
    whole = windows is None or not by_rows or problem.b_segment == problem.length * b.row
    return ProductKind(
        problem.dtype, *tile, "rows" if by_rows else "columns",
        "rows" if b.column == 1 or b.row != 1 else "columns", whole and not problem.parts,
        len(windows.axes) if windows else 0, run, bool(problem.parts), split, _is_far(problem), problem.ending,
        tuple([along_row(x, problem.columns) for x in problem.others]), problem.order)


def _is_far(problem: MatrixProduct) -> bool:
    """Tell whether a place within one batch needs more than 32 bits."""
    rows = problem.rows * max([1, *[part.rows for part in problem.parts]])
    spans = [rows * abs(x.row) + max(problem.columns, problem.steps) * abs(x.column)
             for x in (problem.a, *problem.others)]
    spans.append(problem.steps * abs(problem.b.row) + problem.columns * abs(problem.b.column)
                 + problem.segments * abs(problem.b_segment))
    for part in problem.parts or (problem,):
        if part.windows is not None:
            axes = part.windows.axes
            images = max(part.rows, part.steps)
            spans.append(images * part.windows.image_step
                         + sum([(axis.image + axis.window * abs(axis.step)) * abs(axis.pixel) for axis in axes]))
            spans.append(images * max([part.windows.image_rows, 1, *[abs(axis.row) for axis in axes]]))
    return max(spans) >= 1 << 31


def _planned(problem: MatrixProduct, kind: ProductKind, pieces: int) -> ProductPart:
    """The numbers of a product that is one by itself, and its blocks."""
    panels, blocks = _parts(problem.columns, kind.width), _parts(problem.rows, kind.height)
    split_steps = _parts(_parts(problem.steps, pieces), STEPS) * STEPS
    splits = _parts(problem.steps, split_steps) if problem.steps else 1
    numbers = numbers_of(problem) | {
        "panels": panels, "blocks": blocks, "splits": splits, "split_steps": split_steps}
    batches = prod(problem.batch)
    return ProductPart(tuple([numbers[name] for name in kind.numbers]), panels * blocks * batches * splits,
                       problem.rows * problem.columns * batches)


def _parts(whole: int, part: int) -> int:
    return -(-whole // part)
