"""The public functions and the methods of tensors, against NumPy's and SciPy's, in each mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import nnc_core as nnc
from nnc_core.base.errors import AttributeValueError
from tests.tensors.faults import fails
from tests.tensors.ways import in_mode

A = np.array([[0.5, -1.25, 2.0], [3.0, -0.75, 0.0]], np.float32)
B = np.array([[1.0, 2.0, -3.0], [0.5, 4.0, 1.5]], np.float32)
T = np.array([[True, False, True], [False, False, True]])

CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "add": (nnc.add, np.add), "subtract": (nnc.subtract, np.subtract), "multiply": (nnc.multiply, np.multiply),
    "divide": (nnc.divide, np.divide), "floor_divide": (nnc.floor_divide, np.floor_divide),
    "remainder": (nnc.remainder, np.remainder), "maximum": (nnc.maximum, np.maximum),
    "minimum": (nnc.minimum, np.minimum), "pow": (lambda a, b: nnc.pow(nnc.abs(a), b), lambda a, b: np.abs(a) ** b),
    "comparisons": (lambda a, b: nnc.stack([a < b, a <= b, a > b, a >= b, a == b, a != b]),
                    lambda a, b: np.stack([a < b, a <= b, a > b, a >= b, a == b, a != b])),
    "negative": (lambda a, b: -a, lambda a, b: -a), "abs": (lambda a, b: abs(a), lambda a, b: np.abs(a)),
    "sign": (lambda a, b: nnc.sign(a), lambda a, b: np.sign(a)),
    "exp and log": (lambda a, b: nnc.log(nnc.exp(a) + 1), lambda a, b: np.log(np.exp(a) + 1)),
    "sqrt": (lambda a, b: nnc.sqrt(nnc.abs(a)), lambda a, b: np.sqrt(np.abs(a))),
    "sin and cos": (lambda a, b: nnc.sin(a) + nnc.cos(b), lambda a, b: np.sin(a) + np.cos(b)),
    "tanh": (lambda a, b: nnc.tanh(a), lambda a, b: np.tanh(a)),
    "sigmoid": (lambda a, b: nnc.sigmoid(a), lambda a, b: scipy.special.expit(a)),
    "relu": (lambda a, b: nnc.relu(a), lambda a, b: np.maximum(a, 0)),
    "square": (lambda a, b: nnc.square(a), lambda a, b: np.square(a)),
    "isnan": (lambda a, b: nnc.isnan(a / (a * 0)), lambda a, b: np.isnan(a / (a * 0))),
    "where": (lambda a, b: nnc.where(a > b, a, 1.5), lambda a, b: np.where(a > b, a, np.float32(1.5))),
    "clip": (lambda a, b: a.clip(-1, 1), lambda a, b: a.clip(-1, 1)),
    "clip from below": (lambda a, b: nnc.clip(a, 0.25), lambda a, b: np.maximum(a, np.float32(0.25))),
    "clip from above": (lambda a, b: nnc.clip(a, max=b), lambda a, b: np.minimum(a, b)),
    "astype": (lambda a, b: a.astype("int32"), lambda a, b: a.astype(np.int32)),
    "sum": (lambda a, b: a.sum(), lambda a, b: a.sum()),
    "sum over an axis": (lambda a, b: a.sum(0), lambda a, b: a.sum(0)),
    "sum over negative axes": (lambda a, b: nnc.sum(a, axis=(-1, 0), keepdims=True),
                               lambda a, b: a.sum((-1, 0), keepdims=True)),
    "mean": (lambda a, b: a.mean(axis=1), lambda a, b: a.mean(axis=1)),
    "max and min": (lambda a, b: a.max(0) - b.min(0), lambda a, b: a.max(0) - b.min(0)),
    "argmax": (lambda a, b: a.argmax(1), lambda a, b: a.argmax(1)),
    "argmin of all": (lambda a, b: nnc.argmin(a, keepdims=True), lambda a, b: np.argmin(a, keepdims=True)),
    "all and any": (lambda a, b: nnc.stack([(a > 0).all(0), (a > 0).any(0), nnc.any(a, axis=0)]),
                    lambda a, b: np.stack([(a > 0).all(0), (a > 0).any(0), np.any(a, axis=0)])),
    "matmul": (lambda a, b: a @ b.T, lambda a, b: a @ b.T),
    "matmul of vectors": (lambda a, b: a[0] @ b[1], lambda a, b: a[0] @ b[1]),
    "matmul of matrix and vector": (lambda a, b: a @ b[0], lambda a, b: a @ b[0]),
    "matmul of vector and matrices": (lambda a, b: nnc.matmul(a[:, 0], nnc.stack([b, a])),
                                      lambda a, b: np.matmul(a[:, 0], np.stack([b, a]))),
    "batched matmul": (lambda a, b: nnc.expand_dims(a) @ nnc.stack([b.T, a.T]),
                       lambda a, b: a[None] @ np.stack([b.T, a.T])),
    "reshape": (lambda a, b: a.reshape(3, -1), lambda a, b: a.reshape(3, -1)),
    "flatten": (lambda a, b: a.flatten(), lambda a, b: a.flatten()),
    "transpose": (lambda a, b: a.transpose(1, 0), lambda a, b: a.transpose(1, 0)),
    "matrix_transpose": (lambda a, b: nnc.stack([a, b]).mT, lambda a, b: np.stack([a, b]).swapaxes(1, 2)),
    "permute_dims": (lambda a, b: nnc.permute_dims(nnc.stack([a, b]), (2, 0, -2)),
                     lambda a, b: np.transpose(np.stack([a, b]), (2, 0, 1))),
    "broadcast_to": (lambda a, b: nnc.broadcast_to(a, (2, 2, 3)), lambda a, b: np.broadcast_to(a, (2, 2, 3))),
    "broadcast_arrays": (lambda a, b: nnc.concat(nnc.broadcast_arrays(a, b[0])),
                         lambda a, b: np.concatenate(np.broadcast_arrays(a, b[0]))),
    "expand and squeeze": (lambda a, b: nnc.expand_dims(nnc.squeeze(a[:, :1], -1), axis=-1),
                           lambda a, b: np.expand_dims(np.squeeze(a[:, :1], -1), -1)),
    "flip": (lambda a, b: nnc.flip(a, axis=-1), lambda a, b: np.flip(a, -1)),
    "flip of all": (lambda a, b: nnc.flip(a), lambda a, b: np.flip(a)),
    "concat": (lambda a, b: nnc.concat([a, b], axis=-1), lambda a, b: np.concatenate([a, b], -1)),
    "concat flat": (lambda a, b: nnc.concat([a, b[0]], axis=None), lambda a, b: np.concatenate([a, b[0]], None)),
    "stack": (lambda a, b: nnc.stack([a, b], axis=-1), lambda a, b: np.stack([a, b], -1)),
    "pad": (lambda a, b: nnc.pad(a, ((1, 0), (0, 2)), value=7), lambda a, b: np.pad(a, ((1, 0), (0, 2)),
                                                                                   constant_values=7)),
    "pad all round": (lambda a, b: nnc.pad(a, 1), lambda a, b: np.pad(a, 1)),
    "take": (lambda a, b: nnc.take(a, [2, 0, -1], axis=1), lambda a, b: np.take(a, [2, 0, -1], 1)),
    "take flat": (lambda a, b: nnc.take(a, [[5], [0]]), lambda a, b: np.take(a, [[5], [0]])),
    "softmax": (lambda a, b: nnc.softmax(a), lambda a, b: scipy.special.softmax(a, -1)),
    "log_softmax": (lambda a, b: nnc.log_softmax(a, axis=0), lambda a, b: scipy.special.log_softmax(a, 0)),
    "cross_entropy": (lambda a, b: nnc.cross_entropy(a, [2, 0]),
                      lambda a, b: -scipy.special.log_softmax(a, -1)[[0, 1], [2, 0]].mean()),
    "cross_entropy of each": (lambda a, b: nnc.cross_entropy(a, [2, 0], reduction="none"),
                              lambda a, b: -scipy.special.log_softmax(a, -1)[[0, 1], [2, 0]]),
    "cross_entropy of all": (lambda a, b: nnc.cross_entropy(a, [2, 0], reduction="sum"),
                             lambda a, b: -scipy.special.log_softmax(a, -1)[[0, 1], [2, 0]].sum()),
    "logic": (lambda a, b: nnc.logical_xor((a > 0) & (b > 0), (a < 0) | ~(b < 0)),
              lambda a, b: np.logical_xor((a > 0) & (b > 0), (a < 0) | ~(b < 0))),
    "reflected operators": (lambda a, b: 2 - a + 3 * (1 / (a + 5)) + 2 ** nnc.abs(a) + 7 // (b + 10) + 5 % (b + 10),
                            lambda a, b: 2 - a + 3 * (1 / (a + 5)) + 2 ** np.abs(a) + 7 // (b + 10) + 5 % (b + 10)),
}  # fmt: skip
MODES: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "eager": lambda f: f,
    "deferred": lambda f: lambda a, b: _recorded(f, a, b),
    "jit": lambda f: nnc.jit(lambda a, b: f(a, b)),
}


def _recorded(f: Callable[..., Any], a: nnc.Tensor, b: nnc.Tensor) -> nnc.Tensor:
    with nnc.deferred():
        y: nnc.Tensor = f(a, b)
    assert y.is_deferred
    return y


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CASES)
def test_equals_numpy(device: str, name: str, mode: str) -> None:
    ours, theirs = CASES[name]
    with np.errstate(all="ignore"):
        wanted = np.asarray(theirs(A, B))
    found = MODES[mode](ours)(nnc.asarray(A), nnc.asarray(B))
    assert found.shape == wanted.shape and found.dtype == wanted.dtype
    np.testing.assert_allclose(found.numpy(), wanted, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_images(device: str, layout: str) -> None:
    """Against loops over windows; SAME puts an odd element of padding after."""
    image = np.random.default_rng(0).uniform(-1, 1, (2, 5, 6, 2)).astype(np.float32)
    kernel = np.random.default_rng(1).uniform(-1, 1, (2, 3, 2, 3)).astype(np.float32)
    padded = np.pad(image, ((0, 0), (0, 1), (1, 1), (0, 0)))
    wanted = np.empty((2, 5, 3, 3), np.float32)
    for i in range(5):
        for j in range(3):
            wanted[:, i, j] = np.einsum("nhwc,hwco->no", padded[:, i : i + 2, 2 * j : 2 * j + 3], kernel)
    x, k = nnc.asarray(image), nnc.asarray(kernel)
    if layout == "NCHW":
        x, k = nnc.permute_dims(x, (0, 3, 1, 2)), nnc.permute_dims(k, (3, 2, 0, 1))
    y = nnc.conv2d(x, k, padding=((0, 1), (1, 1)), strides=(1, 2), layout=layout)
    pooled = nnc.max_pool2d(x, 2, layout=layout)
    y, pooled = (nnc.permute_dims(t, (0, 2, 3, 1)) if layout == "NCHW" else t for t in (y, pooled))
    np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(pooled.numpy(), image[:, :4].reshape(2, 2, 2, 3, 2, 2).max((2, 4)))
    assert nnc.conv2d(x, k, padding="SAME", layout=layout).shape == ((2, 5, 6, 3) if layout == "NHWC" else (2, 3, 5, 6))


def test_average_pools_leave_padding_out_unless_told(device: str) -> None:
    x = nnc.ones((1, 2, 2, 1))
    assert nnc.avg_pool2d(x, 2, strides=1, padding=1).tolist() == nnc.ones((1, 3, 3, 1)).tolist()
    counted = nnc.avg_pool2d(x, 2, strides=1, padding=1, count_padding=True).reshape(3, 3)
    assert counted.tolist() == [[0.25, 0.5, 0.25], [0.5, 1.0, 0.5], [0.25, 0.5, 0.25]]


def test_booleans_are_counted_as_integers(device: str) -> None:
    t = nnc.asarray(T)
    assert nnc.sum(t).item() == 3 and nnc.sum(t).dtype == nnc.int64 and nnc.mean(t).item() == 0.5
    assert nnc.sum(t, dtype="float32").dtype == nnc.float32


@pytest.mark.parametrize("mode", ["eager", "deferred", "compiled"])
def test_negative_powers_of_integers_are_rounded_towards_zero(mode: str, device: str) -> None:
    bases, exponents = nnc.asarray([0, 1, -1, -1, 2, -7, 3]), nnc.asarray([-1, -3, -2, -3, -1, -5, 4])
    found = in_mode(mode, lambda a, b: a**b, bases, exponents)
    assert found.dtype == nnc.int64 and found.tolist() == [0, 1, 1, -1, 0, 0, 81]
    assert in_mode(mode, lambda b: 2**b, exponents).tolist() == [0, 0, 0, 0, 0, 0, 16]


@pytest.mark.parametrize("f", [lambda x: x**-1, lambda x: nnc.pow(x, -1), lambda x: nnc.pow([1, 2], -1)])
def test_integers_have_no_negative_powers_by_a_number(f: Any, device: str) -> None:
    x = nnc.asarray([1, 2])
    for call in (f, nnc.jit(f)):
        with fails(AttributeValueError, "int64[2] to the power of -", "test_functions.py", "astype"):
            call(x)
    assert (x**-1.0).tolist() == [1.0, 0.5] and (x**2).tolist() == [1, 4]
