"""Programs as CUDA graphs: what is captured, what follows other buffers, and what is kept."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import ref

import numpy as np
import pytest

from nnc_core.base.record import Call, JumpIf, Repeat, RotatePointer, Window
from nnc_core.device import Buffer, Kernel, Launch, Stream
from nnc_cuda.device import ALIGNMENT, CudaDevice
from nnc_cuda.graphs import OTHERS, CapturedLoops, CudaProgram
from tests.cuda.host_driver import HostDriver
from tests.cuda.running import get, sum_nest


def program_of(device: CudaDevice, count: int) -> tuple[CudaProgram, Buffer]:
    """y = (x + x) + x of what is bound to slot 0, in slot 2."""
    kernel = device.compile(sum_nest(count))
    middle = device.allocate(4 * count)
    calls = [Call(kernel, (0, 0, 1)), Call(kernel, (1, 0, 2))]
    program = device.capture(calls, [None, middle, None], device.default_stream)
    assert isinstance(program, CudaProgram)
    return program, middle


def run_on_others(device: CudaDevice, program: CudaProgram, number: int) -> None:
    """Run it on buffers that nobody else has, which go then."""
    x = np.full(50, number, np.float32)
    a, out = device.view(device.allocate(200 + ALIGNMENT), 0, 200), device.allocate(200)
    device.upload(x, a)
    program.bind(0, a)
    program.bind(2, out)
    program.run()
    np.testing.assert_array_equal(get(device, out, 50), 3 * x)
    program.release([0, 2])


def test_buffers_that_come_back_are_run_as_a_graph(device: CudaDevice, driver: HostDriver) -> None:
    program, _ = program_of(device, 50)
    pool = device.pool
    blocks = [pool.claim(device, 200) for _ in range(4)]
    for turn in range(4):
        for inputs, outputs in ((0, 1), (2, 3)):
            x = np.full(50, turn + 10 * inputs, np.float32)
            device.upload(x, blocks[inputs][0])
            program.bind(0, blocks[inputs][0])
            program.bind(2, blocks[outputs][0])
            launched, graphs = driver.launches, driver.graph_launches
            program.run()
            np.testing.assert_array_equal(get(device, blocks[outputs][0], 50), 3 * x)
            assert driver.graph_launches - graphs == (turn > 0)
            assert driver.launches - launched == 2 * (turn < 2), "captured once"


def test_buffers_of_others_are_not_kept_for_a_graph(device: CudaDevice, driver: HostDriver) -> None:
    program, _ = program_of(device, 50)
    for turn in range(3):
        run_on_others(device, program, turn)
    assert driver.graph_launches == 0


class Doubled(Kernel):
    """A kernel that needs the host: it brings numbers there, doubles them, and takes them back."""

    def bind(self, buffers: Sequence[Buffer], stream: Stream | None = None) -> Launch:
        def launch() -> None:
            source, target = buffers
            numbers = np.empty(50, np.float32)
            self.device.download(source, numbers).wait()
            self.device.upload(2 * numbers, target)

        return launch

    def __init__(self, device: CudaDevice) -> None:
        self.device = device


def test_graphs_end_where_the_host_is_needed(device: CudaDevice, driver: HostDriver) -> None:
    """((x + x) + x) * 2, that and twice itself: two graphs, and the host between them."""
    kernel = device.compile(sum_nest(50))
    middle = [device.allocate(200) for _ in range(3)]
    calls = [Call(kernel, (0, 0, 1)), Call(kernel, (1, 0, 2)), Call(Doubled(device), (2, 3)), Call(kernel, (3, 3, 1)),
             Call(kernel, (1, 3, 4))]
    program = device.capture(calls, [None, *middle, None], device.default_stream)
    given, result = (device.pool.claim(device, 200)[0] for _ in range(2))
    program.bind(0, given)
    program.bind(4, result)
    for turn in range(4):
        x = np.full(50, turn + 1, np.float32)
        device.upload(x, given)
        graphs = driver.graph_launches
        program.run()
        np.testing.assert_array_equal(get(device, result, 50), 18 * x)
        assert driver.graph_launches - graphs == (2 if turn else 0)


@pytest.mark.parametrize("count", [3, 4])
def test_counted_loops_are_captured(device: CudaDevice, driver: HostDriver, count: int) -> None:
    """y = y + x[i], where two buffers take turns: their places after an odd count of rounds are others than before."""
    kernel = device.compile(sum_nest(64))
    rows, sums = device.pool.claim(device, 256 * count)[0], [device.pool.claim(device, 256)[0] for _ in range(2)]
    step = (Window(1, 0, 0, 256, 256), Call(kernel, (1, 2, 3)), RotatePointer((2, 3)))
    program = device.capture([Repeat(step, count)], [None, None, *sums], device.default_stream)
    program.bind(0, rows)
    total, graphs = np.zeros(64, np.float32), driver.graph_launches
    device.fill(sums[0], b"\0")
    for turn in range(8):
        x = np.arange(64 * count, dtype=np.float32).reshape(count, 64) + turn
        device.upload(x, rows)
        program.run()
        total += x.sum(axis=0)
        np.testing.assert_array_equal(get(device, program.buffer(2), 64), total)
    assert driver.graph_launches - graphs >= 2


def test_loops_that_jump_are_not_captured(device: CudaDevice) -> None:
    kernel = device.compile(sum_nest(64))
    flag, buffer = device.allocate(1), device.allocate(256)
    calls = [JumpIf(0, True, 2), Call(kernel, (1, 1, 1))]
    program = device.capture(calls, [flag, buffer], device.default_stream)
    assert isinstance(program, CudaProgram) and not isinstance(program.way, CapturedLoops)


# ---- other buffers each time
class Deep:
    """A program of seven sums, whose first one alone reads slot 0 and whose last one alone writes slot 8: 128 x."""

    def __init__(self, device: CudaDevice, host: int | None = None) -> None:
        """`host`: the call that needs the host."""
        self.device, kernel = device, device.compile(sum_nest(50))
        calls = [Call(Doubled(device), (n, n + 1)) if n == host else Call(kernel, (n, n, n + 1)) for n in range(7)]
        slots = [None, *[device.allocate(200) for _ in range(6)], None]
        program = device.capture(calls, slots, device.default_stream)
        assert isinstance(program, CudaProgram)
        self.program = program

    def enqueue(self, value: float) -> tuple[Buffer, Buffer]:
        """One run on buffers that the program does not keep; these."""
        a, out = self.device.view(self.device.allocate(200 + ALIGNMENT), 0, 200), self.device.allocate(200)
        self.device.upload(np.full(50, value, np.float32), a)
        self.program.bind(0, a)
        self.program.bind(7, out)
        self.program.run()
        self.program.release([0, 7])
        return a, out

    def check(self, value: float) -> None:
        _, out = self.enqueue(value)
        np.testing.assert_array_equal(get(self.device, out, 50), np.full(50, 128 * value, np.float32))


def test_a_graph_follows_buffers_that_are_others_each_time(device: CudaDevice, driver: HostDriver) -> None:
    deep = Deep(device)
    for turn in range(OTHERS):
        deep.check(turn)
    assert driver.graph_launches == 0
    launched = driver.launches
    for turn in range(5):
        deep.check(turn)
    assert driver.launches == launched + 7, "captured once"
    assert driver.graph_launches == 5 and driver.rebound == 4 * 2, "the first and the last kernel"


def test_a_graph_that_is_enqueued_keeps_its_arguments(device: CudaDevice) -> None:
    deep = Deep(device)
    for turn in range(OTHERS + 1):
        deep.check(turn)
    kept = [deep.enqueue(turn) for turn in range(3)]
    for turn, (_, out) in enumerate(kept):
        np.testing.assert_array_equal(get(device, out, 50), np.full(50, 128 * turn, np.float32))


@pytest.mark.parametrize("host", [0, 3, 6])
def test_graphs_around_the_host_follow_too(device: CudaDevice, driver: HostDriver, host: int) -> None:
    deep = Deep(device, host)
    for turn in range(OTHERS + 4):
        deep.check(turn)
    assert driver.graph_launches == 4 * (1 if host in (0, 6) else 2)


def test_what_a_graph_has_followed_is_not_kept_alive(device: CudaDevice, driver: HostDriver) -> None:
    deep = Deep(device)
    for turn in range(OTHERS + 2):
        deep.check(turn)
        a, _ = deep.enqueue(turn)
        seen = ref(a)
        del a
        device.default_stream.synchronize()
        assert seen() is None, turn
    assert driver.graph_launches
    deep.program.forget()
    deep.check(1)


def test_drivers_that_do_not_tell_nodes_launch_as_before(device: CudaDevice, driver: HostDriver) -> None:
    driver.tells_nodes = False
    deep = Deep(device)
    for turn in range(OTHERS + 3):
        deep.check(turn)
    assert driver.rebound == 0 and driver.graph_launches <= 1


def test_many_changes_are_not_worth_a_graph(device: CudaDevice, driver: HostDriver) -> None:
    program, _ = program_of(device, 50)
    for turn in range(OTHERS + 3):
        run_on_others(device, program, turn)
    assert driver.rebound == 0
