"""Graphs between symbols of unknown shape: made for the shapes that come, compiled for each and kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nnc_core.base.cache import LRU
from nnc_core.base.dtype import DType
from nnc_core.base.errors import OperandError, UnassignedError, UnconnectedError, UnknownShapeError
from nnc_core.graph import SymbolicGraph
from nnc_core.operator import CONSTANT, PLACEHOLDER
from nnc_core.operator.control import PICK
from nnc_core.recording.shapes import Shapes, placeholder_like
from nnc_core.recording.symbols import SYMBOLS
from nnc_core.stacks import Stack
from nnc_core.symbol import Literal, Node, Uid, postorder
from nnc_core.type import Op, TensorSpec, admit_numpy
from nnc_core.values.arguments import located
from nnc_core.values.from_host import host_value
from nnc_core.values.modes import current_stack, stack_named
from nnc_core.values.tensor import Tensor
from nnc_core.values.unshaped import SHAPES_KEPT, RecordedCall, Unshaped
from nnc_core.values.value import Value, made_at

Export = Callable[[Mapping[str, Tensor], Mapping[str, Tensor]], SymbolicGraph]
"""Makes the graph between named tensors of known shape."""
Specs = tuple[TensorSpec, ...]


class UnknownSpec(TensorSpec):
    """Stands for a spec that is not known: it may be any, so that it equals each."""

    __slots__ = ("text",)

    def __init__(self, dtype: DType | None = None) -> None:
        self.text = "[?]" if dtype is None else f"{dtype}[?]"

    def __getattr__(self, name: str) -> Any:
        raise UnknownShapeError(f"{name} of a value in a graph of unknown shapes", hint=SPECIALISE)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorSpec)

    def __hash__(self) -> int:
        return hash(UnknownSpec)

    def __repr__(self) -> str:
        return self.text


SPECIALISE = "graph.specialise(x=array) makes it for the shape of an array, without arguments for what is assigned"


class UnshapedGraph(SymbolicGraph):
    """A graph whose shapes are not known: `specialise` makes the graph for shapes, `compile` does so at each call.

    Its own nodes are there for people: they are the recorded calls, with the lines of the user.
    """

    def __init__(self, ends: tuple[Mapping[str, Value], Mapping[str, Value]], make: Export,
                 iopairs: tuple[tuple[str, str], ...], name: str, must_be_used: bool) -> None:
        self.given, self.wanted, self.make, self.must_be_used = dict(ends[0]), dict(ends[1]), make, must_be_used
        self.unshaped = {k: v for k, v in self.given.items() if isinstance(v, Unshaped)}
        self.specialised: LRU[Specs, SymbolicGraph] = LRU(SHAPES_KEPT)
        self._check_leaves()
        picture = _Picture(self.given)
        outputs = {k: picture.node(v) for k, v in self.wanted.items()}
        super().__init__({k: picture.node(v) for k, v in self.given.items()}, outputs, iopairs, name)

    def _check_leaves(self) -> None:
        order = postorder(self.wanted.values(), {id(v) for v in self.given.values()})
        mine = set(map(id, self.given.values()))
        for v in order:
            if isinstance(v, Unshaped) and v.declared is not None and id(v) not in mine:
                raise UnconnectedError(f"the outputs depend on the symbol {v.declared.name!r} that is not among the "
                                       "inputs", line=made_at(v), hint=f"inputs: {', '.join(self.given)}")

    def paired(self, iopairs: tuple[tuple[str, str], ...]) -> UnshapedGraph:
        """The same graph with other iopairs."""
        return UnshapedGraph((self.given, self.wanted), self.make, iopairs, self.name, self.must_be_used)

    @located
    def specialise(self, **given: Any) -> SymbolicGraph:
        """The graph for the shapes of arrays (or specs) by name; of what is left out, for the shape that is assigned.

        The last 16 combinations are kept.
        """
        unknown = [k for k in given if k not in self.given]
        if unknown:
            raise OperandError(f"{self.name!r} has no input {unknown[0]!r}", hint=f"inputs: {', '.join(self.given)}")
        specs = tuple([self._spec(k, v, given.get(k)) for k, v in self.unshaped.items()])
        return self.specialised.find(specs, lambda: self._made(specs))

    def _spec(self, name: str, v: Unshaped, given: Any) -> TensorSpec:
        if given is None:
            if v.declared is not None and v.declared.now is None:
                raise UnassignedError(f"the shape of input {name!r} is not known", hint=SPECIALISE)
            return SYMBOLS.standing_for(v).spec
        if not (hasattr(given, "shape") and hasattr(given, "dtype")):
            raise OperandError(f"input {name!r} is {type(given).__name__}, which has no shape and dtype",
                               hint='an array, or nnc.TensorSpec((2, 3), "float32")')
        dtype = admit_numpy(given.dtype) if v.declared is None else v.declared.dtype
        return TensorSpec(tuple(given.shape), dtype)

    def _made(self, specs: Specs) -> SymbolicGraph:
        ends = {v: self._placeholder(v, spec) for v, spec in zip(self.unshaped.values(), specs, strict=True)}
        with SYMBOLS.lock:
            shapes = Shapes(_not_among_inputs, ends)
            inputs = {k: Tensor(ends[v] if isinstance(v, Unshaped) else v) for k, v in self.given.items()}
            outputs = {k: Tensor(shapes.resolve(v) if isinstance(v, Unshaped) else v) for k, v in self.wanted.items()}
            inputs |= _drawn(inputs, outputs)
        self._check_used()
        made = self.make(inputs, outputs)
        return SymbolicGraph(made.inputs, made.outputs, self.iopairs, self.name)

    def _check_used(self) -> None:
        """UnconnectedError for an input that nothing reads; functions of the user's have told by now what they do."""
        reached: set[int] = set()
        pending = list(self.wanted.values()) if self.must_be_used else []
        for v in pending:
            if id(v) not in reached:
                reached.add(id(v))
                pending += [*v.inputs, *(v.step.hidden if isinstance(v, Unshaped) and v.step is not None else ())]
        for k, v in self.given.items():
            if self.must_be_used and id(v) not in reached:
                raise UnconnectedError(f"input {k!r} reaches no output", line=made_at(v),
                                       hint=f"leave it out, or check that {', '.join(self.wanted)} is made of it")

    def _placeholder(self, v: Unshaped, spec: TensorSpec) -> Value:
        if v.declared is not None:
            return placeholder_like(v, spec, SYMBOLS.names)
        return Value(None, v.stack, spec, None, False, SYMBOLS)

    def compile(self, device: Any = None, **options: Any) -> CompiledByShape:
        """A function that compiles the graph for the shapes of its arguments, at the first call with each combination;
        the last 16 stay compiled."""
        return CompiledByShape(self, current_stack() if device is None else stack_named(device), options)


def _drawn(inputs: Mapping[str, Tensor], outputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The keys of what is drawn once shapes are known: further inputs, named like those of `make_graph`."""
    given = {id(t._value) for t in inputs.values()}
    first = sum(t._value in SYMBOLS.generators for t in inputs.values())
    keys = [v for v in postorder([t._value for t in outputs.values()], given) if v in SYMBOLS.generators]
    return {f"random{first + i}": Tensor(v) for i, v in enumerate([v for v in keys if id(v) not in given])}


def _not_among_inputs(v: Unshaped) -> Value:
    assert v.declared is not None
    raise UnconnectedError(f"the outputs depend on the symbol {v.declared.name!r} that is not among the inputs",
                           hint="a function that was given to nnc.grad or its kin reads it; add it to the inputs")


class CompiledByShape:
    """A graph of unknown shapes in the hands of users: tensors, or host arrays, in, tensors out."""

    def __init__(self, graph: UnshapedGraph, stack: Stack, options: dict[str, Any]) -> None:
        self.graph, self.stack, self.options = graph, stack, options
        self.compiled: LRU[Specs, Any] = LRU(SHAPES_KEPT)

    def __call__(self, **given: Any) -> dict[str, Tensor]:
        """One call: tensors by name in and out."""
        values = {k: x if isinstance(x, Tensor) else Tensor(host_value(x, self._dtype(k), self.stack))
                  for k, x in given.items()}
        found: dict[str, Tensor] = self.for_shapes(**values)(**values)
        return found

    def for_shapes(self, **given: Any) -> Any:
        """The compiled graph for the shapes of arrays (or specs); it has a memory plan, `explain()` and `profile()`."""
        missing = [k for k in self.graph.unshaped if k not in given]
        if missing:
            raise OperandError(f"inputs of {self.graph.name!r}: missing {', '.join(missing)}",
                               hint=f"it takes {', '.join(f'{k}: {n.spec}' for k, n in self.graph.inputs.items())}")
        graph = self.graph.specialise(**{k: given[k] for k in self.graph.unshaped})
        specs = tuple([node.spec for node in graph.inputs.values()])
        return self.compiled.find(specs, lambda: graph.compile(self.stack, **self.options))

    def _dtype(self, name: str) -> Any:
        v = self.graph.given.get(name)
        if isinstance(v, Unshaped):
            return None if v.declared is None else v.declared.dtype
        return None if v is None else v.dtype


# ---- for people
class _Picture:
    """Nodes that show what was recorded."""

    def __init__(self, inputs: Mapping[str, Value]) -> None:
        self.made: dict[int, Node] = {}
        self.calls: dict[int, Node] = {}
        for name, v in inputs.items():
            self.made[id(v)] = Node(PLACEHOLDER, (), (name, _spec_of(v), Uid()), _spec_of(v), None)

    def node(self, wanted: Value) -> Node:
        for v in postorder([wanted], self.made):
            if id(v) not in self.made:
                self.made[id(v)] = self._one(v, tuple([self.made[id(x)] for x in v.inputs]))
        return self.made[id(wanted)]

    def _one(self, v: Value, inputs: tuple[Node, ...]) -> Node:
        if isinstance(v, Unshaped):
            return self._call(v, v.step, inputs)
        if v.step is not None:
            return Node(v.op, inputs, v.attributes, v.spec, v.line)
        if v.array is None:
            return Node(PLACEHOLDER, (), (SYMBOLS.names.get(v, "?"), v.spec, Uid()), v.spec, None)
        return Node(CONSTANT, (), (Literal(None), v.spec), v.spec, None)

    def _call(self, v: Unshaped, call: RecordedCall, inputs: tuple[Node, ...]) -> Node:
        made = self.calls.get(id(call))
        if made is None:
            op = Op(call.name, ("*xs",), tuple(call.shown), _unknown)
            made = self.calls[id(call)] = Node(op, inputs, tuple(call.shown.values()), UnknownSpec(), call.line)
        return made if call.results == 1 else Node(PICK, (made,), (v.index,), UnknownSpec(), call.line)


def _spec_of(v: Value) -> TensorSpec:
    if not isinstance(v, Unshaped):
        return v.spec
    return UnknownSpec(None if v.declared is None else v.declared.dtype)


def _unknown(*given: Any) -> TensorSpec:
    raise UnknownShapeError("a graph of unknown shapes cannot be transformed", hint=SPECIALISE)
