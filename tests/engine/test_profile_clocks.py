"""Profiles take times from the device's clock where it has one, and wait behind each command where it has none."""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.builtin import StrictDevice
from nnc_core.device import DONE, DoneEvent, Event, SerialStream, Stream
from nnc_core.engine import Profile
from nnc_core.stacks import make_stack


class Tick(DoneEvent):
    """A moment on a clock on which every record is a second after the last."""

    def __init__(self, seconds: int) -> None:
        self.seconds = seconds

    def seconds_since(self, earlier: Event) -> float | None:
        return float(self.seconds - earlier.seconds) if isinstance(earlier, Tick) else None


class ClockStream(SerialStream):
    def __init__(self, clock: bool) -> None:
        self.clock, self.ticks, self.waits = clock, count(), 0

    def record(self, timed: bool = False) -> Event:
        return Tick(next(self.ticks)) if timed and self.clock else DONE

    def synchronize(self) -> None:
        self.waits += 1


class ClockDevice(StrictDevice):
    def __init__(self, clock: bool) -> None:
        self.clock = ClockStream(clock)
        super().__init__()

    def stream(self) -> Stream:
        return self.clock


def profiled(device: ClockDevice, repeats: int) -> Profile:
    x = nnc.asarray(np.ones(4, np.float32), device=make_stack(device))
    step = nnc.jit(lambda x: nnc.scan(lambda carry, row: (carry + row, carry), x[0], x)[0] * 2)
    run = step.lower(x)
    device.clock.waits = 0
    return run.profile(repeats, arg0=x)


def test_the_clock_of_the_device_counts_and_nobody_waits_in_between() -> None:
    device = ClockDevice(clock=True)
    found = profiled(device, repeats=3)
    assert all(timing.seconds == int(timing.seconds) >= 1 for timing in found.timings)
    assert max(timing.seconds for timing in found.timings) >= 4  # once in each round of the loop
    assert device.clock.waits <= 5


def test_without_a_clock_each_command_is_waited_for() -> None:
    device = ClockDevice(clock=False)
    found = profiled(device, repeats=3)
    assert device.clock.waits > 5
    assert found.seconds == pytest.approx(sum(timing.seconds for timing in found.timings))
