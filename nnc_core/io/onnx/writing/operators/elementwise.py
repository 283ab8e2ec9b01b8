"""Arithmetic, comparison, logic and casts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nnc_core.base.dtype import DType, boolean, float32, int64, is_float, is_integer, uint8
from nnc_core.io.onnx.writing.dtypes import UNSIGNED_INTEGERS
from nnc_core.io.onnx.writing.held import Held
from nnc_core.io.onnx.writing.operators.joined import added, multiplied
from nnc_core.io.onnx.writing.pointwise import computed_as, pointwise
from nnc_core.io.onnx.writing.ranges import fits, is_nan_test
from nnc_core.io.onnx.writing.table import writes
from nnc_core.symbol import Node

if TYPE_CHECKING:
    from nnc_core.io.onnx.writing.writer import NodeWriter

DIRECT = {
    "subtract": "Sub", "divide": "Div", "maximum": "Max", "minimum": "Min", "abs": "Abs", "sign": "Sign",
    "equal": "Equal", "logical_and": "And", "logical_or": "Or", "logical_xor": "Xor", "logical_not": "Not",
    "where": "Where", "exp": "Exp", "log": "Log", "tanh": "Tanh", "sigmoid": "Sigmoid", "sqrt": "Sqrt", "sin": "Sin",
    "cos": "Cos", "tan": "Tan", "asin": "Asin", "acos": "Acos", "atan": "Atan", "sinh": "Sinh", "cosh": "Cosh",
    "asinh": "Asinh", "acosh": "Acosh", "atanh": "Atanh", "erf": "Erf", "softsign": "Softsign", "mish": "Mish",
    "softplus": "Softplus",
}  # fmt: skip
"""Operators that ONNX has as we do, for all dtypes that they take."""
COMPARISONS = {"less": "Less", "less_equal": "LessOrEqual", "greater": "Greater", "greater_equal": "GreaterOrEqual"}
BITS = {"bitwise_and": ("BitwiseAnd", "And"), "bitwise_or": ("BitwiseOr", "Or"), "bitwise_xor": ("BitwiseXor", "Xor"),
        "bitwise_invert": ("BitwiseNot", "Not")}  # fmt: skip
"""Of integers and of booleans."""


@writes(*DIRECT)
def _direct(w: NodeWriter, node: Node) -> Held:
    return pointwise(w, node, lambda *names: w.b.op(DIRECT[node.op.name], *names))


@writes("add")
def _add(w: NodeWriter, node: Node) -> Held:
    return added(w, node) or pointwise(w, node, lambda a, b: w.b.op("Add", a, b))


@writes("multiply")
def _multiply(w: NodeWriter, node: Node) -> Held:
    return multiplied(w, node) or pointwise(w, node, lambda a, b: w.b.op("Mul", a, b))


@writes("negative")
def _negative(w: NodeWriter, node: Node) -> Held:
    if node.dtype in UNSIGNED_INTEGERS:
        return pointwise(w, node, lambda x: w.b.op("Sub", w.b.constant(0, node.dtype), x))
    return pointwise(w, node, lambda x: w.b.op("Neg", x))


@writes("relu")
def _relu(w: NodeWriter, node: Node) -> Held:
    if node.dtype in UNSIGNED_INTEGERS:
        return w.same(node.inputs[0])
    return pointwise(w, node, lambda x: w.b.op("Relu", x))


@writes("clip")
def _clip(w: NodeWriter, node: Node) -> Held:
    _, low, high = node.inputs
    if low.ndim == high.ndim == 0:
        return pointwise(w, node, lambda *names: w.b.op("Clip", *names))
    return pointwise(w, node, lambda x, a, b: w.b.op("Min", w.b.op("Max", x, a), b))


@writes(*COMPARISONS)
def _compare(w: NodeWriter, node: Node) -> Held:
    dtype = node.inputs[0].dtype
    known = uint8 if dtype == boolean else dtype
    return pointwise(w, node, lambda a, b: w.b.op(COMPARISONS[node.op.name], w.cast(a, dtype, known),
                                                  w.cast(b, dtype, known)))


@writes("not_equal")
def _not_equal(w: NodeWriter, node: Node) -> Held:
    if is_nan_test(node) and is_float(node.inputs[0].dtype):
        return pointwise(w, node, lambda a, _: w.b.op("IsNaN", a))
    return pointwise(w, node, lambda a, b: w.b.op("Not", w.b.op("Equal", a, b)))


@writes(*BITS)
def _bits(w: NodeWriter, node: Node) -> Held:
    name = BITS[node.op.name][node.dtype == boolean]
    return pointwise(w, node, lambda *names: w.b.op(name, *names))


# ---- division of integers: ONNX rounds towards zero, and leaves open what is divided by zero
def _divisor(w: NodeWriter, b: str, dtype: DType) -> str:
    """1 in place of 0 and, as the least integer has no opposite, of -1."""
    unsafe = w.b.op("Equal", b, w.b.constant(0, dtype))
    if dtype not in UNSIGNED_INTEGERS:
        unsafe = w.b.op("Or", unsafe, w.b.op("Equal", b, w.b.constant(-1, dtype)))
    return w.b.op("Where", unsafe, w.b.constant(1, dtype), b)


def _floored(w: NodeWriter, a: str, b: str, dtype: DType) -> str:
    divisor, zero = _divisor(w, b, dtype), w.b.constant(0, dtype)
    quotient = w.b.op("Div", a, divisor)
    if dtype not in UNSIGNED_INTEGERS:
        rest = w.b.op("Sub", a, w.b.op("Mul", quotient, divisor))
        opposite = w.b.op("Xor", w.b.op("Less", rest, zero), w.b.op("Less", divisor, zero))
        below = w.b.op("And", opposite, w.b.op("Not", w.b.op("Equal", rest, zero)))
        quotient = w.b.op("Sub", quotient, w.cast(below, boolean, dtype))
        minus_one = w.b.op("Equal", b, w.b.constant(-1, dtype))
        quotient = w.b.op("Where", minus_one, w.b.op("Neg", a), quotient)
    return w.b.op("Where", w.b.op("Equal", b, zero), zero, quotient)


@writes("floor_divide", fits=lambda node: is_integer(node.dtype))
def _floor_divide(w: NodeWriter, node: Node) -> Held:
    return pointwise(w, node, lambda a, b: _floored(w, a, b, node.dtype))


@writes("remainder", fits=lambda node: is_integer(node.dtype))
def _remainder(w: NodeWriter, node: Node) -> Held:
    return pointwise(w, node, lambda a, b: w.b.op("Mod", a, _divisor(w, b, node.dtype)))


@writes("fmod")
def _fmod(w: NodeWriter, node: Node) -> Held:
    if is_float(node.dtype):
        return pointwise(w, node, lambda a, b: w.b.op("Mod", a, b, fmod=1))
    return pointwise(w, node, lambda a, b: w.b.op("Mod", a, _divisor(w, b, node.dtype), fmod=1))


# ---- powers
@writes("power")
def _power(w: NodeWriter, node: Node) -> Held:
    if is_float(node.dtype):
        return pointwise(w, node, lambda a, b: w.b.op("Pow", a, b))
    return computed_as(w, node, int64, lambda a, b: _integer_power(w, a, b, node.dtype))


def _integer_power(w: NodeWriter, a: str, b: str, dtype: DType) -> str:
    """Powers, of which those with a negative exponent are rounded to zero, but for 1 and -1."""
    zero, one = w.b.constant(0, int64), w.b.constant(1, int64)
    power = w.b.op("Pow", a, w.b.op("Max", b, zero))
    if dtype in UNSIGNED_INTEGERS:
        return power
    odd = w.b.op("Mod", b, w.b.constant(2, int64))
    unit = w.b.op("Where", w.b.op("Equal", odd, zero), one, a)
    rounded = w.b.op("Where", w.b.op("Equal", w.b.op("Abs", a), one), unit, zero)
    return w.b.op("Where", w.b.op("Less", b, zero), rounded, power)


# ---- rounding
ROUNDING = {"floor": "Floor", "ceil": "Ceil", "round": "Round"}


@writes(*ROUNDING)
def _rounding(w: NodeWriter, node: Node) -> Held:
    if not is_float(node.dtype):
        return w.same(node.inputs[0])
    return pointwise(w, node, lambda x: w.b.op(ROUNDING[node.op.name], x))


# ---- casts
@writes("cast")
def _cast(w: NodeWriter, node: Node) -> Held:
    source, target = node.inputs[0].dtype, node.dtype
    if is_float(source) and is_integer(target) and not fits(node.inputs[0], target):
        return pointwise(w, node, lambda x: _saturated(w, x, source, target))
    return pointwise(w, node, lambda x: w.cast(x, source, target))


def _saturated(w: NodeWriter, x: str, source: DType, target: DType) -> str:
    """Floats beyond the ends of integers give the ends, NaN 0, which ONNX leaves open."""
    if source.itemsize < 4:
        x, source = w.cast(x, source, float32), float32
    limits = np.iinfo(target)
    number = w.b.op("Where", w.b.op("IsNaN", x), w.b.constant(0, source), x)
    if limits.bits < 64:
        near = w.b.op("Clip", number, *[w.b.constant(end, source) for end in (float(limits.min), float(limits.max))])
        last = w.b.op("Min", w.cast(near, source, int64), w.b.constant(limits.max, int64))
        return w.cast(last, int64, target)
    low, high = (w.b.constant(end, source) for end in (float(limits.min), float(limits.max) + 1))
    above = w.b.op("GreaterOrEqual", number, high)
    inside = w.b.op("Where", above, w.b.constant(0, source), w.b.op("Max", number, low))
    return w.b.op("Where", above, w.b.constant(limits.max, target), w.cast(inside, source, target))


@writes("copy", "identity", "stop_gradient", "of_size", "transfer")
def _same(w: NodeWriter, node: Node) -> Held:
    return w.same(node.inputs[0])
