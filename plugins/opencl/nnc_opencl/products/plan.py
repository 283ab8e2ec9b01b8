"""Plans of products: the tile that suits the sizes, and the numbers that the kernel is given."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from nnc_core.base.dtype import accumulator
from nnc_core.base.errors import NotSupportedError
from nnc_core.operator.products.problem import ImageWindows, MatrixProduct, Strided, WindowAxis
from nnc_opencl.products.kind import AXES, Column, SumTile, TiledKind

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
SHARES = 4
"""Tasks that each core should have."""


class TiledPlan(NamedTuple):
    """The kind of a product, and the numbers and the tasks of each of its parts."""

    kind: TiledKind
    parts: tuple[tuple[tuple[int, ...], int], ...]


def plan_of(problem: MatrixProduct, grouped: bool, cores: int, tile: SumTile | None = None) -> TiledPlan:
    """The plan for devices that run groups of work items, or for CPUs of so many cores; `tile`: one to be used."""
    if problem.each:
        raise NotSupportedError("channels are multiplied one by one")
    if len(problem.batch) > AXES:
        raise NotSupportedError(f"more than {AXES} axes of batches that lie apart")
    run = _is_run(problem)
    problem = with_runs(problem) if run else problem
    parts = problem.parts or (problem,)
    tile = tile or (GROUP_TILE if grouped else choose_tile(problem, max([part.rows for part in parts])))
    kind = kind_of(problem, tile, grouped, run)
    return TiledPlan(kind, tuple([_planned(part, kind, cores) for part in parts]))


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
        tuple([_column(x, problem.columns) for x in problem.others]), problem.order)


def _column(x: Strided, columns: int) -> Column:
    if x.column == 0:
        return "one"
    return "dense" if x.column == 1 or columns == 1 else "apart"


def _is_run(problem: MatrixProduct) -> bool:
    """True where elements of a window on the last axis are neighbours, in images, in kernels and in results."""
    windows = problem.windows
    if windows is None or problem.parts:
        return False
    axis, (a, b, out) = windows.axes[-1], (problem.a, problem.b, problem.others[-1])
    if axis.step != 1 or axis.window == 1:
        return False
    if a.row == 0:
        return a.column == 1 and axis.pixel == problem.length and problem.b_segment == problem.length * b.row
    same = [x.batch[-1] == problem.rows * x.row for x in problem.others]
    return a.row == 1 and axis.pixel == problem.rows and all(same) and out.row != 0 and problem.batch[0] == 1


def with_runs(problem: MatrixProduct) -> MatrixProduct:
    """The problem whose windows have one long element on the last axis in place of several."""
    windows = problem.windows
    assert windows is not None
    *others, axis = windows.axes
    count = axis.window
    windows = windows._replace(axes=(*others, axis._replace(window=1)))
    if problem.a.row == 0:
        return problem._replace(segments=problem.segments // count, b_segment=problem.b_segment * count,
                                windows=windows)
    groups, taps = problem.batch
    outputs = tuple([x._replace(batch=(x.batch[0], x.batch[1] * count)) for x in problem.others])
    return problem._replace(batch=(groups, taps // count), rows=problem.rows * count, others=outputs, windows=windows)


def _planned(problem: MatrixProduct, kind: TiledKind, cores: int) -> tuple[tuple[int, ...], int]:
    """The numbers of a product that is one by itself, and its tasks."""
    panels = _parts(problem.columns, kind.tile.width)
    blocks, block_rows = _blocks(problem, kind, panels, cores)
    numbers = {
        "rows": problem.rows, "columns": problem.columns, "steps": problem.steps, "panels": panels, "blocks": blocks,
        "block_rows": block_rows, "length": problem.length, "channels": _channels(problem)}
    lengths = (*(1,) * (AXES - len(problem.batch)), *problem.batch)
    numbers |= {f"batch{n}": lengths[n] for n in range(1, AXES)}
    for name, x in zip(kind.arrays, (problem.a, problem.b, *problem.others), strict=True):
        numbers |= _places(name, x)
    if problem.windows is not None:
        numbers |= _windows(problem, problem.windows)
    return tuple([numbers[name] for name in kind.numbers]), panels * blocks * prod(problem.batch)


def _blocks(problem: MatrixProduct, kind: TiledKind, panels: int, cores: int) -> tuple[int, int]:
    """Blocks of rows of about the same height, and their height."""
    tile = kind.tile.rows
    if kind.grouped:
        return _parts(problem.rows, tile), tile
    wanted = _parts(SHARES * cores, panels * prod(problem.batch))
    blocks = max(_parts(problem.rows, max(ROWS // tile * tile, tile)), min(wanted, problem.rows // (2 * tile)), 1)
    height = _parts(_parts(problem.rows, blocks), tile) * tile
    return _parts(problem.rows, height), height


def _parts(whole: int, part: int) -> int:
    return -(-whole // part)


def _channels(problem: MatrixProduct) -> int:
    """Neighbours in memory that one pixel has."""
    if problem.windows is None:
        return 1
    return problem.windows.axes[-1].pixel if problem.windows.axes[-1].step == 1 else problem.length


def _places(name: str, x: Strided) -> dict[str, int]:
    steps = (*(0,) * (AXES - len(x.batch)), *x.batch)
    return {f"{name}_first": x.offset, f"{name}_row": x.row, f"{name}_column": x.column,
            **{f"{name}_batch{n}": step for n, step in enumerate(steps)}}


def _windows(problem: MatrixProduct, windows: ImageWindows) -> dict[str, int]:
    axes: list[WindowAxis] = list(windows.axes)
    if problem.segments > 1 and not any([axis.tap for axis in axes]):
        tap = problem.b_segment
        for n in reversed(range(len(axes))):
            axes[n] = axes[n]._replace(tap=tap)
            tap *= axes[n].window
    numbers = {f"{name}{n}": value for n, axis in enumerate(axes) for name, value in axis._asdict().items()}
    return numbers | {"image_step": windows.image_step, "image_rows": windows.image_rows}
