"""Gradients on the device, of functions that use most operators.

Held to finite differences where the device has float64, and to float64 on strict:0, which knows no shortcuts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.stacks import Stack
from nnc_plugins.conformance.agreement import assert_same_bits, assert_ulps
from nnc_plugins.conformance.case import Array

OTHER = "strict:0"
STEP = 1e-6


class Function(NamedTuple):
    """A scalar function of arrays of these shapes."""

    f: Callable[..., nnc.Tensor]
    shapes: tuple[tuple[int, ...], ...]


def _dense(x: Any, w: Any, b: Any) -> nnc.Tensor:
    return nnc.sum(nnc.tanh(x @ w + b) ** 2)


def _classify(x: Any, w: Any) -> nnc.Tensor:
    labels = nnc.asarray(np.array([0, 2, 1]), device=x.device)
    return nnc.cross_entropy(x @ w, labels)


def _convolve(x: Any, k: Any) -> nnc.Tensor:
    y = nnc.conv2d(x, k, padding="SAME", strides=(1, 2))
    return nnc.sum(nnc.max_pool2d(nnc.sigmoid(y), 2) * nnc.avg_pool2d(y, 2))


def _move(x: Any, y: Any) -> nnc.Tensor:
    z = nnc.concat([nnc.flip(x, axis=1), y.T, nnc.pad(x[:1, 1:], ((0, 0), (1, 0)))])
    rows = nnc.take(z, nnc.asarray(np.array([1, 0, 1]), device=x.device), axis=0)
    return nnc.sum(z[::2] * nnc.sum(nnc.reshape(z, (3, -1))[:, ::2]) * nnc.sum(rows[:, :1]))


def _reduce(x: Any) -> nnc.Tensor:
    return nnc.sum(nnc.softmax(x) * nnc.log_softmax(x, axis=0)) + nnc.max(x) * nnc.mean(x) - nnc.min(x, axis=0).sum()


def _elementwise(x: Any, y: Any) -> nnc.Tensor:
    z = nnc.exp(nnc.sin(x)) * nnc.log(nnc.abs(y) + 2) + nnc.sqrt(nnc.cos(x) + 2) / (nnc.relu(y) + 1)
    return nnc.sum(nnc.where(x > y, z, nnc.maximum(z * x, y)) + nnc.clip(x, -0.5, 0.5) + nnc.abs(x) ** 1.5)


def _scatter(x: Any, u: Any) -> nnc.Tensor:
    rows = nnc.asarray(np.array([1, 1, 0]), device=x.device)
    return nnc.sum(x.at[rows].add(u) ** 2 * x.at[1:, ::2].set(0.5))


def _scan(x: Any) -> nnc.Tensor:
    y = nnc.cumulative_prod(x, axis=1) * nnc.sort(x, axis=0) + nnc.logcumsumexp(x, axis=1) * nnc.cummax(x, axis=0)
    return nnc.sum(y) + nnc.prod(x) + nnc.std(x, correction=1) + nnc.logsumexp(x)


FUNCTIONS = {
    "a dense layer": Function(_dense, ((3, 4), (4, 2), (2,))),
    "a classifier": Function(_classify, ((3, 4), (4, 3))),
    "a convolution with pools": Function(_convolve, ((2, 4, 8, 2), (3, 3, 2, 2))),
    "movement": Function(_move, ((2, 4), (4, 3))),
    "reductions": Function(_reduce, ((3, 4),)),
    "scans, products and sorting": Function(_scan, ((3, 4),)),
    "elementwise": Function(_elementwise, ((2, 3), (2, 3))),
    "gather and scatter": Function(_scatter, ((2, 4), (3, 4))),
}
each_function = pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)


def _arrays(function: Function, rng: np.random.Generator) -> list[Array]:
    return [np.asarray(rng.uniform(-1, 1, shape)) for shape in function.shapes]


def _gradients(f: Callable[..., nnc.Tensor], arrays: list[Array], device: str, dtype: str) -> list[Array]:
    """The value and the gradients."""
    given = [nnc.asarray(x, dtype=dtype, device=device) for x in arrays]
    value, grads = nnc.value_and_grad(f, tuple(range(len(given))))(*given)
    assert [g.spec for g in grads] == [x.spec for x in given]
    assert all(t.device.id == device for t in (value, *grads))
    return [value.numpy().astype(np.float64), *(g.numpy().astype(np.float64) for g in grads)]


def _differences(f: Callable[..., nnc.Tensor], arrays: list[Array], device: str) -> list[Array]:
    """(f(x + h) - f(x - h)) / 2h for each element."""

    def at(k: int, x: Array) -> float:
        given = [*arrays[:k], x, *arrays[k + 1 :]]
        return float(f(*(nnc.asarray(a, device=device) for a in given)).item())

    found = []
    for k, x in enumerate(arrays):
        slopes = np.empty_like(x)
        for place in np.ndindex(x.shape):
            step = np.zeros_like(x)
            step[place] = STEP
            slopes[place] = (at(k, x + step) - at(k, x - step)) / (2 * STEP)
        found.append(slopes)
    return found


@each_function
def test_equals_finite_differences(stack: Stack, on_device: str, rng: np.random.Generator, function: Function) -> None:
    if "float64" not in stack.device.spec.dtypes:
        pytest.skip("finite differences need float64, which the device has not; float32 is held to strict:0")
    arrays = _arrays(function, rng)
    found = _gradients(function.f, arrays, on_device, "float64")[1:]
    for g, slopes in zip(found, _differences(function.f, arrays, on_device), strict=True):
        np.testing.assert_allclose(g, slopes, rtol=1e-6, atol=1e-7)


@each_function
def test_float32_equals_float64_elsewhere(on_device: str, rng: np.random.Generator, function: Function) -> None:
    arrays = [x.astype(np.float32) for x in _arrays(function, rng)]
    found = _gradients(function.f, arrays, on_device, "float32")
    wanted = _gradients(function.f, arrays, OTHER, "float64")
    for g, h in zip(found, wanted, strict=True):
        assert_ulps(g, h, np.float32, each=800, beside=80, of=max(1.0, float(np.abs(h).max())))


@each_function
def test_compiled_gradients_equal_eager_ones(stack: Stack, on_device: str, rng: np.random.Generator,
                                             function: Function) -> None:
    arrays = [x.astype(np.float32) for x in _arrays(function, rng)]
    both = nnc.value_and_grad(function.f, tuple(range(len(arrays))))
    given = [nnc.asarray(x) for x in arrays]
    (y, grads), (z, others) = both(*given), nnc.jit(both)(*given)
    for a, b in zip((y, *grads), (z, *others), strict=True):
        assert_ulps(a.numpy(), b.numpy(), np.float32, each=80, beside=80)


@each_function
def test_gradients_have_the_same_bits_in_every_mode(stack: Stack, on_device: str, rng: np.random.Generator,
                                                    function: Function) -> None:
    arrays = [x.astype(np.float32) for x in _arrays(function, rng)]
    both = nnc.value_and_grad(function.f, tuple(range(len(arrays))))
    with nnc.config.using(deterministic=True):
        given = [nnc.asarray(x) for x in arrays]
        (y, grads), (z, others) = both(*given), nnc.jit(both)(*given)
        with nnc.deferred():
            late, later = both(*given)
        for a, b, c in zip((y, *grads), (z, *others), (late, *later), strict=True):
            assert_same_bits(a.numpy(), b.numpy(), "compiled")
            assert_same_bits(a.numpy(), c.numpy(), "deferred")


def test_second_order(on_device: str, rng: np.random.Generator) -> None:
    """The Hessian of sum(x^3 + x0 * x) is diag(6 x) plus ones in the first row and column."""
    x = nnc.asarray(rng.uniform(-1, 1, 4).astype(np.float32))
    found = nnc.hessian(lambda v: nnc.sum(v * v * v + v[0] * v))(x).numpy()
    wanted = np.diag(6 * x.numpy())
    wanted[0, :] += 1
    wanted[:, 0] += 1
    assert_ulps(found, wanted, np.float32, each=80, beside=80)


def test_forward_mode_equals_reverse_mode(on_device: str, rng: np.random.Generator) -> None:
    function = FUNCTIONS["a dense layer"]
    given, directions = ([nnc.asarray(x.astype(np.float32)) for x in _arrays(function, rng)] for _ in range(2))
    _, slope = nnc.jvp(function.f, given, directions)
    grads = nnc.grad(function.f, (0, 1, 2))(*given)
    wanted = sum(float((g.numpy() * d.numpy()).sum()) for g, d in zip(grads, directions, strict=True))
    assert_ulps(slope.item(), wanted, np.float32, each=800, beside=800)
