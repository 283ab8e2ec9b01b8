"""Dropout and its relatives: rates, moments, masks that are shared, gradients, modes, what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import AttributeValueError

NOISES: dict[str, Callable[..., nnc.Tensor]] = {
    "dropout": nnc.dropout, "spatial_dropout": nnc.spatial_dropout, "alpha_dropout": nnc.alpha_dropout,
    "gaussian_dropout": nnc.gaussian_dropout, "gaussian_noise": nnc.gaussian_noise,
}  # fmt: skip
each_noise = pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
EXACT = ("dropout", "spatial_dropout")


def ones(*shape: int, dtype: Any = np.float32) -> nnc.Tensor:
    return nnc.asarray(np.ones(shape, dtype))


@each_noise
def test_without_training_nothing_is_drawn(noise: Any, device: str) -> None:
    g = nnc.Generator(1)
    x = ones(3, 4)
    assert (noise(x, 0.4, training=False, generator=g).numpy() == 1).all()
    assert (noise(x, 0.0, generator=g).numpy() == 1).all()
    assert g.state == (1, 0)


@pytest.mark.parametrize("name", NOISES)
def test_the_same_in_every_mode_and_anew_at_each_call(name: str, device: str) -> None:
    g, x = nnc.Generator(5), ones(6, 5)
    wanted = [NOISES[name](x, 0.4, generator=g).numpy() for _ in range(3)]
    assert (wanted[0] != wanted[1]).any()
    g.seed(5)
    compiled = nnc.jit(lambda v: NOISES[name](v, 0.4, generator=g))
    with nnc.deferred():
        first = NOISES[name](x, 0.4, generator=g)
    found = [first.numpy(), compiled(x).numpy(), compiled(x).numpy()]
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)
    with nnc.use_device("strict:0"):
        g = nnc.Generator(5)
        there = NOISES[name](ones(6, 5), 0.4, generator=g).numpy()
    np.testing.assert_allclose(there, wanted[0], rtol=1e-6, atol=0 if name in EXACT else 1e-6)


def test_rates_and_moments(device: str) -> None:
    x, rate = ones(100, 100), 0.3
    y = nnc.dropout(x, rate, generator=nnc.Generator(2)).numpy()
    assert set(np.unique(y)) == {0, np.float32(1 / 0.7)}
    assert abs((y == 0).mean() - rate) < 0.02
    z = nnc.asarray(np.random.default_rng(3).normal(size=(100, 100)).astype(np.float32))
    for noise in (nnc.alpha_dropout,):
        found = noise(z, rate, generator=nnc.Generator(2)).numpy()
        assert abs(found.mean()) < 0.05 and abs(found.std() - 1) < 0.05
    times = nnc.gaussian_dropout(x, rate, generator=nnc.Generator(2)).numpy()
    assert abs(times.mean() - 1) < 0.03 and abs(times.var() - 0.3 / 0.7) < 0.03
    plus = nnc.gaussian_noise(x, 0.5, generator=nnc.Generator(2)).numpy()
    assert abs(plus.mean() - 1) < 0.03 and abs(plus.std() - 0.5) < 0.02


def test_everything_may_be_left_out(device: str) -> None:
    for noise in (nnc.dropout, nnc.spatial_dropout, nnc.alpha_dropout):
        assert (noise(ones(3, 4), 1.0).numpy() == 0).all()


def test_masks_that_are_shared(device: str) -> None:
    y = nnc.dropout(ones(40, 30), 0.5, shared=1, generator=nnc.Generator(4)).numpy()
    assert (y == y[:, :1]).all() and 5 < (y[:, 0] == 0).sum() < 35
    z = nnc.spatial_dropout(ones(4, 5, 6, 20), 0.5, generator=nnc.Generator(4)).numpy()
    assert (z == z[:, :1, :1]).all() and (z[0, 0, 0] != z[1, 0, 0]).any()
    first = nnc.spatial_dropout(ones(4, 20, 5, 6), 0.5, axis=1, generator=nnc.Generator(4)).numpy()
    np.testing.assert_array_equal(first[:, :, 0, 0], z[:, 0, 0])


@each_noise
def test_gradients_have_the_mask(noise: Any, device: str) -> None:
    x = nnc.asarray(np.linspace(-1, 1, 12, dtype=np.float32))

    def f(v: nnc.Tensor) -> nnc.Tensor:
        return noise(v.reshape(3, 4), 0.5, generator=nnc.Generator(8))

    g = nnc.grad(lambda v: nnc.sum(f(v)))(x).numpy()
    h = (f(x + 1e-2).numpy() - f(x - 1e-2).numpy()).reshape(-1) / 2e-2
    np.testing.assert_allclose(g, h, rtol=1e-2, atol=1e-3)


def test_halves(device: str) -> None:
    for noise in NOISES.values():
        assert noise(ones(3, 4, dtype=np.float16), 0.5, generator=nnc.Generator(1)).dtype == "float16"


def test_the_default_generator_comes_to_the_array(device: str) -> None:
    nnc.manual_seed(3)
    with nnc.use_device("strict:0"):
        there = ones(50)
    found = [nnc.dropout(x, 0.5).device.id for x in (ones(50), there, ones(50))]
    assert found == [device, "strict:0", device]


@pytest.mark.parametrize(("call", "said"), [
    (lambda x: nnc.dropout(x, 1.5), "(?s)dropout: rate is 1.5, expected 0 <= rate <= 1.*test_dropouts.py"),
    (lambda x: nnc.alpha_dropout(x, -0.1), "alpha_dropout: rate is -0.1"),
    (lambda x: nnc.gaussian_dropout(x, 1.0), "the variance would be infinite"),
    (lambda x: nnc.gaussian_noise(x, -1.0), "deviation is -1.0"),
])
def test_what_is_refused(call: Callable[[nnc.Tensor], Any], said: str) -> None:
    with pytest.raises(AttributeValueError, match=said):
        call(ones(3))
