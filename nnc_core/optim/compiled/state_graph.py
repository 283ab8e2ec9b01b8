"""Graphs that carry state from call to call, without the Python that they were made from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nnc_core.base.errors import OperandError
from nnc_core.functions.creation import asarray
from nnc_core.graph import SymbolicGraph
from nnc_core.optim.minimisers.stateful import Stateful
from nnc_core.recording.replay import replay
from nnc_core.stacks import stack_for
from nnc_core.tracing.jit import Jitted, jit
from nnc_core.values.arguments import constructor
from nnc_core.values.cell import Cell
from nnc_core.values.tensor import Tensor


class StateGraph(Stateful):
    """A graph some of whose inputs are state: `step = StateGraph(load_graph(path), state, "opencl:0")`.

    `state` gives the first values of inputs by name; the others are arguments of each call.  A call gives the outputs
    by name but for those of the graph's iopairs, which become the state of the next call in the memory of the last.
    State without an iopair stays as it is.
    """

    @constructor
    def __init__(self, graph: SymbolicGraph, state: Mapping[str, Any], device: Any = None) -> None:
        self.graph, self._stack = graph, stack_for(device)
        unknown = [name for name in state if name not in graph.inputs]
        carried = {input: output for output, input in graph.iopairs}
        missing = [name for name in carried if name not in state]
        if unknown or missing:
            said = [f"unknown {', '.join(unknown)}"] * bool(unknown) + [f"missing {', '.join(missing)}"] * bool(missing)
            raise OperandError(f"the state of {graph.name!r}: {'; '.join(said)}",
                               hint=f"its iopairs carry {', '.join(carried) or 'nothing'}")
        self._carried = carried
        self._cells = {name: Cell(self._uploaded(name, x), name) for name, x in state.items()}
        self._step: Jitted = jit(self._run)

    def cells(self) -> dict[str, Cell]:
        """The state by the names of the inputs."""
        return dict(self._cells)

    def __call__(self, **given: Any) -> dict[str, Tensor]:
        """One call: the outputs that are not carried on."""
        wanted = self.graph.inputs.keys() - self._cells.keys()
        if given.keys() != wanted:
            raise OperandError(f"{self.graph.name!r} was given {', '.join(given) or 'nothing'}",
                               hint=f"it takes {', '.join(sorted(wanted)) or 'nothing'}")
        outputs: dict[str, Tensor] = self._step({name: self._uploaded(name, x) for name, x in given.items()})
        return outputs

    def _run(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        values = {name: x._value for name, x in given.items()}
        values |= {name: cell.read()._value for name, cell in self._cells.items()}
        made = replay(self.graph, values, self._stack)
        for name, output in self._carried.items():
            self._cells[name].write(Tensor(made.pop(output)))
        return {name: Tensor(v) for name, v in made.items()}

    def _uploaded(self, name: str, x: Any) -> Tensor:
        device = self._stack.device.spec.id
        if isinstance(x, Tensor):
            return x.to(device)
        return asarray(np.asarray(x, self.graph.inputs[name].dtype), device=device)

    def __repr__(self) -> str:
        return f"<{self.graph.name} on {self._stack.device.spec.id}, {len(self._cells)} arrays of state>"
