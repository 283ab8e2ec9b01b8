"""Streams and events of CUDA."""

from __future__ import annotations

import threading
from collections import deque
from contextlib import suppress

from nnc_core.base.errors import Error
from nnc_core.base.line import Line, show_line
from nnc_core.device import Event, Stream, origin
from nnc_cuda.driver import CudaError, Driver
from nnc_cuda.failure import explained, failure

REMEMBERED = 256
"""Commands with memory of the host, or of other streams, after which those that are done are looked through."""


class CudaStream(Stream):
    """One stream.  Any thread may enqueue and wait.

    An error of work that was enqueued shows at whatever is asked next, of any stream; it names the line that enqueued
    last, since CUDA does not tell which command it was.
    """

    def __init__(self, driver: Driver, id: str, keeps: bool = True) -> None:
        """`keeps`: hold the buffers of commands until these are done.  Memory is used again in the order of the default
        stream, which needs no hold of it for that reason."""
        self.driver, self.id, self.keeps = driver, id, keeps
        with explained("making a stream", id):
            self.handle = driver.new_stream()
        self.line: Line | None = None
        self._held: deque[tuple[CudaEvent, object]] = deque()
        self._lock = threading.RLock()

    def __del__(self) -> None:
        if handle := getattr(self, "handle", 0):
            with suppress(CudaError):
                self.driver.end_stream(handle)

    def copy(self, target: int, source: int, nbytes: int, held: object) -> CudaEvent:
        """Copy bytes between addresses of the host or of the device; `held` is what lies there."""
        self.line = origin.get()
        try:
            self.driver.copy(target, source, nbytes, self.handle)
        except CudaError as error:
            raise self.failure("a copy", error) from error
        return self.hold(held)

    def hold(self, what: object) -> CudaEvent:
        """Keep something alive until all that is enqueued so far is done."""
        event = self.record()
        with self._lock:
            self._held.append((event, what))
            if len(self._held) > REMEMBERED:
                self.let_go()
        return event

    def let_go(self) -> None:
        """Let go of what finished commands have worked on."""
        with self._lock:
            while self._held and self._held[0][0].done:
                self._held.popleft()

    def record(self, timed: bool = False) -> CudaEvent:
        return CudaEvent(self, timed)

    def wait(self, event: Event) -> None:
        if not isinstance(event, CudaEvent) or event.stream.driver is not self.driver:
            self.relay(event)
        elif event.stream is not self:
            with explained("waiting for another stream", self.id):
                self.driver.order(self.handle, event.handle)

    def synchronize(self) -> None:
        try:
            self.driver.synchronize(self.handle)
        except CudaError as error:
            raise self.failure("work on a stream", error) from error
        self.let_go()

    def failure(self, action: str, error: CudaError) -> Error:
        """An error of this stream's work, at the line that enqueued last."""
        found = failure(action, error, self.id)
        return found if self.line is None else found.locate(line=show_line(self.line))


class CudaEvent(Event):
    """A moment in a stream."""

    __slots__ = ("handle", "stream", "timed")

    def __init__(self, stream: CudaStream, timed: bool) -> None:
        self.stream, self.timed, self.handle = stream, timed, 0
        driver = stream.driver
        try:
            self.handle = driver.new_event(timed)
            driver.record(self.handle, stream.handle)
        except CudaError as error:
            raise stream.failure("marking a moment", error) from error

    def __del__(self) -> None:
        if self.handle:
            with suppress(CudaError):
                self.stream.driver.end_event(self.handle)

    @property
    def done(self) -> bool:
        try:
            return self.stream.driver.is_done(self.handle)
        except CudaError:  # it has failed; waiting says why
            return True

    def wait(self) -> None:
        try:
            self.stream.driver.wait(self.handle)
        except CudaError as error:
            raise self.stream.failure("a command", error) from error
        self.stream.let_go()

    def seconds_since(self, earlier: Event) -> float | None:
        if not (isinstance(earlier, CudaEvent) and earlier.timed and self.timed):
            return None
        with explained("reading a clock", self.stream.id):
            return self.stream.driver.seconds(earlier.handle, self.handle)
