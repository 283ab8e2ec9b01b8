"""Code of nests: shared by equal ones, freed with the last of them, compiled by many threads."""

from __future__ import annotations

import gc
import resource
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import nnc_cpu.nests
from nnc_core.base.config import config
from nnc_core.base.dtype import float32, float64
from nnc_core.base.errors import DeviceFailureError, FallbackWarning, NotSupportedError
from nnc_core.base.loopnest import LoopNest
from nnc_cpu.llvm.compiler import HostCompiler, host
from nnc_cpu.llvm.kernel import NestCompiler
from nnc_cpu.nests import NestKernels
from tests.codegen.nests import Writer, at, elementwise
from tests.cpu.machine_code.running import run


def twice(size: int, offset: int = 0) -> LoopNest:
    n = Writer("twice", (size,), [(float32, False), (float32, True)])
    x = n.load(0, at({0: 1}, 1), offset=offset)
    n.store(1, n.op("add", float32, x, x), at({0: 1}, 1))
    return n.build()


def doubled(kernel: object, size: int, offset: int = 0) -> None:
    x, y = np.arange(size + offset, dtype=np.float32), np.zeros(size, np.float32)
    run(kernel, [x, y])  # type: ignore[arg-type]
    np.testing.assert_array_equal(y, 2 * x[offset:])


def test_nests_that_differ_in_numbers_share_code() -> None:
    compiler = NestCompiler(host())
    kernels = compiler.kernels([twice(100), twice(5000), twice(8193, offset=3)])
    assert len({id(kernel.code) for kernel in kernels}) == 1  # type: ignore[union-attr]
    for kernel, (size, offset) in zip(kernels, ((100, 0), (5000, 0), (8193, 3)), strict=True):
        doubled(kernel, size, offset)


def test_code_goes_with_the_last_that_uses_it() -> None:
    compiler = NestCompiler(host())
    [kernel] = compiler.kernels([twice(100)])
    launch = kernel.bind([np.zeros(400, np.uint8), np.zeros(400, np.uint8)])  # type: ignore[union-attr,list-item]
    code = weakref.ref(kernel.code)  # type: ignore[union-attr]
    del kernel
    gc.collect()
    assert code() is not None, "a launch needs it"
    launch()
    del launch
    gc.collect()
    assert code() is None


def test_many_threads_compile_and_run() -> None:
    compiler = NestCompiler(host())

    def work(k: int) -> None:
        size = 17 + k
        x, y = np.arange(size, dtype=np.float32), np.zeros(size, np.float32)
        operation = ("add", "multiply", "subtract", "maximum")[k % 4]
        [kernel] = compiler.kernels([elementwise("op", operation, float32, [x, x], float32)])
        run(kernel, [x, x + 1, y])  # type: ignore[arg-type]
        np.testing.assert_array_equal(y, getattr(np, operation)(x, x + 1))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(40)))


def test_what_cannot_be_said_is_refused_alone() -> None:
    n = Writer("odd", (4,), [(float32, False), (float32, True)])
    n.store(1, n.op("gcd", float32, *[n.load(0, at({0: 1}, 1))] * 2), at({0: 1}, 1))
    kernels = NestCompiler(host()).kernels([twice(4), n.build(), twice(5)])
    assert isinstance(kernels[1], NotSupportedError)
    assert "gcd" in str(kernels[1])
    doubled(kernels[0], 4)
    doubled(kernels[2], 5)


def test_text_that_llvm_refuses_is_one_error() -> None:
    with pytest.raises(DeviceFailureError, match="LLVM cannot compile"):
        HostCompiler(host()).compile("define nothing")


def test_without_llvm_nests_are_interpreted_and_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "nnc_cpu.llvm.kernel", raising=False)
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    monkeypatch.setitem(sys.modules, "llvmlite.binding", None)
    monkeypatch.delitem(sys.modules, "nnc_cpu.llvm.compiler", raising=False)
    first, second = NestKernels().of([twice(7), twice(8)])
    with config.using(compile_at_once=True):
        with pytest.warns(FallbackWarning, match="pip install llvmlite"):
            doubled(first, 7)
        doubled(second, 8)
    assert first.machine is None


# ---- interpreted at first
def test_small_work_is_interpreted_until_machine_code_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nnc_cpu.nests, "PATIENCE", 0.0)
    first, second = NestKernels().of([twice(7), twice(8)])
    x, y = np.arange(7, dtype=np.float32), np.zeros(7, np.float32)
    launch = first.bind([x.view(np.uint8), y.view(np.uint8)])
    launch()
    assert first.machine is None and second.machine is None
    np.testing.assert_array_equal(y, 2 * x)
    y[:] = 0
    launch()
    assert first.machine is not None and second.machine is not None, "they were asked for together"
    np.testing.assert_array_equal(y, 2 * x)


def test_code_that_is_there_is_loaded_when_interpreting_has_cost_as_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nnc_cpu.nests, "PATIENCE", 1e9)
    kernels = NestKernels()
    first, second = kernels.of([twice(7), twice(8)])
    monkeypatch.setattr(kernels.compiler, "kept", lambda nests: [nest.axes == (8,) for nest in nests])
    doubled(first, 7)
    assert second.machine is None
    first.together.spent = 1.0
    doubled(first, 7)
    assert first.machine is None and second.machine is not None
    monkeypatch.setattr(kernels.compiler, "kept", lambda nests: pytest.fail("it was looked for before"))
    doubled(first, 7)
    assert first.machine is None
    doubled(second, 8)


def test_code_of_this_process_and_of_others_is_known(tmp_path: Path) -> None:
    with config.using(cache_folder=str(tmp_path)):
        made = NestCompiler(host(), kept=True)
        assert made.kept([twice(7), twice(8)]) == [False, False]
        kernels = made.kernels([twice(7)])
        assert made.kept([twice(7), twice(8)]) == [True, False]
        assert NestCompiler(host(), kept=True).kept([twice(7), twice(8)]) == [True, False]
        assert NestCompiler(host()).kept([twice(7)]) == [False]
    with config.using(cache_limit=0):
        assert made.kept([twice(7)]) == [True], "it is still loaded"
    del kernels


def test_large_work_is_compiled_before_it_is_run() -> None:
    small, large = NestKernels().of([twice(7), twice(1 << 20)])
    doubled(small, 7)
    assert small.machine is None
    doubled(large, 1 << 20)
    assert large.machine is not None and small.machine is not None


def test_what_the_interpreter_rounds_otherwise_is_compiled_before_it_is_run() -> None:
    x = np.linspace(0.1, 3, 50)
    [kernel] = NestKernels().of([elementwise("op", "power", float64, [x, x], float64)])
    run(kernel, [x, x, np.zeros_like(x)])
    assert kernel.machine is not None


def test_kernels_that_are_gone_are_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    kernels = NestKernels()
    first, second, third = kernels.of([twice(7), twice(8), twice(9)])
    monkeypatch.setattr(kernels.compiler, "kernels", lambda nests: asked.append(len(nests)) or [None] * len(nests))
    del second
    with config.using(compile_at_once=True):
        doubled(first, 7)
    assert asked == [2]
    doubled(third, 9)
    assert asked == [2]


def test_a_kernel_that_llvm_refuses_is_interpreted_and_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = NestKernels()
    first, second = kernels.of([twice(7), twice(8)])
    good = kernels.compiler.kernels
    monkeypatch.setattr(kernels.compiler, "kernels",
                        lambda nests: [NotSupportedError("not today"), *good(nests)[1:]])
    with config.using(compile_at_once=True):
        with pytest.warns(FallbackWarning, match="twice is interpreted.*not today"):
            doubled(first, 7)
        doubled(first, 7)
        doubled(second, 8)
    assert first.machine is None and second.machine is not None


def test_no_points_are_no_work() -> None:
    [kernel] = NestCompiler(host()).kernels([twice(0)])
    run(kernel, [np.zeros(0, np.float32), np.zeros(0, np.float32)])  # type: ignore[arg-type]


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory of a process is read as Linux tells it")
def test_modules_that_are_gone_leave_no_memory_behind() -> None:
    machine = HostCompiler(host())
    code = machine.compile("define i32 @f() { ret i32 1 }\n")

    def load(times: int) -> int:
        for _ in range(times):
            machine.load([code], ["f"])
        gc.collect()
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

    before = load(200)
    assert load(2000) - before < 4 << 20
