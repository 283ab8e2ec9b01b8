"""Symbolic graphs compiled: for one device, in stages where one device cannot run all, or for sizes as they come."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any, NoReturn

from nnc_core.base.cache import LRU
from nnc_core.base.errors import AttributeValueError, ShapeError
from nnc_core.base.unknown_names import unknown_member
from nnc_core.device import Device
from nnc_core.graph import SymbolicGraph
from nnc_core.operator import CONSTANT
from nnc_core.recording.compiled import CompiledGraph
from nnc_core.recording.partition import needs_stages
from nnc_core.recording.staged import StagedProgram
from nnc_core.stacks import Stack, stack_for
from nnc_core.type import is_static, names_of, substitute
from nnc_core.values.from_host import host_value
from nnc_core.values.modes import current_stack
from nnc_core.values.tensor import Tensor

KEPT = 64
"""Sets of sizes for which a graph with named dimensions stays compiled."""


class PolymorphicGraph:
    """A graph with named dimensions: compiled at the first call with each new set of sizes.

    The 64 sets that were used last stay compiled.
    """

    def __init__(self, graph: SymbolicGraph, stack: Stack, options: dict[str, Any]) -> None:
        self.graph, self.stack, self.options = graph, stack, options
        self.compiled: LRU[tuple[tuple[str, int], ...], CompiledGraph] = LRU(KEPT)

    def __call__(self, **given: Any) -> dict[str, Tensor]:
        values = {k: x if isinstance(x, Tensor) else Tensor(host_value(x, self._dtype(k), self.stack))
                  for k, x in given.items()}
        return self.specialised(self._sizes(values))(**values)

    def specialised(self, sizes: Mapping[str, int]) -> CompiledGraph:
        """The compiled graph for these sizes, by name; it has a memory plan, `explain()` and `profile()`."""
        return self.compiled.find(tuple(sorted(sizes.items())), lambda: self._compiled_for(sizes))

    def __getattr__(self, name: str) -> NoReturn:
        """Answer to names that the graph for given sizes has, such as its memory plan."""
        hint = f"run.specialised({{'n': 3}}).{name}, with a number for each name"
        raise unknown_member(self, name, {name: hint} if hasattr(CompiledGraph, name) else {})

    def _compiled_for(self, sizes: Mapping[str, int]) -> CompiledGraph:
        compiled: CompiledGraph = compile_graph(self.stack.graph.specialise(self.graph, sizes), self.stack,
                                                **self.options)
        return compiled

    def _dtype(self, name: str) -> Any:
        return self.graph.inputs[name].dtype if name in self.graph.inputs else None

    def _sizes(self, values: Mapping[str, Tensor]) -> dict[str, int]:
        """The size of each plain name, from the inputs; compound dimensions are then checked."""
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
                  memory_steps: int | None = None, consume: bool = False) -> Any:
    """Compile for a device, the one in use by default; named dimensions get their numbers when the result is called.

    Copies between places that `places` gives devices, and sizes that depend on data, make a graph that runs in stages.
    A place without a device is the one compiled for, a device's id is itself.  `on` names the devices of inputs that
    are elsewhere.  `memory_steps` is how many steps the memory planners may take (None: `config.memory_steps`).
    `consume` gives the graph's constants up to the result.
    """
    stack = current_stack() if device is None else stack_for(device)
    options = {"optimise": optimise, "places": places, "on": on, "memory_steps": memory_steps}
    if not all([is_static(n.shape) for n in graph.inputs.values()]):
        _check_compiled_once(graph, consume)
        return PolymorphicGraph(graph, stack, options)
    staged = in_stages(graph, stack, optimise, places, on, memory_steps)
    if staged is not None:
        _check_compiled_once(graph, consume)
        return staged
    with giving_up_constants(graph, stack.device) if consume else nullcontext():
        return CompiledGraph(stack.engine.compile(graph, optimise=optimise, memory_steps=memory_steps), graph, stack)


def _check_compiled_once(graph: SymbolicGraph, consume: bool) -> None:
    if consume:
        raise AttributeValueError(f"consume=True, but {graph.name!r} is compiled in parts, or for each size that comes",
                                  operator="compile", hint="leave consume out, or give all sizes as numbers")


@contextmanager
def giving_up_constants(graph: SymbolicGraph, device: Device) -> Iterator[None]:
    """Let what is compiled in the block have the memory of a graph's constants; afterwards nobody has them."""
    literals = [node.attributes[0] for node in graph.nodes if node.op is CONSTANT]
    for literal in literals:
        literal.spare = True
    device.trim()
    try:
        yield
        for literal in literals:
            literal.give_up()
        device.trim()
    finally:
        for literal in literals:
            literal.spare = False


def in_stages(graph: SymbolicGraph, stack: Stack, optimise: bool, places: Mapping[str, Any] | None,
              on: Mapping[str, Any] | None, memory_steps: int | None) -> CompiledGraph | None:
    """The graph in stages, if one device cannot run it in one go."""
    home = stack.device.spec.id
    named = {k: stack_for(d).device.spec.id for k, d in (places or {}).items()}
    given = {k: stack_for(d).device.spec.id for k, d in (on or {}).items()}

    def place_of(place: str) -> str:
        return named.get(place) or (place if ":" in place else home)

    if not needs_stages(graph, place_of, home, given):
        return None
    program = StagedProgram(graph, stack, place_of, given, {"optimise": optimise, "memory_steps": memory_steps})
    return CompiledGraph(program, graph, stack, program.stack_of, place_of)
