"""Floor 8: from a graph to a program that runs on one device, and operators run one at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from nnc_core.base.cache import LRU
from nnc_core.base.command import Command
from nnc_core.base.config import Settings, config
from nnc_core.base.errors import AttributeValueError, Error, GraphError
from nnc_core.device import Array, Device, Kernel
from nnc_core.engine.build import KernelBuilder, Key, Wanted
from nnc_core.engine.decide import Decider
from nnc_core.engine.emit import Emitter
from nnc_core.engine.execute import Executor
from nnc_core.engine.fuse import NodeGroup, fuse, with_own_outputs
from nnc_core.engine.indexed_scan import IndexedScan
from nnc_core.engine.memory import MemoryPlan
from nnc_core.engine.plan_types import Plan
from nnc_core.engine.planning import best_plan
from nnc_core.engine.profile import Profile
from nnc_core.engine.program import ComputationGraph, TapeArray
from nnc_core.graph import Graph, SymbolicGraph
from nnc_core.operator.control import TRIPS, is_tape
from nnc_core.symbol import Node, bodies_of, postorder, show_line, without_collector
from nnc_core.type import Attributes, Op, TensorSpec, TupleSpec, is_static

__all__ = ["ComputationGraph", "Engine", "Executor", "MemoryPlan", "Profile"]


CONTROLS_KEPT = 256
"""Loops and branches run outside of graphs that are kept compiled."""


class Engine:
    """Layer 8."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.device: Device = graph.optimiser.operator.symbol.shape.type.device
        self.decider = Decider(self.device)
        self.builder = KernelBuilder(self.device, self.decider)
        self.executor = Executor(self.device, self.builder, self._run_control)
        self._controls: LRU[Any, ComputationGraph] = LRU(CONTROLS_KEPT)

    def compile(self, graph: SymbolicGraph, *, optimise: bool = True, memory_steps: int | None = None,
                kind: type[ComputationGraph] = ComputationGraph) -> Any:
        """Expand what the device does not claim, optimise, fuse, schedule, plan, choose code and bind.

        memory_steps: how many steps the memory planners may take; None for what `config.memory_steps` says.
        AttributeValueError for a negative number.
        """
        budget = _checked_steps(config.memory_steps if memory_steps is None else memory_steps)
        with without_collector():
            _check_static(graph)
            self._check_dtypes(graph)
            controlled = any(node.op.bodies for node in graph.nodes)
            if controlled:
                graph = self.graph.inline(graph)
            graph = self.graph.recognise(graph) if optimise else graph
            graph = self.graph.expand(graph, lambda node: not self._claims(node))
            controlled = any(node.op.bodies for node in graph.nodes)  # some composites are loops
            if optimise:
                graph = self.graph.optimise(graph)
                if self.graph.optimiser.operator.replaced:  # rewrites may have made composites that come to their parts
                    graph = self.graph.expand(graph, lambda node: not self._claims(node))
            if controlled:
                rows = partial(IndexedScan, device=self.device.spec)
                graph = self.graph.rebuilt(graph, self.graph.optimiser.operator.open(rows))
            outputs = with_own_outputs(graph.outputs)
            nodes = postorder(outputs.values())
            updates = {outputs[o]: graph.inputs[i] for o, i in graph.iopairs}
            groups = fuse(nodes, outputs.values(), self.device)
            plan, kernels = self._planned_and_built(groups, list(outputs.values()), updates, budget)
            return kind(graph, outputs, plan, Emitter(plan, kernels), self.executor)

    def _planned_and_built(self, groups: Sequence[NodeGroup], outputs: Sequence[Node], updates: Mapping[Node, Node],
                           budget: int) -> tuple[Plan, Mapping[Key, Kernel]]:
        """A plan with the code for it: made again for as long as the device refuses to build what was decided."""
        kernels: dict[Key, Kernel] = {}
        while True:
            plan = best_plan(groups, outputs, updates, self.decider, budget)
            if self.builder.build([Wanted(step.decision, step.group.node.line) for step in plan.steps], kernels):
                return plan, kernels

    def _check_dtypes(self, graph: SymbolicGraph) -> None:
        """Hold a graph, which may have been made on another stack, to the dtypes that this one admits."""
        admit = self.graph.optimiser.operator.symbol.shape.type.admit
        admitted: set[Any] = set()
        pending = [graph.nodes]
        while pending:
            for node in pending.pop():
                pending += [body.nodes for _, body in bodies_of(node)]
                for part in node.spec.parts if isinstance(node.spec, TupleSpec) else (node.spec,):
                    if part.dtype not in admitted:
                        try:
                            admitted.add(admit(part.dtype))
                        except Error as error:
                            error.locate(operator=node.op.name, line=show_line(node.line))
                            raise

    def _run_control(self, op: Op, arrays: Sequence[Array], attributes: Attributes, spec: TupleSpec) -> Any:
        """Loops, branches and calls run as graphs of one node, which are kept."""
        specs = tuple([self._spec_of(a) for a in arrays])
        key = (op, attributes, specs, config.deterministic, self.decider.version)
        compiled = self._controls.find(key, lambda: self._compiled_control(op, attributes, specs))
        found = compiled.run({f"x{i}": a for i, a in enumerate(arrays)})
        return tuple([found[f"y{i}"] for i in range(len(spec.parts))])

    def _compiled_control(self, op: Op, attributes: Attributes, specs: Sequence[TensorSpec]) -> ComputationGraph:
        F = self.graph.optimiser.operator.open()
        inputs = {f"x{i}": F.placeholder(f"x{i}", s) for i, s in enumerate(specs)}
        node = F.apply(op, tuple(inputs.values()), attributes)
        outputs = {f"y{i}": y for i, y in enumerate(F.picks(node))}
        used = set(postorder(outputs.values()))
        graph = SymbolicGraph({k: x for k, x in inputs.items() if x in used}, outputs)
        compiled: ComputationGraph = self.compile(graph)
        return compiled

    def _spec_of(self, array: Array) -> TensorSpec:
        if isinstance(array, TapeArray):
            return TensorSpec((TRIPS, *array.layout.shape), array.layout.dtype)
        layout = self.device.layout_of(array)
        return TensorSpec(layout.shape, layout.dtype)

    def _claims(self, node: Node) -> bool:
        """Tell whether a backend takes this composite as it is."""
        if node.op.decompose is None:
            return True
        inputs = tuple([x.spec.layout() for x in node.inputs])
        parts = node.spec.parts if isinstance(node.spec, TupleSpec) else (node.spec,)
        command = Command(node.op.name, node.attributes, inputs, tuple([part.layout() for part in parts]))
        return self.decider.claims(node.op, command)


def _checked_steps(steps: int) -> int:
    if not isinstance(steps, int) or steps < 0:
        raise AttributeValueError(f"memory_steps is {steps!r}, expected a number of steps that is not negative",
                                  hint=f"the default is {Settings().memory_steps}")
    return steps


def _check_static(graph: SymbolicGraph) -> None:
    for name, node in graph.inputs.items():
        if not is_static(node.shape) and not is_tape(node.spec):
            raise GraphError(f"input {name!r} of {graph.name!r} is {node.spec}, whose dimensions have no numbers",
                             hint="specialise the graph with a size for each name")
