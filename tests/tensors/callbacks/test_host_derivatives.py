"""Derivatives through functions of the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import (
    DTypeError,
    GradientError,
    OperandError,
    ShapeError,
)
from tests.tensors.callbacks.called import Array, Called


# ---- derivatives
def norm(x: nnc.Tensor, y: nnc.Tensor) -> nnc.Tensor:
    def forward(a: Array, b: Array) -> Array:
        return np.sqrt(a * a + b * b)

    def back(g: Array, a: Array, b: Array) -> tuple[Array, Array]:
        r = np.sqrt(a * a + b * b)
        return g * a / r, g * b / r

    return nnc.callback(forward, x, x, y, vjp=back)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_vjp(compiled: bool, x: nnc.Tensor) -> None:
    y = x + 1

    def f(x: nnc.Tensor, y: nnc.Tensor) -> nnc.Tensor:
        return nnc.sum(norm(nnc.tanh(x), y) * x)

    def known(x: nnc.Tensor, y: nnc.Tensor) -> nnc.Tensor:
        return nnc.sum(nnc.sqrt(nnc.square(nnc.tanh(x)) + nnc.square(y)) * x)

    gradient = nnc.grad(f, (0, 1))
    for found, wanted in zip((nnc.jit(gradient) if compiled else gradient)(x, y), nnc.grad(known, (0, 1))(x, y),
                             strict=True):
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-5)


def test_a_vjp_of_several_results_and_nested_arguments(x: nnc.Tensor) -> None:
    def forward(arguments: dict[str, Array], index: Array) -> tuple[Array, Array, Array]:
        return arguments["a"] * 2, arguments["b"].sum(), index

    def back(g: tuple[Array, Array, Array], arguments: dict[str, Array], index: Array) -> tuple[Any, None]:
        return {"a": g[0] * 2, "b": np.full_like(arguments["b"], g[1])}, None

    def f(a: nnc.Tensor, b: nnc.Tensor, use_second: bool) -> nnc.Tensor:
        spec = (a, nnc.TensorSpec((), "float32"), nnc.TensorSpec((), "int64"))
        first, second, _ = nnc.callback(forward, spec, {"a": a, "b": b}, nnc.asarray(3), vjp=back)
        return nnc.sum(first) + (second * 5.0 if use_second else 0.0)

    for use_second, wanted in ((True, 5.0), (False, 0.0)):
        da, db = nnc.grad(f, (0, 1))(x, x[0], use_second)
        assert da.tolist() == [[2, 2, 2], [2, 2, 2]]
        assert db.tolist() == [wanted] * 3


def test_backward_of_variables(device: str) -> None:
    v = nnc.variable([1.0, 2.0])
    fn = Called(lambda a: a**2)
    pull = Called(lambda g, a: 2 * g * a)
    nnc.sum(nnc.callback(fn, v, v, vjp=pull)).backward()
    assert v.grad is not None
    assert v.grad.tolist() == [2, 4]
    assert (fn.times, pull.times) == (1, 1)


def test_without_a_vjp_there_is_no_derivative(x: nnc.Tensor) -> None:
    def opaque(a: Array) -> Array:
        return a

    def f(x: nnc.Tensor) -> nnc.Tensor:
        return nnc.sum(nnc.callback(opaque, x, x))

    with pytest.raises(GradientError, match=r"(?s)opaque has no vjp.*test_host_derivatives.py:\d+ in f.*vjp") as caught:
        nnc.grad(f)(x)
    assert "stop_gradient" in str(caught.value)
    with pytest.raises(GradientError, match="no derivative in forward mode"):
        nnc.jvp(f, (x,), (x,))
    g = nnc.grad(lambda x: nnc.sum(nnc.callback(opaque, x, nnc.stop_gradient(x)) * x))(x)
    assert g.tolist() == x.tolist()


def test_a_vjp_has_no_derivative(x: nnc.Tensor) -> None:
    f = nnc.grad(lambda x: nnc.sum(norm(x, x + 1)))
    with pytest.raises(GradientError, match="back has no vjp"):
        nnc.grad(lambda x: nnc.sum(f(x)))(x)


@pytest.mark.parametrize(("returned", "said"), [
    (lambda g, a, b: g, "1 cotangents for 2 arguments"),
    (lambda g, a, b: (g, g, g), "3 cotangents for 2 arguments"),
    (lambda g, a, b: (g[0], g), "the spec says float32\\[2,3\\]"),
    (lambda g, a, b: (g.astype(np.float64), g), "returned float64"),
])
def test_wrong_cotangents_are_named(returned: Callable[..., Any], said: str, x: nnc.Tensor) -> None:
    def f(x: nnc.Tensor) -> nnc.Tensor:
        return nnc.sum(nnc.callback(lambda a, b: a, x, x, x * 2.0, vjp=returned))

    with pytest.raises((OperandError, ShapeError, DTypeError), match=said) as caught:
        nnc.grad(f)(x)
    assert "test_host_derivatives.py" in str(caught.value)
