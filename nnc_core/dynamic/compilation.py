"""What tracing gives: a graph with all that a call must bring and take away; compiled for the sizes of a call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

from nnc_core.base.errors import NotSupportedError, SymbolValueError
from nnc_core.composition import Stack
from nnc_core.dynamic.cell import Cell
from nnc_core.dynamic.compiled import CompiledGraph, compile_graph
from nnc_core.dynamic.dimensions import Shapes, Sizes, bound
from nnc_core.dynamic.donation import array_to_overwrite, give_up
from nnc_core.dynamic.evaluation import evaluate
from nnc_core.dynamic.export import constant, to_nodes
from nnc_core.dynamic.modes import current_stack, gradients
from nnc_core.dynamic.tensor import Tensor
from nnc_core.dynamic.trace import Guard, Trace
from nnc_core.dynamic.tree import Structure, flatten, unflatten
from nnc_core.dynamic.unknown import has_unknown, names_in, size_attribute
from nnc_core.dynamic.value import Value
from nnc_core.engine import LostStateError
from nnc_core.graph import SymbolicGraph
from nnc_core.operator import Nodes
from nnc_core.symbol import Body, Node, postorder, show_line
from nnc_core.type import Dim, any_unknown, is_unknown, substitute


class Traced(NamedTuple):
    """A function traced for one signature, or with named dimensions for many."""

    graph: SymbolicGraph
    stack: Stack
    shapes: Shapes
    """Of the arguments, with names where the size does not matter."""
    sizes: Sizes | None
    cells: tuple[tuple[str, Cell], ...]
    outside: tuple[tuple[str, Tensor], ...]
    writes: tuple[tuple[str, Cell], ...]
    guards: tuple[Guard, ...]
    outputs: tuple[str, ...]
    structure: Structure
    leaves: tuple[Any, ...]  # results that are no tensors, None for those that are
    because: str
    elsewhere: Mapping[str, Stack]
    """The inputs that are on other devices than most."""

    def stale(self) -> list[str]:
        """What the trace read from outside and is not as it was; its elements may have changed."""
        said = []
        holders: list[tuple[str, Tensor | Cell]] = [*self.outside, *self.cells]
        for k, holder in holders:
            then, now = self.graph.inputs[k].spec, holder._value
            stack = self.elsewhere.get(k, self.stack)
            if now.spec != then or now.stack is not stack:
                what = f"cell {holder.name!r}" if isinstance(holder, Cell) else "a tensor from outside"
                said.append(f"{what}: {then} on {stack.device.spec.id} -> {now.spec} on "
                            f"{now.stack.device.spec.id}")
        return said + [g.change() for g in self.guards if not g.holds()]

    def is_current(self) -> bool:
        """Nothing is stale."""
        inputs, stack = self.graph.inputs, self.stack
        for k, holder in self.outside:
            if holder._value.stack is not self.elsewhere.get(k, stack) or holder._value.spec != inputs[k].spec:
                return False
        for k, cell in self.cells:
            if cell._value.stack is not self.elsewhere.get(k, stack) or cell._value.spec != inputs[k].spec:
                return False
        return all(g.holds() for g in self.guards)

    def numbers_for(self, shapes: Shapes) -> dict[str, int] | None:
        """The sizes that make this trace one for these shapes; None if it is none."""
        numbers = bound(self.shapes, shapes)
        if numbers and self.sizes is not None and not self.sizes.hold_for(numbers):
            return None
        return numbers

    def compile(self, numbers: Mapping[str, int]) -> Compilation:
        """For these sizes."""
        graph = self.stack.graph.specialise(self.graph, numbers) if numbers else self.graph
        leaves = tuple([substitute(x, numbers) if isinstance(x, Dim) else x for x in self.leaves])
        return Compilation(self, compile_graph(graph, self.stack, on=self.elsewhere), leaves, numbers)


class Compilation:
    """Ready to be called: everything that does not change from call to call has been done."""

    def __init__(self, traced: Traced, run: CompiledGraph, leaves: tuple[Any, ...], numbers: Mapping[str, int]) -> None:
        self.traced, self.run, self.numbers = traced, run, numbers
        self.stack, self.writes, self.outputs = traced.stack, traced.writes, traced.outputs
        self.stacks = [run.stack_of(k) for k in self.outputs]
        self.arguments = [f"arg{i}" for i in range(len(traced.shapes))]
        self.taken = tuple([(k, cell) for k, cell in traced.cells if k in run.donated])
        self.lent = tuple([(k, cell) for k, cell in traced.cells if k not in run.donated])
        self.locks = [cell._lock for cell in sorted({c for _, c in self.taken}, key=id)]
        self.pure = not (traced.cells or traced.outside or traced.guards)
        self.single = traced.structure.kind is None and leaves == (None,)
        self.leaves = leaves
        self.body: Body | None = None
        """The graph as one differentiable step, made when somebody differentiates it."""

    def is_current(self) -> bool:
        """Nothing that the trace depends on has changed, nor the choice of backends."""
        return self.run.version == self.stack.engine.lowering.version and (self.pure or self.traced.is_current())

    def is_differentiated(self) -> bool:
        """It reads a variable from outside, whose gradient may be asked: the function must run as it is written."""
        traced = self.traced
        return gradients.get() and (any([t._value.tracked for _, t in traced.outside])
                                    or any([cell.tracked for _, cell in traced.cells]))

    def call(self, arrays: Sequence[Any]) -> Any:
        """The function's result for these argument arrays."""
        if self.pure:
            return self.results(self.run.run(dict(zip(self.arguments, arrays, strict=True))))
        return self._call(dict(zip(self.arguments, arrays, strict=True)), {}, {})

    def call_donating(self, tensors: Sequence[Tensor], labels: Mapping[int, str]) -> Any:
        """The same, with tensors by their number that give up their memory; labels are what they are called."""
        given = {k: t._value.array for i, (k, t) in enumerate(zip(self.arguments, tensors, strict=True))
                 if i not in labels}
        donated = {f"arg{i}": tensors[i] for i in labels}
        result = self._call(given, donated, {f"arg{i}": label for i, label in labels.items()})
        for i, label in labels.items():
            give_up(tensors[i], self.run.graph.name, label)
        return result

    def _call(self, given: dict[str, Any], donated: Mapping[str, Tensor], labels: Mapping[str, str]) -> Any:
        with _held(self.locks):
            given |= self.state(take=False)
            for k, tensor in donated.items():
                given[k] = array_to_overwrite(tensor) if k in self.run.donated else tensor._value.array
            for k, cell in self.taken:
                given[k] = cell.take()
            try:
                arrays = self.run.run(given)
            except LostStateError as error:
                self._mark_lost(error.lost, given, donated, labels)
                raise
            for k, cell in self.writes:
                cell.put(Value(arrays[k], self.run.stack_of(k)))
        return self.results(arrays)

    def _mark_lost(self, lost: frozenset[str], given: Mapping[str, Any], donated: Mapping[str, Tensor],
                   labels: Mapping[str, str]) -> None:
        """What the failing call had begun to overwrite; of what was shared it had a copy."""
        name = self.run.graph.name
        for k, cell in self.taken:
            if k in lost and not cell._shared:
                cell.lose(f"a call of {name!r} failed")
        for k, tensor in donated.items():
            if k in lost and given[k] is tensor._value.array:
                give_up(tensor, name, labels[k], lost=True)

    def state(self, take: bool) -> dict[str, Any]:
        """The arrays that are read from outside; of cells that will be overwritten only if they are taken too."""
        given = {k: cell.lend().array for k, cell in self.lent}
        for k, tensor in self.traced.outside:
            if tensor._value.array is None:
                evaluate([tensor._value])
            given[k] = tensor._value.array
        return given | {k: cell.lend().array for k, cell in self.taken} if take else given

    def results(self, arrays: Mapping[str, Any]) -> Any:
        if self.single:
            return Tensor(Value(arrays["out0"], self.stacks[0]))
        made = iter([Tensor(Value(arrays[k], stack)) for k, stack in zip(self.outputs, self.stacks, strict=True)])
        return unflatten(self.traced.structure, iter([next(made) if x is None else x for x in self.leaves]))


@contextmanager
def _held(locks: Sequence[Any]) -> Iterator[None]:
    """Two calls must not overwrite one cell at once."""
    if not locks:
        yield
        return
    with ExitStack() as stack:
        for lock in locks:
            stack.enter_context(lock)
        yield


def finish(trace: Trace, result: Any, shapes: Shapes, sizes: Sizes | None, donated: Sequence[int],
           because: str) -> Traced:
    """The graph of what was traced."""
    leaves, structure = flatten(result)
    _check_keys(structure)
    outputs = {f"out{i}": x._value for i, x in enumerate(leaves) if isinstance(x, Tensor)}
    written = [c for c in trace.now if trace.now[c] is not trace.cells[c]]
    writes = {f"new{i}": trace.now[c] for i, c in enumerate(written)}
    wanted = {**{f"effect{i}": v for i, v in enumerate(trace.effects)}, **outputs, **writes}  # effects run in order
    stack = next((v.stack for v in [*wanted.values(), *trace.symbols]), None) or current_stack()
    G = stack.operator.open()
    inputs: dict[str, Node] = {}
    cuts: dict[int, Node] = {}
    outside = {f"outside{i}": t for i, t in enumerate(_read_outside(trace, list(wanted.values())))}
    named = [(f"arg{i}", v) for i, v in enumerate(trace.symbols)]
    named += [(f"cell{i}", v) for i, v in enumerate(trace.cells.values())]
    named += [(k, t._value) for k, t in outside.items()]
    for k, v in named:
        inputs[k] = cuts[id(v)] = G.placeholder(k, v.spec)

    def leaf(H: Nodes, v: Value) -> Node:
        if v.array is None:
            raise SymbolValueError(f"{trace.name} depends on a symbol {v.spec} that is none of its arguments",
                                   hint="pass it as an argument, or a tensor that has a value")
        return constant(H, v)

    nodes = dict(zip(wanted, to_nodes(G, list(wanted.values()), cuts, leaf), strict=True))
    names = {cell: f"cell{i}" for i, cell in enumerate(trace.cells)}
    pairs = [(f"new{i}", names[cell]) for i, cell in enumerate(written)]
    given_up = {f"arg{i}": inputs[f"arg{i}"] for i in donated}
    pairs += _donated_pairs({k: nodes[k] for k in outputs}, given_up, set(inputs.values()))
    graph = SymbolicGraph(inputs, nodes, tuple(pairs), trace.name)
    check_sizes(graph)
    return Traced(graph, stack, shapes, sizes, tuple((k, cell) for cell, k in names.items()), tuple(outside.items()),
                  tuple(zip(writes, written, strict=True)), tuple(trace.guards), tuple(outputs), structure,
                  tuple(None if isinstance(x, Tensor) else x for x in leaves), because,
                  {k: v.stack for k, v in named if v.stack is not stack})


class DataDependentError(NotSupportedError):
    """A graph with sizes that depend on data cannot be compiled."""


def check_sizes(graph: SymbolicGraph) -> None:
    """DataDependentError names the first operator with a size that nothing in the graph counts."""
    if not any_unknown():
        return
    counted = {n for node in graph.nodes if node.op.counted for n in names_in(size_attribute(node.op, node.attributes))}
    for node in graph.nodes:
        if has_unknown(node.spec.shape) and not counted.issuperset(n for n in names_in(node.spec) if is_unknown(n)):
            raise DataDependentError(f"{node.op.name} gives {node.spec}, whose size depends on data",
                                     line=show_line(node.line))


def _read_outside(trace: Trace, wanted: Sequence[Value]) -> list[Tensor]:
    """The tensors from outside that the results depend on; what they were computed from is none of the graph's."""
    seen = trace.seen
    order = postorder(wanted, leaf=lambda v: id(v) in seen or v.step is None)
    return [seen[id(v)] for v in order if id(v) in seen]


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
