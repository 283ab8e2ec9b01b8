"""Positions of quantiles among sorted elements, by each of NumPy's methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from nnc_core.base.errors import AttributeValueError
from nnc_core.values.dispatch import F
from nnc_core.values.tensor import Tensor

Number = Any
"""A NumPy array or a Tensor: the formulas below are for both."""


def _floor(x: Number) -> Number:
    return x // 1.0


def _where(condition: Number, a: Number, b: Number) -> Number:
    if isinstance(condition, Tensor):
        a, b = (v._value if isinstance(v, Tensor) else v for v in (a, b))
        return Tensor(F.where(condition._value, a, b))
    return np.where(condition, a, b)


def _continuous(alpha: float, beta: float) -> Callable[[Number, Number], Number]:
    """The two parameters of Hyndman and Fan (Sample quantiles in statistical packages, 1996)."""
    return lambda n, q: n * q + (alpha + q * (1 - alpha - beta)) - 1


def _to_even(x: Number) -> Number:
    """The nearest whole number."""
    up = _floor(x + 0.5)
    odd_tie = ((up - x) == 0.5) & (up % 2.0 == 1.0)
    return _where(odd_tie, up - 1, up)


def _above_or_at(x: Number) -> Number:
    return -_floor(-x)


def _closest(n: Number, q: Number) -> Number:
    """Between two the even one, counted from 1."""
    x = n * q - 1.5
    low = _floor(x)
    return _where((x == low) & (low % 2.0 == 1.0), low, low + 1)


def _middle(n: Number, q: Number) -> Number:
    x = (n - 1) * q
    return 0.5 * (_floor(x) + _above_or_at(x))


def _averaged(n: Number, q: Number) -> Number:
    """Half-way between two, or the upper one."""
    x = n * q - 1
    low = _floor(x)
    return _where(x == low, low + 0.5, low + 1)


METHODS: dict[str, Callable[[Number, Number], Number]] = {
    "inverted_cdf": lambda n, q: _above_or_at(n * q - 1), "averaged_inverted_cdf": _averaged,
    "closest_observation": _closest, "interpolated_inverted_cdf": _continuous(0, 1),
    "hazen": _continuous(0.5, 0.5), "weibull": _continuous(0, 0), "linear": lambda n, q: (n - 1) * q,
    "median_unbiased": _continuous(1 / 3, 1 / 3), "normal_unbiased": _continuous(3 / 8, 3 / 8),
    "lower": lambda n, q: _floor((n - 1) * q), "higher": lambda n, q: _above_or_at((n - 1) * q),
    "midpoint": _middle, "nearest": lambda n, q: _to_even((n - 1) * q),
}  # fmt: skip
CHOOSING = ("inverted_cdf", "closest_observation", "lower", "higher", "nearest")
"""The methods that give one of the elements."""


class Places(NamedTuple):
    """The neighbours of quantiles and how far from the lower one to the upper one they lie."""

    low: Number
    high: Number
    weight: Number


def places(method: str, n: Number, q: Number) -> Places:
    if method not in METHODS:
        raise AttributeValueError(f"method {method!r} is none of {', '.join(METHODS)}")
    x = METHODS[method](n, q)
    low = _floor(x)
    return Places(_within(low, n), _within(low + 1, n), x - low)


def _within(index: Number, n: Number) -> Number:
    index = _where(index >= n - 1, n - 1, index)
    return _where(index <= 0, index * 0.0, index)
