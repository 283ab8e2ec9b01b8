"""Transpositions that library code has asked for sink towards the outputs until they meet their inverses.

A convolution whose images have their channels first may be run as one of images with channels last, transposed before
and after.  What is computed of its result point by point, row by row or window by window is computed of the images as
they lie, and transposed then.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from nnc_core.base.config import config
from nnc_core.base.tiling import Tiling
from nnc_core.operator import OPERATORS, Nodes
from nnc_core.operator.packing import PACK
from nnc_core.shape.window import LAYOUTS, has_channels_last
from nnc_core.symbol import Node

PERMUTE, BROADCAST, CONCAT = (OPERATORS[name] for name in ("permute", "broadcast_to", "concat"))
REDUCTIONS = frozenset({"sum", "prod", "max", "min", "all", "any"})
"""Operators with the attributes `axis` and `keepdims`."""
POOLS = frozenset({"max_pool", "max_pool_index", "sum_pool", "sum_pool_gradient", "pool_put", "pool_take"})
"""Operators on images alone, which say their layout last."""
ALONG = frozenset({"resample", "spread"})
"""Operators along one axis of their first input, which they name first; the others are tables."""
BY_AXIS = frozenset({"pad", "slice"})
"""Operators whose attributes with several elements have one for each axis."""
SMALL = 8
"""The share of a result, one in so many elements, that is transposed for the others' sake."""

Axes = tuple[int, ...]


class Transposed:
    """The transpositions of a graph that are to sink."""

    def __init__(self, F: Nodes) -> None:
        self.F = F
        self.known: set[Node] = set()

    def note(self, node: Node) -> Node:
        """Let a transposition of images sink from now on; that of a kernel's gradient stays before the update, which
        takes the memory of the weights."""
        if node.op is PERMUTE and node.attributes[0][0] == 0:
            self.known.add(node)
        return node

    def sunk(self, node: Node) -> Node | None:
        """The node with the transposition of its inputs behind it; None where it stays before."""
        found = [x for x in node.inputs if x in self.known]
        if not found or len({x.attributes for x in found}) > 1:
            return None
        axes: Axes = found[0].attributes[0]
        if node.op is PACK:
            return self._packed(found[0].inputs[0], axes, node.attributes[0])
        if node.op is PERMUTE:
            return self._turned(found[0].inputs[0], tuple([axes[a] for a in node.attributes[0]]))
        if node.op.scalar is not None:
            return self._pointwise(node, axes)
        if node.op.name in ALONG:
            return self._along(node, axes)
        if len(found) < len(node.inputs):
            return None
        sources = tuple([x.inputs[0] for x in found])
        if node.op.name in REDUCTIONS:
            return self._reduced(node, sources[0], axes)
        if node.op.name in POOLS:
            return self._pooled(node, sources, axes)
        if node.op.name in BY_AXIS:
            return self._by_axis(node, sources[0], axes)
        if node.op is CONCAT:
            return self._back(self.F.apply(CONCAT, sources, (axes[node.attributes[0]],)), axes)
        return None

    def _back(self, x: Node, axes: Axes) -> Node:
        return self.note(self.F.permute(x, axes=axes))

    def _turned(self, x: Node, axes: Axes) -> Node:
        return x if axes == tuple(range(len(axes))) else self.F.permute(x, axes=axes)

    def _packed(self, x: Node, axes: Axes, tiling: Tiling) -> Node | None:
        """The images packed in another order of axes, which may be that in which they lie."""
        if any(block != 1 for block in tiling.blocks):
            return None
        order = tuple([axes[a] for a in tiling.order])
        return x if order == tuple(range(len(axes))) else self.F.apply(PACK, (x,), (Tiling(tiling.blocks, order),))

    def _pointwise(self, node: Node, axes: Axes) -> Node | None:
        if len(axes) != node.ndim:
            return None
        inputs = [self._source(x, axes, node.spec.static_shape) for x in node.inputs]
        whole = [x for x in node.inputs if x.shape == node.shape]
        if any(x is None for x in inputs) or 2 * len([x for x in whole if x in self.known]) < len(whole):
            return None
        return self._back(self.F.apply(node.op, tuple([x for x in inputs if x is not None]), node.attributes), axes)

    def _source(self, x: Node, axes: Axes, shape: Sequence[int]) -> Node | None:
        """An input of an operator that goes point by point, as it is to lie; None for what no axis can be added to."""
        if x in self.known:
            return x.inputs[0]
        if x.ndim == 0:
            return x
        inverse = tuple(sorted(range(len(axes)), key=axes.__getitem__))
        if x.op is BROADCAST and x.ndim == len(axes) and prod(x.inputs[0].spec.static_shape) * SMALL <= prod(shape):
            source = self._source(x.inputs[0], axes, shape)
            return source and self.F.broadcast_to(source, shape=tuple([x.shape[a] for a in inverse]))
        if x.ndim < len(axes):
            x = self.F.reshape(x, shape=(*(1,) * (len(axes) - x.ndim), *x.shape))
        return self._turned(x, inverse)

    def _along(self, node: Node, axes: Axes) -> Node | None:
        x, *tables = node.inputs
        axis, *how = node.attributes
        if x not in self.known or not self.known.isdisjoint(tables):
            return None
        return self._back(self.F.apply(node.op, (x.inputs[0], *tables), (axes[axis], *how)), axes)

    def _by_axis(self, node: Node, source: Node, axes: Axes) -> Node:
        inverse = sorted(range(len(axes)), key=axes.__getitem__)
        how = [tuple([x[a] for a in inverse]) if isinstance(x, tuple) else x for x in node.attributes]
        return self._back(self.F.apply(node.op, (source,), tuple(how)), axes)

    def _reduced(self, node: Node, source: Node, axes: Axes) -> Node | None:
        axis, keepdims = node.attributes
        if config.deterministic and not node.op.exact:
            return None  # another order of additions
        folded = tuple(sorted([axes[a] for a in axis]))
        result = self.F.apply(node.op, (source,), (folded, keepdims))
        if keepdims:
            return self._back(result, axes)
        left = [axes[a] for a in range(len(axes)) if a not in axis]
        return self._turned(result, tuple([sorted(left).index(a) for a in left]))

    def _pooled(self, node: Node, sources: tuple[Node, ...], axes: Axes) -> Node | None:
        *how, layout = node.attributes
        for last in LAYOUTS:
            if has_channels_last(last) and len(last) == len(layout) and axes == tuple([last.index(a) for a in layout]):
                return self._back(self.F.apply(node.op, sources, (*how, last)), axes)
        return None
