"""Compiled graphs in the hands of users: tensors in, tensors out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nnc_core.base.errors import DeviceError, DTypeError, Error, OperandError, ShapeError
from nnc_core.composition import Stack, stack_for
from nnc_core.dynamic.dispatch import evaluate, host_value
from nnc_core.dynamic.tensor import Tensor
from nnc_core.dynamic.value import Value
from nnc_core.engine import ComputationGraph, Profile
from nnc_core.graph import SymbolicGraph, symbolic
from nnc_core.symbol import Node
from nnc_core.type import is_static, names_of, substitute


class CompiledGraph(ComputationGraph):
    """A computation graph called with tensors, or with host arrays, which are uploaded."""

    stack: Stack
    source: SymbolicGraph
    """The graph as it was written: composites whole, nothing optimised."""

    def __call__(self, **given: Any) -> dict[str, Tensor]:
        """One call: tensors by name in and out."""
        results = self.run(self.admit(given))
        return {name: Tensor(Value(array, self.stack)) for name, array in results.items()}

    def profile(self, repeats: int = 5, **given: Any) -> Profile:
        """Time each command on these inputs."""
        return self.profile_arrays(self.admit(given), repeats)

    def admit(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Device arrays of the right spec; donated inputs are copied, since a tensor may be held elsewhere."""
        missing = [k for k in self.graph.inputs if k not in given]
        unknown = [k for k in given if k not in self.graph.inputs]
        if missing or unknown:
            said = [f"missing {', '.join(missing)}"] * bool(missing) + [f"unknown {', '.join(unknown)}"] * bool(unknown)
            raise OperandError(f"inputs of {self.graph.name!r}: {'; '.join(said)}",
                               hint=f"it takes {', '.join(f'{k}: {n.spec}' for k, n in self.graph.inputs.items())}")
        donated = self.donated
        arrays = {k: self._array(k, given[k], node) for k, node in self.graph.inputs.items()}
        return {k: self.executor.duplicate(a) if k in donated else a for k, a in arrays.items()}

    def _array(self, name: str, x: Any, node: Node) -> Any:
        value = x._value if isinstance(x, Tensor) else host_value(x, node.dtype, self.stack)
        if value.stack.device is not self.device:
            raise DeviceError(f"input {name!r} is on {value.stack.device.spec.id}", device=self.device.spec.id,
                              hint=f"move it with .to({self.device.spec.id!r})")
        evaluate([value])
        wrong: type[Error] | None = None
        if value.dtype != node.dtype:
            wrong = DTypeError
        elif value.shape != node.shape:
            wrong = ShapeError
        if wrong is not None:
            raise wrong(f"input {name!r} is {value.spec}, the graph was compiled for {node.spec}",
                        hint="compile again for the other spec, or convert the input")
        return value.array


class PolymorphicGraph:
    """A graph with named dimensions: compiled at the first call with each new set of sizes."""

    def __init__(self, graph: SymbolicGraph, stack: Stack, options: dict[str, Any]) -> None:
        self.graph, self.stack, self.options = graph, stack, options
        self.compiled: dict[tuple[tuple[str, int], ...], CompiledGraph] = {}

    def __call__(self, **given: Any) -> dict[str, Tensor]:
        values = {k: x if isinstance(x, Tensor) else Tensor(host_value(x, self._dtype(k), self.stack))
                  for k, x in given.items()}
        return self.specialised(self._sizes(values))(**values)

    def specialised(self, sizes: Mapping[str, int]) -> CompiledGraph:
        """The compiled graph for these sizes."""
        key = tuple(sorted(sizes.items()))
        if key not in self.compiled:
            graph = self.stack.graph.specialise(self.graph, sizes)
            self.compiled[key] = compile_graph(graph, self.stack, **self.options)
        return self.compiled[key]

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


def compile_graph(graph: SymbolicGraph, device: Any = None, *, optimise: bool = True) -> Any:
    """Compile for a device; named dimensions get their numbers when the result is called."""
    stack = stack_for(device)
    if not all(is_static(n.shape) for n in graph.inputs.values()):
        return PolymorphicGraph(graph, stack, {"optimise": optimise})
    compiled = stack.engine.compile(graph, optimise=optimise, kind=CompiledGraph)
    compiled.stack, compiled.source = stack, graph
    return compiled


symbolic.compile_hook = compile_graph
