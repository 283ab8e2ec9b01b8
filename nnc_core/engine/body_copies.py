"""Bodies with nodes of their own, so that a node stands for one value of the program, and results with memory of their
own.

The way back of a branch runs its way forward again, and functions are called more than once: bodies share nodes, and
each of these would be computed in several places of one program.  Orders and plans know a value by its node.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nnc_core.engine.groups import COPY, LEAVES, NodeGroup, is_number
from nnc_core.operator import CONSTANT
from nnc_core.operator.control import CASE_OF, PICK, LoopAttributes
from nnc_core.symbol import Body, Node, map_bodies


class BodyCopies:
    """Copies bodies that have nodes in common with `outside` or with a body that was seen before."""

    def __init__(self, outside: Iterable[Node]) -> None:
        self._taken = set(outside)

    def own(self, group: NodeGroup) -> NodeGroup:
        """The group with bodies whose nodes occur nowhere else, constants aside."""
        return group._replace(attributes=map_bodies(group.attributes, self._of_body))

    def _of_body(self, body: Body) -> Body:
        nodes = [x for x in (*body.inputs, *body.nodes) if not _is_shared(x)]
        if not self._taken.isdisjoint(nodes):
            copies: dict[Node, Node] = {}
            for x in dict.fromkeys(nodes):
                copies[x] = Node(x.op, tuple([copies.get(i, i) for i in x.inputs]), x.attributes, x.spec, x.line)
            body = Body(tuple([copies[x] for x in body.inputs]), tuple([copies.get(y, y) for y in body.outputs]))
            nodes = list(copies.values())
        self._taken.update(nodes)
        return body


def _is_shared(node: Node) -> bool:
    """Constants are no values of their own: they are known before the program runs."""
    return node.op is CONSTANT or is_number(node)


def results_of_bodies(group: NodeGroup) -> list[list[Node]]:
    """The results of the condition, if there is one, and of the body of a loop, or of branches, each with memory of
    its own."""
    if group.op is CASE_OF:
        return [own_results(branch.outputs) for branch in group.attributes[0]]
    loop = LoopAttributes.of(group)
    conds = [] if loop.cond is None else [own_results(loop.cond.outputs)]
    return [*conds, own_results(loop.body.outputs, set(loop.carried), loop.carried_count)]


def own_results(nodes: Sequence[Node], movable: set[Node] | frozenset[Node] = frozenset(),
                carried: int = 0) -> list[Node]:
    """Results of a body, copied where they are views, inputs, constants or twice the same; the first `carried` may be
    `movable` values as they are, each once: a pointer moves instead."""
    taken: set[Node] = set()
    results = []
    for i, node in enumerate(nodes):
        computed = node.op not in LEAVES and node.op.view is None and node.op is not PICK and not is_number(node)
        if (computed or (i < carried and node in movable)) and node not in taken:
            results.append(node)
        else:
            results.append(Node(COPY, (node,), (), node.spec, node.line))
        taken.add(results[-1])
    return results
