"""Functions of numbers that ONNX says by a few of its operators, and activations."""

from __future__ import annotations

from math import log, pi
from typing import TYPE_CHECKING, Any

import numpy as np

from nnc_core.base.dtype import accumulator, is_float
from nnc_core.io.onnx.writing.dtypes import UNSIGNED_INTEGERS
from nnc_core.io.onnx.writing.held import Held
from nnc_core.io.onnx.writing.pointwise import pointwise
from nnc_core.io.onnx.writing.table import says, writes
from nnc_core.symbol import Node

if TYPE_CHECKING:
    from nnc_core.io.onnx.writing.writer import NodeWriter


def is_narrow(value: float) -> bool:
    """Tell whether an attribute, which ONNX keeps as float32, is a number exactly."""
    return float(np.float32(value)) == value


# ---- activations
@writes("silu")
def _silu(w: NodeWriter, node: Node) -> Held:
    return pointwise(w, node, lambda x: w.b.op("Mul", x, w.b.op("Sigmoid", x)))


@writes("gelu")
def _gelu(w: NodeWriter, node: Node) -> Held:
    return pointwise(w, node, lambda x: w.b.op("Gelu", x, approximate=node.attributes[0]))


def _in_float32(node: Node) -> bool:
    return node.dtype.itemsize <= 4 or is_narrow(node.attributes[0])


@writes("elu", fits=_in_float32)
def _elu(w: NodeWriter, node: Node) -> Held:
    return pointwise(w, node, lambda x: w.b.op("Elu", x, alpha=float(node.attributes[0])))


@writes("leaky_relu", fits=_in_float32)
def _leaky_relu(w: NodeWriter, node: Node) -> Held:
    return pointwise(w, node, lambda x: w.b.op("LeakyRelu", x, alpha=float(node.attributes[0])))


@says("elu")
def _elu_in_parts(F: Any, x: Any, alpha: float) -> Any:
    return F.where(F.greater(x, 0), x, F.multiply(alpha, F.expm1(F.minimum(x, 0))))


@says("leaky_relu")
def _leaky_relu_in_parts(F: Any, x: Any, slope: float) -> Any:
    return F.where(F.greater(x, 0), x, F.multiply(slope, x))


# ---- exponentials and logarithms
@says("exp2")
def _exp2(F: Any, x: Any) -> Any:
    return F.power(2.0, x)


@says("expm1")
def _expm1(F: Any, x: Any) -> Any:
    """Kahan's: (u - 1) * x / log(u) for u = exp(x), whose errors cancel."""
    u = F.exp(x)
    down = F.subtract(u, 1.0)
    near = F.less(F.abs(x), 0.5)
    flat = F.equal(u, 1.0)
    small = F.divide(F.multiply(down, x), F.log(F.where(F.logical_and(near, F.logical_not(flat)), u, 2.0)))
    return F.where(flat, x, F.where(near, small, down))


@says("log1p")
def _log1p(F: Any, x: Any) -> Any:
    """Kahan's: log(u) * x / (u - 1) for u = 1 + x, whose errors cancel."""
    u = F.add(x, 1.0)
    near = F.less(F.abs(x), 0.5)
    flat = F.equal(u, 1.0)
    whole = F.log(u)
    small = F.divide(F.multiply(whole, x), F.where(F.logical_and(near, F.logical_not(flat)), F.subtract(u, 1.0), 1.0))
    return F.where(flat, x, F.where(near, small, whole))


@says("log2")
def _log2(F: Any, x: Any) -> Any:
    return F.divide(F.log(x), log(2))


@says("log10")
def _log10(F: Any, x: Any) -> Any:
    return F.divide(F.log(x), log(10))


def _above(F: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """The larger of two numbers, and how far the other lies below it; 0 for equal infinities."""
    highest = F.maximum(a, b)
    return highest, F.where(F.equal(a, b), 0.0, F.negative(F.abs(F.subtract(a, b))))


@says("logaddexp")
def _logaddexp(F: Any, a: Any, b: Any) -> Any:
    highest, below = _above(F, a, b)
    return F.add(highest, F.log1p(F.exp(below)))


@says("logaddexp2")
def _logaddexp2(F: Any, a: Any, b: Any) -> Any:
    highest, below = _above(F, a, b)
    return F.add(highest, F.divide(F.log1p(F.power(2.0, below)), log(2)))


@says("xlogy")
def _xlogy(F: Any, a: Any, b: Any) -> Any:
    return _product_but_zero(F, a, F.log(b), b)


@says("xlog1py")
def _xlog1py(F: Any, a: Any, b: Any) -> Any:
    return _product_but_zero(F, a, F.log1p(b), b)


def _product_but_zero(F: Any, a: Any, factor: Any, b: Any) -> Any:
    nothing = F.logical_and(F.equal(a, 0), F.equal(b, b))
    return F.where(nothing, 0.0, F.multiply(a, factor))


@says("entr")
def _entr(F: Any, x: Any) -> Any:
    inside = F.greater(x, 0)
    inner = F.negative(F.multiply(x, F.log(F.where(inside, x, 1.0))))
    return F.where(F.less(x, 0), -float("inf"), F.where(F.equal(x, 0), 0.0, inner))


@says("logit")
def _logit(F: Any, x: Any) -> Any:
    near = F.logical_and(F.greater(x, 0.3), F.less(x, 0.65))
    twice = F.multiply(2.0, F.subtract(x, 0.5))
    middle = F.subtract(F.log1p(F.where(near, twice, 0.0)), F.log1p(F.negative(F.where(near, twice, 0.0))))
    return F.where(near, middle, F.log(F.divide(x, F.subtract(1.0, x))))


# ---- roots and angles
@says("rsqrt")
def _rsqrt(F: Any, x: Any) -> Any:
    return F.divide(1.0, F.sqrt(x))


@says("cbrt")
def _cbrt(F: Any, x: Any) -> Any:
    """One step of Newton's makes good for 1/3, which no float is."""
    size = F.abs(x)
    usual = F.logical_and(F.greater(size, 0), F.less(size, float("inf")))
    safe = F.where(usual, size, 1.0)
    root = F.power(safe, 1 / 3)
    better = F.subtract(root, F.divide(F.subtract(root, F.divide(safe, F.multiply(root, root))), 3.0))
    return F.where(usual, F.multiply(F.sign(x), better), x)


@says("hypot")
def _hypot(F: Any, a: Any, b: Any) -> Any:
    a, b = F.abs(a), F.abs(b)
    large, small = F.maximum(a, b), F.minimum(a, b)
    usual = F.logical_and(F.greater(large, 0), F.less(large, float("inf")))
    ratio = F.divide(small, F.where(usual, large, 1.0))
    found = F.multiply(large, F.sqrt(F.add(1.0, F.multiply(ratio, ratio))))
    infinite = F.logical_or(F.equal(a, float("inf")), F.equal(b, float("inf")))
    return F.where(infinite, float("inf"), F.where(usual, found, large))


@says("sinc")
def _sinc(F: Any, x: Any) -> Any:
    wide = F.cast(x, dtype=accumulator(x.dtype))
    middle = F.equal(wide, 0)
    angle = F.multiply(pi, F.where(middle, 1.0, wide))
    return F.cast(F.where(middle, 1.0, F.divide(F.sin(angle), angle)), dtype=x.dtype)


@says("atan2")
def _atan2(F: Any, a: Any, b: Any) -> Any:
    """The angle of the smaller part by the larger, brought to its quadrant; of zeros and infinities by their signs."""
    def sign(x: Any) -> Any:
        negative = F.logical_or(F.less(x, 0), F.less(F.divide(1.0, x), 0))
        return F.cast(F.where(negative, -1, 1), dtype=x.dtype)

    high, wide = F.abs(a), F.abs(b)
    both = F.logical_and(F.equal(high, wide), F.logical_or(F.equal(high, 0), F.equal(high, float("inf"))))
    large, small = F.maximum(high, wide), F.minimum(high, wide)
    ratio = F.where(both, F.minimum(high, 1.0), F.divide(small, F.where(F.equal(large, 0), 1.0, large)))
    angle = F.atan(ratio)
    angle = F.where(F.greater(high, wide), F.subtract(pi / 2, angle), angle)
    turned = F.where(F.less(sign(b), 0), F.subtract(pi, angle), angle)
    return F.multiply(sign(a), turned)


# ---- parts of numbers
@says("trunc")
def _trunc(F: Any, x: Any) -> Any:
    return F.where(F.less(x, 0), F.ceil(x), F.floor(x)) if is_float(x.dtype) else x


@says("floor_divide")
def _floor_divide(F: Any, a: Any, b: Any) -> Any:
    """The division of what remains without the rest, so that its quotient is whole but for rounding."""
    rest = F.remainder(a, b)
    whole = F.round(F.divide(F.subtract(a, rest), b))
    below = F.logical_xor(F.less(a, 0), F.less(b, 0))
    endless = F.logical_and(F.equal(F.abs(b), float("inf")), F.less(F.abs(a), float("inf")))
    small = F.where(F.equal(a, 0), F.divide(a, b), F.negative(F.cast(below, dtype=a.dtype)))
    return F.where(F.equal(b, 0), F.divide(a, b), F.where(endless, small, whole))


@says("remainder")
def _remainder(F: Any, a: Any, b: Any) -> Any:
    rest = F.fmod(a, b)
    opposite = F.logical_xor(F.less(rest, 0), F.less(b, 0))
    return F.where(F.logical_and(opposite, F.not_equal(rest, 0)), F.add(rest, b), rest)


def _is_nan(F: Any, x: Any) -> Any:
    return F.not_equal(x, x)


@says("fmax")
def _fmax(F: Any, a: Any, b: Any) -> Any:
    return F.where(_is_nan(F, a), b, F.where(_is_nan(F, b), a, F.maximum(a, b)))


@says("fmin")
def _fmin(F: Any, a: Any, b: Any) -> Any:
    return F.where(_is_nan(F, a), b, F.where(_is_nan(F, b), a, F.minimum(a, b)))


@says("heaviside")
def _heaviside(F: Any, a: Any, b: Any) -> Any:
    step = F.where(F.less(a, 0), 0.0, F.where(F.equal(a, 0), b, 1.0))
    return F.where(_is_nan(F, a), a, step)


# ---- bits
@writes("bitwise_left_shift", "bitwise_right_shift",
        fits=lambda node: node.dtype in UNSIGNED_INTEGERS)
def _shift(w: NodeWriter, node: Node) -> Held:
    """Counts beyond the width shift everything out."""
    width, zero = w.b.constant(8 * node.dtype.itemsize, node.dtype), w.b.constant(0, node.dtype)
    direction = node.op.name.split("_")[1].upper()

    def emit(x: str, count: str) -> str:
        inside = w.b.op("Less", count, width)
        moved = w.b.op("BitShift", x, w.b.op("Where", inside, count, zero), direction=direction)
        return w.b.op("Where", inside, moved, zero)

    return pointwise(w, node, emit)


def _unsigned(x: Any) -> Any:
    return np.dtype(f"uint{8 * x.dtype.itemsize}")


@says("bitwise_left_shift")
def _left_shift(F: Any, a: Any, b: Any) -> Any:
    """Counts below 0 are, without a sign, beyond the width."""
    moved = F.bitwise_left_shift(F.cast(a, dtype=_unsigned(a)), F.cast(b, dtype=_unsigned(b)))
    return F.cast(moved, dtype=a.dtype)


@says("bitwise_right_shift")
def _right_shift(F: Any, a: Any, b: Any) -> Any:
    """Bits shifted down; the opposite ones of negative numbers."""
    negative = F.less(a, 0)
    bits = F.cast(F.where(negative, F.bitwise_invert(a), a), dtype=_unsigned(a))
    moved = F.cast(F.bitwise_right_shift(bits, F.cast(b, dtype=_unsigned(b))), dtype=a.dtype)
    return F.where(negative, F.bitwise_invert(moved), moved)
