"""Launches in segments: kernels that come together are a CUDA graph, one launch for all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from nnc_core.device import Launch, PythonProgram
from nnc_cuda.driver import CudaError
from nnc_cuda.kernel import CudaLaunch, EnqueuedLaunch
from nnc_cuda.stream import CudaStream

WORTH = 2
"""Kernels from which on a graph takes less time than the launches that it stands for."""
SHARE = 2
"""One launch in so many may have other buffers: changing one in a graph takes half as long as launching it, or more."""


class CapturedGraph:
    """A captured list of launches, which it keeps alive."""

    def __init__(self, launches: Sequence[EnqueuedLaunch], stream: CudaStream) -> None:
        self.launches: list[EnqueuedLaunch | None] = [*launches]
        """None for those whose buffers have been let go of."""
        self.stream, self.handle = stream, 0
        steps = [launch.steps(stream.driver, stream.handle) for launch in launches]
        self.handle, nodes = stream.driver.capture(stream.handle, [step for some in steps for step in some])
        left = iter(nodes)
        self._nodes = [[next(left) for _ in some] for some in steps]
        """Those of each launch."""

    def __del__(self) -> None:
        if self.handle:
            with suppress(CudaError):
                self.stream.driver.end_graph(self.handle)

    def __call__(self) -> None:
        self.stream.line = None  # any of its kernels
        try:
            self.stream.driver.launch_graph(self.handle, self.stream.handle)
        except CudaError as error:
            raise self.stream.failure("launching a graph", error) from error
        if self.stream.keeps:
            self.stream.hold(tuple(self.launches))

    def takes(self, place: int, launch: Launch) -> bool:
        """Tell whether a launch of the same kernel may stand at a place."""
        return isinstance(launch, CudaLaunch) and all(self._nodes[place])

    def take(self, place: int, launch: CudaLaunch) -> None:
        """Run a launch in the place of another one from now on."""
        self.launches[place] = launch
        try:
            for node, call in zip(self._nodes[place], launch.calls, strict=True):
                self.stream.driver.rebind(self.handle, node, *call)
        except CudaError as error:
            raise self.stream.failure("changing a graph", error) from error


class Segment(NamedTuple):
    """A graph, or a launch that runs by itself and its place among all launches."""

    run: Callable[[], object]
    place: int


def captured(launches: Sequence[Launch], stream: CudaStream) -> list[Segment]:
    """Launches in segments: kernels that come together are a graph."""
    segments, together = list[Segment](), list[EnqueuedLaunch]()

    def end(place: int) -> None:
        if len(together) >= WORTH:
            segments.append(Segment(CapturedGraph(tuple(together), stream), -1))  # which one fails nobody says
        else:
            segments.extend([Segment(launch, place - len(together) + n) for n, launch in enumerate(together)])
        together.clear()

    for place, launch in enumerate(launches):
        if isinstance(launch, EnqueuedLaunch):
            together.append(launch)
        else:
            end(place)
            segments.append(Segment(launch, place))
    end(len(launches))
    return segments


class FollowingSegments:
    """Segments whose graphs run whatever launches of the same kernels they are given: those whose buffers are others
    are changed."""

    def __init__(self, launches: Sequence[Launch], stream: CudaStream) -> None:
        self.launches: list[Launch | None] = [*launches]
        self.segments = captured(launches, stream)
        self._at: list[tuple[int, int]] = []
        """For each launch its segment, and its place in that."""
        for number, segment in enumerate(self.segments):
            count = len(segment.run.launches) if isinstance(segment.run, CapturedGraph) else 1
            self._at += [(number, place) for place in range(count)]

    def follow(self, launches: Sequence[Launch]) -> bool:
        """Run these launches from now on; False where they have to run by themselves."""
        changed = [n for n, (old, new) in enumerate(zip(self.launches, launches, strict=True)) if old is not new]
        if len(changed) * SHARE > len(launches) or not all([self._takes(n, launches[n]) for n in changed]):
            return False
        for n in changed:
            number, place = self._at[n]
            run, launch = self.segments[number].run, launches[n]
            if isinstance(run, CapturedGraph):
                assert isinstance(launch, CudaLaunch)
                run.take(place, launch)
            else:
                self.segments[number] = Segment(launch, n)
            self.launches[n] = launch
        return True

    def _takes(self, n: int, launch: Launch) -> bool:
        number, place = self._at[n]
        run = self.segments[number].run
        return not isinstance(run, CapturedGraph) or run.takes(place, launch)

    def let_go(self, n: int) -> None:
        """Keep one of the launches alive no longer: another comes before the next run."""
        number, place = self._at[n]
        run = self.segments[number].run
        self.launches[n] = None
        if isinstance(run, CapturedGraph):
            run.launches[place] = None
        else:
            self.segments[number] = Segment(_nothing, n)


def _nothing() -> None:
    raise AssertionError("a launch that was let go of")


def run_segments(segments: Sequence[Segment], program: PythonProgram) -> None:
    program.started = True
    for run, place in segments:
        program.position = place
        run()
