"""Questions that rewrites ask of nodes."""

from __future__ import annotations

from functools import lru_cache
from math import copysign
from typing import Any

import numpy as np

from nnc_core.base import dtype as dt
from nnc_core.operator import CONSTANT, OPERATORS, Nodes
from nnc_core.symbol import Literal, Node, Number

FILLED = OPERATORS["filled"]
BROADCAST = OPERATORS["broadcast_to"]


def number_of(node: Node) -> Number | None:
    """The one number that a node holds everywhere."""
    while node.op is BROADCAST:
        node = node.inputs[0]
    if node.op is not FILLED:
        return None
    number = node.attributes[1]
    assert isinstance(number, Number)
    return number


def holds(node: Node, value: float) -> bool:
    """True if a node is `value` everywhere; zero must be the plain +0."""
    number = number_of(node)
    return number is not None and number == _number(value, copysign(1.0, value), number.dtype)


@lru_cache(maxsize=512)
def _number(value: float, sign: float, dtype: dt.DType) -> Number:
    """`sign` tells 0.0 from -0.0, which are one key."""
    return Number(value, dtype)


def host_array(node: Node) -> Any:
    """The array of a constant that is on the host, or a filled one's scalar; None for anything else."""
    if node.op is FILLED:
        number = node.attributes[1]
        assert isinstance(number, Number)
        return np.broadcast_to(number.value, node.spec.static_shape)
    if node.op is CONSTANT:
        literal = node.attributes[0]
        assert isinstance(literal, Literal)
        return None if literal.device else literal.array
    return None


def is_known(node: Node) -> bool:
    """True where `host_array` gives an array, which may have to be computed."""
    return node.op is FILLED or (node.op is CONSTANT and not node.attributes[0].device)


def like(F: Nodes, x: Node, node: Node) -> Node | None:
    """x in place of `node`: broadcast where the shapes differ, refused where the dtypes do."""
    if x.dtype != node.dtype:
        return None
    return x if x.shape == node.shape else F.broadcast_to(x, shape=node.shape)


def is_integer(node: Node) -> bool:
    return dt.is_integer(node.dtype)
