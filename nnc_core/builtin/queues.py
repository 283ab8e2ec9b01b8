"""Streams whose work is done later, by a thread of their own and after small delays."""

from __future__ import annotations

import random
import threading
import time
import weakref
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import TypeAlias

from nnc_core.base.errors import DeviceFailureError, Error
from nnc_core.base.line import Line, show_line
from nnc_core.device import Event, Gate, Stream, origin

Work: TypeAlias = Callable[[], object]
DELAY = 4e-4
"""The longest pause before a command, in seconds."""


class _Line:
    """The queue that a stream shares with its thread, which must not keep the stream alive."""

    def __init__(self, device: str, home: object) -> None:
        self.device, self.home = device, home
        self.work: SimpleQueue[tuple[int, str, Work, Line | None] | None] = SimpleQueue()
        self.failure: tuple[int, Error] | None = None
        self.count = 0
        self.lock = threading.Lock()
        self.delays = random.Random(0)

    def put(self, command: str, work: Work, line: Line | None = None) -> int:
        with self.lock:
            self.count += 1
            self.work.put((self.count, command, work, line))
            return self.count

    def serve(self) -> None:
        while (item := self.work.get()) is not None:
            self.do(*item)
            del item  # the buffers of finished work are free while the thread waits for more

    def do(self, number: int, command: str, work: Work, line: Line | None) -> None:
        try:
            work()
        except Exception as error:
            located = error if isinstance(error, Error) else DeviceFailureError(f"{type(error).__name__}: {error}")
            located.locate(operator=command, device=self.device, line=None if line is None else show_line(line))
            with self.lock:
                self.failure = self.failure or (number, located)

    def raise_failure(self, until: int) -> None:
        """Raise, once, the first error of work up to number `until`."""
        with self.lock:
            if self.failure is None or self.failure[0] > until:
                return
            error, self.failure = self.failure[1], None
        raise error


class QueueEvent(Event):
    """Set by the stream's thread when it gets there."""

    def __init__(self, line: _Line) -> None:
        self._line, self._reached = line, threading.Event()
        self._seconds = 0.0
        self._number = line.put("event", self._reach)

    def wait(self) -> None:
        """Errors of the stream's earlier work are raised here, the first one, once."""
        self._reached.wait()
        self._line.raise_failure(self._number)

    def _reach(self) -> None:
        self._seconds = time.perf_counter()
        self._reached.set()

    @property
    def done(self) -> bool:
        return self._reached.is_set()

    @property
    def home(self) -> object:
        return self._line.home

    def seconds_since(self, earlier: Event) -> float | None:
        return self._seconds - earlier._seconds if isinstance(earlier, QueueEvent) else None

    def block(self) -> None:
        """Until it is reached, for the thread of another stream: errors stay with their own stream."""
        self._reached.wait()


class QueueGate(Gate):
    """Holds the stream's thread."""

    def __init__(self) -> None:
        self._opened = threading.Event()
        self._error: Exception | None = None

    def open(self, error: Exception | None = None) -> None:
        self._error = error
        self._opened.set()

    def go_through(self) -> None:
        self._opened.wait()
        if self._error is not None:
            raise self._error


class QueueStream(Stream):
    """A first-in, first-out queue with one thread, which ends with the stream."""

    def __init__(self, device: str, home: object) -> None:
        """`home`: one object for all streams of a device."""
        self._line = _Line(device, home)
        threading.Thread(target=self._line.serve, name=f"nnc {device}", daemon=True).start()
        weakref.finalize(self, self._line.work.put, None)

    def enqueue(self, command: str, work: Work, line: Line | None = None) -> None:
        """Do `work` after a small delay; an error names `command`, and `line` or the line that work is enqueued for."""
        self._line.put("pause", partial(time.sleep, self._line.delays.uniform(0, DELAY)))
        self._line.put(command, work, line or origin.get())

    def record(self, timed: bool = False) -> QueueEvent:
        return QueueEvent(self._line)

    def gate(self) -> QueueGate:
        gate = QueueGate()
        self._line.put("gate", gate.go_through)
        return gate

    def wait(self, event: Event) -> None:
        if isinstance(event, QueueEvent) and event.home is self._line.home:
            self._line.put("wait", event.block)
        else:
            self.relay(event)

    def synchronize(self) -> None:
        self.record().wait()
