"""Measuring the code that there is for a command, so that the quickest is taken: as cuDNN's benchmark mode does for
convolutions, here for every command that more than one backend takes.

It happens between planning and building, on buffers of its own, for as long as `config.autotune` says; deciding only
reads the table of times.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from time import perf_counter

from nnc_core.base.config import config
from nnc_core.base.errors import Error, NotSupportedError
from nnc_core.base.layout import Layout
from nnc_core.device import Buffer, CommandBackend, Kernel, Launch
from nnc_core.engine.candidates import NestBackend
from nnc_core.engine.decide import Decider, Decision
from nnc_core.engine.measured_times import tunes
from nnc_core.engine.pinned_backends import HOST
from nnc_core.operator.host import CALLBACK

ROUNDS = 3
"""Measurements of each kernel, the quickest of which counts."""
LONG_ENOUGH = 1e-3
"""Seconds that a measurement is to take: short commands are run several times in it."""
_ORDINARY = b"\x3f"
"""In each byte it makes positive floats that are neither subnormal nor large, in every format of floats."""


class Autotuner:
    """Measures for one device."""

    def __init__(self, decider: Decider) -> None:
        self.decider, self.device = decider, decider.device

    def measure(self, decisions: Iterable[Decision], until: float) -> bool:
        """Measure the commands that several backends take and that there are no times for, one after the other until
        the clock says `until`.  True if any was: it is to be decided anew."""
        if not tunes():
            return False
        measured = False
        for decision in {decision.key: decision for decision in decisions}.values():
            rivals = self._rivals(decision)
            if len(rivals) > 1 and perf_counter() < until:
                self._measure(decision, rivals)
                measured = True
        return measured

    def _rivals(self, decision: Decision) -> list[CommandBackend]:
        """The code that takes a command on the device itself; nothing if all of it was measured."""
        if decision.op is CALLBACK or decision.on_host:
            return []
        found = [x for x in self.decider.willing(decision.op, decision.command) if x.name != HOST]
        return [] if self.decider.times.of(decision.command).keys() >= {x.name for x in found} else found

    def _measure(self, decision: Decision, rivals: list[CommandBackend]) -> None:
        command = decision.command
        seconds: dict[str, float] = {}
        for backend, kernel in self._built(decision, rivals).items():
            buffers = [self._filled(x) for x in command.inputs]
            buffers += [self.device.allocate(max(x.extent, 1)) for x in command.outputs]
            workspace = backend.workspace(command)
            buffers += [self.device.allocate(workspace)] if workspace else []
            with config.using(compile_at_once=True):
                seconds[backend.name] = self._seconds(kernel.bind(buffers, self.device.default_stream))
        self.decider.learn(decision, seconds)

    def _built(self, decision: Decision, rivals: list[CommandBackend]) -> Mapping[CommandBackend, Kernel]:
        """The kernels, but for what the driver refuses, which is not asked for again."""
        kernels: dict[CommandBackend, Kernel] = {}
        for backend in rivals:
            try:
                kernels[backend] = backend.prepare(decision.command)
            except NotSupportedError as error:
                self.decider.strike(decision._replace(candidate=backend), error.message)
            except Error as error:
                error.locate(operator=decision.op.name, operands=str(decision.command), device=self.device.spec.id)
                raise
            if isinstance(backend, NestBackend):
                backend.forget()
        return kernels

    def _filled(self, layout: Layout) -> Buffer:
        buffer = self.device.allocate(max(layout.extent, 1))
        self.device.fill(buffer, _ORDINARY if layout.dtype.kind not in "biu" else b"\0")  # zero is an index everywhere
        return buffer

    def _seconds(self, launch: Launch) -> float:
        """Seconds of one launch, the wait for its end shared by as many as take long enough."""
        self._timed(launch, 1)  # what is made at first is not measured
        count = max(1, min(1000, int(LONG_ENOUGH / max(self._timed(launch, 1), 1e-9))))
        return min([self._timed(launch, count) for _ in range(ROUNDS)]) / count

    def _timed(self, launch: Launch, count: int) -> float:
        begin = perf_counter()
        for _ in range(count):
            launch()
        self.device.default_stream.synchronize()
        return perf_counter() - begin
