"""Why a compiled graph is as it is, as text."""

from __future__ import annotations

from collections import Counter

from nnc_core.device import Device
from nnc_core.engine.pins import HOST
from nnc_core.engine.plan import Plan, Step
from nnc_core.symbol import show_line


def explain(plan: Plan, device: Device) -> str:
    """One line a command: what runs, by which code, where its result lies, whose line it is."""
    lines = [f"{len(plan.steps)} commands on {device.spec.id} ({device.spec.name})", *_breaks(plan)]
    lines += [f"{i:4d} {'  ' * step.depth}{_describe(step)}" for i, step in enumerate(plan.steps)]
    return "\n".join(lines)


def _breaks(plan: Plan) -> list[str]:
    """What runs between launches of the device, if anything does."""
    found = Counter(step.group.op.name for step in plan.steps if step.choice.backend == HOST)
    if not found:
        return []
    named = ", ".join(f"{name} ({count})" if count > 1 else name for name, count in found.items())
    return [f"not captured as a whole: {named} on the host; the device is waited for each time, with transfers"]


def _describe(step: Step) -> str:
    where = step.note or ", ".join(f"arena + {s.offset}" if s.kind == "arena" else s.kind for s in step.writes)
    refused = f"; refused by {'; '.join(step.choice.refusals)}" if step.choice.refusals else ""
    return f"{step.command}  [{step.choice.backend}; {where}{refused}]  # {show_line(step.group.node.line)}"
