"""Layer 8 of the stack."""

from __future__ import annotations

from nnc_core.base.config import config
from nnc_core.device import Device
from nnc_core.engine.build import KernelBuilder
from nnc_core.engine.checks import check_steps
from nnc_core.engine.control_flow import ControlFlow
from nnc_core.engine.decide import Decider
from nnc_core.engine.execute import Executor
from nnc_core.engine.pipeline import Phases
from nnc_core.engine.program import ComputationGraph
from nnc_core.graph import Graph, SymbolicGraph


class Engine:
    """Runs operators and compiles graphs on one device."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.device: Device = graph.optimiser.operator.symbol.shape.type.device
        self.decider = Decider(self.device)
        self.builder = KernelBuilder(self.device, self.decider)
        self.control = ControlFlow(graph.optimiser.operator, self.decider, lambda made: self.compile(made))
        self.executor = Executor(self.device, self.builder, self.control.run)

    def compile(self, graph: SymbolicGraph, *, optimise: bool = True,
                memory_steps: int | None = None) -> ComputationGraph:
        """The graph as a program: see `pipeline`.

        memory_steps: how many steps the memory planners may take; None for what `config.memory_steps` says.
        AttributeValueError for a negative number.
        """
        budget = check_steps(config.memory_steps if memory_steps is None else memory_steps)
        return self.phases.compile(graph, optimise=optimise, budget=budget)

    @property
    def phases(self) -> Phases:
        """The phases of compiling, with what this engine runs operators by."""
        return Phases(self.graph, self.builder, self.executor)
