"""Elementwise references against Python's numbers and against the same functions in higher precision."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.special

from nnc_core.base import dtype as dt
from nnc_core.base.dtype import FLOATS, INTEGERS
from nnc_core.operator import OPERATORS
from nnc_plugins.conformance.agreement import assert_agree
from tests.operator.host import agree, arguments, call, cases, host

FUNCTIONS = {
    "exp": np.exp, "log": np.log, "tanh": np.tanh, "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos,
    "sigmoid": lambda x: scipy.special.expit(x.astype(np.longdouble)), "relu": lambda x: np.where(x < 0, 0, x),
    "clip": lambda x, low, high: np.minimum(np.maximum(x, low), high),
    "divide": lambda a, b: a / b, "power": np.power,
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_in_higher_precision(name, rng) -> None:
    for example in cases(name, dtypes=FLOATS):
        if not (example.op.exact and example.dtype == dt.float64):  # rounding twice need not be right there
            agree(example, rng, FUNCTIONS[name])


PYTHON = {
    "floor_divide": lambda a, b: a // b if b else 0,
    "remainder": lambda a, b: a % b if b else 0,
    "power": lambda a, b: a**b if b >= 0 else a ** (b % 2) if a in (1, -1) else 0,
    "add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "multiply": lambda a, b: a * b,
    "maximum": max, "minimum": min, "negative": lambda a: -a, "abs": abs, "sign": lambda a: (a > 0) - (a < 0),
    "clip": lambda x, low, high: min(max(x, low), high), "relu": lambda x: max(x, 0),
}  # fmt: skip


@pytest.mark.parametrize("name", PYTHON)
def test_integers_are_pythons_modulo_their_range(name, rng) -> None:
    for example in cases(name, dtypes=INTEGERS):
        if example.case.label.startswith("large"):
            continue
        inputs, _ = arguments(example, rng)
        result = call(example.op, *inputs)
        together = np.broadcast_arrays(*inputs)
        exact = [PYTHON[name](*map(int, numbers)) for numbers in zip(*(x.flat for x in together), strict=True)]
        wrapped = [n % 2 ** (8 * example.dtype.itemsize) for n in exact]
        expected = np.array(wrapped, np.uint64).astype(example.dtype).reshape(result.shape)
        assert_agree(example.op, result, expected, str(example))


def test_float_remainders_are_pythons(rng) -> None:
    for example in [*cases("remainder", dtypes=(dt.float64,)), *cases("floor_divide", dtypes=(dt.float64,))]:
        if example.case.label in ("extremes", "large"):
            continue
        (a, b), _ = arguments(example, rng)
        function = (lambda x, y: x % y) if example.op.name == "remainder" else (lambda x, y: x // y)
        result = call(example.op, a, b)
        pairs = zip(*(x.flat for x in np.broadcast_arrays(a, b)), strict=True)
        expected = np.array([function(float(x), float(y)) for x, y in pairs]).reshape(result.shape)
        assert_agree(example.op, result, expected, str(example))


def test_power_of_special_floats() -> None:
    values = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, math.inf, -math.inf, math.nan, 3.0]
    for a, b in itertools.product(values, values):
        if (a, b) == (-math.inf, 0.5):  # NumPy takes the root where the exponent is one 0.5 for all
            continue
        try:
            expected = math.pow(a, b)
        except (ValueError, OverflowError):  # Python raises where IEEE 754 has a pole or no number
            odd = b == int(b) and int(b) % 2 == 1 if math.isfinite(b) else False
            expected = math.copysign(math.inf, a if odd else 1) if a == 0 else math.nan
        result = host("power", np.array(a), np.array(b))
        assert_agree(OPERATORS["power"], result, np.array(expected), f"{a} ** {b}")


COMPARISONS = {
    "equal": lambda a, b: a == b, "not_equal": lambda a, b: a != b, "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b, "greater": lambda a, b: a > b, "greater_equal": lambda a, b: a >= b,
    "logical_and": lambda a, b: a and b, "logical_or": lambda a, b: a or b, "logical_xor": lambda a, b: a != b,
}  # fmt: skip


@pytest.mark.parametrize("name", COMPARISONS)
def test_relations_are_pythons(name, rng) -> None:
    for example in cases(name, dtypes=(dt.boolean, dt.int64, dt.uint64, dt.float32)):
        if example.case.label == "large":
            continue
        (a, b), _ = arguments(example, rng)
        result = call(example.op, a, b)
        pairs = zip(*(x.flat for x in np.broadcast_arrays(a, b)), strict=True)
        expected = [bool(COMPARISONS[name](x.item(), y.item())) for x, y in pairs]
        np.testing.assert_array_equal(result.reshape(-1), np.array(expected, bool), str(example))


def test_casts_of_floats_round_towards_zero_and_saturate() -> None:
    values = [0.5, -0.5, 1.5, -1.5, 127.5, 1e3, -1e3, 3e9, -3e9, 1e30, -1e30, math.inf, -math.inf]
    for source, target in itertools.product(FLOATS, INTEGERS):
        with np.errstate(over="ignore"):
            numbers = np.array(values).astype(source)
        limits = np.iinfo(target)
        expected = [min(max(math.trunc(x), limits.min), limits.max) if math.isfinite(x)
                    else limits.max if x > 0 else limits.min for x in map(float, numbers)]  # fmt: skip
        got = host("cast", np.append(numbers, np.array(np.nan).astype(source)), dtype=target)
        assert got.tolist() == [*expected, 0], f"{source} to {target}"


def test_casts_to_booleans_ask_for_zero() -> None:
    for dtype in FLOATS:
        numbers = np.array([0.0, -0.0, 1e-7, np.nan, np.inf]).astype(dtype)
        assert host("cast", numbers, dtype=dt.boolean).tolist() == [False, False, True, True, True]
    assert host("cast", np.array([0, 256, -1]), dtype=dt.boolean).tolist() == [False, True, True]


def test_casts_of_integers_wrap() -> None:
    numbers = np.array([-1, 0, 255, 256, 2**40 + 3, -(2**63)])
    for target in INTEGERS:
        wrapped = [int(n) % 2 ** (8 * target.itemsize) for n in numbers]
        assert host("cast", numbers, dtype=target).tolist() == np.array(wrapped, np.uint64).astype(target).tolist()
