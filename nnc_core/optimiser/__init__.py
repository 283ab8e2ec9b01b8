"""Floor 6: the optimiser rewrites graphs.  It works on lists of output nodes and knows no graph object."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from nnc_core.base.config import config
from nnc_core.operator import Nodes, Operator
from nnc_core.optimiser import fold, identities, movement  # noqa: F401 - their rewrites register themselves
from nnc_core.optimiser.registry import REWRITES, Rewrite, Rule, rewrite
from nnc_core.symbol import Node, Symbol, Table, postorder
from nnc_core.type import Attributes, Op

__all__ = ["REWRITES", "Optimiser", "Rewrite", "Rewriting", "rebuild", "rewrite"]

Make: TypeAlias = Callable[[Nodes, Op, "tuple[Node, ...]", Attributes], Node]


class Rewriting(Nodes):
    """Nodes are simplified when they are made, so one walk over a graph reaches the fixed point of local rules."""

    def __init__(self, symbol: Symbol, table: Table, rules: Mapping[str, Sequence[Rule]]) -> None:
        super().__init__(symbol, table)
        self.rules = rules

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
        return rebuild(outputs, Rewriting(self.operator.symbol, Table(), rules))

    def expand(self, outputs: Sequence[Node], wanted: Callable[[Node], bool]) -> list[Node]:
        """Replace the composites that are wanted so by their bodies, and those in the bodies likewise."""
        return rebuild(outputs, Expanding(self.operator.symbol, Table(), wanted))


class Expanding(Nodes):
    """Composites are replaced by their bodies when they are made."""

    def __init__(self, symbol: Symbol, table: Table, wanted: Callable[[Node], bool]) -> None:
        super().__init__(symbol, table)
        self.wanted = wanted

    def _apply(self, op: Op, inputs: tuple[Node | float, ...], attributes: Attributes) -> Node:
        return self.simplify(super()._apply(op, inputs, attributes))

    def simplify(self, node: Node) -> Node:
        if node.op.decompose is None or not self.wanted(node):
            return node
        return node.op.decompose(self, *node.inputs, *node.attributes)  # type: ignore[no-any-return]


def rebuild(outputs: Sequence[Node], F: Nodes, make: Make | None = None,
            replaced: Mapping[Node, Node] | None = None) -> list[Node]:
    """Copy a graph into F's table, inputs first; nodes that nothing changes stay themselves.  Lines follow.

    `make` builds each node instead of F; `replaced` gives nodes that stand for others.
    """
    new: dict[Node, Node] = dict(replaced or {})
    simplify = getattr(F, "simplify", None)
    for node in postorder(outputs, {id(n) for n in new}):
        if node in new:
            continue
        F.table.line = node.line
        inputs = tuple([new[x] for x in node.inputs])
        if make is not None:
            new[node] = make(F, node.op, inputs, node.attributes)
        elif all([a is b for a, b in zip(inputs, node.inputs, strict=True)]):
            adopted = F.table.adopt(node)
            new[node] = adopted if simplify is None else simplify(adopted)
        else:
            new[node] = F._apply(node.op, inputs, node.attributes)
    F.table.line = None
    return [new[o] for o in outputs]
