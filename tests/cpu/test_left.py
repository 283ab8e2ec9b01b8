"""Eager calls on large arrays that NumPy is slow at: the commands of graphs give what NumPy gives for small ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_cpu.device import CpuDevice
from nnc_cpu.left import CACHED, FEW_ROWS, FEWEST_ROWS, HALVES, LARGE, LEFT, MANY_HALVES, LeavesHalves

EDGES = [0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 6e-8, 300.0, -65504.0, 127.5, -128.5]


def floats(size: int, dtype: Any) -> nnc.Tensor:
    found = np.random.default_rng(3).standard_normal(size) * 3
    found[: len(EDGES)] = EDGES
    found[-len(EDGES) :] = EDGES[::-1]
    return nnc.asarray(found.astype(np.float32)).astype(dtype)


def in_parts(f: Callable[..., nnc.Tensor], *operands: nnc.Tensor, step: int = 1000) -> Any:
    """What f gives for parts that NumPy computes with."""
    size = operands[0].shape[0].__index__()
    return np.concatenate([f(*[x[i : i + step] for x in operands]).astype(nnc.float64).numpy()
                           for i in range(0, size, step)])


EXACT: dict[str, Callable[..., nnc.Tensor]] = {
    "add": lambda x, y: x + y, "subtract": lambda x, y: x - y, "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y, "number": lambda x, y: x * 2.5, "number before": lambda x, y: 1.0 - y,
    "maximum": lambda x, y: nnc.maximum(x, y), "greater": lambda x, y: x > y, "equal": lambda x, y: x == y,
    "where": lambda x, y: nnc.where(x > 0, x, y), "clip": lambda x, y: nnc.clip(x, -1.0, 1.0),
    "relu": lambda x, y: nnc.relu(x), "abs": lambda x, y: abs(x), "negative": lambda x, y: -x,
    "sqrt": lambda x, y: nnc.sqrt(abs(x)), "floor": lambda x, y: nnc.floor(x),
}  # fmt: skip


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("dtype", [nnc.float16, nnc.bfloat16], ids=str)
def test_extremes_of_many_halves(name: str, dtype: Any) -> None:
    """They are left to machine code, and are NumPy's, NaN and infinities included."""
    assert CpuDevice(machine_code=True).eager[name](np.zeros(MANY_HALVES, dtype), (0,), False) is NotImplemented
    x = floats(MANY_HALVES * 2, dtype).reshape(64, -1)
    x = x[:32] if name == "max" else nnc.where(x != x, nnc.zeros_like(x), x)
    wide, reduce = x.astype(nnc.float64).numpy(), getattr(np, name)
    for axis in (0, 1, None):
        found = getattr(nnc, name)(x, axis=axis)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found.astype(nnc.float64).numpy(), reduce(wide, axis=axis))


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("dtype", [nnc.float16, nnc.bfloat16], ids=str)
def test_many_halves_have_the_bits_of_few(name: str, dtype: Any) -> None:
    x, y, f = floats(MANY_HALVES + 7, dtype), floats(MANY_HALVES + 7, dtype)[::-1].copy(), EXACT[name]
    found = f(x, y).astype(nnc.float64).numpy()
    np.testing.assert_array_equal(found, in_parts(f, x, y))
    assert f(x, y).dtype == f(x[:4], y[:4]).dtype
    transposed = f(x[:8192].reshape(64, 128).T, y[:8192].reshape(64, 128).T)
    np.testing.assert_array_equal(transposed.T.astype(nnc.float64).numpy().reshape(-1), found[:8192])


@pytest.mark.parametrize("name", ["exp", "tanh", "sin", "log1p", "atan"])
@pytest.mark.parametrize("dtype", [nnc.float16, nnc.bfloat16], ids=str)
def test_functions_of_many_halves_are_those_of_few_within_a_rounding(name: str, dtype: Any) -> None:
    x, f = abs(floats(MANY_HALVES + 7, dtype)), getattr(nnc, name)
    rounding = 2.0**-10 if dtype == nnc.float16 else 2.0**-7
    np.testing.assert_allclose(f(x).astype(nnc.float64).numpy(), in_parts(f, x), rtol=rounding, atol=1e-7)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64", "bool"])
def test_sums_of_many_integers_are_exact(dtype: str) -> None:
    host = np.random.default_rng(1).integers(0, 2 if dtype == "bool" else 100, (LARGE // 64 + 1, 64)).astype(dtype)
    x = nnc.asarray(host)
    for axis in (None, 0, 1):
        found, wanted = nnc.sum(x, axis=axis), np.sum(host, axis=axis)
        np.testing.assert_array_equal(found.numpy(), wanted)
    assert nnc.sum(x, axis=(0, 1), keepdims=True).shape == (1, 1)
    np.testing.assert_array_equal(nnc.sum(x.T, axis=0).numpy(), np.sum(host, axis=1))


@pytest.mark.parametrize("dtype", [nnc.float16, nnc.bfloat16, nnc.float32, nnc.float64], ids=str)
def test_sums_and_means_of_many_floats(dtype: Any) -> None:
    host = np.random.default_rng(1).random((300, 200)) + 0.5
    x = nnc.asarray(host).astype(dtype)
    wanted = x.astype(nnc.float64).numpy()
    rounding = {nnc.float16: 1e-3, nnc.bfloat16: 8e-3, nnc.float32: 1e-5, nnc.float64: 1e-13}[dtype]
    for axis in (0, 1, (0, 1)):
        np.testing.assert_allclose(nnc.mean(x, axis=axis).astype(nnc.float64).numpy(), wanted.mean(axis), rounding)
        np.testing.assert_allclose(nnc.sum(x.T, axis=axis).astype(nnc.float64).numpy(), wanted.T.sum(axis), rounding)


@pytest.mark.parametrize("source", ["float32", "float64", "float16", "bfloat16", "int32"])
@pytest.mark.parametrize("target", ["int8", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "bool"])
def test_many_elements_are_converted_as_few_are(source: str, target: str) -> None:
    x = (floats(LARGE + 3, source) if source != "int32" else
         nnc.asarray(np.random.default_rng(2).integers(-(2**31), 2**31, LARGE + 3).astype(np.int32)))
    found = x.astype(target)
    assert found.dtype == nnc.asarray([1]).astype(target).dtype
    np.testing.assert_array_equal(found.astype(nnc.float64).numpy(), in_parts(lambda part: part.astype(target), x))


DRAWS: dict[str, Callable[[nnc.Generator, int], nnc.Tensor]] = {
    "uniform": lambda g, n: g.uniform(n), "float64": lambda g, n: g.uniform(n, -1.0, 3.0, dtype="float64"),
    "float16": lambda g, n: g.uniform(n, dtype="float16"), "bernoulli": lambda g, n: g.bernoulli(0.3, n),
    "integers": lambda g, n: g.integers(0, 100, n), "int8": lambda g, n: g.integers(-5, 3, n, dtype="int8"),
    "all": lambda g, n: g.integers(0, 2**32, n), "normal": lambda g, n: g.normal(n),
    "normal float64": lambda g, n: g.normal(n, dtype="float64"), "half": lambda g, n: g.normal(n, dtype="float16"),
    "exponential": lambda g, n: g.exponential(n), "gumbel": lambda g, n: g.gumbel(n, dtype="float64"),
    "laplace": lambda g, n: g.laplace(n), "logistic": lambda g, n: g.logistic(n),
    "multivariate": lambda g, n: g.multivariate_normal(nnc.zeros(2), nnc.eye(2) + 1, n),
}  # fmt: skip


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_many_numbers_begin_with_the_few_that_are_drawn_instead(draw: Callable[..., nnc.Tensor]) -> None:
    many, few = draw(nnc.Generator(5), LARGE + 9), draw(nnc.Generator(5), 1001)
    np.testing.assert_array_equal(many[:1000].astype(nnc.float64).numpy(), few[:1000].astype(nnc.float64).numpy())


def test_many_classes() -> None:
    host = np.random.default_rng(1).integers(-2, 70, LARGE // 32)
    found = nnc.one_hot(nnc.asarray(host), 64, dtype=nnc.float32).numpy()
    np.testing.assert_array_equal(found, host[:, None] == np.arange(64))


def test_parts_of_floats() -> None:
    x = floats(LARGE + 3, nnc.float32)
    mantissa, exponent = nnc.frexp(x)
    wanted = np.frexp(x.numpy())
    np.testing.assert_array_equal(mantissa.numpy(), wanted[0])
    finite = np.isfinite(x.numpy())
    np.testing.assert_array_equal(exponent.numpy()[finite], wanted[1][finite])
    np.testing.assert_array_equal(nnc.ldexp(x, 3).numpy(), np.ldexp(x.numpy(), 3))


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_convolutions_of_images(layout: str) -> None:
    """With channels last they are left to machine code, gradients too."""
    rng = np.random.default_rng(2)
    x, kernel, g = (rng.standard_normal(shape) for shape in ((2, 16, 18, 16), (3, 3, 16, 8), (2, 14, 16, 8)))
    turned = (lambda x: x) if layout == "NHWC" else lambda x: np.transpose(x, (0, 3, 1, 2))
    weights = kernel if layout == "NHWC" else np.transpose(kernel, (3, 2, 0, 1))
    eager = CpuDevice(machine_code=True).eager["conv"]
    how = ((1, 1), ((0, 0), (0, 0)), (1, 1), 1, layout)
    given = [np.ascontiguousarray(a, np.float32) for a in (turned(x), weights)]
    assert (eager(*given, *how) is NotImplemented) == (layout == "NHWC")
    seen = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (1, 2))
    expected = turned(np.einsum("nhwcij,ijco->nhwo", seen, kernel))
    ours, back = [nnc.asarray(a) for a in given], nnc.asarray(turned(g).astype(np.float32))
    np.testing.assert_allclose(nnc.conv2d(*ours, layout=layout).numpy(), expected, rtol=1e-4, atol=1e-4)
    by_kernel = nnc.grad(lambda kernel: nnc.sum(nnc.conv2d(ours[0], kernel, layout=layout) * back))(ours[1]).numpy()
    wanted = np.einsum("nhwcij,nhwo->ijco", seen, g)
    wanted = wanted if layout == "NHWC" else np.transpose(wanted, (3, 2, 0, 1))
    np.testing.assert_allclose(by_kernel, wanted, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("dtype", [nnc.float32, nnc.float64], ids=str)
def test_few_rows_of_a_large_matrix_have_the_bits_of_compiled_code(dtype: Any) -> None:
    """Libraries are slow at reading the matrix; turned ones, fewer rows and more are theirs."""
    rng = np.random.default_rng(4)
    b = nnc.asarray(rng.standard_normal((1100, CACHED // 1100 // dtype.itemsize + 8))).astype(dtype)
    for rows in (FEWEST_ROWS, FEW_ROWS):
        a = nnc.asarray(rng.standard_normal((rows, 1100))).astype(dtype)
        found = (a @ b).numpy()
        assert np.array_equal(found, nnc.jit(lambda a, b: a @ b)(a, b).numpy())
        assert np.array_equal(found, nnc.matmul(a.T.copy().T, b).numpy())
        np.testing.assert_allclose(found, a.numpy() @ b.numpy(), rtol=1e-4, atol=1e-3)
    matmul = CpuDevice(machine_code=True).eager["matmul"]
    few, many, large = np.ones((2, 1100)), np.ones((65, 1100)), np.ones((1100, 1100))
    assert matmul(few, large, False, False) is NotImplemented
    for arguments in ((few[:1], large, False, False), (many, large, False, False), (few, large, False, True),
                      (few[:, :600], large[:600, :600], False, False)):
        assert matmul(*arguments) is not NotImplemented


def test_which_kernels_are_asked_for_which_dtypes() -> None:
    add = CpuDevice(machine_code=True).eager["add"]
    assert isinstance(add, LeavesHalves)
    f32, f16, flag = np.dtype(np.float32), np.dtype(np.float16), np.dtype(bool)
    assert add.for_dtypes(f32) is add.kernel and add.for_dtypes((flag, 1, f32)) is add.kernel
    assert add.for_dtypes(((flag, 1, f32), 2, f32)) is add.kernel
    for some in (f16, (flag, 1, f16), ((flag, 1, f16), 2, f32), None):
        assert add.for_dtypes(some) is add
    assert {np.dtype(np.float16).num} < HALVES and set(LEFT) < set(CpuDevice(machine_code=True).eager)
