"""Dead results and operands of one node of control flow removed, by what is known of it from outside.

Results, carried values and operands that nobody reads are dropped, operands and rows that come twice come once, numbers
and constants are written into the bodies, where they can be folded; what a loop carries but never changes becomes
captured; a branch whose index is known takes the place of its node.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from nnc_core.operator import CONSTANT, Nodes
from nnc_core.operator.control import CALL, CASE_OF, LOOP, TRIPS, LoopAttributes
from nnc_core.optimiser.inspect import FILLED
from nnc_core.optimiser.rebuild import inline_body, rebuild
from nnc_core.symbol import Body, Node, postorder

_KNOWN = (FILLED, CONSTANT)


def pruned(node: Node, picked: set[int], F: Nodes) -> dict[int, Node] | None:
    """The results that are picked, from a smaller node; None if it is as small as can be."""
    F.table.line = node.line
    if node.op is LOOP:
        return _pruned_loop(node, picked, F)
    if node.op is CASE_OF:
        return _chosen(node, F) or _pruned_branches(node, picked, F)
    return _pruned_call(node, picked, F) if node.op is CALL else None


# ---- loops
def _pruned_loop(node: Node, picked: set[int], F: Nodes) -> dict[int, Node] | None:
    cond, body, length, n, m, reverse = attributes = LoopAttributes.of(node)
    c, x, k = attributes.carried, attributes.scanned, attributes.captured
    outer = dict(zip(body.inputs, node.inputs, strict=True))
    ys = {body.outputs[j]: j for j in reversed(range(n, len(body.outputs))) if j in picked}
    stacked = sorted(ys.values())
    carried, read = _needed(cond, body, n, picked, stacked)
    constant = [i for i in carried if body.outputs[i] is c[i]]
    numbers = [p for p in k if outer[p].op in _KNOWN]
    counting = x[:1] if length == TRIPS and cond is None else ()  # some tape says how often it goes round
    rows, shared = [p for p in x if p in read] or counting, [p for p in k if p in read and p not in numbers]
    same = _first_of(rows, outer) | _first_of(shared, outer)
    if (len(carried), len(constant), len(set(same.values())), len(stacked)) == (
            n, 0, m + len(k), len(body.outputs) - n):
        return None
    kept = [i for i in carried if i not in constant]
    rows = [p for p in rows if same[p] is p]
    captured = [*[p for p in shared if same[p] is p], *[c[i] for i in constant]]
    of_cond = {} if cond is None else dict(zip(cond.inputs, (*c, *k), strict=True))
    within = same | {p: outer[p] for p in numbers if p in read}
    G = F.fresh()
    outputs = rebuild([body.outputs[i] for i in (*kept, *stacked)], G,
                      replaced={p: q for p, q in within.items() if p is not q})
    pruned_body = Body((*[c[i] for i in kept], *rows, *captured), tuple(outputs))
    loop = F.loop([outer[c[i]] for i in kept], [outer[p] for p in rows], [outer[p] for p in captured],
                  body=pruned_body, length=length, reverse=reverse,
                  cond=_condition(cond, of_cond, [*[c[i] for i in kept], *captured], within, F))
    made = {j: F.pick(loop, index=i) for i, j in enumerate((*kept, *stacked))}
    again = {j: made[ys[body.outputs[j]]] for j in picked if j >= n}
    return made | again | {i: outer[c[i]] for i in constant}


def _first_of(placeholders: Sequence[Node], outer: dict[Node, Node]) -> dict[Node, Node]:
    """Map each placeholder to the first one that stands for the same."""
    first: dict[Node, Node] = {}
    return {p: first.setdefault(outer[p], p) for p in placeholders}


def _needed(cond: Body | None, body: Body, n: int, picked: set[int],
            stacked: Sequence[int]) -> tuple[list[int], set[Node]]:
    """Carried values that are needed, and the placeholders of the body that are read for them."""
    c = body.inputs[:n]
    wanted = {i for i in range(n) if i in picked}
    read: set[Node] = set()
    if cond is not None:
        within = set(postorder(cond.outputs))
        wanted |= {i for i in range(n) if cond.inputs[i] in within}
        read |= {p for p, q in zip((*c, *body.inputs[n:]), cond.inputs, strict=True) if q in within}
    while True:
        read |= set(postorder([body.outputs[i] for i in (*sorted(wanted), *stacked)]))
        more = {i for i in range(n) if c[i] in read} - wanted
        if not more:
            return sorted(wanted), read
        wanted |= more


def _condition(cond: Body | None, of_cond: dict[Node, Node], order: Sequence[Node], within: dict[Node, Node],
               F: Nodes) -> Body | None:
    """The condition on the inputs that are left, given in the body's terms."""
    if cond is None:
        return None
    own = {q: p for p, q in reversed(of_cond.items())}  # the condition's placeholder for one of the body's
    G = F.fresh()
    stand_in = {p: within.get(q, q) for p, q in of_cond.items()}
    replaced = {p: own.get(q, q) for p, q in stand_in.items() if own.get(q, q) is not p}
    (output,) = rebuild(cond.outputs, G, replaced=replaced)
    return Body(tuple([own[q] for q in order]), (output,))


# ---- branches and calls
def _chosen(node: Node, F: Nodes) -> dict[int, Node] | None:
    """The results of the branch that a known index chooses."""
    (branches, otherwise), (index, *operands) = node.attributes, node.inputs
    if index.op is not FILLED:
        return None
    number = int(index.attributes[1].value)
    if not 0 <= number < len(branches) - otherwise:
        if not otherwise:
            return None  # it is an error when the graph runs
        number = len(branches) - 1
    return dict(enumerate(inline_body(branches[number], F, operands)))


def _pruned_branches(node: Node, picked: set[int], F: Nodes) -> dict[int, Node] | None:
    (branches, otherwise), (index, *operands) = node.attributes, node.inputs
    less = _Pruned.of(branches, operands, picked, F)
    if less is None:
        return None
    made = F.case_of(index, less.operands, branches=less.bodies, otherwise=otherwise)
    return {j: F.pick(made, index=i) for i, j in enumerate(less.results)}


def _pruned_call(node: Node, picked: set[int], F: Nodes) -> dict[int, Node] | None:
    body, name = node.attributes
    less = _Pruned.of((body,), node.inputs, picked, F)
    if less is None:
        return None
    made = F.call(less.operands, body=less.bodies[0], name=name)
    return {j: F.pick(made, index=i) for i, j in enumerate(less.results)}


class _Pruned(NamedTuple):
    """Bodies that run once, with the results and operands that are needed."""

    bodies: tuple[Body, ...]
    operands: list[Node]
    results: list[int]

    @staticmethod
    def of(bodies: Sequence[Body], operands: Sequence[Node], picked: set[int], F: Nodes) -> _Pruned | None:
        results = sorted(picked)
        read = set(postorder([b.outputs[j] for b in bodies for j in results]))
        needed = [i for i in range(len(operands)) if any(b.inputs[i] in read for b in bodies)]
        first: dict[Node, int] = {}
        for i in needed:
            if operands[i].op not in _KNOWN:
                first.setdefault(operands[i], i)
        if len(results) == len(bodies[0].outputs) and len(first) == len(operands):
            return None
        made = tuple([_pruned_body(b, operands, needed, first, results, F) for b in bodies])
        return _Pruned(made, list(first), results)


def _pruned_body(body: Body, operands: Sequence[Node], needed: Sequence[int], first: dict[Node, int],
               results: Sequence[int], F: Nodes) -> Body:
    stand_ins = {body.inputs[i]: body.inputs[first[x]] if x in first else x
                 for i, x in ((i, operands[i]) for i in needed)}
    outputs = rebuild([body.outputs[j] for j in results], F.fresh(),
                      replaced={p: q for p, q in stand_ins.items() if p is not q})
    return Body(tuple([body.inputs[i] for i in first.values()]), tuple(outputs))
