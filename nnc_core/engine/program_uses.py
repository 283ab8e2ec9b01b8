"""Uses of values in a program, by positions: the last of each, and what is given from outside."""

from __future__ import annotations

from collections.abc import Mapping

from nnc_core.engine.groups import LEAVES, is_number
from nnc_core.engine.program_tree import BranchesItem, LoopItem, ProgramTree
from nnc_core.engine.storage import FOREVER
from nnc_core.symbol import Node, bodies_in


def last_reads(tree: ProgramTree) -> dict[Node, int]:
    """The position of the last item that reads each value itself, views of it not counted.  What a loop reads from
    around it is read until its end; the results of bodies are for ever."""
    last: dict[Node, int] = {}
    for item in tree.every:
        end = item.end
        last.setdefault(item.group.node, end)
        for x in item.group.inputs:
            if last.get(x, -1) < end:
                last[x] = end
        if isinstance(item, LoopItem):
            last |= dict.fromkeys(item.results, FOREVER)
            if item.test is not None:
                last[item.test] = item.end
        elif isinstance(item, BranchesItem):
            last |= dict.fromkeys([y for arm in item.results for y in arm], FOREVER)
    return last


def last_uses(tree: ProgramTree, reads: Mapping[Node, int], outputs: set[Node]) -> dict[Node, int]:
    """The position of each value's last use, its aliases' reads included; outputs are used for ever."""
    last = dict(reads)
    for item in reversed(tree.every):
        group = item.group
        if group.node in tree.aliases:
            x = group.inputs[0]
            last[x] = max(last[x], last[group.node])
    return last | dict.fromkeys(outputs, FOREVER)


def leaves_of(tree: ProgramTree) -> list[Node]:
    """Inputs, constants and numbers that the commands read, each once, in order of first use; no inputs of bodies."""
    found: dict[Node, None] = {}
    inside: set[Node] = set()
    for item in tree.every:
        results: list[Node] = []
        if isinstance(item, LoopItem):
            results = [*item.results, *([item.test] if item.test is not None else [])]
        elif isinstance(item, BranchesItem):
            results = [y for arm in item.results for y in arm]
        for body in bodies_in(item.group.attributes) if item.group.op.bodies else ():
            inside.update(body.inputs)
        for x in (*item.group.inputs, *results):
            if x.op in LEAVES or is_number(x):
                found[x] = None
    return [x for x in found if x not in inside]
