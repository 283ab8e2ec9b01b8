"""Slices and concatenations that undo each other, or a padding or an update."""

from __future__ import annotations

from typing import Any

from nnc_core.operator import OPERATORS, Nodes
from nnc_core.optimiser.rewrite import rewrite
from nnc_core.symbol import Node
from nnc_core.type import is_static

SLICE, CONCAT = OPERATORS["slice"], OPERATORS["concat"]


@rewrite("join-neighbours", "concat", tag="layout")
def join_neighbours(F: Nodes, node: Node) -> Node | None:
    """Slices of one value that lie side by side are one slice; all of them are the value."""
    axis: Any = node.attributes[0]
    joined: list[Node] = [node.inputs[0]]
    for piece in node.inputs[1:]:
        both = _joined(F, joined[-1], piece, axis)
        joined[-1:] = [joined[-1], piece] if both is None else [both]
    if len(joined) == len(node.inputs):
        return None
    return joined[0] if len(joined) == 1 else F.concat(*joined, axis=axis)


def _joined(F: Nodes, a: Node, b: Node, axis: int) -> Node | None:
    if not (a.op is b.op is SLICE) or a.inputs[0] is not b.inputs[0]:
        return None
    (start, stop, step), (begin, end, by) = a.attributes, b.attributes
    others = [i for i in range(a.ndim) if i != axis]
    if any((start[i], stop[i], step[i]) != (begin[i], end[i], by[i]) for i in others):
        return None
    if step[axis] != 1 or by[axis] != 1 or stop[axis] != begin[axis]:
        return None
    return F.slice(a.inputs[0], start=start, stop=(*stop[:axis], end[axis], *stop[axis + 1 :]), step=step)


@rewrite("concat-again", "concat", tag="layout")
def concat_again(F: Nodes, node: Node) -> Node | None:
    """concat(concat(a, b), c) -> concat(a, b, c) along one axis."""
    if not any(_is_concat(x, node) for x in node.inputs):
        return None
    pieces = [y for x in node.inputs for y in (x.inputs if _is_concat(x, node) else (x,))]
    return F.concat(*pieces, axis=node.attributes[0])


def _is_concat(x: Node, node: Node) -> bool:
    return x.op is CONCAT and x.attributes == node.attributes


@rewrite("slice-of-concat", "slice", tag="layout")
def slice_of_concat(F: Nodes, node: Node) -> Node | None:
    """slice(concat(a, b)) -> slice(a), where the slice lies within one piece."""
    (x,) = node.inputs
    if x.op is not CONCAT or not is_static(x.shape):
        return None
    (start, stop, step), axis = node.attributes, x.attributes[0]
    begin = 0
    for piece in x.inputs:
        end = begin + piece.shape[axis]
        if begin <= start[axis] < stop[axis] <= end:
            low, high = (_moved(ends, axis, -begin) for ends in (start, stop))
            return F.slice(piece, start=low, stop=high, step=step)
        begin = end
    return None


def _moved(ends: Any, axis: int, by: Any) -> tuple[Any, ...]:
    return (*ends[:axis], ends[axis] + by, *ends[axis + 1 :])


@rewrite("slice-of-pad", "slice", tag="layout")
def slice_of_pad(F: Nodes, node: Node) -> Node | None:
    """A slice that none of the padding is in is a slice of what was padded."""
    (x,) = node.inputs
    if x.op.name != "pad" or any(x.attributes[2]) or not is_static(x.shape):
        return None
    start, stop, step = node.attributes
    low, inner = x.attributes[0], x.inputs[0]
    if not all(a <= b and b < c <= a + n for a, b, c, n in zip(low, start, stop, inner.shape, strict=True)):
        return None
    begin, end = (tuple(b - a for a, b in zip(low, ends, strict=True)) for ends in (start, stop))
    return F.slice(inner, start=begin, stop=end, step=step)


@rewrite("read-what-was-written", "slice", tag="layout")
def read_what_was_written(F: Nodes, node: Node) -> Node | None:
    """The slice of an update that was just updated is the update's value."""
    (x,) = node.inputs
    if x.op.name != "update_slice" or x.attributes[0] != node.attributes[0]:
        return None
    value = x.inputs[1]
    return value if value.shape == node.shape and x.attributes[1] == node.attributes[2] else None


REWRITES = (join_neighbours, concat_again, slice_of_concat, slice_of_pad, read_what_was_written)
