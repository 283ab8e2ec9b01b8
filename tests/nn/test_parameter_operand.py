"""Parameters, cells and palettised weights stand for the tensors that they hold."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn
from nnc_core.base.errors import AxisError, GradientError, NotSupportedError, OperandError, ShapeError
from nnc_core.values.tree import flatten
from tests.support import same, to_the_bit

W = np.array([[0.5, 0.25], [0.125, 0.75]], np.float32)
X = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
BINARY = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "lt", "le", "gt", "ge", "eq", "ne"]
UNARY = ["neg", "pos", "abs"]


# ---- operators
@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("kind", [nn.Parameter, lambda w: nnc.Cell(nnc.asarray(w))])
def test_operators(name: str, kind: Any) -> None:
    f = getattr(operator, name)
    w = kind(W)
    for other in (nnc.asarray(X), X, 2.0, 2):
        if name == "matmul" and not hasattr(other, "shape"):
            continue
        same(f(w, other), f(nnc.asarray(W), other))
        same(f(other, w), f(other, nnc.asarray(W)))
    if name not in ("eq", "ne"):
        same(f(w, kind(X)), f(nnc.asarray(W), nnc.asarray(X)))


@pytest.mark.parametrize("name", UNARY)
def test_operators_of_one(name: str) -> None:
    same(getattr(operator, name)(nn.Parameter(W)), getattr(operator, name)(nnc.asarray(W)))


def test_two_parameters_are_equal_if_they_are_one() -> None:
    a, b = nn.Parameter(W), nn.Parameter(W)
    assert (a == a) is True and (a == b) is False and (a != b) is True
    assert b in {a: 1, b: 2} and [a, b].index(b) == 1 and a != "a" and (a == None) is False  # noqa: E711


# ---- functions
def unary() -> dict[str, Callable[..., Any]]:
    """Public functions that take one matrix."""
    found = {}
    skipped = {"from_dlpack", "synchronize", "jit", "debug_print", "deferred", "empty_like", "variable", "no_grad"}
    for name in sorted(set(nnc.__all__) - skipped):
        f = getattr(nnc, name)
        if not callable(f) or isinstance(f, type) or name.startswith(("is_", "var_", "const_", "host_", "manual")):
            continue
        try:
            given = f(nnc.asarray(W))
        except Exception:
            continue
        leaves = flatten(given)[0]
        if leaves and all(isinstance(x, nnc.Tensor) for x in leaves):
            found[name] = f
    return found


FUNCTIONS = unary()


def test_there_are_functions_to_try() -> None:
    assert len(FUNCTIONS) > 150


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_take_a_parameter(name: str) -> None:
    f = FUNCTIONS[name]
    nnc.manual_seed(0)  # some draw
    found = f(nn.Parameter(W))
    nnc.manual_seed(0)
    same(found, f(nnc.asarray(W)))


@to_the_bit
@pytest.mark.parametrize("name", ["exp", "sum", "mean", "linalg.inv", "fft.fft", "sort", "var", "median", "asarray"])
def test_gradients_follow(name: str) -> None:
    f = operator.attrgetter(name)(nnc)
    holder = nn.Module()
    holder.w = nn.Parameter(W)

    def loss(w: Any) -> nnc.Tensor:
        return nnc.sum(nnc.abs(f(w)) ** 2)

    wanted = nnc.grad(loss)(nnc.asarray(W))
    for wrap in (lambda f: f, nnc.jit):
        same(wrap(nn.value_and_grad(holder, lambda: loss(holder.w)))()[1]["w"], wanted)
    holder.w.requires_grad = True
    loss(holder.w).backward()
    same(holder.w.grad, wanted)


def test_parameters_in_lists_and_beside_arrays() -> None:
    w = nn.Parameter(W)
    wanted = nnc.asarray(W)
    same(nnc.asarray([w, X]), nnc.asarray([wanted, X]))
    same(nnc.concat([w, w]), nnc.concat([wanted, wanted]))
    same(nnc.stack((X, w)), nnc.stack((X, wanted)))
    same(nnc.matmul(X, w), nnc.matmul(X, wanted))
    same(nnc.where(w > 0.3, w, 0.0), nnc.where(wanted > 0.3, wanted, 0.0))
    same(nnc.einsum("ij,jk", w, X), nnc.einsum("ij,jk", wanted, X))
    same(nnc.asarray(X)[nnc.asarray([True, False])] * w[0], X[:1] * W[0])


def test_host_arrays_go_where_the_parameter_is() -> None:
    with nnc.use_device("strict"):
        w = nn.Parameter(W)
    for found in (nnc.add(X, w), X + w, w + X, nnc.asarray([w, X]), nnc.concat([X, w])):
        assert found.device.kind == "strict"


# ---- what it is
def test_attributes_and_conversions() -> None:
    w = nn.Parameter(W)
    assert (w.shape, w.dtype, w.ndim, w.size, len(w)) == ((2, 2), nnc.float32, 2, 4, 2)
    np.testing.assert_array_equal(np.asarray(w), W)
    assert np.asarray(w).dtype == np.float32
    same([w.T, w.sum(0), w.reshape(4), w[1], w.at[0].set(1.0)],
         [W.T, W.sum(0), W.reshape(4), W[1], np.array([[1, 1], W[1]], np.float32)])
    same(list(w), list(W))
    assert f"{nn.Parameter([2.5])[0]:.2f}" == "2.50" and float(nn.Parameter([2.5])) == 2.5
    with pytest.raises(AttributeError, match="'Parameter' object has no attribute 'shap'"):
        _ = w.shap
    with pytest.raises(AxisError):
        nnc.sum(w, axis=5)
    with pytest.raises(TypeError):
        w + "a"
    with pytest.raises(OperandError):
        nnc.sum(nn.Linear(1, 1))


def test_in_place_operators_write() -> None:
    w = v = nn.Parameter(W)
    w -= 0.5
    w *= nnc.asarray(X)
    w[0] = 7.0
    assert w is v
    np.testing.assert_array_equal(v.numpy(), np.array([[7, 7], (W[1] - 0.5) * X[1]], np.float32))
    with pytest.raises(ShapeError):
        w += nnc.ones((3, 2, 2))
    w.requires_grad = True
    with pytest.raises(GradientError, match=r"(?s)in-place change of Parameter.*no_grad"):
        w += 1
    with nnc.no_grad():
        w += 1
    assert w.requires_grad and w[0, 0].item() == 8


class Scaled(nn.Module):
    """Written as in PyTorch."""

    def __init__(self) -> None:
        self.w, self.calls = nn.Parameter(W), nnc.Cell(nnc.zeros(()))

    def forward(self, x: Any) -> nnc.Tensor:
        self.calls += 1
        return nnc.sum(nnc.tanh(x @ self.w) + self.w.shape[0] * self.w[0])


@pytest.mark.parametrize("wrap", [lambda f: f, nnc.jit])
def test_a_module_that_uses_parameters_as_tensors(wrap: Any) -> None:
    model = Scaled()
    step = wrap(nn.value_and_grad(model, lambda x: model(x)))
    for count in (1.0, 2.0, 3.0):
        value, g = step(nnc.asarray(X))
        wanted = nnc.value_and_grad(lambda w: nnc.sum(nnc.tanh(nnc.asarray(X) @ w) + 2 * w[0]))(model.w.read())
        np.testing.assert_allclose(value.item(), wanted[0].item(), rtol=1e-6)
        np.testing.assert_allclose(g["w"].numpy(), wanted[1].numpy(), rtol=1e-5)
        assert float(model.calls) == count
        model.w -= g["w"] * 0.1


def test_deferred_and_vmapped() -> None:
    w = nn.Parameter(W)
    with nnc.deferred():
        y = w * 2
        assert y.is_deferred
    same(y, W * 2)
    same(nnc.vmap(lambda row: row @ w)(nnc.asarray(X)), X @ W)


def test_palettised_weights_too() -> None:
    layer = nn.palettise(nn.Linear(16, 16), bits=4)
    weight, x = layer.weight, nnc.ones((2, 16))
    assert not isinstance(weight, nn.Parameter) and weight.shape == (16, 16)
    same(x @ weight, x @ weight.read())
    same(nnc.sum(weight), nnc.sum(weight.read()))
    with pytest.raises(NotSupportedError, match="PalettisedWeight cannot be written"):
        layer.weight += 1
    with pytest.raises(NotSupportedError):
        layer.weight[0] = 1
