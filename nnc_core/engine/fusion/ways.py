"""Ways through a graph whose nodes are being joined into commands: what comes after what, and an order of it all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from nnc_core.engine.groups import NodeGroup
from nnc_core.symbol import Node

MOST_NODES = 1 << 14
"""Nodes of a graph up to which ways are kept: they take memory by the square of the count, 32 MiB here."""


class Ways:
    """The commands that lie behind each command.  Nodes are added from the outputs back.

    In graphs of more than MOST_NODES no ways are kept, and there may be one between any two.
    """

    def __init__(self, nodes: int) -> None:
        self.kept = nodes <= MOST_NODES
        self._number: dict[Node, int] = {}
        """Of the command that computes a node."""
        self._behind: list[int] = []
        """For each command those that need it, near or far, as bits by their numbers."""
        self._before: list[set[int]] = []
        """For each command those that it reads from."""

    def add(self, node: Node, users: Iterable[Node]) -> None:
        """A command of its own."""
        if not self.kept:
            return
        number = self._number[node] = len(self._behind)
        self._behind.append(0)
        self._before.append(set())
        self._lead_on(number, users)

    def join(self, node: Node, other: Node, users: Iterable[Node]) -> None:
        """The command of another node computes this one too."""
        if not self.kept:
            return
        number = self._number[node] = self._number[other]
        self._lead_on(number, [user for user in users if self._number[user] != number])

    def merge(self, one: Node, other: Node, nodes: Iterable[Node]) -> None:
        """Make the commands of two nodes one; `nodes` are what the other computes."""
        number, old = self._number[one], self._number[other]
        self._number |= dict.fromkeys(nodes, number)
        self._behind[number] |= self._behind[old]
        self._before[number] |= self._before[old]
        self._before[old].add(number)
        self._spread(self._before[number], 1 << number | self._behind[number])

    def lead(self, nodes: Iterable[Node], to: Node) -> bool:
        """Tell whether the commands of some nodes may have to run before that of another."""
        if not self.kept:
            return True
        number = self._number[to]
        return any(n == number or self._behind[n] >> number & 1 for n in {self._number[node] for node in nodes})

    def _lead_on(self, number: int, users: Iterable[Node]) -> None:
        """Put what reads a command, and what lies behind that, behind the command and all before it."""
        further = 0
        for n in {self._number[user] for user in users}:
            further |= 1 << n | self._behind[n]
            self._before[n].add(number)
        self._spread([number], further)

    def _spread(self, numbers: Iterable[int], further: int) -> None:
        """Put what lies behind some commands behind all before them, too."""
        waiting = list(numbers)
        while waiting:
            n = waiting.pop()
            if further & ~self._behind[n]:
                self._behind[n] |= further
                waiting += self._before[n]


def in_order(groups: Mapping[Node, Sequence[NodeGroup]]) -> list[NodeGroup]:
    """The groups that compute each node, those of one cluster next to each other, inputs first."""
    found: list[NodeGroup] = []
    done, opened = set[int](), set[int]()
    for node in groups:
        waiting = [node]
        while waiting:
            made = groups[waiting[-1]]
            if id(made) in done:
                waiting.pop()
                continue
            needed = [x for group in made for x in group.inputs
                      if x in groups and groups[x] is not made and id(groups[x]) not in done]
            if needed:
                assert id(made) not in opened, f"a command of {waiting[-1]} would wait for itself"
                opened.add(id(made))
                waiting += reversed(needed)
                continue
            waiting.pop()
            done.add(id(made))
            found += made
    return found
