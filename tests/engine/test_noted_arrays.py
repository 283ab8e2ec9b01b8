"""Arrays that come again to a program are not bound again, others always are."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc

MADE: dict[str, Callable[[np.ndarray[Any, Any]], nnc.Tensor]] = {
    "in the pool": nnc.asarray, "by an eager operator": lambda host: nnc.asarray(host) + 0.0}
made = "in the pool"


def tens(*numbers: float) -> list[nnc.Tensor]:
    return [MADE[made](np.full(8, x, np.float32)) for x in numbers]


@pytest.fixture(params=MADE)
def added(request: pytest.FixtureRequest) -> Iterator[nnc.Jitted]:
    global made
    made = request.param
    yield nnc.jit(lambda a, b: a * 10.0 + b)
    made = "in the pool"


def first(x: nnc.Tensor) -> float:
    return float(x[0].item())


def test_arrays_that_come_again_and_arrays_in_between(added: nnc.Jitted) -> None:
    a, b, c = tens(1, 2, 3)
    pairs = [(a, b), (a, b), (a, b), (c, b), (a, c), (a, b)]
    for _ in range(4):
        assert [first(added(x, y)) for x, y in pairs] == [12, 12, 12, 32, 13, 12]


def test_arrays_in_the_memory_of_others_that_are_gone(added: nnc.Jitted) -> None:
    [b] = tens(0)
    for number in range(50):
        [a] = tens(number)
        assert first(added(a, b)) == first(added(a, b)) == first(added(a, b)) == 10 * number
        del a
        gc.collect() if number % 10 == 0 else None


def test_what_is_written_into_an_array_that_comes_again_is_read(added: nnc.Jitted) -> None:
    a, b = tens(1, 2)
    for number in range(5):
        a[...] = float(number)
        assert first(added(a, b)) == 10 * number + 2


def test_memory_that_was_given_back(added: nnc.Jitted) -> None:
    a, b = tens(1, 2)
    for _ in range(3):
        assert first(added(a, b)) == 12
    nnc.stack_for(None).device.pool.trim()
    assert [first(added(a, b)) for _ in range(3)] == [12] * 3


def test_arrays_that_lie_strided_are_copied_each_time(added: nnc.Jitted) -> None:
    host = np.zeros((8, 2), np.float32)
    [b] = tens(2)
    a = nnc.from_dlpack(host[:, 0]) if hasattr(nnc, "from_dlpack") else nnc.asarray(host[:, 0], copy=False)
    for number in range(4):
        host[:] = number
        assert first(added(a, b)) == 10 * number + 2


def test_memory_of_others_is_read_as_it_is_at_each_call(added: nnc.Jitted) -> None:
    host = np.zeros(8, np.float32)
    [b] = tens(2)
    a = nnc.from_dlpack(host)
    for number in range(5):
        host[:] = number
        assert first(added(a, b)) == 10 * number + 2


def test_arrays_of_eager_operators_are_looked_at_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    f, x = nnc.jit(lambda a, b: a * 10.0 + b), nnc.ones((8,)) + 1.0
    device = nnc.stack_for(None).device
    original = type(device).packed_buffer
    monkeypatch.setattr(type(device), "packed_buffer", lambda self, array: asked.append(array) or original(self, array))
    counts = []
    for _ in range(5):
        asked.clear()
        assert first(f(x, x)) == 22
        counts.append(len([array for array in asked if array is x._value.array]))
    assert counts[0] and not counts[-1]
