"""Loop-invariant code motion: what each round would compute anew from captured values is computed once, before it.

Only of loops that are known to run at least once: what they compute is computed in any case, so that nothing appears
that would not have been there, neither an error nor a NaN.  What has effects stays where it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from nnc_core.operator import OPERATORS, PLACEHOLDER, Nodes
from nnc_core.operator.control import LOOP, LoopAttributes, is_tape
from nnc_core.optimiser.rebuild import rebuild
from nnc_core.symbol import Body, Node
from nnc_core.type import TupleSpec, is_static

_BROADCAST = OPERATORS["broadcast_to"]


def hoisted(node: Node, picked: set[int], F: Nodes) -> dict[int, Node] | None:
    """The results that are picked, from a loop that computes less in each round; None if there is nothing to do."""
    if node.op is not LOOP:
        return None
    loop = LoopAttributes.of(node)
    body = loop.body
    if loop.cond is not None or not isinstance(loop.length, int) or loop.length < 1:
        return None
    roots = _roots(body, loop.captured)
    if not roots:
        return None
    outside = rebuild(roots, F, replaced=dict(zip(body.inputs, node.inputs, strict=True)))
    G = F.fresh()
    fixed = {x: G.placeholder(f"fixed{i}", x.spec) for i, x in enumerate(roots)}
    inside = Body((*body.inputs, *fixed.values()), tuple(rebuild(body.outputs, G, replaced=fixed)))
    F.table.line = node.line
    carried, scanned, captured = loop.split(node.inputs)
    made = F.loop(carried, scanned, [*captured, *outside], body=inside, length=loop.length, reverse=loop.reverse)
    return {i: F.pick(made, index=i) for i in picked}


def _roots(body: Body, captured: Sequence[Node]) -> list[Node]:
    """Nodes that are worth computing outside, and are read inside."""
    fixed = set(captured)
    order = body.nodes
    for node in order:
        if node.op is not PLACEHOLDER and all(x in fixed for x in node.inputs) and _is_pure(node):
            fixed.add(node)
    pending = [x for node in order if node not in fixed for x in node.inputs] + list(body.outputs)
    roots: dict[Node, None] = {}
    seen: set[Node] = set()
    for node in pending:
        if node in seen or node not in fixed:
            continue
        seen.add(node)
        if _is_worth_it(node):
            roots[node] = None
        else:
            pending += node.inputs
    return list(roots)


def _is_pure(node: Node) -> bool:
    """True if it may be computed at another time, by one command; control flow may have effects inside."""
    parts = node.spec.parts if isinstance(node.spec, TupleSpec) else (node.spec,)
    op = node.op
    return not (op.host or op.control_dependency or op.bodies or op.data_dependent or any(map(is_tape, parts)))


def _is_worth_it(node: Node) -> bool:
    """Views cost nothing where they are read, and broadcasts less than memory; elementwise operators are computed along
    with what reads them, unless the result takes no more memory than what it is made from."""
    if not node.inputs or node.op.view is not None or node.op is _BROADCAST:
        return False
    if not node.op.elementwise:
        return True
    return all(is_static(x.shape) for x in (node, *node.inputs)) and node.spec.nbytes <= max(
        [x.spec.nbytes for x in node.inputs])
