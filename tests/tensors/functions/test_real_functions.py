"""Functions of real numbers, rounding and bits: the public faces against NumPy and SciPy, on each device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special as sp

import nnc_core as nnc
from tests.tensors.faults import fails

A = np.array([[0.5, -1.25, 2.0], [3.0, -0.75, 0.0]], np.float32)
B = np.array([[1.0, 2.0, -3.0], [0.5, 4.0, 1.5]], np.float32)
P = np.array([[0.5, 1.25, 2.0], [3.0, 0.75, 9.0]], np.float32)
U = np.array([[0.5, -0.25, 0.9], [0.125, -0.99, 0.0]], np.float32)
N = np.array([np.nan, np.inf, -np.inf, 1.5, -0.0], np.float32)
K = np.array([[12, -18, 7], [0, 5, -1]], np.int32)
J = np.array([[8, 27, -14], [3, 0, 2]], np.int32)
T = np.array([True, False, True])



def _of_bits(a: Any, b: Any) -> Any:
    return ((a & b) | (a ^ 5)) + (~b << 2) - (a >> 1) + (1 << (b & 3)) + (6 & a) - (9 | b)


CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[np.ndarray, ...]]] = {
    **{name: (getattr(nnc, name), getattr(np, name), (A,)) for name in (
        "tan", "atan", "sinh", "cosh", "asinh", "exp2", "expm1", "cbrt", "floor", "ceil", "trunc", "round", "signbit",
        "isfinite", "isinf", "isposinf", "isneginf", "sinc", "deg2rad", "rad2deg", "i0", "reciprocal")},
    **{name: (getattr(nnc, name), getattr(np, name), (U,)) for name in ("asin", "acos", "atanh", "log1p")},
    **{name: (getattr(nnc, name), getattr(np, name), (P,)) for name in ("log2", "log10")},
    "acosh": (nnc.acosh, np.acosh, (P + 1,)), "rsqrt": (nnc.rsqrt, lambda x: 1 / np.sqrt(x), (P,)),
    **{name: (getattr(nnc, name), getattr(np, name), (A, B)) for name in (
        "atan2", "logaddexp", "logaddexp2", "hypot", "fmod", "copysign", "nextafter", "fmax", "fmin", "heaviside")},
    **{f"{name} of special numbers": (getattr(nnc, name), getattr(np, name), (N,)) for name in (
        "isfinite", "isinf", "isposinf", "isneginf", "floor", "round", "signbit", "nan_to_num", "atan", "tan")},
    **{name: (getattr(nnc, name), getattr(np, name), (K, J)) for name in (
        "bitwise_and", "bitwise_or", "bitwise_xor", "gcd", "lcm", "fmod", "fmax")},
    "bitwise_invert": (nnc.bitwise_invert, np.bitwise_invert, (K,)),
    "shifts": (lambda a, b: nnc.bitwise_left_shift(a, b & 7) + nnc.bitwise_right_shift(a, b & 7),
               lambda a, b: np.left_shift(a, b & 7) + np.right_shift(a, b & 7), (K, J)),
    "operators of integers": (_of_bits, _of_bits, (K, J)),
    "operators of booleans": (lambda t: (t & ~t) | (t ^ True), lambda t: (t & ~t) | (t ^ True), (T,)),
    **{f"{name} of integers": (getattr(nnc, name), getattr(np, name), (K,)) for name in (
        "floor", "round", "trunc", "isfinite", "isinf", "nan_to_num")},
    "decimals": (lambda x: nnc.round(x, 1) + nnc.round(x * 77, decimals=-1),
                 lambda x: np.round(x, 1) + np.round(x * 77, -1), (A,)),
    "the method round": (lambda x: x.round(1) + x.round(), lambda x: x.round(1) + x.round(), (A,)),
    "integers to tens": (lambda x: nnc.round(x * 5, -1) + nnc.round(x, 2),
                         lambda x: np.round(x * 5, -1) + np.round(x, 2), (K,)),
    "ldexp": (nnc.ldexp, np.ldexp, (A, J)),
    "frexp": (lambda x: nnc.frexp(x).mantissa, lambda x: np.frexp(x)[0], (A,)),
    "the exponent of frexp": (lambda x: nnc.frexp(x).exponent, lambda x: np.frexp(x)[1], (A,)),
    "modf": (lambda x: nnc.modf(x).fractional * 8 + nnc.modf(x).integral,
             lambda x: np.modf(x)[0] * 8 + np.modf(x)[1], (A,)),
    "modf of special numbers": (lambda x: 1 / nnc.modf(x).fractional + nnc.modf(x)[1],
                                lambda x: 1 / np.modf(x)[0] + np.modf(x)[1], (N,)),
    "nan_to_num with numbers": (lambda x: nnc.nan_to_num(x, nan=7.0, posinf=8, neginf=-9.0),
                                lambda x: np.nan_to_num(x, nan=7.0, posinf=8, neginf=-9.0), (N,)),
    "isclose": (nnc.isclose, np.isclose, (N, np.array([np.nan, np.inf, np.inf, 1.50001, 0], np.float32))),
    "isclose with NaN": (lambda a: nnc.isclose(a, a, equal_nan=True), lambda a: np.isclose(a, a, equal_nan=True), (N,)),
    "isclose of integers": (lambda a, b: nnc.isclose(a, b, rtol=0.5), lambda a, b: np.isclose(a, b, rtol=0.5), (K, J)),
    "allclose": (lambda a: nnc.allclose(a, a + 1e-7), lambda a: np.asarray(np.allclose(a, a + 1e-7)), (A,)),
    "array_equal": (lambda a: nnc.array_equal(a, a + 0), lambda a: np.asarray(np.array_equal(a, a)), (A,)),
    "array_equal with NaN": (lambda a: nnc.array_equal(a, a, equal_nan=True), lambda a: np.asarray(True), (N,)),
    "array_equal of other shapes": (lambda a: nnc.array_equal(a, a[:1]), lambda a: np.asarray(False), (A,)),
    **{name: (getattr(nnc, name), getattr(sp, name), (A,)) for name in (
        "erf", "erfc", "erfcx", "ndtr", "log_ndtr", "i1", "i0e", "i1e", "dawsn", "expit", "gammaln", "digamma")},
    "lgamma": (nnc.lgamma, sp.gammaln, (P,)), "entr": (nnc.entr, sp.entr, (A,)),
    "erfinv": (nnc.erfinv, sp.erfinv, (U,)), "logit": (nnc.logit, sp.logit, (np.abs(U),)),
    "xlogy": (nnc.xlogy, sp.xlogy, (A, P)), "xlog1py": (nnc.xlog1py, sp.xlog1py, (A, P)),
    "betaln": (nnc.betaln, sp.betaln, (P, P[::-1])), "zeta": (nnc.zeta, sp.zeta, (P + 1, P[::-1])),
    "Riemann's zeta": (nnc.zeta, sp.zeta, (P + 1,)), "Riemann's zeta below 1": (nnc.zeta, sp.zeta, (1.001 - 4 * P,)),
    "polygamma": (lambda x: nnc.polygamma(2, x), lambda x: sp.polygamma(2, x).astype(np.float32), (P,)),
    "polygamma of order 0": (lambda x: nnc.polygamma(0, x), sp.digamma, (P,)),
}  # fmt: skip
MODES: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "eager": lambda f: f,
    "deferred": lambda f: lambda *xs: _recorded(f, *xs),
    "jit": lambda f: nnc.jit(lambda *xs: f(*xs)),
}


def _recorded(f: Callable[..., Any], *xs: nnc.Tensor) -> nnc.Tensor:
    with nnc.deferred():
        y: nnc.Tensor = f(*xs)
    return y


@pytest.mark.parametrize("name", CASES)
def test_equals_numpy(device: str, name: str) -> None:
    ours, theirs, inputs = CASES[name]
    with np.errstate(all="ignore"):
        wanted = np.asarray(theirs(*inputs))
    for mode in MODES if device == "cpu:0" else ("eager", "jit"):
        found = MODES[mode](ours)(*map(nnc.asarray, inputs))
        assert found.shape == wanted.shape and found.dtype == wanted.dtype, mode
        np.testing.assert_allclose(found.numpy(), wanted, rtol=3e-6, atol=1e-6, err_msg=mode)


def test_numbers_and_lists_are_operands(device: str) -> None:
    x = nnc.asarray(A)
    assert nnc.hypot(x, 3).dtype == nnc.float32 and nnc.atan2(1, x).shape == (2, 3)
    assert nnc.logaddexp([1.0, 2.0], x[:, :2]).shape == (2, 2) and nnc.erf(0.5).item() == pytest.approx(0.5204999)
    assert nnc.gcd(12, nnc.asarray(K)).tolist() == np.gcd(12, K).tolist()
    assert nnc.floor(2.5).item() == 2.0 and nnc.bitwise_and(6, 3).item() == 2


def test_integers_become_floats_of_the_default_dtype(device: str) -> None:
    x = nnc.asarray([1, 2])
    for name in ("exp2", "tan", "cbrt", "erf", "lgamma", "sinc", "reciprocal"):
        assert getattr(nnc, name)(x).dtype == nnc.float32, name
    for name in ("copysign", "logaddexp", "hypot", "betaln", "zeta"):
        assert getattr(nnc, name)(x, x).dtype == nnc.float32, name
    assert nnc.modf(x).fractional.dtype == nnc.float32
    assert nnc.floor(x).dtype == nnc.fmod(x, 2).dtype == nnc.int64
    assert nnc.reciprocal(x).tolist() == [1.0, 0.5]
    with nnc.config.using(default_float="float16"):
        assert nnc.expm1(x).dtype == nnc.ldexp(x, 1).dtype == nnc.float16


def test_float_power_is_in_float64(device: str) -> None:
    y = nnc.float_power(nnc.asarray([2, 3]), -1)
    assert y.dtype == nnc.float64 and y.tolist() == [0.5, 1 / 3]
    assert nnc.float_power(nnc.asarray(np.float32(2)), 0.5).item() == 2**0.5


def test_rounding_far_from_the_point(device: str) -> None:
    x = nnc.asarray(np.array([1e30, -2.5, np.inf, np.nan], np.float32))
    np.testing.assert_array_equal(nnc.round(x, 20).numpy(), x.numpy())  # no number that large has decimals
    np.testing.assert_array_equal(nnc.round(x, 99).numpy(), x.numpy())
    assert nnc.round(x, -40).tolist()[:3] == [0.0, -0.0, np.inf] and nnc.signbit(nnc.round(x, -40)).tolist()[1]
    whole = nnc.asarray(np.array([2**62 + 1, -5, 15, 25, 35], np.int64))
    assert nnc.round(whole, -1).tolist() == [2**62 - 4, 0, 20, 20, 40] and nnc.round(whole, -30).tolist() == [0] * 5


def test_aliases_are_the_same_functions() -> None:
    assert nnc.left_shift is nnc.bitwise_left_shift and nnc.right_shift is nnc.bitwise_right_shift
    assert nnc.invert is nnc.bitwise_not is nnc.bitwise_invert
    assert nnc.expit.__name__ == "expit" and nnc.gammaln.__name__ == "gammaln"


def test_bits_in_place(device: str) -> None:
    x = nnc.asarray([6, 3])
    x &= 3
    x |= 8
    x ^= 1
    x <<= 2
    x >>= 1
    assert x.tolist() == [((((n & 3) | 8) ^ 1) << 2) >> 1 for n in (6, 3)]


FAULTS = {
    "bits of floats": (TypeError, "bitwise_and", ("float32", "integers or booleans"), lambda x: x & x),
    "shift of floats": (TypeError, "bitwise_left_shift", ("needs integers, not float32",), lambda x: x << x),
    "shift of booleans": (TypeError, "bitwise_right_shift", ("not bool",), lambda x: (x > 0) >> (x > 0)),
    "gcd of floats": (TypeError, "gcd", ("float32", "astype"), lambda x: nnc.gcd(x, x)),
    "bits of both kinds": (TypeError, "bitwise_or", ("float32",), lambda x: x | nnc.asarray(3)),
    "fractional exponents": (TypeError, "ldexp", ("exponents are float32", "exp2"), lambda x: nnc.ldexp(x, x)),
    "shapes": (ValueError, "hypot", ("float32[2,3]", "float32[3,2]"), lambda x: nnc.hypot(x, x.T)),
    "floor of booleans": (TypeError, "floor", ("booleans",), lambda x: nnc.floor(x > 0)),
    "a string": (TypeError, "erf", ("str", "nnc.asarray"), lambda x: nnc.erf("x")),
    "order": (ValueError, "polygamma", ("order 21", "between 1 and 20"), lambda x: nnc.polygamma(21, x)),
    "order below 0": (ValueError, "polygamma", ("order -1",), lambda x: nnc.polygamma(-1, x)),
    "fractional order": (ValueError, "polygamma", ("1.5",), lambda x: nnc.polygamma(1.5, x)),
    "fractional decimals": (ValueError, "round", ("0.5",), lambda x: nnc.round(x, 0.5)),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_errors_name_operator_operands_and_line(x: nnc.Tensor, name: str) -> None:
    error, operator, parts, wrong = FAULTS[name]
    with fails(error, *parts, operator=operator):
        wrong(x)


def test_named_dimensions(device: str) -> None:
    n = nnc.Dim("n")
    x = nnc.var_arr("x", (n, 3))
    y = nnc.erf(x) + nnc.hypot(x, 1.0) * nnc.round(x, 1) + nnc.ldexp(x, 2)
    assert y.spec.shape == (n, 3) and nnc.polygamma(1, x).spec.shape == (n, 3)
    run = nnc.export({"x": x}, {"y": y}).compile(device)
    value = run(x=nnc.asarray(A))["y"].numpy()
    np.testing.assert_allclose(value, sp.erf(A) + np.hypot(A, 1) * np.round(A, 1) + np.ldexp(A, 2), rtol=1e-5)


def test_functions_of_many_examples(device: str) -> None:
    def one(row: nnc.Tensor) -> nnc.Tensor:
        return nnc.sum(nnc.lgamma(row) * nnc.polygamma(1, row)) + nnc.fmax(row[0], row[1])

    wanted = [one(nnc.asarray(row)).item() for row in P]
    np.testing.assert_allclose(nnc.vmap(one)(nnc.asarray(P)).numpy(), wanted, rtol=1e-5)
