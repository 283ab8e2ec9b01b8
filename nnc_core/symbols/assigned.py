"""Graphs between assigned symbols: named ends, values carried from one evaluation to the next, what a graph takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import NamedTuple

from nnc_core.base.errors import GraphError, UnassignedError, VariableRebindError
from nnc_core.graph import SymbolicGraph
from nnc_core.recording.export import export
from nnc_core.recording.symbols import SYMBOLS
from nnc_core.recording.unshaped_graph import UnshapedGraph
from nnc_core.symbol import Node, postorder
from nnc_core.symbols.symbolic import is_assigned, is_valid, placeholder_of, standing
from nnc_core.type import TupleSpec, is_static
from nnc_core.values.arguments import located
from nnc_core.values.tensor import Tensor
from nnc_core.values.unshaped import Unshaped, text_of
from nnc_core.values.value import Value

Ends = Tensor | Sequence[Tensor] | Mapping[str, Tensor]


class Statistics(NamedTuple):
    """Figures about a graph and what was done with it."""

    nodes: int
    edges: int
    elements: int
    """Of all values with known shapes together: what it would take without sharing memory."""
    assigned: int
    """Inputs that have a value."""
    valid: int
    """Symbols whose values need no evaluation."""
    evaluations: int
    """Operators that `eval_graph` has run."""


class AssignedGraph:
    """A graph between symbols with Owl's calls: `eval_graph` evaluates its outputs from what was assigned.

    `symbolic` is the same graph for compiling and files; the keys of random symbols are further inputs there, whose
    names `random` lists.
    """

    def __init__(self, inputs: Mapping[str, Tensor], outputs: Mapping[str, Tensor], name: str,
                 on_unused: str = "error") -> None:
        self.inputs, self.outputs = dict(inputs), dict(outputs)
        self.random = {f"random{i}": Tensor(v) for i, v in enumerate(self._keys())}
        self.symbolic: SymbolicGraph = export({**self.inputs, **self.random}, outputs, capture="constant",
                                              on_unused=on_unused, name=name)
        self.evaluations = 0

    def _keys(self) -> list[Value]:
        given = {id(t._value) for t in self.inputs.values()}
        order = postorder([t._value for t in self.outputs.values()], given)
        return [v for v in order if v in SYMBOLS.generators and id(v) not in given]

    @property
    def specialised(self) -> SymbolicGraph:
        """The graph for the shapes that are assigned; `symbolic` itself where all shapes are known."""
        graph = self.symbolic
        return graph.specialise() if isinstance(graph, UnshapedGraph) else graph

    @property
    def iopairs(self) -> tuple[tuple[str, str], ...]:
        """(output, input)"""
        return self.symbolic.iopairs

    def statistics(self) -> Statistics:
        """Counts: see `Statistics`."""
        outputs = [v for t in self.outputs.values() if (v := standing(t)) is not None]
        if len(outputs) < len(self.outputs):
            return Statistics(*self.symbolic.complexity, 0, sum(map(is_assigned, self.inputs.values())), 0,
                              self.evaluations)
        symbols = SYMBOLS.ancestors(outputs)
        graph = self.specialised
        specs = [n.spec for n in graph.nodes]
        parts = [p for s in specs for p in (s.parts if isinstance(s, TupleSpec) else (s,))]
        elements = sum(prod(p.static_shape) for p in parts if is_static(p.shape))
        return Statistics(*graph.complexity, elements, sum(map(is_assigned, self.inputs.values())),
                          sum(map(SYMBOLS.is_valid, symbols)), self.evaluations)

    def __str__(self) -> str:
        return str(self.symbolic)


@located
def make_graph(inputs: Ends, outputs: Ends, name: str = "graph", *, on_unused: str = "error") -> AssignedGraph:
    """The graph from placeholders to outputs.  Inputs keep their names and outputs are called out0, out1, ..., unless
    a mapping names them otherwise.  Inputs that reach no output: see `export`."""
    given, wanted = ([ends] if isinstance(ends, Tensor) else ends for ends in (inputs, outputs))
    named = dict(wanted) if isinstance(wanted, Mapping) else {f"out{i}": t for i, t in enumerate(wanted)}
    return AssignedGraph(_named(given, name), named, name, on_unused)


def _named(inputs: Sequence[Tensor] | Mapping[str, Tensor], graph: str) -> dict[str, Tensor]:
    pairs = (list(inputs.items()) if isinstance(inputs, Mapping)
             else [(SYMBOLS.names[placeholder_of(t)], t) for t in inputs])
    named: dict[str, Tensor] = {}
    for name, t in pairs:
        placeholder_of(t)
        if named.setdefault(name, t)._value is not t._value:
            raise VariableRebindError(f"two inputs of {graph!r} are called {name!r}; they need different names",
                                      hint="make_graph({\"one\": x, \"other\": y}, ...) names them")
    if len(named) < len(pairs):
        raise VariableRebindError(f"an input of {graph!r} is given twice: {', '.join(k for k, _ in pairs)}")
    return named


@located
def eval_graph(graph: AssignedGraph) -> None:
    """Evaluate all outputs of a graph, as far as they are not valid already; what is random is drawn anew."""
    graph.evaluations += SYMBOLS.evaluate([SYMBOLS.standing_for(t._value) for t in graph.outputs.values()])


# ---- values carried on
@located
def make_iopair(graph: AssignedGraph, input: str, output: str) -> None:
    """Carry an output on as the next value of an input; their specs must agree.

    `update_iopair` does so between evaluations; where the graph is compiled the output takes the input's memory.
    """
    g = graph.symbolic
    pairs = (*g.iopairs, (output, input))
    graph.symbolic = (g.paired(pairs) if isinstance(g, UnshapedGraph)
                      else SymbolicGraph(g.inputs, g.outputs, pairs, g.name))


@located
def is_iopair_safe(graph: AssignedGraph, input: str, output: str) -> bool:
    """True if the output may overwrite the input's memory: it is no view of it, and nothing that needs the output reads
    the input.

    An unsafe pair is right too; compiled code then copies.
    """
    g = graph.specialised
    if input not in g.inputs or output not in g.outputs:
        raise GraphError(f"{g.name!r} has no input {input!r} or no output {output!r}",
                         hint=f"inputs: {', '.join(g.inputs)}; outputs: {', '.join(g.outputs)}")
    source, target = g.inputs[input], g.outputs[output]
    aliases: set[Node] = {source}
    after: set[Node] = set()
    for node in g.nodes:
        if any(x is target or x in after for x in node.inputs):
            after.add(node)
        if node.op.view is not None and node.inputs[0] in aliases:
            aliases.add(node)
    return target not in aliases - {source} and not any(x in aliases for node in after for x in node.inputs)


@located
def update_iopair(graph: AssignedGraph) -> None:
    """Assign to every paired input the value of its output, all at once and without copying."""
    moved = [(graph.inputs[i]._value, graph.outputs[o]._value) for o, i in graph.iopairs]
    with SYMBOLS.lock:
        for output, _ in graph.iopairs:
            if not is_valid(graph.outputs[output]):
                raise UnassignedError(f"output {output!r} {text_of(graph.outputs[output]._value)} has no valid value "
                                      "to carry on", hint="nnc.eval_graph(graph) first")
        arrays = [SYMBOLS.known[SYMBOLS.standing_for(v)].array for _, v in moved]
        for (symbol, _), array in zip(moved, arrays, strict=True):
            if isinstance(symbol, Unshaped):
                SYMBOLS.assign_shape(symbol, array)
            else:
                SYMBOLS.assign(symbol, array)
