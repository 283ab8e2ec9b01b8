"""Plans of products: the tile that suits the sizes, and the numbers that the kernel is given."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from nnc_core.base.dtype import accumulator
from nnc_core.base.errors import NotSupportedError
from nnc_core.operator.products.numbers import AXES, along_row, numbers_of
from nnc_core.operator.products.problem import MatrixProduct, Strided
from nnc_core.operator.products.runs import is_run, with_runs
from nnc_opencl.products.kind import SumTile, TiledKind

STEPS = 256
"""Steps that are packed at once."""
ROWS = 96
"""Rows of a task, at most: their sums are on the stack."""
VECTOR = 64
"""Bytes of a vector: drivers for CPUs divide those that are too wide."""
MOST_ROWS, FEWEST_ROWS = 12, 8
"""Rows of tiles, where there are as many."""
FEW_ROWS = 6
"""Rows with which a tile is wide."""
GROUP_TILE = SumTile(64, 4, 16, 16)
"""Of a group of 256 work items: 4 x 4 sums each."""
MOST_SUMS = 12
"""Vectors of sums where channels are multiplied one by one."""
FEW_PIXELS = 64
"""Pixels that are worth a task there."""
SHARES = 4
"""Tasks that each core should have."""


class TiledPlan(NamedTuple):
    """The kind of a product, and the numbers and the tasks of each of its parts."""

    kind: TiledKind
    parts: tuple[tuple[tuple[int, ...], int], ...]


def plan_of(problem: MatrixProduct, grouped: bool, cores: int, tile: SumTile | None = None) -> TiledPlan:
    """The plan for devices that run groups of work items, or for CPUs of so many cores; `tile`: one to be used."""
    if by_channels(problem):
        return _depthwise(problem, grouped, cores)
    if len(problem.batch) > AXES:
        raise NotSupportedError(f"more than {AXES} axes of batches that lie apart")
    run = is_run(problem)
    problem = with_runs(problem) if run else problem
    parts = problem.parts or (problem,)
    tile = tile or (GROUP_TILE if grouped else choose_tile(problem, max([part.rows for part in parts])))
    kind = kind_of(problem, tile, grouped, run)
    return TiledPlan(kind, tuple([_planned(part, kind, cores) for part in parts]))


def by_channels(problem: MatrixProduct) -> bool:
    """True where each channel has a kernel of its own."""
    return problem.each or _is_gradient_by_channels(problem)


def _is_gradient_by_channels(problem: MatrixProduct) -> bool:
    """True for gradients of such kernels, which are described as a product of one element for each channel."""
    return problem.windows is not None and problem.rows == problem.columns == 1 and problem.batch[0] > 1


def _across_channels(problem: MatrixProduct) -> MatrixProduct:
    """The gradient of kernels with a row for each element of a window, and a column for each channel."""
    a, b = problem.a, problem.b
    return problem._replace(
        batch=(1,), rows=problem.batch[1], columns=problem.batch[0], each=True,
        a=Strided(a.offset, (0,), 0, a.batch[0]), b=Strided(b.offset, (0,), b.row, b.batch[0]),
        others=tuple([Strided(x.offset, (0,), x.batch[1], x.batch[0]) for x in problem.others]))


def _depthwise(problem: MatrixProduct, grouped: bool, cores: int) -> TiledPlan:
    """The plan where channels are multiplied one by one."""
    if grouped:
        raise NotSupportedError("channels are multiplied one by one: neighbouring items have neighbouring channels")
    by_taps = not problem.each
    problem = _across_channels(problem) if by_taps else problem
    assert problem.windows is not None
    if problem.a.column != 1 or problem.b.column != 1:
        raise NotSupportedError("channels lie apart")
    lanes = VECTOR // accumulator(problem.dtype).itemsize
    while lanes > max(problem.columns, 4):
        lanes //= 2
    rows, count = problem.windows.axes[-1].window if by_taps else 1, _parts(problem.columns, lanes)
    vectors = _parts(count, _parts(count, max(MOST_SUMS // rows, 1)))
    kind = kind_of(problem, SumTile(rows, vectors, lanes, 1), False, False)
    kind = kind._replace(left="taps" if by_taps else "each")
    return TiledPlan(kind, tuple([_planned(part, kind, cores) for part in problem.parts or (problem,)]))


def choose_tile(problem: MatrixProduct, rows: int) -> SumTile:
    """The tile that multiplies the fewest rows and lanes that are not there."""
    lanes = VECTOR // accumulator(problem.dtype).itemsize
    vectors = _parts(problem.columns, lanes)
    if rows <= FEW_ROWS and vectors > 2:
        return SumTile(rows, 4, lanes, STEPS // 2)
    height = min(range(MOST_ROWS, FEWEST_ROWS - 1, -1), key=lambda n: _parts(rows, n) * (n + 1))
    return SumTile(min(rows, height), min(vectors, 2), lanes, STEPS)


def kind_of(problem: MatrixProduct, tile: SumTile, grouped: bool, run: bool) -> TiledKind:
    """The kind of a product."""
    a, b = problem.a, problem.b
    windows = problem.windows
    by_rows = a.row == 0 if windows else a.column == 1 or a.row != 1
    right = "rows" if b.column == 1 or problem.columns == 1 else "columns" if b.row == 1 else "apart"
    return TiledKind(
        problem.dtype, tile, grouped, "rows" if by_rows else "columns", (a.column if by_rows else a.row) == 1,
        right, len(windows.axes) if windows else 0, run, bool(problem.parts), problem.ending,  # type: ignore[arg-type]
        tuple([along_row(x, problem.columns) for x in problem.others]), problem.order)


def _planned(problem: MatrixProduct, kind: TiledKind, cores: int) -> tuple[tuple[int, ...], int]:
    """The numbers of a product that is one by itself, and its tasks."""
    panels = _parts(problem.columns, kind.tile.width)
    blocks, block_rows = _blocks(problem, kind, panels, cores)
    numbers = numbers_of(problem) | {"panels": panels, "blocks": blocks, "block_rows": block_rows}
    return tuple([numbers[name] for name in kind.numbers]), panels * blocks * prod(problem.batch)


def _blocks(problem: MatrixProduct, kind: TiledKind, panels: int, cores: int) -> tuple[int, int]:
    """Blocks of rows of about the same height, and their height."""
    tile = kind.tile.rows
    if kind.grouped or kind.left == "taps":
        return _parts(problem.rows, tile), tile
    wanted = _parts(SHARES * cores, panels * prod(problem.batch))
    if kind.left == "each":
        height = _parts(problem.rows, max(min(wanted, problem.rows // FEW_PIXELS), 1))
        return _parts(problem.rows, height), height
    blocks = max(_parts(problem.rows, max(ROWS // tile * tile, tile)), min(wanted, problem.rows // (2 * tile)), 1)
    height = _parts(_parts(problem.rows, blocks), tile) * tile
    return _parts(problem.rows, height), height


def _parts(whole: int, part: int) -> int:
    return -(-whole // part)
