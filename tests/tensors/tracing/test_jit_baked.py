"""jit: a warning where Python counts, draws or reads a clock while it is traced, and none where it does not matter."""

from __future__ import annotations

import array
import collections
import datetime
import io
import itertools
import os
import queue
import random
import time
import uuid
from collections.abc import Callable, Iterator
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


class Node:
    def __init__(self, value: float, following: Any = None) -> None:
        self.value, self.following = value, following


class Chain:
    """An iterator whose place is an object, no number."""

    def __init__(self, *values: float) -> None:
        self.node: Any = None
        for v in reversed(values):
            self.node = Node(v, self.node)

    def __iter__(self) -> Chain:
        return self

    def __next__(self) -> float:
        value: float = self.node.value
        self.node = self.node.following
        return value


class Rows:
    """An iterator that hands on another's, and one that takes from a queue."""

    def __init__(self) -> None:
        self.inner, self.left = iter(range(1, 100)), collections.deque(range(1, 100))

    def __iter__(self) -> Rows:
        return self

    def __next__(self) -> int:
        return next(self.inner)

    def taken(self) -> int:
        return self.left.popleft()


def numbered() -> Iterator[int]:
    yield from range(1, 100)


chain, rows, generated, inside = Chain(*range(1, 100)), Rows(), numbered(), [iter(range(1, 100)), Chain(*range(1, 100))]
cards, ticked, waiting = set(range(1, 100)), collections.Counter("a"), queue.Queue[int]()
open_file = io.StringIO("1\n" * 100)
for number in range(1, 100):
    waiting.put(number)
host, small, typed, filled = np.zeros(1), bytearray(2), array.array("d", [0.0]), {"a": 1.0}
written = io.StringIO()
system = random.SystemRandom()


def a_host_array(x: Any) -> Any:
    host[0] += 1
    return x * float(host[0])


def bytes_that_count(x: Any) -> Any:
    small[0] += 1
    return x * small[0]


def numbers_that_count(x: Any) -> Any:
    typed[0] += 1
    return x * typed[0]


def ticks(x: Any) -> Any:
    ticked["b"] += 1
    return x * ticked["b"]


def the_environment(x: Any) -> Any:
    os.environ["NNC_BAKED"] = os.environ.get("NNC_BAKED", "") + "1"
    return x * float(os.environ["NNC_BAKED"])


def a_name_that_is_computed(x: Any) -> Any:
    name = "NNC_" + str(x.shape[0])
    return x * float(os.getenv(name, "1"))


def for_loop(x: Any) -> Any:
    for n in chain:
        return x * n
    return x


def a_table_that_grows(x: Any) -> Any:
    filled.setdefault(str(x.shape), 2.0)
    return x * filled[str(x.shape)]


def a_file_that_is_written(x: Any) -> Any:
    written.write("traced")
    return x * 2


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
    "an iterator of one's own": (lambda x: x * next(chain), "it changes node of Chain"),
    "a loop over an iterator of one's own": (for_loop, "it changes node of Chain"),
    "an iterator that hands on another's": (lambda x: x * next(rows), "it advances the iterator `inner`"),
    "a method that takes from a queue": (lambda x: x * rows.taken(), "it changes items of left of Rows"),
    "an iterator in a list": (lambda x: x * next(inside[0]), "it advances the iterator `inside`"),
    "one's own in a list": (lambda x: x * next(inside[1]), "it changes node of Chain"),
    "a generator of one's own": (lambda x: x * next(generated), "it advances the iterator `generated`"),
    "a send to it": (lambda x: x * generated.send(None), "it advances the iterator `generated`"),
    "a set": (lambda x: x * cards.pop(), "it changes items of global `cards`"),
    "a count of things": (ticks, "it changes items of global `ticked`"),
    "a queue": (lambda x: x * waiting.get_nowait(), "it changes items of global `waiting`"),
    "a file": (lambda x: x * float(open_file.readline()), "it reads on in a file (at test_jit_baked.py:"),
    "a host array": (a_host_array, "it changes elements of global `host`"),
    "bytes": (bytes_that_count, "it changes items of global `small`"),
    "an array of Python's": (numbers_that_count, "it changes items of global `typed`"),
    "the environment": (the_environment, "it changes environment variable `NNC_BAKED`"),
    "a computed name in it": (a_name_that_is_computed, "`getenv` finds variables by names that are computed"),
    "a new generator": (lambda x: x * random.Random().random(), "Python draws random numbers"),
    "NumPy's new generator": (lambda x: x * np.random.default_rng().random(), "Python draws random numbers"),
    "the system's numbers": (lambda x: x * system.random(), "Python draws random numbers"),
    "the system's bytes": (lambda x: x * os.urandom(1)[0], "Python draws random numbers (at test_jit_baked.py:"),
    "a name that nobody has": (lambda x: x * (uuid.uuid4().int % 7), "Python draws random numbers"),
    "eval": (lambda x: x * eval("2.0"), "`eval` finds variables by names that are computed"),
}
FINE: dict[str, Callable[..., Any]] = {
    "a global that is only counted": a_global_that_is_only_counted, "a log": a_list_that_is_only_written,
    "a count in a dict": an_item_that_is_only_written, "an attribute that is only counted": Counting().noted,
    "a table that is filled": a_table_that_is_filled, "what is found once": Counting().found_once,
    "a generator that is not drawn from": lambda x: x * (2 if rng else 3),
    "a table that grows": a_table_that_grows, "a file that is written": a_file_that_is_written,
    "a generator with a seed": lambda x: x * np.random.default_rng(3).random() * random.Random(3).random(),
    "its own iterator of one's own": lambda x: x * next(Chain(2.0)),
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
