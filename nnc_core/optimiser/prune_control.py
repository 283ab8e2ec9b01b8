"""Dead results and operands of one node of control flow removed, by what is known of it from outside.

Results and operands that nobody reads are dropped, operands that come twice come once, numbers and constants are
written into the bodies, where they can be folded; a branch whose index is known takes the place of its node. Loops are
pruned by `prune_loops`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from nnc_core.operator import Nodes
from nnc_core.operator.control import CALL, CASE_OF, LOOP
from nnc_core.optimiser.inspect import FILLED
from nnc_core.optimiser.prune_loops import KNOWN, pruned_loop
from nnc_core.optimiser.rebuild import inline_body, rebuild
from nnc_core.symbol import Body, Node, postorder


def pruned(node: Node, picked: set[int], F: Nodes) -> dict[int, Node] | None:
    """The results that are picked, from a smaller node; None if it is as small as can be."""
    F.table.line = node.line
    if node.op is LOOP:
        return pruned_loop(node, picked, F)
    if node.op is CASE_OF:
        return _chosen(node, F) or _pruned_branches(node, picked, F)
    return _pruned_call(node, picked, F) if node.op is CALL else None


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
            if operands[i].op not in KNOWN:
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
