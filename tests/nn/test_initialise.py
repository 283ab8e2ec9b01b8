"""First weights: reproducible, and of the promised spread."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import pytest
from scipy.stats import truncnorm

import nnc_core as nnc
from nnc_core import nn
from nnc_core.base.errors import AttributeValueError, ShapeError
from nnc_core.nn import initialise


@pytest.mark.parametrize("init, bound", [
    (initialise.standard, sqrt(1 / 40)),
    (initialise.glorot_uniform, sqrt(6 / 100)),
    (initialise.he_uniform, sqrt(6 / 40)),
    (initialise.lecun_uniform, sqrt(3 / 40)),
    (initialise.tanh, sqrt(6 / 100)),
    (initialise.Uniform(-0.3, 0.3), 0.3),
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
    (initialise.lecun_normal, sqrt(1 / 40)),
    (initialise.Gaussian(0.0, 0.7), 0.7),
    (initialise.standard_normal, 1.0),
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


# ---- with settings
def weights(init: Any, *shape: int, seed: int = 3, dtype: Any = None) -> Any:
    return init(nnc.Generator(seed), shape, shape[0], shape[-1], dtype).numpy()


def test_owls_nine() -> None:
    """By Owl's names, each by the promise of its mean, spread and bounds."""
    owl: dict[str, tuple[Any, float, float, float]] = {
        "Uniform(0, 0.5)": (initialise.Uniform(0.0, 0.5), 0.25, 0.5 / sqrt(12), 0.25),
        "Gaussian(1, 0.2)": (initialise.Gaussian(1.0, 0.2), 1.0, 0.2, np.inf),
        "Standard": (initialise.standard, 0, sqrt(1 / 40 / 3), sqrt(1 / 40)),
        "Tanh": (initialise.tanh, 0, sqrt(6 / 100 / 3), sqrt(6 / 100)),
        "GlorotNormal": (initialise.glorot_normal, 0, sqrt(2 / 100), np.inf),
        "GlorotUniform": (initialise.glorot_uniform, 0, sqrt(6 / 100 / 3), sqrt(6 / 100)),
        "LecunNormal": (initialise.lecun_normal, 0, sqrt(1 / 40), np.inf),
        "HeNormal": (initialise.he_normal, 0, sqrt(2 / 40), np.inf),
        "Custom": (initialise.Custom(lambda shape: np.full(shape, 0.5)), 0.5, 0, 0),
    }
    assert len(owl) == 9
    for name, (init, mean, deviation, reach) in owl.items():
        w = weights(init, 40, 60).astype(np.float64)
        assert w.shape == (40, 60), name
        assert abs(w.mean() - mean) <= 4 * deviation / sqrt(w.size), name
        assert abs(w.std() - deviation) <= 4 * deviation / sqrt(2 * w.size), name
        assert abs(w - mean).max() <= reach * (1 + 1e-6), name


def test_a_truncated_normal_has_its_tails_cut_off() -> None:
    w = weights(initialise.TruncatedNormal(0.5, 1.0), 200, 300)
    assert 0 <= w.min() < 0.01 and 1.99 < w.max() <= 2
    z = np.sort((w.ravel() - 1) / 0.5)
    expected = truncnorm(-2, 2)
    assert abs(expected.cdf(z) - np.arange(z.size) / z.size).max() < 1.95 / sqrt(z.size), "Kolmogorov's test at 0.1 %"
    one_sided = weights(initialise.TruncatedNormal(low=0.0, high=5.0), 50, 50)
    assert one_sided.min() >= 0


@pytest.mark.parametrize("shape", [(4, 7), (7, 4), (5, 5)])
def test_orthogonal_rows_or_columns(shape: tuple[int, int]) -> None:
    w = weights(initialise.Orthogonal(2.0), *shape).astype(np.float64)
    product = w @ w.T if shape[0] <= shape[1] else w.T @ w
    np.testing.assert_allclose(product, 4 * np.eye(min(shape)), atol=1e-5)
    assert not np.array_equal(w, weights(initialise.Orthogonal(2.0), *shape, seed=4))


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_orthogonal_kernels_by_output_channel(layout: str) -> None:
    kernel = nn.Conv2d(3, 4, 3, init=initialise.Orthogonal(), layout=layout,
                       generator=nnc.Generator(1)).state_dict()["kernel"]
    rows = kernel.reshape(-1, 4).T if layout == "NHWC" else kernel.reshape(4, -1)
    np.testing.assert_allclose(rows @ rows.T, np.eye(4), atol=1e-5)


def test_constants() -> None:
    generator = nnc.Generator(1)
    state = generator.state
    for init, value in ((initialise.zeros, 0), (initialise.ones, 1), (initialise.Constant(2), 2)):
        w = nn.Linear(2, 3, init=init, generator=generator, dtype="float64").weight.read()
        assert w.dtype == nnc.float64 and w.tolist() == [[value] * 3] * 2
    assert generator.state == state


@pytest.mark.filterwarnings("ignore:qr has no kernel on strict")
@pytest.mark.parametrize("init", [
    initialise.Uniform(0.0, 0.5), initialise.Gaussian(1.0, 0.2), initialise.TruncatedNormal(), initialise.Orthogonal(),
    initialise.lecun_normal, initialise.Custom(lambda shape: np.ones(shape)),
], ids=["uniform", "gaussian", "truncated", "orthogonal", "lecun", "custom"])
def test_dtypes_and_places(init: Any, device: str) -> None:
    for dtype in ("float16", "float32", "float64"):
        assert weights(init, 4, 5, dtype=dtype).dtype == dtype
    with nnc.deferred():
        deferred = init(nnc.Generator(3), (4, 5), 4, 5, None)
    np.testing.assert_array_equal(deferred.numpy(), weights(init, 4, 5))
    with nnc.use_device("strict-nofloat64:0"):
        there = init(nnc.Generator(3), (4, 5), 4, 5, None)
    assert there.device.id == "strict-nofloat64:0"
    np.testing.assert_allclose(there.numpy(), weights(init, 4, 5), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("make, error, words", [
    (lambda: initialise.Uniform(1, 0), AttributeValueError, "Uniform: from 1 to 0"),
    (lambda: initialise.Gaussian(0, -1), AttributeValueError, "Gaussian: deviation is -1"),
    (lambda: initialise.TruncatedNormal(low=1, high=1), AttributeValueError, "TruncatedNormal: from 1 to 1"),
    (lambda: weights(initialise.Orthogonal(), 4), ShapeError, r"Orthogonal: weights of shape \(4,\) are no matrix"),
    (lambda: weights(initialise.Custom(lambda shape: [1.0]), 2, 3), ShapeError, r"Custom: .* of shape \(2, 3\)"),
])
def test_settings_that_mean_nothing(make: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        make()
