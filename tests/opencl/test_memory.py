"""Buffers, views, transfers and the limits of memory."""

from __future__ import annotations

import dataclasses
import gc
from collections.abc import Iterator

import numpy as np
import pyopencl as cl
import pytest

from nnc_core.base.dtype import ALL_DTYPES
from nnc_core.base.errors import DeviceError, DeviceMemoryError, OutOfRangeError
from nnc_core.device import Pool
from nnc_core.device.arenas import Arenas
from nnc_opencl import memory
from nnc_opencl.device import OpenCLDevice
from tests.opencl.running import get, put


@pytest.mark.parametrize("name", ALL_DTYPES)
@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (0, 4)])
def test_round_trip(device: OpenCLDevice, name: str, shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(ALL_DTYPES[name])
    assert get(device, put(device, array), array).tobytes() == array.tobytes()


def test_read_only_arrays_can_be_uploaded(device: OpenCLDevice) -> None:
    array = np.arange(4.0)
    array.flags.writeable = False
    np.testing.assert_array_equal(get(device, put(device, array), array), array)


def test_host_arrays_must_be_packed_and_fit(device: OpenCLDevice) -> None:
    buffer = device.allocate(16)
    with pytest.raises(DeviceError, match="C order"):
        device.upload(np.zeros((4, 4), np.float32)[:, 0], buffer)
    with pytest.raises(OutOfRangeError, match="20 bytes beside a buffer of 16"):
        device.download(buffer, np.zeros(5, np.float32))


def test_uploads_outlive_their_host_arrays(device: OpenCLDevice) -> None:
    """The caller may drop array and event; the transfer keeps what it reads."""
    buffer = device.allocate(4 << 20)
    for value in range(20):
        device.upload(np.full(1 << 20, value, np.int32), buffer)
    assert (get(device, buffer, np.empty(1 << 20, np.int32)) == 19).all()


def test_views_share_memory_and_keep_it(device: OpenCLDevice) -> None:
    step = device.spec.alignment
    numbers = np.arange(3 * step, dtype=np.uint8)
    whole = put(device, numbers)
    part = device.view(whole, step, 2 * step)
    inner = device.view(part, step, 5)
    device.fill(inner, b"\xff")
    del whole
    gc.collect()
    numbers[2 * step : 2 * step + 5] = 0xFF
    np.testing.assert_array_equal(get(device, part, numbers[step:]), numbers[step:])


def test_views_may_be_empty(device: OpenCLDevice) -> None:
    step = device.spec.alignment
    whole = device.allocate(step)
    for offset in (0, step):
        assert device.view(whole, offset, 0).nbytes == 0


def test_views_outside_or_unaligned_are_refused(device: OpenCLDevice) -> None:
    step = device.spec.alignment
    whole = device.allocate(4 * step)
    with pytest.raises(OutOfRangeError, match=f"of a buffer of {4 * step}"):
        device.view(whole, 3 * step, step + 1)
    with pytest.raises(OutOfRangeError):
        device.view(whole, -step, step)
    with pytest.raises(DeviceError, match=f"no multiple of {step}"):
        device.view(whole, step // 2, 1)


def test_copy_takes_the_smaller_size(device: OpenCLDevice) -> None:
    source, target = put(device, np.arange(8, dtype=np.int32)), put(device, np.zeros(4, np.int32))
    device.copy(source, target).wait()
    np.testing.assert_array_equal(get(device, target, np.empty(4, np.int32)), [0, 1, 2, 3])
    device.copy(put(device, np.array([7], np.int32)), target).wait()
    np.testing.assert_array_equal(get(device, target, np.empty(4, np.int32)), [7, 1, 2, 3])


def test_copy_of_nothing_and_onto_itself(device: OpenCLDevice) -> None:
    numbers = np.arange(8, dtype=np.int32)
    buffer = put(device, numbers)
    device.copy(buffer, buffer).wait()
    device.copy(device.allocate(0), buffer).wait()
    np.testing.assert_array_equal(get(device, buffer, numbers), numbers)


@pytest.mark.parametrize("pattern", [b"a", b"ab", b"abcd", b"abcdefgh"])
@pytest.mark.parametrize("nbytes", [0, 3, 8, 29])
def test_fill_repeats_its_pattern(device: OpenCLDevice, pattern: bytes, nbytes: int) -> None:
    buffer = put(device, np.zeros(nbytes, np.uint8))
    device.fill(buffer, pattern).wait()
    expected = np.resize(np.frombuffer(pattern, np.uint8), nbytes)
    np.testing.assert_array_equal(get(device, buffer, expected), expected)


def test_fill_refuses_other_patterns(device: OpenCLDevice) -> None:
    with pytest.raises(DeviceError, match="3 bytes"):
        device.fill(device.allocate(12), b"abc")


def test_one_allocation_beyond_the_limit(device: OpenCLDevice) -> None:
    limit = device.spec.max_allocation
    assert limit is not None
    with pytest.raises(DeviceMemoryError, match=f"{limit + 1} bytes asked for.*at most {limit}") as caught:
        device.allocate(limit + 1)
    assert caught.value.device == device.spec.id
    np.testing.assert_array_equal(get(device, put(device, np.arange(3)), np.arange(3)), np.arange(3))


@pytest.fixture
def small(device: OpenCLDevice, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenCLDevice]:
    """The device with 1000 bytes."""
    gc.collect()
    monkeypatch.setattr(device, "spec", dataclasses.replace(device.spec, memory=1000, max_allocation=800))
    monkeypatch.setattr(device, "_account", memory.Account())
    monkeypatch.setattr(device, "pool", Pool(1000))
    monkeypatch.setattr(device, "arenas", Arenas(1000))
    yield device


def test_memory_that_is_used_up_and_given_back(small: OpenCLDevice) -> None:
    kept, other = small.allocate(600), small.allocate(400)
    assert small.memory_info() == (0, 1000, 1000, 0, 0)
    with pytest.raises(DeviceMemoryError, match="1 bytes asked for; 1000 of 1000 are in use"):
        small.allocate(1)
    del other
    assert small.memory_info() == (400, 1000, 600, 400, 0)
    assert small.allocate(400).nbytes == 400
    assert kept.nbytes == 600


def test_memory_in_reference_cycles_is_collected_before_giving_up(small: OpenCLDevice) -> None:
    cycle: list[object] = [small.allocate(800)]
    cycle.append(cycle)
    del cycle
    assert small.allocate(800).nbytes == 800


def test_a_driver_without_memory(small: OpenCLDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its error is ours, and the bytes are booked out again."""

    class OutOfMemoryError(cl.Error):
        pass

    def refuse(*arguments: object) -> None:
        raise OutOfMemoryError("MEM_OBJECT_ALLOCATION_FAILURE")

    with monkeypatch.context() as patch:
        patch.setattr(memory.cl, "Buffer", refuse)
        with pytest.raises(DeviceMemoryError, match="the driver has no more"):
            small.allocate(100)
    assert small.memory_info() == (1000, 1000, 0, 0, 0)
    assert small.allocate(800).nbytes == 800


def test_a_view_counts_as_the_whole_that_it_keeps(small: OpenCLDevice) -> None:
    view = small.view(small.allocate(500), 0, 100)
    gc.collect()
    assert small.memory_info() == (500, 1000, 500, 0, 0)
    del view
    assert small.memory_info() == (1000, 1000, 0, 500, 0)


def test_foreign_buffers_are_refused(device: OpenCLDevice) -> None:
    class Foreign:
        nbytes = 8

    with pytest.raises(DeviceError, match="no buffer of an OpenCL device"):
        device.upload(np.zeros(1), Foreign())
