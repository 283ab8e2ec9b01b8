"""Layers that are active in training only: their moments, their masks, and silence in evaluation."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from math import sqrt
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn
from nnc_core.base.errors import AttributeValueError
from tests.devices import device, parametrise

__all__ = ["device"]
pytest_generate_tests = parametrise
NOISY: dict[str, Callable[[], nn.Module]] = {
    "Dropout": lambda: nn.Dropout(0.4, nnc.Generator(2)),
    "SpatialDropout": lambda: nn.SpatialDropout(0.4, generator=nnc.Generator(2)),
    "AlphaDropout": lambda: nn.AlphaDropout(0.4, nnc.Generator(2)),
    "GaussianDropout": lambda: nn.GaussianDropout(0.4, nnc.Generator(2)),
    "GaussianNoise": lambda: nn.GaussianNoise(0.4, nnc.Generator(2)),
    "RReLU": lambda: nn.RReLU(generator=nnc.Generator(2)),
}


def normal(*shape: int) -> nnc.Tensor:
    return nnc.asarray(np.random.default_rng(0).normal(size=shape).astype(np.float32))


@pytest.mark.parametrize("kind", NOISY)
def test_each_call_draws_anew_and_all_ways_draw_the_same(kind: str) -> None:
    x = normal(6, 5, 4)

    def drawn(way: str) -> list[bytes]:
        layer = NOISY[kind]()
        run = nnc.jit(layer) if way == "jit" else layer.hybridize() if way == "hybridize" else layer
        with nnc.deferred() if way == "deferred" else nullcontext():
            return [run(x).numpy().tobytes() for _ in range(3)]

    eager = drawn("eager")
    assert len(set(eager)) == 3
    assert drawn("deferred") == drawn("jit") == drawn("hybridize") == eager


@pytest.mark.parametrize("kind", NOISY)
def test_evaluation_draws_nothing(kind: str) -> None:
    layer, x = NOISY[kind]().eval(), normal(6, 5, 4)
    key = layer.state_dict()["generator"]
    expected = np.where(x.numpy() > 0, x.numpy(), x.numpy() * (1 / 8 + 1 / 3) / 2) if kind == "RReLU" else x.numpy()
    for run in (layer, nnc.jit(layer)):
        np.testing.assert_allclose(run(x).numpy(), expected, rtol=1e-6)
    with nnc.evaluating():
        np.testing.assert_allclose(layer.train()(x).numpy(), expected, rtol=1e-6)
    np.testing.assert_array_equal(layer.state_dict()["generator"], key)


def test_channels_go_together() -> None:
    y = nn.SpatialDropout(0.5, generator=nnc.Generator(0))(nnc.ones((8, 3, 4, 16))).numpy()
    assert set(np.unique(y)) == {0, 2}
    assert (y == y[:, :1, :1]).all()
    assert 0.3 < (y[:, 0, 0] == 0).mean() < 0.7
    first = nn.SpatialDropout(0.5, 1, nnc.Generator(0))(nnc.ones((8, 16, 3, 4))).numpy()
    assert (first == first[:, :, :1, :1]).all()


def test_moments_stay() -> None:
    """Mean 0 and variance 1, within five deviations of their estimates."""
    x, n = normal(200, 500), 100_000
    y = nn.AlphaDropout(0.3, nnc.Generator(1))(x).numpy().astype(np.float64)
    assert abs(y.mean()) < 5 / sqrt(n)
    assert abs(y.var() - 1) < 5 * sqrt((np.mean(y**4) - 1) / n)
    factor = nn.GaussianDropout(0.2, nnc.Generator(1))(nnc.ones((200, 500))).numpy()
    assert abs(factor.mean() - 1) < 5 * 0.5 / sqrt(n) and abs(factor.std() - 0.5) < 5 * 0.5 / sqrt(2 * n)
    added = nn.GaussianNoise(0.2, nnc.Generator(1))(x).numpy() - x.numpy()
    assert abs(added.mean()) < 5 * 0.2 / sqrt(n) and abs(added.std() - 0.2) < 5 * 0.2 / sqrt(2 * n)


@pytest.mark.parametrize("kind", ["Dropout", "SpatialDropout", "AlphaDropout", "GaussianDropout"])
@pytest.mark.parametrize("rate", [1.0, -0.1, True])
def test_rates(kind: str, rate: Any) -> None:
    with pytest.raises(AttributeValueError, match=f"{kind}: rate is {rate}, expected 0 <= rate < 1"):
        getattr(nn, kind)(rate)
    assert getattr(nn, kind)(0.0)(nnc.ones(3).reshape(1, 3)).tolist() == [[1, 1, 1]]


def test_the_gradient_has_the_same_noise() -> None:
    """All of these are affine: what they make of x is what they make of 0, plus x times the gradient."""
    x = normal(4, 3, 5)
    for kind in ("SpatialDropout", "GaussianDropout", "AlphaDropout", "GaussianNoise"):
        layers = [NOISY[kind]() for _ in range(3)]
        by_x = nnc.grad(lambda x, f=layers[0]: f(x).sum())(x)
        offset = layers[1](nnc.zeros_like(x))
        np.testing.assert_allclose(layers[2](x).numpy(), (x * by_x + offset).numpy(), rtol=1e-5, atol=1e-6)
