"""Programs without jumps whose calls are spread over several streams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nnc_core.base.record import Await, Call, Record, Signal
from nnc_core.device.kernel import Launch
from nnc_core.device.launches import InLine
from nnc_core.device.stream import Event, Stream

if TYPE_CHECKING:
    from nnc_core.device.capture import Around, PythonProgram


class InStreams(InLine):
    """Calls, with signals between their streams.  When a run returns, or raises, everything else on the program's
    stream comes after all that it has enqueued."""

    def __init__(self, records: Sequence[Record], count: int) -> None:
        super().__init__(count)
        self.records = records

    def run(self, program: PythonProgram) -> None:
        if self.slots_moved or self.unbound:
            self._bind(program)
        program.started = True
        streams, events = program.streams, dict[int, Event]()
        launches, n = self.launches, -1
        try:
            for record in self.records:
                if isinstance(record, Call):
                    n += 1
                    launches[n]()
                elif isinstance(record, Signal):
                    events[record.number] = streams[record.stream].record()
                elif isinstance(record, Await):
                    streams[record.stream].wait(events[record.number])
        except BaseException:
            join(program)
            raise
        finally:
            program.position = n

    def run_with(self, program: PythonProgram, around: Around) -> None:
        """One call after another, each waited for by the program's stream."""
        self._bind(program)
        program.started = True
        for n, launch in enumerate(self.launches):
            program.position = n
            own = program.streams[program.calls[n].stream]
            if own is not program.stream:
                own.wait(program.stream.record())

            def joined(launch: Launch = launch, own: Stream = own) -> None:
                launch()
                if own is not program.stream:
                    program.stream.wait(own.record())

            around(program.calls[n], joined)


def join(program: PythonProgram) -> None:
    """Let what comes later on the program's stream come after all that its other streams have been given."""
    for stream in program.streams[1:]:
        program.stream.wait(stream.record())
