"""Numerical code as people write it with NumPy runs eagerly, unchanged: on tensors, compared with float64 arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc

Namespace = Any
Array = Any


def namespace_of(x: Array) -> Namespace:
    return x.__array_namespace__()


# ---- the algorithms
def standard_scaler(x: Array) -> Array:
    """As scikit-learn: constant columns are left alone."""
    xp = namespace_of(x)
    x = x.copy()
    x -= xp.mean(x, axis=0)
    scale = xp.sqrt(xp.mean(x * x, axis=0))
    scale[scale < 1e-6] = 1
    x /= scale
    return x


def k_means(x: Array, clusters: int = 3, rounds: int = 8) -> Array:
    """Lloyd's algorithm from the first points, with one-hot sums."""
    xp = namespace_of(x)
    centres = x[:clusters].copy()
    labels = xp.zeros(x.shape[0], dtype=xp.int64)
    for _ in range(rounds):
        distances = xp.sum((xp.expand_dims(x, axis=1) - centres) ** 2, axis=2)
        labels[...] = xp.argmin(distances, axis=1)
        for k in range(clusters):
            mine = xp.astype(labels == k, x.dtype)
            count = xp.sum(mine)
            if count > 0:
                centres[k] = xp.sum(x * xp.expand_dims(mine, axis=1), axis=0) / count
    return xp.concat([centres, xp.expand_dims(xp.astype(labels[: x.shape[1]], x.dtype), axis=0)])


def power_iteration(x: Array, rounds: int = 60) -> Array:
    """The largest eigenvalue of x^T x, then the second one after deflation."""
    xp = namespace_of(x)
    a = x.T @ x
    found = xp.zeros(2, dtype=x.dtype)
    for i in range(2):
        v = xp.ones(a.shape[0], dtype=x.dtype)
        v[0] = 2
        for _ in range(rounds):
            v = a @ v
            v /= xp.sqrt(xp.sum(v * v))
        found[i] = v @ (a @ v)
        a -= found[i] * xp.expand_dims(v, axis=1) * xp.expand_dims(v, axis=0)
    return found


def least_squares(x: Array, rounds: int = 200) -> Array:
    """By gradient descent with momentum, updated in place."""
    xp = namespace_of(x)
    truth = xp.arange(x.shape[1], dtype=x.dtype) - 1
    y = x @ truth
    w, velocity = xp.zeros(x.shape[1], dtype=x.dtype), xp.zeros(x.shape[1], dtype=x.dtype)
    rate = 0.5 / xp.max(xp.sum(x.T @ x, axis=0))
    for _ in range(rounds):
        velocity *= 0.8
        velocity -= rate * (x.T @ (x @ w - y))
        w += velocity
    return w


def logistic_regression(x: Array, rounds: int = 40) -> Array:
    """Newton-free: gradient ascent; probabilities are clamped by masks."""
    xp = namespace_of(x)
    y = xp.astype(xp.sum(x, axis=1) > 0, x.dtype)
    w = xp.zeros(x.shape[1], dtype=x.dtype)
    for _ in range(rounds):
        p = 1 / (1 + xp.exp(-(x @ w)))
        p[p < 1e-6] = 1e-6
        p[p > 1 - 1e-6] = 1 - 1e-6
        w += 0.1 * (x.T @ (y - p)) / x.shape[0]
    w[xp.abs(w) < 1e-3] = 0
    return w


def running_statistics(x: Array) -> Array:
    """Welford: one row at a time."""
    xp = namespace_of(x)
    mean, squares = xp.zeros_like(x[0]), xp.zeros_like(x[0])
    for count in range(x.shape[0]):
        delta = x[count] - mean
        mean += delta / (count + 1)
        squares += delta * (x[count] - mean)
    return xp.stack([mean, squares / x.shape[0]])


def one_hot_encoding(x: Array) -> Array:
    """Columns quantised, then encoded by writing to rows."""
    xp = namespace_of(x)
    levels = xp.astype(xp.clip(xp.astype(x[:, 0] * 2, xp.int64), -2, 2) + 2, xp.int64)
    encoded = xp.zeros((x.shape[0], 5), dtype=x.dtype)
    for row in range(x.shape[0]):
        encoded[row, int(levels[row])] = 1
    return encoded


def top_k(x: Array, k: int = 4) -> Array:
    """By repeated argmax, each maximum struck out."""
    xp = namespace_of(x)
    left = x.reshape(-1).copy()
    found = xp.zeros(k, dtype=x.dtype)
    for i in range(k):
        at = int(xp.argmax(left))
        found[i] = left[at]
        left[at] = -xp.inf
    return found


def clipped_relu_by_masks(x: Array) -> Array:
    y = x.copy()
    y[y < 0] = 0
    y[y > 1] = 1
    y[y == 0] -= 1
    y += 1
    return y


def jacobi(x: Array, rounds: int = 30) -> Array:
    """Solves a diagonally dominant system; writes whole slices."""
    xp = namespace_of(x)
    n = x.shape[1]
    a = x[:n] / 10
    for i in range(n):
        a[i, i] = 4.0
    b = xp.arange(n, dtype=x.dtype)
    solution = xp.zeros(n, dtype=x.dtype)
    for _ in range(rounds):
        updated = solution.copy()
        for i in range(n):
            rest = a[i] @ solution - a[i, i] * solution[i]
            updated[i] = (b[i] - rest) / a[i, i]
        solution[:] = updated
    return solution


def heat_equation(x: Array, rounds: int = 20) -> Array:
    """Explicit differences; the right side reads what the left side writes."""
    u = x.copy()
    u[0], u[-1] = 0, 1
    for _ in range(rounds):
        u[1:-1] = u[1:-1] + 0.2 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return u


def gauss_elimination(x: Array) -> Array:
    """Determinant with partial pivoting: rows are swapped by assignment."""
    xp = namespace_of(x)
    n = x.shape[1]
    a = x[:n].copy()
    sign = 1.0
    for i in range(n):
        pivot = i + int(xp.argmax(xp.abs(a[i:, i])))
        if pivot != i:
            upper, lower = a[i].copy(), a[pivot].copy()
            a[i], a[pivot], sign = lower, upper, -sign
        for j in range(i + 1, n):
            a[j] -= a[i] * (a[j, i] / a[i, i])
    product = xp.ones((), dtype=x.dtype) * sign
    for i in range(n):
        product *= a[i, i]
    return product


def monte_carlo_masks(x: Array) -> Array:
    """Where both of two conditions hold, by combining masks."""
    xp = namespace_of(x)
    inside = (x > -0.5) & (x < 0.5)
    y = xp.where(inside, x, xp.zeros_like(x))
    y[~inside] = -1
    y[(x > 1) | (x < -1)] = -2
    return y


def mask_statistics(x: Array) -> Array:
    """Elements chosen by masks."""
    xp = namespace_of(x)
    above, rows = x[x > 0], x[xp.sum(x, axis=1) > 0]
    return xp.stack([xp.sum(above), xp.mean(above), xp.sum(rows), xp.max(rows)])


def gathered_windows(x: Array) -> Array:
    """Elements chosen by pairs of index arrays."""
    xp = namespace_of(x)
    rows, columns = xp.asarray([0, 2, 4, 2]), xp.asarray([1, 0, 3, 0])
    y = x.copy()
    y[rows, columns] = 9
    return xp.concat([x[rows, columns], y[rows, columns], xp.sum(y, axis=0)])


ALGORITHMS = (
    standard_scaler, k_means, power_iteration, least_squares, logistic_regression, running_statistics,
    one_hot_encoding, top_k, clipped_relu_by_masks, jacobi, heat_equation, gauss_elimination, monte_carlo_masks,
    mask_statistics, gathered_windows,
)  # fmt: skip


def data() -> Any:
    x = np.random.default_rng(7).normal(size=(30, 4))
    x[10:20] += 3
    x[20:, 1] -= 4
    return x


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_as_numpy(device: str, algorithm: Callable[[Array], Array], dtype: str) -> None:
    host = data()
    wanted = algorithm(host.copy())
    x = nnc.asarray(host, dtype=dtype)
    result = algorithm(x)
    assert isinstance(result, nnc.Tensor) and result.dtype == np.dtype(dtype) and result.device.id == device
    rtol, atol = (2e-3, 2e-4) if dtype == "float32" else (1e-9, 1e-11)
    np.testing.assert_allclose(result.numpy(), wanted, rtol=rtol, atol=atol)
    np.testing.assert_array_equal(x.numpy(), host.astype(dtype), err_msg="the argument was changed")


def test_the_algorithms_do_not_change_numpy_arrays_either() -> None:
    """Or the comparison would say nothing about values and views."""
    for algorithm in ALGORITHMS:
        host = data()
        algorithm(host)
        np.testing.assert_array_equal(host, data(), err_msg=algorithm.__name__)
