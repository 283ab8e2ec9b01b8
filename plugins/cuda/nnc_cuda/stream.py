"""Streams and events of CUDA."""

from __future__ import annotations

import ctypes
import threading
from collections import deque
from contextlib import suppress
from functools import partial

from nnc_core.base.errors import Error, as_error
from nnc_core.base.line import Line, show_line
from nnc_core.device import Event, Gate, HostArray, Stream, origin
from nnc_cuda.driver import CudaError, Driver
from nnc_cuda.failure import explained, failure
from nnc_cuda.staging import Staging, StagingBlock, copy_on_host

REMEMBERED = 256
"""Commands with memory of the host, or of other streams, after which those that are done are looked through."""


class CudaStream(Stream):
    """One stream.  Any thread may enqueue and wait.

    An error of work that was enqueued shows at whatever is asked next, of any stream; it names the line that enqueued
    last, since CUDA does not tell which command it was.
    """

    def __init__(self, driver: Driver, id: str, staging: Staging, keeps: bool = True) -> None:
        """`keeps`: hold the buffers of commands until these are done.  Memory is used again in the order of the default
        stream, which needs no hold of it for that reason."""
        self.driver, self.id, self.staging, self.keeps = driver, id, staging, keeps
        with explained("making a stream", id):
            self.handle = driver.new_stream()
        self.line: Line | None = None
        self._held: deque[tuple[CudaEvent, object]] = deque()
        self._failures: list[Error] = []
        self._gates: list[CudaGate] = []
        self._parted: deque[object] = deque()  # these two are filled by the collector
        self._returned: deque[tuple[object, int]] = deque()
        self._followed: set[CudaStream] = set()
        self._lock = threading.RLock()

    def __del__(self) -> None:
        if handle := getattr(self, "handle", 0):
            with suppress(CudaError):
                self.driver.end_stream(handle)

    def copy(self, target: int, source: int, nbytes: int, held: object) -> CudaEvent:
        """Copy bytes between addresses of the host or of the device; `held` is what lies there."""
        self._copy(target, source, nbytes)
        return self.hold(held)

    def _copy(self, target: int, source: int, nbytes: int) -> None:
        self.line = origin.get()
        try:
            self.driver.copy(target, source, nbytes, self.handle)
        except CudaError as error:
            raise self.failure("a copy", error) from error

    def send(self, target: int, array: HostArray, held: object) -> CudaEvent:
        """Copy a host array to the device, where `held` is."""
        self.let_go()  # of what has arrived
        block, closed = self.staging.take(array.nbytes), self._closed_gates()
        if block is None:
            for gate in closed:  # the driver reads the array before the stream comes to it
                gate.opened.wait()
            return self.copy(target, array.ctypes.data, array.nbytes, (array, held))
        fill = partial(copy_on_host, block.address, array.ctypes.data, array.nbytes)
        if closed:  # somebody else has still to write it
            with explained("an upload", self.id):
                self.driver.call(self.handle, fill)
        else:
            fill()
        return self.copy(target, block.address, array.nbytes, (block, array if closed else None, held))

    def _closed_gates(self) -> list[CudaGate]:
        """Gates that what is enqueued now is behind."""
        found = []
        for stream in self._sources():
            with stream._lock:
                stream._gates = [gate for gate in stream._gates if not gate.opened.is_set()]
                found += stream._gates
        return found

    def fetch(self, array: HostArray, source: int, held: object) -> CudaEvent:
        """Fill a host array, which is done once the event has been waited for, from the device, where `held` is."""
        self.let_go()
        block = self.staging.take(array.nbytes)
        if block is None:
            return self.copy(array.ctypes.data, source, array.nbytes, (array, held))
        self._copy(block.address, source, array.nbytes)
        event = FetchEvent(self, block, array)
        self._remember(event, held)
        return event

    def hold(self, what: object) -> CudaEvent:
        """Keep something alive until all that is enqueued so far is done."""
        event = self.record()
        self._remember(event, what)
        return event

    def _remember(self, event: CudaEvent, what: object) -> None:
        with self._lock:
            self._held.append((event, what))
            if len(self._held) > REMEMBERED:
                self.let_go()

    def let_go(self) -> None:
        """Let go of what finished commands have worked on."""
        self._settle()
        gone = []
        with self._lock:
            while self._held and self._held[0][0].done:
                event, what = self._held.popleft()
                event.arrive()
                gone.append(what)
        del gone  # freeing memory waits for the device, and what that waits for may need the lock

    def record(self, timed: bool = False) -> CudaEvent:
        return CudaEvent(self, timed)

    def wait(self, event: Event) -> None:
        if not isinstance(event, CudaEvent) or event.stream.driver.kin != self.driver.kin or event.for_the_host:
            self.relay(event)
        elif event.stream is not self:
            self._followed.add(event.stream)
            with explained("waiting for another stream", self.id):
                self.driver.order(self.handle, event.handle)

    def synchronize(self) -> None:
        try:
            self.driver.synchronize(self.handle)
        except CudaError as error:
            raise self.failure("work on a stream", error) from error
        self.finish()

    # ---- memory of others, and in the hands of others
    def part_with(self, owner: object) -> None:
        """Let go of what owns memory when the work that uses it is done.  It may be called by the collector."""
        self._parted.append(owner)

    def take_back(self, what: object, theirs: int) -> None:
        """Let go of memory that a stream of somebody else has worked on, if that is its handle.  It may be called by
        the collector."""
        self._returned.append((what, theirs))

    def _settle(self) -> None:
        while self._parted:
            self._remember(self.record(), self._parted.popleft())
        while self._returned:
            what, theirs = self._returned.popleft()
            if theirs > 0:
                with suppress(Error):  # the stream may be gone, and its work with it
                    self.follow(theirs)
            del what

    def follow(self, theirs: int) -> None:
        """Let what is enqueued later here begin after what is enqueued on a stream of somebody else."""
        self._order(theirs, self.handle)

    def lead(self, theirs: int) -> None:
        """Let what is enqueued later on a stream of somebody else begin after what is enqueued here."""
        self._order(self.handle, theirs)

    def _order(self, earlier: int, later: int) -> None:
        with explained("ordering two streams", self.id):
            event = self.driver.new_event(False)
            try:
                self.driver.record(event, earlier)
                self.driver.order(later, event)
            finally:
                self.driver.end_event(event)

    # ---- gates
    def gate(self) -> CudaGate | None:
        block = self.staging.take(4)
        if block is None:
            return None
        gate = CudaGate(self, block)
        with explained("making a gate", self.id):
            if not self.driver.hold_back(self.handle, block.address):
                return None
        self.hold(gate)
        with self._lock:
            self._gates.append(gate)
        return gate

    def fail(self, error: Exception) -> None:
        """Raise an error where the host waits."""
        with self._lock:
            self._failures.append(as_error(error))

    def finish(self) -> None:
        """Let go of what is done, and raise the first failure of a gate, here or in streams that this one waited
        for."""
        self.let_go()
        for stream in self._sources():
            with stream._lock:
                failures, stream._failures = stream._failures, []
            if failures:
                raise failures[0]

    def _sources(self) -> list[CudaStream]:
        """This stream and all that it has waited for, directly or not."""
        found = [self]
        for stream in found:
            found += [source for source in tuple(stream._followed) if source not in found]
        return found

    def failure(self, action: str, error: CudaError) -> Error:
        """An error of this stream's work, at the line that enqueued last."""
        found = failure(action, error, self.id)
        return found if self.line is None else found.locate(line=show_line(self.line))


class CudaGate(Gate):
    """A word of pinned memory that a stream waits for."""

    def __init__(self, stream: CudaStream, block: StagingBlock) -> None:
        self._stream, self._block = stream, block
        self._word = ctypes.c_uint32.from_address(block.address)
        self._word.value = 0
        self.opened = threading.Event()

    def open(self, error: Exception | None = None) -> None:
        if error is not None:
            self._stream.fail(error)
        self._word.value = 1
        self.opened.set()


class CudaEvent(Event):
    """A moment in a stream."""

    __slots__ = ("handle", "stream", "timed")
    for_the_host = False
    """The host has something to do before what is waited for is there."""

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
        self.arrive()
        self.stream.finish()

    def arrive(self) -> None:
        """Called when it is done, before anything that it waits for is used."""

    def seconds_since(self, earlier: Event) -> float | None:
        if not (isinstance(earlier, CudaEvent) and earlier.timed and self.timed):
            return None
        with explained("reading a clock", self.stream.id):
            return self.stream.driver.seconds(earlier.handle, self.handle)


class FetchEvent(CudaEvent):
    """The end of a copy to pinned memory, from where the bytes go on to an array."""

    __slots__ = ("_array", "_block", "_lock")
    for_the_host = True

    def __init__(self, stream: CudaStream, block: StagingBlock, array: HostArray) -> None:
        self._block: StagingBlock | None = block
        self._array, self._lock = array, threading.Lock()
        super().__init__(stream, timed=False)

    def arrive(self) -> None:
        with self._lock:
            block, self._block = self._block, None
            if block is not None:
                copy_on_host(self._array.ctypes.data, block.address, self._array.nbytes)
