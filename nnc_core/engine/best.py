"""The plan that is taken: of the best order, or of the order written where that turns out to need less."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nnc_core.engine.fuse import Group
from nnc_core.engine.lower import Lowering
from nnc_core.engine.order import in_line
from nnc_core.engine.places import Plan, arena_bound, lay_out_arena
from nnc_core.engine.plan import make_plan
from nnc_core.engine.schedule import Scheduler
from nnc_core.symbol import Node


def best_plan(groups: Sequence[Group], outputs: Sequence[Node], updates: Mapping[Node, Node], lowering: Lowering,
              budget: int) -> Plan:
    """The cost of orders is known before they are planned, but for what loops and branches share with what is around
    them: with these in it, the order written is planned as well."""

    def planned(as_written: bool) -> Plan:
        scheduler = Scheduler(lowering, as_written=as_written)
        found = scheduler.arrange(groups, outputs, updates)
        return make_plan(in_line(found, scheduler), outputs, updates, lowering)

    plan, device = planned(False), lowering.device
    if any(group.op.bodies for group in groups):
        plan = min(plan, planned(True), key=lambda plan: arena_bound(plan, device))
    lay_out_arena(plan, device, budget)
    return plan
