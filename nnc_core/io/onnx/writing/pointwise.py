"""Writing what treats all elements alike, in whatever order the axes of its operands lie."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from nnc_core.base.dtype import DType
from nnc_core.io.onnx.writing.held import Held, Order, is_identity
from nnc_core.operator import CONSTANT, OPERATORS, PLACEHOLDER
from nnc_core.symbol import Node

LEAVES = (PLACEHOLDER, CONSTANT, OPERATORS["filled"])
"""What is there before anything is computed."""

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
    """The order of the first operand that is as large as the result, or has as many axes, and was computed.

    Which order is called ours must not matter: a model that is read may have its channels first.
    """
    computed = [x for x in node.inputs if x.ndim == node.ndim and x.op not in LEAVES]
    whole = [x for x in computed if x.shape == node.shape] or computed
    return w.order_of(whole[0]) if whole else tuple(range(node.ndim))


def computed_as(w: NodeWriter, node: Node, dtype: DType, emit: Callable[..., str]) -> Held:
    """The same, computed in another dtype."""

    def between_casts(*names: str) -> str:
        wide = [w.cast(name, x.dtype, dtype) for name, x in zip(names, node.inputs, strict=True)]
        return w.cast(emit(*wide), dtype, node.dtype)

    return pointwise(w, node, between_casts)
