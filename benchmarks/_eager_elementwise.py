"""Functions of each element."""

from __future__ import annotations

import numpy as np

import nnc_core as nnc
from benchmarks._eager import ERF, LGAMMA, Case, Operands, gelu, layer_norm, log_softmax, softmax


def elementwise(of: Operands) -> list[Case]:
    x, y, n, w, mask, x64 = of.t_a, of.t_b, of.t_i, of.t_m, of.t_bits, of.t_a64
    xs, xpos, tk, a, b, i = of.t_ordered, of.t_positive, of.t_kernel, of.a, of.b, of.i
    m, bits, ordered, a64, positive, kernel = of.m, of.bits, of.ordered, of.a64, of.positive, of.kernel
    zero = np.float32(0)
    return [
        Case("add", lambda: x + y, lambda: a + b),
        Case("exp", lambda: nnc.exp(x), lambda: np.exp(a)),
        Case("sin float64", lambda: nnc.sin(x64), lambda: np.sin(a64)),
        Case("tanh", lambda: nnc.tanh(x), lambda: np.tanh(a)),
        Case("sigmoid", lambda: nnc.sigmoid(x), lambda: 1 / (1 + np.exp(-a))),
        Case("relu", lambda: nnc.relu(x), lambda: np.maximum(a, zero)),
        Case("gelu / tanh", lambda: nnc.gelu(x), lambda: gelu(a)),
        Case("silu", lambda: nnc.silu(x), lambda: a / (1 + np.exp(-a))),
        Case("softplus", lambda: nnc.softplus(x), lambda: np.logaddexp(a, zero)),
        Case("erf", lambda: nnc.erf(x), lambda: ERF(a)),
        Case("lgamma", lambda: nnc.lgamma(xpos), lambda: LGAMMA(positive)),
        Case("remainder", lambda: x % y, lambda: a % b),
        Case("remainder ints", lambda: n % 7, lambda: i % 7),
        Case("floor_divide", lambda: x // y, lambda: a // b),
        Case("fmod", lambda: nnc.fmod(x, y), lambda: np.fmod(a, b)),
        Case("power", lambda: xpos**y, lambda: positive**b),
        Case("square", lambda: nnc.square(x), lambda: np.square(a)),
        Case("x ** 2", lambda: x**2, lambda: a**2),
        Case("rsqrt", lambda: nnc.rsqrt(xpos), lambda: 1 / np.sqrt(positive)),
        Case("floor", lambda: nnc.floor(x), lambda: np.floor(a)),
        Case("round", lambda: nnc.round(x), lambda: np.round(a)),
        Case("round 2", lambda: nnc.round(x, decimals=2), lambda: np.round(a, 2)),
        Case("isnan", lambda: nnc.isnan(x), lambda: np.isnan(a)),
        Case("isfinite", lambda: nnc.isfinite(x), lambda: np.isfinite(a)),
        Case("isinf", lambda: nnc.isinf(x), lambda: np.isinf(a)),
        Case("isclose", lambda: nnc.isclose(x, y), lambda: np.isclose(a, b)),
        Case("allclose", lambda: nnc.allclose(x, x), lambda: np.allclose(a, a)),
        Case("array_equal", lambda: nnc.array_equal(x, x), lambda: np.array_equal(a, a)),
        Case("nan_to_num", lambda: nnc.nan_to_num(x), lambda: np.nan_to_num(a)),
        Case("clip", lambda: nnc.clip(x, -1.0, 1.0), lambda: np.clip(a, -1.0, 1.0)),
        Case("sign", lambda: nnc.sign(x), lambda: np.sign(a)),
        Case("abs", lambda: nnc.abs(x), lambda: np.abs(a)),
        Case("signbit", lambda: nnc.signbit(x), lambda: np.signbit(a)),
        Case("sinc", lambda: nnc.sinc(x), lambda: np.sinc(a)),
        Case("where", lambda: nnc.where(mask, x, y), lambda: np.where(bits, a, b)),
        Case("where number", lambda: nnc.where(mask, x, 0.0), lambda: np.where(bits, a, zero)),
        Case("logaddexp", lambda: nnc.logaddexp(x, y), lambda: np.logaddexp(a, b)),
        Case("heaviside", lambda: nnc.heaviside(x, 0.5), lambda: np.heaviside(a, np.float32(0.5))),
        Case("frexp", lambda: nnc.frexp(x), lambda: np.frexp(a)),
        Case("modf", lambda: nnc.modf(x), lambda: np.modf(a)),
        Case("ldexp", lambda: nnc.ldexp(x, 3), lambda: np.ldexp(a, 3)),
        Case("nextafter", lambda: nnc.nextafter(x, y), lambda: np.nextafter(a, b)),
        Case("softmax rows", lambda: nnc.softmax(w), lambda: softmax(m)),
        Case("log_softmax rows", lambda: nnc.log_softmax(w), lambda: log_softmax(m)),
        Case("layer_norm rows", lambda: nnc.layer_norm(w), lambda: layer_norm(m)),
        Case("interp", lambda: nnc.interp(x, xs, y), lambda: np.interp(a, ordered, b)),
        Case("polyval", lambda: nnc.polyval(tk, x), lambda: np.polyval(kernel, a)),
    ]
