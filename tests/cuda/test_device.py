"""The device's own logic on a driver whose streams are as late as CUDA allows: kernels, streams, memory, errors."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from nnc_core.base.dtype import float32
from nnc_core.base.errors import (
    DeviceError,
    DeviceFailureError,
    DeviceLostError,
    DeviceMemoryError,
    NotSupportedError,
    OutOfRangeError,
)
from nnc_core.base.layout import Layout
from nnc_cuda.device import CudaDevice
from nnc_cuda.driver import CudaError
from nnc_cuda.kernel import THREADS
from nnc_cuda.modules import MOST_ARGUMENTS, last_words
from tests.cuda.host_driver import HostDriver
from tests.cuda.running import get, put, sum_nest
from tests.opencl.cases import Case, nest_of


@pytest.mark.parametrize("count", [0, 1, THREADS - 1, THREADS, 3 * THREADS + 1])
def test_kernels(device: CudaDevice, count: int) -> None:
    a, b = np.arange(count, dtype=np.float32), np.ones(count, np.float32)
    out = device.allocate(max(a.nbytes, 4))
    device.compile(sum_nest(count)).bind([put(device, a), put(device, b), out])()
    np.testing.assert_array_equal(get(device, out, count), a + 1)


def test_a_launch_lives_no_longer_than_it_is_enqueued(device: CudaDevice, driver: HostDriver) -> None:
    """CUDA reads arguments when a kernel is launched; it runs much later here."""
    x = np.ones(10, np.float32)
    a, out = put(device, x), device.allocate(x.nbytes)
    launch = device.compile(sum_nest(10)).bind([a, a, out])
    launch()
    del launch
    gc.collect()
    np.testing.assert_array_equal(get(device, out, 10), 2 * x)


def test_nests_of_one_kind_share_code(device: CudaDevice, driver: HostDriver) -> None:
    kernels = [device.compile(sum_nest(count)) for count in (100, 200, 300)]
    assert len({kernel.steps[0].function for kernel in kernels}) == 1
    assert device.compile(sum_nest(100)) is kernels[0]


def test_another_stream_waits_for_what_it_is_told_to(device: CudaDevice) -> None:
    x = np.arange(1000, dtype=np.float32)
    side = device.stream()
    a, out = device.allocate(x.nbytes), device.allocate(x.nbytes)
    uploaded = device.upload(x, a, side)
    device.default_stream.wait(uploaded)
    device.compile(sum_nest(1000)).bind([a, a, out])()
    np.testing.assert_array_equal(get(device, out, 1000), 2 * x)


def test_without_an_event_streams_are_not_ordered(device: CudaDevice) -> None:
    """So late is the driver of these tests: what is not waited for is not there."""
    x, side = np.ones(10, np.float32), device.stream()  # kept: one that ends runs what is enqueued
    a, out = device.allocate(x.nbytes), device.allocate(x.nbytes)
    device.upload(x, a, side)
    device.compile(sum_nest(10)).bind([a, a, out])()
    assert not np.array_equal(get(device, out, 10), 2 * x)


def test_a_stream_of_its_own_keeps_its_buffers(device: CudaDevice, driver: HostDriver) -> None:
    """Memory of a dropped buffer is not handed out before the work on it is done."""
    x, side = np.ones(10, np.float32), device.stream()
    kernel = device.compile(sum_nest(10))
    a, out = put(device, x), device.allocate(x.nbytes)
    side.wait(device.default_stream.record())
    kernel.bind([a, a, out], side)()
    del a
    other = device.allocate(x.nbytes)
    device.upload(x * 100, other).wait()
    side.synchronize()
    np.testing.assert_array_equal(get(device, out, 10), 2 * x)


def test_clocks(device: CudaDevice) -> None:
    stream = device.default_stream
    first, last = stream.record(timed=True), stream.record(timed=True)
    last.wait()
    assert last.done and (last.seconds_since(first) or 0) > 0
    assert stream.record().seconds_since(first) is None


@pytest.mark.parametrize("pattern", [b"\0", b"\x07", b"\1\2", b"\1\2\3\4", bytes(range(8))])
@pytest.mark.parametrize("nbytes", [1, 3, 8, 1 << 16, (1 << 18) + 5])
def test_fills(device: CudaDevice, pattern: bytes, nbytes: int) -> None:
    buffer, found = device.allocate(nbytes + 8), np.zeros(nbytes + 8, np.uint8)
    device.fill(buffer, b"\xff")
    device.fill(device.view(buffer, 0, nbytes), pattern)
    device.download(buffer, found).wait()
    np.testing.assert_array_equal(found[:nbytes], np.resize(np.frombuffer(pattern, np.uint8), nbytes))
    assert (found[nbytes:] == 255).all()


def test_memory_is_counted_and_given_back(device: CudaDevice, driver: HostDriver) -> None:
    before = driver.used
    buffer = device.allocate(1 << 20)
    assert driver.used == before + (1 << 20) and device.memory_info().total == driver.total
    del buffer
    device.trim()
    assert driver.used == before


def test_too_much_memory() -> None:
    device = CudaDevice(HostDriver(memory=1 << 20), None, "cudahost:0")  # type: ignore[arg-type]
    with pytest.raises(DeviceMemoryError, match="2097152 bytes asked for; 1048576 of 1048576 are free"):
        device.allocate(2 << 20)
    device.allocate(1 << 19)


def test_a_lost_device_says_so_at_the_line(device: CudaDevice, driver: HostDriver) -> None:
    buffer = put(device, np.ones(4, np.float32))
    driver.sick = CudaError(700, "cudaErrorIllegalAddress: an illegal memory access was encountered")
    with pytest.raises(DeviceLostError, match="illegal memory access") as caught:
        get(device, buffer, 4)
    assert caught.value.device == "cudahost:0" and "start the program again" in str(caught.value)
    with pytest.raises(DeviceLostError):
        device.default_stream.synchronize()
    driver.sick = None


def test_other_failures_of_the_driver(device: CudaDevice, driver: HostDriver) -> None:
    driver.sick = CudaError(801, "operation not supported")
    with pytest.raises(DeviceFailureError, match="operation not supported"):
        device.stream()
    driver.sick = None


def test_buffers_and_arrays_that_do_not_fit(device: CudaDevice) -> None:
    buffer = device.allocate(16)
    with pytest.raises(OutOfRangeError, match="32 bytes beside a buffer of 16"):
        device.upload(np.zeros(8, np.float32), buffer)
    with pytest.raises(OutOfRangeError, match="bytes 8 to 24"):
        device.view(buffer, 8, 16)
    with pytest.raises(DeviceError, match="C order"):
        device.upload(np.zeros((4, 4), np.uint8).T[::2], buffer)
    with pytest.raises(DeviceError, match="pattern of 3 bytes"):
        device.fill(buffer, b"abc")
    with pytest.raises(DeviceError, match="takes 3 buffers, not 1"):
        device.compile(sum_nest(4)).bind([buffer])


def test_kernels_of_too_many_buffers_are_refused(device: CudaDevice) -> None:
    good, bad = sum_nest(4), sum_nest(4, MOST_ARGUMENTS)
    kernel, refused = device.compile_all([good, bad])
    assert isinstance(refused, NotSupportedError) and "at most 512" in str(refused)
    assert device.compile(good) is kernel


def test_what_the_compiler_cannot_do_names_the_kernel(device: CudaDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nnc_cuda.modules.program_of", lambda kernels, dialect: "int x = ;")
    with pytest.raises(DeviceFailureError, match=r"cannot compile the kernel of total: .*error"):
        device.compile(sum_nest(5))


def test_the_first_error_of_a_log() -> None:
    assert last_words("note\nnnc.cu(1): error: expected\nanother error\n") == "nnc.cu(1): error: expected"
    assert last_words("gave up\n") == "gave up" and last_words("") == "no log"


def test_what_passes_leave_is_each_launch_s_own(device: CudaDevice, driver: HostDriver) -> None:
    """A sum of one long row takes two kernels, and memory between them."""
    x = np.arange(70_000, dtype=np.float32) % 7
    nest = nest_of(Case("sum", (x,), ((0,), False)).command)
    kernel = device.compile(nest)
    assert len(kernel.steps) == 2 and kernel.results
    out, a = [device.allocate(4) for _ in range(2)], [put(device, x), put(device, 2 * x)]
    used = driver.used
    launches = [kernel.bind([source, target]) for source, target in zip(a, out, strict=True)]
    assert driver.used == used + 2 * kernel.results
    for launch in launches:
        launch()
    assert [get(device, buffer, 1)[0] for buffer in out] == [x.sum(), 2 * x.sum()]


def test_arrays(device: CudaDevice) -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    array = device.place(x)
    assert device.layout_of(array) == Layout.packed((3, 4), float32)
    np.testing.assert_array_equal(get(device, device.buffer_of(array), 12), x.ravel())
