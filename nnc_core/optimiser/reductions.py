"""Reductions of reductions and of what was repeated.

Integers and booleans may be folded in any order.  Floats may not: sums round, and of 0.0 and -0.0 the first one is the
largest.
"""

from __future__ import annotations

from math import prod
from typing import Any

from nnc_core.base import dtype as dt
from nnc_core.operator import Nodes
from nnc_core.optimiser.inspect import BROADCAST, is_integer
from nnc_core.optimiser.rewrite import rewrite
from nnc_core.symbol import Node
from nnc_core.type import is_static

EXTREMA = ("max", "min", "all", "any")
FOLDS = ("sum", "prod", *EXTREMA)


def _in_any_order(node: Node) -> bool:
    return is_integer(node) or node.dtype == dt.boolean


@rewrite("reduce-again", *FOLDS, tag="simplify")
def reduce_again(F: Nodes, node: Node) -> Node | None:
    """The sum of sums along some axes is the sum along all of them, and likewise; for integers and booleans."""
    return _merged(F, node) if _in_any_order(node.inputs[0]) else None


@rewrite("reduce-floats-again", "sum", "prod", "max", "min", tag="simplify", exact=False)
def reduce_floats_again(F: Nodes, node: Node) -> Node | None:
    """The same for floats, up to rounding and the sign of zero."""
    narrow = node.dtype in (dt.float16, dt.bfloat16)  # of which the inner sum is rounded, or overflows
    return None if narrow else _merged(F, node)


def _merged(F: Nodes, node: Node) -> Node | None:
    (x,) = node.inputs
    if x.op is not node.op:
        return None
    source, (first, keepdims) = x.inputs[0], x.attributes
    left = list(range(source.ndim)) if keepdims else [i for i in range(source.ndim) if i not in first]
    axes = tuple(sorted({*first, *(left[i] for i in node.attributes[0])}))
    found: Node = getattr(F, node.op.name)(source, axis=axes, keepdims=node.attributes[1])
    return found if found.shape == node.shape else F.reshape(found, shape=node.shape)


@rewrite("reduce-copies", *EXTREMA, tag="simplify")
def reduce_copies(F: Nodes, node: Node) -> Node | None:
    """The largest of copies of one number is that number."""
    (x,) = node.inputs
    if not _all_copies(x, node.attributes[0]):
        return None
    return F.reshape(x.inputs[0], shape=node.shape)


@rewrite("sum-copies", "sum", tag="simplify")
def sum_copies(F: Nodes, node: Node) -> Node | None:
    """n copies of x add up to n * x; for integers."""
    return _times(F, node) if is_integer(node) else None


@rewrite("sum-float-copies", "sum", tag="simplify", exact=False)
def sum_float_copies(F: Nodes, node: Node) -> Node | None:
    """The same for floats, up to rounding."""
    return _times(F, node)


def _times(F: Nodes, node: Node) -> Node | None:
    (x,) = node.inputs
    axes: Any = node.attributes[0]
    if not _all_copies(x, axes) or not axes:
        return None
    count = prod(int(x.shape[a]) for a in axes)
    if is_integer(node):
        count = int(_wrapped(count, node))
    elif count > 256:
        return None  # beyond that halves have no odd numbers
    return F.multiply(F.reshape(x.inputs[0], shape=node.shape), F.number(count, node.dtype, node))


def _wrapped(count: int, node: Node) -> Any:
    bits = 8 * node.dtype.itemsize
    count %= 1 << bits
    return count - (1 << bits) if node.dtype.kind == "i" and count >> (bits - 1) else count


def _all_copies(x: Node, axes: tuple[int, ...]) -> bool:
    """True if x is broadcast along these axes, and along no others."""
    if x.op is not BROADCAST or not is_static(x.shape) or 0 in x.shape:
        return False
    narrow = x.inputs[0]
    shape = (1,) * (x.ndim - narrow.ndim) + tuple(narrow.shape)
    return all(shape[i] == 1 if i in axes else shape[i] == n for i, n in enumerate(x.shape))


REWRITES = (reduce_again, reduce_floats_again, reduce_copies, sum_copies, sum_float_copies)
