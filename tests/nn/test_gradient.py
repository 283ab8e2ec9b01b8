"""Gradients by parameters: right, in every mode, and nothing left behind."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn
from nnc_core.base.errors import GradientError
from tests.nn.network import MODES, digits, small_lenet


def in_mode(mode: str, f: Any) -> Any:
    if mode == "compiled":
        return nnc.jit(f)

    def run(*args: Any) -> Any:
        with nnc.deferred() if mode == "deferred" else nullcontext():
            return f(*args)

    return run


class Everything(nn.Module):
    """One of each layer with weights, in float64, smooth."""

    def __init__(self) -> None:
        g, f64 = nnc.Generator(1), nnc.float64
        self.embedding = nn.Embedding(5, 16, generator=g, dtype=f64)
        self.conv = nn.Conv2d(1, 2, 3, padding="SAME", generator=g, dtype=f64)
        self.pool = nn.AvgPool2d(2)
        self.flatten = nn.Flatten()
        self.lstm = nn.LSTMCell(8, 2, generator=g, dtype=f64)
        self.out = nn.Linear(2, 3, generator=g, dtype=f64)

    def forward(self, indices: nnc.Tensor) -> nnc.Tensor:
        image = nnc.tanh(self.embedding(indices)).reshape(-1, 4, 4, 1)
        x = self.flatten(self.pool(self.conv(image)))
        state = self.lstm(x, self.lstm.initial_state(2))
        return self.out(self.lstm(x, state)[0])


@pytest.mark.filterwarnings("ignore:scatter has no kernel on strict")
@pytest.mark.parametrize("mode", MODES)
def test_gradients_against_finite_differences(mode: str, rng: np.random.Generator) -> None:
    model, indices, labels = Everything(), nnc.asarray([1, 3]), nnc.asarray([2, 0])

    def loss_fn(indices: nnc.Tensor) -> nnc.Tensor:
        return nnc.cross_entropy(model(indices), labels)

    _, grads = in_mode(mode, nn.value_and_grad(model, loss_fn))(indices)
    assert set(grads) == set(model.named_parameters())
    for name, p in model.named_parameters().items():
        first = p.read()
        direction = rng.normal(size=first.shape)
        step, losses = 1e-5, []
        for sign in (1, -1):
            p.write(first + nnc.asarray(direction * step * sign))
            losses.append(loss_fn(indices).item())
        p.write(first)
        expected = (losses[0] - losses[1]) / (2 * step)
        along = (grads[name].numpy() * direction).sum()
        np.testing.assert_allclose(along, expected, rtol=1e-6, atol=1e-9, err_msg=name)


def test_all_modes_give_the_same_bits() -> None:
    x, y = digits()
    found = []
    with nnc.config.using(deterministic=True):
        for mode in MODES:
            model = small_lenet()
            both = nn.value_and_grad(model, lambda x, y, m=model: nnc.cross_entropy(m(x), y))
            loss, grads = in_mode(mode, both)(x, y)
            found.append([loss.numpy().tobytes(), *[grads[name].numpy().tobytes() for name in sorted(grads)]])
    assert found[0] == found[1] == found[2]


def test_parameters_are_restored_after_an_error() -> None:
    model = nn.Linear(2, 1)
    before = model.weight.read()

    def fails() -> nnc.Tensor:
        assert model.weight.read().requires_grad
        raise RuntimeError("in between")

    for f in (nn.value_and_grad(model, fails), nnc.jit(nn.value_and_grad(model, fails))):
        with pytest.raises(RuntimeError, match="in between"):
            f()
        assert model.weight.read()._value is before._value
    assert not model(nnc.ones((1, 2))).requires_grad


def test_results_keep_no_history() -> None:
    model = nn.Linear(2, 1)
    loss, grads = nn.value_and_grad(model, lambda: model(nnc.ones((1, 2))).sum())()
    assert not loss.requires_grad
    assert not any(g.requires_grad for g in grads.values())


def test_aux_and_a_choice_of_parameters() -> None:
    model = nn.Linear(2, 1)

    def loss_fn(x: nnc.Tensor) -> Any:
        y = model(x)
        return y.sum(), {"prediction": y}

    chosen = {"b": model.bias}
    (loss, aux), grads = nn.value_and_grad(model, loss_fn, parameters=chosen, has_aux=True)(nnc.ones((3, 2)))
    np.testing.assert_allclose(aux["prediction"].numpy().sum(), loss.numpy(), rtol=1e-6)
    assert list(grads) == ["b"]
    np.testing.assert_array_equal(grads["b"].numpy(), [3.0])


def test_a_parameter_that_is_not_used_has_zeros() -> None:
    model = nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1))
    _, grads = nn.value_and_grad(model, lambda: model[0](nnc.ones((1, 1))).sum())()
    np.testing.assert_array_equal(grads["1.weight"].numpy(), [[0.0]])
    np.testing.assert_array_equal(grads["0.weight"].numpy(), [[1.0]])


def test_second_order_through_an_inner_gradient() -> None:
    """d/dw of (dl/dw)² for l = (w x)²: 2 (2 w x²) (2 x²)."""
    model = nn.Linear(1, 1, bias=False, dtype=nnc.float64)
    x = nnc.asarray([[3.0]], dtype=nnc.float64)
    inner = nn.value_and_grad(model, lambda: (model(x) ** 2).sum())
    _, grads = nn.value_and_grad(model, lambda: (inner()[1]["weight"] ** 2).sum())()
    w = model.state_dict()["weight"]
    np.testing.assert_allclose(grads["weight"].numpy(), 2 * (2 * w * 9) * (2 * 9), rtol=1e-12)


def test_shared_weights_add_up_their_gradients() -> None:
    model = nn.Module()
    model.first = model.second = nn.Linear(1, 1, bias=False)
    x = nnc.ones((1, 1))
    _, grads = nn.value_and_grad(model, lambda: (model.first(x) + model.second(x)).sum())()
    np.testing.assert_array_equal(grads["first.weight"].numpy(), [[2.0]])


def test_nothing_to_differentiate_by() -> None:
    with pytest.raises(GradientError, match="ReLU has no parameters"):
        nn.value_and_grad(nn.ReLU(), lambda: nnc.ones(()))()


def test_a_parameter_is_not_written_while_it_is_differentiated_by() -> None:
    model = nn.Linear(1, 1)
    with pytest.raises(GradientError, match="'weight' is written inside"):
        nn.value_and_grad(model, lambda: model.weight.write(nnc.ones((1, 1))))()
    model.weight.write(nnc.ones((1, 1)))
