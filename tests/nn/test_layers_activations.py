"""Activations as layers and by name, against NumPy and SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.special import erf, expit, log_softmax, softmax

import nnc_core as nnc
from nnc_core import nn
from nnc_core.base.errors import AttributeValueError
from tests.devices import device, parametrise
from tests.support import near

__all__ = ["device"]
pytest_generate_tests = parametrise
Host = np.ndarray[Any, Any]
X = np.random.default_rng(0).normal(0, 2, (3, 8)).astype(np.float32)
X[0, :4] = [0, 7, -7, 0.5]
ALPHA, SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946

EXPECTED: list[tuple[Callable[[], nn.Module], Callable[[Host], Host]]] = [
    (nn.CELU, lambda x: np.where(x > 0, x, np.expm1(x))),
    (lambda: nn.CELU(0.5), lambda x: np.where(x > 0, x, 0.5 * np.expm1(x / 0.5))),
    (lambda: nn.ELU(0.5), lambda x: np.where(x > 0, x, 0.5 * np.expm1(x))),
    (nn.GELU, lambda x: x * (1 + erf(x / np.sqrt(2))) / 2),
    (lambda: nn.GELU("tanh"), lambda x: x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) / 2),
    (nn.GLU, lambda x: x[:, :4] * expit(x[:, 4:])),
    (lambda: nn.HardShrink(1.0), lambda x: np.where(abs(x) > 1, x, 0)),
    (nn.HardSigmoid, lambda x: np.clip(x / 6 + 0.5, 0, 1)),
    (lambda: nn.HardSigmoid(0.2), lambda x: np.clip(x * 0.2 + 0.5, 0, 1)),
    (nn.HardSwish, lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
    (lambda: nn.HardTanh(-0.5, 2), lambda x: np.clip(x, -0.5, 2)),
    (nn.LeakyReLU, lambda x: np.where(x > 0, x, 0.01 * x)),
    (lambda: nn.LeakyReLU(0.2), lambda x: np.where(x > 0, x, 0.2 * x)),
    (nn.LogSigmoid, lambda x: -np.logaddexp(0, -x)),
    (nn.LogSoftmax, lambda x: log_softmax(x, axis=-1)),
    (nn.Mish, lambda x: x * np.tanh(np.logaddexp(0, x))),
    (nn.PReLU, lambda x: np.where(x > 0, x, 0.25 * x)),
    (nn.ReLU, lambda x: np.maximum(x, 0)),
    (nn.ReLU6, lambda x: np.clip(x, 0, 6)),
    (lambda: nn.RReLU(0.1, 0.3).eval(), lambda x: np.where(x > 0, x, 0.2 * x)),
    (nn.SELU, lambda x: SCALE * np.where(x > 0, x, ALPHA * np.expm1(x))),
    (nn.SiLU, lambda x: x * expit(x)),
    (nn.Sigmoid, expit),
    (lambda: nn.SoftShrink(1.0), lambda x: np.sign(x) * np.maximum(abs(x) - 1, 0)),
    (lambda: nn.Softmax(0), lambda x: softmax(x, axis=0)),
    (nn.Softmin, lambda x: softmax(-x, axis=-1)),
    (lambda: nn.Softplus(2.0), lambda x: np.logaddexp(0, 2 * x) / 2),
    (nn.Softsign, lambda x: x / (1 + abs(x))),
    (nn.SwiGLU, lambda x: x[:, :4] * x[:, 4:] * expit(x[:, 4:])),
    (nn.Tanh, np.tanh),
    (nn.TanhShrink, lambda x: x - np.tanh(x)),
    (lambda: nn.Threshold(0.1, 20.0), lambda x: np.where(x > 0.1, x, 20)),
    (lambda: nn.ThresholdedReLU(0.5), lambda x: np.where(x > 0.5, x, 0)),
]

OWL: dict[str, tuple[nn.Activation, Callable[[Host], Host]]] = {
    "Elu": (nn.Activation("elu"), lambda x: np.where(x > 0, x, np.expm1(x))),
    "Relu": (nn.Activation("relu"), lambda x: np.maximum(x, 0)),
    "Sigmoid": (nn.Activation("sigmoid"), expit),
    "HardSigmoid": (nn.Activation("hardsigmoid", slope=0.2), lambda x: np.clip(0.2 * x + 0.5, 0, 1)),
    "Softmax": (nn.Activation("softmax", axis=1), lambda x: softmax(x, axis=1)),
    "Softplus": (nn.Activation("softplus"), lambda x: np.logaddexp(0, x)),
    "Softsign": (nn.Activation("softsign"), lambda x: x / (1 + abs(x))),
    "Tanh": (nn.Activation("tanh"), np.tanh),
    "Relu6": (nn.Activation("relu6"), lambda x: np.clip(x, 0, 6)),
    "LeakyRelu": (nn.Activation("leaky_relu", slope=0.2), lambda x: np.where(x > 0, x, 0.2 * x)),
    "TRelu": (nn.Activation("trelu", threshold=0.5), lambda x: np.where(x > 0.5, x, 0)),
    "Custom": (nn.Activation(lambda x: x * x), lambda x: x * x),
    "None": (nn.Activation(None), lambda x: x),
}


def test_every_activation() -> None:
    for make, expected in EXPECTED:
        near(make()(nnc.asarray(X)), expected(X.astype(np.float64)))


def test_owls_thirteen_by_name() -> None:
    assert len(OWL) == 13
    for layer, expected in OWL.values():
        near(layer(nnc.asarray(X)), expected(X.astype(np.float64)))


def test_every_name_is_that_of_a_layer_too() -> None:
    from nnc_core.nn.layers.activation import NAMED

    here = {"threshold": {"threshold": 0.1}, "trelu": {"threshold": 1.0}}
    layers = {name.lower(): getattr(nn, name) for name in nn.__all__}
    layers["trelu"] = nn.ThresholdedReLU
    x = nnc.asarray(X)
    for name in NAMED:
        options = here.get(name, {})
        same = layers[name.replace("_", "")](**options)(x).numpy()
        np.testing.assert_array_equal(nn.Activation(name, **options)(x).numpy(), same, err_msg=name)


def test_learned_slopes() -> None:
    layer = nn.PReLU(8)
    slopes = np.linspace(-1, 1, 8, dtype=np.float32)
    layer.slope.write(nnc.asarray(slopes))
    near(layer(nnc.asarray(X)), np.where(X > 0, X, X * slopes))
    _, gradients = nn.value_and_grad(layer, lambda: layer(nnc.asarray(X)).sum())()
    near(gradients["slope"], np.minimum(X, 0).sum(0))


def test_drawn_slopes() -> None:
    layer = nn.RReLU(0.1, 0.4, nnc.Generator(1))
    x = nnc.full((50, 50), -1.0)
    y = -layer(x).numpy()
    assert 0.1 <= y.min() < 0.11 and 0.39 < y.max() <= 0.4
    assert abs(y.mean() - 0.25) < 0.01
    assert not np.array_equal(layer(x).numpy(), -y), "drawn anew"
    near(layer.eval()(x), np.full((50, 50), -0.25))


@pytest.mark.parametrize("make, words", [
    (lambda: nn.Activation("rleu"), "no activation 'rleu'(.|\n)*leaky_relu"),
    (lambda: nn.Activation("elu", slope=1), "options of 'elu': got an unexpected keyword argument 'slope'"),
    (lambda: nn.Activation("threshold"), "missing a required argument: 'threshold'"),
    (lambda: nn.Activation(3), "3 with 0 options is no name and no function"),
    (lambda: nn.GELU("erf"), "approximate 'erf'"),
    (lambda: nn.Softplus(0), "beta is 0"),
    (lambda: nn.CELU(0), "alpha is 0"),
    (lambda: nn.SoftShrink(-1), "bound is -1"),
    (lambda: nn.RReLU(0.5, 0.1), "expected low <= high"),
])
def test_settings_that_mean_nothing(make: Any, words: str) -> None:
    with pytest.raises(AttributeValueError, match=words):
        make()
