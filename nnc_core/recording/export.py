"""From recorded steps to a graph: naming both ends after the fact."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

from nnc_core.base.errors import (
    AttributeValueError,
    Error,
    OperandError,
    ShapeError,
    UnconnectedError,
    UnusedInputWarning,
    VariableRebindError,
)
from nnc_core.graph import SymbolicGraph
from nnc_core.operator import OPERATORS, Nodes
from nnc_core.recording.polymorphic import HINT, NamedDims, renamed, resized, try_other_sizes
from nnc_core.recording.sizes import solved
from nnc_core.recording.unshaped_graph import Export, UnshapedGraph
from nnc_core.symbol import Literal, Node, Number, postorder, show_line, users_frame, without_collector
from nnc_core.values.arguments import located
from nnc_core.values.history import is_forgotten
from nnc_core.values.tensor import Tensor
from nnc_core.values.unshaped import Unshaped, text_of
from nnc_core.values.value import Value, is_snapshot, made_at, owned

Outside = Callable[[Nodes, Value], Node]
"""Makes the node of a value that has no history and is no input."""
Make = Callable[[Nodes, Value, "tuple[Node, ...]"], Node]
"""Makes the node of a recorded step on these inputs."""

_TRANSFER = OPERATORS["transfer"]


def as_recorded(F: Nodes, v: Value, inputs: tuple[Node, ...]) -> Node:
    """The node of a step: its operator with its attributes."""
    return F.apply(v.op, inputs, v.attributes)


def to_nodes(F: Nodes, outputs: Sequence[Value], inputs: Mapping[int, Node], outside: Outside,
             make: Make = as_recorded) -> list[Node]:
    """The dynamic graph of these values as interned nodes; `inputs`, by the id of a value, are where it is cut."""
    made = dict(inputs)

    def is_leaf(v: Value) -> bool:
        return v.step is None or (is_snapshot(v) and id(v.step.inputs[0]) not in inputs)

    for v in postorder(outputs, made, leaf=is_leaf):
        if id(v) in made:
            continue
        if is_leaf(v):
            made[id(v)] = outside(F, v)
            continue
        F.table.line = v.line
        made[id(v)] = make(F, v, tuple([made[id(x)] for x in v.inputs]))
    return [made[id(v)] for v in outputs]


def constant(F: Nodes, v: Value) -> Node:
    """An array as a constant of the graph; a scalar by its value."""
    array = v.stack.engine.executor.seen(owned(v).array)
    if v.shape == ():
        return F.filled(shape=(), number=Number(array, v.dtype))
    return F.constant(Literal(array), v.spec)


@located
def export(inputs: Mapping[str, Tensor], outputs: Mapping[str, Tensor], *, capture: str = "error",
           on_unused: str = "error", named_dims: NamedDims | None = None,
           iopairs: Sequence[tuple[str, str]] = (), name: str = "graph") -> SymbolicGraph:
    """The graph between named tensors: what was recorded in deferred or symbolic use.

    Nothing is computed or changed, and the graph names no device: copies between devices become copies between
    places, which are one device when the graph is compiled for one.

    Every output must hang on inputs or constants.  Arrays that are neither are an error, or with capture="constant"
    become constants; scalars are constants.  Every input must reach an output; with on_unused="warn" or "ignore" one
    that does not stays an input, which callers may leave out.

    `named_dims` gives for some inputs one entry an axis: the name of a dimension that may be of another size in each
    call, or None (or the recorded number) for one that may not; ("batch", None) makes [8,3] into [batch,3].
    All specs are inferred again; ShapeError if an operator holds a size that was recorded, or may: `zeros_like(x)` is
    recorded as zeros of such a size.  Numbers that Python
    computed from a size, as in `x / x.shape[0]`, are constants; build on `nnc.var_arr(name, (nnc.Dim("batch"), 3))`
    where these should follow.  `iopairs` are (output, input): the output takes the input's memory, as state does.
    """
    _check_choice("capture", capture, ("error", "constant"))
    _check_choice("on_unused", on_unused, ("error", "warn", "ignore"))
    given, wanted = _named(inputs, "input"), _named(outputs, "output")
    if any(isinstance(v, Unshaped) for v in (*given.values(), *postorder(wanted.values()))):
        return _of_unknown_shape(given, wanted, named_dims, tuple(iopairs), name, on_unused,
                                 partial(export, capture=capture, on_unused="ignore", name=name))
    _check_connected(given, wanted, on_unused)
    polymorphic = renamed(given, named_dims or {})
    specs = {k: v.spec for k, v in given.items()} | polymorphic
    sizes = solved((f"input {k!r}", spec.shape, given[k].shape) for k, spec in polymorphic.items())
    stack = next(iter(wanted.values())).stack
    with without_collector():
        F = stack.operator.open()
        placeholders = {k: F.placeholder(k, specs[k]) for k in given}
        cuts = {id(v): placeholders[k] for k, v in given.items()}
        home = next(iter(given.values()), None)
        maker = _Maker((stack if home is None else home.stack).device.spec.id, sizes)
        nodes = to_nodes(F, list(wanted.values()), cuts, _outside(given, wanted, capture), maker.make)
        graph = SymbolicGraph(placeholders, dict(zip(wanted, nodes, strict=True)), tuple(iopairs), name)
        if sizes:
            try_other_sizes(graph, stack, sizes)
        return graph


def _of_unknown_shape(inputs: dict[str, Value], outputs: dict[str, Value], named_dims: NamedDims | None,
                      iopairs: tuple[tuple[str, str], ...], name: str, on_unused: str, make: Export) -> SymbolicGraph:
    """The graph of symbols of unknown shape, which is made for shapes when they come."""
    if named_dims:
        raise ShapeError("named_dims with symbols of unknown shape, which are of any shape in each call",
                         hint="leave named_dims out")
    opaque = any(isinstance(v, Unshaped) and v.step is not None and v.step.opaque
                 for v in postorder(outputs.values(), {id(v) for v in inputs.values()}))
    _check_connected(inputs, outputs, "ignore" if opaque else on_unused)
    return UnshapedGraph((inputs, outputs), make, iopairs, name, must_be_used=opaque and on_unused == "error")


def _check_choice(what: str, given: str, known: Sequence[str]) -> None:
    if given not in known:
        raise AttributeValueError(f"{what} {given!r} is none of {', '.join(map(repr, known))}")


def _named(tensors: Mapping[str, Tensor], what: str) -> dict[str, Value]:
    for k, t in tensors.items():
        if not isinstance(k, str):
            raise OperandError(f"the name of an {what} is {k!r}, a {type(k).__name__}", hint="names are texts")
        if not isinstance(t, Tensor):
            raise OperandError(f"{what} {k!r} is {type(t).__name__}, not a tensor", hint="nnc.asarray(...)")
    return {k: t._value for k, t in tensors.items()}


# ---- both ends hang together
def _check_connected(inputs: Mapping[str, Value], outputs: Mapping[str, Value], on_unused: str) -> None:
    if not outputs:
        raise UnconnectedError("an export needs at least one output")
    _check_names(inputs)
    cut = {id(v) for v in inputs.values()}
    _check_remembered(outputs, cut)
    for k, v in outputs.items():
        if v.step is None and v.trace is None and id(v) not in cut:
            raise UnconnectedError(f"output {k!r} {text_of(v)} has no recorded history",
                                   hint="compute it inside `with nnc.deferred():`")
    if on_unused != "ignore":
        _report_unused(inputs, outputs, cut, on_unused)


def _check_remembered(outputs: Mapping[str, Value], cut: set[int]) -> None:
    order = postorder(outputs.values(), cut)
    ends = {id(v): v for v in order if id(v) not in cut and is_forgotten(v)}
    if ends:
        reader = next((v for v in order if id(v) not in cut and any(id(x) in ends for x in v.inputs)), None)
        found = next(iter(ends.values()))
        raise UnconnectedError(f"the outputs depend on {found.spec}, computed so many rounds ago that its history was "
                               "freed", line=None if reader is None else made_at(reader),
                               hint="record with nnc.deferred(keep_graph=True), or export from a later tensor as input")


def _check_names(inputs: Mapping[str, Value]) -> None:
    names: dict[int, str] = {}
    for k, v in inputs.items():
        other = names.setdefault(id(v), k)
        if other != k:
            raise VariableRebindError(f"inputs {other!r} and {k!r} are the same tensor {text_of(v)}", line=made_at(v),
                                      hint="give it one name")


def _report_unused(inputs: Mapping[str, Value], outputs: Mapping[str, Value], cut: set[int], on_unused: str) -> None:
    reached = {id(v) for v in postorder(outputs.values(), cut)}
    unused = [k for k, v in inputs.items() if id(v) not in reached]
    if not unused:
        return
    behind = {id(v) for v in postorder(outputs.values())}
    through = [k for k in unused if id(inputs[k]) in behind]
    said = "; ".join(f"input {k!r} reaches no output" + " but through other inputs" * (k in through) for k in unused)
    if on_unused == "warn":
        warnings.warn(f"{said}: callers may leave it out", UnusedInputWarning, stacklevel=users_frame())
        return
    raise UnconnectedError(said, line=made_at(inputs[unused[0]]), hint=(
        f"leave it out, or check that it was used to compute {', '.join(outputs)}; on_unused=\"warn\" keeps it"))


def _outside(inputs: Mapping[str, Value], outputs: Mapping[str, Value], capture: str) -> Outside:
    """Make the conversion of values that are neither inputs nor recorded."""

    def outside(F: Nodes, v: Value) -> Node:
        if v.array is None:
            raise _unnamed_symbol(v, inputs).locate(**_reader(v, inputs, outputs))
        if capture == "error" and prod(v.spec.static_shape) != 1:
            raise UnconnectedError(f"the outputs depend on an array {v.spec} that is neither an input nor a constant",
                                   hint="add it to the inputs, or export(..., capture=\"constant\")"
                                   ).locate(**_reader(v, inputs, outputs))
        return constant(F, v)

    return outside


def _unnamed_symbol(v: Value, inputs: Mapping[str, Value]) -> Error:
    if v.trace.ended:
        return v.trace.refusal(v)  # type: ignore[no-any-return]
    called = getattr(v.trace, "names", {}).get(v)
    which = "a symbol" if called is None else f"the symbol {called!r}"
    return UnconnectedError(f"the outputs depend on {which} {v.spec} that is not among the inputs",
                            hint=f"inputs: {', '.join(inputs)}")


def _reader(v: Value, inputs: Mapping[str, Value], outputs: Mapping[str, Value]) -> dict[str, Any]:
    """The first operator that reads a value, for an error about it."""
    cut = {id(x) for x in inputs.values()}
    for user in postorder(outputs.values(), cut):
        if id(user) not in cut and any(x is v for x in user.inputs):
            return {"operator": user.op.name, "line": show_line(user.line)}
    return {}


# ---- each step
class _Maker:
    """Makes nodes that name no device and, with named dimensions, hold no recorded size."""

    def __init__(self, device: str, sizes: Mapping[str, int]) -> None:
        self.sizes = sizes
        self.places = {device: ""}

    def make(self, F: Nodes, v: Value, inputs: tuple[Node, ...]) -> Node:
        attributes = v.attributes
        if v.op is _TRANSFER:
            attributes = tuple([self.places.setdefault(a, f"place{len(self.places)}") for a in attributes])
        if not self.sizes:
            return F.apply(v.op, inputs, attributes)
        try:
            return resized(F, v, inputs, attributes, self.sizes)
        except Error as error:
            error.hint = HINT
            error.locate(operator=v.op.name, line=show_line(v.line))
            raise
