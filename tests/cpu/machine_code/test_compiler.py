"""Code of nests: shared by equal ones, freed with the last of them, compiled by many threads."""

from __future__ import annotations

import gc
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import nnc_cpu.nests
from nnc_core.base.dtype import float32
from nnc_core.base.errors import DeviceFailureError, FallbackWarning, NotSupportedError
from nnc_core.base.loopnest import LoopNest
from nnc_cpu.llvm.compiler import HostCompiler, host
from nnc_cpu.llvm.kernel import NestCompiler
from nnc_cpu.nests import make_compiler
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
        HostCompiler(host()).load("define nothing", {})


def test_without_llvm_nests_are_interpreted_and_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "nnc_cpu.llvm.kernel", raising=False)
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    monkeypatch.setitem(sys.modules, "llvmlite.binding", None)
    monkeypatch.delitem(sys.modules, "nnc_cpu.llvm.compiler", raising=False)
    with pytest.warns(FallbackWarning, match="pip install llvmlite"):
        compile_all = make_compiler()
    assert compile_all is nnc_cpu.nests.interpreted
    [kernel] = compile_all([twice(7)])
    doubled(kernel, 7)


def test_no_points_are_no_work() -> None:
    [kernel] = NestCompiler(host()).kernels([twice(0)])
    run(kernel, [np.zeros(0, np.float32), np.zeros(0, np.float32)])  # type: ignore[arg-type]
