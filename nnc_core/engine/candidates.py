"""The code that may run an operator on a device: library code, its loop nest, its reference on the host.

All of it answers like library code (`CommandBackend`): whether it refuses a command, which inputs may share the
output's memory, how much scratch memory it wants; and prepares a kernel when everything is planned.
"""

from __future__ import annotations

from collections.abc import Sequence

from nnc_core.base.command import Command
from nnc_core.base.errors import NotSupportedError
from nnc_core.base.loopnest import NOTE_WORDS, LoopNest
from nnc_core.device import NOTES, CommandBackend, Device, Kernel
from nnc_core.device.host import HostKernel
from nnc_core.engine.in_place_nest import inputs_read_where_written
from nnc_core.engine.pinned_backends import HOST, NEST
from nnc_core.operator.loops import NotedCommand, elementwise_nest
from nnc_core.type import Op


class NestBackend(CommandBackend):
    """The operator's loop nest, compiled by the device."""

    name = NEST

    def __init__(self, op: Op, device: Device) -> None:
        self.op, self.device = op, device
        self._last: tuple[Command, LoopNest] | None = None

    def nest(self, command: Command) -> LoopNest:
        """The nest for these layouts, made once if asked for again; NotSupportedError for what nests lack."""
        last = self._last
        if last is None or last[0] is not command:
            noted = NOTES in self.device.spec.features
            last = self._last = command, loop_nest(self.op, NotedCommand(*command) if noted else command)
        return last[1]

    def forget(self) -> None:
        """Let go of the nest, once its kernel is there: decisions are remembered for longer."""
        self._last = None

    def refuse(self, command: Command) -> str | None:
        try:
            self.nest(command)
        except NotSupportedError as error:
            return error.message
        return None

    def inplace_of(self, command: Command, output: int, offered: tuple[int, ...]) -> tuple[int, ...]:
        """Inputs that the nest reads just where it writes, whether the operator offers them or not."""
        return inputs_read_where_written(self.nest(command), command, output)

    def workspace(self, command: Command) -> int:
        """Room for notes, where the nest takes some."""
        return 8 * NOTE_WORDS if self.nest(command).notes else 0

    def prepare(self, command: Command) -> Kernel:
        return self.device.compile(self.nest(command))


class HostBackend(CommandBackend):
    """The NumPy reference, between a download and an upload."""

    name = HOST

    def __init__(self, op: Op, device: Device) -> None:
        self.op, self.device = op, device

    def refuse(self, command: Command) -> str | None:
        if any(x.offset or not x.contiguous for x in command.outputs):
            return "it uploads whole buffers, not parts of them"
        return None

    def prepare(self, command: Command) -> Kernel:
        assert self.op.reference is not None
        return HostKernel(self.device, self.op.reference, command)


def candidates(op: Op, device: Device) -> list[CommandBackend]:
    """All code that there is for an operator, the preferred first: library code, the loop nest, library code that is
    there for want of better, the host."""
    library: Sequence[CommandBackend] = device.all_backends(op.name)
    found = [backend for backend in library if not backend.fallback]
    if op.nest is not None or op.scalar is not None:
        found.append(NestBackend(op, device))
    found += [backend for backend in library if backend.fallback]
    if op.reference is not None:
        found.append(HostBackend(op, device))
    return found


def loop_nest(op: Op, command: Command) -> LoopNest:
    """The operator's loop nest for these layouts; NotSupportedError if it has none, and for what nests lack."""
    if op.nest is not None:
        return op.nest(command)
    if op.scalar is None:
        raise NotSupportedError(f"{op.name} has no loop nest", operator=op.name)
    return elementwise_nest(op.scalar, command)
