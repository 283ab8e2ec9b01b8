"""Memory: what is put somewhere is there, and only there."""

from __future__ import annotations

import gc
import threading
from typing import Any

import numpy as np
import pytest

from nnc_core.base.dtype import ALL_DTYPES, float32, int32
from nnc_core.base.errors import DeviceMemoryError
from nnc_core.base.layout import Layout
from nnc_core.base.record import Call
from nnc_core.device import NO_VIEWS, Buffer, Device
from nnc_core.operator import OPERATORS
from nnc_core.stacks import Stack
from nnc_core.symbol import Number
from nnc_core.type import TensorSpec
from nnc_plugins.conformance.case import Array, draw
from nnc_plugins.conformance.running import eager, get, kernel, put

SHAPES = ((), (1,), (3,), (64,), (7, 11), (2, 0, 3), (65_537,))
MIB = 1 << 20
WITHOUT_VIEWS = "the device has no views of buffers, and says so"


def test_says_what_it_is(device: Device) -> None:
    spec = device.spec
    assert spec.id.split(":")[0].startswith(spec.kind) and spec.id.split(":")[1].isdigit()
    assert spec.name and spec.alignment > 0 and spec.dtypes <= set(ALL_DTYPES)
    assert {"float32", "int32", "int64", "bool"} <= spec.dtypes, "every device has these"


@pytest.mark.parametrize("name", ALL_DTYPES)
def test_round_trip(stack: Stack, rng: np.random.Generator, name: str) -> None:
    if name not in stack.device.spec.dtypes:
        pytest.skip(f"the device has no {name}, and says so")
    for shape in SHAPES:
        host = draw(rng, ALL_DTYPES[name], shape)
        if host.nbytes > (stack.device.spec.max_allocation or host.nbytes):
            continue
        array = stack.engine.executor.upload(host)
        assert array.shape == shape and array.dtype == host.dtype
        back = stack.engine.executor.download(array)
        assert back.shape == shape and back.dtype == host.dtype
        assert back.tobytes() == host.tobytes(), f"{name} {shape} came back changed"


def test_upload_takes_a_copy(stack: Stack) -> None:
    host = np.arange(5, dtype=np.float32)
    array = stack.engine.executor.upload(host)
    host[:] = -1
    assert stack.engine.executor.download(array).tolist() == [0, 1, 2, 3, 4]


def test_nothing_can_be_transferred(device: Device) -> None:
    buffer = put(device, np.arange(4, dtype=np.int32))
    nothing = np.empty((0,), np.int32)
    device.upload(nothing, buffer).wait()
    device.download(buffer, nothing).wait()
    assert get(device, buffer, np.empty(4, np.int32)).tolist() == [0, 1, 2, 3]


def test_a_part_of_a_buffer_is_written_from_its_start(device: Device) -> None:
    buffer = put(device, np.arange(6, dtype=np.int32))
    device.upload(np.array([-1, -2], np.int32), buffer).wait()
    assert get(device, buffer, np.empty(6, np.int32)).tolist() == [-1, -2, 2, 3, 4, 5]


def test_views_share_the_memory_of_their_buffer(device: Device) -> None:
    _need_views(device)
    step = device.spec.alignment
    whole = put(device, np.zeros(4 * step, np.uint8))
    second = device.view(whole, step, step)
    device.upload(np.full(step, 7, np.uint8), second).wait()
    inner = device.view(device.view(whole, 2 * step, 2 * step), step, 5)
    device.upload(np.full(5, 9, np.uint8), inner).wait()
    wanted = np.zeros(4 * step, np.uint8)
    wanted[step : 2 * step], wanted[3 * step : 3 * step + 5] = 7, 9
    assert (get(device, whole, wanted) == wanted).all()
    assert second.nbytes == step and inner.nbytes == 5


def test_a_view_keeps_its_buffer_alive(device: Device) -> None:
    _need_views(device)
    step = device.spec.alignment
    whole = put(device, np.full(2 * step, 3, np.uint8))
    part = device.view(whole, step, step)
    del whole
    others = [put(device, np.full(2 * step, k, np.uint8)) for k in range(8)]
    assert (get(device, part, np.empty(step, np.uint8)) == 3).all() and len(others) == 8


@pytest.mark.parametrize(("source", "target"), [(8, 8), (8, 5), (5, 8), (1000, 1000)])
def test_copy_takes_the_smaller_size(device: Device, source: int, target: int) -> None:
    there = np.full(target, 200, np.uint8)
    given = (np.arange(source) % 100).astype(np.uint8)
    a, b = put(device, given), put(device, there)
    device.copy(a, b).wait()
    n = min(source, target)
    assert (get(device, b, there) == np.concatenate([given[:n], there[n:]])).all()
    assert (get(device, a, given) == given).all()


@pytest.mark.parametrize("pattern", [b"\x5a", b"\x01\x02", b"\x01\x02\x03\x04", bytes(range(8))], ids=len)
def test_fill_repeats_a_pattern(device: Device, pattern: bytes) -> None:
    for nbytes in (8, 24, 4096):
        buffer = put(device, np.zeros(nbytes, np.uint8))
        device.fill(buffer, pattern).wait()
        assert get(device, buffer, np.empty(nbytes, np.uint8)).tobytes() == pattern * (nbytes // len(pattern))


def test_fill_of_a_view_stays_inside(device: Device) -> None:
    _need_views(device)
    step = device.spec.alignment
    whole = put(device, np.zeros(3 * step, np.uint8))
    device.fill(device.view(whole, step, step), b"\xff").wait()
    found = get(device, whole, np.empty(3 * step, np.uint8)).reshape(3, step)
    assert (found[1] == 255).all() and not found[0].any() and not found[2].any()


def _too_large(device: Device) -> list[int]:
    limits = [device.spec.max_allocation, device.spec.memory]
    return [*(limit + 1 for limit in limits if limit is not None), 1 << 60]


def test_what_does_not_fit_is_a_memory_error_and_harms_nothing(stack: Stack) -> None:
    device, kept = stack.device, np.arange(100, dtype=np.float32)
    buffer = put(device, kept)
    for nbytes in _too_large(device):
        with pytest.raises(DeviceMemoryError) as caught:
            device.allocate(nbytes)
        assert isinstance(caught.value, MemoryError) and caught.value.device == device.spec.id
        assert str(nbytes) in str(caught.value).replace(",", ""), "the error says how much was asked for"
        assert (get(device, buffer, kept) == kept).all()
        assert _adds(stack)


def test_an_array_that_does_not_fit_is_a_memory_error_and_harms_nothing(stack: Stack) -> None:
    """Ask for 2^58 elements of 4 bytes, by way of an operator."""
    filled = OPERATORS["filled"]
    with pytest.raises(DeviceMemoryError) as caught:
        eager(stack, filled, [], ((1 << 29, 1 << 29), Number(1, float32)))
    assert caught.value.device == stack.device.spec.id
    assert _adds(stack)


def test_full_memory_is_a_memory_error_until_something_is_freed(stack: Stack) -> None:
    device = stack.device
    if device.spec.memory is None or device.spec.memory > 256 * MIB:
        pytest.skip("the device has more than 256 MiB, or does not say: filling it would take too long")
    held = []
    with pytest.raises(DeviceMemoryError):
        for _ in range(device.spec.memory // MIB + 2):
            held.append(device.allocate(MIB))
    held.clear()
    assert _adds(stack)


def test_freed_memory_comes_back(device: Device) -> None:
    """One and a half times the memory, a piece at a time."""
    memory = device.spec.memory
    if memory is None:
        pytest.skip("the device does not say how much memory it has")
    piece = min(device.spec.max_allocation or memory, max(memory // 64, MIB))
    for _ in range(3 * memory // (2 * piece)):
        assert device.allocate(piece).nbytes == piece


def test_a_launch_keeps_its_buffers_alive(stack: Stack) -> None:
    device, spec = stack.device, TensorSpec((64,), int32)
    host = np.arange(64, dtype=np.int32)
    target = device.allocate(host.nbytes)
    launch = kernel(stack, "add", spec, spec).bind([put(device, host), put(device, 2 * host), target])
    others = [put(device, np.full(64, -1, np.int32)) for _ in range(16)]
    launch()
    assert (get(device, target, host) == 3 * host).all() and len(others) == 16


def test_memory_info_counts_what_is_used_and_what_is_idle(device: Device) -> None:
    gc.collect()
    device.trim()
    before = device.memory_info()
    assert before.free is None or before.total is None or 0 <= before.free <= before.total
    buffer = device.allocate(4096)
    assert device.memory_info().used == before.used + 4096
    del buffer
    after = device.memory_info()
    assert after.used == before.used and after.pooled == (4096 if device.pool_limit >= 4096 else 0)
    assert after.free is None or device.spec.kind == "cpu" or after.free == before.free, "what is idle can be had"
    assert device.trim() == after.pooled and device.memory_info().pooled == 0


@pytest.fixture
def pooled(device: Device) -> Device:
    """The device, if its memory goes through core's pool, with nothing idle."""
    if device.pool_limit < 1 << 16:
        pytest.skip("the device keeps no memory in core's pool")
    gc.collect()
    device.trim()
    return device


def test_memory_that_nobody_sees_is_used_again(pooled: Device) -> None:
    buffer = pooled.allocate(1000)
    block = pooled.pool.block_of(buffer)
    assert block is not None and block is not buffer
    other = pooled.allocate(1000)
    assert pooled.pool.block_of(other) is not block, "two buffers that live share no memory"
    del buffer
    again = pooled.allocate(1000)
    assert pooled.pool.block_of(again) is block
    assert again.nbytes == other.nbytes == 1000


def test_memory_is_used_again_for_the_stream_that_it_was_for(pooled: Device) -> None:
    stream = pooled.stream()
    mine = pooled.allocate(1000, stream=stream)
    block = pooled.pool.block_of(mine)
    del mine
    for other in (None, pooled.default_stream, pooled.stream()):
        held = pooled.allocate(1000, stream=other)
        assert pooled.pool.block_of(held) is not block
    assert pooled.pool.block_of(pooled.allocate(1000, stream=stream)) is block


def _seen(stack: Stack, buffer: Buffer, how: str) -> Any:
    """Something through which the memory of a buffer of 64 floats can be reached."""
    device, layout = stack.device, Layout.packed((64,), float32)
    if how == "view":
        _need_views(device)
        return device.view(device.view(buffer, 0, 128), 0, 64)
    if how == "alias":
        return device.alias(device.alias(buffer))
    if how == "array":
        return device.array(buffer, layout)
    if how == "exposed":
        return device.expose(device.array(buffer, layout))
    if how == "buffer of an array":
        return device.buffer_of(device.array(buffer, layout))
    spec = TensorSpec((64,), float32)
    add, out = kernel(stack, "add", spec, spec), device.allocate(256)
    if how == "program":
        program = device.capture([Call(add, (0, 0, 1), "add")], [None, out], device.default_stream)
        program.bind(0, buffer)
        program.run()
        return program
    return add.bind([buffer, buffer, out])


@pytest.mark.parametrize("how", ["view", "alias", "array", "exposed", "buffer of an array", "launch", "program"])
def test_memory_that_is_seen_is_not_used_again(stack: Stack, pooled: Device, how: str) -> None:
    buffer = put(pooled, np.arange(64, dtype=np.float32))
    block = pooled.pool.block_of(buffer)
    seen = _seen(stack, buffer, how)
    if seen is None:
        pytest.skip("the host cannot see the memory of the device")
    del buffer
    others = [put(pooled, np.full(64, -1, np.float32)) for _ in range(4)]
    assert all(pooled.pool.block_of(other) is not block for other in others)
    pooled.trim()
    del seen
    again = [pooled.allocate(256) for _ in range(3)]
    assert any(pooled.pool.block_of(buffer) is block for buffer in again)


def test_work_that_waits_keeps_its_memory_on_any_stream(stack: Stack, pooled: Device) -> None:
    """Each buffer is gone for the host before its work has run, and others of the size come after it."""
    host, add = np.arange(4099, dtype=np.int32), kernel(stack, "add", *[TensorSpec((4099,), int32)] * 2)
    out = [pooled.allocate(host.nbytes) for _ in range(20)]
    pooled.default_stream.synchronize()
    stream = pooled.stream()
    for k, target in enumerate(out):
        source = pooled.allocate(host.nbytes)
        stream.wait(pooled.default_stream.record())
        sent = host + k
        pooled.upload(sent, source, stream).wait()
        add.bind([source, source, target], stream)()
        del source
        pooled.fill(pooled.allocate(host.nbytes), b"\xff")
    stream.synchronize()
    pooled.default_stream.synchronize()
    for k, target in enumerate(out):
        assert (get(pooled, target, host) == 2 * (host + k)).all()


def test_reference_cycles_give_their_memory_back_when_they_are_gone(pooled: Device) -> None:
    """The collector runs finalisers of what is in a cycle before it destroys it, and they may save it."""
    saved: list[Any] = []

    class Saving:
        def __init__(self, buffer: Buffer) -> None:
            self.buffer, self.cycle = buffer, self

        def __del__(self) -> None:
            saved.append(self.buffer)

    held = Saving(put(pooled, np.full(64, 7, np.float32)))
    del held
    gc.collect()
    others = [put(pooled, np.full(64, -1, np.float32)) for _ in range(4)]
    assert (get(pooled, saved[0], np.empty(64, np.float32)) == 7).all() and len(others) == 4


def test_what_is_idle_is_bounded(pooled: Device) -> None:
    piece = min(pooled.spec.max_allocation or 1 << 20, 1 << 20, pooled.pool_limit // 4)
    held = [pooled.allocate(piece - k) for k in range(min(2 * pooled.pool_limit // piece, 600))]
    held.clear()
    pooled.allocate(1)
    assert pooled.memory_info().pooled <= pooled.pool_limit


def test_idle_memory_is_given_back_before_there_is_an_error(stack: Stack) -> None:
    """Fill the memory with pieces of one size, let them go, and ask for other sizes."""
    device = stack.device
    if device.spec.memory is None or device.spec.memory > 256 * MIB:
        pytest.skip("the device has more than 256 MiB, or does not say: filling it would take too long")
    for piece in (MIB, MIB // 2, MIB - 4096):
        held = []
        with pytest.raises(DeviceMemoryError):
            for _ in range(device.spec.memory // piece + 2):
                held.append(device.allocate(piece))
        assert len(held) >= device.spec.memory // piece - 8
    held.clear()
    assert _adds(stack)


def test_memory_is_shared_by_threads(pooled: Device) -> None:
    """Each fills what it gets with a number of its own, and finds that number there until it lets go."""
    wrong: list[int] = []

    def work(number: int) -> None:
        rng = np.random.default_rng(number)
        held: list[tuple[Buffer, int]] = []
        for _ in range(60):
            value = number * 16 + int(rng.integers(16))
            held.append((put(pooled, np.full(64 * int(rng.integers(1, 3)), value, np.uint8)), value))
            if len(held) > 3:
                buffer, value = held.pop(int(rng.integers(len(held))))
                if not (get(pooled, buffer, np.empty(buffer.nbytes, np.uint8)) == value).all():
                    wrong.append(number)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def _adds(stack: Stack) -> bool:
    a: Array = np.arange(10, dtype=np.float32)
    return bool((eager(stack, OPERATORS["add"], [a, a], ()) == 2 * a).all())


def _need_views(device: Device) -> None:
    if NO_VIEWS in device.spec.features:
        pytest.skip(WITHOUT_VIEWS)
