"""Comparing and choosing, on one element or on all lanes at once, and the types of elements."""

from __future__ import annotations

import struct
from collections.abc import Callable
from math import nan

import numpy as np

from nnc_core.base.dtype import SIGNED, DType, accumulator, bfloat16, boolean, float16, is_float
from nnc_cpu.llvm.ir import FunctionWriter, Register

_FLOAT_ORDER = {"equal": "oeq", "not_equal": "une", "less": "olt", "less_equal": "ole", "greater": "ogt",
                "greater_equal": "oge"}
_INTEGER_ORDER = {"equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt",
                  "greater_equal": "ge"}


def held(dtype: DType) -> str:
    """The type of an element in a register."""
    if dtype == boolean:
        return "i1"
    wide = accumulator(dtype) if is_float(dtype) else dtype
    return {"float32": "float", "float64": "double"}.get(wide.name) or f"i{dtype.itemsize * 8}"


def stored(dtype: DType) -> str:
    """The type of an element in memory."""
    if dtype == boolean:
        return "i8"
    return "i16" if dtype in (float16, bfloat16) else held(dtype)


def constant(number: float | int | bool | None, dtype: DType) -> Register:
    """A number, rounded to its dtype."""
    number = 0 if number is None else number
    if dtype == boolean:
        return Register("true" if number else "false", "i1")
    if is_float(dtype):
        rounded = float(np.array(number).astype(dtype))
        return Register(f"0x{struct.unpack('<Q', struct.pack('<d', rounded))[0]:016X}", held(dtype))
    return Register(str(int(number)), held(dtype))


def is_number(x: Register) -> bool:
    """True for a constant float that is not NaN."""
    value = _float_of(x)
    return value is not None and value == value


def is_zero(x: Register) -> bool:
    """True for a constant float that is zero, of either sign."""
    return _float_of(x) == 0


def _float_of(x: Register) -> float | None:
    """The value of a constant float, the same in all lanes."""
    if x.name.startswith("%"):
        return None
    bits = x.name.strip("<>").rpartition("0x")[2]
    return float(struct.unpack("<d", int(bits, 16).to_bytes(8, "little"))[0])


class LogicWriter:
    """Writes comparisons and choices into a function."""

    def __init__(self, function: FunctionWriter) -> None:
        self.function = function

    def select(self, condition: Register, a: Register, b: Register) -> Register:
        lanes = max(condition.lanes, a.lanes, b.lanes)
        if lanes != 1:
            condition, a, b = (self.function.spread(x, lanes) for x in (condition, a, b))
        return self.function.let(f"select {condition}, {a}, {b}", a.type, a.lanes)

    def compare(self, operation: str, a: Register, b: Register, dtype: DType) -> Register:
        if is_float(dtype):
            return self.function.let(f"fcmp {_FLOAT_ORDER[operation]} {a}, {b.name}", "i1", a.lanes)
        order = _INTEGER_ORDER[operation]
        sign = "" if order in ("eq", "ne") else "s" if dtype in SIGNED else "u"
        return self.function.let(f"icmp {sign}{order} {a}, {b.name}", "i1", a.lanes)

    def extreme(self, operation: str, a: Register, b: Register, dtype: DType) -> Register:
        """NaN wins; the first of equals."""
        order = "less" if operation == "minimum" else "greater"
        if not is_float(dtype):
            return self.select(self.compare(order, b, a, dtype), b, a)
        if is_number(b):
            return self.select(self.compare(order, b, a, dtype), b, a)  # one instruction of x86, as is the next
        if is_number(a) and not is_zero(a):
            return self.select(self.compare(order, a, b, dtype), a, b)
        number = self.select(self.compare(order, b, a, dtype), b, a)  # one instruction; a where one of them is NaN
        return self.select(self.is_nan(b), self.like(b, nan, dtype), number)  # b itself would join both comparisons

    def is_nan(self, x: Register) -> Register:
        return self.function.let(f"fcmp uno {x}, {x.name}", "i1", x.lanes)

    def both(self, a: Register, b: Register) -> Register:
        return self.binary("and", a, b)

    def either(self, a: Register, b: Register) -> Register:
        return self.binary("or", a, b)

    def negated(self, a: Register) -> Register:
        return self.binary("xor", a, Register("true", "i1"))

    def binary(self, word: str, a: Register, b: Register) -> Register:
        lanes = max(a.lanes, b.lanes)
        a, b = self.function.spread(a, lanes), self.function.spread(b, lanes)
        return self.function.let(f"{word} {a}, {b.name}", a.type, lanes)

    def like(self, x: Register, number: float | int, dtype: DType) -> Register:
        return self.function.spread(constant(number, dtype), x.lanes)

    def each(self, function: Callable[..., Register], *operands: Register) -> Register:
        """Lane by lane."""
        lanes = operands[0].lanes
        if lanes == 1:
            return function(*operands)
        result = Register("poison", "", lanes)
        for number in range(lanes):
            one = function(*[self.function.lane(x, number) for x in operands])
            result = result._replace(type=one.type)
            result = self.function.let(f"insertelement {result}, {one}, i64 {number}", one.type, lanes)
        return result

    def intrinsic(self, name: str, *operands: Register) -> Register:
        first = operands[0]
        bits = "f32" if first.type == "float" else "f64"
        shape = bits if first.lanes == 1 else f"v{first.lanes}{bits}"
        return self.function.call(f"llvm.{name}.{shape}", first.type, *operands, lanes=first.lanes)
