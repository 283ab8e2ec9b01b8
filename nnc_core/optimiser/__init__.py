"""Floor 6: the optimiser rewrites graphs.  It works on lists of output nodes and knows no graph object."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from nnc_core.base.config import config
from nnc_core.operator import Nodes, Operator
from nnc_core.optimiser import fold, identities, movement  # noqa: F401 - their rewrites register themselves
from nnc_core.optimiser.control import simplify_control
from nnc_core.optimiser.rebuild import Expanding, Inlining, inline_body, rebuild, rebuild_body
from nnc_core.optimiser.registry import REWRITES, Rewrite, Rule, rewrite
from nnc_core.symbol import Node, Symbol, Table
from nnc_core.type import Attributes, Op

__all__ = [
    "REWRITES", "Expanding", "Optimiser", "Rewrite", "Rewriting", "inline_body", "rebuild", "rebuild_body", "rewrite",
]  # fmt: skip


class Rewriting(Nodes):
    """Nodes are simplified when they are made, so one walk over a graph reaches the fixed point of local rules."""

    def __init__(self, symbol: Symbol, table: Table, rules: Mapping[str, Sequence[Rule]]) -> None:
        super().__init__(symbol, table)
        self.rules = rules

    def fresh(self) -> Rewriting:
        return Rewriting(self.symbol, Table(), self.rules)

    def _apply(self, op: Op, inputs: tuple[Node | float, ...], attributes: Attributes) -> Node:
        return self.simplify(super()._apply(op, inputs, attributes))

    def simplify(self, node: Node) -> Node:
        for rule in self.rules.get(node.op.name, ()):
            better = rule(self, node)
            if better is not None and better is not node:
                return better
        return node


class Optimiser:
    """Layer 6: applies the registered rewrites."""

    def __init__(self, operator: Operator) -> None:
        self.operator = operator

    def rewrites(self) -> Iterable[Rewrite]:
        """Those that apply now: under `config.deterministic` the exact ones."""
        return (r for r in REWRITES.values() if r.exact or not config.deterministic)

    def run(self, outputs: Sequence[Node]) -> list[Node]:
        """The same values by fewer and simpler nodes.  Running again changes nothing."""
        rules: dict[str, list[Rule]] = {}
        for entry in self.rewrites():
            for name in entry.operators:
                rules.setdefault(name, []).append(entry.rule)
        found = list(outputs)
        while True:
            found = rebuild(found, Rewriting(self.operator.symbol, Table(), rules))
            better = simplify_control(found, self.operator.open())
            if better is None:
                return found
            found = better

    def expand(self, outputs: Sequence[Node], wanted: Callable[[Node], bool]) -> list[Node]:
        """Replace the composites that are wanted so by their bodies, and those in the bodies likewise."""
        return rebuild(outputs, Expanding(self.operator.symbol, Table(), wanted))

    def inline(self, outputs: Sequence[Node]) -> list[Node]:
        """Calls replaced by the bodies that they call."""
        return rebuild(outputs, Inlining(self.operator.symbol, Table()))
