"""The device's own logic on a driver whose streams are as late as CUDA allows."""

from __future__ import annotations

import gc
import threading
from collections.abc import Sequence
from typing import Any

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
from nnc_core.base.loopnest import Access, Argument, Instruction, LoopNest, Stage, Subscript
from nnc_core.base.record import Call, JumpIf, Repeat, RotatePointer, Window
from nnc_core.device import Buffer, Kernel, Launch, Stream
from nnc_core.stacks import stack_for
from nnc_cuda import nnc_transfer
from nnc_cuda.device import ALIGNMENT, CudaDevice
from nnc_cuda.driver import CudaError
from nnc_cuda.graphs import CapturedLoops, CudaProgram
from nnc_cuda.kernel import THREADS
from nnc_cuda.modules import MOST_ARGUMENTS, last_words
from nnc_cuda.staging import LARGEST
from tests.cuda.host_compiler import HostCompiler
from tests.cuda.host_driver import HostDriver
from tests.opencl.cases import Case, nest_of

Values = np.ndarray[Any, Any]


def sum_nest(count: int, terms: int = 2) -> LoopNest:
    """Each number of the result is the sum of those at its place in so many arguments."""
    each = (Subscript(0, ((0, 1),), 1, extent=count),)
    body = [Instruction("load", float32, access=Access(argument, 0, each)) for argument in range(terms)]
    total = 0
    for term in range(1, terms):
        body.append(Instruction("add", float32, (total, term)))
        total = len(body) - 1
    body.append(Instruction("store", float32, (total,), access=Access(terms, 0, each)))
    arguments = (*[Argument(float32, written=False)] * terms, Argument(float32, written=True))
    return LoopNest("total", arguments, (count,), (Stage((), tuple(body)),))


def put(device: CudaDevice, values: Values) -> Buffer:
    buffer = device.allocate(values.nbytes)
    device.upload(values, buffer)
    return buffer


def get(device: CudaDevice, buffer: Buffer, count: int) -> Values:
    found = np.full(count, np.nan, np.float32)
    device.download(buffer, found).wait()
    return found


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
    x = np.ones(10, np.float32)
    a, out = device.allocate(x.nbytes), device.allocate(x.nbytes)
    device.upload(x, a, device.stream())
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
    assert caught.value.device == "cudahost:0" and "reopen" in str(caught.value)
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


# ---- programs
def program_of(device: CudaDevice, count: int) -> tuple[CudaProgram, Buffer]:
    """y = (x + x) + x of what is bound to slot 0, in slot 2."""
    kernel = device.compile(sum_nest(count))
    middle = device.allocate(4 * count)
    calls = [Call(kernel, (0, 0, 1)), Call(kernel, (1, 0, 2))]
    program = device.capture(calls, [None, middle, None], device.default_stream)
    assert isinstance(program, CudaProgram)
    return program, middle


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
        x = np.full(50, turn, np.float32)
        whole = device.allocate(200 + ALIGNMENT)
        a, out = device.view(whole, 0, 200), device.allocate(200)
        device.upload(x, a)
        program.bind(0, a)
        program.bind(2, out)
        program.run()
        np.testing.assert_array_equal(get(device, out, 50), 3 * x)
        program.release([0, 2])
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


def test_arrays(device: CudaDevice) -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    array = device.place(x)
    assert device.layout_of(array) == Layout.packed((3, 4), float32)
    np.testing.assert_array_equal(get(device, device.buffer_of(array), 12), x.ravel())


# ---- transfers
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
