"""The null device: takes plans of any size, counts, computes nothing."""

from __future__ import annotations

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base import dtype as dt
from nnc_core.base.command import Command
from nnc_core.base.errors import AttributeValueError, DeviceError
from nnc_core.base.layout import Layout
from nnc_core.builtin import NullDevice, StrictDevice
from nnc_core.operator import OPERATORS
from nnc_core.operator.loops import elementwise_nest


@pytest.fixture
def device():
    return NullDevice()


def test_plans_of_any_size_are_counted(device) -> None:
    first, second = device.allocate(10**11), device.allocate(10**12)
    part = device.view(first, 64, 10**10)
    assert device.live_bytes == device.peak_bytes == 11 * 10**11
    del first, second
    assert device.live_bytes == 10**11
    del part
    assert device.live_bytes == 0
    assert device.peak_bytes == 11 * 10**11


def test_launches_are_counted_and_compute_nothing(device) -> None:
    layout = Layout.packed((10**10,), dt.float32)
    command = Command("add", (), (layout, layout), (layout,))
    buffers = [device.allocate(layout.nbytes) for _ in range(3)]
    (backend,) = device.backends("add")
    assert backend.refuse(command) is None
    assert backend.inplace(command, (0, 1)) == (0, 1)
    assert backend.workspace(command) == 0
    nest = elementwise_nest(OPERATORS["add"].scalar, command)
    for kernel in (backend.prepare(command), device.compile(nest)):
        launch = kernel.bind(buffers, device.default_stream)
        launch()
        launch()
    assert device.launches == 4


def test_plans_are_those_of_a_device_that_generates_its_code() -> None:
    with nnc.use_device("null:0"):
        run = nnc.jit(lambda x: nnc.linalg.inv(nnc.softmax(nnc.negative(x) * 2.0))).lower(nnc.zeros((64, 64))).program
    steps = [(step.group.label, step.decision.backend) for step in run.plan.steps]
    assert steps == [("fused(negative multiply max subtract exp sum divide)", "loop nest"), ("inv", "null")]


def test_downloads_give_zeros(device) -> None:
    buffer, out = device.allocate(64), np.ones(16, np.float32)
    device.upload(out, buffer).wait()
    device.fill(buffer, b"\1").wait()
    device.copy(buffer, device.allocate(64)).wait()
    device.download(buffer, out).wait()
    assert not out.any()
    assert device.transfers == 3


def test_a_launch_keeps_its_buffers_alive(device) -> None:
    layout = Layout.packed((4,), dt.float32)
    command = Command("add", (), (layout, layout), (layout,))
    (backend,) = device.backends("add")
    launch = backend.prepare(command).bind([device.allocate(16) for _ in range(3)])
    assert device.live_bytes == 48
    launch()
    del launch
    assert device.live_bytes == 0


@pytest.mark.parametrize(("offset", "nbytes"), [(64, 65), (-64, 1), (0, -1), (32, 8)])
def test_views_are_checked(device, offset, nbytes) -> None:
    with pytest.raises(AttributeValueError, match="does not lie within 128 bytes, aligned to 64"):
        device.view(device.allocate(128), offset, nbytes)


def test_misuse(device) -> None:
    with pytest.raises(AttributeValueError, match="64 bytes do not fit in a buffer of 8"):
        device.upload(np.zeros(16, np.float32), device.allocate(8))
    with pytest.raises(DeviceError, match=r"no buffer of this device[\s\S]*null:0"):
        device.copy(device.allocate(8), StrictDevice().allocate(8))
    with pytest.raises(AttributeValueError, match="-1 bytes"):
        device.allocate(-1)
