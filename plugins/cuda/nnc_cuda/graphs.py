"""Compiled programs as CUDA graphs: one launch for all kernels between two commands that need the host."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from nnc_core.base.record import Call, Rebind, Record, Repeat, RotatePointer, Window
from nnc_core.device import Buffer, Device, Launch, PythonProgram
from nnc_core.device.interpret import Interpreter, tape_slots
from nnc_core.device.launches import BINDINGS, InLine, InLoops
from nnc_cuda.kernel import CapturableKernel
from nnc_cuda.segments import FollowingSegments, Segment, captured, run_segments
from nnc_cuda.stream import CudaStream

MOST = 1 << 15
"""Kernels of a graph, at most."""
OTHERS = 4
"""Runs without a graph after which one is made that follows its buffers."""


class CapturedLaunches(InLine):
    """Launches that are captured when their buffers come together for the second time: results go round through a few
    blocks of the pool.  Where buffers are others again and again, as those of inputs may be, one graph follows them."""

    def __init__(self, count: int, stream: CudaStream) -> None:
        super().__init__(count)
        self.stream = stream
        self.graphs: dict[int, list[Segment] | None] = {}
        """The segments of each list of launches by its id; None for those that have run once."""
        self.following: FollowingSegments | None = None
        self.alone = 0
        """Runs without a graph."""

    def run(self, program: PythonProgram) -> None:
        if self.slots_moved or self.unbound:
            self._bind(program)
        segments = self._segments() or self._followed()
        if segments is None:
            self.alone += 1
            super().run(program)
        else:
            run_segments(segments, program)

    def _segments(self) -> list[Segment] | None:
        kept = {id(launches): launches for launches, _ in self.bindings.values()}
        self.graphs = {key: graph for key, graph in self.graphs.items() if key in kept}
        key = id(self.launches)
        if key not in kept:  # buffers that will not come back
            return None
        if key not in self.graphs:
            self.graphs[key] = None
            return None
        found = self.graphs[key]
        if found is None:
            found = self.graphs[key] = captured(self.launches, self.stream)
        return found

    def _followed(self) -> list[Segment] | None:
        """The segments that follow any buffers, made when enough have come."""
        if self.following is None and self.alone >= OTHERS:
            self.following = FollowingSegments(self.launches, self.stream)
        following = self.following
        return following.segments if following is not None and following.follow(self.launches) else None

    def let_go(self, program: PythonProgram, slots: Sequence[int]) -> None:
        super().let_go(program, slots)
        if self.following is not None:
            for n in {n for slot in slots if program.slots[slot] is None for n in program.users.get(slot, ())}:
                self.following.let_go(n)

    def holds(self, blocks: frozenset[int]) -> bool:
        return self.following is not None or super().holds(blocks)

    def release(self) -> None:
        super().release()
        self.graphs.clear()
        self.following, self.alone = None, 0


class CapturedRounds(NamedTuple):
    """A run of a program with loops."""

    start: list[Any]
    """Contents of its slots before, kept alive as long as they are known by their ids."""
    segments: list[Segment] | None
    """None where it has run once."""
    moves: list[tuple[int, Any]]
    """Slots that have something else afterwards, and what."""


class CapturedLoops(InLoops):
    """Loops whose rounds are counted, so that a run from the same buffers makes the same launches: captured when it
    comes for the second time."""

    def __init__(self, calls: Sequence[Call], stream: CudaStream) -> None:
        super().__init__(calls, frozenset())
        self.stream = stream
        self.rounds: dict[tuple[int, ...], CapturedRounds] = {}
        self.traced: list[Launch] = []
        """The launches of the run that is going on."""

    def run(self, program: PythonProgram) -> None:
        self.see_passing(program)
        start = list(program.slots)
        key = tuple([id(buffer) for buffer in start])
        found = self.rounds.get(key)
        if found is not None and found.segments is not None:
            run_segments(found.segments, program)
            for slot, buffer in found.moves:
                program.put(slot, buffer)
            return
        self.traced = []
        Interpreter(program, None).run(program.records)
        if not self.passing and len(self.traced) <= MOST:
            self._remember(key, start, program, found is not None)
        self.traced = []

    def _remember(self, key: tuple[int, ...], start: list[Any], program: PythonProgram, again: bool) -> None:
        moves = [(slot, after) for slot, (before, after) in enumerate(zip(start, program.slots, strict=True))
                 if after is not before]
        if len(self.rounds) >= BINDINGS and not again:
            del self.rounds[next(iter(self.rounds))]
        self.rounds[key] = CapturedRounds(start, captured(self.traced, self.stream) if again else None, moves)

    def launch(self, program: PythonProgram, call: Call) -> Launch:
        made = super().launch(program, call)
        self.traced.append(made)
        return made

    def release(self) -> None:
        super().release()
        self.rounds.clear()


class CudaProgram(PythonProgram):
    """Records whose calls are kernels of the device run as graphs, in segments where others are among them; what jumps,
    keeps tapes, or is spread over streams runs from Python."""

    def __init__(self, device: Device, records: Sequence[Record], slots: Sequence[Buffer | None],
                 stream: Any) -> None:
        super().__init__(device, records, slots, stream)
        enqueued = [isinstance(call.kernel, CapturableKernel) for call in self.calls]
        if self.way.__class__ is InLine and any([a and b for a, b in pairwise(enqueued)]):
            self.way = CapturedLaunches(len(self.calls), stream)
        elif self.way.__class__ is InLoops and all(enqueued) and _is_counted(records) and not tape_slots(records):
            self.way = CapturedLoops(self.calls, stream)


def _is_counted(records: Sequence[Record]) -> bool:
    """Tell whether nothing but the buffers at its beginning decides what a run does."""
    return all([_is_counted(record.records) and record.tape < 0 if isinstance(record, Repeat) else
                isinstance(record, Call | RotatePointer | Rebind | Window) for record in records])
