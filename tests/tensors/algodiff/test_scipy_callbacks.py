"""Derivatives as callbacks of SciPy's, which calls them with arrays and numbers of NumPy's and wants such back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import optimize

import nnc_core as nnc
from tests.tensors.faults import fails

START = np.array([-1.2, 1.0, 0.5])


def rosen(x: Any) -> nnc.Tensor:
    return nnc.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


@pytest.mark.parametrize("method", ["BFGS", "L-BFGS-B", "CG", "SLSQP"])
def test_gradients_of_minimisers(method: str) -> None:
    found = optimize.minimize(rosen, START, jac=nnc.grad(rosen), method=method)
    wanted = optimize.minimize(optimize.rosen, START, jac=optimize.rosen_der, method=method)
    assert type(found.x) is type(found.jac) is np.ndarray and isinstance(found.fun, float)
    np.testing.assert_allclose(found.x, wanted.x, atol=1e-3)


@pytest.mark.parametrize("method", ["trust-ncg", "trust-exact", "Newton-CG"])
def test_hessians_of_minimisers(method: str) -> None:
    found = optimize.minimize(rosen, START, jac=nnc.grad(rosen), hess=nnc.hessian(rosen), method=method)
    np.testing.assert_allclose(found.x, 1.0, atol=1e-5)


def test_value_and_gradient_at_once() -> None:
    found = optimize.minimize(nnc.value_and_grad(rosen), START, jac=True)
    np.testing.assert_allclose(found.x, 1.0, atol=1e-5)


def test_compiled_functions_are_differentiated_as_callbacks() -> None:
    f = nnc.jit(rosen)
    found = optimize.minimize(f, START, jac=nnc.grad(f))
    assert type(found.x) is np.ndarray
    np.testing.assert_allclose(found.x, 1.0, atol=1e-5)


def test_jacobians_of_systems() -> None:
    t = np.arange(5.0)

    def residuals(p: Any) -> Any:
        return p[0] * t + p[1] ** 2 - (2.0 * t + 1.0)

    found = optimize.least_squares(residuals, [1.0, 3.0], jac=nnc.jacobian(residuals))
    np.testing.assert_allclose(found.x, [2.0, 1.0], atol=1e-6)


def test_derivatives_by_numbers() -> None:
    def f(x: Any) -> Any:
        return x**2 - 2.0

    assert type(nnc.grad(f)(1.5)) is float and type(nnc.grad(f)(np.float64(1.5))) is np.float64
    assert optimize.newton(f, 1.0, fprime=nnc.grad(f)) == pytest.approx(2**0.5, rel=1e-6)
    assert optimize.root_scalar(f, x0=1.0, fprime=nnc.grad(f)).root == pytest.approx(2**0.5, rel=1e-6)


def test_each_argument_gets_its_own_kind(device: str) -> None:
    def f(tree: dict[str, Any], w: nnc.Tensor) -> nnc.Tensor:
        return nnc.sum(tree["a"] * tree["b"] * w)

    a, ones = START.astype(np.float32), nnc.ones(3)
    tree, w = nnc.grad(f, argnums=(0, 1))({"a": a, "b": ones}, ones)
    assert type(tree["a"]) is np.ndarray and type(tree["b"]) is type(w) is nnc.Tensor
    assert tree["a"].tolist() == [1, 1, 1] and w.device.id == device
    y, pull = nnc.vjp(lambda x: x * 2, a)
    assert type(y) is nnc.Tensor and pull(np.ones(3, np.float32))[0].tolist() == [2, 2, 2]
    assert nnc.jvp(lambda x: x * 2, (a,), (a,))[1].tolist() == (a * 2).tolist()
    assert nnc.laplacian(rosen)(a).shape == () and type(nnc.hessian(rosen)(a)) is np.ndarray


def test_while_something_is_traced_results_are_tensors() -> None:
    def f(x: nnc.Tensor) -> Any:
        return nnc.grad(lambda a: nnc.sum(a * x))(np.ones(3, np.float32))

    assert nnc.jit(f)(nnc.ones(3)).tolist() == [1, 1, 1]


def test_integers_are_refused() -> None:
    with fails(ValueError, "only floating-point tensors", line=False):
        nnc.grad(rosen)(np.array([1, 2, 3]))
    with fails(ValueError, "only tensors", "nnc.asarray", line=False):
        nnc.grad(rosen)([1, 2, 3])
