"""Comparisons, logic and choices between values.

A float is compared with itself for NaN, so only what holds for NaN too is rewritten for floats.
"""

from __future__ import annotations

import numpy as np

from nnc_core.base import dtype as dt
from nnc_core.base.dtype import is_inexact
from nnc_core.operator import Nodes
from nnc_core.optimiser.inspect import holds, is_integer, like, number_of
from nnc_core.optimiser.rewrite import rewrite
from nnc_core.symbol import Node

OPPOSITE = {"equal": "not_equal", "not_equal": "equal"}
OPPOSITE_ORDER = {"less": "greater_equal", "greater_equal": "less", "greater": "less_equal", "less_equal": "greater"}
DUAL = {"logical_and": "logical_or", "logical_or": "logical_and", "bitwise_and": "bitwise_or",
        "bitwise_or": "bitwise_and"}  # fmt: skip


@rewrite("compare-with-itself", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", tag="simplify")
def compare_with_itself(F: Nodes, node: Node) -> Node | None:
    """x < x, x > x -> False; x == x and the like only where x cannot be NaN."""
    a, b = node.inputs
    if a is not b:
        return None
    strict = node.op.name in ("less", "greater")
    if is_inexact(a.dtype) and not strict:
        return None
    return F.full_like(node, node.op.name in ("equal", "less_equal", "greater_equal"))


@rewrite("unsigned-below-zero", "less", "greater_equal", tag="simplify")
def unsigned_below_zero(F: Nodes, node: Node) -> Node | None:
    """x < 0 -> False, x >= 0 -> True, for unsigned integers."""
    x, c = node.inputs
    if x.dtype.kind != "u" or not is_integer(x) or not holds(c, 0):
        return None
    return F.full_like(node, node.op.name == "greater_equal")


@rewrite("compare-with-truth", "equal", "not_equal", tag="simplify")
def compare_with_truth(F: Nodes, node: Node) -> Node | None:
    """c == True, c != False -> c; c == False, c != True -> not c, for booleans."""
    x, c = node.inputs
    number = number_of(c)
    if x.dtype != dt.boolean or number is None:
        return None
    same = bool(number.value) == (node.op.name == "equal")
    return like(F, x if same else F.logical_not(x), node)


@rewrite("not-of-comparison", "logical_not", tag="simplify")
def not_of_comparison(F: Nodes, node: Node) -> Node | None:
    """not a == b -> a != b, for NaN too; not a < b -> a >= b only for integers."""
    (x,) = node.inputs
    name = OPPOSITE.get(x.op.name)
    if name is None and x.op.name in OPPOSITE_ORDER and not is_inexact(x.inputs[0].dtype):
        name = OPPOSITE_ORDER[x.op.name]
    return None if name is None else getattr(F, name)(*x.inputs)


@rewrite("logic-with-number", "logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor",
         tag="simplify")
def logic_with_number(F: Nodes, node: Node) -> Node | None:
    """x & True, x | False, x ^ False -> x; x & False -> False, x | True -> True, x ^ True -> not x; bits likewise."""
    for x, c in (node.inputs, node.inputs[::-1]):
        number = number_of(c)
        if number is None:
            continue
        nothing = number.value == 0
        everything = bool(number.value) if x.dtype == dt.boolean else number.value == np.invert(np.zeros((), x.dtype))
        kind = node.op.name.rpartition("_")[2]
        if nothing:
            return F.full_like(node, 0) if kind == "and" else like(F, x, node)
        if everything and kind == "xor":
            return like(F, (F.logical_not if x.dtype == dt.boolean else F.bitwise_invert)(x), node)
        if everything:
            return F.filled(shape=node.shape, number=number) if kind == "or" else like(F, x, node)
    return None


@rewrite("logic-with-its-opposite", "logical_and", "logical_or", "logical_xor", tag="simplify")
def logic_with_its_opposite(F: Nodes, node: Node) -> Node | None:
    """c and not c -> False; c or not c, c xor not c -> True."""
    a, b = node.inputs
    if any(x.op.name == "logical_not" and x.inputs[0] is y for x, y in ((a, b), (b, a))):
        return F.full_like(node, node.op.name != "logical_and")
    return None


@rewrite("absorption", *DUAL, tag="simplify")
def absorption(F: Nodes, node: Node) -> Node | None:
    """a & (a | b), a | (a & b) -> a."""
    for a, b in (node.inputs, node.inputs[::-1]):
        if b.op.name == DUAL[node.op.name] and a in b.inputs:
            return like(F, a, node)
    return None


@rewrite("where-of-truth", "where", tag="simplify")
def where_of_truth(F: Nodes, node: Node) -> Node | None:
    """where(c, True, False) -> c, where(c, False, True) -> not c."""
    c, a, b = node.inputs
    if node.dtype != dt.boolean:
        return None
    if holds(a, True) and holds(b, False):
        return like(F, c, node)
    return like(F, F.logical_not(c), node) if holds(a, False) and holds(b, True) else None


@rewrite("where-not", "where", tag="simplify")
def where_not(F: Nodes, node: Node) -> Node | None:
    """where(not c, a, b) -> where(c, b, a)."""
    c, a, b = node.inputs
    return F.where(c.inputs[0], b, a) if c.op.name == "logical_not" else None


@rewrite("where-again", "where", tag="simplify")
def where_again(F: Nodes, node: Node) -> Node | None:
    """where(c, where(c, a, b), d) -> where(c, a, d), and likewise where it is false."""
    c, a, b = node.inputs
    if not (_asks(a, c) or _asks(b, c)):
        return None
    return like(F, F.where(c, a.inputs[1] if _asks(a, c) else a, b.inputs[2] if _asks(b, c) else b), node)


def _asks(x: Node, condition: Node) -> bool:
    return x.op.name == "where" and x.inputs[0] is condition


REWRITES = (
    compare_with_itself, unsigned_below_zero, compare_with_truth, not_of_comparison, logic_with_number,
    logic_with_its_opposite, absorption, where_of_truth, where_not, where_again,
)  # fmt: skip
