"""Writing what treats all elements alike, in whatever order the axes of its operands lie."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from nnc_core.base.dtype import DType
from nnc_core.io.onnx.writing.held import Held, Order, is_identity
from nnc_core.symbol import Node

if TYPE_CHECKING:
    from nnc_core.io.onnx.writing.writer import NodeWriter


def pointwise(w: NodeWriter, node: Node, emit: Callable[..., str]) -> Held:
    """The result of `emit` on the names of all operands, read in the order in which the first that moved lies."""
    order = common_order(w, node)
    return held(emit(*[w.stored(x, order) for x in node.inputs]), order)


def held(name: str, order: Order) -> Held:
    """A value whose axes lie in that order."""
    return Held(name, None if is_identity(order) else order)


def common_order(w: NodeWriter, node: Node) -> Order:
    """The order of the first operand with all axes that lies in another one than ours."""
    orders = [w.order_of(x) for x in node.inputs if x.ndim == node.ndim]
    return next((o for o in orders if not is_identity(o)), tuple(range(node.ndim)))


def computed_as(w: NodeWriter, node: Node, dtype: DType, emit: Callable[..., str]) -> Held:
    """The same, computed in another dtype."""

    def between_casts(*names: str) -> str:
        wide = [w.cast(name, x.dtype, dtype) for name, x in zip(names, node.inputs, strict=True)]
        return w.cast(emit(*wide), dtype, node.dtype)

    return pointwise(w, node, between_casts)
