"""Transfers on a driver whose streams are as late as CUDA allows: pinned memory, gates, from one GPU to another."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from nnc_core.base.errors import DeviceFailureError
from nnc_core.stacks import stack_for
from nnc_cuda import nnc_transfer
from nnc_cuda.device import CudaDevice
from nnc_cuda.driver import CudaError
from nnc_cuda.staging import LARGEST
from tests.cuda.host_compiler import HostCompiler
from tests.cuda.host_driver import HostDriver
from tests.cuda.running import get, put


@pytest.mark.parametrize("nbytes", [1, LARGEST, LARGEST + 1])
def test_arrays_go_through_pinned_memory(device: CudaDevice, driver: HostDriver, nbytes: int) -> None:
    """Larger ones do not; an array that was uploaded is the caller's at once where they do."""
    buffer, x = device.allocate(nbytes), np.arange(nbytes, dtype=np.uint8)
    device.upload(x, buffer)
    staged = nbytes <= LARGEST
    assert driver.pinned == staged
    if staged:
        x[:] = 0
    found = np.empty_like(x)
    device.download(buffer, found).wait()
    np.testing.assert_array_equal(found, np.arange(nbytes, dtype=np.uint8))


def test_pinned_memory_comes_round(device: CudaDevice, driver: HostDriver) -> None:
    buffer, found = device.allocate(64), np.empty(16, np.float32)
    for turn in range(5):
        device.upload(np.full(16, turn, np.float32), buffer)
        device.download(buffer, found).wait()
        assert (found == turn).all()
    assert driver.pinned <= 3
    device.default_stream.synchronize()
    device.trim()
    assert driver.pinned == 0


def test_what_is_fetched_is_there_after_the_stream_is(device: CudaDevice) -> None:
    buffer, found = put(device, np.ones(4, np.float32)), np.zeros(4, np.float32)
    device.download(buffer, found)
    device.default_stream.synchronize()
    assert (found == 1).all()


def test_no_memory_to_pin(device: CudaDevice, driver: HostDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(nbytes: int) -> int:
        raise CudaError(2, "out of memory")

    monkeypatch.setattr(driver, "pin", none)
    assert (get(device, put(device, np.ones(4, np.float32)), 4) == 1).all()
    assert device.stream().gate() is None


def test_another_stream_waits_for_the_host_to_have_what_is_fetched(device: CudaDevice) -> None:
    """An upload of an array that is still to be filled: behind the event of its download."""
    side, found = device.stream(), np.zeros(4, np.float32)
    source, target = put(device, np.full(4, 3, np.float32)), device.allocate(16)
    side.wait(device.download(source, found))
    device.upload(found, target, side).wait()
    assert (get(device, target, 4) == 3).all()


def test_work_behind_a_gate(device: CudaDevice) -> None:
    x, side = np.ones(4, np.float32), device.stream()
    out = device.allocate(16)
    gate = side.gate()
    assert gate is not None
    behind = device.upload(x, out, side)
    device.default_stream.wait(behind)
    after = device.default_stream.record()
    assert not behind.done and not after.done
    gate.open(DeviceFailureError("the other device failed"))
    with pytest.raises(DeviceFailureError, match="the other device failed"):
        after.wait()
    assert (get(device, out, 4) == 1).all()


@pytest.mark.parametrize("nbytes", [64, LARGEST + 4])
def test_an_upload_behind_a_gate_reads_what_is_there_when_it_opens(device: CudaDevice, nbytes: int) -> None:
    x = np.zeros(nbytes // 4, np.float32)
    out, gate = device.allocate(nbytes), device.default_stream.gate()
    assert gate is not None

    def fill() -> None:
        x[:] = 1
        gate.open()

    thread = threading.Thread(target=fill)
    if nbytes > LARGEST:  # the call waits for it
        thread.start()
    device.upload(x, out)
    if nbytes <= LARGEST:
        thread.start()
    assert (get(device, out, x.size) == 1).all()
    thread.join()


@pytest.fixture
def pair(device: CudaDevice, driver: HostDriver) -> CudaDevice:
    """Another GPU of the same machine."""
    return CudaDevice(HostDriver(beside=driver), HostCompiler(), "cudahost:1")


def test_two_gpus_copy_directly_and_in_order(device: CudaDevice, driver: HostDriver, pair: CudaDevice) -> None:
    copy = nnc_transfer(device, pair)
    assert copy is not None and driver in pair.driver.reached  # type: ignore[attr-defined]
    source, target = put(device, np.full(4, 5, np.float32)), pair.allocate(16)
    pair.default_stream.wait(device.default_stream.record())
    device.default_stream.wait(copy(source, target, 16))
    device.upload(np.zeros(4, np.float32), source)
    pinned = driver.pinned
    assert (get(pair, target, 4) == 5).all() and driver.pinned == pinned


def test_devices_that_are_no_kin_have_no_copy(device: CudaDevice) -> None:
    other = CudaDevice(HostDriver(), HostCompiler(), "cudahost:1")
    assert nnc_transfer(device, other) is None
    assert nnc_transfer(device, stack_for("strict:0").device) is None
