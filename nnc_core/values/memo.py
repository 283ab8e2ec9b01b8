"""Memoisation, for those who ask for it: the same operator on the same arrays gives the array that is there already.

A step's key is its operator, the identities of its input arrays, its attributes and its device.  Only arrays are
shared: the value and its step are new, since gradients depend on which step a value came from.  The table keeps no
array alive.  While any context memoises, the fast path of `dispatch` is closed, as it is for NaN mode.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np

from nnc_core.base.cache import LRU
from nnc_core.base.config import config
from nnc_core.base.fast_path import closed
from nnc_core.stacks import Stack
from nnc_core.type import Attributes, Op
from nnc_core.values.value import Value

MOST = 4096
"""Results that the table knows at a time."""

_memoises: ContextVar[bool] = ContextVar("nnc_memoises", default=False)
Key = tuple[Op, Stack, Attributes, bool, str, tuple[int, ...]]


class MemoInfo(NamedTuple):
    """Memoisation so far: steps that took an array that was there, steps that did not, results known now."""

    hits: int
    misses: int
    size: int


class _Entry(NamedTuple):
    inputs: tuple[weakref.ref[Any], ...]
    result: weakref.ref[Any]

    def recalled(self, arrays: Sequence[Any]) -> Any:
        """The result, if it is alive and the inputs are still these arrays: an id may belong to another one by now."""
        return self.result() if all(r() is a for r, a in zip(self.inputs, arrays, strict=True)) else None


class Memo:
    """The table of this process."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # an array may die, and be forgotten, while the lock is held
        self._entries: LRU[Key, _Entry] = LRU(MOST)
        self.hits = self.misses = 0

    def find(self, key: Key, arrays: Sequence[Any]) -> Any:
        with self._lock:
            entry = self._entries.get(key)
            result = None if entry is None else entry.recalled(arrays)
            if result is None:
                self.misses += 1
            else:
                self.hits += 1
            return result

    def keep(self, key: Key, arrays: Sequence[Any], result: Any) -> None:
        try:
            entry = _Entry(tuple([weakref.ref(a) for a in arrays]), weakref.ref(result, lambda _: self._forget(key)))
        except TypeError:
            return  # something that cannot be watched, such as a scalar of the host
        self._entries.put(key, entry)

    def _forget(self, key: Key) -> None:
        """A result has died; its place may already be another's."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None and entry.result() is None:
                self._entries.pop(key)

    def info(self) -> MemoInfo:
        with self._lock:
            return MemoInfo(self.hits, self.misses, len(self._entries))


MEMO = Memo()


@contextmanager
def memoise() -> Iterator[None]:
    """Share the arrays of equal steps that run in this block.

    Steps are equal that have the same operator, attributes and device and the very same input arrays.  Random and host
    operators always run, and so does what reads memory shared with others (`asarray(..., copy=False)`).
    """
    token = _memoises.set(True)
    try:
        with closed():
            yield
    finally:
        _memoises.reset(token)


@contextmanager
def paused() -> Iterator[None]:
    """Compute everything that runs in this block."""
    token = _memoises.set(False)
    try:
        yield
    finally:
        _memoises.reset(token)


def memo_info() -> MemoInfo:
    """Hits and misses of `memoise` so far, and how many results are known now."""
    return MEMO.info()


def recalled(op: Op, values: Sequence[Value], attributes: Attributes, stack: Stack,
             compute: Callable[[], Any]) -> Any:
    """The array of a step: one that is there already, if this context memoises, or else a new one."""
    if not _memoises.get() or op.random or op.host or not values or any(v.borrowed for v in values):
        return compute()
    arrays = [v.array for v in values]
    key = (op, stack, attributes, config.deterministic, config.matmul_precision, tuple([id(a) for a in arrays]))
    result = MEMO.find(key, arrays)
    if result is None:
        result = compute()
        if isinstance(result, np.generic):
            result = np.asarray(result)  # which can be referred to weakly
        MEMO.keep(key, arrays, result)
    return result
