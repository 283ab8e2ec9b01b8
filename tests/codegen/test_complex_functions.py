"""Functions of complex numbers written out for loop nests: by NumPy's in more digits, and at the ends of numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from nnc_core.base.command import Command
from nnc_core.base.dtype import COMPLEX, DType, real_of
from nnc_core.base.layout import Layout
from nnc_core.codegen import expand, interpret
from nnc_core.codegen.expansions import EXPANSIONS
from nnc_core.codegen.pairs import COMPLEX_FUNCTIONS
from nnc_core.operator import OPERATORS
from nnc_core.operator.loops import elementwise_nest

Array = np.ndarray[Any, Any]
WIDE = {"complex64": np.complex128, "complex128": np.clongdouble}
NAMES = {"acos": "arccos", "asin": "arcsin", "atan": "arctan", "acosh": "arccosh", "asinh": "arcsinh",
         "atanh": "arctanh"}  # fmt: skip
OF_ONE = sorted(COMPLEX_FUNCTIONS.keys() - {"power"})
BOUND = 3.0
"""Units of the size of a result, by which either of its parts may err."""
INF, NAN = np.inf, np.nan


def values(name: str, *arrays: Array) -> Array:
    """An operator by its nest, functions of real numbers expanded."""
    dtype = real_of(arrays[0].dtype) if name == "abs" else arrays[0].dtype
    given = [np.ascontiguousarray(x) for x in (*arrays, np.empty(arrays[0].shape, dtype))]
    layouts = [Layout.packed(x.shape, x.dtype) for x in given]
    nest = elementwise_nest(OPERATORS[name].scalar, Command(name, (), tuple(layouts[:-1]), (layouts[-1],)))
    with np.errstate(all="ignore"):
        interpret(expand(nest, frozenset(EXPANSIONS)), [x.reshape(-1).view(np.uint8) for x in given])
    return given[-1]


def numpys(name: str, z: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(getattr(np, NAMES.get(name, name))(z))


def complex_of(re: Any, im: Any, dtype: DType) -> Array:
    out = np.empty(np.broadcast_shapes(np.shape(re), np.shape(im)), dtype)
    out.real, out.imag = re, im
    return out


def points(dtype: DType) -> Iterator[Array]:
    """Of ordinary size; small; near 1, near the unit circle; on the axes; at both ends of the range."""
    rng, count, limits = np.random.default_rng(5), 2000, np.finfo(dtype)

    def powers(low: float, high: float) -> Array:
        return rng.choice([-1, 1], count) * 2.0 ** rng.uniform(low, high, count)

    yield complex_of(rng.uniform(-2, 2, count), rng.uniform(-2, 2, count), dtype)
    yield complex_of(powers(-8, 4), powers(-8, 4), dtype)
    yield complex_of(powers(-60, -2), powers(-60, -2), dtype)
    yield complex_of(1 + powers(-22, -3), powers(-24, -1), dtype)
    angle, radius = rng.uniform(-np.pi, np.pi, count), 1 + powers(-20, -2)
    yield complex_of(radius * np.cos(angle), radius * np.sin(angle), dtype)
    yield complex_of(powers(-5, 5) * rng.integers(0, 2, count), powers(-5, 5) * rng.integers(0, 2, count), dtype)
    low, high = float(limits.minexp - 20), float(limits.maxexp - 1)
    yield complex_of(powers(low, high), powers(low, high), dtype)


def errors(found: Array, wanted: Array) -> Array:
    """In units of the size of the result; 0 of those below the normal numbers and beyond the largest."""
    limits = np.finfo(found.dtype)
    with np.errstate(all="ignore"):
        rounded = wanted.astype(found.dtype)
        error = np.abs(found.astype(wanted.dtype) - wanted) / np.abs(wanted) / limits.eps
    counted = np.isfinite(rounded) & (np.abs(rounded) > 8 * limits.tiny)
    return np.where(counted, np.where(np.isfinite(found), error, np.inf), 0)


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
@pytest.mark.parametrize("name", OF_ONE)
def test_errors_are_within_the_bound(name: str, dtype: DType) -> None:
    for z in points(dtype):
        wide = z.astype(WIDE[dtype.name])
        wanted, known = numpys(name, wide), np.ones(z.shape, bool)
        if name == "exp2":  # NumPy's angle is as wrong as the imaginary part is large
            known = np.abs(z.imag) < 64
        elif name == "log1p":  # where NumPy loses digits
            known = np.abs(z) > 0.3
        elif name == "expm1":
            known = np.isfinite(wanted) & (np.abs(z) > 2.0**-8)
        found = errors(values(name, z), wanted)
        worst = int(np.argmax(np.where(known, found, 0)))
        assert found[worst] < BOUND or not known[worst], f"{name}({z[worst]}) errs by {found[worst]}"


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
@pytest.mark.parametrize("name", ["expm1", "log1p"])
def test_small_numbers_keep_their_digits(name: str, dtype: DType) -> None:
    """Their series, of z alone where the rest is below the last digit."""
    z = 2.0**-9 * next(points(dtype))
    wide = z.astype(WIDE[dtype.name])
    sign = 1 if name == "expm1" else -1
    series, factor = np.zeros_like(wide), wide
    for k in range(1, 12):
        series = series + factor
        factor = factor * wide / (k + 1) if name == "expm1" else -factor * wide * k / (k + 1)
    assert sign and errors(values(name, z), series).max() < BOUND


@pytest.mark.parametrize("name", OF_ONE)
def test_where_numbers_end_it_is_as_numpy_has_it(name: str) -> None:
    """Infinities, NaN, and zeros of both signs, which choose the side of a cut."""
    parts = [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN]
    z = np.array([[complex(a, b) for a in parts] for b in parts])
    with np.errstate(all="ignore"):
        found, wanted = values(name, z), OPERATORS[name].reference(z)
    for part in ("real", "imag"):
        np.testing.assert_allclose(getattr(found, part), getattr(wanted, part), rtol=1e-15, atol=1e-15)


@pytest.mark.parametrize("name", ["sqrt", "log", "asin", "acos", "atanh", "atan", "asinh", "acosh"])
def test_zeros_choose_the_side_of_a_cut(name: str) -> None:
    z = np.array([complex(a, b) for a in (-3.0, -0.0, 0.0, 3.0) for b in (-3.0, -0.0, 0.0, 3.0)])
    found, wanted = values(name, z), numpys(name, z)
    np.testing.assert_allclose(found, wanted, rtol=4e-16)
    for part in ("real", "imag"):
        np.testing.assert_array_equal(np.signbit(getattr(found, part)), np.signbit(getattr(wanted, part)))


def test_products_of_a_large_power_and_a_small_sine_do_not_overflow() -> None:
    for dtype, far in ((np.complex64, 90.0), (np.complex128, 712.0)):
        z = np.array([far + 1e-5j, -far + 1e-5j], dtype)
        wanted = np.exp(np.longdouble(far)) * np.sin(z.imag.astype(np.longdouble))
        for name, factor in (("exp", 1), ("sinh", 2), ("cosh", 2)):
            found = values(name, z).imag.astype(np.longdouble)
            np.testing.assert_allclose(np.abs(found[0]), wanted[0] / factor, rtol=8 * float(np.finfo(dtype).eps))


def test_powers_of_whole_numbers_are_multiplied_out() -> None:
    z, n = np.meshgrid(np.array([2 + 1j, -3j, -1.5 + 0j]), np.array([-2, -1, 0, 1, 2, 3, 7]).astype(complex))
    assert (values("power", z, n) == np.power(z, n)).all()


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
def test_powers(dtype: DType) -> None:
    base, exponent = next(points(dtype)), next(points(dtype))[::-1] * 1.5
    with np.errstate(all="ignore"):
        wanted = np.power(base.astype(WIDE[dtype.name]), exponent.astype(WIDE[dtype.name]))
    assert errors(values("power", base, exponent), wanted).max() < 16


def test_powers_of_zero_and_to_zero() -> None:
    base = np.array([0, 0, 0, 0, 2 + 1j, NAN], complex)
    exponent = np.array([2.5, 1 + 1j, -1, 0, 0, 0], complex)
    np.testing.assert_array_equal(values("power", base, exponent), [0, 0, complex(NAN, NAN), 1, 1, 1])
