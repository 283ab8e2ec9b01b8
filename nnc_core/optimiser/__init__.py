"""Floor 6: the optimiser rewrites graphs.  It works on lists of output nodes and knows no graph object."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from operator import is_

from nnc_core.base.config import config
from nnc_core.operator import Operator
from nnc_core.optimiser.control import hoist, simplify_control, take_out_sums
from nnc_core.optimiser.rebuild import Expanding, Inlining, inline_body, rebuild, rebuild_body
from nnc_core.optimiser.rewrite import Rewrite, Rule
from nnc_core.optimiser.rewriting import Rewriting, rules_of, uses_of
from nnc_core.optimiser.stabilise import SOURCES
from nnc_core.optimiser.table import REWRITES
from nnc_core.symbol import Node, postorder

__all__ = [
    "REWRITES", "Expanding", "Optimiser", "Rewrite", "Rewriting", "inline_body", "rebuild", "rebuild_body",
]  # fmt: skip


class Optimiser:
    """Layer 6: applies the rewrites of the table."""

    def __init__(self, operator: Operator) -> None:
        self.operator = operator

    def rewrites(self) -> Iterable[Rewrite]:
        """Rewrites that apply now: under `config.deterministic` the exact ones; beside an operator layer that replaces
        operators none that would name a formula by another operator."""
        unnamed = frozenset({"recognise", "stabilise"}) if self.operator.replaced else frozenset[str]()
        inexact = not config.deterministic
        return [r for r in REWRITES.values() if (r.exact or inexact) and not r.tags & unnamed]

    def recognise(self, outputs: Sequence[Node], order: Sequence[Node] | None = None) -> list[Node]:
        """Formulas that are composites written by hand, or unstable, made composites: before these are expanded.

        Here and below: `order` is all that the outputs depend on, inputs first, where it is known.
        """
        wanted = [r for r in self.rewrites() if r.tags & {"recognise", "stabilise"}]
        found, order = list(outputs), order or postorder(outputs)
        sources = SOURCES.union(*[r.operators for r in wanted if ":" in r.name])  # those of plugins
        if not wanted or not any([n.op.bodies or n.op.name in sources for n in order]):
            return found
        uses = uses_of(found, order)
        if not any([n.op.bodies for n in order]) and not self._begins(order, wanted, uses):
            return found
        return self._rebuilt(found, rules_of(wanted), order, uses)

    def run(self, outputs: Sequence[Node]) -> list[Node]:
        """The same values by fewer and simpler nodes.  Running again changes nothing."""
        wanted = [r for r in self.rewrites() if "recognise" not in r.tags]
        rules = rules_of(wanted)
        found = self._rebuilt(outputs, rules)
        while True:
            order = postorder(found)
            better = simplify_control(found, self.operator.open(), order)
            if better is None:
                counted = self._counted(found, order, wanted, rules)
                if counted is not None:
                    found = counted  # no rule applies any more, but where counts are others now
                    continue
            better = better or hoist(found, self.operator.open(), order)
            if better is None and not config.deterministic:
                better = take_out_sums(found, self.operator.open(), order)
            if better is None:
                return found
            found = self._rebuilt(better, rules)

    def _counted(self, found: Sequence[Node], order: Sequence[Node], wanted: Sequence[Rewrite],
                 rules: Mapping[str, Sequence[Rule]]) -> list[Node] | None:
        """The graph once more, with rules that ask whether a node is read once; None if these find nothing."""
        asking = [r for r in wanted if r.once]
        names = {r.once for r in asking}
        if not any([node.op.name in names for node in order]):
            return None
        uses = uses_of(found, order)
        if not self._begins(order, asking, uses):
            return None
        counted = self._rebuilt(found, rules, order, uses, rules_of(asking))
        return None if self._same(counted, found) else counted

    def hoist(self, outputs: Sequence[Node]) -> list[Node]:
        """Compute before loops what their rounds would compute anew."""
        found = list(outputs)
        while (better := hoist(found, self.operator.open())) is not None:
            found = better
        return found

    def _begins(self, order: Sequence[Node], wanted: Iterable[Rewrite], uses: Mapping[Node, int]) -> bool:
        """Tell whether one of these rewrites applies to a node as it is; bodies, in which nothing is said to be read
        once, are not looked at."""
        rules = rules_of(wanted)
        F = self.operator.open(partial(Rewriting, rules=rules, uses=uses))
        return any(F.simplify(node) is not node for node in order if node.op.name in rules)

    def _same(self, a: Sequence[Node], b: Sequence[Node]) -> bool:
        """True if two graphs have the same nodes; those of control flow are made anew by every copy."""
        if all(map(is_, a, b)):
            return True
        both = rebuild([*a, *b], self.operator.open())
        return all(map(is_, both[: len(a)], both[len(a) :]))

    def _rebuilt(self, outputs: Sequence[Node], rules: Mapping[str, Sequence[Rule]],
                 order: Sequence[Node] | None = None, uses: Mapping[Node, int] | None = None,
                 anew: Mapping[str, Sequence[Rule]] | None = None) -> list[Node]:
        F = self.operator.open(partial(Rewriting, rules=rules, uses=uses, anew=anew))
        return rebuild(outputs, F, order=order)

    def expand(self, outputs: Sequence[Node], wanted: Callable[[Node], bool],
               order: Sequence[Node] | None = None) -> list[Node]:
        """Replace the composites that are wanted so by their bodies, and those in the bodies likewise."""
        return rebuild(outputs, self.operator.open(partial(Expanding, wanted=wanted)), order=order)

    def inline(self, outputs: Sequence[Node]) -> list[Node]:
        """Calls replaced by the bodies that they call."""
        return rebuild(outputs, self.operator.open(Inlining))
