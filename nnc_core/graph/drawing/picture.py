"""A picture of a graph, drawn with matplotlib alone: needs no Graphviz."""

from __future__ import annotations

from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING

from nnc_core.base.atomic import open_atomically
from nnc_core.base.errors import AttributeValueError, NotSupportedError
from nnc_core.base.missing import require
from nnc_core.graph.drawing.layout import Placement, place
from nnc_core.graph.drawing.unfolded import Drawable, Drawn, unfolded
from nnc_core.operator import CONSTANT, PLACEHOLDER
from nnc_core.symbol import Node

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_NODES = 3000
COLUMN, LAYER = 1.5, 0.62  # inches from box to box
BOX = (0.9, 0.62)  # the part of that which a box fills
MOST_INCHES = 150.0  # a side; larger graphs are drawn smaller
MOST_PIXELS = 4e7
LETTERS = 24  # of a line in a box
INPUT, OUTPUT, CONSTANTS, PLAIN, LINE = "#cfe2f3", "#d9ead3", "#eeeeee", "#ffffff", "#8c8c8c"
INSIDE = ("#fff2cc", "#fce5cd", "#f4cccc")  # of bodies, the deeper the darker


def draw_graph(graph: Drawable, path: Path) -> Path:
    """Write a picture to `path`, in the format of its suffix (png, svg, pdf ...; none: png); give the path.

    Values flow downwards.  A box is a node with its operator and spec; inputs are blue, outputs green, constants grey
    and what is in the bodies of control flow yellow to red; values flow through bodies to the node that holds them.
    The file is there whole or not at all.

    Raises NotSupportedError beyond 3,000 nodes, MissingPackageError (with what to install) where matplotlib is
    missing, AttributeValueError for a suffix that matplotlib does not know.
    """
    nodes = unfolded(graph, _all_nodes(graph))
    if len(nodes) > MOST_NODES:
        raise NotSupportedError(
            f"a picture of {len(nodes)} nodes cannot be read; at most {MOST_NODES} are drawn",
            hint="write graph.to_dot() or graph.to_trace() to a file",
        )
    placement = place([node.sources for node in nodes])
    figure, scale = _new_figure(placement)
    format = path.suffix[1:].lower() or "png"
    if format not in figure.canvas.get_supported_filetypes():
        raise AttributeValueError(f"{str(path)!r} is no picture: there is no format {format!r}", operator="draw",
                                  hint="png, svg or pdf; the text of graph.to_dot() is for .dot files")
    axes = figure.add_axes((0, 0, 1, 1))
    _draw_lines(axes, placement, scale)
    _draw_boxes(axes, placement, _colours(graph, nodes), scale)
    _draw_labels(axes, placement, _labels(graph, nodes), scale)
    _frame(axes, placement, graph)
    with open_atomically(path) as file:
        figure.savefig(file, format=format)
    return path


def _all_nodes(graph: Drawable) -> list[Node]:
    """Inputs that nothing reads are drawn too."""
    return list(dict.fromkeys([*graph.inputs.values(), *graph.nodes]))


def _new_figure(placement: Placement) -> tuple[Figure, float]:
    """A figure of its own, so that pyplot and its backend stay as the user has them, and how much it is scaled."""
    library = require("matplotlib.figure", purpose="a picture of a graph", extra="plots")
    width, height = (placement.width + 0.5) * COLUMN, (placement.height + 1.0) * LAYER
    scale = min(1.0, MOST_INCHES / width, MOST_INCHES / height)
    size = (max(width * scale, 3.0), max(height * scale, 1.5))
    return library.Figure(figsize=size, dpi=min(120.0, sqrt(MOST_PIXELS / (size[0] * size[1])))), scale


def _draw_lines(axes: Axes, placement: Placement, scale: float) -> None:
    from matplotlib.collections import LineCollection

    axes.add_collection(LineCollection(placement.lines, colors=LINE, linewidths=0.7 * scale, zorder=1))


def _draw_boxes(axes: Axes, placement: Placement, colours: list[str], scale: float) -> None:
    from matplotlib.collections import PolyCollection

    w, h = BOX[0] / 2, BOX[1] / 2
    corners = [[(x - w, y - h), (x + w, y - h), (x + w, y + h), (x - w, y + h)] for x, y in placement.centres]
    boxes = PolyCollection(corners, facecolors=colours, edgecolors="black", linewidths=0.5 * scale, zorder=2)
    axes.add_collection(boxes)


def _draw_labels(axes: Axes, placement: Placement, labels: list[str], scale: float) -> None:
    for (x, y), label in zip(placement.centres, labels, strict=True):
        axes.text(x, y, label, ha="center", va="center", fontsize=5.5 * scale, parse_math=False, zorder=3)


def _frame(axes: Axes, placement: Placement, graph: Drawable) -> None:
    nodes, edges = graph.complexity
    axes.set_xlim(-0.75, placement.width - 0.25)
    axes.set_ylim(placement.height - 0.4, -1.1)  # downwards
    axes.axis("off")
    title = f"{_short(graph.name)}: {nodes} nodes, {edges} edges"
    axes.text((placement.width - 1) / 2, -0.75, title, ha="center", va="center", fontsize=9, parse_math=False)


def _colours(graph: Drawable, nodes: list[Drawn]) -> list[str]:
    outputs = set(graph.outputs.values())
    return [_colour(node, not node.scope and node.node in outputs) for node in nodes]


def _colour(drawn: Drawn, output: bool) -> str:
    node, depth = drawn.node, len(drawn.scope)
    if output:
        return OUTPUT
    if node.op is CONSTANT or (node.op is not PLACEHOLDER and not node.inputs):
        return CONSTANTS
    if depth:
        return INSIDE[min(depth, len(INSIDE)) - 1]
    return INPUT if node.op is PLACEHOLDER else PLAIN


def _labels(graph: Drawable, nodes: list[Drawn]) -> list[str]:
    """Operator and spec; inputs have their name, those of bodies the body's, and outputs theirs in front."""
    shown = {node: name for name, node in graph.inputs.items()}
    given: dict[Node, list[str]] = {}
    for name, node in graph.outputs.items():
        given.setdefault(node, []).append(name)

    def label(drawn: Drawn) -> str:
        node = drawn.node
        if not drawn.scope:
            return " = ".join([*given.get(node, ()), shown.get(node, node.op.name)])
        body, name = drawn.scope[-1].rpartition(" ")[2], drawn.name.rpartition(".")[2]
        return f"{body}: {name}" if node.op is PLACEHOLDER else node.op.name

    return [_short(label(node)) + "\n" + _short(repr(node.node.spec)) for node in nodes]


def _short(text: str) -> str:
    printable = "".join(letter if letter.isprintable() else "?" for letter in text)
    return printable if len(printable) <= LETTERS else printable[: LETTERS - 1] + "…"
