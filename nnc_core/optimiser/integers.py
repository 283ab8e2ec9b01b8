"""Laws of arithmetic that integers, which wrap, keep exactly and floats do not."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnc_core.base.dtype import is_complex
from nnc_core.operator import Nodes
from nnc_core.optimiser.inspect import holds, is_integer, like, number_of
from nnc_core.optimiser.rewrite import rewrite
from nnc_core.symbol import Node, Number

FOLDS = {"add": np.add, "multiply": np.multiply, "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or,
         "bitwise_xor": np.bitwise_xor, "maximum": np.maximum, "minimum": np.minimum}  # fmt: skip


@rewrite("gather-numbers", *FOLDS, tag="canonicalise")
def gather_numbers(F: Nodes, node: Node) -> Node | None:
    """(x + c) + d -> x + (c + d) for integers, and likewise for what else is associative."""
    x, d = node.inputs
    b = number_of(d)
    if not is_integer(x) or b is None or x.op is not node.op:
        return None
    a = number_of(x.inputs[1])
    if a is None:
        return None
    with np.errstate(all="ignore"):
        total = FOLDS[node.op.name](np.full(1, a.value), b.value)[0]
    found: Any = F.apply(node.op, (x.inputs[0], F.filled(shape=(), number=Number(total, x.dtype))), ())
    return like(F, found, node)


@rewrite("add-and-subtract", "add", "subtract", tag="simplify")
def add_and_subtract(F: Nodes, node: Node) -> Node | None:
    """(x + y) - y, (x - y) + y -> x; x - (x - y) -> y; x - (x + y) -> -y, for integers."""
    a, b = node.inputs
    if not is_integer(a):
        return None
    if node.op.name == "add":
        for p, q in ((a, b), (b, a)):
            if p.op.name == "subtract" and p.inputs[1] is q:
                return like(F, p.inputs[0], node)
        return None
    if a.op.name == "add" and b in a.inputs:
        return like(F, a.inputs[a.inputs[0] is b], node)
    if b.op.name == "subtract" and b.inputs[0] is a:
        return like(F, b.inputs[1], node)
    if b.op.name == "add" and a in b.inputs:
        return like(F, F.negative(b.inputs[b.inputs[0] is a]), node)
    return None


@rewrite("collect-multiples", "add", "subtract", tag="simplify")
def collect_multiples(F: Nodes, node: Node) -> Node | None:
    """c * x + d * x -> (c + d) * x, x - d * x -> (1 - d) * x, for integers."""
    if not is_integer(node):
        return None
    (x, c), (y, d) = map(_multiple, node.inputs)
    if x is not y or all(operand is x for operand in node.inputs):
        return None
    with np.errstate(all="ignore"):
        one = np.ones(1, node.dtype)
        count = (one * c + one * d if node.op.name == "add" else one * c - one * d)[0]
    return like(F, F.multiply(x, F.filled(shape=(), number=Number(count, node.dtype))), node)


def _multiple(x: Node) -> tuple[Node, Any]:
    """(y, c) for x = c * y."""
    number = number_of(x.inputs[1]) if x.op.name == "multiply" else None
    return (x, x.dtype.type(1)) if number is None else (x.inputs[0], number.value)


@rewrite("minus-one", "multiply", "divide", tag="simplify")
def minus_one(F: Nodes, node: Node) -> Node | None:
    """x * -1, x / -1 -> -x, for floats too."""
    x, c = node.inputs
    if is_complex(x.dtype) or x.dtype.kind in "bu" or not holds(c, -1):
        return None
    return like(F, F.negative(x), node)


@rewrite("zero-minus", "subtract", tag="simplify")
def zero_minus(F: Nodes, node: Node) -> Node | None:
    """0 - x -> -x for integers, -0.0 - x -> -x for floats: 0.0 - 0.0 is no -0.0."""
    c, x = node.inputs
    if is_complex(x.dtype) or not holds(c, 0 if is_integer(x) else -0.0):
        return None
    return like(F, F.negative(x), node)


@rewrite("power-zero", "power", tag="simplify")
def power_zero(F: Nodes, node: Node) -> Node | None:
    """x ** 0 -> 1, of NaN too."""
    x, c = node.inputs
    return F.full_like(node, 1) if not is_complex(x.dtype) and holds(c, 0) else None


@rewrite("divide-by-one", "floor_divide", "remainder", "fmod", tag="simplify")
def divide_by_one(F: Nodes, node: Node) -> Node | None:
    """x // 1 -> x, x % 1 -> 0, for integers."""
    x, c = node.inputs
    if not is_integer(x) or not holds(c, 1):
        return None
    return like(F, x, node) if node.op.name == "floor_divide" else F.full_like(node, 0)


@rewrite("shift-by-zero", "bitwise_left_shift", "bitwise_right_shift", tag="simplify")
def shift_by_zero(F: Nodes, node: Node) -> Node | None:
    """x << 0, x >> 0 -> x."""
    x, c = node.inputs
    return like(F, x, node) if holds(c, 0) else None


@rewrite("magnitude-of-negative", "abs", tag="simplify")
def magnitude_of_negative(F: Nodes, node: Node) -> Node | None:
    """|-x| -> |x| for signed real numbers; negative unsigned ones are large."""
    (x,) = node.inputs
    signed = x.dtype.kind not in "bu" and not is_complex(x.dtype)
    return F.abs(x.inputs[0]) if signed and x.op.name == "negative" else None


REWRITES = (
    gather_numbers, add_and_subtract, collect_multiples, minus_one, zero_minus, power_zero, divide_by_one,
    shift_by_zero, magnitude_of_negative,
)  # fmt: skip
