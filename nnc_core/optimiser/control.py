"""Simplifying control flow as a whole: what a rewrite of one node cannot see.

Loops that do the same are merged (the taped loop that a gradient adds, with the loop it was made from); results,
carried values and operands that nobody reads are dropped; what a loop carries but never changes becomes captured; a
branch whose index is known takes the place of its node.  All of it is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nnc_core.operator import OPERATORS, Nodes
from nnc_core.operator.control import CALL, CASE_OF, LOOP, PICK, TRIPS
from nnc_core.optimiser.rebuild import inline_body, rebuild
from nnc_core.symbol import Body, Node, postorder

_FILLED = OPERATORS["filled"]


def simplify_control(outputs: Sequence[Node], F: Nodes) -> list[Node] | None:
    """The same values by less control flow; None if there is nothing to do."""
    order = postorder(outputs)
    if not any(node.op.bodies for node in order):
        return None
    merged = _merge(order, F)
    if merged:
        return rebuild(outputs, F, replaced=merged)
    return _made_smaller(outputs, order, F)


def _made_smaller(outputs: Sequence[Node], order: Sequence[Node], F: Nodes) -> list[Node] | None:
    """Inputs first, so that each node sees what has become of those before it."""
    picked: dict[Node, set[int]] = {}
    for node in order:
        if node.op is PICK:
            picked.setdefault(node.inputs[0], set()).add(node.attributes[0])
    new: dict[Node, Node] = {}
    results: dict[Node, dict[int, Node]] = {}
    for node in order:
        if node.op is PICK and node.inputs[0] in results:
            new[node] = results[node.inputs[0]][node.attributes[0]]
            continue
        inputs = tuple([new[x] for x in node.inputs])
        F.table.line = node.line
        same = all(a is b for a, b in zip(inputs, node.inputs, strict=True))
        new[node] = F.table.adopt(node) if same else F._apply(node.op, inputs, node.attributes)
        made = _smaller(new[node], picked.get(node, set()), F) if node.op.bodies else None
        if made is not None:
            results[node] = made
    return [new[o] for o in outputs] if results else None


def _merge(order: Sequence[Node], F: Nodes) -> dict[Node, Node]:
    """Replacements for the picks of loops that go through the same values as an earlier one."""
    known: dict[Any, list[Node]] = {}
    for node in order:
        if node.op is LOOP:
            cond, body, length, carried, scanned, reverse = node.attributes
            core = Body(body.inputs, body.outputs[:carried])
            known.setdefault((node.inputs, cond, core, length, carried, scanned, reverse), []).append(node)
    replaced: dict[Node, Node] = {}
    for key, group in known.items():
        if len(group) > 1:
            replaced |= _joined(group, key, order, F)
            break  # the others may have had these among their inputs
    return replaced


def _joined(group: Sequence[Node], key: Any, order: Sequence[Node], F: Nodes) -> dict[Node, Node]:
    """One loop that stacks up what all of them do."""
    inputs, cond, _, length, carried, scanned, reverse = key
    first: Body = group[0].attributes[1]
    G = F.fresh()
    outputs = rebuild(first.outputs, G)
    offsets = {group[0]: 0}
    for loop in group[1:]:
        offsets[loop] = len(outputs) - carried
        outputs += inline_body(loop.attributes[1], G, first.inputs)[carried:]
    F.table.line = group[0].line
    rest = inputs[carried + scanned :]
    whole = F.loop(inputs[:carried], inputs[carried : carried + scanned], rest, cond=cond, length=length,
                   body=Body(first.inputs, tuple(outputs)), reverse=reverse)
    picks = [p for p in order if p.op is PICK and p.inputs[0] in offsets]
    at = {p: p.attributes[0] + (offsets[p.inputs[0]] if p.attributes[0] >= carried else 0) for p in picks}
    return {p: F.pick(whole, index=at[p]) for p in picks}


def _smaller(node: Node, picked: set[int], F: Nodes) -> dict[int, Node] | None:
    """The results that are picked, from a smaller node; None if it is as small as can be."""
    F.table.line = node.line
    if node.op is LOOP:
        return _smaller_loop(node, picked, F)
    if node.op is CASE_OF:
        return _chosen(node, F) or _smaller_branches(node, picked, F)
    return _smaller_call(node, picked, F) if node.op is CALL else None


def _smaller_loop(node: Node, picked: set[int], F: Nodes) -> dict[int, Node] | None:
    cond, body, length, n, m, reverse = node.attributes
    c, x, k = body.inputs[:n], body.inputs[n : n + m], body.inputs[n + m :]
    outer = dict(zip(body.inputs, node.inputs, strict=True))
    stacked = [j for j in range(n, len(body.outputs)) if j in picked]
    carried, read = _needed(cond, body, n, picked, stacked)
    constant = [i for i in carried if body.outputs[i] is c[i]]
    numbers = [p for p in k if outer[p].op is _FILLED]
    rows = [p for p in x if p in read] or (list(x[:1]) if length == TRIPS and cond is None else [])
    shared = [p for p in k if p in read and p not in numbers]
    same = {p: next(q for q in shared if outer[q] is outer[p]) for p in shared}
    if (len(carried), len(constant), len(rows), len(set(same.values())), len(stacked)) == (
            n, 0, m, len(k), len(body.outputs) - n):
        return None
    kept = [i for i in carried if i not in constant]
    captured = [*[p for p in shared if same[p] is p], *[c[i] for i in constant]]
    of_cond = {} if cond is None else dict(zip(cond.inputs, (*c, *k), strict=True))
    within = {p: same[p] for p in shared} | {p: outer[p] for p in numbers if p in read}
    G = F.fresh()
    outputs = rebuild([body.outputs[i] for i in (*kept, *stacked)], G,
                      replaced={p: q for p, q in within.items() if p is not q})
    smaller = Body((*[c[i] for i in kept], *rows, *captured), tuple(outputs))
    loop = F.loop([outer[c[i]] for i in kept], [outer[p] for p in rows], [outer[p] for p in captured], body=smaller,
                  cond=_condition(cond, of_cond, [*[c[i] for i in kept], *captured], within, F), length=length,
                  reverse=reverse)
    made = {j: F.pick(loop, index=i) for i, j in enumerate((*kept, *stacked))}
    return made | {i: outer[c[i]] for i in constant}


def _needed(cond: Body | None, body: Body, n: int, picked: set[int],
            stacked: Sequence[int]) -> tuple[list[int], set[Node]]:
    """Which carried values somebody needs, and which placeholders of the body are read for them."""
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


def _chosen(node: Node, F: Nodes) -> dict[int, Node] | None:
    """The results of the branch that a known index chooses."""
    (branches, otherwise), (index, *operands) = node.attributes, node.inputs
    if index.op is not _FILLED:
        return None
    number = int(index.attributes[1].value)
    if not 0 <= number < len(branches) - otherwise:
        if not otherwise:
            return None  # it is an error when the graph runs
        number = len(branches) - 1
    return dict(enumerate(inline_body(branches[number], F, operands)))


def _smaller_branches(node: Node, picked: set[int], F: Nodes) -> dict[int, Node] | None:
    (branches, otherwise), (index, *operands) = node.attributes, node.inputs
    kept = sorted(picked)
    bodies = [Body(b.inputs, tuple([b.outputs[j] for j in kept])) for b in branches]
    read = [i for i in range(len(operands)) if any(b.inputs[i] in set(b.nodes) for b in bodies)]
    if len(kept) == len(branches[0].outputs) and len(read) == len(operands):
        return None
    smaller = tuple([Body(tuple([b.inputs[i] for i in read]), b.outputs) for b in bodies])
    made = F.case_of(index, [operands[i] for i in read], branches=smaller, otherwise=otherwise)
    return {j: F.pick(made, index=i) for i, j in enumerate(kept)}


def _smaller_call(node: Node, picked: set[int], F: Nodes) -> dict[int, Node] | None:
    body, name = node.attributes
    kept = sorted(picked)
    smaller = Body(body.inputs, tuple([body.outputs[j] for j in kept]))
    within = set(smaller.nodes)
    read = [i for i, p in enumerate(body.inputs) if p in within]
    if len(kept) == len(body.outputs) and len(read) == len(body.inputs):
        return None
    smaller = Body(tuple([body.inputs[i] for i in read]), smaller.outputs)
    made = F.call([node.inputs[i] for i in read], body=smaller, name=name)
    return {j: F.pick(made, index=i) for i, j in enumerate(kept)}
