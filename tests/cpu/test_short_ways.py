"""Everyday calls of a few elements go short ways: they are counted in calls of Python functions, which do not depend on
the machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.values.repetition import COUNTED_OF_NONE

WARM = COUNTED_OF_NONE + 2  # functions without tensors are the last to be kept for repeating
ARRAY, LISTED = np.arange(8, dtype=np.float32), [1.0, 2.0, 3.0, 4.0]
DRAWN = nnc.Generator(3)

CALLS: dict[str, tuple[Callable[[], Any], int]] = {
    "asarray of an array": (lambda: nnc.asarray(ARRAY), 20),
    "asarray of a list": (lambda: nnc.asarray(LISTED), 22),
    "zeros": (lambda: nnc.zeros(8), 26),
    "ones": (lambda: nnc.ones((4, 4)), 29),
    "arange": (lambda: nnc.arange(8), 24),
    "arange of floats": (lambda: nnc.arange(0.0, 8.0, 1.0), 33),
    "normal": (lambda: DRAWN.normal(8), 25),
    "uniform": (lambda: DRAWN.uniform(8), 25),
}


def _python_calls(call: Callable[[], Any]) -> int:
    count = 0

    def look(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        call()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("name", CALLS)
def test_a_small_call_takes_few_calls_of_python(name: str) -> None:
    call, most = CALLS[name]
    for _ in range(WARM):
        call()
    assert min(_python_calls(call) for _ in range(3)) <= most


def test_a_row_of_floats_is_that_of_its_own_start_and_default_dtype() -> None:
    """What is kept of a call for the next one tells zeros of either sign, and dtypes, apart."""
    for _ in range(3):
        signs = [bool(np.signbit(nnc.arange(start, -2.0, -1.0).numpy()[0])) for start in (0.0, -0.0)]
        assert signs == [False, True]
        with nnc.config.using(default_float="float64"):
            assert nnc.arange(0.0, -2.0, -1.0).dtype == nnc.float64
        assert nnc.arange(0.0, -2.0, -1.0).dtype == nnc.float32


def test_a_small_array_is_a_copy_like_a_large_one() -> None:
    for size in (8, 100_000):
        host = np.arange(size, dtype=np.float32)[::-1]
        made = nnc.asarray(host)
        host[:] = 0
        np.testing.assert_array_equal(made.numpy(), np.arange(size, dtype=np.float32)[::-1])
