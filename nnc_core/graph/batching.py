"""Bodies run on many examples at once: what was written for one, over a new first axis.

Where an operator has a rule its kernel does all examples in one command, and loops, branches and calls that go the
same way for all examples get batched bodies.  Everything else (where the way depends on an example's data, functions of
the host) goes over the examples in a loop, so that there is nothing that cannot be batched but results whose size
depends on data.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, TypeAlias

from nnc_core.base.errors import NotSupportedError
from nnc_core.graph.batching_rules import RULES, elementwise, repeated
from nnc_core.operator import Nodes
from nnc_core.operator.control import CALL, CASE_OF, LOOP, PICK, LoopAttributes, is_tape
from nnc_core.optimiser import Expanding, rebuild
from nnc_core.symbol import Body, Node, show_line
from nnc_core.type import DimLike, TensorSpec, TupleSpec

Batched: TypeAlias = tuple[Node, bool]
"""A node, and whether it has the examples: along its first axis, but along the second in the tape of a loop."""


class _UnequalError(Exception):
    """The examples cannot go through a body together: loops of theirs have tapes of unequal lengths."""


def batch(F: Any, body: Body, values: Sequence[Any], batched: Sequence[bool], size: DimLike) -> list[Any]:
    """The results of a body, all with the examples along a new first axis; inputs that are not `batched` are the same
    for every example."""
    G = F.for_bodies(values[0])
    wanted = rebuild(body.outputs, G.operator.open(partial(Expanding, wanted=_needs_its_body), G.table))
    body = Body(body.inputs, tuple(wanted))
    try:
        made = batched_body(G, body, batched, [True] * len(body.outputs), size)
    except _UnequalError:
        made = _each_alone(G, body, batched, size)
    known = dict(zip(made.inputs, values, strict=True))
    for node in made.nodes:
        if node.op is PICK:
            known[node] = F.pick(known[node.inputs[0]], index=node.attributes[0])
        elif node not in known:
            known[node] = F.apply(node.op, tuple([known[x] for x in node.inputs]), node.attributes)
    return [known[y] for y in made.outputs]


def _needs_its_body(node: Node) -> bool:
    return not node.op.elementwise and node.op.name not in RULES


def batched_body(G: Nodes, body: Body, given: Sequence[bool], wanted: Sequence[bool], size: DimLike) -> Body:
    """The body with the examples in the inputs that are `given` them, and in the outputs that are `wanted` with them,
    which must be so where they depend on the examples."""
    inputs = [G.placeholder(str(x.attributes[0]), _widened(x.spec, size) if b else x.spec)
              for x, b in zip(body.inputs, given, strict=True)]
    made: dict[Node, Any] = dict(zip(body.inputs, zip(inputs, given, strict=True), strict=True))
    for node in body.nodes:
        if node not in made:
            G.table.line = node.line
            made[node] = _of_node(G, node, [made[x] for x in node.inputs], size)
    outputs = [_as_wanted(G, made[y], b, size) for y, b in zip(body.outputs, wanted, strict=True)]
    return Body(tuple(inputs), tuple(outputs))


def _widened(spec: TensorSpec, size: DimLike) -> TensorSpec:
    first = 1 if is_tape(spec) else 0
    return TensorSpec((*spec.shape[:first], size, *spec.shape[first:]), spec.dtype)


def _as_wanted(G: Nodes, found: Batched, wanted: bool, size: DimLike) -> Node:
    v, batched = found
    if batched or not wanted:
        return v
    if is_tape(v.spec):
        raise _UnequalError
    return repeated(G, v, size)


def _of_node(G: Nodes, node: Node, found: Sequence[Any], size: DimLike) -> Any:
    """The node and whether it is batched; for an operator of several results such a pair for each."""
    if node.op is PICK:
        return found[0][node.attributes[0]]
    values, batched = [v for v, _ in found], [b for _, b in found]
    if not any(batched):
        plain = G.apply(node.op, tuple(values), node.attributes)
        return [(p, False) for p in G.picks(plain)] if isinstance(node.spec, TupleSpec) else (plain, False)
    if node.op.data_dependent:
        raise NotSupportedError("the size of its result depends on data, so that each example may have another",
                                operator=node.op.name, line=show_line(node.line),
                                hint="call it outside of vmap, or give it the size")
    if node.op.bodies:
        return _CONTROL[node.op](G, node, values, batched, size)
    rule = elementwise if node.op.elementwise else RULES.get(node.op.name)
    result = rule(G, node, values, batched, size) if rule is not None else None
    if result is None:
        return _one_by_one(G, node, values, batched, size)
    return [(p, True) for p in G.picks(result)] if isinstance(node.spec, TupleSpec) else (result, True)


# ---- one example after another
def _one_by_one(G: Nodes, node: Node, values: Sequence[Node], batched: Sequence[bool], size: DimLike) -> Any:
    """A loop over the examples that runs one node."""
    several = isinstance(node.spec, TupleSpec)
    parts = node.spec.parts if isinstance(node.spec, TupleSpec) else ()
    if any(is_tape(v.spec) for v in (*node.inputs, *values)) or any(map(is_tape, parts)):
        raise _UnequalError
    H = G.fresh()
    inputs = tuple([H.placeholder(f"x{i}", x.spec) for i, x in enumerate(node.inputs)])
    inner = H.apply(node.op, inputs, node.attributes)
    results = _over_examples(G, Body(inputs, tuple(H.picks(inner)) if several else (inner,)), values, batched, size)
    return [(r, True) for r in results] if several else (results[0], True)


def _over_examples(G: Nodes, body: Body, values: Sequence[Node], batched: Sequence[bool], size: DimLike) -> list[Node]:
    rows, rest = ([i for i, b in enumerate(batched) if b is one] for one in (True, False))
    ordered = Body(tuple([body.inputs[i] for i in (*rows, *rest)]), body.outputs)
    return G.picks(G.loop((), [values[i] for i in rows], [values[i] for i in rest], body=ordered, length=size))


def _each_alone(G: Nodes, body: Body, batched: Sequence[bool], size: DimLike) -> Body:
    """A loop over the examples that runs the whole body."""
    inputs = [G.placeholder(str(x.attributes[0]), _widened(x.spec, size) if b else x.spec)
              for x, b in zip(body.inputs, batched, strict=True)]
    return Body(tuple(inputs), tuple(_over_examples(G, body, inputs, batched, size)))


# ---- control flow that goes the same way for all examples
def _reached(body: Body, given: Sequence[bool]) -> list[bool]:
    """Outputs of a body that depend on some of its inputs."""
    reached = {x for x, b in zip(body.inputs, given, strict=True) if b}
    for node in body.nodes:
        if not reached.isdisjoint(node.inputs):
            reached.add(node)
    return [y in reached for y in body.outputs]


def _loop(G: Nodes, node: Node, values: Sequence[Node], batched: Sequence[bool], size: DimLike) -> Any:
    loop = LoopAttributes.of(node)
    cond, body = loop.cond, loop.body
    carried, over, around = loop.split(batched)
    n = len(carried)
    while True:
        reached = _reached(body, [*carried, *over, *around])
        wider = [a or b for a, b in zip(carried, reached[:n], strict=True)]
        if wider == carried:
            break
        carried = wider
    if cond is not None and any(_reached(cond, [*carried, *around])):
        return _one_by_one(G, node, values, batched, size)
    wanted = [*carried, *reached[n:]]
    step = batched_body(G.fresh(), body, [*carried, *over, *around], wanted, size)
    test = None if cond is None else batched_body(G.fresh(), cond, [*carried, *around], [False], size)
    inits, scanned, captured = loop.split(values)
    first = [_as_wanted(G, (v, b), w, size) for v, b, w in zip(inits, batched[:n], carried, strict=True)]
    rows = [_swapped(G, v) if b and not is_tape(v.spec) else v
            for v, b in zip(scanned, over, strict=True)]
    found = G.picks(G.loop(first, rows, captured, body=step, cond=test, length=loop.length,
                           reverse=loop.reverse))
    return [(_swapped(G, y) if w and i >= n and not is_tape(y.spec) else y, w)
            for i, (y, w) in enumerate(zip(found, wanted, strict=True))]


def _swapped(G: Nodes, x: Node) -> Node:
    """Its first two axes exchanged."""
    return G.permute(x, axes=(1, 0, *range(2, x.ndim)))


def _case_of(G: Nodes, node: Node, values: Sequence[Node], batched: Sequence[bool], size: DimLike) -> Any:
    branches, otherwise = node.attributes
    if batched[0]:
        return _one_by_one(G, node, values, batched, size)
    reached = [_reached(b, batched[1:]) for b in branches]
    wanted = [any(of_one) for of_one in zip(*reached, strict=True)]
    bodies = tuple([batched_body(G.fresh(), b, batched[1:], wanted, size) for b in branches])
    found = G.picks(G.case_of(values[0], values[1:], branches=bodies, otherwise=otherwise))
    return list(zip(found, wanted, strict=True))


def _call(G: Nodes, node: Node, values: Sequence[Node], batched: Sequence[bool], size: DimLike) -> Any:
    body, name = node.attributes
    wanted = _reached(body, batched)
    found = G.picks(G.call(values, body=batched_body(G.fresh(), body, batched, wanted, size), name=name))
    return list(zip(found, wanted, strict=True))


_CONTROL = {LOOP: _loop, CASE_OF: _case_of, CALL: _call}
