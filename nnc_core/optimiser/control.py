"""Simplifying control flow as a whole, in bodies too: what a rewrite of one node cannot see.

Loops that do the same are merged (the taped loop that a gradient adds, with the loop it was made from); every node of
control flow is made as small as what is around it allows, and what does not change from round to round is computed
before them.  All of it is exact but for `take_out_sums`, which adds in another order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from nnc_core.operator import Nodes
from nnc_core.operator.control import LOOP, PICK, LoopAttributes
from nnc_core.optimiser.hoist import hoisted
from nnc_core.optimiser.prune_control import pruned
from nnc_core.optimiser.rebuild import inline_body, rebuild
from nnc_core.optimiser.summed_products import without_sums
from nnc_core.symbol import Body, Node, map_bodies, postorder

Change: TypeAlias = "Callable[[Node, set[int], Nodes], dict[int, Node] | None]"
"""(node of control flow, its results that are read) -> these, otherwise; None if there is nothing to do."""
Whole: TypeAlias = "Callable[[Sequence[Node], Nodes], list[Node] | None]"


def simplify_control(outputs: Sequence[Node], F: Nodes, order: Sequence[Node] | None = None) -> list[Node] | None:
    """The same values by less control flow; None if there is nothing to do.

    One step of it, everywhere at once: what becomes possible by that is done when it is called again.  `order` is all
    that the outputs depend on, where it is known.
    """
    order = order or postorder(outputs)
    if not any([node.op.bodies for node in order]):
        return None
    return _merged(outputs, order, F) or _changed(outputs, order, F, pruned, simplify_control)


def hoist(outputs: Sequence[Node], F: Nodes, order: Sequence[Node] | None = None) -> list[Node] | None:
    """The same values by loops that compute less in each round; None if there is nothing to do.

    It comes last: loops that do the same are found while they still look the same.
    """
    order = order or postorder(outputs)
    if not any([node.op.bodies for node in order]):
        return None
    return _changed(outputs, order, F, hoisted, hoist)


def take_out_sums(outputs: Sequence[Node], F: Nodes, order: Sequence[Node] | None = None) -> list[Node] | None:
    """About the same values by loops that carry no sums of products; None if there is nothing to do."""
    order = order or postorder(outputs)
    if not any([node.op.bodies for node in order]):
        return None
    return _changed(outputs, order, F, without_sums, take_out_sums)


def _changed(outputs: Sequence[Node], order: Sequence[Node], F: Nodes, change: Change,
             whole: Whole) -> list[Node] | None:
    """Each node of control flow by itself, what is in its bodies before; inputs first, so that each sees what has
    become of those before it."""
    def inner(body: Body) -> Body:
        found = whole(body.outputs, F.fresh())
        return body if found is None else Body(body.inputs, tuple(found))

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
        attributes = map_bodies(node.attributes, inner) if node.op.bodies else node.attributes
        new[node] = _with(node, inputs, attributes, F)
        made = change(new[node], picked.get(node, set()), F) if node.op.bodies else None
        if made is not None:
            results[node] = made
    changed = any(a is not b for a, b in new.items())
    return [new[o] for o in outputs] if changed or results else None


def _with(node: Node, inputs: tuple[Node, ...], attributes: tuple[Any, ...], F: Nodes) -> Node:
    """The node on other inputs and bodies; itself if they are its own."""
    F.table.line = node.line
    if all(a is b for a, b in zip((*inputs, *attributes), (*node.inputs, *node.attributes), strict=True)):
        return F.table.adopt(node)
    return F.apply(node.op, inputs, attributes)


# ---- loops that do the same
def _merged(outputs: Sequence[Node], order: Sequence[Node], F: Nodes) -> list[Node] | None:
    """Merge loops: one for all that carry the same values in the same way; what makes their inputs may merge too."""
    known: dict[Any, list[Node]] = {}
    for node in order:
        if node.op is LOOP:
            loop = LoopAttributes.of(node)
            core = Body(loop.body.inputs, loop.carried_on)
            known.setdefault((node.inputs, loop._replace(body=core)), []).append(node)
    groups = {loop: group for group in known.values() if len(group) > 1 for loop in group}
    if not groups:
        return None
    new: dict[Node, Node] = {}
    joined: dict[Node, tuple[Node, dict[Node, int]]] = {}
    for node in order:
        inputs = tuple([new[x] for x in node.inputs])
        if node in groups and groups[node][0] not in joined:
            joined[groups[node][0]] = _joined(groups[node], inputs, F)
        if node.op is PICK and node.inputs[0] in groups:
            (made,), (index,) = node.inputs, node.attributes
            whole, offsets = joined[groups[made][0]]
            F.table.line = node.line
            later = offsets[made] if index >= LoopAttributes.of(made).carried_count else 0
            new[node] = F.pick(whole, index=index + later)
        else:
            new[node] = _with(node, inputs, node.attributes, F)
    return [new[o] for o in outputs]


def _joined(group: Sequence[Node], inputs: tuple[Node, ...], F: Nodes) -> tuple[Node, dict[Node, int]]:
    """One loop that stacks up what all of them do, and how much later it stacks what each of them did."""
    first = LoopAttributes.of(group[0])
    body, n = first.body, first.carried_count
    G = F.fresh()
    outputs = rebuild(body.outputs, G)
    offsets = {group[0]: 0}
    for loop in group[1:]:
        offsets[loop] = len(outputs) - n
        outputs += inline_body(LoopAttributes.of(loop).body, G, body.inputs)[n:]
    F.table.line = group[0].line
    carried, scanned, captured = first.split(inputs)
    whole = F.loop(carried, scanned, captured, cond=first.cond, length=first.length,
                   body=Body(body.inputs, tuple(outputs)), reverse=first.reverse)
    return whole, offsets
