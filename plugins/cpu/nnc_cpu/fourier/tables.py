"""Roots of unity, in the order in which the code of a transform reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nnc_core.base.dtype import DType
from nnc_core.operator.steps.fourier import roots_of
from nnc_cpu.fourier.factors import VECTOR, Factors
from nnc_cpu.fourier.passes import Pass

Numbers = np.ndarray[Any, Any]


def of_passes(passes: Sequence[Pass]) -> Numbers:
    """exp(-2 pi i p k / n) of each pass, for p of its butterflies and k from 1 up to its radix."""
    return np.concatenate([np.empty(0, np.complex128), *[_of_pass(made) for made in passes]])


def _of_pass(made: Pass) -> Numbers:
    if made.butterflies == 1:
        return np.empty(0, np.complex128)
    points = made.butterflies * made.radix
    p, k = np.ogrid[: made.butterflies, 1 : made.radix]
    return np.asarray(roots_of(points, False)[p * k % points].reshape(-1))


def of_matrix(factors: Factors) -> Numbers:
    """exp(-2 pi i j k / n) for frequencies k of columns and places j of rows."""
    k, j = np.ogrid[: factors.height, : factors.width]
    points = factors.height * factors.width
    return np.asarray(roots_of(points, False)[k * j % points])


def of_products(factors: Factors) -> tuple[Numbers, Numbers]:
    """The same as products: of the roots of the first places of a row, and of those that lie so far apart."""
    k, points = np.arange(factors.height)[:, None], factors.height * factors.width
    near = roots_at(points, k * np.arange(VECTOR))
    far = roots_at(points, k.T * np.arange(0, factors.width, VECTOR)[:, None])
    return near, far


def roots_at(count: int, k: Numbers) -> Numbers:
    """exp(-2 pi i k / count)."""
    k = k % count
    angles = 8 * np.arctan(np.longdouble(1)) / count * np.minimum(k, count - k)
    return np.asarray(np.cos(angles) - 1j * np.where(2 * k > count, -1, 1) * np.sin(angles), np.complex128)


def in_blocks(matrix: Numbers, lanes: int) -> Numbers:
    """A matrix by blocks of columns, in each the rows: real parts in all lanes, then imaginary ones; real numbers."""
    height, width = matrix.shape
    blocks = -(-width // lanes)
    found = np.zeros((blocks, height, 2, lanes))
    for n in range(blocks):
        part = matrix[:, n * lanes : (n + 1) * lanes]
        found[n, :, 0, : part.shape[1]], found[n, :, 1, : part.shape[1]] = part.real, part.imag
    return found.reshape(-1)


def flat(dtype: DType, *parts: Numbers) -> Numbers:
    """Numbers as real ones of a dtype, each rounded once."""
    return np.concatenate([np.ascontiguousarray(part).reshape(-1).view(np.float64).astype(dtype) for part in parts])
