"""From recorded steps to a graph: naming both ends after the fact."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

from nnc_core.base.errors import UnconnectedError
from nnc_core.dynamic.tensor import Tensor
from nnc_core.dynamic.value import Value
from nnc_core.graph import SymbolicGraph
from nnc_core.operator import Nodes
from nnc_core.symbol import Literal, Node, Number, postorder, show_line, without_collector

Outside = Callable[[Nodes, Value], Node]
"""Makes the node of a value that has no history and is no input."""


def to_nodes(F: Nodes, outputs: Sequence[Value], inputs: Mapping[int, Node], outside: Outside) -> list[Node]:
    """The dynamic graph of these values as interned nodes; `inputs`, by the id of a value, are where it is cut."""
    made = dict(inputs)
    for v in postorder(outputs, made):
        if id(v) in made:
            continue
        if v.step is None:
            made[id(v)] = outside(F, v)
            continue
        F.table.line = v.step.line
        made[id(v)] = F._apply(v.step.op, tuple([made[id(x)] for x in v.step.inputs]), v.step.attributes)
    return [made[id(v)] for v in outputs]


def constant(F: Nodes, v: Value) -> Node:
    """An array as a constant of the graph; a scalar by its value."""
    array = v.stack.engine.executor.download(v.array)
    if v.shape == ():
        return F.filled(shape=(), number=Number(array, v.dtype))
    return F.constant(Literal(array), v.spec)


def export(inputs: Mapping[str, Tensor], outputs: Mapping[str, Tensor], *, capture: str = "error",
           name: str = "graph") -> SymbolicGraph:
    """The graph between named tensors: what was recorded in deferred or symbolic use.

    Every input must reach an output, and every output must hang on inputs or constants.  Arrays that are neither are
    an error, or with capture="constant" become constants; scalars are constants.
    """
    if capture not in ("error", "constant"):
        raise UnconnectedError(f"capture {capture!r} is neither 'error' nor 'constant'")
    given = {k: t._value for k, t in inputs.items()}
    wanted = {k: t._value for k, t in outputs.items()}
    _check_connected(given, wanted)
    stack = next(iter([*wanted.values(), *given.values()])).stack

    def outside(F: Nodes, v: Value) -> Node:
        if v.array is None:
            raise UnconnectedError(f"the outputs depend on a symbol {v.spec} that is not among the inputs",
                                   hint=f"inputs: {', '.join(given)}")
        if capture == "error" and prod(v.spec.static_shape) != 1:
            raise UnconnectedError(f"the outputs depend on an array {v.spec} that is neither an input nor a constant",
                                   hint="add it to the inputs, or export(..., capture=\"constant\")")
        return constant(F, v)

    with without_collector():
        F = stack.operator.open()
        placeholders = {k: F.placeholder(k, v.spec) for k, v in given.items()}
        cuts = {id(v): placeholders[k] for k, v in given.items()}
        nodes = to_nodes(F, list(wanted.values()), cuts, outside)
        return SymbolicGraph(placeholders, dict(zip(wanted, nodes, strict=True)), (), name)


def _check_connected(inputs: Mapping[str, Value], outputs: Mapping[str, Value]) -> None:
    if not outputs:
        raise UnconnectedError("an export needs at least one output")
    cut = {id(v) for v in inputs.values()}
    if len(cut) < len(inputs):
        raise UnconnectedError(f"two of the inputs {', '.join(inputs)} are the same tensor")
    for k, v in outputs.items():
        if v.step is None and v.trace is None and id(v) not in cut:
            raise UnconnectedError(f"output {k!r} has no recorded history",
                                   hint="compute it inside `with nnc.deferred():`")
    reached = {id(v) for v in postorder(outputs.values(), cut)}
    for k, v in inputs.items():
        if id(v) not in reached:
            raise UnconnectedError(f"input {k!r} reaches no output", line=show_line(v.line),
                                   hint=f"leave it out, or check that it was used to compute {', '.join(outputs)}")
