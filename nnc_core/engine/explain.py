"""Why a compiled graph is as it is, as text."""

from __future__ import annotations

from nnc_core.device import Device
from nnc_core.engine.plan import Plan, Step
from nnc_core.symbol import show_line


def explain(plan: Plan, device: Device) -> str:
    """One line a command: what runs, by which code, where its result lies, whose line it is."""
    lines = [f"{len(plan.steps)} commands on {device.spec.id} ({device.spec.name})"]
    lines += [f"{i:4d} {_describe(plan, step)}" for i, step in enumerate(plan.steps)]
    return "\n".join(lines)


def _describe(plan: Plan, step: Step) -> str:
    storage = plan.place[step.group.node].storage
    where = step.note or (f"arena + {storage.offset}" if storage.kind == "arena" else storage.kind)
    refused = f"; refused by {'; '.join(step.choice.refusals)}" if step.choice.refusals else ""
    return f"{step.command}  [{step.choice.backend}; {where}{refused}]  # {show_line(step.group.node.line)}"
