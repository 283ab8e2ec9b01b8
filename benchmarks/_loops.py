"""Rounds of compiled loops, written once for all libraries that follow NumPy: what is carried, and the number."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

COUNT, SIZE, ROWS = 300, 64, 8
Values = np.ndarray[Any, Any]
Round = Callable[[SimpleNamespace, Any, Any], Any]
"""With the functions of a library (`xp` is its namespace), what is carried and the number of the round."""


def vector() -> Values:
    return np.random.default_rng(0).standard_normal(SIZE).astype(np.float32)


def matrix() -> Values:
    """Symmetric and positive."""
    x = np.random.default_rng(0).standard_normal((ROWS, ROWS)).astype(np.float32)
    return x @ x.T + ROWS * np.eye(ROWS, dtype=np.float32)


def complex_matrix() -> Values:
    """Hermitian."""
    x = weights()[:ROWS, :ROWS]
    return (matrix() + 1j * (x - x.T)).astype(np.complex64)


def weights() -> Values:
    return np.random.default_rng(1).standard_normal((SIZE, SIZE)).astype(np.float32) / SIZE


def kalman_filter(m: SimpleNamespace, covariance: Any, number: Any) -> Any:
    """The covariance after a prediction and a correction by half as many measurements."""
    moves, seen = m.array(MOVES), m.array(np.eye(ROWS // 2, ROWS, dtype=np.float32))
    predicted = moves @ covariance @ moves.T + m.array(0.1 * np.eye(ROWS, dtype=np.float32))
    innovation = seen @ predicted @ seen.T + m.array(np.eye(ROWS // 2, dtype=np.float32))
    gain = m.xp.linalg.solve(innovation, seen @ predicted).T
    return predicted - gain @ seen @ predicted


def gaussian_process(m: SimpleNamespace, kernel: Any, number: Any) -> Any:
    """A kernel matrix scaled by the marginal likelihood of values of ones."""
    factor = m.xp.linalg.cholesky(kernel)
    ones = m.array(np.ones((ROWS, 1), np.float32))
    weights = m.xp.linalg.solve(kernel, ones)
    likelihood = -0.5 * m.xp.sum(weights) - m.xp.sum(m.xp.log(m.xp.diagonal(factor)))
    return kernel * (1 - 0.0001 * likelihood)


MOVES = (np.eye(ROWS) * 0.9 + np.eye(ROWS, k=1) * 0.1).astype(np.float32)
PLACES = np.random.default_rng(2).integers(0, SIZE, SIZE)
WORKS: dict[str, tuple[Callable[[], Values], Round]] = {
    "c + 1": (vector, lambda m, c, i: c + 1),
    "softmax": (vector, lambda m, c, i: m.softmax(c)),
    "c @ w": (vector, lambda m, c, i: m.xp.tanh(c @ m.array(weights()))),
    "w @ c": (vector, lambda m, c, i: m.xp.tanh(m.array(weights()) @ c)),
    "c @ c, 8 x 8": (matrix, lambda m, c, i: c @ c * 0.01),
    "at[i].set": (vector, lambda m, c, i: c.at[i % SIZE].set(1.0)),
    "at[i].add": (vector, lambda m, c, i: c.at[i % SIZE].add(1.0)),
    "at[64].add": (vector, lambda m, c, i: c.at[m.array(PLACES)].add(1.0)),
    "take": (vector, lambda m, c, i: m.xp.take(c, m.array(PLACES))),
    "top_k": (vector, lambda m, c, i: c + m.xp.sum(m.top_k(c, 4)[0])),
    "searchsorted": (vector, lambda m, c, i: c + m.xp.searchsorted(m.array(np.sort(vector())), c)),
    "sort": (vector, lambda m, c, i: m.xp.sort(c)),
    "median": (vector, lambda m, c, i: c + m.xp.median(c)),
    "cholesky": (matrix, lambda m, c, i: c + m.xp.linalg.cholesky(c) * 0.0),
    "solve": (matrix, lambda m, c, i: c + m.xp.linalg.solve(c, c) * 0.0),
    "svd": (matrix, lambda m, c, i: c + m.xp.linalg.svd(c)[1] * 0.0),
    "inv": (matrix, lambda m, c, i: c + m.xp.linalg.inv(c) * 0.0),
    "qr": (matrix, lambda m, c, i: c + m.xp.linalg.qr(c)[0] * 0.0),
    "eigh": (matrix, lambda m, c, i: c + m.xp.linalg.eigh(c)[0] * 0.0),
    "complex w @ c": (complex_matrix, lambda m, c, i: m.array(complex_matrix() * 0.1) @ c),
    "complex eigh": (complex_matrix, lambda m, c, i: c + m.xp.linalg.eigh(c)[1] * 0.0),
    "complex svd": (complex_matrix, lambda m, c, i: c + m.xp.linalg.svd(c)[0] * 0.0),
    "eig": (complex_matrix, lambda m, c, i: c + m.xp.linalg.eig(c)[1] * 0.0),
    "slogdet": (matrix, lambda m, c, i: c + m.xp.linalg.slogdet(c)[1] * 0.0),
    "argsort": (vector, lambda m, c, i: c + m.xp.argsort(c) * 0.01),
    "bincount": (vector, lambda m, c, i: c + m.xp.bincount(m.array(PLACES), length=SIZE) * 0.01),
    "Kalman filter": (matrix, kalman_filter),
    "Gaussian process": (matrix, gaussian_process),
    "cond": (vector, lambda m, c, i: m.cond(m.xp.sum(c) > 0, lambda c: c - 1, lambda c: c + 1, c)),
}
