"""Dots of loop nests in NumPy: products added one after the other, each with one rounding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from nnc_core.base.dtype import DType, accumulator, float32, is_integer
from nnc_core.codegen.exact_fma import add_rounded_once, fma, is_moderate, two_product, two_sum

Values = np.ndarray[Any, Any]

_HALF = 1 << 28
"""The bits of a float64 below those of a float32, at a number in the middle between two float32."""
_BELOW = (1 << 29) - 1
_FINE = 2.0**-100
"""Products of this size and more are multiples of the smallest float32."""


def running_dots(start: Values, values: Values, factors: Values) -> Iterator[Values]:
    """The start plus the products of all columns so far, after each of them: rows as an array."""
    dtype = values.dtype
    a, b = (np.ascontiguousarray(x.T.astype(accumulator(dtype), copy=False)) for x in (values, factors))
    total = np.broadcast_to(start[:, 0], a.shape[1:])
    if is_integer(dtype):
        return _integers(total, a, b)
    if accumulator(dtype) != dtype:
        return _halves(total, a, b, dtype)
    return _singles(total, a, b) if dtype == float32 else _doubles(total, a, b)


def _integers(total: Values, a: Values, b: Values) -> Iterator[Values]:
    for product in a * b:
        total = total + product
        yield total


def _halves(total: Values, a: Values, b: Values, dtype: DType) -> Iterator[Values]:
    for x, y in zip(a, b, strict=True):
        total = fma(x, y, total.astype(x.dtype)).astype(dtype)
        yield total


def _plainly(total: Values, a: Values, b: Values) -> Iterator[Values]:
    for x, y in zip(a, b, strict=True):
        total = fma(x, y, total)
        yield total


def _singles(total: Values, a: Values, b: Values) -> Iterator[Values]:
    """Products are exact in float64; sums are rounded once more to float32, which is wrong in the middle only."""
    products = np.multiply(a, b, dtype=np.float64)
    size = np.abs(products)
    if ((size < _FINE) & (size != 0)).any():
        yield from _plainly(total, a, b)
        return
    for product in products:
        wide = product + total
        rounded = wide.astype(float32)
        middle = (wide.view(np.int64) & _BELOW) == _HALF
        if middle.any():
            rounded[middle] = add_rounded_once(product[middle], total[middle].astype(np.float64))
        total = rounded
        yield total


def _doubles(total: Values, a: Values, b: Values) -> Iterator[Values]:
    """The error of the rounded sum is added to it, where the error's own rounding cannot matter."""
    if not all((is_moderate(x) | (x == 0)).all() for x in (a, b)):
        yield from _plainly(total, a, b)
        return
    high, low = two_product(a, b)
    for place in range(len(a)):
        near, error = two_sum(total, high[place])
        rest = error + low[place]
        rounded = near + rest
        slack = np.abs(rest) * 2.0**-52
        doubtful = (near + (rest - slack)) != (near + (rest + slack))
        if doubtful.any():
            rounded[doubtful] = fma(a[place][doubtful], b[place][doubtful], total[doubtful])
        total = rounded
        yield total
