"""Functions that take gradients eagerly: passes that keep coming are compiled, as those of `backward` are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.algodiff import compiled_backward
from nnc_core.algodiff import reverse_pass as passes
from nnc_core.algodiff.compiled_backward import BackwardPrograms
from nnc_core.values import modes


@pytest.fixture(autouse=True)
def programs(monkeypatch: pytest.MonkeyPatch) -> Iterator[BackwardPrograms]:
    """An empty cache."""
    fresh = BackwardPrograms()
    monkeypatch.setattr(compiled_backward, "PROGRAMS", fresh)
    monkeypatch.setattr(passes, "PROGRAMS", fresh)
    yield fresh


X = np.linspace(-1, 2, 6, dtype=np.float32).reshape(2, 3)
SLOPE = 2 * X.astype(np.float64) * np.exp(X.astype(np.float64) ** 2)


def f(x: Any) -> nnc.Tensor:
    return nnc.sum(nnc.exp(x * x))


def test_the_third_pass_compiles_and_gradients_stay_the_same(device: str, programs: BackwardPrograms) -> None:
    x, gradient = nnc.asarray(X), nnc.grad(f)
    for _ in range(5):
        np.testing.assert_allclose(gradient(x).numpy(), SLOPE, rtol=1e-5)
    assert programs.info() == (2, 1, 1)


def test_under_deterministic_passes_agree_to_the_bit(device: str, programs: BackwardPrograms) -> None:
    with nnc.config.using(deterministic=True):
        found = {nnc.grad(f)(nnc.asarray(X)).numpy().tobytes() for _ in range(5)}
    assert len(found) == 1 and programs.info().hits


def test_values_and_several_arguments(device: str, programs: BackwardPrograms) -> None:
    both = nnc.value_and_grad(lambda x, w: nnc.sum(x["a"] * w) + nnc.sum(x["b"]), argnums=(0, 1))
    for k in range(5):
        a, b, w = (nnc.asarray(X + n + k) for n in range(3))
        y, (gx, gw) = both({"a": a, "b": b}, w)
        np.testing.assert_allclose(float(y), ((X + k) * (X + 2 + k)).sum() + (X + 1 + k).sum(), rtol=1e-5)
        np.testing.assert_array_equal(gx["a"].numpy(), X + 2 + k)
        np.testing.assert_array_equal(gx["b"].numpy(), np.ones_like(X))
        np.testing.assert_array_equal(gw.numpy(), X + k)
    assert programs.info().compiled == 1


def test_arguments_that_nothing_depends_on_have_zeros(device: str) -> None:
    gradient = nnc.grad(lambda x, y: nnc.sum(x * x), argnums=(0, 1))
    for _ in range(4):
        gx, gy = gradient(nnc.asarray(X), nnc.ones(3))
        np.testing.assert_array_equal(gx.numpy(), 2 * X)
        np.testing.assert_array_equal(gy.numpy(), np.zeros(3))


def test_one_array_in_two_places_has_a_gradient_for_each(device: str) -> None:
    x, gradient = nnc.asarray(X), nnc.grad(lambda a, b: nnc.sum(a * a * b), argnums=(0, 1))
    for _ in range(4):
        ga, gb = gradient(x, x)
        np.testing.assert_allclose(ga.numpy(), 2 * X * X, rtol=1e-6)
        np.testing.assert_allclose(gb.numpy(), X * X, rtol=1e-6)


def test_gradients_of_gradients_stay_recorded(device: str) -> None:
    x = nnc.asarray(np.float32(0.5))
    second, mixed = nnc.grad(nnc.grad(lambda x: x * x * x)), nnc.variable(np.float32(2))
    for _ in range(5):
        assert float(second(x)) == 3.0
        y = nnc.grad(lambda x: x * x * mixed)(x)
        y.backward()
        assert float(mixed.grad) == 1.0
        mixed.grad = None


def test_pulls_run_compiled_and_take_any_cotangent(device: str, programs: BackwardPrograms) -> None:
    for k in range(5):
        _, pull = nnc.vjp(lambda x: (nnc.sin(x), x * 2), nnc.asarray(X))
        (found,) = pull((nnc.asarray(X), nnc.full((2, 3), float(k))))
        np.testing.assert_allclose(found.numpy(), X * np.cos(X) + 2 * k, rtol=1e-5, atol=1e-6)
    assert programs.info().hits == 2


def test_arguments_that_were_computed_before_are_leaves(device: str, programs: BackwardPrograms) -> None:
    for _ in range(5):
        with nnc.deferred():
            x = nnc.asarray(X) * 1.0
        np.testing.assert_allclose(nnc.grad(f)(x).numpy(), SLOPE, rtol=1e-5)
    assert programs.info().hits == 2


def test_hooks_on_what_is_computed_are_called_each_time(device: str) -> None:
    seen: list[Any] = []

    def hooked(x: Any) -> nnc.Tensor:
        y = x * 3
        y.register_hook(seen.append)
        return nnc.sum(y * y)

    for _ in range(5):
        np.testing.assert_allclose(nnc.grad(hooked)(nnc.asarray(X)).numpy(), 18 * X, rtol=1e-6)
    assert len(seen) == 5


def test_runs_that_may_go_on_go_back_step_by_step(device: str, programs: BackwardPrograms) -> None:
    with modes.step_by_step():
        found = {nnc.grad(f)(nnc.asarray(X)).numpy().tobytes() for _ in range(5)}
    assert len(found) == 1 and programs.info() == (0, 0, 0)
