"""Dead results and operands of a loop removed, by what is known of it from outside.

Results, carried values, rows and captured values that nobody reads are dropped, those that come twice come once,
numbers and constants are written into the body; what the loop carries but never changes becomes captured.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from nnc_core.operator import CONSTANT, Nodes
from nnc_core.operator.control import TRIPS, LoopAttributes
from nnc_core.optimiser.inspect import FILLED
from nnc_core.optimiser.rebuild import rebuild
from nnc_core.symbol import Body, Node, postorder

KNOWN = (FILLED, CONSTANT)
"""Operators whose results may be written into a body."""


class _Needed(NamedTuple):
    """The part of a loop that is needed, in terms of the body's inputs and of numbers of its outputs."""

    changed: list[int]
    """Carried values that rounds change."""
    constant: list[int]
    """Carried values that no round changes."""
    stacked: list[int]
    """Outputs whose rows are stacked up, each output once."""
    rows: list[Node]
    captured: list[Node]
    stands_for: dict[Node, Node]
    """Inputs that are read, with the first that is the same, or with the number that they are."""

    @staticmethod
    def of(loop: LoopAttributes, outer: Mapping[Node, Node], picked: set[int], stacked: list[int]) -> _Needed:
        """`outer` are the operands of the body's inputs."""
        carried, read = _read(loop, picked, stacked)
        constant = [i for i in carried if loop.body.outputs[i] is loop.carried[i]]
        numbers = [p for p in loop.captured if outer[p].op in KNOWN]
        # where no condition ends a loop over rows of unknown number, some tape says how often it goes round
        counting = loop.scanned[:1] if loop.length == TRIPS and loop.cond is None else ()
        rows = [p for p in loop.scanned if p in read] or counting
        captured = [p for p in loop.captured if p in read and p not in numbers]
        first = _first_of(rows, outer) | _first_of(captured, outer)
        return _Needed([i for i in carried if i not in constant], constant, stacked,
                       [p for p in rows if first[p] is p], [p for p in captured if first[p] is p],
                       first | {p: outer[p] for p in numbers if p in read})

    def is_all_of(self, loop: LoopAttributes) -> bool:
        return (len(self.changed) == loop.carried_count and len(self.stacked) == len(loop.stacked)
                and len(self.rows) + len(self.captured) == loop.scanned_count + len(loop.captured))

    def captured_by(self, loop: LoopAttributes) -> list[Node]:
        """Inputs that the smaller loop captures: carried values that nobody changes come last."""
        return [*self.captured, *[loop.carried[i] for i in self.constant]]

    def body(self, loop: LoopAttributes, F: Nodes) -> Body:
        """A round of the smaller loop."""
        replaced = {p: q for p, q in self.stands_for.items() if p is not q}
        outputs = rebuild([loop.body.outputs[i] for i in (*self.changed, *self.stacked)], F.fresh(), replaced=replaced)
        carried = [loop.carried[i] for i in self.changed]
        return Body((*carried, *self.rows, *self.captured_by(loop)), tuple(outputs))

    def condition(self, loop: LoopAttributes, F: Nodes) -> Body | None:
        """The condition of the smaller loop, on the inputs that are left."""
        if loop.cond is None:
            return None
        of_body = dict(zip(loop.cond.inputs, (*loop.carried, *loop.captured), strict=True))
        own = {q: p for p, q in reversed(of_body.items())}
        stand_in = {p: self.stands_for.get(q, q) for p, q in of_body.items()}
        replaced = {p: own.get(q, q) for p, q in stand_in.items() if own.get(q, q) is not p}
        (output,) = rebuild(loop.cond.outputs, F.fresh(), replaced=replaced)
        inputs = [*[loop.carried[i] for i in self.changed], *self.captured_by(loop)]
        return Body(tuple([own[q] for q in inputs]), (output,))


def pruned_loop(node: Node, picked: set[int], F: Nodes) -> dict[int, Node] | None:
    """The results that are picked, from a smaller loop; None if it is as small as can be."""
    loop = LoopAttributes.of(node)
    outer = dict(zip(loop.body.inputs, node.inputs, strict=True))
    n, outputs = loop.carried_count, loop.body.outputs
    first = {outputs[j]: j for j in reversed(range(n, len(outputs))) if j in picked}
    needed = _Needed.of(loop, outer, picked, sorted(first.values()))
    if needed.is_all_of(loop):
        return None
    made = F.loop([outer[loop.carried[i]] for i in needed.changed], [outer[p] for p in needed.rows],
                  [outer[p] for p in needed.captured_by(loop)], body=needed.body(loop, F), length=loop.length,
                  reverse=loop.reverse, cond=needed.condition(loop, F))
    results = {j: F.pick(made, index=i) for i, j in enumerate((*needed.changed, *needed.stacked))}
    again = {j: results[first[outputs[j]]] for j in picked if j >= n}
    return results | again | {i: outer[loop.carried[i]] for i in needed.constant}


def _first_of(placeholders: Iterable[Node], outer: Mapping[Node, Node]) -> dict[Node, Node]:
    """Map each placeholder to the first one that stands for the same."""
    first: dict[Node, Node] = {}
    return {p: first.setdefault(outer[p], p) for p in placeholders}


def _read(loop: LoopAttributes, picked: set[int], stacked: Sequence[int]) -> tuple[list[int], set[Node]]:
    """Carried values that are needed, and the inputs of the body that are read for them."""
    numbers = range(loop.carried_count)
    wanted = {i for i in numbers if i in picked}
    read: set[Node] = set()
    if loop.cond is not None:
        within = set(postorder(loop.cond.outputs))
        wanted |= {i for i in numbers if loop.cond.inputs[i] in within}
        read |= {p for p, q in zip((*loop.carried, *loop.captured), loop.cond.inputs, strict=True) if q in within}
    while True:
        read |= set(postorder([loop.body.outputs[i] for i in (*sorted(wanted), *stacked)]))
        more = {i for i in numbers if loop.carried[i] in read} - wanted
        if not more:
            return sorted(wanted), read
        wanted |= more
