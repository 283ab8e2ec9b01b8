"""The bounded cache: what stays, what goes, and threads that ask for the same value."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnc_core.base.cache import LRU

calls = st.lists(st.tuples(st.sampled_from(("get", "put", "pop", "find")), st.integers(0, 6)), max_size=60)


@given(st.integers(1, 5), calls)
def test_it_keeps_what_was_used_last(limit: int, calls: list[tuple[str, int]]) -> None:
    """Against a list of keys, the newest last."""
    cache: LRU[int, str] = LRU(limit)
    keys: list[int] = []
    for method, key in calls:
        there = key in keys
        if method == "get":
            assert cache.get(key) == (str(key) if there else None)
        elif method == "pop":
            assert cache.pop(key, "none") == (str(key) if there else "none")
        elif method == "put":
            cache.put(key, str(key))
        else:
            assert cache.find(key, lambda key=key: str(key)) == str(key)
        if there:
            keys.remove(key)
        if method in ("put", "find") or (method == "get" and there):
            keys = [*keys, key][-limit:]
        assert cache.values() == [str(k) for k in keys] and len(cache) == len(keys)
        assert all((k in cache) == (k in keys) for k in range(7))


def test_none_is_a_value() -> None:
    cache: LRU[str, None] = LRU(2)
    made: list[str] = []
    for _ in range(2):
        assert cache.find("a", lambda: made.append("a")) is None
    assert made == ["a"] and "a" in cache


def test_clear_forgets_everything() -> None:
    cache: LRU[int, int] = LRU(2)
    cache.put(1, 1)
    cache.clear()
    assert len(cache) == 0 and cache.get(1) is None


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        LRU(0)


def test_a_value_is_made_once_for_all_threads_that_ask() -> None:
    cache: LRU[str, object] = LRU(2)
    started, wait, made = threading.Event(), threading.Event(), []

    def make() -> object:
        started.set()
        assert wait.wait(60)
        made.append(object())
        return made[-1]

    with ThreadPoolExecutor(4) as pool:
        found = [pool.submit(cache.find, "key", make) for _ in range(4)]
        assert started.wait(60)
        cache.put("other", 1)  # others are not kept waiting
        assert cache.find("third", lambda: 3) == 3
        wait.set()
        assert {id(f.result(60)) for f in found} == {id(made[0])} and len(made) == 1


def test_a_value_that_cannot_be_made_may_be_asked_for_again() -> None:
    cache: LRU[str, int] = LRU(2)
    with pytest.raises(ZeroDivisionError):
        cache.find("a", lambda: 1 // 0)
    assert "a" not in cache and cache.find("a", lambda: 1) == 1


def test_making_a_value_may_ask_for_others_of_the_same_cache() -> None:
    cache: LRU[int, int] = LRU(8)

    def factorial(n: int) -> int:
        return cache.find(n, lambda: n * factorial(n - 1) if n else 1)

    assert factorial(5) == 120 and len(cache) == 6
