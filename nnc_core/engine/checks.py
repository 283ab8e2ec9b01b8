"""Checks of what is to be compiled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from nnc_core.base.config import Settings
from nnc_core.base.errors import AttributeValueError, Error, GraphError
from nnc_core.graph import SymbolicGraph
from nnc_core.operator.control import is_tape
from nnc_core.symbol import Node, bodies_of, show_line
from nnc_core.type import TensorSpec, TupleSpec, Type, is_static


def check_steps(steps: int) -> int:
    """A number of steps for the memory planners; AttributeValueError for anything else."""
    if not isinstance(steps, int) or steps < 0:
        raise AttributeValueError(f"memory_steps is {steps!r}, expected a number of steps that is not negative",
                                  hint=f"the default is {Settings().memory_steps}")
    return steps


def check_graph(graph: SymbolicGraph, type_: Type) -> None:
    """Hold a graph, which may have been made on another stack, to sizes that are known and dtypes that are admitted."""
    for name, node in graph.inputs.items():
        if not is_static(node.shape) and not is_tape(node.spec):
            raise GraphError(f"input {name!r} of {graph.name!r} is {node.spec}, whose dimensions have no numbers",
                             hint="specialise the graph with a size for each name")
    admitted: set[Any] = set()
    for node, spec in _specs(graph.nodes):
        if spec.dtype not in admitted:
            try:
                admitted.add(type_.admit(spec.dtype))
            except Error as error:
                error.locate(operator=node.op.name, line=show_line(node.line))
                raise


def _specs(nodes: Sequence[Node]) -> Iterator[tuple[Node, TensorSpec]]:
    """Nodes, those of their bodies too, each with its spec, or with those of the parts of a tuple."""
    pending = [nodes]
    while pending:
        for node in pending.pop():
            pending += [body.nodes for _, body in bodies_of(node)]
            for spec in node.spec.parts if isinstance(node.spec, TupleSpec) else (node.spec,):
                yield node, spec
