"""Functions of real numbers against SciPy and against NumPy in a wider format; numbers' parts against Python's own."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.special as sp

from nnc_core.base import dtype as dt
from nnc_core.base.dtype import DTYPES, FLOATS, INTEGERS, SIGNED
from nnc_core.operator import OPERATORS
from nnc_plugins.conformance.agreement import assert_agree, same_bits
from nnc_plugins.conformance.case import float_limits
from tests.operator.host import agree, arguments, call, cases, host

WIDER = {
    "exp2": np.exp2, "expm1": np.expm1, "log1p": np.log1p, "log2": np.log2, "log10": np.log10,
    "logaddexp": np.logaddexp, "logaddexp2": np.logaddexp2, "asin": np.arcsin, "acos": np.arccos, "tan": np.tan,
    "atan": np.arctan, "atan2": np.arctan2, "sinh": np.sinh, "cosh": np.cosh, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh, "cbrt": np.cbrt, "hypot": np.hypot, "rsqrt": lambda x: 1 / np.sqrt(x),
}  # fmt: skip


@pytest.mark.parametrize("name", WIDER)
def test_functions_in_higher_precision(name, rng) -> None:
    for example in cases(name, dtypes=FLOATS):
        agree(example, rng, WIDER[name])


def _bessel(function):
    """SciPy's i0 and i1 are NaN at infinity."""
    return lambda x: np.where(np.isinf(x), np.where(function is sp.i1, x, np.inf), function(x))


def _polygamma(x, order):
    """SciPy gives the even orders a sign at their poles, and a value at -inf."""
    without = np.isneginf(x) | ((x < 0) & (x == np.floor(x)) & (order % 2 == 0))
    return np.where(without, np.nan, sp.polygamma(order, x))


def _log_gamma(x):
    """SciPy's is -inf at -inf, and infinite for subnormal numbers."""
    finite = np.where(np.abs(x) < 1e-300, -np.log(np.abs(x)), sp.gammaln(x))
    return np.where(np.isinf(x), np.inf, finite)


SCIPY = {
    "xlogy": sp.xlogy, "xlog1py": sp.xlog1py, "entr": sp.entr, "logit": sp.logit, "erf": sp.erf, "erfc": sp.erfc,
    "erfcx": sp.erfcx, "erfinv": sp.erfinv, "ndtr": sp.ndtr, "log_ndtr": sp.log_ndtr, "dawsn": sp.dawsn,
    "digamma": sp.digamma, "i0": _bessel(sp.i0), "i1": _bessel(sp.i1), "i0e": sp.i0e, "i1e": sp.i1e,
    "lgamma": _log_gamma, "zeta": sp.zeta,
    "polygamma": _polygamma,
}  # fmt: skip
LOOSE = {"erfc": 1e-13, "erfcx": 1e-13, "ndtr": 1e-12, "polygamma": 1e-13}
"""Where SciPy's own error shows in float64: beyond it tests/codegen/test_accuracy.py looks."""


@pytest.mark.parametrize("name", SCIPY)
def test_special_functions_are_scipys(name, rng) -> None:
    """In float64, whatever the dtype; SciPy's last digits are not looked at."""
    for example in cases(name, dtypes=FLOATS):
        if name == "zeta" and example.case.label == "ends":  # SciPy sums integer s below q = 0 as well
            continue
        inputs, attributes = arguments(example, rng)
        with np.errstate(all="ignore"):
            wanted = np.asarray(SCIPY[name](*(x.astype(np.float64) for x in inputs), **attributes))
            got = call(example.op, *inputs, *attributes.values())
            rounded = wanted.astype(got.dtype)
        if got.dtype != dt.float64:
            assert_agree(example.op, got, rounded, str(example))
        else:
            limit = LOOSE.get(name, 2e-14)
            np.testing.assert_allclose(got, wanted, rtol=limit, atol=limit, err_msg=str(example))


def test_sinc_is_the_quotient(rng) -> None:
    for example in cases("sinc", dtypes=FLOATS):
        (x,), _ = arguments(example, rng)
        with np.errstate(all="ignore"):
            z = x.astype(np.float64) * np.pi
            wanted = np.where(z == 0, 1, np.sin(z) / np.where(z == 0, 1, z))
        limit = 8 * float(float_limits(x.dtype).eps)
        inside = np.abs(z) < 1e4
        got = call(example.op, x).astype(np.float64)
        np.testing.assert_allclose(got[inside], wanted[inside], rtol=limit, atol=limit)
        wide = dt.accumulator(x.dtype).type
        with np.errstate(all="ignore"):
            assert (np.isnan(got) == ~np.isfinite(x.astype(wide) * wide(np.pi))).all()  # as NumPy's


def test_the_zeta_functions_ends() -> None:
    s = np.array([1.0, -1.5, 0.5, 2.0, 2.0, 2.0, 3.0, np.inf, np.inf, np.nan, 4.0, 1e300, 1e300, 0.5])
    q = np.array([1.0, 1.0, -1.0, 0.0, -3.0, -0.5, 1.0, 1.0, 2.0, 1.0, np.nan, 1.0, 0.5, np.inf])
    wanted = np.array([np.inf, np.nan, np.nan, np.inf, np.inf, np.nan, 1.2020569031595942, 1.0, 0.0, np.nan, np.nan,
                       1.0, np.inf, -np.inf])
    np.testing.assert_allclose(host("zeta", s, q), wanted, rtol=1e-15)


def test_the_zeta_function_below_one_continues_its_sum() -> None:
    """At 0 and -1 it is a polynomial, and everywhere that of q + 1 lacks a term; for q = 1 SciPy has it."""
    q = np.array([1e-3, 0.1, 0.5, 1, 2.5, 40, 1e5])
    np.testing.assert_allclose(host("zeta", np.zeros(7), q), 0.5 - q, rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(host("zeta", np.full(7, -1.0), q), (q - q * q - 1 / 6) / 2, rtol=1e-12)
    for s in (-0.9, -0.3, 0.2, 0.7, 0.999):
        exponent = np.full(7, s)
        np.testing.assert_allclose(host("zeta", exponent, q) - host("zeta", exponent, q + 1), q**-s, rtol=1e-7)
        np.testing.assert_allclose(host("zeta", np.array([s]), np.array([1.0])), sp.zeta(s), rtol=3e-13)


def test_betaln_is_scipys_above_zero(rng) -> None:
    for example in cases("betaln", dtypes=(dt.float32, dt.float64)):
        (a, b), _ = arguments(example, rng)
        with np.errstate(all="ignore"):
            got = call(example.op, a, b)
            wanted = sp.betaln(a.astype(np.float64), b.astype(np.float64)).astype(got.dtype)
        above = (a >= 1e-300) & (b >= 1e-300) & ~np.isnan(wanted)  # SciPy's overflows for smaller and very large ones
        limit = 1e-12 if got.dtype == dt.float64 else 2e-6
        np.testing.assert_allclose(got[above], wanted[above], rtol=limit, atol=limit, err_msg=str(example))


def test_betaln_of_large_numbers_does_not_cancel() -> None:
    """B(n, 1) = 1 / n and B(n, 2) = 1 / (n (n + 1)); the plain difference of logarithms is off by 1e-5 at 1e11."""
    n = 10.0 ** np.arange(1, 12)
    np.testing.assert_allclose(host("betaln", n, np.ones(11)), -np.log(n), rtol=1e-14)
    np.testing.assert_allclose(host("betaln", np.full(11, 2.0), n), -np.log(n) - np.log1p(n), rtol=1e-14)


ROUNDED = {"floor": math.floor, "ceil": math.ceil, "trunc": math.trunc, "round": round}


@pytest.mark.parametrize("name", ROUNDED)
def test_rounding_is_pythons(name, rng) -> None:
    for example in cases(name, dtypes=FLOATS):
        (x,), _ = arguments(example, rng)
        numbers = [float(v) for v in x.ravel()]
        wanted = [math.copysign(ROUNDED[name](v), v) if math.isfinite(v) else v for v in numbers]
        assert same_bits(call(example.op, x), np.array(wanted).astype(x.dtype).reshape(x.shape)).all(), str(example)


INTEGER = {
    "floor": int, "ceil": int, "trunc": int, "round": int, "gcd": math.gcd, "lcm": math.lcm, "fmax": max, "fmin": min,
    "fmod": lambda a, b: int(math.copysign(1, a)) * (abs(a) % abs(b)) if b else 0,
    "bitwise_and": lambda a, b: a & b, "bitwise_or": lambda a, b: a | b, "bitwise_xor": lambda a, b: a ^ b,
    "bitwise_invert": lambda a: ~a,
}  # fmt: skip


@pytest.mark.parametrize("name", INTEGER)
def test_integers_are_pythons_modulo_their_range(name, rng) -> None:
    for example in cases(name, dtypes=INTEGERS):
        if example.case.label == "large":
            continue
        inputs, _ = arguments(example, rng)
        together = np.broadcast_arrays(*inputs)
        exact = [INTEGER[name](*map(int, numbers)) for numbers in zip(*(x.flat for x in together), strict=True)]
        wrapped = [n % 2 ** (8 * example.dtype.itemsize) for n in exact]
        wanted = np.array(wrapped, np.uint64).astype(example.dtype).reshape(together[0].shape)
        assert_agree(example.op, call(example.op, *inputs), wanted, str(example))


@pytest.mark.parametrize("name", ["bitwise_left_shift", "bitwise_right_shift"])
def test_shifts_are_pythons_and_shift_everything_out(name, rng) -> None:
    def shifted(a: int, n: int, width: int) -> int:
        if not 0 <= n < width:
            return -1 if name == "bitwise_right_shift" and a < 0 else 0
        return (a << n if name == "bitwise_left_shift" else a >> n) % 2**width

    for example in cases(name, dtypes=INTEGERS):
        (a, n), _ = arguments(example, rng)
        width = 8 * example.dtype.itemsize
        together = np.broadcast_arrays(a, n)
        exact = [shifted(int(x), int(k), width) % 2**width for x, k in zip(*(v.flat for v in together), strict=True)]
        wanted = np.array(exact, np.uint64).astype(example.dtype).reshape(together[0].shape)
        assert_agree(example.op, call(example.op, a, n), wanted, str(example))


def test_floats_that_are_chosen(rng) -> None:
    """fmax, fmin, heaviside and copysign of float64 are Python's; NaN loses where it can."""
    def larger(a: float, b: float) -> float:
        return b if math.isnan(a) else a if math.isnan(b) else max(a, b)

    def smaller(a: float, b: float) -> float:
        return b if math.isnan(a) else a if math.isnan(b) else min(a, b)

    def step(a: float, b: float) -> float:
        return a if math.isnan(a) else b if a == 0 else float(a > 0)

    for name, one in {"fmax": larger, "fmin": smaller, "heaviside": step, "copysign": math.copysign}.items():
        for example in cases(name, dtypes=(dt.float64,)):
            inputs, _ = arguments(example, rng)
            together = np.broadcast_arrays(*inputs)
            wanted = [one(float(a), float(b)) for a, b in zip(*(x.flat for x in together), strict=True)]
            wanted = np.array(wanted, float).reshape(together[0].shape)
            assert_agree(example.op, call(example.op, *inputs), wanted, str(example))


def test_float_remainders_are_pythons(rng) -> None:
    for example in cases("fmod", dtypes=(dt.float64,)):
        (a, b), _ = arguments(example, rng)
        together = np.broadcast_arrays(a, b)
        def one(x: float, y: float) -> float:
            return math.fmod(x, y) if math.isfinite(x) and y and y == y else math.nan
        wanted = np.array([one(float(x), float(y)) for x, y in zip(*(v.flat for v in together), strict=True)])
        assert_agree(example.op, call(example.op, a, b), wanted.reshape(together[0].shape), str(example))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_parts_of_floats_are_pythons(dtype, rng) -> None:
    for example in cases("mantissa", dtypes=(dtype,)):
        (x,), _ = arguments(example, rng)
        parts = [math.frexp(float(v)) for v in x.ravel()]
        mantissas = np.array([m for m, _ in parts]).astype(dtype).reshape(x.shape)
        assert same_bits(call(OPERATORS["mantissa"], x), mantissas).all(), str(example)
        assert call(OPERATORS["exponent"], x).ravel().tolist() == [e for _, e in parts]
        assert call(OPERATORS["signbit"], x).ravel().tolist() == [math.copysign(1, float(v)) < 0 for v in x.ravel()]


def test_scaling_rounds_once(rng) -> None:
    """Python scales in float64, exactly but for its own subnormal numbers."""
    for example in cases("ldexp", dtypes=FLOATS):
        (x, n), _ = arguments(example, rng)
        together = np.broadcast_arrays(x, n)
        exact = [_scaled(float(v), int(k)) for v, k in zip(*(a.flat for a in together), strict=True)]
        with np.errstate(all="ignore"):
            wanted = np.array(exact, float).astype(x.dtype).reshape(together[0].shape)
        assert same_bits(call(example.op, x, n), wanted).all(), str(example)


def _scaled(x: float, n: int) -> float:
    try:
        return math.ldexp(x, n)
    except OverflowError:
        return math.copysign(math.inf, x)


def test_neighbours_have_neighbouring_bits(rng) -> None:
    for dtype in FLOATS:
        if dtype == dt.float64:
            for example in cases("nextafter", dtypes=(dtype,)):
                (a, b), _ = arguments(example, rng)
                pairs = zip(*(v.flat for v in np.broadcast_arrays(a, b)), strict=True)
                wanted = np.array([math.nextafter(float(x), float(y)) for x, y in pairs])
                assert same_bits(call(example.op, a, b).ravel(), wanted).all(), str(example)
        if dtype.itemsize == 2:  # every positive number is followed by the next
            positive = np.arange(1, 2**15, dtype=np.uint16).view(dtype)
            with np.errstate(all="ignore"):
                known = positive[np.isfinite(positive.astype(np.float32))]
            upward = host("nextafter", known[:-1], np.full(known.size - 1, np.inf).astype(dtype))
            assert same_bits(upward, known[1:]).all()


def test_smallest_integers_wrap() -> None:
    for dtype in SIGNED:
        least = np.array(np.iinfo(dtype).min, dtype)
        assert host("gcd", least, np.array(0, dtype)) == least
        assert host("lcm", least, np.array(1, dtype)) == least
        assert host("fmod", least, np.array(-1, dtype)) == 0
    assert host("lcm", np.array(0, DTYPES["uint8"]), np.array(0, DTYPES["uint8"])) == 0
