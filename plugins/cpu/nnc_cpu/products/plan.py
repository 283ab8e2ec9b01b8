"""Plans of products: the register tile that suits the sizes, and the numbers that the code is given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, chain
from math import lcm, prod
from typing import NamedTuple

from nnc_core.operator.products.problem import ImageWindows, MatrixProduct, PoolAxis, Strided, WindowAxis
from nnc_cpu.products.amx import ROWS
from nnc_cpu.products.at_once import ends_at_once
from nnc_cpu.products.dots import Dots
from nnc_cpu.products.kind import MOST_STRIP, TABLE, Kind, Windows
from nnc_cpu.products.kind import ROWS as TASK_ROWS
from nnc_cpu.products.numbers import SPATIAL, numbers_of, operand_names
from nnc_cpu.products.right import PACKED_STEPS, is_along_rows, right_of, steps_along
from nnc_cpu.products.stream import stream_numbers
from nnc_cpu.products.taps import taps_of, with_taps_as_rows

WIDEST = 64
"""Bytes of the vectors of processors that have 32 of them; others have 16."""
ADDRESSES = 9
"""Rows whose addresses stay in registers."""
MOST_ROWS = (10, 10, 14, 14)
"""Of tiles of so many vectors: of more, LLVM keeps sums on the stack."""
LOADS, LOADS_IN_PLACE = (0.2, 0.2), (0.7, 1.4)
"""Multiply-adds in the time that a load takes from them, of an element of A for all lanes and of a vector of B; and
where B is large, and not packed."""
NOTED = 2.0
"""Multiply-adds in the time in which the address of what a window sees is noted."""
LATENCY = 8
"""Sums that are needed to keep multiply-adders busy."""
SHARES, LONG_SHARES, FEW_TILES = 4, 2, 3
"""Tasks for each thread, those of as many panels as may be, and tiles of rows that a task should have if it packs B."""
MOST_SHIFT = 2
"""Of the steps at which tiles send for what comes next."""
FEW_ROWS = 64
"""So few rows have panels of weights that suit them, and wait for B more than for a thread that has more panels."""
LONG = 1 << 11
"""Steps from which on panels that are packed before are gone through in blocks that the first cache holds."""
WHOLE = 64
"""Steps that blocks of steps are some times: lines of B's columns, squares that are turned, words and their tiles."""
CACHED, SHORT_STRIP, FIRST_CACHED = 1 << 19, 4, 1 << 15
"""Bytes of A that stay in a cache while panels go through it, panels of a task where they do not, and bytes of columns
of A that stay in the first one."""
LEAST_STRIP = 4
"""The fewest panels of a task where B is gone through along its rows, if there are so many, for any number of threads:
shorter pieces of rows take twice the time."""
LONG_TILES = (8, 16)
"""Vectors of tiles of few rows."""
AMX_VECTORS = 16
"""Vectors of a panel that AMX goes through: many, so that A is copied seldom."""


class Tile(NamedTuple):
    """Rows and vectors of a register tile."""

    rows: int
    vectors: int


class ProductPlan(NamedTuple):
    """The code of a product, what it is given, and the number of its tasks."""

    kind: Kind
    numbers: tuple[int, ...]
    tasks: int


def plan_of(problem: MatrixProduct, vector: int, tile: Tile | None = None, threads: int = 1,
            dots: Dots | None = None) -> ProductPlan:
    """The plan for a host whose vectors have so many bytes; `tile`: one of no more rows than there are, or of the rows
    of all elements of windows (`taps.py`); `threads`: that are to have tasks; `dots`: see `Kind`."""
    lanes = vector // problem.wide.itemsize
    amx = dots is not None and dots.is_amx
    if tile is None:
        tile = _amx_tile(problem, lanes) if amx else _tile_of(problem, lanes, vector == WIDEST, threads)
    taps = 1 if amx else tile.rows // problem.rows or 1
    if taps > 1:
        problem = with_taps_as_rows(problem)
    parts = problem.parts or (problem,)
    right = right_of(problem)
    width = tile.vectors * lanes
    panels = _parts(problem.columns, width)
    rest = problem.columns - (panels - 1) * width
    last = _parts(rest, lanes)
    kind = Kind(problem.dtype, lanes, tile.rows, tile.vectors, 0, problem.left, right, _way_of(problem), problem.ending,
                problem.order, problem.b_dtype, dots, taps=taps)
    partial = rest != width and (right == "panels" or problem.each or ends_at_once(kind))
    if partial or last != tile.vectors:
        kind = kind._replace(last=last)
    shared = 1 if threads == 1 else _parts(SHARES * threads, panels * prod(problem.batch) * len(parts))
    strip = _strip(problem, kind, panels, threads)
    kind = kind._replace(strips=strip > 1)
    planned = [_planned(part, kind, panels, strip, shared) for part in parts]
    return _joined(kind, planned) if problem.parts else planned[0]


def _planned(problem: MatrixProduct, kind: Kind, panels: int, strip: int, shared: int) -> ProductPlan:
    """The plan of a product that is one by itself."""
    blocks, block_rows = _blocks(problem.rows, kind, shared)
    numbers = _numbers(problem, kind) | {"panels": panels, "blocks": blocks, "block_rows": block_rows, "strip": strip,
                                         "ahead_shift": _ahead_shift(kind, _parts(block_rows, kind.rows))}
    blocks_of_steps = _parts(problem.segments, numbers["group"]) * _parts(problem.length, numbers["part"])
    numbers |= stream_numbers(problem, kind, panels, block_rows, blocks_of_steps)
    tasks = prod(problem.batch) * blocks * _parts(panels, strip)
    return ProductPlan(kind, tuple(numbers_of(kind, numbers)), tasks)


def _strip(problem: MatrixProduct, kind: Kind, panels: int, threads: int) -> int:
    """The panels of a task: several where each would read anew what a cache cannot hold of A, where its columns are
    copied for all of them, or where pieces of the rows of B are longer so."""
    least = 1
    if is_along_rows(problem, kind.right):
        most, shares = MOST_STRIP if problem.windows is None else SHORT_STRIP, LONG_SHARES
        least = min(LEAST_STRIP, panels)
    elif problem.parts or problem.each or kind.is_amx or problem.windows is not None:
        return 1
    else:
        size = min(problem.rows, kind.most_rows) * problem.steps * kind.dtype.itemsize
        if kind.right == "rows" and kind._replace(strips=True).copies and size > FIRST_CACHED:
            most, shares = MOST_STRIP, SHARES
        elif problem.steps > kind.most_steps and size >= CACHED:
            most, shares = SHORT_STRIP, SHARES
        else:
            return 1
    tasks = panels * _parts(problem.rows, kind.most_rows) * prod(problem.batch)
    strip = max(least, min(most, tasks // (shares * threads if threads > 1 else 1)))
    return max(least, _parts(panels, _parts(panels, strip)))  # strips of about the same length


def _joined(kind: Kind, planned: Sequence[ProductPlan]) -> ProductPlan:
    """The plan of a product in parts: their number, the tasks before each of them and before the end, their numbers."""
    ends = tuple(accumulate([plan.tasks for plan in planned], initial=0))
    numbers = chain.from_iterable([plan.numbers for plan in planned])
    return ProductPlan(kind, (len(planned), *ends, *numbers), ends[-1])


def _tile_of(problem: MatrixProduct, lanes: int, wide: bool, threads: int) -> Tile:
    """The tile that suits a problem, of the rows of all elements of windows where so many threads are done sooner."""
    in_place = right_of(problem) == "panels" and is_along_rows(problem, "panels")
    tile = choose_tile(max([part.rows for part in problem.parts or (problem,)]), problem.columns, lanes, wide,
                       problem.panel // lanes, in_place, threads)
    taps = taps_of(problem, wide)
    if taps == 1:
        return tile
    vectors, groups, rows = _parts(problem.columns, lanes), prod(problem.batch[:-1]), problem.rows * taps
    low = tile._replace(vectors=min(tile.vectors, vectors))
    apart = _parts(groups * taps * _parts(vectors, low.vectors), threads) * (_step_cost(low) + NOTED)
    together = _parts(groups * vectors, threads) * (rows + 0.2 * taps + NOTED * (1 + taps / 4))
    return Tile(rows, 1) if together < apart else tile


def _amx_tile(problem: MatrixProduct, lanes: int) -> Tile:
    """Two of the processor's tiles of rows, if there are so many."""
    rows = max([part.rows for part in problem.parts or (problem,)])
    vectors = problem.panel // lanes or min(AMX_VECTORS, _parts(problem.columns, lanes))
    return Tile(ROWS if rows <= ROWS else 2 * ROWS, vectors)


def choose_tile(rows: int, columns: int, lanes: int, wide: bool, vectors: int = 0, in_place: bool = False,
                threads: int = 1) -> Tile:
    """The tile that takes the fewest multiply-adds for a step, counted with those of rows and lanes that are not
    there, and with loads; `wide`: there are 32 registers; `vectors`: of a panel, if B is packed, else no more than
    there are; `in_place`: B is large, and not packed; `threads`: that share the panels."""
    there = _parts(columns, lanes)
    tiles = [tile for tile in (*_tiles(rows, wide), *_long_tiles(rows, there, wide)) if vectors in (0, tile.vectors)]
    best = min(tiles, key=lambda tile: _cost(tile, rows, there, in_place, threads))
    return best if vectors else best._replace(vectors=max(1, min(best.vectors, there)))


def panel_width(problem: MatrixProduct, vector: int, amx: bool = False) -> int:
    """The columns of panels for weights: where there are few rows those that suit them, else those that suit any
    height, since other products may read the same weights."""
    lanes, wide = vector // problem.wide.itemsize, vector == WIDEST
    if amx:
        return _amx_tile(problem, lanes).vectors * lanes
    if problem.rows <= FEW_ROWS:
        return choose_tile(problem.rows, problem.columns, lanes, wide).vectors * lanes
    return min(4 if wide else 2, _parts(problem.columns, lanes)) * lanes


def _tiles(rows: int, wide: bool) -> Iterator[Tile]:
    registers = 32 if wide else 16
    for vectors in range(4 if wide else 3, 0, -1):
        most = min((registers - 1 - vectors) // vectors, MOST_ROWS[vectors - 1])
        if rows > 4 * most:
            yield from (Tile(most, vectors), Tile(most - 1, vectors))
        else:
            yield Tile(_parts(rows, _parts(rows, most)), vectors)


def _long_tiles(rows: int, vectors: int, wide: bool) -> Iterator[Tile]:
    """Tiles that read long pieces of the rows of B, whose columns are some panels: most of the time of few rows."""
    for length in LONG_TILES:
        if rows * length <= (24 if wide else 12) and vectors % length == 0:
            yield Tile(rows, length)


def _cost(tile: Tile, rows: int, vectors: int, in_place: bool, threads: int) -> float:
    """The multiply-adds of a step, with those that threads wait for the one that has most to do, where each has some
    panels; fewer rows wait for B, more are several tasks."""
    whole, rest = divmod(vectors, tile.vectors)
    each, last = _step_cost(tile, in_place), _step_cost(tile._replace(vectors=rest), in_place) if rest else 0.0
    of_one, more = divmod(whole, threads)
    if not FEW_ROWS < rows <= TASK_ROWS or of_one < SHARES:
        return _parts(rows, tile.rows) * (whole * each + last)
    return _parts(rows, tile.rows) * (of_one * each + (each if more else last)) * threads


def _step_cost(tile: Tile, in_place: bool = False) -> float:
    left, right = LOADS_IN_PLACE if in_place else LOADS
    loads = left * tile.rows + right * tile.vectors
    return max(tile.rows * tile.vectors, LATENCY) + loads + max(0, tile.rows - ADDRESSES)


def _way_of(problem: MatrixProduct) -> Windows:
    if problem.windows is None:
        return ""
    return "apart" if problem.parts else "whole"


def _parts(whole: int, part: int) -> int:
    return -(-whole // part)


def _blocks(rows: int, kind: Kind, least: int = 1) -> tuple[int, int]:
    """Blocks of rows of about the same height, and their height; `least`: the number that should be there, if each has
    some tiles then."""
    unit = _unit(kind)
    fewest = unit if kind.right == "panels" else FEW_TILES * kind.rows
    blocks = max(_parts(rows, kind.most_rows // unit * unit), min(least, rows // fewest))
    height = _parts(_parts(rows, blocks), unit) * unit
    return _parts(rows, height), height


def _unit(kind: Kind) -> int:
    """Rows that blocks are made of: tiles, or whole pooling windows, in whole tiles where these are not too many."""
    both = lcm(kind.rows, kind.ending.height)
    return both if both <= kind.most_rows else kind.ending.height


def _ahead_shift(kind: Kind, tiles: int) -> int:
    """The shift with which so many tiles of a block send for all of the next one, as evenly as they can."""
    return min(MOST_SHIFT, max(1, tiles // kind.vectors).bit_length() - 1)


def _numbers(problem: MatrixProduct, kind: Kind) -> dict[str, int]:
    a, b = problem.a, problem.b
    group, part = _block_of_steps(problem, kind)
    numbers = {"rows": problem.rows, "columns": problem.columns, "segments": problem.segments,
               "length": problem.length, "group": group, "part": part,
               "a_step": a.row if kind.left == "rows" else a.column, "b_segment": problem.b_segment, "b_step": b.row,
               "b_column": b.column,
               "b_panel": problem.segments * problem.b_segment if problem.panel else kind.width * b.column}
    lengths = (*(1,) * (3 - len(problem.batch)), *problem.batch)
    numbers |= {f"batch{n}": lengths[n] for n in (1, 2)}
    for name, x in zip(operand_names(kind), (a, b, *problem.others), strict=True):
        numbers |= _places(name, x)
    return numbers | ({} if problem.windows is None else _windows(problem.windows))


def _block_of_steps(problem: MatrixProduct, kind: Kind) -> tuple[int, int]:
    """The segments, and the steps of each, that are gone through at once."""
    words = problem.length if kind.dots is None else _parts(problem.length, kind.dots.steps)
    along = kind.strips and is_along_rows(problem, kind.right)
    most = steps_along(problem, kind.right) if along else kind.most_words
    long = bool(problem.panel) and kind.dots is None and problem.steps >= LONG
    if long:
        most = PACKED_STEPS
    if problem.segments > 1 and words <= kind.most_words // 2:
        rows = _parts(_blocks(problem.rows, kind)[1], kind.rows) * kind.rows  # the last tile notes rows past the end
        return _even(problem.segments, min(max(1, most // max(words, 1)), TABLE // rows)), problem.length
    if along:
        return 1, min(problem.length, most)
    alone = kind.right == "panels" and problem.rows <= kind.rows and not kind.windows and kind.wide == kind.dtype
    return 1, _even(problem.length, TABLE if alone else most if long else kind.most_steps, WHOLE)


def _even(whole: int, most: int, unit: int = 1) -> int:
    """The length of the fewest parts of about the same length, none above `most`, which is some units."""
    part = _parts(max(1, whole), _parts(max(1, whole), max(1, most)))
    return min(_parts(part, unit) * unit, max(1, whole))


def _windows(windows: ImageWindows) -> dict[str, int]:
    axes = (*(WindowAxis(),) * (SPATIAL - len(windows.axes)), *windows.axes)
    numbers = {f"{name}{n}": value for n, axis in enumerate(axes) for name, value in axis._asdict().items()}
    pool = (*(PoolAxis(),) * (SPATIAL - len(windows.pool)), *windows.pool) if windows.pool else ()
    numbers |= {f"pool_{name}{n}": value for n, axis in enumerate(pool) for name, value in axis._asdict().items()}
    return numbers | {"image_step": windows.image_step, "image_rows": windows.image_rows}


def _places(name: str, x: Strided) -> dict[str, int]:
    steps = (*(0,) * (3 - len(x.batch)), *x.batch)
    places = {f"{name}_offset": x.offset, **{f"{name}_batch{n}": step for n, step in enumerate(steps)}}
    return places if name in ("a", "b") else {**places, f"{name}_row": x.row}
