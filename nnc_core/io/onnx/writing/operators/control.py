"""Loops and branches, whose bodies are graphs inside the graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from nnc_core.base.dtype import boolean, int64
from nnc_core.io.onnx.writing.held import Held
from nnc_core.io.onnx.writing.records import WrittenGraph, WrittenNode
from nnc_core.io.onnx.writing.table import Written, says, writes
from nnc_core.operator import Nodes
from nnc_core.operator.control import LoopAttributes
from nnc_core.optimiser.rebuild import inline_body
from nnc_core.symbol import Body, Node
from nnc_core.type import TensorSpec

if TYPE_CHECKING:
    from nnc_core.io.onnx.writing.writer import NodeWriter


W = TypeVar("W")


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
def _asked(loop: LoopAttributes) -> int | None:
    """The number of the carried value that is the condition itself."""
    if loop.cond is None:
        return None
    return next((k for k, x in enumerate(loop.cond.inputs[: loop.carried_count]) if x is loop.cond.outputs[0]), None)


def _is_loop_of_onnx(node: Node) -> bool:
    loop = LoopAttributes.of(node)
    return loop.cond is None or _asked(loop) == loop.carried_count - 1


@says("loop")
def _carrying_its_condition(F: Nodes, *given: Any) -> Any:
    """A loop as ONNX has it: a round says whether there is another.  The condition is what is carried last."""
    end = len(given) - len(LoopAttributes._fields)
    loop = LoopAttributes(*given[end:])
    carried, _, captured = loop.split(given[:end])
    assert loop.cond is not None
    G, count, asked = F.fresh(), loop.carried_count, _asked(loop)
    before, after, asks = [*loop.carried], [*loop.carried_on], [*loop.cond.inputs[:count]]
    order = list(range(count))
    if asked is None:
        carried += inline_body(loop.cond, F, [*carried, *captured])
        after += inline_body(loop.cond, G, [*after, *loop.captured])
        before, asks = ([*x, G.placeholder("going", TensorSpec((), boolean))] for x in (before, asks))
        order.append(count)
    else:
        order.append(order.pop(asked))
    before, after, asks, carried = ([x[k] for k in order] for x in (before, after, asks, carried))
    body = Body((*before, *loop.captured), tuple(after))
    cond = Body((*asks, *loop.cond.inputs[count:]), (asks[-1],))
    found = F.picks(F.loop(carried, (), captured, body=body, cond=cond))
    return F.together(*[found[order.index(k)] for k in range(count)])


@writes("loop", fits=_is_loop_of_onnx)
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
    """For a number of rounds, or while the condition holds, which ONNX' loops carry in a place of its own."""
    carried, _, captured = loop.split(node.inputs)
    asked = _asked(loop)
    going = (w.b.store.name("going"), TensorSpec((), boolean))
    state = [going if k == asked else (w.b.store.name("carried"), x.spec) for k, x in enumerate(loop.carried)]
    inner = _bind(w, loop.body, [*[Held(name) for name, _ in state], *map(w.same, captured)])
    holds = going[0] if asked is None else inner.read(loop.carried_on[asked])
    outputs = [_result(inner, holds, going[1]), *_results(inner, _but(asked, loop.body.outputs))]
    inputs = [(w.b.store.name("round"), TensorSpec((), int64)), going, *_but(asked, state)]
    # Without a condition at the start, ONNX' own evaluator makes no round.
    start = w.b.constant(True, boolean) if asked is None else w.read(carried[asked])
    rounds = w.scalar(loop.length, int64) if asked is None else ""
    made = list(w.b.ops("Loop", rounds, start, *[w.read(x) for x in _but(asked, carried)], count=len(outputs) - 1,
                        body=WrittenGraph("round", inputs, outputs, inner.b.nodes)))
    if asked is not None:  # what loops end by
        made.insert(asked, w.b.constant(False, boolean))
    return tuple([_turned(w, name) if loop.reverse and k >= loop.carried_count else name
                  for k, name in enumerate(made)])


def _but(number: int | None, values: Sequence[W]) -> list[W]:
    """All values but that of this number."""
    return [x for k, x in enumerate(values) if k != number]


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
