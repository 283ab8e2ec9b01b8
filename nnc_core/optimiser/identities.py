"""Identities of arithmetic and logic, each exact to the bit for every input, NaN, infinities and -0 included.

That is why 0 * x and 0 / x stay for floats (NaN, infinity, -0), and x + 0 too (-0 + 0 is +0).
"""

from __future__ import annotations

from nnc_core.base.dtype import is_complex, is_float
from nnc_core.operator import Nodes
from nnc_core.optimiser.inspect import holds, is_integer, like, number_of
from nnc_core.optimiser.rewrite import rewrite
from nnc_core.symbol import Node


@rewrite("number-last", "add", "multiply", "maximum", "minimum", "equal", "not_equal", tag="canonicalise")
def number_last(F: Nodes, node: Node) -> Node | None:
    """c + x -> x + c, so that the other rules look at one side and equal sums are one node.

    Not for the larger or smaller of 0 and x: where x is -0, kernels give one of the two by their places.
    """
    a, b = node.inputs
    number = number_of(a)
    if number is None or number_of(b) is not None:
        return None
    if node.op.name in ("maximum", "minimum") and is_float(a.dtype) and number.value == 0:
        return None
    if node.op.name == "multiply" and is_complex(a.dtype):
        return None  # code that rounds two products of a part differently sees which is which
    return F.apply(node.op, (b, a), node.attributes)


@rewrite("add-zero", "add", "subtract", tag="simplify")
def add_zero(F: Nodes, node: Node) -> Node | None:
    """x + 0 -> x for integers, x + -0.0 and x - 0.0 -> x for floats."""
    x, c = node.inputs
    if is_complex(x.dtype):
        return None  # each part has a zero of its own
    neutral = 0 if is_integer(x) or node.op.name == "subtract" else -0.0
    return like(F, x, node) if holds(c, neutral) else None


@rewrite("multiply-one", "multiply", "divide", "power", tag="simplify")
def multiply_one(F: Nodes, node: Node) -> Node | None:
    """x * 1, x / 1, x ** 1 -> x; not for complex numbers, where infinities times 1 + 0i are NaN."""
    x, c = node.inputs
    return like(F, x, node) if holds(c, 1) and not is_complex(x.dtype) else None


@rewrite("multiply-zero", "multiply", tag="simplify")
def multiply_zero(F: Nodes, node: Node) -> Node | None:
    """x * 0 -> 0, for integers."""
    x, c = node.inputs
    return F.full_like(node, 0) if is_integer(x) and holds(c, 0) else None


@rewrite("subtract-itself", "subtract", "logical_xor", "bitwise_xor", tag="simplify")
def subtract_itself(F: Nodes, node: Node) -> Node | None:
    """x - x -> 0 for integers, x ^ x -> False."""
    a, b = node.inputs
    return F.full_like(node, 0) if a is b and (is_integer(a) or node.op.name != "subtract") else None


@rewrite("double-negation", "negative", "logical_not", "bitwise_invert", tag="simplify")
def double_negation(F: Nodes, node: Node) -> Node | None:
    """-(-x) -> x, not not x -> x."""
    (x,) = node.inputs
    return x.inputs[0] if x.op is node.op else None


@rewrite("add-negative", "add", "subtract", tag="simplify")
def add_negative(F: Nodes, node: Node) -> Node | None:
    """a + -b -> a - b, a - -b -> a + b, -a + b -> b - a."""
    a, b = node.inputs
    if b.op.name == "negative":
        return (F.subtract if node.op.name == "add" else F.add)(a, b.inputs[0])
    if a.op.name == "negative" and node.op.name == "add":
        return F.subtract(b, a.inputs[0])
    return None


@rewrite("multiply-negatives", "multiply", "divide", tag="simplify")
def multiply_negatives(F: Nodes, node: Node) -> Node | None:
    """-a * -b -> a * b, -a / -b -> a / b; not for complex quotients, where sums of zeros differ in their signs."""
    a, b = node.inputs
    if (node.op.name == "divide" and is_complex(a.dtype)) or a.op.name != "negative" or b.op.name != "negative":
        return None
    return F.apply(node.op, (a.inputs[0], b.inputs[0]), ())


@rewrite("idempotent", "relu", "abs", "sign", "floor", "ceil", "trunc", "round", "maximum", "minimum", "fmax", "fmin",
         "logical_and", "logical_or", "bitwise_and", "bitwise_or", "clip", "cummax", "cummin", "sort", tag="simplify")
def idempotent(F: Nodes, node: Node) -> Node | None:
    """relu(relu(x)) -> relu(x), maximum(x, x) -> x, and so on."""
    x, *others = node.inputs
    if len(others) != 1:
        same = x.op is node.op and x.attributes == node.attributes and list(x.inputs[1:]) == others
        return like(F, x, node) if same else None
    return x if x is others[0] else None


@rewrite("even-function", "cos", "cosh", tag="simplify", exact=False)
def even_function(F: Nodes, node: Node) -> Node | None:
    """cos(-x) -> cos(x): equal, but for code that does not see it."""
    (x,) = node.inputs
    return F.apply(node.op, x.inputs, ()) if x.op.name == "negative" else None


@rewrite("square", "power", tag="simplify", exact=False)
def square(F: Nodes, node: Node) -> Node | None:
    """x ** 2 -> x * x.  Not x ** 0.5 -> sqrt(x), which differs at -inf and -0."""
    x, n = node.inputs
    return like(F, F.multiply(x, x), node) if holds(n, 2) else None


@rewrite("same-choice", "where", tag="simplify")
def same_choice(F: Nodes, node: Node) -> Node | None:
    """where(c, x, x), where(True, x, y) -> x; where(False, x, y) -> y."""
    condition, a, b = node.inputs
    if a is b or holds(condition, True):
        return like(F, a, node)
    return like(F, b, node) if holds(condition, False) else None


@rewrite("cast-nothing", "cast", tag="simplify")
def cast_nothing(F: Nodes, node: Node) -> Node | None:
    """A cast to the dtype that x has already."""
    (x,) = node.inputs
    return x if x.dtype == node.dtype else None


@rewrite("identity", "identity", "of_size", tag="canonicalise")
def identity(F: Nodes, node: Node) -> Node | None:
    """A new name for x is x.

    `stop_gradient` stays: a gradient may be taken after this; the planner makes it free.
    """
    return node.inputs[0]


REWRITES = (
    number_last, add_zero, multiply_one, multiply_zero, subtract_itself, double_negation, add_negative,
    multiply_negatives, idempotent, even_function, square, same_choice, cast_nothing, identity,
)  # fmt: skip
