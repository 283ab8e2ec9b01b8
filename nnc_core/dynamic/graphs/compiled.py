"""Compiled graphs in the hands of users: tensors in, tensors out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nnc_core.base.errors import DeviceError, DTypeError, Error, OperandError, ShapeError
from nnc_core.composition import Stack, stack_for
from nnc_core.dynamic.evaluation import evaluate
from nnc_core.dynamic.from_host import host_value
from nnc_core.dynamic.graphs.kept import Kept
from nnc_core.dynamic.graphs.replay import must_be_recorded, replay
from nnc_core.dynamic.tensor import Tensor, value_of
from nnc_core.dynamic.value import Value
from nnc_core.engine import ComputationGraph, Profile
from nnc_core.graph import SymbolicGraph
from nnc_core.symbol import Node
from nnc_core.type import is_static, names_of, substitute

KEPT = 64
"""Sets of sizes for which a graph with named dimensions stays compiled."""


class CompiledGraph(ComputationGraph):
    """A computation graph called with tensors, or with host arrays, which are uploaded."""

    stack: Stack
    source: SymbolicGraph
    """The graph as it was written: composites whole, nothing optimised."""
    version: int = 0
    """That of the choices of backends it was compiled by: see `Lowering.version`."""
    place_of: Callable[[str], str] | None = None
    """The device of a place that a copy goes to; None if all is on one device."""
    unused: frozenset[str] = frozenset()
    """Inputs that no output depends on: callers may leave them out."""

    def __call__(self, **given: Any) -> dict[str, Tensor]:
        """One call: tensors by name in and out.  Where a gradient may be asked through it, or inside a trace, its
        source is recorded instead."""
        if must_be_recorded([value_of(x) for x in given.values() if isinstance(x, Tensor)]):
            outputs = replay(self.source, self.values(given), self.stack, self.place_of)
            return {name: Tensor(v) for name, v in outputs.items()}
        results = self.run(self.admit(given))
        return {name: Tensor(Value(array, self.stack_of(name))) for name, array in results.items()}

    def stack_of(self, name: str) -> Stack:
        """The stack of an input or an output."""
        return self.stack

    def profile(self, repeats: int = 5, **given: Any) -> Profile:
        """Time each command on these inputs."""
        return self.profile_arrays(self.admit(given), repeats)

    def reserve(self) -> None:
        """Allocate the memory of intermediate values of one call now.  It is kept for all calls, of which each that
        runs at the same time as others has its own; without this the first call allocates it."""
        self._idle.append(self._program())

    def admit(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Device arrays of the right spec; donated inputs are copied, since a tensor may be held elsewhere."""
        values = self.values(given)
        evaluate(list(values.values()))
        donated = self.donated
        return {k: self.executor.duplicate(v.array) if k in donated else v.array for k, v in values.items()}

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


class PolymorphicGraph:
    """A graph with named dimensions: compiled at the first call with each new set of sizes.

    The 64 sets that were used last stay compiled.
    """

    def __init__(self, graph: SymbolicGraph, stack: Stack, options: dict[str, Any]) -> None:
        self.graph, self.stack, self.options = graph, stack, options
        self.compiled: Kept[tuple[tuple[str, int], ...], CompiledGraph] = Kept(KEPT)

    def __call__(self, **given: Any) -> dict[str, Tensor]:
        values = {k: x if isinstance(x, Tensor) else Tensor(host_value(x, self._dtype(k), self.stack))
                  for k, x in given.items()}
        return self.specialised(self._sizes(values))(**values)

    def specialised(self, sizes: Mapping[str, int]) -> CompiledGraph:
        """The compiled graph for these sizes, by name; it has a memory plan, `explain()` and `profile()`."""
        return self.compiled.find(tuple(sorted(sizes.items())), lambda: self._compiled_for(sizes))

    def _compiled_for(self, sizes: Mapping[str, int]) -> CompiledGraph:
        compiled: CompiledGraph = compile_graph(self.stack.graph.specialise(self.graph, sizes), self.stack,
                                                **self.options)
        return compiled

    def _dtype(self, name: str) -> Any:
        return self.graph.inputs[name].dtype if name in self.graph.inputs else None

    def _sizes(self, values: Mapping[str, Tensor]) -> dict[str, int]:
        """What each plain name must be, from the inputs; compound dimensions are then checked."""
        sizes: dict[str, int] = {}
        for k, node in self.graph.inputs.items():
            if k in values and len(values[k].shape) == len(node.shape):
                for d, n in zip(node.shape, values[k].shape, strict=True):
                    if not isinstance(d, int) and str(d) in d.names:
                        sizes.setdefault(str(d), int(n))
        for k, node in self.graph.inputs.items():
            if k in values and names_of(node.shape) <= sizes.keys():
                wanted = tuple(substitute(d, sizes) for d in node.shape)
                if wanted != values[k].shape:
                    raise ShapeError(f"input {k!r} is {values[k].spec}, which does not fit {node.spec} with {sizes}")
        return sizes


def compile_graph(graph: SymbolicGraph, device: Any = None, *, optimise: bool = True,
                  places: Mapping[str, Any] | None = None, on: Mapping[str, Any] | None = None,
                  memory_steps: int | None = None) -> Any:
    """Compile for a device; named dimensions get their numbers when the result is called.

    Copies between places that `places` gives devices, and sizes that depend on data, make a graph that runs in stages.
    A place without a device is the one compiled for, a device's id is itself.  `on` names the devices of inputs that
    are elsewhere.  `memory_steps` is how many steps the memory planners may take (None: `config.memory_steps`).
    """
    stack = stack_for(device)
    options = {"optimise": optimise, "places": places, "on": on, "memory_steps": memory_steps}
    if not all(is_static(n.shape) for n in graph.inputs.values()):
        return PolymorphicGraph(graph, stack, options)
    staged = in_stages(graph, stack, optimise, places, on, memory_steps)
    if staged is not None:
        return staged
    compiled = stack.engine.compile(graph, optimise=optimise, memory_steps=memory_steps, kind=CompiledGraph)
    compiled.stack, compiled.source, compiled.unused = stack, graph, _unused(graph)
    compiled.version = stack.engine.lowering.version
    return compiled


def in_stages(graph: SymbolicGraph, stack: Stack, optimise: bool, places: Mapping[str, Any] | None,
              on: Mapping[str, Any] | None, memory_steps: int | None) -> CompiledGraph | None:
    """The graph in stages, if one device cannot run it in one go."""
    from nnc_core.dynamic.graphs.partition import needs_stages
    from nnc_core.dynamic.graphs.staged import StagedGraph

    home = stack.device.spec.id
    named = {k: stack_for(d).device.spec.id for k, d in (places or {}).items()}
    given = {k: stack_for(d).device.spec.id for k, d in (on or {}).items()}

    def place_of(place: str) -> str:
        return named.get(place) or (place if ":" in place else home)

    if not needs_stages(graph, place_of, home, given):
        return None
    staged = StagedGraph(graph, stack, place_of, given, {"optimise": optimise, "memory_steps": memory_steps})
    staged.unused, staged.version = _unused(graph), stack.engine.lowering.version
    return staged


def _unused(graph: SymbolicGraph) -> frozenset[str]:
    """Inputs that nothing reads and whose memory nothing takes over."""
    reached = {*graph.nodes, *(graph.inputs[i] for _, i in graph.iopairs)}
    return frozenset(k for k, node in graph.inputs.items() if node not in reached)


SymbolicGraph.register_compiler(compile_graph)
