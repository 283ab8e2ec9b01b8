"""Ways through a graph whose nodes are being joined into commands: what comes after what, and an order of it all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from nnc_core.engine.groups import NodeGroup
from nnc_core.symbol import Node


class Ways:
    """The commands that lie behind each command.  Nodes are added from the outputs back."""

    def __init__(self) -> None:
        self._number: dict[Node, int] = {}
        """Of the command that computes a node."""
        self._behind: list[int] = []
        """For each command those that need it, near or far, as bits by their numbers."""

    def add(self, node: Node, users: Iterable[Node]) -> None:
        """A command of its own."""
        self._number[node] = len(self._behind)
        self._behind.append(self._reached(users))

    def join(self, node: Node, other: Node, users: Iterable[Node]) -> None:
        """The command of another node computes this one too."""
        number = self._number[node] = self._number[other]
        self._extend(number, self._reached([user for user in users if self._number[user] != number]))

    def lead(self, nodes: Iterable[Node], to: Node) -> bool:
        """Tell whether the commands of some nodes have to run before that of another."""
        return bool(self._reached(nodes) >> self._number[to] & 1)

    def _reached(self, nodes: Iterable[Node]) -> int:
        found = 0
        for number in {self._number[node] for node in nodes}:
            found |= 1 << number | self._behind[number]
        return found

    def _extend(self, number: int, further: int) -> None:
        if further & ~self._behind[number]:
            self._behind = [behind | further if n == number or behind >> number & 1 else behind
                            for n, behind in enumerate(self._behind)]


def in_order(groups: Mapping[Node, Sequence[NodeGroup]]) -> list[NodeGroup]:
    """The groups that compute each node, those of one cluster next to each other, inputs first."""
    found: list[NodeGroup] = []
    done: set[int] = set()
    for node in groups:
        waiting = [node]
        while waiting:
            made = groups[waiting[-1]]
            needed = [x for group in made for x in group.inputs
                      if x in groups and groups[x] is not made and id(groups[x]) not in done]
            if needed:
                waiting += reversed(needed)
                continue
            waiting.pop()
            if id(made) not in done:
                done.add(id(made))
                found += made
    return found
