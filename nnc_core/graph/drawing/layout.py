"""Layout of a drawn graph: layers from top to bottom, few crossings, short lines.

After Sugiyama, Tagawa and Toda (1981), "Methods for visual understanding of hierarchical system structures":
layers by longest paths, bends where a line passes a layer, order within layers by barycentres.  Coordinates come
from the same sweeps: the positions nearest to the barycentres (least squares) that leave each box its room.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

SWEEPS = 12
BEND_WIDTH = 0.25  # of a box: lines that pass a layer lie closer together than boxes
MOST_BENDS = 40_000

Point = tuple[float, float]


class Placement(NamedTuple):
    """Centres of the boxes, each one wide, and lines between them; x grows to the right, the layer y downwards."""

    centres: list[Point]
    lines: list[list[Point]]
    width: float
    height: int


class _Rows:
    """Boxes (numbered first) and bends, layer by layer, with neighbours in the layers above and below."""

    def __init__(self, inputs: Sequence[Sequence[int]]) -> None:
        self.level = layers(inputs)
        self.boxes = len(inputs)
        self.above: list[list[int]] = [[] for _ in inputs]
        self.below: list[list[int]] = [[] for _ in inputs]
        self.straight: list[tuple[int, int]] = []
        self._connect(inputs)
        self.rows: list[list[int]] = [[] for _ in range(max(self.level, default=-1) + 1)]
        for point, level in enumerate(self.level):
            self.rows[level].append(point)

    def _connect(self, inputs: Sequence[Sequence[int]]) -> None:
        """One chain of bends for each source: lines to several users part where they must."""
        tails: dict[int, list[int]] = {}
        for user, sources in enumerate(inputs):
            for source in dict.fromkeys(sources):
                if len(self.level) - self.boxes > MOST_BENDS:
                    self.straight.append((source, user))
                    continue
                chain = tails.setdefault(source, [source])
                while len(chain) < self.level[user] - self.level[source]:
                    chain.append(self._bend_below(chain[-1]))
                self._join(chain[self.level[user] - self.level[source] - 1], user)

    def _bend_below(self, point: int) -> int:
        bend = len(self.level)
        self.level.append(self.level[point] + 1)
        self.above.append([])
        self.below.append([])
        self._join(point, bend)
        return bend

    def _join(self, upper: int, lower: int) -> None:
        self.below[upper].append(lower)
        self.above[lower].append(upper)


def layers(inputs: Sequence[Sequence[int]]) -> list[int]:
    """The layer of each node below all of its inputs; a node without inputs lies just above its first user.

    `inputs` gives, for each node, the numbers of earlier nodes.
    """
    level: list[int] = []
    for sources in inputs:
        level.append(1 + max([level[s] for s in sources], default=-1))
    nearest: dict[int, int] = {}
    for user, sources in enumerate(inputs):
        for source in sources:
            nearest[source] = min(nearest.get(source, level[user]), level[user])
    return [level[i] if sources or i not in nearest else nearest[i] - 1 for i, sources in enumerate(inputs)]


def place(inputs: Sequence[Sequence[int]]) -> Placement:
    """Lay out a graph: `inputs` gives, for each node, the numbers of earlier nodes."""
    rows = _Rows(inputs)
    x = _coordinates(rows)
    points = [(x[i], float(level)) for i, level in enumerate(rows.level)]
    lines = [[points[upper], points[lower]] for upper in range(len(points)) for lower in rows.below[upper]]
    lines += [[points[a], points[b]] for a, b in rows.straight]
    return Placement(points[: rows.boxes], lines, max(x, default=0.0) + 1.0, len(rows.rows))


def _coordinates(rows: _Rows) -> list[float]:
    room = [1.0 if i < rows.boxes else BEND_WIDTH for i in range(len(rows.level))]
    x = [0.0] * len(rows.level)
    for row in rows.rows:
        _assign(row, [0.0] * len(row), room, x)
    for sweep in range(SWEEPS):
        downwards = sweep % 2 == 0
        seen = rows.above if downwards else rows.below
        for row in rows.rows if downwards else reversed(rows.rows):
            wanted = {i: _mean([x[k] for k in seen[i]], x[i]) for i in row}
            row.sort(key=wanted.__getitem__)
            _assign(row, [wanted[i] for i in row], room, x)
    left = min(x, default=0.0)
    return [value - left for value in x]


def _mean(values: list[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _assign(row: list[int], wanted: list[float], room: list[float], x: list[float]) -> None:
    """The positions in this order that are nearest to `wanted` and do not overlap.

    Without the room that each box takes this is isotonic regression; neighbours that want to pass each other form
    a block at their common mean ("pool adjacent violators", Ayer et al. 1955).
    """
    taken, before = 0.0, 0.0
    offsets: list[float] = []
    blocks: list[tuple[float, int]] = []  # (sum of wishes, members)
    for i, wish in zip(row, wanted, strict=True):
        taken += (before + room[i]) / 2 if offsets else 0.0
        before = room[i]
        offsets.append(taken)
        total, count = wish - taken, 1
        while blocks and blocks[-1][0] * count > total * blocks[-1][1]:
            earlier, members = blocks.pop()
            total, count = total + earlier, count + members
        blocks.append((total, count))
    middles = [total / count for total, count in blocks for _ in range(count)]
    for i, middle, offset in zip(row, middles, offsets, strict=True):
        x[i] = middle + offset
