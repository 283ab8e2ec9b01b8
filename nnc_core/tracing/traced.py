"""The result of tracing: a graph with all that a call must bring and take away, and what it holds for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

from nnc_core.base.errors import NotSupportedError, SymbolValueError
from nnc_core.graph import SymbolicGraph
from nnc_core.operator import Nodes
from nnc_core.recording.export import constant, to_nodes
from nnc_core.stacks import Stack
from nnc_core.symbol import Node, postorder, show_line
from nnc_core.tracing.captured import CapturedNames, Variable
from nnc_core.tracing.dimensions import Shapes, Sizes, bound
from nnc_core.type import Dim, any_data_dependent, is_data_dependent
from nnc_core.values.cell import Cell
from nnc_core.values.data_dependent import DataDependentError, has_data_dependent, names_in, size_attribute
from nnc_core.values.modes import current_stack
from nnc_core.values.tensor import Tensor
from nnc_core.values.trace import Guard, Trace, unchanged
from nnc_core.values.tree import Structure, flatten
from nnc_core.values.value import Handle, Value


class Traced(NamedTuple):
    """A function traced for one signature, or with named dimensions for many."""

    graph: SymbolicGraph
    stack: Stack
    shapes: Shapes
    """Of the arguments, with names where the size does not matter."""
    sizes: Sizes | None
    cells: tuple[tuple[str, Cell], ...]
    outside: tuple[tuple[str, Handle | Variable], ...]
    captured: CapturedNames
    writes: tuple[tuple[str, Cell], ...]
    guards: tuple[Guard, ...]
    outputs: tuple[str, ...]
    structure: Structure
    leaves: tuple[Any, ...]  # results that are no tensors, None for those that are
    because: str
    elsewhere: Mapping[str, Stack]
    """The inputs that are on other devices than most."""

    def stale(self) -> list[str]:
        """Things that the trace read from outside and that have changed; its elements may have changed."""
        said = self.captured.changes()
        if said:
            return said
        holders: list[tuple[str, Handle | Variable | Cell]] = [*self.outside, *self.cells]
        for k, holder in holders:
            then, now = self.graph.inputs[k].spec, holder._value
            stack = self.elsewhere.get(k, self.stack)
            if now.spec != then or (now.stack is not stack and not _roams(holder)):
                what = f"cell {holder.name!r}" if isinstance(holder, Cell) else "a tensor from outside"
                said.append(f"{what}: {then} on {stack.device.spec.id} -> {now.spec} on "
                            f"{now.stack.device.spec.id}")
        return said + [g.change() for g in self.guards if not g.holds()]

    def is_current(self) -> bool:
        """Nothing is stale."""
        if not self.captured.holds():
            return False
        inputs, stack, elsewhere = self.graph.inputs, self.stack, self.elsewhere
        for holders in (self.outside, self.cells):
            for k, holder in holders:
                then, now = inputs[k].spec, holder._value
                if now.stack is not (elsewhere.get(k, stack) if elsewhere else stack) and not _roams(holder):
                    return False
                if now._spec is not then and now.spec != then:
                    return False
        for read, then in self.guards:
            now = read()
            if now is not then and not unchanged(now, then):
                return False
        return True

    def numbers_for(self, shapes: Shapes) -> dict[str, int] | None:
        """The sizes that make this trace one for these shapes; None if it is none."""
        numbers = bound(self.shapes, shapes)
        if numbers and self.sizes is not None and not self.sizes.hold_for(numbers):
            return None
        return numbers


def recorded(trace: Trace, result: Any) -> list[Value]:
    """All that the results, the writes and the effects depend on, inputs first; what tensors from outside were computed
    from is none of the graph's."""
    written = [v for cell, v in trace.now.items() if v is not trace.cells[cell]]
    returned = [x._value for x in flatten(result, sort=False)[0] if isinstance(x, Tensor)]
    return postorder([*trace.effects, *returned, *written], trace.seen)


def finish(trace: Trace, result: Any, order: Sequence[Value], shapes: Shapes, sizes: Sizes | None,
           donated: Sequence[int], because: str, captured: CapturedNames) -> Traced:
    """The graph of what was traced; `order` is what has been `recorded`."""
    leaves, structure = flatten(result, sort=False)
    _check_keys(structure)
    outputs = {f"out{i}": x._value for i, x in enumerate(leaves) if isinstance(x, Tensor)}
    written = [c for c in trace.now if trace.now[c] is not trace.cells[c]]
    writes = {f"new{i}": trace.now[c] for i, c in enumerate(written)}
    wanted = {**{f"effect{i}": v for i, v in enumerate(trace.effects)}, **outputs, **writes}  # effects run in order
    cells = {cell: f"cell{i}" for i, cell in enumerate(trace.cells)}
    read = [trace.seen[id(v)] for v in order if id(v) in trace.seen]
    outside = {f"outside{i}": t for i, t in enumerate(read)}
    inputs = {f"arg{i}": v for i, v in enumerate(trace.symbols)} | {cells[c]: v for c, v in trace.cells.items()}
    inputs |= {k: t._value for k, t in outside.items()}
    stack = next((v.stack for v in [*wanted.values(), *trace.symbols]), None) or current_stack()
    pairs = [(f"new{i}", cells[cell]) for i, cell in enumerate(written)]
    graph = _graph(trace.name, stack, inputs, wanted, pairs, [f"arg{i}" for i in donated], outputs)
    return Traced(graph, stack, shapes, sizes, tuple([(k, cell) for cell, k in cells.items()]),
                  tuple([(k, captured.follow(t)) for k, t in outside.items()]), captured,
                  tuple(zip(writes, written, strict=True)), tuple(trace.guards), tuple(outputs), structure,
                  tuple([None if isinstance(x, Tensor) else x for x in leaves]), because,
                  {k: v.stack for k, v in inputs.items() if v.stack is not stack})


def _graph(name: str, stack: Stack, inputs: Mapping[str, Value], wanted: Mapping[str, Value],
           updates: Sequence[tuple[str, str]], donated: Sequence[str], outputs: Iterable[str]) -> SymbolicGraph:
    """The graph from the inputs to what is wanted; `updates` are results with the inputs whose memory they take over,
    and for each donated input an output is found that does so, too."""
    G = stack.operator.open()
    placeholders = {k: G.placeholder(k, v.spec) for k, v in inputs.items()}

    def leaf(H: Nodes, v: Value) -> Node:
        if v.array is None:
            raise SymbolValueError(f"{name} depends on a symbol {v.spec} that is none of its arguments",
                                   hint="pass it as an argument, or a tensor that has a value")
        return constant(H, v)

    cuts = {id(v): placeholders[k] for k, v in inputs.items()}
    nodes = dict(zip(wanted, to_nodes(G, list(wanted.values()), cuts, leaf), strict=True))
    given_up = {k: placeholders[k] for k in donated}
    found = _donated_pairs({k: nodes[k] for k in outputs}, given_up, set(placeholders.values()))
    graph = SymbolicGraph(placeholders, nodes, (*updates, *found), name)
    check_sizes(graph)
    return graph


def _roams(holder: Handle | Variable | Cell) -> bool:
    return isinstance(holder, Cell) and holder.roams


def check_sizes(graph: SymbolicGraph) -> None:
    """DataDependentError names the first operator with a size that nothing in the graph counts."""
    if not any_data_dependent():
        return
    counting = [node for node in graph.nodes if node.op.data_dependent]
    resolvable = {n for node in counting for n in names_in(size_attribute(node.op, node.attributes))}
    for node in graph.nodes:
        names = names_in(node.spec) if has_data_dependent(node.spec.shape) else ()
        if any(is_data_dependent(name) and name not in resolvable for name in names):
            raise DataDependentError(f"{node.op.name} gives {node.spec}, whose size depends on data",
                                     line=show_line(node.line))


def _donated_pairs(outputs: Mapping[str, Node], donated: Mapping[str, Node],
                   given: AbstractSet[Node]) -> list[tuple[str, str]]:
    """For each donated input the first output that fits into its memory; an output that is an input has its own."""
    free: dict[Node, str] = {}
    for k, node in outputs.items():
        if node not in given:
            free.setdefault(node, k)
    pairs = []
    for name, x in donated.items():
        found = next((node for node in free if node.spec == x.spec), None)
        if found is not None:
            pairs.append((free.pop(found), name))
    return pairs


def _check_keys(structure: Structure) -> None:
    if any(isinstance(k, Dim) for k in structure.keys):
        raise NotSupportedError("a dictionary of results has a size among its keys")
    for part in structure.parts:
        _check_keys(part)
