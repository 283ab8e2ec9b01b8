"""Derivatives of functions of real numbers where they have ends, kinks and limits; of first and second order."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, log, nan, pi, sqrt
from typing import Any

import numpy as np
import pytest
import scipy.special as sp

import nnc_core as nnc

F = Callable[..., nnc.Tensor]
EULER = 0.5772156649015329

# function, arguments, first derivatives by each
EDGES: dict[str, tuple[F, tuple[float, ...], tuple[float, ...]]] = {
    "xlogy at (0, 0)": (nnc.xlogy, (0.0, 0.0), (0.0, 0.0)),
    "xlogy at (0, 2)": (nnc.xlogy, (0.0, 2.0), (log(2), 0.0)),
    "xlogy at (0, -1)": (nnc.xlogy, (0.0, -1.0), (0.0, 0.0)),
    "xlogy at (2, 0)": (nnc.xlogy, (2.0, 0.0), (-inf, inf)),
    "xlog1py at (0, -1)": (nnc.xlog1py, (0.0, -1.0), (0.0, 0.0)),
    "xlog1py at (0, 0.5)": (nnc.xlog1py, (0.0, 0.5), (log(1.5), 0.0)),
    "entr at 0": (nnc.entr, (0.0,), (inf,)),
    "hypot at the origin": (nnc.hypot, (0.0, 0.0), (0.0, 0.0)),
    "hypot far out": (nnc.hypot, (3e30, -4e30), (0.6, -0.8)),
    "atan2 at the origin": (nnc.atan2, (0.0, 0.0), (0.0, 0.0)),
    "atan2 far out": (nnc.atan2, (0.0, -1e30), (-1e-30, 0.0)),
    "logaddexp of equals": (nnc.logaddexp, (2.0, 2.0), (0.5, 0.5)),
    "logaddexp of infinities": (nnc.logaddexp, (-inf, -inf), (0.5, 0.5)),
    "logaddexp of distant numbers": (nnc.logaddexp, (1e4, -1e4), (1.0, 0.0)),
    "logaddexp2": (nnc.logaddexp2, (1.0, 0.0), (2 / 3, 1 / 3)),
    "fmax of equals": (nnc.fmax, (1.5, 1.5), (0.5, 0.5)),
    "fmax beside NaN": (nnc.fmax, (nan, 1.5), (0.0, 1.0)),
    "fmin beside NaN": (nnc.fmin, (1.5, nan), (1.0, 0.0)),
    "copysign": (nnc.copysign, (-2.0, 3.0), (-1.0, 0.0)),
    "copysign at 0": (nnc.copysign, (0.0, -1.0), (0.0, 0.0)),
    "heaviside at 0": (nnc.heaviside, (0.0, 0.25), (0.0, 1.0)),
    "heaviside beside 0": (nnc.heaviside, (1.0, 0.25), (0.0, 0.0)),
    "fmod": (nnc.fmod, (-7.5, 2.0), (1.0, 3.0)),
    "nextafter": (nnc.nextafter, (1.0, 2.0), (1.0, 0.0)),
    "rounding": (lambda x: nnc.floor(x) + nnc.ceil(x) + nnc.trunc(x) + nnc.round(x), (1.25,), (0.0,)),
    "ldexp": (lambda x: nnc.ldexp(x, -3), (5.0,), (0.125,)),
    "the mantissa": (lambda x: nnc.frexp(x).mantissa, (5.0,), (0.125,)),
    "the fraction": (lambda x: nnc.modf(x).fractional, (-2.75,), (1.0,)),
    "nan_to_num of a number": (nnc.nan_to_num, (3.0,), (1.0,)),
    "nan_to_num of NaN": (nnc.nan_to_num, (nan,), (0.0,)),
    "nan_to_num of infinity": (nnc.nan_to_num, (inf,), (0.0,)),
    "celu at 0": (nnc.celu, (0.0,), (1.0,)),
    "asin at 1": (nnc.asin, (1.0,), (inf,)),
    "acosh at 1": (nnc.acosh, (1.0,), (inf,)),
    "asinh far out": (nnc.asinh, (1e30,), (1e-30,)),
    "cbrt at 0": (nnc.cbrt, (0.0,), (inf,)),
    "rsqrt": (nnc.rsqrt, (4.0,), (-1 / 16,)),
    "sinc at 0": (nnc.sinc, (0.0,), (0.0,)),
    "sinc near 0": (nnc.sinc, (1e-4,), (-(pi**2) / 3 * 1e-4,)),
    "i1 at 0": (nnc.i1, (0.0,), (0.5,)),
    "i1e at 0": (nnc.i1e, (0.0,), (0.5,)),
    "i0e at 0": (nnc.i0e, (0.0,), (0.0,)),
    "erf far out": (nnc.erf, (30.0,), (0.0,)),
    "erfinv at 0": (nnc.erfinv, (0.0,), (sqrt(pi) / 2,)),
    "log_ndtr in the left tail": (nnc.log_ndtr, (-200.0,), (200.00499962,)),
    "log_ndtr in the right tail": (nnc.log_ndtr, (40.0,), (0.0,)),
    "logit": (nnc.logit, (0.5,), (4.0,)),
    "lgamma at 1": (nnc.lgamma, (1.0,), (-EULER,)),
    "digamma at 1": (nnc.digamma, (1.0,), (pi**2 / 6,)),
    "digamma below 0": (nnc.digamma, (-0.5,), (pi**2 / 2 + 4,)),
    "betaln": (nnc.betaln, (1.0, 1.0), (-1.0, -1.0)),
    "zeta by its argument": (lambda q: nnc.zeta(2.0, q), (1.0,), (-2 * 1.2020569031595942,)),
    "zeta by its exponent": (lambda s: nnc.zeta(s), (2.0,), (-0.9375482543158438,)),
}  # fmt: skip


def _curve_of_sinc(x: float) -> float:
    z = pi * x
    return float(-np.sin(z) * pi / x - 2 * np.cos(z) / x**2 + 2 * np.sin(z) / (pi * x**3))


SECOND: dict[str, tuple[F, float, float]] = {
    "sinc at 0": (nnc.sinc, 0.0, -(pi**2) / 3),
    "sinc beside the change of formulas": (nnc.sinc, 0.49, _curve_of_sinc(0.49)),
    "erf": (nnc.erf, 0.5, -2 * 0.5 * 2 / sqrt(pi) * np.exp(-0.25)),
    "i1 at 0": (nnc.i1, 0.0, 0.0),
    "lgamma": (nnc.lgamma, 2.5, float(sp.polygamma(1, 2.5))),
    "digamma": (nnc.digamma, 2.5, float(sp.polygamma(2, 2.5))),
    "polygamma of order 3": (lambda x: nnc.polygamma(3, x), 2.5, float(sp.polygamma(5, 2.5))),
    "atanh": (nnc.atanh, 0.5, 2 * 0.5 / (1 - 0.25) ** 2),
    "asinh": (nnc.asinh, 2.0, -2.0 / 5.0**1.5),
    "log1p": (nnc.log1p, 1.0, -0.25),
    "expm1": (nnc.expm1, -40.0, np.exp(-40.0)),
    "dawsn": (nnc.dawsn, 0.0, 0.0),
    "hypot": (lambda x: nnc.hypot(x, 3.0), 4.0, 9 / 125),
    "floor": (lambda x: nnc.floor(x) * x, 2.5, 0.0),
}  # fmt: skip


@pytest.mark.parametrize("name", EDGES)
def test_first_order_at_the_edges(device: str, name: str) -> None:
    f, at, wanted = EDGES[name]
    xs = [nnc.asarray(np.float32(v)) for v in at]
    grads = nnc.grad(f, tuple(range(len(xs))))(*xs)
    found = [g.item() for g in (grads if isinstance(grads, (tuple, list)) else (grads,))]
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=1e-37)
    for k, x in enumerate(xs):
        tangents = tuple(nnc.asarray(np.float32(k == i)) for i in range(len(xs)))
        tangent = nnc.jvp(f, tuple(xs), tangents)[1]
        if np.isfinite(wanted).all():  # an infinite slope in another direction is 0 times infinity
            np.testing.assert_allclose(tangent.item(), wanted[k], rtol=2e-5, atol=1e-37, err_msg=f"{x}")


@pytest.mark.parametrize("name", SECOND)
def test_second_order(device: str, name: str) -> None:
    f, at, wanted = SECOND[name]
    x = nnc.asarray(np.float32(at))
    for run in (lambda g: g, nnc.jit):
        found = run(nnc.grad(nnc.grad(f)))(x)
        np.testing.assert_allclose(found.item(), wanted, rtol=2e-4, atol=1e-6)


def test_gradients_in_float64_are_good_to_the_last_digits() -> None:
    """Against the closed forms, through a compiled graph."""
    x = np.linspace(-3, 3, 41)
    t = nnc.asarray(x)
    pairs: dict[str, tuple[F, Any]] = {
        "erf": (nnc.erf, 2 / sqrt(pi) * np.exp(-x * x)), "ndtr": (nnc.ndtr, np.exp(-x * x / 2) / sqrt(2 * pi)),
        "i0": (nnc.i0, sp.i1(x)), "asinh": (nnc.asinh, 1 / np.sqrt(1 + x * x)), "tan": (nnc.tan, 1 / np.cos(x) ** 2),
        "log_ndtr": (nnc.log_ndtr, np.exp(-x * x / 2 - sp.log_ndtr(x)) / sqrt(2 * pi)),
        "dawsn": (nnc.dawsn, 1 - 2 * x * sp.dawsn(x)), "exp2": (nnc.exp2, np.exp2(x) * log(2)),
    }  # fmt: skip
    for name, (f, wanted) in pairs.items():
        found = nnc.jit(nnc.grad(lambda v, f=f: nnc.sum(f(v))))(t)
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-12, atol=1e-14, err_msg=name)
