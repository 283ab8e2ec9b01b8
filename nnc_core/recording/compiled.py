"""Compiled graphs in the hands of users: tensors in, tensors out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from nnc_core.base.errors import DeviceError, DTypeError, Error, OperandError, ShapeError
from nnc_core.device import Array
from nnc_core.engine import Profile
from nnc_core.graph import SymbolicGraph
from nnc_core.recording.replay import must_be_recorded, replay
from nnc_core.stacks import Stack
from nnc_core.symbol import Node
from nnc_core.type import is_static
from nnc_core.values.evaluation import evaluate
from nnc_core.values.from_host import host_value
from nnc_core.values.operands import value_of
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value


class CompiledProgram(Protocol):
    """A graph that has been compiled: takes and gives arrays."""

    graph: SymbolicGraph
    """The graph that runs: its inputs and outputs are those of calls."""

    def run(self, given: Mapping[str, Array]) -> dict[str, Array]:
        """One call.  Arrays by name in, arrays by name out."""

    def in_order(self, inputs: Sequence[str], outputs: Sequence[str]) -> Callable[[Sequence[Array]], Sequence[Array]]:
        """`run` for a caller who has arrays of the inputs in this order, and wants outputs in that."""

    def reserve(self) -> None:
        """Allocate the memory of one call."""

    def explain(self) -> str:
        """The commands with their code, memory and lines, as text."""

    def profile_arrays(self, given: Mapping[str, Array], repeats: int = 5) -> Profile:
        """Time each command."""

    @property
    def donated(self) -> frozenset[str]:
        """Names of the inputs whose memory a call takes over."""

    @property
    def memory_plan(self) -> Any:
        """Peak, bound, and where everything lies."""


class CompiledGraph:
    """A program called with tensors, or with host arrays, which are uploaded."""

    def __init__(self, program: CompiledProgram, source: SymbolicGraph, stack: Stack,
                 stack_of: Callable[[str], Stack] | None = None,
                 place_of: Callable[[str], str] | None = None) -> None:
        self.program, self.source, self.stack = program, source, stack
        self.graph, self.run, self.in_order = program.graph, program.run, program.in_order
        self.stack_of = stack_of or (lambda name: stack)
        """name -> the stack of an input or an output."""
        self.place_of = place_of
        """The device of a place that a copy goes to; None if all is on one device."""
        self.version = stack.engine.decider.version
        """That of the decisions it was compiled by: see `Decider.version`."""
        self.unused = _unused(source)
        """Inputs that no output depends on: callers may leave them out."""
        self.donated = program.donated
        """Names of the inputs whose memory a call takes over."""

    def __call__(self, **given: Any) -> dict[str, Tensor]:
        """One call: tensors by name in and out.  Where a gradient may be asked through it, or inside a trace, its
        source is recorded instead."""
        if must_be_recorded([value_of(x) for x in given.values() if isinstance(x, Tensor)]):
            outputs = replay(self.source, self.values(given), self.stack, self.place_of)
            return {name: Tensor(v) for name, v in outputs.items()}
        results = self.run(self.admit(given))
        return {name: Tensor(Value(array, self.stack_of(name))) for name, array in results.items()}

    def profile(self, repeats: int = 5, **given: Any) -> Profile:
        """Time each command on these inputs."""
        return self.program.profile_arrays(self.admit(given), repeats)

    def reserve(self) -> None:
        """Allocate the memory of intermediate values of one call now.  It is kept for all calls, of which each that
        runs at the same time as others has its own; without this the first call allocates it."""
        self.program.reserve()

    def explain(self) -> str:
        """The commands with their code, memory and lines, as text."""
        return self.program.explain()

    @property
    def memory_plan(self) -> Any:
        """Peak, bound, and where everything lies."""
        return self.program.memory_plan

    def admit(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Device arrays of the right spec; donated inputs are copied, since a tensor may be held elsewhere."""
        values = self.values(given)
        evaluate(list(values.values()))
        donated, duplicate = self.donated, self.stack.engine.executor.duplicate
        return {k: duplicate(v.array) if k in donated else v.array for k, v in values.items()}

    def values(self, given: Mapping[str, Any]) -> dict[str, Value]:
        """The inputs by name, checked: none missing or unknown, all on this device and of the right spec."""
        missing = [k for k in self.graph.inputs if k not in given and k not in self.unused]
        unknown = [k for k in given if k not in self.graph.inputs]
        if missing or unknown:
            said = [f"missing {', '.join(missing)}"] * bool(missing) + [f"unknown {', '.join(unknown)}"] * bool(unknown)
            raise OperandError(f"inputs of {self.graph.name!r}: {'; '.join(said)}",
                               hint=f"it takes {', '.join(f'{k}: {n.spec}' for k, n in self.graph.inputs.items())}")
        return {k: self._value(k, given[k], node) for k, node in self.graph.inputs.items() if k in given}

    def _value(self, name: str, x: Any, node: Node) -> Value:
        stack = self.stack_of(name)
        value = value_of(x) if isinstance(x, Tensor) else host_value(x, node.dtype, stack)
        if value.stack is not stack:
            wanted = stack.device.spec.id
            raise DeviceError(f"input {name!r} is on {value.stack.device.spec.id}", device=wanted,
                              hint=f"move it with .to({wanted!r})")
        if value.trace is None and not is_static(value.spec.shape):
            evaluate([value])
        wrong: type[Error] | None = None
        if value.dtype != node.dtype:
            wrong = DTypeError
        elif value.shape != node.shape:
            wrong = ShapeError
        if wrong is not None:
            raise wrong(f"input {name!r} is {value.spec}, the graph was compiled for {node.spec}",
                        hint="compile again for the other spec, or convert the input")
        return value


def _unused(graph: SymbolicGraph) -> frozenset[str]:
    """Inputs that nothing reads and whose memory nothing takes over."""
    reached = {*graph.nodes, *(graph.inputs[i] for _, i in graph.iopairs)}
    return frozenset([k for k, node in graph.inputs.items() if node not in reached])
