"""Threads that share state: each draw has a number of its own, each gradient counts."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import nnc_core as nnc

THREADS, ROUNDS = 6, 20


@pytest.fixture(autouse=True)
def _quick_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(work: Callable[[], None]) -> None:
    """Do it in each of several threads at once."""
    barrier = threading.Barrier(THREADS)
    failed: list[BaseException] = []

    def run(device: str) -> None:
        try:
            with nnc.use_device(device):
                barrier.wait()
                for _ in range(ROUNDS):
                    work()
        except BaseException as error:
            failed.append(error)

    device = nnc.ones(1).device.id
    threads = [threading.Thread(target=run, args=(device,)) for _ in range(THREADS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not failed and not any(t.is_alive() for t in threads), failed


def test_threads_never_draw_the_same_numbers(device: str) -> None:
    generator = nnc.Generator(3)
    drawn: list[bytes] = []
    together(lambda: drawn.append(generator.uniform((8,)).numpy().tobytes()))
    assert len(set(drawn)) == THREADS * ROUNDS and generator.state == (3, THREADS * ROUNDS)


def test_eager_and_compiled_draws_never_meet(device: str) -> None:
    generator = nnc.Generator(3)
    compiled = nnc.jit(lambda: generator.uniform((8,)))
    drawn: list[bytes] = [compiled().numpy().tobytes()]

    def both() -> None:
        drawn.append(generator.uniform((8,)).numpy().tobytes())
        drawn.append(compiled().numpy().tobytes())

    together(both)
    assert len(set(drawn)) == len(drawn) == 2 * THREADS * ROUNDS + 1


def test_gradients_of_several_threads_are_added_up(device: str) -> None:
    v = nnc.variable(np.ones(3, np.float32))
    together(lambda: nnc.sum(v * 2.0).backward())
    assert v.grad is not None and v.grad.tolist() == [2.0 * THREADS * ROUNDS] * 3
