"""Plans of whole programs, and the one that is taken: that of the best order, or of the order written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nnc_core.engine.decide import Decider
from nnc_core.engine.fuse import NodeGroup
from nnc_core.engine.plan_control import ProgramPlanner
from nnc_core.engine.plan_types import Plan, arena_bound, lay_out_arena
from nnc_core.engine.program_order import ProgramOrder, in_program_order
from nnc_core.engine.schedule import Scheduler
from nnc_core.symbol import Node


def make_plan(line: ProgramOrder, outputs: Sequence[Node], updates: Mapping[Node, Node], decider: Decider) -> Plan:
    """All but the offsets in the arena.  `updates`: output -> the input that gives up its memory for it."""
    return ProgramPlanner(line, outputs, updates, decider).run()


def best_plan(groups: Sequence[NodeGroup], outputs: Sequence[Node], updates: Mapping[Node, Node], decider: Decider,
              budget: int) -> Plan:
    """The cost of orders is known before they are planned, but for what loops and branches share with what is around
    them: with these in it, the order written is planned as well."""

    def planned(as_written: bool) -> Plan:
        scheduler = Scheduler(decider, as_written=as_written)
        found = scheduler.arrange(groups, outputs, updates)
        return make_plan(in_program_order(found, scheduler), outputs, updates, decider)

    plan, device = planned(False), decider.device
    if any(group.op.bodies for group in groups):
        plan = min(plan, planned(True), key=lambda plan: arena_bound(plan, device))
    lay_out_arena(plan, device, budget)
    return plan
