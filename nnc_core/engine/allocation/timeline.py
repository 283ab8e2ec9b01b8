"""A picture of a memory plan: one rectangle for each lifetime, steps to the right, offsets upwards."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nnc_core.base.atomic import open_atomically
from nnc_core.base.errors import AttributeValueError
from nnc_core.base.missing import require
from nnc_core.engine.allocation.lifetime import ArenaAllocation, Demand, IntArray, Lifetime, make_demand

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LABELS_SHOWN = 40
LABEL_POINTS = 6.0
LABEL_MARGIN = 0.5  # points between a label and the edge of its rectangle


def draw_timeline(lifetimes: Sequence[Lifetime], allocation: ArenaAllocation, path: str | os.PathLike[str],
                  labels: Sequence[str] | None = None) -> Path:
    """Write the picture to `path` in the format of its suffix (none: png) and return it.

    Rectangles are lifetimes in the arena; the line is the bytes alive (as given, not rounded), the dashed one
    the bound, the dotted one the peak.  labels: a name per lifetime, written into the largest rectangles: upright where
    one is too narrow, its first word where that is too short as well, and not at all where nothing fits.

    Raises MissingPackageError (with what to install) where matplotlib is missing, AttributeValueError if the
    allocation or the labels belong to other lifetimes, ValueError for a suffix that matplotlib does not know,
    OSError if the file cannot be written; nothing of it is left then.
    """
    _check_counts(len(lifetimes), len(allocation.offsets), labels)
    _save(timeline_figure(lifetimes, allocation, labels), Path(path))
    return Path(path)


def timeline_figure(lifetimes: Sequence[Lifetime], allocation: ArenaAllocation, labels: Sequence[str] | None) -> Figure:
    """The picture before it is written."""
    figure = _new_figure()
    axes = figure.add_subplot()
    demand = make_demand(lifetimes, alignment=1)
    if len(demand):
        demand = _cut_endless(demand)
        low = np.array(allocation.offsets, np.int64)[demand.index]
        _draw_rectangles(axes, demand, low)
        _draw_live(axes, demand)
    _draw_limits(axes, allocation)
    if len(demand) and labels:
        _draw_labels(figure, demand, low, labels)
    return figure


def _check_counts(lifetimes: int, offsets: int, labels: Sequence[str] | None) -> None:
    if offsets != lifetimes:
        raise AttributeValueError(f"an allocation of {offsets} lifetimes given for {lifetimes} lifetimes",
                                  hint="pass the lifetimes that were allocated")
    if labels is not None and len(labels) != lifetimes:
        raise AttributeValueError(f"{len(labels)} labels for {lifetimes} lifetimes, expected one each")


def _new_figure() -> Figure:
    """A figure of its own: pyplot and its choice of backend stay as the user has them."""
    library = require("matplotlib.figure", purpose="a picture of a memory plan", extra="plots")
    return library.Figure(figsize=(11, 6), dpi=120, layout="constrained")  # type: ignore[no-any-return]


def _cut_endless(demand: Demand) -> Demand:
    """Ends far beyond the last beginning (values kept for ever) are cut, lest all else shrinks to a line."""
    newest = int(demand.first.max())
    horizon = newest + max(newest - int(demand.first.min()), 1)
    return Demand(demand.sizes, demand.first, np.minimum(demand.last, horizon), demand.index, demand.segment)


def _draw_rectangles(axes: Axes, demand: Demand, low: IntArray) -> None:
    from matplotlib import colormaps
    from matplotlib.collections import PolyCollection

    left, right, high = demand.first, demand.last + 1, low + demand.sizes
    corners = np.stack((left, low, right, low, right, high, left, high), axis=1).reshape(-1, 4, 2)
    colours = colormaps["tab20"](demand.index % 20, alpha=0.7)  # dark ones are lightened for their labels
    axes.add_collection(PolyCollection(list(corners), facecolors=colours, edgecolors="white",
                                       linewidths=0.5 if len(demand) < 500 else 0.0))
    axes.set_xlim(int(left.min()), int(right.max()))


def _draw_labels(figure: Figure, demand: Demand, low: IntArray, labels: Sequence[str]) -> None:
    """Each within its rectangle; rectangles do not overlap, and so neither do labels."""
    (axes,) = figure.axes
    left, right, high = demand.first, demand.last + 1, low + demand.sizes
    room = _points(figure, right, high) - _points(figure, left, low) - 2 * LABEL_MARGIN
    largest = np.argsort(-room.clip(min=0).prod(axis=1), kind="stable")[:LABELS_SHOWN]
    for i in largest.tolist():
        fitting = _fitting(str(labels[demand.index[i]]), *room[i])
        if fitting is not None:
            text, rotation = fitting
            axes.text((left[i] + right[i]) / 2, (low[i] + high[i]) / 2, text, ha="center", va="center",
                      fontsize=LABEL_POINTS, rotation=rotation, parse_math=False, clip_on=True)


def _points(figure: Figure, x: IntArray, y: IntArray) -> Any:
    """The place of the data on the page, in points; it is known once the figure is laid out."""
    figure.draw_without_rendering()
    return figure.axes[0].transData.transform(np.stack((x, y), axis=1).astype(float)) * 72 / figure.dpi


def _fitting(label: str, width: float, height: float) -> tuple[str, int] | None:
    """The label or its first word, and the angle at which it fits into that many points; None if nothing does."""
    for text in dict.fromkeys((label, label.partition(" ")[0])):
        long, tall = _text_size(text)
        for rotation, (across, up) in ((0, (long, tall)), (90, (tall, long))):
            if across <= width and up <= height:
                return text, rotation
    return None


def _text_size(text: str) -> tuple[float, float]:
    """Width and height of a line of text, in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    width, height, _ = text_to_path.get_text_width_height_descent(text, FontProperties(size=LABEL_POINTS), ismath=False)
    return float(width), max(float(height), LABEL_POINTS)


def _draw_live(axes: Axes, demand: Demand) -> None:
    steps = np.unique(np.concatenate((demand.first, demand.last + 1)))
    axes.step(steps, demand.live_at(steps), where="post", color="black", linewidth=1.2, label="bytes alive")


def _draw_limits(axes: Axes, allocation: ArenaAllocation) -> None:
    axes.axhline(allocation.bound, color="tab:red", linestyle="--", label=f"bound {_bytes(allocation.bound)}")
    axes.axhline(allocation.peak, color="tab:blue", linestyle=":", label=f"peak {_bytes(allocation.peak)}")
    top = max(_extent(axes), allocation.peak, 1)
    axes.set_ylim(0, 1.12 * top)
    axes.set_yticks(np.arange(0, top + 1, 1 << max(int(top).bit_length() - 3, 0)))
    axes.yaxis.set_major_formatter(_bytes)
    axes.set_xlabel("step")
    axes.set_ylabel("offset in the arena")
    axes.set_title(f"{allocation.planner}: peak / bound {allocation.ratio:.3f}, "
                   f"{_bytes(allocation.total)} without sharing")
    axes.legend(loc="upper right", fontsize=8, ncols=3)


def _extent(axes: Axes) -> float:
    """Highest end of a rectangle: above the peak where segments are not filled to the end."""
    return float(axes.dataLim.y1) if axes.has_data() else 0.0


def _bytes(count: float, position: Any = None) -> str:
    """Bytes for people; the second argument is what matplotlib passes to a formatter."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024:
            return f"{count:.4g} {unit}"
        count /= 1024
    return f"{count:.4g} TiB"


def _save(figure: Figure, path: Path) -> None:
    """A reader sees the whole picture or the old one."""
    with open_atomically(path) as file:
        figure.savefig(file, format=path.suffix[1:] or "png")
