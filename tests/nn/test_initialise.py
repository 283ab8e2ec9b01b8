"""First weights: reproducible, and of the promised spread."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn
from nnc_core.nn import initialise


@pytest.mark.parametrize("init, bound", [
    (initialise.standard, sqrt(1 / 40)),
    (initialise.glorot_uniform, sqrt(6 / 100)),
    (initialise.he_uniform, sqrt(6 / 40)),
])
def test_uniform_weights(init: Any, bound: float) -> None:
    w = nn.Linear(40, 60, init=init, generator=nnc.Generator(3)).state_dict()["weight"]
    assert w.min() >= -bound
    assert w.max() < bound
    assert w.max() - w.min() > 1.99 * bound
    assert abs(w.mean()) < 4 * bound / sqrt(3 * w.size)


@pytest.mark.parametrize("init, deviation", [
    (initialise.glorot_normal, sqrt(2 / 100)),
    (initialise.he_normal, sqrt(2 / 40)),
])
def test_normal_weights(init: Any, deviation: float) -> None:
    w = nn.Linear(40, 60, init=init, generator=nnc.Generator(3)).state_dict()["weight"]
    assert abs(w.std() / deviation - 1) < 4 / sqrt(2 * w.size)
    assert abs(w.mean()) < 4 * deviation / sqrt(w.size)


def test_a_convolution_counts_its_window() -> None:
    """Glorot's bound with fan 3*3*2 in and 3*3*4 out."""
    kernel = nn.Conv2d(2, 4, 3, generator=nnc.Generator(1)).state_dict()["kernel"]
    bound = sqrt(6 / (18 + 36))
    assert 0.9 * bound < abs(kernel).max() <= bound


def test_same_seed_same_weights_in_every_mode_and_on_every_device(device: str) -> None:
    def weights() -> Any:
        return nn.Linear(3, 4, generator=nnc.Generator(7)).state_dict()["weight"]

    eager = weights()
    with nnc.deferred():
        np.testing.assert_array_equal(weights(), eager)
    with nnc.use_device("strict:0"):
        np.testing.assert_array_equal(weights(), eager)
    assert not np.array_equal(nn.Linear(3, 4, generator=nnc.Generator(8)).state_dict()["weight"], eager)


def test_without_a_generator_the_default_one_draws() -> None:
    nnc.manual_seed(5)
    first, second = nn.Linear(3, 4), nn.Linear(3, 4)
    nnc.manual_seed(5)
    again = nn.Linear(3, 4)
    np.testing.assert_array_equal(first.state_dict()["weight"], again.state_dict()["weight"])
    assert not np.array_equal(first.state_dict()["weight"], second.state_dict()["weight"])


def test_weights_are_made_where_new_tensors_are(device: str) -> None:
    nnc.manual_seed(0)
    with nnc.use_device("strict-nofloat64:0"):
        layer = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
    assert {cell.device.id for cell in layer.cells().values()} == {"strict-nofloat64:0"}


def test_dtype() -> None:
    layer = nn.Linear(2, 3, dtype=nnc.float64)
    assert {p.spec.dtype for p in layer.parameters()} == {np.dtype(np.float64)}
