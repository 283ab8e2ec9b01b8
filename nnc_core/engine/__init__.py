"""Floor 8: from a graph to a program that runs on one device, and operators run one at a time."""

from __future__ import annotations

from typing import Any

from nnc_core.base.command import Command
from nnc_core.base.errors import GraphError
from nnc_core.device import Device
from nnc_core.engine.execute import Executor
from nnc_core.engine.fuse import fuse, with_own_outputs
from nnc_core.engine.lower import Lowering
from nnc_core.engine.memory import MemoryPlan
from nnc_core.engine.plan import make_plan
from nnc_core.engine.profile import Profile
from nnc_core.engine.program import ComputationGraph, LostStateError
from nnc_core.engine.schedule import schedule
from nnc_core.graph import Graph, SymbolicGraph
from nnc_core.symbol import Node, postorder, without_collector
from nnc_core.type import is_static

__all__ = ["ComputationGraph", "Engine", "Executor", "LostStateError", "MemoryPlan", "Profile"]


class Engine:
    """Layer 8."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.device: Device = graph.optimiser.operator.symbol.shape.type.device
        self.lowering = Lowering(self.device)
        self.executor = Executor(self.device, self.lowering)

    def compile(self, graph: SymbolicGraph, *, optimise: bool = True,
                kind: type[ComputationGraph] = ComputationGraph) -> Any:
        """Expand what the device does not claim, optimise, fuse, schedule, plan, choose code and bind."""
        with without_collector():
            _check_static(graph)
            graph = self.graph.expand(graph, lambda node: not self._claims(node))
            if optimise:
                graph = self.graph.optimise(graph)
            outputs = with_own_outputs(graph.outputs)
            nodes = postorder(outputs.values())
            updates = {outputs[o]: graph.inputs[i] for o, i in graph.iopairs}
            groups = schedule(fuse(nodes, outputs.values(), self.device), list(outputs.values()), updates)
            plan = make_plan(groups, list(outputs.values()), updates, self.lowering)
            return kind(graph, outputs, plan, self.executor)

    def _claims(self, node: Node) -> bool:
        """Whether a backend takes this composite as it is."""
        inputs = tuple([x.spec.layout() for x in node.inputs])
        command = Command(node.op.name, node.attributes, inputs, (node.spec.layout(),))
        return self.lowering.claims(node.op, command)


def _check_static(graph: SymbolicGraph) -> None:
    for name, node in graph.inputs.items():
        if not is_static(node.shape):
            raise GraphError(f"input {name!r} of {graph.name!r} is {node.spec}, whose dimensions have no numbers",
                             hint="specialise the graph with a size for each name")
