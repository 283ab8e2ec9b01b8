"""The strict devices: they compute, and every misuse is one clear error after which the device works."""

from __future__ import annotations

import gc
from dataclasses import replace

import numpy as np
import pytest

from nnc_core.base import dtype as dt
from nnc_core.base.command import Command
from nnc_core.base.errors import (
    AttributeValueError,
    DeviceError,
    DeviceFailureError,
    DeviceMemoryError,
    DTypeError,
    NotSupportedError,
    OperandError,
    OutOfRangeError,
)
from nnc_core.base.layout import Layout
from nnc_core.base.loopnest import LoopNest
from nnc_core.builtin import NullDevice, StrictDevice
from nnc_core.builtin.queues import QueueStream
from nnc_core.device import SerialStream
from nnc_core.operator import OPERATORS
from nnc_core.operator.loops import elementwise_nest
from tests.builtin.strict_devices import BY_NAME, opened, stray_store


def on(device, array):
    buffer = device.allocate(array.nbytes)
    device.upload(array, buffer).wait()
    return buffer


def host(device, buffer, like):
    out = np.empty_like(like)
    device.download(buffer, out).wait()
    return out


def addition(n: int, dtype=dt.float32) -> LoopNest:
    layout = Layout.packed((n,), dtype)
    return elementwise_nest(OPERATORS["add"].scalar, Command("add", (), (layout, layout), (layout,)))


def test_it_computes(device) -> None:
    a, b = np.arange(5, dtype=np.float32), np.full(5, 2, np.float32)
    buffers = [on(device, a), on(device, b), device.allocate(a.nbytes)]
    launch = device.compile(addition(5)).bind(buffers, device.default_stream)
    launch()
    launch()
    np.testing.assert_array_equal(host(device, buffers[2], a), a + b)


def test_copies_and_fills(device) -> None:
    source, target = on(device, np.arange(8, dtype=np.int32)), device.allocate(64)
    device.fill(target, np.int32(-7).tobytes()).wait()
    device.copy(source, target).wait()
    expected = np.r_[np.arange(8), np.full(8, -7)].astype(np.int32)
    np.testing.assert_array_equal(host(device, target, expected), expected)


def test_a_view_shares_memory_and_keeps_it_alive(plain) -> None:
    whole = on(plain, np.arange(64, dtype=np.float32))
    part = plain.view(whole, 128, 64)
    del whole
    np.testing.assert_array_equal(host(plain, part, np.empty(16, np.float32)), np.arange(32, 48))
    assert plain.memory_info()[0] == plain.spec.memory - 256
    plain.fill(part, b"\0").wait()
    assert not host(plain, part, np.empty(16, np.float32)).any()


def test_a_buffer_tells_its_size_only(plain) -> None:
    buffer = plain.allocate(16)
    assert [name for name in dir(buffer) if name in ("__array__", "shape", "dtype", "data")] == []
    assert np.asarray(buffer).dtype == object
    with pytest.raises(TypeError):
        memoryview(buffer)


def test_memory_is_counted_and_given_back(device) -> None:
    free, total, used, pooled, kept = device.memory_info()
    assert (used, pooled, kept) == (0, 0, 0)
    buffer = device.allocate(1000)
    assert device.memory_info() == (free - 1000, total, 1000, 0, 0)
    del buffer
    gc.collect()
    assert device.memory_info() == (free, total, 0, 1000, 0)
    assert device.trim() == 1000
    assert device.memory_info() == (free, total, 0, 0, 0)


def test_launches_keep_their_buffers_alive(plain) -> None:
    free = plain.memory_info().free
    launch = plain.compile(addition(4)).bind([plain.allocate(16) for _ in range(3)])
    assert plain.memory_info().free == free - 48
    launch()
    del launch
    assert plain.memory_info().free == free


def test_small_memory_runs_out_and_recovers() -> None:
    device = opened("small")
    kept = [device.allocate(1 << 20) for _ in range(64)]
    with pytest.raises(DeviceMemoryError, match="1 bytes do not fit: 67108864 of 67108864 are in use"):
        device.allocate(1)
    with pytest.raises(MemoryError, match="1048577 bytes at once are more than the 1048576 allowed"):
        device.allocate((1 << 20) + 1)
    kept.pop()
    assert device.allocate(1 << 20).nbytes == 1 << 20


def test_more_than_there_is(plain) -> None:
    with pytest.raises(DeviceMemoryError, match=r"100000000000 bytes do not fit[\s\S]*strict:0"):
        plain.allocate(10**11)
    assert plain.allocate(8).nbytes == 8


def test_what_the_host_cannot_give() -> None:
    device = StrictDevice(replace(BY_NAME["plain"], memory=1 << 62))
    free = device.memory_info().free
    with pytest.raises(DeviceMemoryError, match="the host has no 2305843009213693952 bytes"):
        device.allocate(1 << 61)
    assert device.memory_info()[0] == free


def test_negative_sizes(plain) -> None:
    with pytest.raises(AttributeValueError, match="-1 bytes"):
        plain.allocate(-1)


@pytest.mark.parametrize(("offset", "nbytes"), [(-64, 8), (64, 129), (256, 0), (0, -1), (192, 1)])
def test_views_that_leave_their_buffer(plain, offset, nbytes) -> None:
    with pytest.raises(AttributeValueError, match=r"not lie within <buffer of 191 bytes>[\s\S]*strict:0"):
        plain.view(plain.allocate(191), offset, nbytes)


def test_views_that_are_not_aligned() -> None:
    for name, alignment in (("plain", 64), ("align128", 128)):
        device = opened(name)
        buffer = device.allocate(512)
        assert device.view(buffer, alignment, 8).nbytes == 8
        with pytest.raises(AttributeValueError, match=f"not aligned to {alignment}"):
            device.view(buffer, alignment // 2, 8)


def test_without_views() -> None:
    device = opened("noviews")
    buffer = device.allocate(128)
    assert "no-views" in device.spec.features
    assert device.view(buffer, 0, 128).nbytes == 128
    with pytest.raises(NotSupportedError, match="no views"):
        device.view(buffer, 0, 64)
    assert device.array(buffer, Layout.packed((4, 8), dt.float32)).shape == (4, 8)
    for layout in (Layout.packed((4,), dt.float32, 64), Layout((4, 8), dt.float32, 0, (4, 16))):
        with pytest.raises(NotSupportedError, match="packed arrays only"):
            device.array(buffer, layout)


@pytest.mark.parametrize("layout", [
    Layout.packed((17,), dt.float32), Layout((2,), dt.float32, 0, (-4,)), Layout.packed((1,), dt.float32, 62),
    Layout.packed((1,), dt.float32, -4), Layout((2,), dt.float32, 0, (6,)),
])  # fmt: skip
def test_arrays_that_do_not_fit_their_buffer(plain, layout) -> None:
    with pytest.raises(AttributeValueError, match=r"does not lie within|not aligned to their size"):
        plain.array(plain.allocate(64), layout)


def test_without_float64() -> None:
    device = opened("nofloat64")
    buffer = device.allocate(64)
    assert "float64" not in device.spec.dtypes
    with pytest.raises(NotSupportedError, match=r"loop nest add: device has no float64[\s\S]*strict-nof"):
        device.compile(addition(3, dt.float64))
    with pytest.raises(DTypeError, match="no float64"):
        device.upload(np.zeros(2), buffer)
    with pytest.raises(DTypeError, match="no float64"):
        device.array(buffer, Layout.packed((2,), dt.float64))


def test_transfers_of_the_wrong_kind(plain) -> None:
    buffer = plain.allocate(32)
    square = np.zeros((4, 4), np.float32)
    with pytest.raises(AttributeValueError, match="upload: the host array is not C-contiguous"):
        plain.upload(square[:2, :2], buffer)
    with pytest.raises(AttributeValueError, match="download: the host array is not C-contiguous"):
        plain.download(buffer, square[:, 0])
    with pytest.raises(AttributeValueError, match="64 bytes, more than <buffer of 32 bytes>"):
        plain.upload(square, buffer)
    with pytest.raises(AttributeValueError, match="64 bytes, more than"):
        plain.download(buffer, square)
    with pytest.raises(OperandError, match="NumPy array, not list"):
        plain.upload([1.0], buffer)
    with pytest.raises(DTypeError, match="complex256"):
        plain.upload(np.zeros(1, np.clongdouble), buffer)
    square.setflags(write=False)
    with pytest.raises(AttributeValueError, match="read-only"):
        plain.download(plain.allocate(64), square)


def test_fills_of_the_wrong_kind(plain) -> None:
    with pytest.raises(AttributeValueError, match="1, 2, 4 or 8 bytes, not 3"):
        plain.fill(plain.allocate(6), b"abc")
    with pytest.raises(AttributeValueError, match="no whole number of patterns of 4"):
        plain.fill(plain.allocate(6), b"abcd")


def test_what_belongs_to_others(plain) -> None:
    other, mine = opened("plain"), plain.allocate(16)
    kernel = plain.compile(addition(4))
    for stranger in (other.allocate(16), NullDevice().allocate(16), np.zeros(4, np.float32)):
        with pytest.raises(DeviceError, match="no buffer of this device"):
            kernel.bind([mine, mine, stranger])
        with pytest.raises(DeviceError, match="no buffer of this device"):
            plain.copy(stranger, mine)
    with pytest.raises(DeviceError, match="no stream of this device"):
        plain.fill(mine, b"\0", QueueStream("elsewhere", None))
    with pytest.raises(DeviceError, match="no stream of this device"):
        queued = opened("async")
        queued.fill(queued.allocate(1), b"\0", SerialStream())


def test_the_number_of_buffers(plain) -> None:
    with pytest.raises(AttributeValueError, match="add: 2 buffers for 3 arguments"):
        plain.compile(addition(4)).bind([plain.allocate(16)] * 2)


@pytest.mark.parametrize("element", [4, -1, 10**12])
def test_an_access_outside_its_buffer_touches_nothing(plain, element) -> None:
    buffer = on(plain, np.zeros(4, np.float32))
    with pytest.raises(OutOfRangeError, match=r"stray: .*store of element[\s\S]*strict:0"):
        plain.compile(stray_store(element)).bind([buffer])()
    assert not host(plain, buffer, np.empty(4, np.float32)).any()


def test_after_close_everything_is_refused(device) -> None:
    buffer = device.allocate(4)
    launch = device.compile(stray_store(0)).bind([buffer])
    device.close()
    device.close()
    for use in (lambda: device.allocate(1), lambda: device.fill(buffer, b"\0"), launch,
                lambda: device.compile(stray_store(0))):
        with pytest.raises(DeviceFailureError, match="closed"):
            use()


def test_poison_fills_fresh_memory() -> None:
    device = opened("poison")
    for dtype in dt.FLOATS:
        assert np.isnan(host(device, device.allocate(64), np.zeros(8, dtype)).astype(np.float32)).all()


def test_poison_fills_freed_memory() -> None:
    """What goes into the pool, and what goes back to the host."""
    device = opened("poison")
    for trimmed in (False, True):
        buffer = on(device, np.zeros(8, np.float32))
        content = buffer.open(device)
        del buffer
        if trimmed:
            device.trim()
        else:
            assert device.memory_info().pooled == 32
        assert (content == 0xFF).all()


def test_poison_fills_memory_that_is_used_again() -> None:
    device = opened("poison")
    buffer = on(device, np.zeros(8, np.float32))
    block = device.pool.block_of(buffer)
    del buffer
    again = device.allocate(32)
    assert device.pool.block_of(again) is block
    assert np.isnan(host(device, again, np.zeros(8, np.float32))).all()
