"""Streams and events: work runs in order, waits where it is told to, and is done when the host has waited."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.dtype import int32
from nnc_core.device import DONE, Device
from nnc_core.stacks import Stack, stack_for
from nnc_core.type import TensorSpec
from nnc_plugins.conformance.running import get, kernel, put

N = 4099
SPEC = TensorSpec((N,), int32)
ONES = np.ones(N, np.int32)


def test_work_runs_in_the_order_of_its_stream(stack: Stack) -> None:
    """Each launch reads what the one before has written."""
    device = stack.device
    a, b, one = device.allocate(SPEC.nbytes), device.allocate(SPEC.nbytes), put(device, ONES)
    device.fill(a, b"\x00")
    add = kernel(stack, "add", SPEC, SPEC)
    there, back = add.bind([a, one, b]), add.bind([b, one, a])
    for _ in range(50):
        there()
        back()
    assert (get(device, a, ONES) == 100).all()


def test_transfers_run_in_the_order_of_their_stream(device: Device) -> None:
    a, b = device.allocate(ONES.nbytes), device.allocate(ONES.nbytes)
    rounds = [np.full(N, k, np.int32) for k in range(20)]
    seen = [np.empty(N, np.int32) for _ in rounds]
    for host, out in zip(rounds, seen, strict=True):
        device.upload(host, a)
        device.copy(a, b)
        last = device.download(b, out)
    last.wait()
    assert [int(out[0]) for out in seen] == list(range(20)) and all((out == out[0]).all() for out in seen)


def test_a_new_stream_works(stack: Stack) -> None:
    device, stream = stack.device, stack.device.stream()
    a, out = put(device, ONES), device.allocate(ONES.nbytes)
    kernel(stack, "add", SPEC, SPEC).bind([a, a, out], stream)()
    host = np.empty(N, np.int32)
    device.download(out, host, stream).wait()
    assert (host == 2).all()


def test_one_stream_waits_for_another(stack: Stack) -> None:
    device, first, second = stack.device, stack.device.stream(), stack.device.stream()
    one, a, b, c = put(device, ONES), *(device.allocate(ONES.nbytes) for _ in range(3))
    add = kernel(stack, "add", SPEC, SPEC)
    for k in range(10):
        device.upload(np.full(N, k, np.int32), a, first)
        add.bind([a, one, b], first)()
        second.wait(first.record())
        add.bind([b, one, c], second)()
        first.wait(second.record())
        host = np.empty(N, np.int32)
        device.download(c, host, second).wait()
        assert (host == k + 2).all()


def test_synchronize_waits_for_everything(stack: Stack) -> None:
    device, stream = stack.device, stack.device.stream()
    a, out = put(device, ONES), device.allocate(ONES.nbytes)
    kernel(stack, "add", SPEC, SPEC).bind([a, a, out], stream)()
    host = np.empty(N, np.int32)
    device.download(out, host, stream)
    stream.synchronize()
    assert (host == 2).all()


def test_events_may_be_waited_for_often_and_of_nothing(device: Device) -> None:
    stream = device.stream()
    event = stream.record()
    event.wait()
    event.wait()
    stream.wait(event)
    stream.synchronize()
    device.default_stream.wait(event)
    device.default_stream.synchronize()
    sent, back = np.arange(N, dtype=np.int32), np.zeros(N, np.int32)
    buffer = device.allocate(sent.nbytes)
    device.upload(sent, buffer, stream)
    stream.record().wait()
    device.download(buffer, back, stream).wait()
    assert (back == sent).all()  # the streams still work, in order


def test_events_say_when_they_are_reached(device: Device) -> None:
    heard: list[Exception | None] = []
    told = threading.Event()

    def react(error: Exception | None) -> None:
        heard.append(error)
        told.set()

    event = device.upload(np.zeros(N, np.int32), device.allocate(ONES.nbytes))
    event.when_done(react)
    event.wait()
    assert event.done
    assert told.wait(60) and heard == [None]
    event.when_done(heard.append)
    assert heard == [None, None]


def test_a_clock_goes_forward(stack: Stack) -> None:
    device = stack.device
    a, out = put(device, ONES), device.allocate(ONES.nbytes)
    launch = kernel(stack, "add", SPEC, SPEC).bind([a, a, out])
    moments = [device.default_stream.record(timed=True)]
    for _ in range(2):
        launch()
        moments.append(device.default_stream.record(timed=True))
    device.default_stream.synchronize()
    first, second, third = moments
    if second.seconds_since(first) is None:
        pytest.skip("the device has no clock")
    parts = [second.seconds_since(first), third.seconds_since(second)]
    whole = third.seconds_since(first)
    assert whole is not None and all(part is not None and part >= 0 for part in parts)
    assert abs(whole - sum(part or 0 for part in parts)) <= 1e-6  # what clocks tell


def test_a_gate_holds_what_comes_after_it(device: Device) -> None:
    stream, a, host = device.stream(), put(device, ONES), np.zeros(N, np.int32)
    before = stream.record()
    gate = stream.gate()
    if gate is None:
        pytest.skip("work is done when a call returns")
    event = device.download(a, host, stream)
    before.wait()
    assert not event.done and not host.any()
    gate.open()
    event.wait()
    assert (host == 1).all()


def test_the_error_that_opens_a_gate_is_raised_by_what_waits_behind_it(device: Device) -> None:
    stream = device.stream()
    gate = stream.gate()
    if gate is None:
        pytest.skip("work is done when a call returns")
    event = stream.record()
    gate.open(nnc.errors.DeviceFailureError("lost on the way"))
    with pytest.raises(nnc.errors.DeviceFailureError, match="lost on the way"):
        event.wait()
    stream.synchronize()


@pytest.mark.parametrize("other", ["strict:0", "strict-async:0"])
def test_a_stream_waits_for_another_device(device: Device, other: str) -> None:
    """There and back through the host's memory, with nobody waiting before the end."""
    there = stack_for(other).device
    mine, theirs = put(device, ONES), there.allocate(ONES.nbytes)
    for k in range(5):
        sent, back = np.zeros(N, np.int32), np.zeros(N, np.int32)
        device.fill(mine, bytes([k] * 4))
        there.default_stream.wait(device.download(mine, sent))
        there.upload(sent, theirs)
        device.default_stream.wait(there.download(theirs, back))
        device.upload(back, mine)
        assert (get(device, mine, ONES) == int.from_bytes(bytes([k] * 4), "little")).all()


def test_done_is_done(device: Device) -> None:
    assert DONE.done
    device.default_stream.wait(DONE)
