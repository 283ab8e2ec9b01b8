"""The namespace in which rules run: nodes are simplified when they are made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import chain

from nnc_core.base.errors import ReplacementCycleError
from nnc_core.operator import Nodes, Operator
from nnc_core.optimiser.rewrite import Rewrite, Rule
from nnc_core.symbol import Node, Table


class Rewriting(Nodes):
    """One walk over a graph reaches the fixed point of local rules.

    `uses` tells how often each node of the graph is read, for rules that ask; without it nobody is said to be read
    once.  `anew` are the rules for nodes that stay as they were, where the graph has been rewritten by the others; all
    of them if it is None.
    """

    def __init__(self, operator: Operator, table: Table, rules: Mapping[str, Sequence[Rule]],
                 uses: Mapping[Node, int] | None = None, anew: Mapping[str, Sequence[Rule]] | None = None) -> None:
        super().__init__(operator, table)
        self.rules, self.uses = rules, dict(uses or {})
        self.anew = rules if anew is None else anew

    def fresh(self) -> Rewriting:
        return self.operator.open(partial(Rewriting, rules=self.rules, anew=self.anew))

    def follow(self, old: Node, new: Node) -> None:
        """Count a node's readers for the one that takes its place, so that a chain is rewritten in one walk."""
        if old in self.uses:
            self.uses[new] = self.uses.get(new, 0) + self.uses[old]

    def simplify(self, node: Node) -> Node:
        rules = self.rules.get(node.op.name)
        return node if rules is None else self._by(rules, node)

    def kept(self, node: Node) -> Node:
        if self.anew is self.rules:
            return self.simplify(node)
        rules = self.anew.get(node.op.name)
        return node if rules is None else self._by(rules, node)

    def _by(self, rules: Sequence[Rule], node: Node) -> Node:
        for rule in rules:
            try:
                better = rule(self, node)
            except ReplacementCycleError:  # the simpler form is made of an operator that this one stands for
                continue
            if better is not None and better is not node:
                return better
        return node


def used_once(F: Nodes, node: Node) -> bool:
    """True if nothing else reads a node, so that it is gone when what reads it is rewritten."""
    return isinstance(F, Rewriting) and F.uses.get(node) == 1


def uses_of(outputs: Sequence[Node], order: Sequence[Node]) -> Counter[Node]:
    """Count the readers of each node of an order; an output is read by the user."""
    return Counter(chain(outputs, chain.from_iterable([node.inputs for node in order])))


def rules_of(rewrites: Iterable[Rewrite]) -> dict[str, list[Rule]]:
    """The rules for each operator."""
    rules: dict[str, list[Rule]] = {}
    for entry in rewrites:
        for name in entry.operators:
            rules.setdefault(name, []).append(entry.rule)
    return rules
