"""NumPy's BLAS has one thread while a compiled program computes by it, and as many as before when it is done."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

from nnc_core.base.command import Command
from nnc_core.base.dtype import float32
from nnc_core.base.layout import Layout
from nnc_cpu import blas
from nnc_cpu.backends import LoneMatmulKernel, NumpyKernel
from nnc_cpu.device import CpuDevice


class Counted:
    """A BLAS that notes how many threads it was given."""

    def __init__(self) -> None:
        self.threads, self.given = 4, list[int]()
        self.count = blas.ThreadCount(blas.GET(lambda: self.threads), blas.SET(self.set))

    def set(self, count: int) -> None:
        self.threads = count
        self.given.append(count)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    found = Counted()
    monkeypatch.setattr(blas, "thread_count", lambda: found.count)
    return found


def test_launches_within_launches_give_threads_back_once(counted: Counted) -> None:
    seen: list[int] = []
    inner = blas.on_one_thread(lambda: seen.append(counted.threads))

    def outer() -> None:
        inner()
        seen.append(counted.threads)

    blas.on_one_thread(outer)()
    assert seen == [1, 1]
    assert counted.given == [1, 4]


def test_threads_are_given_back_after_a_failure(counted: Counted) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        blas.on_one_thread(fail)()
    assert counted.threads == 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no forks")
def test_nobody_holds_it_in_the_child_of_a_fork(counted: Counted) -> None:
    """Of a thread that works in the parent nothing is left there."""
    status: list[int] = []

    def fork() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python warns of forks beside threads
            child = os.fork()
        if not child:
            try:
                blas.on_one_thread(lambda: None)()
            finally:
                os._exit(counted.given != [1, 4, 1, 4])
        status.append(os.waitpid(child, 0)[1])

    blas.on_one_thread(fork)()
    assert status == [0] and counted.given == [1, 4]


def test_without_such_a_blas_nothing_is_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blas, "thread_count", lambda: None)
    launch = list[int]().clear
    assert blas.on_one_thread(launch) is launch


def test_the_blas_that_is_there_says_and_takes_a_number() -> None:
    found = blas.thread_count()
    if found is None:
        pytest.skip("NumPy has another BLAS here")
    before = found.get()
    blas.on_one_thread(lambda: np.testing.assert_equal(blas.thread_count().get(), 1))()  # type: ignore[union-attr]
    assert found.get() == before > 0


def test_products_of_vectors_are_kept_to_one_thread_beside_machine_code(counted: Counted) -> None:
    def product(n: int) -> Command:
        a, x, y = (Layout.packed(shape, float32) for shape in ((n, n), (n, 1), (n, 1)))
        return Command("matmul", (False, False), (a, x), (y,))

    for machine_code, n, kinds in ((True, 200, [LoneMatmulKernel]), (True, 20, []), (True, 1 << 15, [NumpyKernel]),
                                   (False, 200, [NumpyKernel]), (False, 20, [NumpyKernel])):
        command = product(n)
        backends = CpuDevice(machine_code).backends("matmul")
        assert [type(b.prepare(command)) for b in backends if b.refuse(command) is None] == kinds
    a, x = np.ones((200, 200), np.float32), np.ones((200, 1), np.float32)
    y = np.zeros((200, 1), np.float32)
    LoneMatmulKernel(product(200)).bind([z.reshape(-1).view(np.uint8) for z in (a, x, y)])()
    assert (y == 200).all() and counted.given == [1, 4]


def test_the_tables_of_the_plugin_load_no_llvm() -> None:
    """It takes a tenth of a second, and need not be installed."""
    code = "import sys, nnc_cpu.device; sys.exit('llvmlite' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
