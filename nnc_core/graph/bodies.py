"""Bodies taken apart for differentiation: the part that runs forward, what it keeps, and the part that runs back.

What the way back reads of the way forward are *residuals*.  A body's residuals become more results of the forward
body, as a tape; whatever costs nothing to make again (views, broadcasts, numbers) is made again from what it is
made of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from nnc_core.base.dtype import is_inexact
from nnc_core.graph.autodiff import depending, reverse
from nnc_core.operator import OPERATORS, PLACEHOLDER, Nodes
from nnc_core.operator.control import CALL, LOOP, PICK, is_tape
from nnc_core.operator.host import AFTER, CALLBACK
from nnc_core.optimiser import Expanding, rebuild
from nnc_core.optimiser.rebuild import Make
from nnc_core.symbol import Body, Node, bodies_of, postorder
from nnc_core.type import Attributes, Op, TupleSpec

_BROADCAST = OPERATORS["broadcast_to"]


def needs_its_body(node: Node) -> bool:
    """A composite without rules is differentiated through its body."""
    return node.op.differentiable and not (node.op.vjp or node.op.partials)


def expanded(G: Nodes, body: Body) -> Body:
    """The body in G's table, with the same placeholders and no composite that lacks a rule."""
    F = G.operator.open(partial(Expanding, wanted=needs_its_body), G.table)
    return Body(body.inputs, tuple(rebuild(body.outputs, F)))


def like(G: Nodes, nodes: Iterable[Node], prefix: str) -> dict[Node, Node]:
    """A placeholder for each node, of its spec."""
    return {x: G.placeholder(f"{prefix}{i}", x.spec) for i, x in enumerate(nodes)}


def live_inputs(body: Body, given: Sequence[bool], carried: int = 0) -> list[Node]:
    """The placeholders that a derivative runs through: those given, and those that in a loop come to depend on them."""
    live = {x for x, on in zip(body.inputs, given, strict=True) if on and is_inexact(x.dtype)}
    pairs = list(zip(body.inputs[:carried], body.outputs[:carried], strict=True))
    order = body.nodes
    while True:
        reached = depending(order, list(live))
        more = {c for c, after in pairs if id(after) in reached and is_inexact(c.dtype)} - live
        if not more:
            return [x for x in body.inputs if x in live]
        live |= more


# ---- functions of the host
def host_functions(outputs: Sequence[Any]) -> set[Any]:
    """Functions of the host that are called for some outputs, or in bodies on the way to them."""
    return called_functions(postorder(outputs))


def called_functions(nodes: Iterable[Any]) -> set[Any]:
    """Functions of the host that these nodes or values call, or nodes in bodies of theirs."""
    found: set[Any] = set()
    pending: list[Iterable[Any]] = [nodes]
    while pending:
        for node in pending.pop():
            if node.op is CALLBACK:
                found.add(node.attributes[0])
            pending += [body.nodes for _, body in bodies_of(node)]
    return found


def silent(functions: set[Any]) -> Make | None:
    """A maker for `rebuild`, so that what runs once more does not run these again for their effects alone."""

    def make(F: Nodes, op: Op, inputs: tuple[Node, ...], attributes: Attributes) -> Node:
        again = op is AFTER and host_functions(inputs[1:]) <= functions
        return inputs[0] if again else F.apply(op, inputs, attributes)

    return make if functions else None


def silenced(body: Body, G: Nodes) -> Body:
    """A body that runs once more beside itself, without what it does for effects alone."""
    functions = host_functions(body.outputs)
    return Body(body.inputs, tuple(rebuild(body.outputs, G, silent(functions)))) if functions else body


# ---- the two ways
class Partition(NamedTuple):
    """A body and its way back."""

    forward: Body
    """The body with its residuals as further results."""
    residuals: list[Node]
    back: list[Node]
    """Cotangents of the nodes that were asked for, computed from `residual_inputs`, cotangents and placeholders."""
    residual_inputs: dict[Node, Node]
    """A placeholder for each residual."""


def partition(G: Nodes, body: Body, seeds: Sequence[tuple[Node, Node]], wrt: Sequence[Node], *,
              extra: Mapping[Node, Node] | None = None, direct: Iterable[Node] = ()) -> Partition:
    """`seeds` are results with their cotangents; `extra` gives values to add to the cotangents of some of `wrt`;
    `direct` are the placeholders that the way back can read itself."""
    given: dict[int, Node] = {}
    for y, g in seeds:
        given[id(y)] = G.add(given[id(y)], g) if id(y) in given else g
    found = reverse(G, body.nodes, given, wrt)
    back = [G.zeros_like(x) if g is None else g for x, g in zip(wrt, found, strict=True)]
    for i, x in enumerate(wrt):
        if extra and x in extra:
            back[i] = extra[x] if found[i] is None else G.add(extra[x], back[i])
    known = _before(back, set(body.nodes) | set(body.inputs))
    residuals = _residuals(back, known, set(body.inputs) - set(direct))
    residual_inputs = like(G, residuals, "residual")
    made = rebuild(back, G.operator.open(table=G.table), silent(host_functions(body.outputs)), residual_inputs)
    return Partition(Body(body.inputs, (*body.outputs, *residuals)), residuals, made, residual_inputs)


def _before(back: Sequence[Node], forward: set[Node]) -> set[Node]:
    """The forward nodes, and loops and calls that the sweep has made to run in their place."""
    known, free = set(forward), set(forward)
    for node in postorder(back):
        if node in free or node.op is PLACEHOLDER or not all(x in free for x in node.inputs):
            continue
        free.add(node)
        whole = node.inputs[0] if node.op is PICK else node
        if whole.op in (LOOP, CALL) and isinstance(whole.spec, TupleSpec) and not any(map(is_tape, whole.spec.parts)):
            known.add(node)
    return known


def _residuals(back: Sequence[Node], known: set[Node], kept_inputs: set[Node]) -> list[Node]:
    """The known nodes that are read."""
    found: dict[Node, None] = {}
    pending = [x for node in postorder(back) if node not in known for x in node.inputs if x in known]
    pending += [x for x in back if x in known]
    seen: set[Node] = set()
    while pending:
        node = pending.pop(0)
        if node in seen:
            continue
        seen.add(node)
        if not node.inputs:
            if node in kept_inputs:
                found[node] = None
        elif _is_made_again(node):
            pending.extend(node.inputs[:1] if node.op is AFTER else node.inputs)
        else:
            found[node] = None
    return list(found)


def _is_made_again(node: Node) -> bool:
    """Views and broadcasts cost nothing; a tape is not kept on a tape: the loop that made it runs again."""
    if node.op is PICK:
        return is_tape(node.spec)
    return node.op.view is not None or node.op is _BROADCAST or isinstance(node.spec, TupleSpec)


def used(outputs: Sequence[Node], among: Iterable[Node]) -> list[Node]:
    """Inputs that some output depends on, in the order given."""
    reached = set(postorder(outputs))
    return [x for x in among if x in reached]
