"""Streams are in-order command queues.

A queue goes on after a command that failed and tells nobody, so a stream remembers its commands until they
are done and raises the failures where the host waits.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import pyopencl as cl

from nnc_core.base.errors import Error, as_error
from nnc_core.base.line import Line, show_line
from nnc_core.device import Event, Gate, Stream, origin
from nnc_opencl.failure import failure, failure_of_code

REMEMBERED = 1024
"""Commands after which those that are done are looked through."""
STATUS, COMPLETE = cl.event_info.COMMAND_EXECUTION_STATUS, int(cl.command_execution_status.COMPLETE)
"""Names of PyOpenCL's, which take as long to look up as the driver takes to answer."""


class Asked(NamedTuple):
    """A command's name if it fails, the user's line that asked for it, and the buffers
    that it works on: with these its event is remembered."""

    label: str
    line: Line | None = None
    held: object = None


class OpenCLStream(Stream):
    """One queue.  Any thread may enqueue and wait."""

    def __init__(self, context: cl.Context, device: cl.Device, id: str, keeps: bool = True) -> None:
        """`keeps`: hold the buffers of commands until these are done.  Memory is used again in the order of the default
        stream, which needs no hold of it for that reason."""
        self.context, self.id, self.keeps = context, id, keeps
        self.queue = cl.CommandQueue(context, device, properties=cl.command_queue_properties.PROFILING_ENABLE)
        self._commands: deque[tuple[cl.Event, Asked]] = deque()
        self._failures: list[Error] = []
        self._followed: set[OpenCLStream] = set()
        self._lock = threading.RLock()  # the collector may end an upload, and come back, while it is held

    def submit(self, label: str, enqueue: Callable[..., cl.Event], *arguments: Any, held: object = None,
               **options: Any) -> OpenCLEvent:
        """`enqueue(queue, *arguments, **options)`, which works on the buffers `held`; `label` names the command if it
        fails."""
        try:
            event = enqueue(self.queue, *arguments, **options)
        except cl.Error as error:
            raise failure(label, error, self.id) from error
        self.remember(event, Asked(label, origin.get(), held if self.keeps else None))
        return OpenCLEvent(self, event)

    def remember(self, event: cl.Event, asked: Asked) -> None:
        """Keep a command until it is done."""
        commands = self._commands
        commands.append((event, asked))
        if len(commands) >= REMEMBERED:
            self.forget_done()

    def forget_done(self) -> None:
        """Let go of finished commands and of the host arrays that they held; keep failures for a wait."""
        with self._lock:
            commands = self._commands
            while commands:
                event, asked = commands[0]
                status: Any = event.get_info(STATUS)
                if status > COMPLETE:
                    return
                commands.popleft()
                if status < 0:
                    error = failure_of_code(asked.label, status, self.id)
                    self._failures.append(error if asked.line is None else error.locate(line=show_line(asked.line)))

    def raise_failure(self) -> None:
        """Raise the first failure of what is done, here and in streams that this one waited for.

        Failures after the first have followed from it.  Drivers do not pass them on from stream to stream.
        """
        for stream in self._sources():
            stream.forget_done()
            with stream._lock:
                failures, stream._failures = stream._failures, []
            if failures:
                raise failures[0]

    def _sources(self) -> list[OpenCLStream]:
        """This stream and all that it has waited for, directly or not."""
        found = [self]
        for stream in found:
            found += [source for source in tuple(stream._followed) if source not in found]
        return found

    def fail(self, error: Exception) -> None:
        """Raise an error where the host waits."""
        with self._lock:
            self._failures.append(as_error(error))

    def gate(self) -> OpenCLGate:
        try:
            opened = cl.UserEvent(self.context)
        except cl.Error as error:
            raise failure("making a gate", error, self.id) from error
        self.submit("waiting for another device", cl.enqueue_barrier, wait_for=[opened])
        return OpenCLGate(self, opened)

    def record(self, timed: bool = False) -> OpenCLEvent:
        last = self._last() if timed else None  # it ends then as well, and a marker takes longer than most kernels
        event = self.submit("marking a moment", cl.enqueue_marker) if last is None else OpenCLEvent(self, last)
        self.queue.flush()  # or another queue might wait for what has not been sent
        return event

    def _last(self) -> cl.Event | None:
        """The command enqueued last, if it is remembered."""
        with self._lock:
            return self._commands[-1][0] if self._commands else None

    def wait(self, event: Event) -> None:
        if not isinstance(event, OpenCLEvent) or event.stream.context != self.context:
            self.relay(event)
        elif event.stream is not self:
            self._followed.add(event.stream)
            self.submit("waiting for another stream", cl.enqueue_barrier, wait_for=[event.event])

    def synchronize(self) -> None:
        try:
            self.queue.finish()
        except cl.Error as error:
            raise failure("finishing a stream", error, self.id) from error
        self.raise_failure()


class OpenCLGate(Gate):
    """An event of the host's, for which a queue waits.  It never fails, as drivers differ in what a queue does then."""

    def __init__(self, stream: OpenCLStream, opened: cl.UserEvent) -> None:
        self._stream, self._opened = stream, opened

    def open(self, error: Exception | None = None) -> None:
        if error is not None:
            self._stream.fail(error)
        self._opened.set_status(cl.command_execution_status.COMPLETE)


class OpenCLEvent(Event):
    """A command of a stream, and so everything before it."""

    __slots__ = ("event", "stream")

    def __init__(self, stream: OpenCLStream, event: cl.Event) -> None:
        self.stream, self.event = stream, event

    @property
    def done(self) -> bool:
        return bool(self.event.command_execution_status <= cl.command_execution_status.COMPLETE)

    def seconds_since(self, earlier: Event) -> float | None:
        if not isinstance(earlier, OpenCLEvent):
            return None
        try:
            return float(self.event.profile.end - earlier.event.profile.end) * 1e-9
        except cl.Error:  # there are drivers without a clock
            return None

    def wait(self) -> None:
        try:
            self.event.wait()
        except cl.Error as error:
            self.stream.raise_failure()
            raise failure("a command", error, self.stream.id) from error
        self.stream.raise_failure()
