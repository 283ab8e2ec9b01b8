"""The order of commands: inputs first, and updates in place after every other reader of what they overwrite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nnc_core.engine.fuse import Group
from nnc_core.symbol import Node, postorder


class _Command:
    """A group linked to the groups that it needs."""

    __slots__ = ("group", "inputs")

    def __init__(self, group: Group) -> None:
        self.group = group
        self.inputs: tuple[_Command, ...] = ()


def schedule(groups: Sequence[Group], outputs: Sequence[Node], updates: Mapping[Node, Node]) -> list[Group]:
    """`updates`: output -> the input whose memory it should take."""
    if not updates:
        return list(groups)  # already inputs first
    commands = {g.node: _Command(g) for g in groups}
    for command in commands.values():
        command.inputs = tuple([commands[x] for x in command.group.inputs if x in commands])
    after = _readers_first(groups, commands, updates)
    roots = [commands[n] for n in outputs if n in commands]
    return [c.group for c in postorder(roots, (), after)]


def _readers_first(groups: Sequence[Group], commands: Mapping[Node, _Command],
                   updates: Mapping[Node, Node]) -> dict[int, list[_Command]]:
    """For each update the other readers of its target, through views; not those that need the new value themselves."""
    update_of = {target: output for output, target in updates.items() if output in commands}
    origin: dict[Node, Node] = {}  # a view reads what it is a view of
    readers: dict[Node, list[Group]] = {}
    for group in groups:
        for x in group.inputs:
            base = origin.get(x, x)
            if base in update_of:
                readers.setdefault(base, []).append(group)
                if group.op.view is not None:
                    origin[group.node] = base
    after: dict[int, list[_Command]] = {}
    for target, found in readers.items():
        update = update_of[target]
        later = _users_of(update, groups)
        after[id(commands[update])] = [commands[g.node] for g in found if g.node is not update and g.node not in later]
    return after


def _users_of(node: Node, groups: Sequence[Group]) -> set[Node]:
    """Everything computed from a node."""
    found = {node}
    for group in groups:
        if not found.isdisjoint(group.inputs):
            found.add(group.node)
    return found
