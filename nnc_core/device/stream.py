"""Order of work on a device: serial within a stream, free between streams but for events."""

from __future__ import annotations

from abc import ABC, abstractmethod


class Event(ABC):
    """A moment in a stream."""

    @abstractmethod
    def wait(self) -> None:
        """Block the host until everything before the event is done; errors of that work are raised here."""


class Stream(ABC):
    """A queue of work that runs in order."""

    @abstractmethod
    def record(self) -> Event:
        """An event after everything enqueued so far."""

    @abstractmethod
    def wait(self, event: Event) -> None:
        """Let work enqueued later start only after `event`; does not block the host."""

    @abstractmethod
    def synchronize(self) -> None:
        """Block the host until the stream is empty; errors of its work are raised here."""


class DoneEvent(Event):
    """The event of a device whose work is done when the call returns."""

    def wait(self) -> None:
        return None


class SerialStream(Stream):
    """The stream of a device whose work is done when the call returns."""

    def record(self) -> Event:
        return DONE

    def wait(self, event: Event) -> None:
        event.wait()

    def synchronize(self) -> None:
        return None


DONE = DoneEvent()
