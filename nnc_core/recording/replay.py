"""Graphs run step by step over values: how a compiled graph becomes part of the dynamic graph, or of a trace."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from nnc_core.graph import SymbolicGraph
from nnc_core.operator import CONSTANT, OPERATORS
from nnc_core.operator.control import PICK, TOGETHER
from nnc_core.stacks import Stack
from nnc_core.symbol import Literal, Node
from nnc_core.type import Attributes, Op, renamed
from nnc_core.values.data_dependent import mapped, names_in, size_attribute, size_for
from nnc_core.values.dispatch import F
from nnc_core.values.modes import gradients, lazy, use_device
from nnc_core.values.value import Value

_TRANSFER = OPERATORS["transfer"]


def must_be_recorded(given: Sequence[Value]) -> bool:
    """True if a gradient may be asked through these values, or a graph is being made of them."""
    if any(v.trace is not None or (v.tracked and gradients.get()) for v in given):
        return True
    return bool(lazy.get()) and any(v.array is None for v in given)


def replay(graph: SymbolicGraph, given: Mapping[str, Value], stack: Stack,
           place_of: Callable[[str], str] | None = None) -> dict[str, Value]:
    """The outputs of a graph for these inputs, each node dispatched in the current mode, so that it is recorded.

    `place_of` gives the device of a place that a copy goes to; without it everything stays on the stack's device.
    """
    made: dict[int, Value] = {id(graph.inputs[name]): v for name, v in given.items()}
    sizes: dict[str, str | int] = {}
    with use_device(stack):
        for node in graph.nodes:
            if id(node) in made:
                continue
            if node.op is CONSTANT:
                made[id(node)] = _constant(node.attributes[0], stack)
                continue
            inputs = tuple([made[id(x)] for x in node.inputs])
            if node.op.data_dependent:
                made[id(node)] = _counted(node, inputs[0], sizes)
            elif node.op is _TRANSFER:
                made[id(node)] = _moved(node, inputs[0], place_of)
            else:
                attributes = _in_this_call(node.attributes, sizes, stack) if sizes else node.attributes
                made[id(node)] = _applied(node.op, inputs, attributes)
    return {name: made[id(node)] for name, node in graph.outputs.items()}


def _applied(op: Op, inputs: tuple[Value, ...], attributes: Attributes) -> Value:
    """Values that are several arrays go the ways of their own: no kernel takes them."""
    if op is PICK:
        return F.pick(inputs[0], index=attributes[0])
    return F.together(*inputs) if op is TOGETHER else F.apply(op, inputs, attributes)


def _counted(node: Node, x: Value, sizes: dict[str, str | int]) -> Value:
    """A size that depends on data has a name of its own, or a number, in each call."""
    mine = size_attribute(node.op, node.attributes)
    attributes = tuple([size_for(x, node.op) if a is mine else a for a in node.attributes])
    value = F.apply(node.op, (x,), attributes)
    count = value.shape[0]
    for name in names_in(mine):
        sizes[name] = count if isinstance(count, int) else next(iter(count.names))
    return value


def _in_this_call(attributes: Attributes, sizes: Mapping[str, str | int], stack: Stack) -> Attributes:
    changed: Attributes = mapped(attributes, lambda d: renamed(d, lambda name: sizes.get(name, name)), stack)
    return changed


def _moved(node: Node, x: Value, place_of: Callable[[str], str] | None) -> Value:
    if place_of is None:
        return F.identity(x)
    source, target = map(place_of, node.attributes)
    return F.identity(x) if source == target else F.transfer(x, source=source, target=target)


def _constant(literal: Literal, stack: Stack) -> Value:
    array = literal.array
    return Value(array if literal.device == stack.device.spec.id else stack.engine.executor.upload(array), stack)
