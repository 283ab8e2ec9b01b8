"""From a graph to a program that runs on one device.  Read this first: `Phases.compile` names the phases in order,
each of which is a file or a folder that can be read alone."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from time import perf_counter
from typing import NamedTuple

from nnc_core.base.command import Command
from nnc_core.base.config import config
from nnc_core.device import Kernel
from nnc_core.engine.autotune import Autotuner
from nnc_core.engine.build import KernelBuilder, Key, Wanted
from nnc_core.engine.checks import check_graph
from nnc_core.engine.emit import Emitter
from nnc_core.engine.execute import Executor
from nnc_core.engine.fusion import fuse
from nnc_core.engine.groups import COPY, with_own_outputs
from nnc_core.engine.indexed_scan import IndexedScan
from nnc_core.engine.layout import lay_out
from nnc_core.engine.plan_types import Plan
from nnc_core.engine.planning import Grouped, best_plan
from nnc_core.engine.program import ComputationGraph
from nnc_core.graph import Graph, SymbolicGraph
from nnc_core.symbol import Node, without_collector
from nnc_core.type import TupleSpec


class Built(NamedTuple):
    """A graph whose code is there."""

    graph: SymbolicGraph
    """As it is run: laid out."""
    outputs: Mapping[str, Node]
    plan: Plan
    kernels: Mapping[Key, Kernel]


class Phases:
    """The phases of compiling, for one device."""

    def __init__(self, graph: Graph, builder: KernelBuilder, executor: Executor) -> None:
        self.graph, self.operator = graph, graph.optimiser.operator
        self.builder, self.decider, self.device = builder, builder.decider, builder.device
        self.executor, self.autotuner = executor, Autotuner(builder.decider)

    def compile(self, graph: SymbolicGraph, *, optimise: bool, budget: int) -> ComputationGraph:
        """Phase by phase; `budget` is how many steps the memory planners may take."""
        with without_collector():
            check_graph(graph, self.operator.symbol.shape.type)
            built = self.plan_and_build(self.rewrite(graph, optimise=optimise), budget)
            emitter = Emitter(built.plan, built.kernels, self.device)
            return ComputationGraph(built.graph, built.outputs, built.plan, emitter, self.executor)

    # ---- the graph rewritten
    def rewrite(self, graph: SymbolicGraph, *, optimise: bool) -> SymbolicGraph:
        """Step by step, to what commands are made of."""
        graph = self.inline(graph)
        graph = self.graph.recognise(graph) if optimise else graph
        graph = self.expand(graph)
        graph = self.optimise(graph) if optimise else graph
        return self.index_rows(graph)

    def inline(self, graph: SymbolicGraph) -> SymbolicGraph:
        """Calls of bodies are written out."""
        return self.graph.inline(graph) if has_bodies(graph) else graph

    def expand(self, graph: SymbolicGraph) -> SymbolicGraph:
        """Composites that no library code of the device takes whole are taken apart."""
        return self.graph.expand(graph, lambda node: not self.claims(node))

    def optimise(self, graph: SymbolicGraph) -> SymbolicGraph:
        """Rewrite; where operators are replaced, rules may have made composites, which come to their parts."""
        graph = self.graph.optimise(graph)
        return self.expand(graph) if self.operator.replaced else graph

    def index_rows(self, graph: SymbolicGraph) -> SymbolicGraph:
        """Loops go over rows by an index where no windows can be opened on them."""
        if not has_bodies(graph):
            return graph
        return self.graph.rebuilt(graph, self.operator.open(partial(IndexedScan, device=self.device.spec)))

    def claims(self, node: Node) -> bool:
        """Tell whether library code of the device takes this node as it is."""
        if node.op.decompose is None:
            return True
        inputs = tuple([x.spec.layout() for x in node.inputs])
        parts = node.spec.parts if isinstance(node.spec, TupleSpec) else (node.spec,)
        command = Command(node.op.name, node.attributes, inputs, tuple([part.layout() for part in parts]))
        return self.decider.claims(node.op, command)

    # ---- commands
    def lay_out(self, graph: SymbolicGraph) -> SymbolicGraph:
        """Inputs are packed for library code that wants them in another order of elements."""
        return lay_out(graph, self.graph, self.decider, self.executor)

    def fuse(self, graph: SymbolicGraph) -> Grouped:
        """Group nodes into commands; outputs get memory of their own."""
        named = with_own_outputs(graph.outputs)
        copies = dict.fromkeys([y for y in named.values() if y.op is COPY and y not in graph.outputs.values()])
        updates = {named[y]: graph.inputs[x] for y, x in graph.iopairs}
        return Grouped(fuse([*graph.nodes, *copies], named.values(), self.decider), named, updates)

    def plan(self, graph: SymbolicGraph, budget: int) -> tuple[SymbolicGraph, Grouped, Plan]:
        """The graph laid out, its commands, and when and where they run; nothing is built."""
        laid = self.lay_out(graph)
        grouped = self.fuse(laid)
        return laid, grouped, best_plan(grouped, self.decider, budget)

    def plan_and_build(self, graph: SymbolicGraph, budget: int) -> Built:
        """Lay out, fuse, order, decide and plan, and build what was decided: again for as long as the device refuses
        some of it, or as commands were measured.

        Fused commands that it refuses are taken apart, by halves; what it refuses alone goes to the host.  What library
        code refuses to read packed is read as it is.
        """
        kernels: dict[Key, Kernel] = {}
        until = perf_counter() + config.autotune
        while True:
            laid, grouped, plan = self.plan(graph, budget)
            if self.autotuner.measure([step.decision for step in plan.steps], until):
                continue
            wanted = [Wanted(step.decision, step.group.line) for step in plan.steps]
            if self.decider.keeps_together([want.decision for want in wanted]) and self.builder.build(wanted, kernels):
                return Built(laid, grouped.named, plan, kernels)


def has_bodies(graph: SymbolicGraph) -> bool:
    return any(node.op.bodies for node in graph.nodes)
