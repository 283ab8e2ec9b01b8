"""Products with Jacobians and Hessians, gradients with Hessians, Laplacians: closed forms and finite differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import GradientError
from tests.tensors.faults import fails

POINT, DIRECTION = np.array([0.3, -0.7, 1.1]), np.array([1.0, 0.5, -2.0])
MATRIX = np.array([[2.0, 1, 0], [0, 3, 1], [1, 0, 1]])
WAYS: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {"eager": lambda f: f, "jit": nnc.jit}


def scalar(x: nnc.Tensor) -> nnc.Tensor:
    return nnc.sum(nnc.sin(x) * nnc.exp(x[::-1])) + nnc.sum(x) ** 3


def vector(x: nnc.Tensor) -> nnc.Tensor:
    return nnc.stack([x[0] * x[1], nnc.sin(x[2]), nnc.sum(x * x)])


def host(f: Callable[[nnc.Tensor], nnc.Tensor], at: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return f(nnc.asarray(at)).numpy()


def differences(f: Callable[[np.ndarray[Any, Any]], Any], at: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Central differences by each element, along a last axis."""
    step = 1e-5
    return np.stack([(f(at + step * e) - f(at - step * e)) / (2 * step) for e in np.eye(at.size)], axis=-1)


def gradient(at: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return host(nnc.grad(scalar), at)


@pytest.mark.parametrize("way", WAYS)
def test_held_to_finite_differences(device: str, way: str) -> None:
    x, v = nnc.asarray(POINT), nnc.asarray(DIRECTION)
    curvature, slopes = differences(gradient, POINT), differences(lambda at: host(vector, at), POINT)

    def check(f: Callable[..., Any], args: Any, *wanted: Any) -> None:
        found = WAYS[way](f)(*args)
        for one, expected in zip(found if isinstance(found, tuple) else (found,), wanted, strict=True):
            np.testing.assert_allclose(one.numpy(), expected, rtol=1e-6, atol=1e-6)

    check(lambda x, v: nnc.jacobianv(vector, x, v), (x, v), slopes @ DIRECTION)
    check(lambda x, v: nnc.hessianv(scalar, x, v), (x, v), curvature @ DIRECTION)
    check(lambda x, v: nnc.gradhessianv(scalar, x, v), (x, v), gradient(POINT), curvature @ DIRECTION)
    check(nnc.gradhessian(scalar), (x,), gradient(POINT), curvature)
    check(nnc.laplacian(scalar), (x,), np.trace(curvature))


def test_closed_forms(device: str) -> None:
    x, v, a = nnc.asarray(POINT), nnc.asarray(DIRECTION), nnc.asarray(MATRIX)

    def quadratic(x: nnc.Tensor) -> nnc.Tensor:
        return x @ (a @ x)

    symmetric = MATRIX + MATRIX.T
    np.testing.assert_allclose(nnc.hessianv(quadratic, x, v).numpy(), symmetric @ DIRECTION, rtol=1e-12)
    np.testing.assert_allclose(nnc.jacobianv(lambda x: a @ x, x, v).numpy(), MATRIX @ DIRECTION, rtol=1e-12)
    g, h = nnc.gradhessian(quadratic)(x)
    np.testing.assert_allclose(g.numpy(), symmetric @ POINT, rtol=1e-12)
    np.testing.assert_allclose(h.numpy(), symmetric, rtol=1e-12)
    assert nnc.laplacian(quadratic)(x).item() == pytest.approx(np.trace(symmetric))
    cubes = nnc.laplacian(lambda s, m: nnc.sum(s * m**3), argnums=1)(2.0 * nnc.ones(1), nnc.asarray(MATRIX))
    assert cubes.item() == pytest.approx(12 * MATRIX.sum()), "of a matrix, by the second argument"


def test_derivatives_of_them(device: str) -> None:
    """The gradient of the Laplacian of the sum of x**4 is 24 x."""
    slope = nnc.grad(nnc.laplacian(lambda x: nnc.sum(x**4)))(nnc.asarray(POINT))
    np.testing.assert_allclose(slope.numpy(), 24 * POINT, rtol=1e-10)


def test_structures_go_through_products(device: str) -> None:
    x, v = {"a": nnc.asarray(POINT), "b": nnc.asarray(2.0)}, {"a": nnc.asarray(DIRECTION), "b": nnc.asarray(0.0)}
    found = nnc.hessianv(lambda p: p["b"] * nnc.sum(p["a"] ** 2), x, v)
    np.testing.assert_allclose(found["a"].numpy(), 4 * DIRECTION, rtol=1e-6)
    assert found["b"].item() == pytest.approx(2 * POINT @ DIRECTION, rel=1e-6)


def test_refusals(device: str) -> None:
    x = nnc.asarray(POINT)
    with fails(GradientError, "only a floating-point scalar"):
        nnc.laplacian(vector)(x)
    with fails(GradientError, "tangent"):
        nnc.hessianv(scalar, x, nnc.ones(2, dtype="float64"))
    with fails(GradientError, "argument 1"):
        nnc.gradhessian(scalar, argnums=1)(x)


@pytest.mark.parametrize("name", ["grad", "value_and_grad", "jacobian", "hessian", "gradhessian", "laplacian"])
def test_what_is_no_function_is_refused_under_the_name_that_was_called(name: str) -> None:
    with fails(TypeError, "f is int, not a function", operator=name):
        getattr(nnc, name)(5)


@pytest.mark.parametrize("name", ["jacobianv", "hessianv", "gradhessianv"])
def test_so_it_is_by_products(name: str) -> None:
    with fails(TypeError, "f is int, not a function", operator=name):
        getattr(nnc, name)(5, nnc.ones(2), nnc.ones(2))
