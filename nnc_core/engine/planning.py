"""Plans of whole programs, and the one that is taken: that of the best order, or of the order written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from nnc_core.engine.decide import Decider
from nnc_core.engine.groups import NodeGroup
from nnc_core.engine.plan_control import ProgramPlanner
from nnc_core.engine.plan_types import Plan, arena_bound, check_sizes, lay_out_arena
from nnc_core.engine.program_tree import ProgramTree
from nnc_core.engine.schedule import Scheduler
from nnc_core.symbol import Node


def make_plan(tree: ProgramTree, outputs: Sequence[Node], updates: Mapping[Node, Node], decider: Decider) -> Plan:
    """All but the offsets in the arena.  `updates`: output -> the input that gives up its memory for it."""
    return ProgramPlanner(tree, outputs, updates, decider).run()


class Grouped(NamedTuple):
    """A graph as commands to be: what is to be ordered and planned."""

    groups: Sequence[NodeGroup]
    """Inputs first."""
    named: Mapping[str, Node]
    """The outputs by name."""
    updates: Mapping[Node, Node]
    """output -> the input that gives up its memory for it."""

    @property
    def outputs(self) -> list[Node]:
        return list(self.named.values())


def best_plan(grouped: Grouped, decider: Decider, budget: int) -> Plan:
    """The cost of orders is known before they are planned, but for what loops and branches share with what is around
    them: with these in it, the order written is planned as well."""

    def planned(as_written: bool) -> Plan:
        tree = Scheduler(decider, as_written=as_written).tree(grouped.groups, grouped.outputs, grouped.updates)
        return make_plan(tree, grouped.outputs, grouped.updates, decider)

    plan = planned(False)
    if any(group.op.bodies for group in grouped.groups):
        plan = min(plan, planned(True), key=lambda plan: arena_bound(plan, decider.device))
    check_sizes(plan, decider.device)
    lay_out_arena(plan, decider.device, budget)
    return plan
