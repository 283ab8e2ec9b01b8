"""Gradients of max pools, masked by what was pooled, and their sums."""

from __future__ import annotations

from nnc_core.operator import Nodes
from nnc_core.optimiser.inspect import holds, number_of
from nnc_core.optimiser.rewrite import rewrite
from nnc_core.optimiser.rewriting import used_once
from nnc_core.shape.window import has_channels_last
from nnc_core.symbol import Node

COMPARISONS = frozenset({"greater", "greater_equal", "less", "less_equal"})


@rewrite("mask-of-pool", "where", tag="simplify", once="pool_put")
def mask_of_pool(F: Nodes, node: Node) -> Node | None:
    """where(x > c, pool_put(g, index of max_pool(x)), 0) -> pool_put(where(max_pool(x) > c, g, 0), index): the way back
    through relu and max pooling asks what is kept of an image, and not the image itself."""
    mask, put, zero = node.inputs
    if put.op.name != "pool_put" or mask.op.name not in COMPARISONS or not holds(zero, 0.0) or not used_once(F, put):
        return None
    g, index = put.inputs
    x, bound = mask.inputs
    _, *how = put.attributes
    if index.op.name != "max_pool_index" or index.inputs != (x,) or index.attributes != tuple(how):
        return None
    if number_of(bound) is None or bound.ndim or put.shape != node.shape:
        return None
    pooled = F.max_pool(x, **dict(zip(("window", "strides", "padding", "dilation", "layout"), how, strict=True)))
    kept = F.apply(node.op, (F.apply(mask.op, (pooled, bound), ()), g, zero), ())
    return F.apply(put.op, (kept, index), put.attributes)


@rewrite("sum-of-pool", "sum", tag="simplify", exact=False)
def sum_of_pool(F: Nodes, node: Node) -> Node | None:
    """sum(pool_put(g, index of max_pool(x)), over all pixels) -> sum(g, over all windows), as in the gradient of a bias
    behind which there is a pool: each number of g goes to a pixel of its own image and channel.  One that a window of
    nothing but padding has goes nowhere, so that there must be no padding."""
    (put,) = node.inputs
    axes, keepdims = node.attributes
    if put.op.name != "pool_put" or not set(_pixels(put.attributes[-1])).issubset(axes):
        return None
    g, index = put.inputs
    _, window, strides, padding, *rest = put.attributes
    if index.op.name != "max_pool_index" or index.attributes != (window, strides, padding, *rest):
        return None
    if any(pair != (0, 0) for pair in padding):
        return None
    return F.sum(g, axis=axes, keepdims=keepdims)


def _pixels(layout: str) -> range:
    """The axes of images that pixels lie along."""
    return range(1, len(layout) - 1) if has_channels_last(layout) else range(2, len(layout))


REWRITES = (mask_of_pool, sum_of_pool)
