"""Loops, branches and calls that run outside of graphs: as graphs of one node, which are kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from nnc_core.base.cache import LRU
from nnc_core.base.config import config
from nnc_core.device import Array
from nnc_core.engine.decide import Decider
from nnc_core.engine.program import ComputationGraph, TapeArray
from nnc_core.graph import SymbolicGraph
from nnc_core.operator import Operator
from nnc_core.operator.control import TRIPS
from nnc_core.symbol import postorder
from nnc_core.type import Attributes, Op, TensorSpec, TupleSpec

KEPT = 256
"""Loops and branches that are kept compiled."""


class ControlFlow:
    """Runs them on one device."""

    def __init__(self, operator: Operator, decider: Decider,
                 compile: Callable[[SymbolicGraph], ComputationGraph]) -> None:
        self.operator, self.decider, self.compile = operator, decider, compile
        self._compiled: LRU[Any, ComputationGraph] = LRU(KEPT)

    def run(self, op: Op, arrays: Sequence[Array], attributes: Attributes, spec: TupleSpec) -> tuple[Array, ...]:
        specs = tuple([self._spec_of(a) for a in arrays])
        key = (op, attributes, specs, config.deterministic, config.fusion, self.decider.version)
        compiled = self._compiled.find(key, lambda: self.compile(self._graph_of(op, attributes, specs)))
        found = compiled.run({f"x{i}": a for i, a in enumerate(arrays)})
        return tuple([found[f"y{i}"] for i in range(len(spec.parts))])

    def _graph_of(self, op: Op, attributes: Attributes, specs: Sequence[TensorSpec]) -> SymbolicGraph:
        F = self.operator.open()
        inputs = {f"x{i}": F.placeholder(f"x{i}", s) for i, s in enumerate(specs)}
        node = F.apply(op, tuple(inputs.values()), attributes)
        outputs = {f"y{i}": y for i, y in enumerate(F.picks(node))}
        used = set(postorder(outputs.values()))
        return SymbolicGraph({k: x for k, x in inputs.items() if x in used}, outputs)

    def _spec_of(self, array: Array) -> TensorSpec:
        if isinstance(array, TapeArray):
            return TensorSpec((TRIPS, *array.layout.shape), array.layout.dtype)
        layout = self.decider.device.layout_of(array)
        return TensorSpec(layout.shape, layout.dtype)
