"""jit: a warning where Python counts, draws or reads a clock while it is traced, and none where it does not matter."""

from __future__ import annotations

import datetime
import itertools
import random
import time
from collections.abc import Callable
from random import uniform
from time import perf_counter
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import JitWarning

count = 0
log: list[int] = []
table: dict[str, Any] = {"n": 0}
found: dict[str, float] = {}
numbers, counter, rng = iter(range(100)), itertools.count(), np.random.default_rng(0)


class Counting:
    def __init__(self) -> None:
        self.n, self.found = 0, None

    def counted(self, x: Any) -> Any:
        self.n += 1
        return x * self.n

    def noted(self, x: Any) -> Any:
        self.n += 1
        return x * 2

    def found_once(self, x: Any) -> Any:
        if self.found is None:
            self.found = 3.0  # type: ignore[assignment]
        return x * self.found


def a_global(x: Any) -> Any:
    global count
    count += 1
    return x * count


def a_global_that_is_only_counted(x: Any) -> Any:
    global count
    count += 1
    return x * 2


def closed() -> Callable[..., Any]:
    n = 0

    def f(x: Any) -> Any:
        nonlocal n
        n += 1
        return x * n

    return f


def a_list(x: Any) -> Any:
    log.append(1)
    return x * len(log)


def a_list_that_is_only_written(x: Any) -> Any:
    log.append(1)
    return x * 2


def an_item(x: Any) -> Any:
    table["n"] += 1
    return x * table["n"]


def an_item_that_is_only_written(x: Any) -> Any:
    table["n"] += 1
    return x * 2


def a_table_that_is_filled(x: Any) -> Any:
    if "k" not in found:
        found["k"] = 2.0
    return x * found["k"]


def a_default(x: Any, n: list[int] = [0]) -> Any:  # noqa: B006
    n[0] += 1
    return x * n[0]


TOLD: dict[str, tuple[Callable[..., Any], str]] = {
    "a global": (a_global, "it changes global `count` (at test_jit_baked.py:"),
    "a variable around the function": (closed(), "it changes variable `n` (at"),
    "a list": (a_list, "it changes items of global `log`"),
    "an item": (an_item, "it changes items of global `table`"),
    "a default": (a_default, "it changes items of default `n` of a_default"),
    "an attribute": (Counting().counted, "it changes n of Counting"),
    "random": (lambda x: x * random.random(), "Python draws random numbers (at test_jit_baked.py:"),
    "a function of random": (lambda x: x * uniform(0, 1), "Python draws random numbers"),
    "NumPy's random numbers": (lambda x: x * np.random.rand(), "Python draws random numbers"),
    "a generator": (lambda x: x * rng.random(), "Python draws random numbers"),
    "time": (lambda x: x * (time.time() > 0), "it reads the clock `time`"),
    "a clock by its name": (lambda x: x * (perf_counter() > 0), "it reads the clock `perf_counter`"),
    "the date": (lambda x: x * (datetime.datetime.now().hour + 1), "it reads the clock `now`"),
    "an iterator": (lambda x: x * next(numbers), "it advances the iterator `numbers`"),
    "a counter": (lambda x: x * next(counter), "it advances the iterator `counter`"),
    "eval": (lambda x: x * eval("2.0"), "`eval` finds variables by names that are computed"),
}
FINE: dict[str, Callable[..., Any]] = {
    "a global that is only counted": a_global_that_is_only_counted, "a log": a_list_that_is_only_written,
    "a count in a dict": an_item_that_is_only_written, "an attribute that is only counted": Counting().noted,
    "a table that is filled": a_table_that_is_filled, "what is found once": Counting().found_once,
    "a generator that is not drawn from": lambda x: x * (2 if rng else 3),
    "its own iterator": lambda x: x * next(iter([2.0])),
}


@pytest.mark.parametrize("what", TOLD)
def test_one_warning_names_it_and_its_line(device: str, what: str) -> None:
    f, said = TOLD[what]
    compiled = nnc.jit(f)
    with pytest.warns(JitWarning) as warned:
        compiled(nnc.ones(2))
        compiled(nnc.ones(3))
        compiled(nnc.ones((2, 2)))
    (one,) = [w for w in warned if isinstance(w.message, JitWarning)]
    assert said in str(one.message)
    assert one.filename == __file__


@pytest.mark.parametrize("what", FINE)
def test_no_warning(device: str, what: str) -> None:
    compiled = nnc.jit(FINE[what])
    for shape in ((2,), (3,), (2, 2)):
        compiled(nnc.ones(shape))
