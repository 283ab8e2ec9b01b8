"""A whole graph as an ONNX model."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from nnc_core.base.dtype import bfloat16
from nnc_core.base.errors import OperandError
from nnc_core.graph import SymbolicGraph
from nnc_core.io.onnx.names import BUFFERS, PARAMETERS, STATE, TRANSPOSED
from nnc_core.io.onnx.writing import operators
from nnc_core.io.onnx.writing.emitter import NodeEmitter, Store
from nnc_core.io.onnx.writing.held import Held
from nnc_core.io.onnx.writing.own import functions_of
from nnc_core.io.onnx.writing.parameters import ParameterArrays
from nnc_core.io.onnx.writing.preparing import prepared
from nnc_core.io.onnx.writing.records import Array, WrittenGraph, WrittenModel, WrittenNode, all_nodes_in
from nnc_core.io.onnx.writing.sizes import NamedSizes
from nnc_core.io.onnx.writing.tidying import drop_unread, numbered, rename
from nnc_core.io.onnx.writing.writer import NodeWriter, uses_of
from nnc_core.operator import Operator
from nnc_core.symbol import Node, postorder

__all__ = ["model_of", "operators"]

OPSET, LATER_OPSET = 21, 23
"""The version of ONNX' operators that is written, and that of models with something that came later."""
CAME_LATER = frozenset(("Attention", "RMSNormalization"))


def model_of(graph: SymbolicGraph, values: Mapping[str, Array], operator: Operator,
             buffers: Collection[str] = ()) -> WrittenModel:
    """The model whose initializers are the inputs that have values; the other inputs are its own.  `buffers` are those
    of the values that are not trained."""
    if unknown := values.keys() - graph.inputs.keys():
        raise OperandError(f"{graph.name!r} has no input {sorted(unknown)[0]!r}",
                           hint=f"its inputs are {', '.join(graph.inputs) or 'none'}")
    outputs = prepared(graph, operator)
    store = Store((*graph.inputs, *graph.outputs))
    parameters, sizes = ParameterArrays(store, values), NamedSizes()
    nodes = postorder(outputs.values())
    w = NodeWriter(NodeEmitter(store), sizes, parameters, uses_of(nodes) + Counter(outputs.values()))
    for name, node in graph.inputs.items():
        w.held[node] = Held(name)
        if name not in values:
            sizes.learn(name, node.shape)
    w.write(nodes)
    named = {name: w.read(node) for name, node in outputs.items()}
    transposed, renamed, back = parameters.finish()
    fixed = {*graph.inputs, *store.arrays}
    body = [*transposed, *w.b.nodes, *_name_outputs(named, renamed, fixed)]
    made = WrittenGraph(graph.name, [(name, node.spec) for name, node in graph.inputs.items() if name not in values],
                        [(name, node.spec) for name, node in graph.outputs.items()], body)
    rename(made, renamed)
    arrays = _tidied(made, store.arrays, (*graph.inputs, *graph.outputs))
    state = [name for name in graph.inputs if name in values]
    found = {PARAMETERS: state, BUFFERS: [name for name in state if name in buffers], TRANSPOSED: back,
             STATE: [list(pair) for pair in graph.iopairs]}
    metadata = {key: json.dumps(value) for key, value in found.items() if value or key == PARAMETERS}
    return WrittenModel(made, arrays, _opset(made, outputs.values()), metadata, sizes.text,
                        functions_of(all_nodes_in(made)))


def _tidied(graph: WrittenGraph, arrays: dict[str, Array], fixed: Collection[str]) -> dict[str, Array]:
    """Take out what nobody reads, and number what is left; gives the arrays by their names, parameters first."""
    drop_unread(graph, arrays, fixed)
    names = numbered(graph, fixed)
    rename(graph, names)
    places = {name: place for place, name in enumerate(names)}
    return {names[name]: arrays[name] for name in sorted(arrays, key=places.__getitem__)}


def _opset(graph: WrittenGraph, outputs: Iterable[Node]) -> int:
    """Operators know bfloat16 for as long as attention is among them."""
    is_late = any(node.operator in CAME_LATER for node in all_nodes_in(graph)) or any(
        node.spec.dtype == bfloat16 for node in postorder(outputs))
    return LATER_OPSET if is_late else OPSET


def _name_outputs(named: Mapping[str, str], renamed: dict[str, str], fixed: set[str]) -> list[WrittenNode]:
    """Give values the names of the outputs that they are; those that have a name already are copied."""
    copies: list[WrittenNode] = []
    for output, name in named.items():
        if renamed.get(name, name) in fixed or name in renamed:
            copies.append(WrittenNode("Identity", [name], [output], {}))
        else:
            renamed[name] = output
    return copies
