"""The strict device that works later: order, errors and memory of work that waits."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from nnc_core.base.errors import (
    DeviceFailureError,
    OutOfRangeError,
)
from tests.builtin.strict_devices import opened, stray_store

# Asynchronous work


def test_queued_work_runs_in_order_and_later() -> None:
    device, gate = opened("async"), threading.Event()
    buffer, numbers = device.allocate(16), np.arange(4, dtype=np.float32)
    device.run("gate", None, gate.wait)
    out = np.full(4, -1, np.float32)
    device.upload(numbers, buffer)
    done = device.download(buffer, out)
    assert (out == -1).all()  # nothing has run yet
    gate.set()
    done.wait()
    np.testing.assert_array_equal(out, numbers)


def test_streams_wait_for_each_others_events() -> None:
    device, gate = opened("async"), threading.Event()
    first, second = device.stream(), device.stream()
    buffer, out = device.allocate(4), np.zeros(4, np.uint8)
    device.run("gate", first, gate.wait)
    device.fill(buffer, b"\7", first)
    second.wait(first.record())
    done = device.download(buffer, out, second)
    gate.set()
    done.wait()
    assert (out == 7).all()


def test_errors_surface_once_at_the_next_wait_and_name_the_command() -> None:
    device = opened("async")
    buffer, stream = device.allocate(16), device.stream()
    before = stream.record()
    device.compile(stray_store(9)).bind([buffer], stream)()
    later = device.fill(buffer, b"\1", stream)
    before.wait()
    with pytest.raises(OutOfRangeError, match=r"stray: [\s\S]*strict-async:0"):
        later.wait()
    stream.synchronize()
    out = np.zeros(16, np.uint8)
    device.download(buffer, out, stream).wait()
    assert (out == 1).all()


def test_an_error_stays_with_its_stream() -> None:
    device = opened("async")
    first, second = device.stream(), device.stream()
    device.run("broken", first, lambda: 1 / 0)
    second.wait(first.record())
    second.synchronize()
    with pytest.raises(DeviceFailureError, match="broken: ZeroDivisionError"):
        first.synchronize()


def test_a_stream_that_is_gone_ends_its_thread() -> None:
    device = opened("async")
    before = set(threading.enumerate())
    stream = device.stream()
    (thread,) = set(threading.enumerate()) - before
    del stream
    thread.join(timeout=60)
    assert not thread.is_alive()
