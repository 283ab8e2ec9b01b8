"""The plan of a whole program."""

from __future__ import annotations

from dataclasses import dataclass, field

from nnc_core.base.errors import DeviceMemoryError
from nnc_core.device import Device
from nnc_core.engine.allocation import ArenaAllocation, Lifetime, allocate
from nnc_core.engine.allocation.lifetime import make_demand
from nnc_core.engine.program_tree import Item, PlannedCommand
from nnc_core.engine.storage import FOREVER, Storage, ValuePlace
from nnc_core.symbol import Node, show_line


@dataclass(slots=True)
class Plan:
    """The decisions of the planner."""

    items: list[Item] = field(default_factory=list)
    """The tree of the program."""
    steps: list[PlannedCommand] = field(default_factory=list)
    """The commands of all items, inner ones included, in the order of their positions."""
    place: dict[Node, ValuePlace] = field(default_factory=dict)
    arena: list[Storage] = field(default_factory=list)
    allocation: ArenaAllocation = field(default_factory=lambda: allocate([], alignment=1))
    segment: int = FOREVER
    """Bytes of the largest buffer that the device allocates; the arena is cut there."""
    donated: dict[Node, Node] = field(default_factory=dict)
    """Outputs that did land in the memory of an input."""
    updated_at: dict[Node, int] = field(default_factory=dict)
    """The positions of the commands that compute these."""
    aliases: int = 0
    overwrites: int = 0
    joined: int = 0
    """Values that are computed straight into a part of a larger one."""


def arena_bound(plan: Plan, device: Device) -> int:
    """The most bytes of the arena that live at once."""
    return make_demand(_lifetimes(plan), alignment=device.spec.alignment).bound


def check_sizes(plan: Plan, device: Device) -> None:
    """DeviceMemoryError, naming the command, for a value that no single allocation of the device holds."""
    limit = device.spec.max_allocation or FOREVER
    for step in plan.steps:
        for storage in step.writes if step.workspace is None else (*step.writes, step.workspace):
            if storage.nbytes > limit:
                raise DeviceMemoryError(
                    f"{storage.nbytes} bytes in one piece are more than the {limit} of one allocation",
                    operator=step.group.op.name, operands=str(step.command), device=device.spec.id,
                    line=show_line(step.group.line),
                    hint="a smaller batch, a smaller dtype, the value in parts, or another device")


def lay_out_arena(plan: Plan, device: Device, budget: int) -> None:
    """Give every storage of the arena its offset; `budget` as for `allocation.allocate`."""
    spec = device.spec
    segment = spec.max_allocation // spec.alignment * spec.alignment if spec.max_allocation else None
    plan.segment = segment or FOREVER
    plan.allocation = allocate(_lifetimes(plan), alignment=spec.alignment, segment=segment, budget=budget)
    for storage, offset in zip(plan.arena, plan.allocation.offsets, strict=True):
        storage.offset = offset


def _lifetimes(plan: Plan) -> list[Lifetime]:
    return [Lifetime(s.nbytes, s.first, s.last) for s in plan.arena]
