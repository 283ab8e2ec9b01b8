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
    """For each update the other readers of its target, through views; not those that have to run after it, because
    they need the new value or wait for another update that does."""
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
    users: dict[_Command, list[_Command]] = {}
    for command in commands.values():
        for needed in command.inputs:
            users.setdefault(needed, []).append(command)
    after: dict[int, list[_Command]] = {}
    for target, found in readers.items():
        update = commands[update_of[target]]
        later = _from(update, users)
        after[id(update)] = [commands[g.node] for g in found if commands[g.node] not in later]
        for reader in after[id(update)]:
            users.setdefault(reader, []).append(update)
    return after


def _from(command: _Command, users: Mapping[_Command, Sequence[_Command]]) -> set[_Command]:
    """A command and everything that runs after it."""
    found, pending = {command}, [command]
    while pending:
        new = [c for c in users.get(pending.pop(), ()) if c not in found]
        found.update(new)
        pending += new
    return found
