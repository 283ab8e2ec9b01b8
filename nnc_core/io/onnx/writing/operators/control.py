"""Loops and branches, whose bodies are graphs inside the graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from nnc_core.base.dtype import boolean, int64
from nnc_core.io.onnx.writing.held import Held
from nnc_core.io.onnx.writing.records import WrittenGraph, WrittenNode
from nnc_core.io.onnx.writing.table import Written, writes
from nnc_core.operator.control import LoopAttributes
from nnc_core.symbol import Body, Node
from nnc_core.type import TensorSpec

if TYPE_CHECKING:
    from nnc_core.io.onnx.writing.writer import NodeWriter


@writes("pick")
def _pick(w: NodeWriter, node: Node) -> Written:
    return w.held[node.inputs[0]][node.attributes[0]]  # type: ignore[no-any-return]


@writes("together")
def _together(w: NodeWriter, node: Node) -> Written:
    return tuple(map(w.same, node.inputs))


@writes("call")
def _call(w: NodeWriter, node: Node) -> Written:
    """Written out where it is called."""
    body: Body = node.attributes[0]
    inner = w.beside(body.nodes)
    inner.held.update(zip(body.inputs, map(w.same, node.inputs), strict=True))
    inner.write(body.nodes)
    return tuple(map(inner.same, body.outputs))


# ---- bodies as graphs
def _bind(w: NodeWriter, body: Body, given: Sequence[Held]) -> NodeWriter:
    """A writer of a body whose inputs are held like this."""
    inner = w.inside(body.nodes)
    inner.held.update(zip(body.inputs, given, strict=True))
    inner.write(body.nodes)
    return inner


def _named(w: NodeWriter, places: Iterable[Node], stem: str) -> list[tuple[str, TensorSpec]]:
    return [(w.b.store.name(stem), x.spec) for x in places]


def _result(inner: NodeWriter, name: str, spec: TensorSpec) -> tuple[str, TensorSpec]:
    """A result of a body under a name that only it has."""
    made = inner.b.store.name("result")
    inner.b.nodes.append(WrittenNode("Identity", [name], [made], {}))
    return made, spec


def _results(inner: NodeWriter, outputs: Iterable[Node]) -> list[tuple[str, TensorSpec]]:
    return [_result(inner, inner.read(y), y.spec) for y in outputs]


def _parts(node: Node) -> Sequence[TensorSpec]:
    spec: Any = node.spec
    return spec.parts  # type: ignore[no-any-return]


# ---- loops
@writes("loop")
def _loop(w: NodeWriter, node: Node) -> Written:
    attributes = LoopAttributes.of(node)
    return _scan(w, node, attributes) if attributes.scanned_count else _repeat(w, node, attributes)


def _scan(w: NodeWriter, node: Node, loop: LoopAttributes) -> Written:
    carried, scanned, captured = loop.split(node.inputs)
    inputs = [*_named(w, loop.carried, "carried"), *_named(w, loop.scanned, "row")]
    inner = _bind(w, loop.body, [*[Held(name) for name, _ in inputs], *map(w.same, captured)])
    graph = WrittenGraph("round", inputs, _results(inner, loop.body.outputs), inner.b.nodes)
    stacked = len(loop.stacked)
    way = int(loop.reverse)
    return w.b.ops("Scan", *[w.read(x) for x in (*carried, *scanned)], count=len(_parts(node)), body=graph,
                   num_scan_inputs=loop.scanned_count, scan_input_directions=[way] * loop.scanned_count,
                   **({"scan_output_directions": [way] * stacked} if stacked else {}))


def _repeat(w: NodeWriter, node: Node, loop: LoopAttributes) -> Written:
    """For a number of rounds, or while the condition holds."""
    carried, _, captured = loop.split(node.inputs)
    around = list(map(w.same, captured))
    inputs = [(w.b.store.name("round"), TensorSpec((), int64)), (w.b.store.name("going"), TensorSpec((), boolean)),
              *_named(w, loop.carried, "carried")]
    inner = _bind(w, loop.body, [*[Held(name) for name, _ in inputs[2:]], *around])
    results = _results(inner, loop.body.outputs)
    going = inputs[1][0]
    start = ""
    if loop.cond is not None:
        now = [*[Held(name) for name, _ in results[: loop.carried_count]], *around]
        going = _condition(inner, loop.cond, now)
        start = _condition(w, loop.cond, [*map(w.same, carried), *around])
    outputs = [_result(inner, going, TensorSpec((), boolean)), *results]
    graph = WrittenGraph("round", inputs, outputs, inner.b.nodes)
    rounds = "" if loop.cond is not None else w.scalar(loop.length, int64)
    made = w.b.ops("Loop", rounds, start, *[w.read(x) for x in carried], count=len(_parts(node)), body=graph)
    return tuple([_turned(w, name) if loop.reverse and k >= loop.carried_count else name
                  for k, name in enumerate(made)])


def _condition(w: NodeWriter, cond: Body, given: Sequence[Held]) -> str:
    inner = w.beside(cond.nodes)
    inner.held.update(zip(cond.inputs, given, strict=True))
    inner.write(cond.nodes)
    return inner.read(cond.outputs[0])


def _turned(w: NodeWriter, name: str) -> str:
    """Rows in reverse."""
    one, end = w.b.integers([-1]), w.b.integers([-(2**63 - 1)])
    return w.b.op("Slice", name, one, end, w.b.integers([0]), one)


# ---- branches
@writes("case_of")
def _case_of(w: NodeWriter, node: Node) -> Written:
    """One question after another; the last branch has what no other has."""
    index, *operands = node.inputs
    branches: tuple[Body, ...] = node.attributes[0]
    given = list(map(w.same, operands))
    condition = _condition_of(index)
    if condition is not None and len(branches) == 2:
        return _if(w, w.read(condition), branches[0], given, lambda other: _inline(other, branches[1], given))
    return _choice(w, w.cast(w.read(index), index.dtype, int64), branches, 0, given)


def _condition_of(index: Node) -> Node | None:
    """The condition of which the index is 0 where it holds, as `cond` makes it."""
    opposite = index.inputs[0] if index.op.name == "cast" else index
    return opposite.inputs[0] if opposite.op.name == "logical_not" else None


def _choice(w: NodeWriter, index: str, branches: Sequence[Body], first: int, given: Sequence[Held]) -> tuple[str, ...]:
    if len(branches) == 1:
        return _inline(w, branches[0], given)
    chosen = w.b.op("Equal", index, w.b.constant(first, int64))
    return _if(w, chosen, branches[0], given, lambda other: _choice(other, index, branches[1:], first + 1, given))


def _inline(w: NodeWriter, branch: Body, given: Sequence[Held]) -> tuple[str, ...]:
    inner = w.beside(branch.nodes)
    inner.held.update(zip(branch.inputs, given, strict=True))
    inner.write(branch.nodes)
    return tuple([inner.read(y) for y in branch.outputs])


def _if(w: NodeWriter, chosen: str, branch: Body, given: Sequence[Held],
        otherwise: Callable[[NodeWriter], tuple[str, ...]]) -> tuple[str, ...]:
    """The branch where the condition holds, else what is written into a graph of its own."""
    this, other = _bind(w, branch, given), w.inside([])
    then = WrittenGraph("then", [], _results(this, branch.outputs), this.b.nodes)
    specs = [y.spec for y in branch.outputs]
    results = [_result(other, n, s) for n, s in zip(otherwise(other), specs, strict=True)]
    return w.b.ops("If", chosen, count=len(specs), then_branch=then,
                   else_branch=WrittenGraph("else", [], results, other.b.nodes))
