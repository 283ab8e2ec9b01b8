"""copy, deepcopy and pickle of tensors and cells: the elements, by way of the host, without the history."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import nnc_core as nnc
from tests.dynamic.faults import fails

WAYS: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy, "deepcopy": copy.deepcopy, "pickle": lambda t: pickle.loads(pickle.dumps(t)),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_, ml_dtypes.bfloat16])
def test_a_copy_is_equal_and_apart(device: str, way: str, dtype: Any) -> None:
    host = np.array([[1, 0, 2], [3, 4, 5]]).astype(dtype)
    x = nnc.asarray(host)
    y = WAYS[way](x)
    assert y.device is x.device and y.spec == x.spec and y.numpy().tobytes() == host.tobytes()
    assert (y == x).numpy().all(), "it is on the same device"
    y[0] = 0
    assert x.numpy().tobytes() == host.tobytes()


@pytest.mark.parametrize("way", ["deepcopy", "pickle"])
def test_variables_stay_variables_and_results_leave_their_history(device: str, way: str) -> None:
    v = nnc.variable([2.0])
    w, y = WAYS[way](v), WAYS[way](v * v)
    (w * w).sum().backward()
    assert w.grad is not None and w.grad.tolist() == [4.0] and v.grad is None
    assert y.tolist() == [4.0] and not y.requires_grad


@pytest.mark.parametrize("way", WAYS)
def test_deferred_tensors_are_computed(x: nnc.Tensor, way: str) -> None:
    with nnc.deferred():
        y = x * 2
    assert WAYS[way](y).tolist() == [[0, 2, 4], [6, 8, 10]]


@pytest.mark.parametrize("way", ["deepcopy", "pickle"])
def test_cells_and_what_holds_them(device: str, way: str) -> None:
    state = {"w": nnc.Cell(nnc.ones(2), "w"), "generator": nnc.Generator(3)}
    other = WAYS[way](state)
    other["w"].write(nnc.zeros(2))
    assert state["w"].read().tolist() == [1, 1] and other["w"].name == "w"
    assert state["generator"].uniform((2,)).tolist() == other["generator"].uniform((2,)).tolist()


def test_a_symbol_cannot_be_copied(device: str) -> None:
    s = nnc.var_arr("s", (2,))
    for way in ("deepcopy", "pickle"):
        with fails(TypeError, "symbol float32[2]", line=False):
            WAYS[way](s)
