"""Building, binding and launching; streams, events and the failures of asynchronous work."""

from __future__ import annotations

import gc
import itertools
import threading
import warnings
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import pyopencl as cl
import pytest

from nnc_core.base.cache import LRU
from nnc_core.base.config import config
from nnc_core.base.disk_cache import disk_cache
from nnc_core.base.dtype import float32, float64
from nnc_core.base.errors import (
    DeviceError,
    DeviceFailureError,
    DeviceMemoryError,
    FallbackWarning,
    NotSupportedError,
)
from nnc_core.codegen import AnyNest, Dialect, general
from nnc_core.device import DONE
from nnc_opencl import binaries, drivers, kernel, programs
from nnc_opencl.device import OpenCLDevice
from nnc_opencl.failure import last_words
from nnc_opencl.kernel import OpenCLKernel
from nnc_opencl.stream import REMEMBERED, Asked, OpenCLEvent, OpenCLStream
from tests.opencl.cases import Case, nest_of, numbers
from tests.opencl.running import get, put, run
from tests.support import at_once


def sum_of(count: int, name: str = "add") -> Case:
    return Case(name, (np.arange(count, dtype=np.float32), np.ones(count, np.float32)))


def forget_kernels(device: OpenCLDevice, monkeypatch: pytest.MonkeyPatch, limit: int = 64) -> None:
    """Let a device have nothing built for a test, and keep at most `limit` kernels in it."""
    monkeypatch.setattr(device._kernels, "_kernels", LRU(limit))
    monkeypatch.setattr(device._builder, "_codes", WeakValueDictionary())


def test_equal_nests_are_one_kernel(device: OpenCLDevice) -> None:
    first, again, other = (device.compile(nest_of(sum_of(n).command)) for n in (12, 12, 13))
    assert first is again
    assert first is not other


@pytest.mark.parametrize("kept", [True, False], ids=["binary", "source"])
def test_kernels_are_made_without_writing_python(device: OpenCLDevice, kept: bool,
                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    """PyOpenCL writes functions for calls of each kernel, and looks through a program without a source."""
    from pyopencl import invoker

    source = f"__kernel void twice_{kept}(__global int *x) {{ x[get_global_id(0)] *= 2; }}"
    built = binaries.of_source(source, device.default_stream.context, [])
    if kept:
        found = binaries.of_binary(built.get_info(cl.program_info.BINARIES)[0], device.default_stream.context, [])
        assert found is not None
        built = found
    written, asked = [], []
    monkeypatch.setattr(invoker, "_generate_enqueue_and_set_args_module",
                        lambda *rest, write=invoker._generate_enqueue_and_set_args_module: (
                            written.append(rest), write(*rest))[1])
    monkeypatch.setattr(cl, "_PYOPENCL_NO_CACHE", True)
    monkeypatch.setattr(cl.Program, "__getattr__", lambda self, name: asked.append(name), raising=False)
    code = programs.Code(built, f"twice_{kept}", device._device)
    handles = [code.handle() for _ in range(5)]
    assert len({handle.kernel.int_ptr for handle in handles}) == 5
    assert len(written) == 1
    assert not asked


def test_the_cache_of_kernels_is_bounded(device: OpenCLDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    forget_kernels(device, monkeypatch, 2)
    oldest = device.compile(nest_of(sum_of(3).command))
    for count in (4, 5):
        device.compile(nest_of(sum_of(count).command))
    assert len(device._kernels._kernels) == 2
    assert device.compile(nest_of(sum_of(3).command)) is not oldest


def test_a_kernel_keeps_nothing_of_its_compiler(device: OpenCLDevice, monkeypatch: pytest.MonkeyPatch,
                                                tmp_path: Path) -> None:
    """Freshly built it is of its binary alone, and computes."""
    if not device._device.type & cl.device_type.CPU:
        pytest.skip("drivers for CPUs only: others may compile a binary again")
    nest, inputs = nest_of(sum_of(7).command), sum_of(7).inputs
    forget_kernels(device, monkeypatch, 2)
    with config.using(cache_folder=str(tmp_path)):
        assert not device.compile(nest)._code.program.get_info(cl.program_info.SOURCE)
    np.testing.assert_array_equal(run(device, nest, inputs, inputs[0]), np.arange(7) + 1)


def test_many_binds_of_one_kernel(device: OpenCLDevice) -> None:
    """More than a kernel keeps handles for, all alive at once, launched out of order."""
    count = 3 * programs.HANDLES
    case = sum_of(5)
    built, one = device.compile(nest_of(case.command)), put(device, case.inputs[1])
    sources = [put(device, np.full(5, i, np.float32)) for i in range(count)]
    targets = [device.allocate(20) for _ in range(count)]
    launches = [built.bind([s, one, t]) for s, t in zip(sources, targets, strict=True)]
    for launch in reversed(launches):
        launch()
    results = [get(device, t, np.empty(5, np.float32))[0] for t in targets]
    assert results == [i + 1 for i in range(count)]
    del launches, launch
    assert len(built._code.free) == programs.HANDLES


def test_a_launch_that_is_gone_has_its_arguments(device: OpenCLDevice) -> None:
    """Handles are lent again while what they enqueued may still wait."""
    case = sum_of(1000)
    built, one = device.compile(nest_of(case.command)), put(device, case.inputs[1])
    buffers = [put(device, np.zeros(1000, np.float32)), *[device.allocate(4000) for _ in range(200)]]
    for source, target in itertools.pairwise(buffers):
        built.bind([source, one, target])()
    assert (get(device, buffers[-1], np.empty(1000, np.float32)) == 200).all()


def test_launches_keep_their_buffers(device: OpenCLDevice) -> None:
    case = sum_of(100)
    target = device.allocate(400)
    launch = device.compile(nest_of(case.command)).bind([*[put(device, x) for x in case.inputs], target])
    gc.collect()
    rubbish = [put(device, np.full(100, -1, np.float32)) for _ in range(50)]
    launch()
    np.testing.assert_array_equal(get(device, target, case.expected), case.expected)
    assert len(rubbish) == 50


def test_what_is_enqueued_outlives_everything(device: OpenCLDevice) -> None:
    target = device.allocate(4 << 20)
    case = sum_of(1 << 20)
    device.compile(nest_of(case.command)).bind([*[put(device, x) for x in case.inputs], target])()
    gc.collect()
    np.testing.assert_array_equal(get(device, target, case.expected), case.expected)


def test_two_threads_with_one_kernel(device: OpenCLDevice) -> None:
    case = sum_of(257)
    built = device.compile(nest_of(case.command))
    one, wrong = put(device, case.inputs[1]), []

    def work(start: int) -> None:
        a, b = put(device, np.full(257, start, np.float32)), device.allocate(257 * 4)
        there, back = built.bind([a, one, b]), built.bind([b, one, a])
        for _ in range(100):
            there()
            back()
        if not (get(device, a, np.empty(257, np.float32)) == start + 200).all():
            wrong.append(start)

    at_once(work, (0, 10_000))
    assert not wrong


def test_threads_that_compile_the_same_nest(device: OpenCLDevice) -> None:
    nest, built = nest_of(sum_of(77).command), []
    threads = [threading.Thread(target=lambda: built.append(device.compile(nest))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(built) == 4
    assert len(set(map(id, built))) == 1


def test_a_nest_without_points_launches_nothing(device: OpenCLDevice) -> None:
    case = Case("negative", (np.zeros((3, 0), np.float32),))
    assert run(device, nest_of(case.command), case.inputs, case.expected).shape == (3, 0)


def test_a_wrong_number_of_buffers(device: OpenCLDevice) -> None:
    built = device.compile(nest_of(sum_of(3).command))
    with pytest.raises(DeviceError, match="add takes 3 buffers, not 1"):
        built.bind([device.allocate(12)])


def test_a_device_without_float64_says_so(device: OpenCLDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    nest = nest_of(Case("cast", (numbers(float32, 3),), (float64,)).command)
    spec = drivers.spec_of(device._device, device.spec.id)
    object.__setattr__(spec, "dtypes", spec.dtypes - {"float64"})
    monkeypatch.setattr(device._builder, "spec", spec)
    with pytest.raises(NotSupportedError, match="cast needs float64"):
        device.compile(nest)


def test_a_kernel_that_does_not_build(device: OpenCLDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error has the kernel's name and what the compiler said; the next kernel builds."""
    forget_kernels(device, monkeypatch, 2)
    with monkeypatch.context() as patch:
        patch.setattr(programs, "program_of", lambda *_: "__kernel void kernel_add() { wrong here; }")
        with pytest.raises(DeviceFailureError, match=r"kernel of add: .*error.*") as caught:
            device.compile(nest_of(sum_of(3).command))
    assert caught.value.device == device.spec.id
    case = sum_of(3)
    np.testing.assert_array_equal(run(device, nest_of(case.command), case.inputs, case.expected), case.expected)


def test_nests_of_a_list_share_programs(device: OpenCLDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where nests have one name; what is known is not built again."""
    forget_kernels(device, monkeypatch)
    monkeypatch.setattr(programs, "TOGETHER", 3)
    cases = [sum_of(count) for count in (2, 3, 4, 5)]
    known = device.compile(nest_of(cases[2].command))
    kernels = [k for k in device.compile_all([nest_of(c.command) for c in cases]) if isinstance(k, OpenCLKernel)]
    assert kernels[2] is known
    first, second, _, last = (k._code.program for k in kernels)
    assert first == second == last != known._code.program
    for case in cases:
        np.testing.assert_array_equal(run(device, nest_of(case.command), case.inputs, case.expected), case.expected)


def test_nests_that_differ_in_size_and_place_share_code(device: OpenCLDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    forget_kernels(device, monkeypatch)
    data = put(device, np.arange(400, dtype=np.float32))
    kernels, targets = [], []
    for count, first in ((100, 0), (33, 7), (200, 150)):
        case = Case("negative", (np.zeros(count, np.float32),))
        [source] = case.command.inputs
        command = case.command._replace(inputs=(source._replace(offset=4 * first),))
        kernels.append(device.compile(nest_of(command)))
        targets.append((put(device, np.zeros(400, np.float32)), count, first))
        kernels[-1].bind([data, targets[-1][0]])()
    assert len({kernel._code for kernel in kernels}) == 1
    for target, count, first in targets:
        expected = np.zeros(400, np.float32)
        expected[:count] = -np.arange(first, first + count)
        np.testing.assert_array_equal(get(device, target, expected), expected)


def test_code_goes_with_its_last_kernel(device: OpenCLDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    forget_kernels(device, monkeypatch, 1)
    first = device.compile(nest_of(sum_of(21).command))
    device.compile(nest_of(sum_of(21, "multiply").command))
    assert len(device._builder._codes) == 2
    del first
    gc.collect()
    assert len(device._builder._codes) == 1


def test_a_nest_with_too_many_numbers_has_code_of_its_own(device: OpenCLDevice,
                                                          monkeypatch: pytest.MonkeyPatch) -> None:
    forget_kernels(device, monkeypatch)
    monkeypatch.setattr(device._builder, "most_arguments", 5)
    case = sum_of(100)
    assert not device.compile(nest_of(case.command))._numbers
    np.testing.assert_array_equal(run(device, nest_of(case.command), case.inputs, case.expected), case.expected)


def test_a_nest_that_the_driver_cannot_build_spoils_no_other(device: OpenCLDevice,
                                                             monkeypatch: pytest.MonkeyPatch) -> None:
    forget_kernels(device, monkeypatch, 64)
    nests = [nest_of(sum_of(count).command) for count in (2, 3, 4, 5, 6)]
    whole = programs.program_of

    def spoilt(kernels: dict[str, tuple[AnyNest, Any]], dialect: Dialect) -> str:
        spoils = any(nest == general(nests[3])[0] for nest, _ in kernels.values())
        return whole(kernels, dialect) + ("wrong here;" if spoils else "")

    monkeypatch.setattr(programs, "program_of", spoilt)
    with pytest.raises(DeviceFailureError, match="kernel of add"):
        device.compile_all(nests)
    assert {nest for nest, _ in device._kernels._kernels.items()} == set(nests) - {nests[3]}


def test_last_words_of_a_build_log() -> None:
    log = "Build on <device>:\n\n1:2: error: first\n2:1: Error: second\nCompilation failed\n(options: -I x)\n"
    assert last_words(log) == "2:1: Error: second"
    assert last_words("unknown target CPU\n(options: -I x)\n(source saved as /t.cl)") == "unknown target CPU"
    assert last_words("") == "no log"


def test_programs_are_kept_on_disk(device: OpenCLDevice, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The second time nothing is compiled; a binary that the driver does not take is made again."""
    context, source = device._context, "kernel void f(global float *x) { x[0] = 1; }"
    with config.using(cache_folder=str(tmp_path)):
        binaries.built(source, context, [])
        [entry] = disk_cache(binaries.CACHE).entries()  # type: ignore[union-attr]
        with monkeypatch.context() as patch:
            patch.setattr(binaries, "of_source", lambda *_: pytest.fail("compiled again"))
            cl.Kernel(binaries.built(source, context, []), "f")
        monkeypatch.setattr(binaries, "of_binary", lambda *_: None)
        cl.Kernel(binaries.built(source, context, []), "f")
    assert entry.nbytes
    with config.using(cache_limit=0):
        cl.Kernel(binaries.built(source, context, []), "f")


def test_an_unusable_cache_on_disk(device: OpenCLDevice, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One warning, and the kernel is built without it."""
    (tmp_path / "file").write_text("")
    forget_kernels(device, monkeypatch, 2)
    case = sum_of(9)
    with config.using(cache_folder=str(tmp_path / "file")), pytest.warns(FallbackWarning, match="cache"):
        result = run(device, nest_of(case.command), case.inputs, case.expected)
    np.testing.assert_array_equal(result, case.expected)


def test_building_warns_of_nothing(device: OpenCLDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    forget_kernels(device, monkeypatch, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        device.compile(nest_of(sum_of(31).command))


def test_work_sizes_cover_the_points(device: OpenCLDevice) -> None:
    for points in (1, 15, 16, 100, 1000, 10**6 + 1):
        for largest in (1, 7, 8192):
            total, local = kernel.work_sizes(points, device._device, largest)
            assert points <= total < points + local
            assert total % local == 0
            assert local <= largest


def test_small_works_are_one_group(device: OpenCLDevice) -> None:
    if not device._device.type & cl.device_type.CPU:
        pytest.skip("a driver for another kind of device")
    assert kernel.work_sizes(8, device._device, 64) == (16, 16)
    assert kernel.work_sizes(60, device._device, 64) == (64, 64)
    assert kernel.work_sizes(8, device._device, 64, inner=1000) == (8, 1)  # each of them for a core


def test_streams_wait_for_each_other(device: OpenCLDevice) -> None:
    first, second = device.stream(), device.stream()
    case = sum_of(1 << 18)
    a, one = (put(device, x) for x in case.inputs)
    b, c = device.allocate(a.nbytes), device.allocate(a.nbytes)
    built = device.compile(nest_of(case.command))
    built.bind([a, one, b], first)()
    second.wait(first.record())
    built.bind([b, one, c], second)()
    result = np.empty(1 << 18, np.float32)
    device.download(c, result, second).wait()
    np.testing.assert_array_equal(result, case.inputs[0] + 2)
    first.wait(DONE)
    first.synchronize()


def test_streams_of_other_devices_are_refused(device: OpenCLDevice) -> None:
    other = OpenCLDevice(device._device, "opencl:9")
    with pytest.raises(DeviceError, match="no stream of"):
        device.fill(device.allocate(4), b"\0", other.stream())
    event = other.stream().record()
    device.default_stream.wait(event)
    other.close()


def fail(stream: OpenCLStream, status: int) -> None:
    """Let the stream have a command that ends with a negative status."""
    event = cl.UserEvent(stream.context)
    stream.remember(event, Asked("the wrong command"))
    event.set_status(status)


@pytest.mark.parametrize(("status", "kind"), [(-9999, DeviceFailureError), (-4, DeviceMemoryError)])
def test_failed_work_is_reported_where_the_host_waits(
    device: OpenCLDevice, status: int, kind: type[Exception]
) -> None:
    stream = device.stream()
    fail(stream, status)
    with pytest.raises(kind, match="the wrong command failed"):
        device.fill(device.allocate(4), b"\0", stream).wait()
    stream.synchronize()  # once is enough


def test_synchronize_reports_failed_work(device: OpenCLDevice) -> None:
    stream = device.stream()
    fail(stream, -9999)
    with pytest.raises(DeviceFailureError, match=r"the wrong command failed: status"):
        stream.synchronize()


def test_failed_work_is_reported_by_streams_that_follow(device: OpenCLDevice) -> None:
    first, second, third = (device.stream() for _ in range(3))
    fail(first, -9999)
    second.wait(first.record())
    third.wait(second.record())
    first.wait(third.record())  # a circle is no trap
    with pytest.raises(DeviceFailureError, match="the wrong command failed"):
        third.synchronize()
    first.synchronize()


def test_a_failed_event_raises_whatever_the_stream_has_forgotten(device: OpenCLDevice) -> None:
    stream = device.stream()
    event = cl.UserEvent(stream.context)
    event.set_status(-9999)
    with pytest.raises(DeviceFailureError, match="a command failed"):
        OpenCLEvent(stream, event).wait()


def test_finished_commands_are_forgotten(device: OpenCLDevice) -> None:
    stream = device.stream()
    case = sum_of(8)
    buffers = [*[put(device, x) for x in case.inputs], device.allocate(32)]
    launch = device.compile(nest_of(case.command)).bind(buffers, stream)
    for _ in range(3 * REMEMBERED):
        launch()
    stream.synchronize()
    assert not stream._commands
