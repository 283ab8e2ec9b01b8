"""Python functions as bodies of control flow: traced once, with what they read from around them made inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from nnc_core.base.dtype import boolean
from nnc_core.base.errors import OperandError, StateError
from nnc_core.graph.bodies import host_functions
from nnc_core.operator import Nodes
from nnc_core.recording.export import to_nodes
from nnc_core.stacks import Stack
from nnc_core.symbol import Body, Node, Number, bodies_of, postorder, show_line, without_collector
from nnc_core.type import TensorSpec
from nnc_core.values.cell import Cell
from nnc_core.values.data_dependent import DataDependentError
from nnc_core.values.dispatch import F
from nnc_core.values.from_host import host_value
from nnc_core.values.modes import current_trace, tracing
from nnc_core.values.operands import operand
from nnc_core.values.tensor import Tensor
from nnc_core.values.trace import Trace
from nnc_core.values.tree import Structure, flatten, unflatten
from nnc_core.values.value import Handle, Value


class BodyTrace(Trace):
    """A body is traced inside whatever is traced around it, which learns what the body reads."""

    def __init__(self, name: str, arguments: Callable[[], Sequence[str]] = tuple) -> None:
        super().__init__(name, arguments)
        self.around: Trace | None = current_trace.get()
        self.depth = self.around.depth + 1 if self.around is not None else 1
        self.held: dict[Cell, Value] = {}
        """What the cells that the body reads hold around it."""

    def outwards(self) -> Iterator[Trace]:
        """This trace and those around it: a loop, since a hundred of them call each other already."""
        trace: Trace | None = self
        while trace is not None:
            yield trace
            trace = trace.around if isinstance(trace, BodyTrace) else None

    def note(self, tensor: Handle) -> None:
        for trace in self.outwards():
            Trace.note(trace, tensor)
            if tensor._value.trace is not None:
                return

    def made(self, value: Value) -> None:
        if value.step is not None and (value.op.host or any(host_functions(b.outputs) for _, b in bodies_of(value))):
            value.trace = self  # it runs whenever the body does, whatever it depends on
            return
        super().made(value)
        if self.around is not None:
            self.around.made(value)

    def let_go(self, tensor: Handle) -> None:
        for trace in self.outwards():
            Trace.let_go(trace, tensor)

    def size_counted(self) -> None:
        for trace in self.outwards():
            Trace.size_counted(trace)

    def guard(self, read: Callable[[], Any]) -> Any:
        return read() if self.around is None else self.around.guard(read)

    def concretized(self, tensor: Tensor) -> None:
        if self.around is not None:
            self.around.concretized(tensor)

    def read(self, cell: Cell) -> Tensor:
        if cell not in self.now:
            held = self.held[cell] = self._around(cell)
            self.cells[cell] = self.now[cell] = Value(None, held.stack, held.spec, None, False, self)
        return Tensor(self.now[cell])

    def uses(self, cell: Cell) -> bool:
        return super().uses(cell) or (self.around is not None and self.around.uses(cell))

    def outer(self, cell: Cell) -> Value:
        """The value that a cell holds around the body, before it."""
        return self.held[cell] if cell in self.held else self._around(cell)

    def _around(self, cell: Cell) -> Value:
        token = current_trace.set(self.around)
        try:
            return cell.read()._value
        finally:
            current_trace.reset(token)


class TracedBody:
    """A function that was run on symbols."""

    def __init__(self, f: Callable[..., Any], what: str, values: Sequence[Value], specs: Sequence[TensorSpec],
                 arrange: Callable[[list[Tensor]], tuple[Any, ...]]) -> None:
        self.trace = BodyTrace(f"{what} {getattr(f, '__name__', '')}".rstrip())
        self.symbols = [self.trace.symbol(v, s) for v, s in zip(values, specs, strict=True)]
        try:
            with tracing(self.trace):
                self.result = f(*arrange([Tensor(s) for s in self.symbols]))
        finally:
            self.trace.ended = True

    @property
    def written(self) -> list[Cell]:
        return [c for c in self.trace.cells if self.trace.now[c] is not self.trace.cells[c]]

    def captured(self, outputs: Sequence[Value]) -> dict[int, Value]:
        """Outside values that the outputs depend on: by id, the first values met there."""
        order = postorder([*outputs, *self.trace.effects],
                          leaf=lambda v: v.trace is not self.trace and not _is_constant(v))
        return {id(v): v for v in order if v.trace is not self.trace and not _is_constant(v)}

    def read(self) -> dict[Cell, Value]:
        """The symbols of the cells that it reads."""
        return self.trace.cells

    def body(self, stack: Stack, outputs: Sequence[Value], inputs: Sequence[Sequence[Value]],
             token: bool = False) -> Body:
        """`inputs`: for each placeholder the values that it stands for; the first gives its spec.  What has effects
        comes before every output; with `token` there is one output that stands for it, for want of others."""
        G = stack.operator.open()
        placeholders = [G.placeholder(f"x{i}", vs[0].spec) for i, vs in enumerate(inputs)]
        cuts = {id(v): p for vs, p in zip(inputs, placeholders, strict=True) for v in vs}
        with without_collector():
            nodes = to_nodes(G, [*outputs, *self.trace.effects], cuts, _unexpected)
            results, effects = nodes[: len(outputs)], nodes[len(outputs) :]
            if token and not results:
                results = [G.filled(shape=(), number=Number(True, boolean))]
            ordered = [G.after(y, effects) for y in results] if effects else results
            return Body(tuple(placeholders), tuple(ordered))


def keep_effects(traced: Sequence[TracedBody], results: Sequence[Value]) -> None:
    """Make the surrounding trace run bodies that have effects, whether it uses their results or not."""
    trace = current_trace.get()
    if trace is not None and results and has_effects(traced):
        trace.effects.append(results[0])


def has_effects(traced: Sequence[TracedBody]) -> bool:
    return any(t.trace.effects for t in traced)


def _unexpected(G: Nodes, v: Value) -> Node:
    raise AssertionError(f"{v.spec} of {show_line(v.line)} was not captured")


def _is_constant(v: Value) -> bool:
    """Recorded, and made of nothing: it is made inside the body too."""
    return v.array is None and v.step is not None and not v.step.inputs


class BodyCaptures:
    """Values that several bodies of a node read from around them, each once: arrays, symbols of outer traces, cells."""

    def __init__(self, traced: Sequence[TracedBody], outputs: Sequence[Sequence[Value]],
                 moving: Sequence[Cell] = ()) -> None:
        self.values: dict[int, Value] = {}
        self.inner: dict[int, list[list[Value]]] = {}
        for i, (t, ys) in enumerate(zip(traced, outputs, strict=True)):
            for v in t.captured(ys).values():
                self._add(v, i, v, len(traced))
            for cell, symbol in t.read().items():
                if cell not in moving:
                    self._add(t.trace.outer(cell), i, symbol, len(traced))

    def _add(self, outer: Value, i: int, inner: Value, count: int) -> None:
        self.values[id(outer)] = outer
        self.inner.setdefault(id(outer), [[] for _ in range(count)])[i].append(inner)

    def operands(self) -> list[Value]:
        return list(self.values.values())

    def inputs(self, i: int) -> list[list[Value]]:
        """For each operand what stands for it in function number i."""
        return [self.inner[k][i] or [v] for k, v in self.values.items()]


def no_writes(traced: TracedBody, what: str) -> None:
    if traced.written:
        names = ", ".join(repr(c.name) for c in traced.written)
        raise StateError(f"{what} writes {names}: it may be asked any number of times",
                         hint="write state (and draw random numbers) in the body")


def no_counts(traced: TracedBody, outputs: Sequence[Value]) -> None:
    """Refuse elements of symbols that are counted in a body: graphs are cut where sizes come about, bodies are not."""
    trace = traced.trace
    if not trace.counts:
        return
    order = postorder([*outputs, *trace.effects], leaf=lambda v: v.trace is not trace)
    for v in order:
        if v.step is not None and v.op.data_dependent and any(x.trace is not None for x in v.inputs):
            raise DataDependentError(f"{trace.name!r} counts elements, by {v.op.name}, where it is recorded",
                                     line=show_line(v.line),
                                     hint="nnc.where and sums by masks keep sizes, as length= and size= do")


def stack_among(*trees: Any) -> Stack | None:
    """That of the first tensor: numbers and host arrays beside it go where it is."""
    return next((x._value.stack for tree in trees for x in flatten(tree)[0] if isinstance(x, Tensor)), None)


def values_of(tree: Any, stack: Stack | None = None) -> tuple[list[Value], Structure]:
    """The leaves of an argument as values; numbers and host arrays become tensors."""
    leaves, structure = flatten(tree)
    stack = stack_among(leaves) if stack is None else stack
    return [as_value(x, stack) for x in leaves], structure


def as_value(x: Any, stack: Stack | None = None) -> Value:
    v = operand(x, stack)
    return v if isinstance(v, Value) else host_value(v, stack=stack)


def results_like(tree: Any, specs: Sequence[TensorSpec], structure: Structure, stack: Stack, what: str) -> list[Value]:
    """The leaves of a result that has to be like something: numbers take the dtype there."""
    leaves, found = flatten(tree)
    if found != structure:
        raise OperandError(f"{what} gives {_shown(found)}, it should give {_shown(structure)}",
                           hint="return the same structure, with as many elements, as is passed in")
    out = []
    for x, spec in zip(leaves, specs, strict=True):
        v = operand(x, stack)
        out.append(v if isinstance(v, Value) else F.broadcast_to(F.full(shape=(), value=v, dtype=spec.dtype),
                                                                 shape=spec.shape))
    return out


def _shown(structure: Structure) -> str:
    kind, keys, parts = structure
    if kind is None:
        return "*"
    inside = [f"{k!r}: {_shown(p)}" for k, p in zip(keys, parts, strict=True)] if keys else list(map(_shown, parts))
    return f"{kind.__name__}({', '.join(inside)})"


def tensors(structure: Structure, values: Sequence[Value]) -> Any:
    return unflatten(structure, iter([Tensor(v) for v in values]))
