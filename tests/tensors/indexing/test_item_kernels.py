"""Items that a device's own kernel reads are those that operators read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.fast_path import closed

X = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
T = nnc.asarray
KEYS: list[Any] = [
    0, -1, 3, (1, 2), (1, 2, 3), (1, 2, 3, 4), ..., (..., 1), None, (None, 1, ..., None), slice(None), slice(1, 9),
    slice(2, 0), slice(None, None, 2), slice(None, None, -1), (slice(None), slice(3, None, -2)), (), True, False, 1.5,
    np.int64(1), np.uint8(2), np.bool_(True), [0, 2], [0, -1, 0], [], [True, False, True], [[0, 1], [1, 2]], [3],
    ([0, 1], [1, 2]), ([0, 1], slice(None), [1, 2]), (slice(None), [3, 0]), (..., [3, 0]), ([0, 1], None, 2),
    (0, [1, 3]), ([1, 3], 0), np.array([2, 0]), np.array([[2, 0], [1, 1]]), np.array(1), np.array([1.0]),
    np.array([2, 0], np.uint64), X > 30, X[:, :, 0] > 30, X[:, 0, 0] > 10, X[0] > 10, np.zeros(3, bool),
    np.array(True), (X[:, 0, 0] > 10, 0), (slice(None), X[0, :, 0] > 4), T(np.array([2, 0])),
    T(np.array([2, 0], np.int8)),
    T(np.array(1)), T(np.array([-4])), T(X > 30), T(X[:, 0, 0] > 10), (T(np.array([0, 1])), T(np.array([1, 2]))),
    (slice(None), T(np.array([1, 2]))), (T(np.array([0, 1])), [1, 2]), T(np.array([0.5])), [T(np.array(1)), 0], "a",
]  # fmt: skip


def outcome(x: nnc.Tensor, key: Any) -> Any:
    try:
        y = x[key]
    except Exception as error:
        return type(error), str(error).split("\n")[0]
    return y.shape, y.dtype, y.numpy().tobytes()


@pytest.mark.parametrize("host", [X, X.transpose(2, 0, 1)[:3, :, :4], X[0, 0], X[:0], X[0, 0, 0]])
def test_items_are_those_of_operators(host: Any) -> None:
    x = nnc.asarray(host)
    for i, key in enumerate(KEYS):
        found = [outcome(x, key) for _ in range(2)]
        with closed():
            assert found == [outcome(x, key)] * 2, (i, key)


def test_items_by_arrays_are_in_memory_of_their_own() -> None:
    x = nnc.asarray(X)
    part = x[[0, 2]]
    x[...] = 0.0
    np.testing.assert_array_equal(part.numpy(), X[[0, 2]])


def test_gradients_go_through_items() -> None:
    v = nnc.variable(X)
    nnc.sum(v[[0, 0]] * 2.0).backward()
    assert v.grad is not None
    assert v.grad.numpy()[:, 0, 0].tolist() == [4, 0, 0]
