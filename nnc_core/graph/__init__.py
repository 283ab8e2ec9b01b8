"""Floor 7: symbolic graphs and what is done with whole graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nnc_core.base.dtype import is_float, is_inexact
from nnc_core.base.errors import Error, GradientError, GraphError
from nnc_core.graph.autodiff import BODY_RULES, forward, reverse
from nnc_core.graph.batching import batch
from nnc_core.graph.bodies import needs_its_body
from nnc_core.graph.branches import BRANCH_RULES, CALL_RULES, with_residuals
from nnc_core.graph.loops import LOOP_RULES
from nnc_core.graph.symbolic import SymbolicGraph
from nnc_core.operator import Nodes
from nnc_core.operator.control import CALL, CASE_OF, LOOP, TRIPS
from nnc_core.optimiser import Optimiser, rebuild
from nnc_core.symbol import Body, Node, show_line, without_collector
from nnc_core.type import Attributes, Dim, DimLike, Op, map_dims, specialised

__all__ = ["Graph", "SymbolicGraph", "batch", "forward", "reverse", "with_residuals"]

BODY_RULES.update({LOOP: LOOP_RULES, CASE_OF: BRANCH_RULES, CALL: CALL_RULES})


class Graph:
    """Layer 7: transforms of graphs; each gives a new graph."""

    def __init__(self, optimiser: Optimiser) -> None:
        self.optimiser = optimiser

    @without_collector()
    def optimise(self, graph: SymbolicGraph) -> SymbolicGraph:
        """The same values by fewer nodes."""
        return self._with(graph, self.optimiser.run(_roots(graph)))

    @without_collector()
    def recognise(self, graph: SymbolicGraph) -> SymbolicGraph:
        """Composites written by hand, and unstable formulas, made composites."""
        return self._with(graph, self.optimiser.recognise(_roots(graph), _order(graph)))

    @without_collector()
    def expand(self, graph: SymbolicGraph, wanted: Any = None) -> SymbolicGraph:
        """Composites (those that are `wanted`, or all) replaced by their bodies."""
        return self._with(graph, self.optimiser.expand(_roots(graph), wanted or (lambda node: True), _order(graph)))

    @without_collector()
    def inline(self, graph: SymbolicGraph) -> SymbolicGraph:
        """Calls replaced by the bodies that they call."""
        return self._with(graph, self.optimiser.inline(_roots(graph)))

    @without_collector()
    def rebuilt(self, graph: SymbolicGraph, namespace: Nodes) -> SymbolicGraph:
        """The graph as that namespace makes it."""
        return self._with(graph, rebuild(_roots(graph), namespace))

    @without_collector()
    def hoist(self, graph: SymbolicGraph) -> SymbolicGraph:
        """The graph with what each round of a loop would compute anew computed before it."""
        return self._with(graph, self.optimiser.hoist(_roots(graph)))

    @without_collector()
    def grad(self, graph: SymbolicGraph, output: str, wrt: Sequence[str]) -> SymbolicGraph:
        """The graph with an output "d<name>" for each input in `wrt`: the gradient of a scalar output by it.

        GradientError if the output is no float scalar, an input is no float array, or one of the names is not
        there; GraphError if an output "d<name>" is there already.
        """
        _check_gradient(graph, output, wrt)
        graph = self.expand(graph, needs_its_body)
        y, F = graph.outputs[output], self._continue(graph)
        leaves = [graph.inputs[name] for name in wrt]
        found = self.reverse(F, graph.nodes, {id(y): F.full(shape=(), value=1, dtype=y.dtype)}, leaves)
        made = {f"d{name}": F.zeros_like(x) if g is None else g
                for name, x, g in zip(wrt, leaves, found, strict=True)}
        return SymbolicGraph(graph.inputs, graph.outputs | made, graph.iopairs, graph.name)

    def reverse(self, F: Any, order: Sequence[Any], seeds: Mapping[int, Any], wrt: Sequence[Any],
                hooks: Mapping[int, Callable[[Any], Any]] | None = None) -> list[Any]:
        """The cotangents of `wrt` by one reverse sweep over nodes, or over values of the tape: every gradient comes
        from here.  The arguments are those of `autodiff.reverse`."""
        return reverse(F, order, seeds, wrt, hooks)

    def forward(self, F: Any, order: Sequence[Any], seeds: Mapping[int, Any], outputs: Sequence[Any]) -> list[Any]:
        """The tangents of `outputs` by one forward sweep; the arguments are those of `autodiff.forward`."""
        return forward(F, order, seeds, outputs)

    def batch(self, F: Any, body: Body, values: Sequence[Any], batched: Sequence[bool], size: DimLike) -> list[Any]:
        """The results of a body on many examples; the arguments are those of `batching.batch`."""
        return batch(F, body, values, batched, size)

    @without_collector()
    def specialise(self, graph: SymbolicGraph, sizes: Mapping[str, int]) -> SymbolicGraph:
        """Numbers for named dimensions, in inputs and in every attribute that holds one.

        Specs are inferred again.  Sizes that depend on data may stay names.
        """

        def number(d: Dim) -> Any:
            return d if d == TRIPS else specialised(d, sizes)

        def make(F: Nodes, op: Op, inputs: tuple[Node, ...], attributes: Attributes) -> Node:
            try:
                return F.apply(op, inputs, map_dims(attributes, number))
            except Error as error:
                error.locate(operator=op.name, line=show_line(F.table.line))
                raise

        return self._with(graph, rebuild(_roots(graph), self.optimiser.operator.open(), make))

    def _continue(self, graph: SymbolicGraph) -> Nodes:
        """A namespace that knows the graph's nodes already."""
        F = self.optimiser.operator.open()
        for node in graph.nodes:
            F.table.adopt(node)
        return F

    def _with(self, graph: SymbolicGraph, nodes: Sequence[Node]) -> SymbolicGraph:
        if [*nodes] == _roots(graph):  # nodes are compared by identity
            return graph
        outputs = dict(zip(graph.outputs, nodes, strict=False))
        inputs = dict(zip(graph.inputs, nodes[len(outputs) :], strict=True))
        if len(set(inputs.values())) < len(inputs):
            raise GraphError(f"two inputs of {graph.name!r} became one")
        return SymbolicGraph(inputs, outputs, graph.iopairs, graph.name)


def _check_gradient(graph: SymbolicGraph, output: str, wrt: Sequence[str]) -> None:
    if output not in graph.outputs:
        raise GradientError(f"{output!r} is no output of {graph.name!r}",
                            hint=f"outputs: {', '.join(graph.outputs)}")
    y = graph.outputs[output].spec
    if y.shape != () or not is_float(y.dtype):
        raise GradientError(f"output {output!r} is {y}; only a float scalar has a gradient",
                            hint="cast it with astype, or sum it, first")
    for name in wrt:
        if name not in graph.inputs:
            raise GradientError(f"{name!r} is no input of {graph.name!r}",
                                hint=f"inputs: {', '.join(graph.inputs)}")
        if not is_inexact(graph.inputs[name].dtype):
            raise GradientError(f"input {name!r} is {graph.inputs[name].spec}; only floats have a gradient",
                                hint="leave it out of `wrt`")
        if f"d{name}" in graph.outputs:
            raise GraphError(f"{graph.name!r} has an output 'd{name}' already", hint="name that output otherwise")


def _roots(graph: SymbolicGraph) -> list[Node]:
    return [*graph.outputs.values(), *graph.inputs.values()]


def _order(graph: SymbolicGraph) -> list[Node]:
    """All that the roots depend on, inputs first."""
    read = set(graph.nodes)
    return [*graph.nodes, *[x for x in graph.inputs.values() if x not in read]]
