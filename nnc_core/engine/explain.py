"""Explanations of why a compiled graph is as it is, as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from nnc_core.device import Device
from nnc_core.engine.decide import Decision
from nnc_core.engine.pinned_backends import HOST
from nnc_core.engine.plan_types import Plan
from nnc_core.engine.program_tree import BranchesItem, Item, LoopItem, PlannedCommand
from nnc_core.operator.control import TRIPS
from nnc_core.symbol import show_line


def explain(plan: Plan, device: Device) -> str:
    """One line a command: what runs, by which code, where its result lies, whose line it is.  Those in loops and
    branches are indented, beneath what says how often they run, or when."""
    lines = [f"{len(plan.steps)} commands on {device.spec.id} ({device.spec.name})", *_breaks(plan)]
    heads = _heads(plan)
    for i, step in enumerate(plan.steps):
        lines += [*heads.get(i, ()), f"{i:4d} {'  ' * step.depth}{_describe(step)}"]
    return "\n".join(lines)


def _heads(plan: Plan) -> dict[int, list[str]]:
    """Lines that stand before some commands: of the parts of loops and branches that these are the first of."""
    number = {id(step): i for i, step in enumerate(plan.steps)}
    found: dict[int, list[str]] = {}
    for depth, item in _walk(plan.items):
        for title, part in _parts(item):
            line = show_line(item.group.node.line)
            first = min([number[id(step)] for _, inside in _walk(part) for step in inside.planned], default=None)
            if first is not None:
                found.setdefault(first, []).append(f"     {'  ' * depth}{title}:  # {line}")
    return found


def _walk(items: Sequence[Item]) -> Iterator[tuple[int, Item]]:
    """All items, inner ones after those that they stand in, and how deep they stand."""
    pending = [(0, item) for item in reversed(items)]
    while pending:
        depth, item = pending.pop()
        yield depth, item
        pending += [(depth + 1, inner) for _, part in reversed(_parts(item)) for inner in reversed(part)]


def _parts(item: Item) -> list[tuple[str, list[Item]]]:
    if isinstance(item, LoopItem):
        length, reverse = item.loop.length, item.loop.reverse
        rounds = "for each row of a tape" if length == TRIPS else f"{length} times"
        again = "while the condition holds" if item.test is not None else rounds + (", backwards" if reverse else "")
        return [("the condition", item.cond), (again, item.body)]
    if isinstance(item, BranchesItem):
        last = len(item.arms) - 1
        return [(f"branch {i}{' or none' if item.otherwise and i == last else ''}", arm)
                for i, arm in enumerate(item.arms)]
    return []


def _breaks(plan: Plan) -> list[str]:
    """The work between launches of the device, if there is any."""
    found = Counter(step.group.op.name for step in plan.steps if step.decision.backend == HOST)
    if not found:
        return []
    named = ", ".join(f"{name} ({count})" if count > 1 else name for name, count in found.items())
    return [f"not captured as a whole: {named} on the host; the device is waited for each time, with transfers"]


def _describe(step: PlannedCommand) -> str:
    where = step.note or ", ".join(f"arena + {s.offset}" if s.kind == "arena" else s.kind for s in step.writes)
    refused = f"; refused by {'; '.join(step.decision.refusals)}" if step.decision.refusals else ""
    left = f"; {step.group.left}" if step.group.left else ""
    code = f"{step.decision.backend}{_measured(step.decision)}"
    return f"{step.text}  [{code}; {where}{refused}{left}]  # {show_line(step.group.line)}"


def _measured(decision: Decision) -> str:
    """Tell what its code and its rivals took, the quickest first."""
    times = dict(decision.seconds)
    mine = times.pop(decision.backend, None)
    if mine is None:
        return ""
    rivals = ", ".join(f"{name} {_brief(s)}" for name, s in sorted(times.items(), key=lambda item: item[1]))
    return f" {_brief(mine)}; measured: {rivals}"


def _brief(seconds: float) -> str:
    return f"{seconds * 1e6:.3g} us" if seconds < 1e-3 else f"{seconds * 1e3:.3g} ms"
