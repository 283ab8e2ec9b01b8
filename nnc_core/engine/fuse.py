"""Fusion: grouping nodes into commands.  The only place where one command stands for several nodes.

A fused operator is declared here, not in the namespace: no user calls it, no rule differentiates it; it exists
between the optimiser and the device.  It is used where the device has code for it: a backend of its own, or a
compiler for loop nests ("codegen" among its features).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from nnc_core.base.config import config
from nnc_core.base.dtype import is_float
from nnc_core.device import Device
from nnc_core.operator import CONSTANT, OPERATORS, PLACEHOLDER
from nnc_core.operator.control import is_tape
from nnc_core.shape import elementwise as rule
from nnc_core.symbol import Node
from nnc_core.type import Attributes, Op


class NodeGroup(NamedTuple):
    """One command to be: an operator, its inputs, and the node whose value it computes."""

    op: Op
    inputs: tuple[Node, ...]
    attributes: Attributes
    node: Node


def _multiply_add(a: Any, b: Any, c: Any) -> Any:
    return np.add(np.multiply(a, b), c)


def _adagrad(p: Any, g: Any, squares: Any, rate: Any, epsilon: Any) -> Any:
    return np.subtract(p, np.divide(np.multiply(g, rate), np.add(np.sqrt(squares), epsilon)))


FMA = Op("fma", ("a", "b", "c"), (), rule.floating, _multiply_add, "a * b + c, rounded once or twice (Owl's FMA).",
         scalar=lambda a, b, c: a.apply("fma", b, c), inplace=(0, 1, 2))
ADAGRAD = Op("adagrad_update", ("p", "g", "squares", "rate", "epsilon"), (), rule.floating, _adagrad,
             "p - g * rate / (sqrt(squares) + epsilon), each step rounded (Owl's Fused_Adagrad).",
             scalar=lambda p, g, squares, rate, epsilon: p - g * rate / (squares.apply("sqrt") + epsilon),
             inplace=(0, 1))
FUSED = {op.name: op for op in (FMA, ADAGRAD)}
LEAVES = (PLACEHOLDER, CONSTANT)

Pattern = Callable[[Node], "tuple[tuple[Node, ...], tuple[Node, ...]] | None"]
"""node -> (inputs of the fused operator, inner nodes that it swallows), or None."""


def _as_fma(node: Node) -> tuple[tuple[Node, ...], tuple[Node, ...]] | None:
    """a * b + c; never under `config.deterministic`, since a device may round once."""
    if node.op.name != "add" or config.deterministic or not is_float(node.dtype):
        return None
    for product, other in (node.inputs, node.inputs[::-1]):
        if product.op.name == "multiply" and product.shape == node.shape:
            return (*product.inputs, other), (product,)
    return None


def _as_adagrad(node: Node) -> tuple[tuple[Node, ...], tuple[Node, ...]] | None:
    """p - g * rate / (sqrt(squares) + epsilon)"""
    if node.op.name != "subtract" or node.inputs[1].op.name != "divide":
        return None
    p, quotient = node.inputs
    product, denominator = quotient.inputs
    if product.op.name != "multiply" or denominator.op.name != "add" or denominator.inputs[0].op.name != "sqrt":
        return None
    root, epsilon = denominator.inputs
    if not all(x.shape == node.shape for x in (p, quotient, product, denominator, root)):
        return None
    inputs = (p, *product.inputs[:1], root.inputs[0], product.inputs[1], epsilon)
    return inputs, (quotient, product, denominator, root)


PATTERNS: tuple[tuple[Op, Pattern], ...] = ((ADAGRAD, _as_adagrad), (FMA, _as_fma))


def fuse(nodes: Sequence[Node], outputs: Iterable[Node], device: Device) -> list[NodeGroup]:
    """A group for each node that computes, in the order given; larger patterns are tried first."""
    compiles = "codegen" in device.spec.features
    patterns = [(op, pattern) for op, pattern in PATTERNS if compiles or device.all_backends(op.name)]
    uses = Counter(x for node in nodes for x in node.inputs)
    uses.update(outputs)
    groups: list[NodeGroup] = []
    swallowed: set[Node] = set()
    for node in reversed(nodes):
        if node.op in LEAVES or is_number(node) or node in swallowed:
            continue
        group = NodeGroup(node.op, node.inputs, node.attributes, node)
        for op, pattern in patterns:
            found = pattern(node)
            if found is not None and all(uses[inner] == 1 and inner not in swallowed for inner in found[1]):
                group = NodeGroup(op, found[0], (), node)
                swallowed.update(found[1])
                break
        groups.append(group)
    groups.reverse()
    return groups


COPY = OPERATORS["copy"]


def with_own_outputs(outputs: dict[str, Node]) -> dict[str, Node]:
    """Outputs that are inputs, constants, numbers or views are copied, so that each output has memory of its own;
    equal outputs stay one node."""
    copies: dict[Node, Node] = {}

    def own(node: Node) -> Node:
        if (node.op not in LEAVES and node.op.view is None and not is_number(node)) or is_tape(node.spec):
            return node
        if node not in copies:
            copies[node] = Node(COPY, (node,), (), node.spec, node.line)
        return copies[node]

    return {name: own(node) for name, node in outputs.items()}


def is_number(node: Node) -> bool:
    """A number is known when the graph is compiled and needs no command."""
    return node.op.name == "filled" and node.shape == ()
