"""Dropout: how often, how much, and when not."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.8])
def test_the_promised_share_is_dropped_and_the_rest_scaled(rate: float) -> None:
    x = nnc.ones((100, 100))
    y = nn.Dropout(rate, nnc.Generator(0))(x).numpy()
    kept = y != 0
    np.testing.assert_allclose(y[kept], 1 / (1 - rate), rtol=1e-6)
    assert abs(kept.mean() - (1 - rate)) < 4 * sqrt(rate * (1 - rate) / y.size)
    assert abs(kept.mean(0) - (1 - rate)).max() < 5 * sqrt(rate * (1 - rate) / 100)


def test_evaluation_and_rate_zero_are_the_identity() -> None:
    x = nnc.asarray(np.arange(12.0, dtype=np.float32))
    layer = nn.Dropout(0.9)
    key = layer.state_dict()["generator"]
    np.testing.assert_array_equal(layer.eval()(x).numpy(), x.numpy())
    np.testing.assert_array_equal(layer.state_dict()["generator"], key)
    np.testing.assert_array_equal(nn.Dropout(0.0)(x).numpy(), x.numpy())


def test_each_call_draws_anew_in_every_mode_and_all_modes_draw_the_same() -> None:
    x = nnc.ones((8, 8))

    def masks(compiled: bool) -> list[bytes]:
        layer = nn.Dropout(0.5, nnc.Generator(2))
        run = nnc.jit(layer) if compiled else layer
        return [run(x).numpy().tobytes() for _ in range(3)]

    eager = masks(False)
    assert len(set(eager)) == 3
    assert masks(True) == eager
    with nnc.deferred():
        assert masks(False) == eager


def test_the_gradient_has_the_same_mask() -> None:
    layer = nn.Dropout(0.5, nnc.Generator(2))
    key = layer.state_dict()
    y = layer(nnc.ones(64)).numpy()
    layer.load_state_dict(key)
    np.testing.assert_array_equal(nnc.grad(lambda x: layer(x).sum())(nnc.ones(64)).numpy(), y)


def test_a_dropped_infinity_is_zero() -> None:
    y = nn.Dropout(0.5, nnc.Generator(2))(nnc.full(64, float("inf"))).numpy()
    assert set(y) == {0.0, float("inf")}


def test_layers_without_a_generator_differ_and_follow_the_default_seed() -> None:
    def keys() -> list[bytes]:
        nnc.manual_seed(3)
        return [nn.Dropout(0.5).state_dict()["generator"].tobytes() for _ in range(2)]

    first = keys()
    assert first == keys()
    assert first[0] != first[1]
