"""Order of work on a device: serial within a stream, free between streams but for events."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from time import perf_counter
from typing import TypeAlias

Reaction: TypeAlias = Callable[[Exception | None], object]


class Event(ABC):
    """A moment in a stream."""

    @abstractmethod
    def wait(self) -> None:
        """Block the host until everything before the event is done; errors of that work are raised here."""

    @property
    @abstractmethod
    def done(self) -> bool:
        """True if everything before the event is done, or has failed: asking neither waits nor raises."""

    def when_done(self, react: Reaction) -> None:
        """Call `react` once the event is reached, with the error that `wait` would raise or None: at once if it is
        done, else from some thread.  Errors that it is given are raised by nobody else."""
        if self.done:
            _wait_and_tell(self, react)
        else:  # no daemon: at its end Python waits for it, so that no stream is left behind a gate
            threading.Thread(target=_wait_and_tell, args=(self, react), name="nnc relay").start()

    def seconds_since(self, earlier: Event) -> float | None:
        """Seconds on the device's clock from another event of the same stream to this one.  Both are done and were
        recorded as `timed`; None where the device has no clock."""
        return None


class Gate(ABC):
    """A moment in a stream that comes when the host, or another device, says so."""

    @abstractmethod
    def open(self, error: Exception | None = None) -> None:
        """Let the work behind it begin.  An error is raised where the host waits for that work.  Any thread may call
        it, once."""


class Stream(ABC):
    """A queue of work that runs in order.  Any thread may enqueue and wait."""

    @abstractmethod
    def record(self, timed: bool = False) -> Event:
        """An event after everything enqueued so far; `timed`: `Event.seconds_since` is going to be asked of it."""

    @abstractmethod
    def wait(self, event: Event) -> None:
        """Let work enqueued later start only after `event`, which may be of another device: give that to `relay`.
        Does not block the host, unless all work here is done when a call returns."""

    @abstractmethod
    def synchronize(self) -> None:
        """Block the host until the stream is empty; errors of its work are raised here."""

    def gate(self) -> Gate | None:
        """A gate before everything enqueued later; None where work cannot be held back."""
        return None

    def relay(self, event: Event) -> None:
        """Wait for an event of another device: by a gate that it opens, or on the host where there are none."""
        gate = None if event.done else self.gate()
        if gate is None:
            event.wait()
        else:
            event.when_done(gate.open)


def _wait_and_tell(event: Event, react: Reaction) -> None:
    try:
        event.wait()
    except Exception as error:
        react(error)
    else:
        react(None)


class DoneEvent(Event):
    """The event of a device whose work is done when the call returns."""

    def wait(self) -> None:
        return None

    @property
    def done(self) -> bool:
        return True


class TimedEvent(DoneEvent):
    """The same, with the host's clock."""

    def __init__(self) -> None:
        self.seconds = perf_counter()

    def seconds_since(self, earlier: Event) -> float | None:
        return self.seconds - earlier.seconds if isinstance(earlier, TimedEvent) else None


class SerialStream(Stream):
    """The stream of a device whose work is done when the call returns."""

    def record(self, timed: bool = False) -> Event:
        return TimedEvent() if timed else DONE

    def wait(self, event: Event) -> None:
        event.wait()

    def synchronize(self) -> None:
        return None


DONE = DoneEvent()
