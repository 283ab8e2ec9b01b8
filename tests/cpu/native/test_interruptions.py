"""Errors, signals and other threads in the middle of a program, and what a setting asks to be shown."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from tests.cpu.native.runs import Captured, Values, on

X = np.linspace(-1, 1, 64, dtype=np.float32)


@pytest.fixture
def device() -> Any:
    device = Captured()
    with on(device):
        yield device


def test_an_exception_of_a_host_function_in_the_middle_of_a_loop(device: Captured) -> None:
    """The values before it were right, the device goes on, and so does the same compiled function."""
    seen: list[Values] = []

    def host(x: Values) -> Values:
        seen.append(x.copy())
        if len(seen) == 4:
            raise ValueError("enough")
        return x

    @nnc.jit
    def f(x: Any) -> Any:
        def step(i: Any, x: Any) -> Any:
            return i + 1, nnc.callback(host, x, nnc.tanh(x)) * 2

        return nnc.while_loop(lambda i, _: i < 6, step, (0, x))[1]

    with pytest.raises(nnc.Error, match="enough"):
        f(nnc.asarray(X))
    assert device.in_machine_code
    assert len(seen) == 4
    for before, after in pairwise(seen):
        np.testing.assert_allclose(after, np.tanh(before * 2), rtol=1e-6)
    found = f(nnc.asarray(X)).numpy()
    assert len(seen) == 10
    np.testing.assert_array_equal(found, seen[-1] * 2)
    np.testing.assert_array_equal(seen[4], seen[0])


def test_commands_are_profiled_one_by_one(device: Captured) -> None:
    def step(i: Any, x: Any) -> Any:
        return i + 1, nnc.sort(nnc.tanh(x))

    compiled = nnc.jit(lambda x: nnc.while_loop(lambda i, _: i < 3, step, (0, x)))
    x = nnc.asarray(X)
    compiled(x)
    compiled(x)
    assert device.in_machine_code
    profile = compiled.lower(x).profile(arg0=x)
    assert "tanh" in str(profile) and "sort" in str(profile)
    np.testing.assert_allclose(compiled(x)[1].numpy(), np.tanh(np.tanh(np.tanh(X))), rtol=1e-6)


def test_a_watch_over_values_names_the_command(device: Captured) -> None:
    compiled = nnc.jit(lambda x: nnc.while_loop(lambda i, _: i < 3, lambda i, x: (i + 1, nnc.log(x - 0.5)), (0, x)))
    for _ in range(2):
        compiled(nnc.asarray(X))
    with nnc.config.using(check_nan="nan"), pytest.raises(nnc.errors.NonfiniteError, match="log"):
        compiled(nnc.asarray(X))
    assert device.in_machine_code


def test_many_threads_run_many_graphs(device: Captured) -> None:
    compiled = [nnc.jit(lambda x, k=k: nnc.while_loop(
        lambda i, _: i < 20 + k, lambda i, x: (i + 1, nnc.tanh(x * (1 + k / 10))), (0, x))[1]) for k in range(3)]
    given = [nnc.asarray(X * j) for j in range(4)]
    wanted = [[f(x).numpy() for x in given] for f in compiled]

    def work(n: int) -> None:
        with nnc.config.using(threads=1 + n % 3):
            k, j = n % 3, n % 4
            for _ in range(20):
                np.testing.assert_array_equal(compiled[k](given[j]).numpy(), wanted[k][j])

    with ThreadPoolExecutor(5) as executor:
        list(executor.map(work, range(20)))


ENDLESS = """
import signal
import numpy as np
import nnc_core as nnc
signal.signal(signal.SIGINT, signal.default_int_handler)  # tests that run in the background are born deaf to it
nnc.config.compile_at_once = True
f = nnc.jit(lambda n, x: nnc.while_loop(lambda i, _: i < n, lambda i, x: (i + 1, nnc.tanh(x) * 1.1), (0, x))[1])
for size in (8, 1 << 16):
    x = nnc.asarray(np.ones(size, np.float32))
    first = f(nnc.asarray(3), x).numpy()
    print("begun", flush=True)
    try:
        f(nnc.asarray(2**62), x)
    except KeyboardInterrupt:
        again = f(nnc.asarray(3), x).numpy()
        print("ended", (first == again).all(), flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent in another way")
def test_an_endless_loop_ends_when_the_user_wants() -> None:
    with subprocess.Popen([sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            for _ in range(2):
                assert child.stdout.readline() == "begun\n"
                time.sleep(0.3)
                child.send_signal(signal.SIGINT)
                assert child.stdout.readline() == "ended True\n"
            assert child.wait(60) == 0
        finally:
            child.kill()


def test_other_threads_run_python_meanwhile(device: Captured) -> None:
    """Machine code holds no lock of the interpreter's."""
    f = nnc.jit(lambda n, x: nnc.while_loop(lambda i, _: i < n, lambda i, x: (i + 1, nnc.tanh(x) * 1.1), (0, x))[1])
    x, n = nnc.asarray(np.ones(1 << 14, np.float32)), nnc.asarray(5000)
    f(n, x)
    thread = threading.Thread(target=f, args=(n, x))
    thread.start()
    rounds = 0
    while thread.is_alive():
        rounds += 1
    assert rounds > 100
