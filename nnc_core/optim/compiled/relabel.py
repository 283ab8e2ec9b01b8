"""Graphs under other names."""

from __future__ import annotations

from collections.abc import Mapping

from nnc_core.graph import SymbolicGraph
from nnc_core.optimiser import rebuild
from nnc_core.recording.export import constant
from nnc_core.stacks import Stack
from nnc_core.symbol import Node, without_collector
from nnc_core.values.value import Value


@without_collector()
def relabelled(graph: SymbolicGraph, stack: Stack, inputs: Mapping[str, str], outputs: Mapping[str, str],
               constants: Mapping[str, Value]) -> SymbolicGraph:
    """The graph with other names for its inputs and outputs; some inputs become constants."""
    F = stack.operator.open()
    places: dict[str, Node] = {}
    replaced: dict[Node, Node] = {}
    for name, node in graph.inputs.items():
        if name in constants:
            replaced[node] = constant(F, constants[name])
        else:
            label = inputs.get(name, name)
            places[label] = replaced[node] = F.placeholder(label, node.spec)
    nodes = rebuild(list(graph.outputs.values()), F, replaced=replaced)
    made = {outputs.get(name, name): node for name, node in zip(graph.outputs, nodes, strict=True)}
    pairs = tuple((outputs.get(o, o), inputs.get(i, i)) for o, i in graph.iopairs)
    return SymbolicGraph(places, made, pairs, graph.name)
