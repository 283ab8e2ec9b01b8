"""Items written by arrays of indices, lists and masks: the device's own kernel gives what the operators give, and the
errors that they give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.fast_path import closed
from nnc_core.indexing import items

BASE = np.linspace(-1, 1, 36, dtype=np.float32).reshape(3, 4, 3)
FULL, ALL = slice(None), Ellipsis
KEYS: dict[str, tuple[Any, ...]] = {
    "indices": (np.array([0, 2, 2, -1]),), "list": ([1, 0],), "matrix": (np.array([[0, 1], [2, 2]]),),
    "columns": (FULL, np.array([1, 1, 0])), "pairs": (np.array([0, 1]), np.array([2, 0])),
    "around a slice": (np.array([0, 1]), slice(0, 2), np.array([1, 0])), "behind a number": (0, np.array([1, 2])),
    "out of range": (np.array([5]),), "broadcast": (np.array([[0], [1]]), np.array([0, 2])),
    "new axis": (None, np.array([1])), "dots": (ALL, np.array([0, 0])), "nothing": (np.array([], np.int64),),
    "mask": (np.array([True, False, True]),), "mask of two": (np.eye(3, 4).astype(bool),),
    "empty mask": (np.zeros((3, 4), bool),), "slice and lists": (slice(0, 2), [0, 1], [1, 1]),
    "unsigned": (np.array([2, 0], np.uint64),), "backwards": (slice(None, None, -1), np.array([0, 1])),
}  # fmt: skip
NEW: dict[str, Callable[[tuple[int, ...]], Any]] = {
    "float": lambda shape: 7.5, "integer": lambda shape: 3,
    "array": lambda shape: np.arange(np.prod(shape), dtype=np.float32).reshape(shape),
    "one more axis": lambda shape: np.ones((1, *shape), np.float32),
    "row": lambda shape: np.ones(shape[-1:], np.float32),
    "integers": lambda shape: np.ones(shape, np.int32), "another shape": lambda shape: np.ones((2, 9), np.float32),
}  # fmt: skip


def tensors(key: tuple[Any, ...]) -> Any:
    parts = tuple([nnc.asarray(k) if isinstance(k, np.ndarray) else k for k in key])
    return parts if len(parts) > 1 else parts[0]


def written(key: Any, new: Any, copied: bool) -> Any:
    """The elements, or what went wrong."""
    x = nnc.asarray(BASE)
    try:
        if copied:
            return x.at[key].set(new).numpy().tolist()
        x[key] = new
        return x.numpy().tolist()
    except nnc.errors.Error as error:
        return type(error), str(error).partition("\n")[0]


@pytest.mark.parametrize("new", NEW)
@pytest.mark.parametrize("key", KEYS)
def test_kernels_write_what_operators_write(key: str, new: str) -> None:
    try:
        shape = BASE[KEYS[key]].shape
    except IndexError:
        shape = (1,)
    value = NEW[new](shape)
    value = nnc.asarray(value) if isinstance(value, np.ndarray) else value
    for copied in (False, True):
        with closed():
            expected = written(tensors(KEYS[key]), value, copied)
        for _ in range(2):
            assert written(tensors(KEYS[key]), value, copied) == expected


@pytest.mark.parametrize("copied", [False, True])
def test_operators_are_not_asked(copied: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    key = nnc.asarray(np.array([2, 0]))
    written(0, 1.0, copied)
    expected = written(key, 2.0, copied)
    monkeypatch.setattr(items, "_scattered", lambda *_: pytest.fail("scattered"))
    assert written(key, 2.0, copied) == expected


def test_a_copy_leaves_the_array_alone() -> None:
    x, key = nnc.asarray(BASE), nnc.asarray(np.array([2, 0]))
    for _ in range(3):
        y = x.at[key].set(0.0)
        np.testing.assert_array_equal(x.numpy(), BASE)
        assert not y.numpy()[[2, 0]].any()


def test_an_array_that_is_its_own_key() -> None:
    for _ in range(3):
        x = nnc.asarray(np.array([2, 0, 1]))
        x[x] = nnc.asarray(np.array([7, 8, 9]))
        assert x.tolist() == [8, 9, 7]


def test_gradients_go_through_copies() -> None:
    key = nnc.asarray(np.array([1, 1]))
    x = nnc.asarray(np.array([1.0, 2.0, 3.0], np.float32))
    x.at[key].set(0.0)
    assert nnc.grad(lambda x: nnc.sum(x.at[key].set(0.0) ** 2))(x).tolist() == [2, 0, 6]
