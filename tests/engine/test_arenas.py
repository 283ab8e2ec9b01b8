"""Memory that compiled code keeps between calls: within a bound, given back on demand, had again when it is called."""

from __future__ import annotations

import gc
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.dtype import float32
from nnc_core.base.errors import DeviceMemoryError
from nnc_core.builtin.flavours import Flavour
from nnc_core.builtin.strict import StrictDevice
from nnc_core.device import Device
from nnc_core.device.arenas import Arenas
from nnc_core.stacks import make_stack
from nnc_core.values.modes import current_stack
from tests import memory
from tests.support import at_once

KIB = 1 << 10
Host = np.ndarray[Any, Any]


def chained(x: Any) -> Any:
    """Needs an array of the size of x in its arena."""
    return nnc.sum(nnc.exp(nnc.square(nnc.tanh(x))))


def ramp(n: int) -> Host:
    return np.linspace(-1, 1, n).astype(np.float32)


def close(found: Any, x: Host) -> None:
    np.testing.assert_allclose(found.numpy(), np.exp(np.tanh(x) ** 2).sum(), rtol=1e-4)


@pytest.fixture(params=[Flavour("plain"), Flavour("async", queues=True), Flavour("noviews", views=False)],
                ids=["plain", "async", "without views"])  # fmt: skip
def device(request: pytest.FixtureRequest) -> Iterator[Device]:
    """A device that no other test has used."""
    with nnc.use_device(make_stack(StrictDevice(request.param))):
        yield current_stack().device


@pytest.fixture
def reserved(device: Device, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Bytes of each allocation that the device makes anew."""
    found: list[int] = []
    reserve = device.reserve
    monkeypatch.setattr(device, "reserve", lambda nbytes: [found.append(nbytes), reserve(nbytes)][1])
    return found


def settle(device: Device) -> None:
    device.default_stream.synchronize()
    gc.collect()


def arena_of(compiled: Any, host: Host) -> int:
    """The bytes that a call leaves behind."""
    device = current_stack().device
    before = device.memory_info().kept
    close(compiled(nnc.asarray(host)), host)
    return device.memory_info().kept - before


# ---- given back


def test_trim_gives_back_what_idle_programs_keep(device: Device) -> None:
    compiled, sizes = nnc.jit(chained), (1000, 1500, 3000)
    arenas = [arena_of(compiled, ramp(n)) for n in sizes]
    assert all(4 * n <= nbytes for n, nbytes in zip(sizes, arenas, strict=True))
    settle(device)
    before = device.memory_info()
    assert before.kept == sum(arenas) <= before.used
    assert device.trim() >= sum(arenas) + before.pooled
    settle(device)
    after = device.memory_info()
    assert (after.kept, after.pooled) == (0, 0) and after.used <= before.used - sum(arenas)
    assert after.free is not None and before.free is not None and after.free >= before.free
    assert device.trim() == 0
    for n in sizes:
        assert arena_of(compiled, ramp(n)) in arenas, "it has one again"


def test_what_is_kept_counts_as_free(device: Device) -> None:
    def free() -> int:
        settle(device)
        info = device.memory_info()
        assert info.free is not None
        return info.free

    compiled, x = nnc.jit(chained), nnc.asarray(ramp(1000))
    compiled(x)  # what stays of a compiled graph, but its arena
    device.trim()
    before = free()
    compiled(x)
    assert device.memory_info().kept > 0 and free() == before


def test_the_function_gives_back_the_memory_of_one_device_or_of_all(device: Device) -> None:
    compiled, stack = nnc.jit(chained), current_stack()
    arena = arena_of(compiled, ramp(1000))
    assert nnc.empty_cache("cpu") >= 0 and device.memory_info().kept == arena
    assert nnc.empty_cache(stack) >= arena and device.memory_info().kept == 0
    with nnc.use_device("strict:0"):
        opened = current_stack().device
        compiled(nnc.asarray(ramp(1000)))
        assert opened.memory_info().kept >= 4000
        assert nnc.empty_cache() >= 4000 and opened.memory_info().kept == 0
    close(compiled(nnc.asarray(ramp(1000))), ramp(1000))


def test_graphs_compiled_by_hand_loops_and_backward_passes_too(device: Device) -> None:
    weight = nnc.variable(ramp(600))
    for _ in range(4):
        chained(weight).backward()
    x = nnc.var_arr("x", (600,))
    graph = nnc.export({"x": x}, {"y": chained(x)}).compile(current_stack())
    loss = nnc.jit(nnc.grad(lambda x: nnc.sum(nnc.while_loop(
        lambda i, x: i < 9, lambda i, x: (i + 1, nnc.tanh(x) * 2), (0, x))[1])))
    gradients = []
    for _ in range(2):
        close(graph(x=nnc.asarray(ramp(600)))["y"], ramp(600))
        gradients.append(loss(nnc.asarray(ramp(600))).numpy())
        kept = device.memory_info().kept
        assert kept >= 9 * 2400, "the rows that the loop has stacked up included"
        device.trim()
        settle(device)
        assert device.memory_info().kept == 0 and device.memory_info().used < kept
    np.testing.assert_array_equal(*gradients)


def test_memory_that_was_reserved_ahead_is_had_again(device: Device, reserved: list[int]) -> None:
    class Blur(nnc.nn.Module):
        def forward(self, x: Any) -> Any:
            return chained(x)

    compiled = Blur().hybridize(static_alloc=True)
    arena = arena_of(compiled, ramp(1000))
    device.trim()
    reserved.clear()
    assert arena_of(compiled, ramp(1000)) == arena and sum(reserved) >= arena


def test_graphs_that_are_gone_keep_nothing(device: Device) -> None:
    compiled = nnc.jit(chained)
    assert arena_of(compiled, ramp(1000)) > 0
    del compiled
    gc.collect()
    assert device.memory_info().kept == 0


# ---- before an error


def test_a_lack_of_memory_takes_what_programs_keep() -> None:
    """The arenas fill the device; an array of more than what is left is had all the same."""
    with nnc.use_device(make_stack(StrictDevice(Flavour("small", memory=256 * KIB, max_allocation=128 * KIB)))):
        device, compiled = current_stack().device, nnc.jit(chained)
        with nnc.config.using(arena_limit=1 << 30):
            for n in range(6000, 6003):
                compiled(nnc.asarray(ramp(n)))
        settle(device)
        info = device.memory_info()
        assert info.kept > 64 * KIB and info.used > 128 * KIB
        large = [nnc.zeros((30_000,)), nnc.ones((30_000,))]
        assert device.memory_info().kept == 0
        with pytest.raises(DeviceMemoryError):
            compiled(nnc.asarray(ramp(6000)))
        del large
        close(compiled(nnc.asarray(ramp(6000))), ramp(6000))


# ---- the bound


def test_the_programs_called_last_keep_theirs(device: Device, reserved: list[int]) -> None:
    compiled, sizes = nnc.jit(chained), (1000, 1001, 1002, 1003)
    arena = max([arena_of(compiled, ramp(n)) for n in sizes])
    device.trim()
    with nnc.config.using(arena_limit=2 * arena):
        for n in sizes:
            compiled(nnc.asarray(ramp(n)))
        assert arena < device.memory_info().kept <= 2 * arena
        arrays = {n: nnc.asarray(ramp(n)) for n in sizes}
        for n in (1002, 1003, 1002):
            reserved.clear()
            close(compiled(arrays[n]), ramp(n))
            assert sum(reserved) < 100, "it has kept its memory"
        close(compiled(arrays[1000]), ramp(1000))
        reserved.clear()
        compiled(arrays[1002])
        assert sum(reserved) < 100, "called later than 1003, which gave its memory up"
        assert device.memory_info().kept <= 2 * arena


def test_what_runs_is_kept_whatever_its_size(device: Device, reserved: list[int]) -> None:
    compiled, x = nnc.jit(chained), nnc.asarray(ramp(5000))
    with nnc.config.using(arena_limit=0):
        close(compiled(x), ramp(5000))
        kept = device.memory_info().kept
        reserved.clear()
        for _ in range(3):
            close(compiled(x), ramp(5000))
        assert device.memory_info().kept == kept > 0 and sum(reserved) < 100
        compiled(nnc.asarray(ramp(50)))
        assert 0 < device.memory_info().kept < kept, "another one has run"


def test_a_share_of_the_device_is_the_default() -> None:
    small, large = StrictDevice(Flavour("small", memory=1 << 20)), StrictDevice(Flavour("large", memory=1 << 30))
    assert nnc.config.arena_limit is None
    assert (small.arenas.default, large.arenas.default) == (1 << 18, 1 << 28)


# ---- calls at the same time


def held_up(inside: Callable[[], None]) -> Any:
    """A compiled function that calls the host while its arena is in use."""

    def passing(x: Host) -> Host:
        inside()
        return x

    def f(x: Any) -> Any:
        y = nnc.exp(nnc.tanh(x))
        return nnc.sum(y + nnc.callback(passing, nnc.TensorSpec(x.shape, float32), nnc.square(y)))

    return nnc.jit(f)


def wanted(x: Host) -> Any:
    y = np.exp(np.tanh(x))
    return (y + y**2).sum()


@pytest.mark.parametrize("limit", [None, 0])
def test_programs_that_run_keep_their_memory_until_they_end(device: Device, limit: int | None) -> None:
    """Two calls of one graph meet in the middle, and memory is trimmed there."""
    meeting = threading.Barrier(2, timeout=30)
    wrong: list[Any] = []

    def inside() -> None:
        meeting.wait()
        if meeting.wait() == 0:
            device.trim()
            held = [device.allocate(4000) for _ in range(4)]
            for buffer in held:
                device.fill(buffer, b"\xff")
        meeting.wait()

    compiled, stack = held_up(inside), current_stack()

    def work(k: int) -> None:
        with nnc.use_device(stack):
            for round in range(3):
                host = ramp(1000) + k + round
                found = compiled(nnc.asarray(host)).numpy()
                if not np.allclose(found, wanted(host), rtol=1e-4):
                    wrong.append((k, round, found))

    with nnc.config.using(arena_limit=limit):
        at_once(work, range(2))
    assert not wrong
    settle(device)
    kept = device.memory_info().kept
    device.trim()
    alone = held_up(lambda: None)
    alone(nnc.asarray(ramp(1000)))
    arena = device.memory_info().kept
    assert kept == 2 * arena, "the setting is the context's, and threads begin with the process's"


def test_the_bound_is_kept_when_the_last_of_several_ends(device: Device) -> None:
    """Nothing can be given up while all run."""
    ready, go = threading.Semaphore(0), threading.Event()

    def inside() -> None:
        ready.release()
        assert go.wait(30)

    compiled, stack, before = held_up(inside), current_stack(), nnc.config.arena_limit

    def work() -> None:
        with nnc.use_device(stack):
            np.testing.assert_allclose(compiled(nnc.asarray(ramp(1000))).numpy(), wanted(ramp(1000)), rtol=1e-4)

    nnc.config.arena_limit = 0
    try:
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
            assert ready.acquire(timeout=30)
        assert device.memory_info().kept == 0, "all run"
        go.set()
        for thread in threads:
            thread.join()
        many = device.memory_info().kept
        device.trim()
        compiled(nnc.asarray(ramp(1000)))
        assert many == device.memory_info().kept > 0, "of three the one that ended last"
    finally:
        nnc.config.arena_limit = before


def test_threads_that_call_while_memory_is_trimmed(device: Device) -> None:
    compiled, stack, wrong, stop = nnc.jit(chained), current_stack(), [], threading.Event()

    def work(k: int) -> None:
        with nnc.use_device(stack):
            for round in range(15):
                host = ramp(200 + (k + round) % 3)
                if not np.allclose(compiled(nnc.asarray(host)).numpy(), np.exp(np.tanh(host) ** 2).sum(), 1e-4):
                    wrong.append(k)

    def trimming() -> None:
        while not stop.wait(0.001):
            device.trim()

    nnc.config.arena_limit, before = 1600, nnc.config.arena_limit
    try:
        threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
        other = threading.Thread(target=trimming)
        for thread in (*threads, other):
            thread.start()
        for thread in threads:
            thread.join()
        stop.set()
        other.join()
    finally:
        nnc.config.arena_limit = before
    assert not wrong


class Cyclic:
    """Stays until the collector finds it."""

    used = 0

    def __init__(self) -> None:
        self.itself = self


def collecting_at_each_allocation(run: Callable[[], None]) -> None:
    """Run it often, with the collector at work after another number of allocations each time."""
    thresholds = gc.get_threshold()
    memory.leave_alone_what_is_there()  # which takes the collector half a second each time
    try:
        for after in range(1, 120):
            gc.collect()
            gc.set_threshold(after, 1000, 1000)
            run()
    finally:
        gc.set_threshold(*thresholds)


def test_programs_that_the_collector_finds_while_they_are_counted() -> None:
    arenas, idle = Arenas(1 << 30), deque[Any]()
    alive = [Cyclic() for _ in range(50)]
    for program in alive:
        arenas.keep(program, idle, 8)  # type: ignore[arg-type]

    def count() -> None:
        for _ in range(3):
            arenas.keep(Cyclic(), idle, 8)  # type: ignore[arg-type]
        arenas.make_room(8)
        arenas.settle()
        assert arenas.idle == 0 and arenas.trim() == 0

    collecting_at_each_allocation(count)
    assert len(alive) == 50


class Follower:
    """Forgets nothing, and stays until the collector finds it."""

    def __init__(self) -> None:
        self.itself = self

    def forget(self, ids: frozenset[int]) -> None: ...


def test_followers_of_a_pool_that_the_collector_finds_while_they_are_told() -> None:
    device = StrictDevice(Flavour("plain"))
    alive = [Follower() for _ in range(50)]
    for follower in alive:
        device.pool.follow(follower)

    def tell() -> None:
        device.allocate(64)
        gc.collect()
        for _ in range(3):
            device.pool.follow(Follower())
        device.pool.trim()

    collecting_at_each_allocation(tell)
    assert len(alive) == 50
