"""Compiled graphs that run in stages: sizes that depend on data, and copies between devices, inside one graph.

Each part is compiled for its device.  One whose sizes depend on data is compiled for each set of them: the operator
that counts runs on the host, its count gives the name in the part's graph a number, and the specialised graph is kept.
Where sizes are others at each call, compiling would never pay: once a part has met a few sets, a new one runs operator
by operator, and is compiled when it comes again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any

from nnc_core.base.cache import LRU
from nnc_core.base.errors import Error, ExecutionError
from nnc_core.device import Array
from nnc_core.engine import ComputationGraph, MemoryPlan, Profile
from nnc_core.engine.profile import Timing
from nnc_core.graph import SymbolicGraph
from nnc_core.operator import PLACEHOLDER
from nnc_core.optimiser import rebuild
from nnc_core.recording.partition import TRANSFER, Cut, Part, Place, cut
from nnc_core.recording.replay import replay
from nnc_core.stacks import Stack, moved, stack_for
from nnc_core.symbol import Node, show_line
from nnc_core.type import is_data_dependent, map_dims, specialised
from nnc_core.values.data_dependent import count_on_host, names_in, size_attribute
from nnc_core.values.modes import no_grad, tracing
from nnc_core.values.value import Value

KEPT = 16
"""Sizes for which a part stays compiled; those that were used longest ago go first."""
AT_ONCE = 4
"""Sets of sizes that a part is compiled for when they come for the first time."""
REMEMBERED = 256
"""Sets of sizes of which a part knows that they came before."""
Sizes = dict[str, int]
Arrays = dict[tuple[Node, Place], Array]
"""By value and device: what is computed from constants alone may be on several."""


class CompiledPart:
    """A part as a graph of its own, compiled for each set of sizes that it meets."""

    def __init__(self, part: Part, options: Mapping[str, Any]) -> None:
        self.place, self.inputs, self.outputs = part.place, part.inputs, part.outputs
        self.stack, self._options = stack_for(part.place), options
        self.graph = _graph_of(part, self.stack)
        found = {n for node in (*self.graph.inputs.values(), *self.graph.nodes)
                 for n in names_in((node.spec, node.attributes)) if is_data_dependent(n)}
        self.names = tuple(sorted(map(str, found)))
        self.compiled: LRU[tuple[int, ...], ComputationGraph] = LRU(KEPT)
        self._met: LRU[tuple[int, ...], None] = LRU(REMEMBERED)
        if not self.names:
            self.for_sizes({})

    def for_sizes(self, sizes: Mapping[str, int]) -> ComputationGraph:
        return self.compiled.find(self._key(sizes), lambda: self._compiled_for(sizes))

    def _key(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        return tuple([sizes[n] for n in self.names])

    def _graph_for(self, sizes: Mapping[str, int]) -> SymbolicGraph:
        graph: SymbolicGraph = self.stack.graph.specialise(self.graph, sizes) if self.names else self.graph
        return graph

    def _compiled_for(self, sizes: Mapping[str, int]) -> ComputationGraph:
        compiled: ComputationGraph = self.stack.engine.compile(self._graph_for(sizes), **self._options)
        return compiled

    def _is_passing(self, sizes: Mapping[str, int]) -> bool:
        """True for sizes that are new to a part which has met many; their results may differ in the last digits."""
        key = self._key(sizes)
        if not self.names or key in self.compiled or key in self._met:
            return False
        self._met.put(key, None)
        return len(self._met) > AT_ONCE

    def _operator_by_operator(self, given: Mapping[str, Array], sizes: Mapping[str, int]) -> dict[str, Array]:
        """The results, in memory of their own: eagerly some are views."""
        with tracing(None), no_grad():
            values = {name: Value(array, self.stack) for name, array in given.items()}
            found = replay(self._graph_for(sizes), values, self.stack)
        own = self.stack.engine.executor.duplicate
        return {name: own(y.array) for name, y in found.items()}

    def given(self, arrays: Arrays) -> dict[str, Array]:
        return {f"x{i}": arrays[x, self.place] for i, x in enumerate(self.inputs)}

    def run(self, arrays: Arrays, sizes: Sizes) -> None:
        given = self.given(arrays)
        new = self._is_passing(sizes)
        results = self._operator_by_operator(given, sizes) if new else self.for_sizes(sizes).run(given)
        arrays.update({(y, self.place): results[f"y{i}"] for i, y in enumerate(self.outputs)})

    def latest(self) -> list[ComputationGraph]:
        """The compilation made last, if any."""
        return self.compiled.values()[-1:]

    def __repr__(self) -> str:
        waits = f", compiled for each {', '.join(self.names)}" if self.names else ""
        return f"{len(self.graph.nodes)} nodes on {self.place}{waits}"


def _graph_of(part: Part, stack: Stack) -> SymbolicGraph:
    F = stack.operator.open()
    inputs = {f"x{i}": F.placeholder(f"x{i}", x.spec) for i, x in enumerate(part.inputs)}
    nodes = rebuild(part.outputs, F, replaced=dict(zip(part.inputs, inputs.values(), strict=True)))
    return SymbolicGraph(inputs, {f"y{i}": y for i, y in enumerate(nodes)}, (), f"part on {part.place}")


class StagedProgram:
    """A program in stages.  No input gives up its memory, whatever the iopairs say."""

    def __init__(self, graph: SymbolicGraph, stack: Stack, place_of: Callable[[str], Place], on: Mapping[str, Place],
                 options: Mapping[str, Any]) -> None:
        self.graph = graph
        found: Cut = cut(graph, place_of, stack.device.spec.id, on)
        self.place, self.place_of, self.stages = found.place, place_of, found.stages
        self.parts = [[CompiledPart(p, options) for p in stage.parts] for stage in found.stages]
        self._dropped = self._last_uses()

    def _last_uses(self) -> list[set[Node]]:
        """For each stage what nobody wants any more when it has run."""
        last: dict[Node, int] = {}
        for k, stage in enumerate(self.stages):
            for x in [x for p in stage.parts for x in (*p.inputs, *p.outputs)] + [b.inputs[0] for b in stage.breaks]:
                last[x] = k
        for y in (*self.graph.outputs.values(), *self.graph.inputs.values()):
            last.pop(y, None)
        return [{x for x, at in last.items() if at == k} for k in range(len(self.stages))]

    def stack_of(self, name: str) -> Stack:
        """The stack of an input or an output."""
        node = self.graph.inputs.get(name) or self.graph.outputs[name]
        return stack_for(self.place(node))

    @property
    def donated(self) -> frozenset[str]:
        return frozenset()

    def reserve(self) -> None:
        """Allocate the memory of the parts whose sizes are known."""
        for parts in self.parts:
            for part in parts:
                if not part.names:
                    part.for_sizes({}).reserve()

    # ---- running
    def run(self, given: Mapping[str, Array]) -> dict[str, Array]:
        """One call.  Arrays by name in, arrays by name out, each on its own device."""
        arrays = self._run(given, CompiledPart.run, self._run_break)
        return {k: self._own(node, arrays) for k, node in self.graph.outputs.items()}

    def in_order(self, inputs: Sequence[str], outputs: Sequence[str]) -> Callable[[Sequence[Array]], Sequence[Array]]:
        """`run` for a caller who has arrays of the inputs in this order, and wants outputs in that."""

        def run(arrays: Sequence[Array]) -> Sequence[Array]:
            found = self.run(dict(zip(inputs, arrays, strict=True)))
            return [found[name] for name in outputs]

        return run

    def _run(self, given: Mapping[str, Array], run_part: Callable[[CompiledPart, Arrays, Sizes], None],
             run_break: Callable[[Node, Arrays, Sizes], Array]) -> Arrays:
        arrays: Arrays = {(node, self.place(node)): given[k] for k, node in self.graph.inputs.items() if k in given}
        sizes: Sizes = {}
        for parts, stage, dropped in zip(self.parts, self.stages, self._dropped, strict=True):
            for part in parts:
                run_part(part, arrays, sizes)
            for node in stage.breaks:
                arrays[node, self.place(node)] = run_break(node, arrays, sizes)
            for key in [key for key in arrays if key[0] in dropped]:
                del arrays[key]
        return arrays

    def _own(self, node: Node, arrays: Arrays) -> Array:
        """An output that is an input is copied."""
        if node.op is not PLACEHOLDER:
            return arrays[node, self.place(node)]
        return stack_for(self.place(node)).engine.executor.duplicate(arrays[node, self.place(node)])

    def _run_break(self, node: Node, arrays: Arrays, sizes: Sizes) -> Array:
        target = stack_for(self.place(node))
        source = stack_for(self.place_of(node.attributes[0])) if node.op is TRANSFER else target
        try:
            array = arrays[node.inputs[0], source.device.spec.id]
            if node.op is TRANSFER:
                return moved(array, source, target)
            attributes = map_dims(node.attributes, lambda d: specialised(d, sizes))
            host = count_on_host(node.op, [source.engine.executor.download(array)], attributes)
            _learn(node, len(host), sizes)
            return target.engine.executor.upload(host)
        except Error as error:
            error.locate(operator=node.op.name, line=show_line(node.line))
            raise
        except Exception as error:
            raise ExecutionError(f"{type(error).__name__}: {error}", operator=node.op.name, line=show_line(node.line),
                                 device=target.device.spec.id) from error

    # ---- for people
    def explain(self) -> str:
        """Stage by stage: the commands of each part, and what breaks the program between them."""
        lines = []
        for k, (parts, stage) in enumerate(zip(self.parts, self.stages, strict=True)):
            lines.append(f"stage {k}")
            for part in parts:
                lines += [f"  {part}", *(f"    {line}" for run in part.latest() for line in run.explain().splitlines())]
            lines += [f"  {self._said(node)}  # {show_line(node.line)}" for node in stage.breaks]
        return "\n".join(lines)

    def _said(self, node: Node) -> str:
        if node.op is TRANSFER:
            source, target = map(self.place_of, node.attributes)
            return f"{node.spec} is copied from {source} to {target}"
        return (f"{node.op.name} runs on the host and breaks the program: "
                f"what follows needs {size_attribute(node.op, node.attributes)}")

    @property
    def memory_plan(self) -> Any:
        """Sums over the parts that are compiled by now."""
        return StagedMemory(tuple([run.memory_plan for parts in self.parts for p in parts for run in p.latest()]))

    def profile_arrays(self, given: Mapping[str, Array], repeats: int = 5) -> Profile:
        """Time each command; what breaks the program is timed as a whole, once."""
        timings: list[Timing] = []

        def measured(part: CompiledPart, arrays: Arrays, sizes: Sizes) -> None:
            timings.extend(part.for_sizes(sizes).profile_arrays(part.given(arrays), repeats).timings)
            part.run(arrays, sizes)

        def measured_break(node: Node, arrays: Arrays, sizes: Sizes) -> Array:
            start = perf_counter()
            array = self._run_break(node, arrays, sizes)
            stack_for(self.place(node)).device.default_stream.synchronize()
            timings.append(Timing(node.op.name, "host", perf_counter() - start, show_line(node.line)))
            return array

        self._run(given, measured, measured_break)
        places = dict.fromkeys(part.place for stage in self.stages for part in stage.parts)
        return Profile(" + ".join(places), tuple(timings))


def _learn(node: Node, count: int, sizes: Sizes) -> None:
    for name in names_in(size_attribute(node.op, node.attributes)):
        if sizes.setdefault(str(name), count) != count:
            raise ExecutionError(f"{count} elements were found where there had been {sizes[str(name)]}")


class StagedMemory:
    """The memory plans of the parts that are compiled: figures are sums, since parts keep their arenas."""

    def __init__(self, plans: tuple[MemoryPlan, ...]) -> None:
        self.plans = plans

    def __getattr__(self, name: str) -> int:
        if name not in ("peak", "bound", "total", "commands", "aliases", "overwrites", "donated", "joined", "copies"):
            raise AttributeError(name)
        return sum(getattr(p, name) for p in self.plans)

    @property
    def ratio(self) -> float:
        """peak / bound; 1.0 is optimal."""
        return self.peak / self.bound if self.bound else 1.0

    def __str__(self) -> str:
        return "\n".join(map(str, self.plans)) or "no part is compiled before the first call"
