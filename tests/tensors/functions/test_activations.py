"""Activation functions and softmax: values, ends, gradients, modes, what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import nnc_core as nnc
from nnc_core.base.errors import AttributeValueError, DTypeError, ShapeError
from tests.tensors.against_numpy import assert_derivatives, assert_same

X = np.array([[-3.2, -0.7, 0.3, 2.1], [0.45, -1.4, 5.5, -0.2]], np.float32)
ENDS = np.array([-np.inf, -200.0, -1.0, 0.0, 1.0, 200.0, np.inf, np.nan], np.float32)
sigmoid, ndtr = scipy.special.expit, scipy.special.ndtr


def elu(x: Any, alpha: float = 1.0) -> Any:
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "silu": (nnc.silu, lambda x: x * sigmoid(x)), "swish": (nnc.swish, lambda x: x * sigmoid(x)),
    "gelu": (nnc.gelu, lambda x: x * ndtr(x)),
    "gelu tanh": (lambda x: nnc.gelu(x, approximate="tanh"),
                  lambda x: x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) / 2),
    "mish": (nnc.mish, lambda x: x * np.tanh(np.logaddexp(0, x))),
    "softsign": (nnc.softsign, lambda x: x / (1 + abs(x))),
    "softplus": (nnc.softplus, lambda x: np.logaddexp(0, x)),
    "softplus of beta": (lambda x: nnc.softplus(x, beta=2.5), lambda x: np.logaddexp(0, 2.5 * x) / 2.5),
    "logsigmoid": (nnc.logsigmoid, lambda x: -np.logaddexp(0, -x)),
    "tanhshrink": (nnc.tanhshrink, lambda x: x - np.tanh(x)),
    "elu": (nnc.elu, elu), "elu of alpha": (lambda x: nnc.elu(x, alpha=0.4), lambda x: elu(x, 0.4)),
    "selu": (nnc.selu, lambda x: 1.0507009873554805 * elu(x, 1.6732632423543772)),
    "celu": (lambda x: nnc.celu(x, alpha=0.6), lambda x: np.where(x > 0, x, 0.6 * np.expm1(np.minimum(x, 0) / 0.6))),
    "leaky_relu": (lambda x: nnc.leaky_relu(x, slope=0.2), lambda x: np.where(x > 0, x, 0.2 * x)),
    "hardtanh": (lambda x: nnc.hardtanh(x, low=-2), lambda x: np.clip(x, -2, 1)),
    "relu6": (nnc.relu6, lambda x: np.clip(x, 0, 6)),
    "hardsigmoid": (nnc.hardsigmoid, lambda x: np.clip(x / 6 + 0.5, 0, 1)),
    "Owl's hardsigmoid": (lambda x: nnc.hardsigmoid(x, slope=0.2), lambda x: np.clip(x * 0.2 + 0.5, 0, 1)),
    "hardswish": (nnc.hardswish, lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
    "threshold": (lambda x: nnc.threshold(x, 0.4, -9.0), lambda x: np.where(x > 0.4, x, -9)),
    "hardshrink": (nnc.hardshrink, lambda x: np.where(abs(x) > 0.5, x, 0)),
    "softshrink": (nnc.softshrink, lambda x: np.sign(x) * np.maximum(abs(x) - 0.5, 0)),
    "glu": (nnc.glu, lambda x: x[:, :2] * sigmoid(x[:, 2:])),
    "glu along another axis": (lambda x: nnc.glu(x, axis=0), lambda x: x[:1] * sigmoid(x[1:])),
    "swiglu": (nnc.swiglu, lambda x: x[:, :2] * x[:, 2:] * sigmoid(x[:, 2:])),
    "swiglu with its gate": (lambda x: nnc.swiglu(x, x + 1), lambda x: x * (x + 1) * sigmoid(x + 1)),
    "softmin": (nnc.softmin, lambda x: scipy.special.softmax(-x, -1)),
    "softmax of integers": (lambda x: nnc.softmax(x.astype("int32")),
                            lambda x: scipy.special.softmax(x.astype(np.int32).astype(np.float32), -1)),
}  # fmt: skip
each_function = pytest.mark.parametrize("name", FUNCTIONS)


@each_function
def test_values(name: str, device: str) -> None:
    ours, theirs = FUNCTIONS[name]
    wanted = theirs(X.astype(np.float64)).astype(np.float32)
    assert_same(ours(nnc.asarray(X)), wanted, 2e-6)
    with nnc.deferred():
        late = ours(nnc.asarray(X))
    assert_same(late, wanted, 2e-6)


@each_function
def test_compiled_and_in_halves(name: str) -> None:
    ours, theirs = FUNCTIONS[name]
    assert_same(nnc.jit(ours)(nnc.asarray(X)), theirs(X.astype(np.float64)).astype(np.float32), 2e-6)
    half = X.astype(np.float16)
    found = ours(nnc.asarray(half))
    if "integers" not in name:
        assert found.dtype == "float16"
        np.testing.assert_allclose(found.numpy(), theirs(half.astype(np.float64)), rtol=2e-3, atol=2e-3)


@each_function
def test_derivatives(name: str) -> None:
    if "integers" not in name:
        assert_derivatives(lambda n, x: FUNCTIONS[name][0](x), [X])


AT_THE_ENDS = {
    "silu": [0, 0, -0.26894142, 0, 0.7310586, 200, np.inf], "gelu": [0, 0, -0.15865526, 0, 0.84134474, 200, np.inf],
    "mish": [0, 0, -0.30340147, 0, 0.86509836, 200, np.inf], "softsign": [-1, -200 / 201, -0.5, 0, 0.5, 200 / 201, 1],
    "softplus": [0, 0, 0.31326166, 0.6931472, 1.3132617, 200, np.inf], "elu": [-1, -1, -0.63212055, 0, 1, 200, np.inf],
    "logsigmoid": [-np.inf, -200, -1.3132617, -0.6931472, -0.31326166, 0, 0],
    "celu": [-0.6, -0.6, -0.4866747, 0, 1, 200, np.inf],
}  # fmt: skip


@pytest.mark.parametrize("name", AT_THE_ENDS)
def test_the_ends_of_the_range(name: str, device: str) -> None:
    """And slopes that are finite there."""
    x = nnc.asarray(ENDS)
    found = FUNCTIONS[name][0](x).numpy()
    np.testing.assert_allclose(found[:-1], AT_THE_ENDS[name], rtol=1e-6, atol=1e-30)
    assert np.isnan(found[-1])
    slopes = nnc.grad(lambda v: nnc.sum(FUNCTIONS[name][0](v)))(x).numpy()
    assert np.isfinite(slopes[1:-2]).all()


@pytest.mark.parametrize("name", ["silu", "gelu", "mish", "elu", "softsign"])
def test_slopes_of_halves_do_not_overflow(name: str) -> None:
    x = nnc.asarray(np.array([-60000, -300, 300, 60000], np.float16))
    slopes = nnc.grad(lambda v: nnc.sum(FUNCTIONS[name][0](v)))(x).numpy()
    wanted = [0, 0, 0, 0] if name == "softsign" else [0, 0, 1, 1]
    np.testing.assert_allclose(slopes, wanted, atol=2e-5)


def test_slopes_that_are_learned(device: str) -> None:
    x = nnc.asarray(X)
    for slope, axis in ((0.3, -1), ([0.1, 0.2, 0.3, 0.4], -1), ([0.5, 0.7], 0), ([0.25], -1)):
        s = np.asarray(slope, np.float32)
        column = s.reshape(-1, 1) if axis == 0 else s
        assert_same(nnc.prelu(x, nnc.asarray(s), axis=axis), np.where(X > 0, X, X * column))
    g = nnc.grad(lambda s: nnc.sum(nnc.prelu(x, s)))(nnc.zeros((4,)))
    np.testing.assert_allclose(g.numpy(), np.minimum(X, 0).sum(0), rtol=1e-6)
    assert_derivatives(lambda n, v, s: nnc.prelu(v, s), [X, np.array([0.1, 0.2, 0.3, 0.4])])


def test_slopes_that_are_drawn(device: str) -> None:
    x = nnc.asarray(np.full((400,), -2.0, np.float32))
    y = nnc.rrelu(x, low=0.1, high=0.3, generator=nnc.Generator(3)).numpy()
    assert -0.6 < y.min() < -0.58 and -0.22 < y.max() <= -0.2 and abs(y.mean() + 0.4) < 0.03
    np.testing.assert_allclose(nnc.rrelu(x, low=0.1, high=0.3, training=False).numpy(), -0.4, rtol=1e-6)
    np.testing.assert_array_equal(nnc.rrelu(nnc.asarray([1.0, 2.0])).numpy(), [1, 2])
    np.testing.assert_allclose(nnc.rrelu(x, low=0.25, high=0.25).numpy(), -0.5, rtol=1e-6)  # nothing left to draw


# ---- softmax
MASK = np.array([[True, False, True, True], [False, False, False, False]])


def test_masked_softmax(device: str) -> None:
    x = nnc.asarray(X)
    wanted = np.zeros_like(X)
    wanted[0, MASK[0]] = scipy.special.softmax(X[0, MASK[0]])
    assert_same(nnc.softmax(x, where=MASK), wanted)
    with np.errstate(divide="ignore"):
        logs = np.log(wanted)
    found = nnc.log_softmax(x, where=nnc.asarray(MASK)).numpy()
    np.testing.assert_allclose(found[0], logs[0], rtol=1e-5)
    assert (found[1] == -np.inf).all()
    assert_same(nnc.softmin(x, axis=0, where=MASK)[:, 0], np.array([1, 0], np.float32))
    gradient = nnc.grad(lambda v: nnc.sum(nnc.softmax(v, where=MASK) * nnc.asarray(X)))(x).numpy()
    assert np.isfinite(gradient).all() and (gradient[~MASK] == 0).all()


def test_derivatives_of_masked_softmax() -> None:
    assert_derivatives(lambda n, x: nnc.softmax(x, axis=0, where=[[True], [True]]), [X])
    assert_derivatives(lambda n, x: nnc.log_softmax(x, where=[True, True, False, True])[:, :2], [X])


@pytest.mark.parametrize("function", [nnc.softmax, nnc.log_softmax, nnc.softmin])
def test_softmax_over_nothing(function: Callable[..., nnc.Tensor], device: str) -> None:
    assert function(nnc.zeros((3, 0))).shape == (3, 0)
    assert function(nnc.zeros((0, 3)), axis=1).shape == (0, 3)
    assert function(nnc.zeros((3, 0)), where=np.ones((3, 0), bool)).shape == (3, 0)


def test_vmapped(device: str) -> None:
    x = nnc.asarray(X)
    for f in (nnc.silu, nnc.gelu, nnc.softmax, lambda v: nnc.softmax(v, where=[True, False, True, True])):
        assert_same(nnc.vmap(f)(x), f(x).numpy())


def test_gumbel_softmax(device: str) -> None:
    logits = nnc.asarray(np.log(np.array([0.2, 0.5, 0.3], np.float32)) * np.ones((4000, 1), np.float32))
    soft = nnc.gumbel_softmax(logits, temperature=0.5, generator=nnc.Generator(5)).numpy()
    np.testing.assert_allclose(soft.sum(1), 1, rtol=1e-5)
    np.testing.assert_allclose(np.bincount(soft.argmax(1)) / 4000, [0.2, 0.5, 0.3], atol=0.03)
    hard = nnc.gumbel_softmax(logits, temperature=0.5, hard=True, generator=nnc.Generator(5)).numpy()
    np.testing.assert_array_equal(hard, np.eye(3, dtype=np.float32)[soft.argmax(1)])

    def loss(v: nnc.Tensor, hard: bool, axis: int = -1) -> nnc.Tensor:
        rows = v if axis == -1 else v.T
        y = nnc.gumbel_softmax(rows, hard=hard, axis=axis, generator=nnc.Generator(9))
        return nnc.sum((y if axis == -1 else y.T)[:, 0])

    few = logits[:5]
    one, other = (nnc.grad(lambda v, h=h: loss(v, h))(few).numpy() for h in (False, True))
    np.testing.assert_allclose(one, other, rtol=1e-6)
    assert set(np.unique(nnc.gumbel_softmax(few.T, hard=True, axis=0).numpy())) <= {0, 1}


@pytest.mark.parametrize(("call", "error", "said"), [
    (lambda x: nnc.gelu(x, approximate="erf"), AttributeValueError, "gelu: approximate 'erf' is none of 'none'"),
    (lambda x: nnc.softplus(x, beta=0), AttributeValueError, "(?s)softplus: beta is 0.*test_activations.py"),
    (lambda x: nnc.celu(x, alpha=0), AttributeValueError, "celu: alpha is 0"),
    (lambda x: nnc.softshrink(x, bound=-1), AttributeValueError, "softshrink: bound is -1"),
    (lambda x: nnc.glu(x, axis=1), ShapeError, r"glu: axis 1 of float32.* has no two halves"),
    (lambda x: nnc.prelu(x, [0.1, 0.2]), ShapeError, "prelu: slopes"),
    (lambda x: nnc.rrelu(x, low=1, high=0), AttributeValueError, "expected low <= high"),
    (lambda x: nnc.gumbel_softmax(x, temperature=0), AttributeValueError, "temperature is 0"),
    (lambda x: nnc.softmax(x, where=[1, 0, 1]), DTypeError, "softmax: the mask is int64, not boolean"),
    (lambda x: nnc.softmax(x, where=np.ones((3, 2, 3), bool)), ShapeError, "does not broadcast to"),
    (lambda x: nnc.silu(x * 1j), DTypeError, "silu: needs floating-point numbers"),
])
def test_what_is_refused(call: Callable[[nnc.Tensor], Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        call(nnc.asarray(np.ones((2, 3), np.float32)))
