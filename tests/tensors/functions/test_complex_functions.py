"""Functions of complex numbers: by formulas in more digits, in every mode, and differentiated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from tests.tensors.ways import in_mode

Array = np.ndarray[Any, Any]
pytestmark = pytest.mark.filterwarnings("ignore:.*has no kernel on")
RNG = np.random.default_rng(11)
Z = RNG.uniform(-2, 2, (4, 5)) + 1j * RNG.uniform(-2, 2, (4, 5))
"""In all four quadrants, off the axes, on which the cuts lie."""
J, LN2, LN10 = np.clongdouble(1j), np.log(np.longdouble(2)), np.log(np.longdouble(10))


def root(z: Array) -> Array:
    """The square root in the right half-plane."""
    return np.exp(np.log(z) / 2)


FORMULAS: dict[str, Callable[[Array], Array]] = {
    "tan": lambda z: -J * (np.exp(2 * J * z) - 1) / (np.exp(2 * J * z) + 1),
    "asin": lambda z: -J * np.log(J * z + root(1 - z * z)),
    "acos": lambda z: np.arccos(np.longdouble(0)) + J * np.log(J * z + root(1 - z * z)),
    "atan": lambda z: J / 2 * (np.log(1 - J * z) - np.log(1 + J * z)),
    "sinh": lambda z: (np.exp(z) - np.exp(-z)) / 2,
    "cosh": lambda z: (np.exp(z) + np.exp(-z)) / 2,
    "asinh": lambda z: np.log(z + root(z * z + 1)),
    "acosh": lambda z: np.log(z + root(z + 1) * root(z - 1)),
    "atanh": lambda z: (np.log(1 + z) - np.log(1 - z)) / 2,
    "sinc": lambda z: (np.exp(J * PI * z) - np.exp(-J * PI * z)) / (2 * J * PI * z),
    "exp2": lambda z: np.exp(z * LN2),
    "expm1": lambda z: np.exp(z) - 1,
    "log1p": lambda z: np.log(1 + z),
    "log2": lambda z: np.log(z) / LN2,
    "log10": lambda z: np.log(z) / LN10,
    "sign": lambda z: z / np.hypot(z.real, z.imag),
}  # fmt: skip
PI = 2 * np.arccos(np.longdouble(0))


@pytest.mark.parametrize("name", FORMULAS)
def test_values(device: str, name: str) -> None:
    f = getattr(nnc, name)
    wanted = FORMULAS[name](Z.astype(np.clongdouble)).astype(complex)
    for mode in ("eager", "deferred", "compiled"):
        np.testing.assert_allclose(in_mode(mode, f, nnc.asarray(Z)).numpy(), wanted, rtol=2e-14)
    single = f(nnc.asarray(Z.astype(np.complex64)))
    assert single.dtype == nnc.complex64
    np.testing.assert_allclose(single.numpy(), wanted, rtol=2e-6)


@pytest.mark.parametrize("name", FORMULAS)
def test_derivatives(name: str) -> None:
    """The differences of a real number of all values, and of its gradient, along a direction."""
    f, rng = getattr(nnc, name), np.random.default_rng(3)
    weights, towards = rng.normal(size=(2, *Z.shape)), rng.normal(size=Z.shape) + 1j * rng.normal(size=Z.shape)

    def total(z: Any) -> Any:
        y = f(z)
        return nnc.sum(nnc.real(y) * weights[0] + nnc.imag(y) * nnc.real(y) * weights[1])

    def along(z: Any) -> Any:
        return nnc.sum(nnc.real(nnc.conj(nnc.grad(total)(z)) * towards))

    for g, slope in ((total, along), (along, lambda z: nnc.sum(nnc.real(nnc.conj(nnc.grad(along)(z)) * towards)))):
        ends = [g(nnc.asarray(Z + s * 1e-6 * towards)).item() for s in (1, -1)]
        wanted = (ends[0] - ends[1]) / 2e-6
        np.testing.assert_allclose(slope(nnc.asarray(Z)).item(), wanted, rtol=1e-5, atol=1e-6)
        _, tangent = nnc.jvp(g, (nnc.asarray(Z),), (nnc.asarray(towards),))
        np.testing.assert_allclose(tangent.item(), wanted, rtol=1e-5, atol=1e-6)


def test_rounding(device: str) -> None:
    z = np.array([0.5 + 1.5j, -2.5 - 0.5j, 1234.5678 - 0.0123j, 1e300 + 2j])
    for decimals in (0, 1, 3, -2):
        np.testing.assert_allclose(nnc.round(nnc.asarray(z), decimals).numpy(), np.round(z, decimals), rtol=1e-15)
    assert nnc.round(nnc.asarray(z[:2])).tolist() == [2j, -2 - 0j]


def test_signs() -> None:
    assert nnc.sign(nnc.asarray([0j, 3 + 4j, -2j])).tolist() == pytest.approx([0, 0.6 + 0.8j, -1j])
    assert nnc.sign(2j).tolist() == 1j and nnc.sign(-2.0).tolist() == -1
    assert nnc.sign(np.array([-3, 0])).tolist() == [-1, 0]


def test_signs_of_infinite_numbers(device: str) -> None:
    inf, nan = np.inf, np.nan
    z = [complex(inf, 1), complex(-inf, -2), complex(1, -inf), complex(inf, nan), complex(inf, inf), complex(nan, 1)]
    wanted = [1, -1, -1j, 1, complex(nan, nan), complex(nan, nan)]
    for mode in ("eager", "deferred", "compiled"):
        np.testing.assert_array_equal(in_mode(mode, nnc.sign, nnc.asarray(np.array(z))).numpy(), wanted)


@pytest.mark.parametrize("name", [n for n in FORMULAS if n not in ("sinc", "sign", "expm1")])
def test_where_numbers_end_it_is_as_numpy_has_it(name: str) -> None:
    """Infinities, NaN and zeros of both signs, which choose the side of a cut; of expm1 NumPy departs from the Array
    API, which `test_edge_values` holds it to."""
    parts = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan]
    z = np.array([[complex(a, b) for a in parts] for b in parts])
    known = {"acos": "arccos", "asin": "arcsin", "atan": "arctan", "acosh": "arccosh", "asinh": "arcsinh",
             "atanh": "arctanh"}
    with np.errstate(all="ignore"):
        wanted = getattr(np, known.get(name, name))(z)
    np.testing.assert_array_equal(getattr(nnc, name)(nnc.asarray(z)).numpy(), wanted)


@pytest.mark.parametrize("f", [
    lambda z: nnc.log1p(nnc.exp(z)), lambda z: nnc.exp(z) - 1, lambda z: nnc.log(1 + z), lambda z: nnc.log(nnc.exp(z)),
    lambda z: nnc.cosh(-z), lambda z: nnc.round(nnc.round(z)), lambda z: nnc.sign(nnc.sign(z)),
    lambda z: nnc.log2(nnc.exp2(z)), lambda z: nnc.sinh(nnc.asinh(z)), lambda z: nnc.tan(nnc.atan(-z)),
])  # fmt: skip
def test_what_real_numbers_are_rewritten_to_is_not_taken_for_complex_ones(f: Callable[[Any], Any]) -> None:
    far = nnc.asarray(Z * 3)
    np.testing.assert_allclose(nnc.jit(f)(far).numpy(), f(far).numpy(), rtol=1e-12)


STANDARD = {
    "abs": "abs", "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan",
    "atanh": "arctanh", "conj": "conj", "cos": "cos", "cosh": "cosh", "cumulative_sum": "cumsum", "exp": "exp",
    "cumulative_prod": "cumprod", "expm1": "expm1", "imag": "imag", "isfinite": "isfinite", "isinf": "isinf",
    "isnan": "isnan", "log": "log", "log10": "log10", "log1p": "log1p", "log2": "log2", "mean": "mean",
    "negative": "negative", "positive": "positive", "prod": "prod", "real": "real", "reciprocal": "reciprocal",
    "round": "round", "sign": "sign", "sin": "sin", "sinh": "sinh", "sqrt": "sqrt", "square": "square", "sum": "sum",
    "tan": "tan", "tanh": "tanh",
}  # fmt: skip
"""What the Array API 2024.12 admits complex numbers for, of one array, by NumPy's names."""


@pytest.mark.parametrize("name", STANDARD)
def test_what_the_standard_admits_complex_numbers_for_takes_them(name: str) -> None:
    x = Z[0]
    wanted = getattr(np, STANDARD[name])(x)
    found = getattr(nnc, name)(nnc.asarray(x)).numpy()
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
