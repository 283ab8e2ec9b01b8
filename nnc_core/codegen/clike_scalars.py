"""Scalar instructions as expressions of C-like languages.

float16 and bfloat16 are held as float and rounded after each instruction; booleans are held as bool.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from nnc_core.base.dtype import (
    SIGNED,
    UNSIGNED,
    DType,
    accumulator,
    bfloat16,
    boolean,
    float16,
    float64,
    is_float,
    is_integer,
    uint32,
    uint64,
)
from nnc_core.base.errors import NotSupportedError
from nnc_core.codegen import clike_helpers as template
from nnc_core.codegen.clike_helpers import Helpers
from nnc_core.codegen.expansions import EXPANSIONS

_COMPARISONS = {
    "equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=",
}  # fmt: skip
_ARITHMETIC = {"add": "+", "subtract": "-", "multiply": "*"}
_BITWISE = {"bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^"}
_MATH = {
    "floor": "floor", "ceil": "ceil", "trunc": "trunc", "round": "rint", "abs": "fabs", "sqrt": "sqrt",
    "exp": "exp", "log": "log", "tanh": "tanh", "sin": "sin", "cos": "cos", "power": "pow", "fma": "fma",
    "fmod": "fmod", "tan": "tan", "asin": "asin", "acos": "acos", "atan": "atan", "atan2": "atan2", "sinh": "sinh",
    "cosh": "cosh", "asinh": "asinh", "acosh": "acosh", "atanh": "atanh", "exp2": "exp2", "expm1": "expm1",
    "log1p": "log1p", "log2": "log2", "log10": "log10", "cbrt": "cbrt", "hypot": "hypot", "erf": "erf", "erfc": "erfc",
    "lgamma": "lgamma",
}  # fmt: skip
LACKING = frozenset(EXPANSIONS) - set(_MATH) - {"sigmoid"}
"""Functions that C-like languages do not have: they are expanded."""
_WHOLE = ("floor", "ceil", "trunc", "round")


class Scalars:
    """Expressions for one program; the helper functions they call gather in `helpers`."""

    def __init__(self, helpers: Helpers) -> None:
        self.helpers = helpers
        self.dialect = helpers.dialect

    def held(self, dtype: DType) -> str:
        """The type of a value in registers."""
        if dtype == float64:
            self.helpers.uses_float64 = True
        return "bool" if dtype == boolean else self.dialect.types[accumulator(dtype).name]

    def literal(self, number: float | int | bool | None, dtype: DType) -> str:
        """A number, rounded to `dtype`, as an exact constant; None is 0."""
        number = 0 if number is None else number
        if dtype == boolean:
            return str(int(bool(number)))
        if is_float(dtype):
            return self._float_literal(number, dtype)
        return self._integer_literal(int(number), dtype)

    def _float_literal(self, number: float, dtype: DType) -> str:
        value = float(np.array(number).astype(dtype))
        if value != value:
            return f"({self.held(dtype)}){self.dialect.nan}"
        if value in (float("inf"), -float("inf")):
            return f"({self.held(dtype)}){'-' if value < 0 else ''}{self.dialect.infinity}"
        return _signed(value.hex() + ("" if dtype == float64 else "f"))

    def _integer_literal(self, number: int, dtype: DType) -> str:
        long = self.dialect.long_suffix if dtype.itemsize == 8 else ""
        unsigned = "U" if dtype in UNSIGNED else ""
        if number == np.iinfo(dtype).min and dtype in SIGNED:  # the positive number would not fit its type
            return f"({number + 1}{long} - 1)"
        return _signed(f"{number}{unsigned}{long}")

    def load(self, element: str, dtype: DType) -> str:
        """The value held for a stored element."""
        if dtype == boolean:
            return f"{element} != 0"
        return f"{self.helpers.value(dtype)}({element})" if dtype in (float16, bfloat16) else element

    def store(self, value: str, dtype: DType) -> str:
        """The expression to store for a held value."""
        return f"{self.helpers.bits(dtype)}({value})" if dtype in (float16, bfloat16) else value

    def expression(self, operation: str, dtype: DType, operands: Sequence[str], source: DType) -> str:
        """One of OPERATIONS on variables whose dtype is `source`; the result is `dtype`."""
        if operation in _COMPARISONS:
            return f"{operands[0]} {_COMPARISONS[operation]} {operands[1]}"
        if operation == "select":
            return "{} ? {} : {}".format(*operands)
        if operation in ("minimum", "maximum"):
            return self._extreme(operation, operands, source)
        if operation == "cast":
            return self.cast(operands[0], source, dtype)
        if operation == "bitcast":
            return self._bitcast(operands[0], source, dtype)
        kind = self._float if is_float(source) else self._integer if is_integer(source) else self._boolean
        return kind(operation, dtype, operands)

    def _extreme(self, operation: str, operands: Sequence[str], source: DType) -> str:
        """NaN wins; the first of equals."""
        a, b = operands
        order = f"{a} {'<=' if operation == 'minimum' else '>='} {b}"
        return f"({order} || {a} != {a}) ? {a} : {b}" if is_float(source) else f"{order} ? {a} : {b}"

    def extreme_beside_number(self, operation: str, value: str, number: str) -> str:
        """The same of a value and of a constant that is a number: one comparison, which processors have as a minimum
        or maximum."""
        return f"{number} {'<' if operation == 'minimum' else '>'} {value} ? {number} : {value}"

    def _boolean(self, operation: str, dtype: DType, operands: Sequence[str]) -> str:
        if operation in _BITWISE:
            return f"({operands[0]} {_BITWISE[operation]} {operands[1]}) != 0"
        if operation == "bitwise_invert":
            return f"!{operands[0]}"
        raise _unsupported(operation, dtype)

    def _float(self, operation: str, dtype: DType, operands: Sequence[str]) -> str:
        expression = self._wide_float(operation, accumulator(dtype), operands)
        return f"{self.helpers.rounding(dtype)}({expression})" if accumulator(dtype) != dtype else expression

    def _wide_float(self, operation: str, dtype: DType, operands: Sequence[str]) -> str:
        """The operation computed in float32 or float64."""
        a = operands[0]
        if operation in _ARITHMETIC or operation == "divide":
            return f"{a} {_ARITHMETIC.get(operation, '/')} {operands[1]}"
        if operation in _MATH:
            return f"{self.helpers.math(_MATH[operation], dtype)}({', '.join(operands)})"
        if operation == "negative":
            return f"-{a}"
        if operation == "sign":
            return f"{a} > 0 ? 1 : {a} < 0 ? -1 : {a} == 0 ? 0 : {a}"
        if operation == "sigmoid":
            return f"1 / (1 + {self.helpers.math('exp', dtype)}(-{a}))"
        if operation in ("floor_divide", "remainder"):
            text = template.FLOAT_REMAINDER if operation == "remainder" else template.FLOAT_FLOOR_DIVIDE
            words = {name: self.helpers.math(name, dtype) for name in ("fmod", "copysign", "floor")}
            return self._call(operation, text, dtype, operands, **words)
        raise _unsupported(operation, dtype)

    def _integer(self, operation: str, dtype: DType, operands: Sequence[str]) -> str:
        name, unsigned = self.dialect.types[dtype.name], self._unsigned(dtype)
        wide = [f"({unsigned}){operand}" for operand in operands]  # signed overflow is undefined in C
        if operation in _ARITHMETIC:
            return f"({name})({wide[0]} {_ARITHMETIC[operation]} {wide[1]})"
        if operation in _BITWISE:
            return f"({name})({operands[0]} {_BITWISE[operation]} {operands[1]})"
        if operation in _WHOLE:
            return operands[0]
        if operation not in _INTEGER:
            raise _unsupported(operation, dtype)
        return _INTEGER[operation](self, dtype, operands, f"({name})", wide)

    def _shift(self, dtype: DType, operands: Sequence[str], sign: str) -> str:
        """Counts below 0 or beyond the width, undefined in C, shift everything out."""
        a, count = operands
        name, wrapped = self.dialect.types[dtype.name], f"({self._unsigned(dtype)})"
        shifted = f"{wrapped}{a} << {count}" if sign == "<<" else f"{a} >> {count}"
        emptied = f"{a} < 0 ? -1 : 0" if sign == ">>" and dtype in SIGNED else "0"
        fits = f"{wrapped}{count} < {dtype.itemsize * 8}"
        return f"{fits} ? ({name})({shifted}) : ({name})({emptied})"

    def _divide(self, operation: str, dtype: DType, operands: Sequence[str]) -> str:
        a, b = operands
        if dtype in UNSIGNED:
            sign = "/" if operation == "floor_divide" else "%"
            return f"{b} == 0 ? 0 : ({self.dialect.types[dtype.name]})({a} {sign} {b})"
        if operation == "fmod":
            return f"({b} == 0 || {b} == -1) ? 0 : ({self.dialect.types[dtype.name]})({a} % {b})"
        text = template.SIGNED_REMAINDER if operation == "remainder" else template.SIGNED_FLOOR_DIVIDE
        return self._call(operation, text, dtype, operands)

    def _call(self, operation: str, text: str, dtype: DType, operands: Sequence[str], **words: str) -> str:
        """A call of a helper for this operation and dtype."""
        if is_integer(dtype):
            words["unsigned"] = self._unsigned(dtype)
        held = self.dialect.types[dtype.name]
        name = f"nnc_{operation}_{dtype.name}"
        self.helpers.define(name, text, type=held, dtype=dtype.name, **words)
        return f"{name}({', '.join(operands)})"

    def _unsigned(self, dtype: DType) -> str:
        """The unsigned type in which integer arithmetic wraps: at least as wide as int, to which C promotes."""
        return self.dialect.types[(uint64 if dtype.itemsize == 8 else uint32).name]

    def cast(self, value: str, source: DType, target: DType) -> str:
        if source == target:
            return value
        if target == boolean:
            return f"{value} != 0"
        if is_integer(target):
            wide = accumulator(source)
            held = f"({self.dialect.types[target.name]}){value}"
            return self._saturated(value, wide, target) if is_float(source) else held
        if target == float16 and source == float64:
            value = f"{self.helpers.odd_float()}({value})"
        held = f"({self.held(target)}){value}"
        return f"{self.helpers.rounding(target)}({held})" if target in (float16, bfloat16) else held

    def _saturated(self, value: str, source: DType, target: DType) -> str:
        limits, real = np.iinfo(target), self.held(source)
        name = self.helpers.define(
            f"nnc_saturate_{real}_{target.name}", template.SATURATE,
            type=self.dialect.types[target.name], real=real, dtype=target.name,
            low=self.literal(float(limits.min), source), high=self.literal(float(limits.max), source),
            smallest=self.literal(int(limits.min), target), largest=self.literal(int(limits.max), target),
        )  # fmt: skip
        return f"{name}({value})"

    def _bitcast(self, value: str, source: DType, target: DType) -> str:
        if source.itemsize != target.itemsize or boolean in (source, target):
            raise NotSupportedError(f"no bitcast of {source} to {target}: other width, or boolean")
        if source in (float16, bfloat16):
            value, source = f"{self.helpers.bits(source)}({value})", np.dtype(np.uint16)
        if target in (float16, bfloat16):
            return f"{self.helpers.value(target)}(({self.dialect.types['uint16']}){value})"
        if is_float(source) or is_float(target):
            self.held(target), self.held(source)
            return f"{self.helpers.bitcast(source, target)}({value})"
        return f"({self.dialect.types[target.name]}){value}"


def _signed(text: str) -> str:
    return f"({text})" if text.startswith("-") else text


def _unsupported(operation: str, dtype: DType) -> NotSupportedError:
    return NotSupportedError(f"no scalar instruction {operation} on {dtype}")


_IntegerRule = Callable[[Scalars, DType, Sequence[str], str, Sequence[str]], str]
_INTEGER: dict[str, _IntegerRule] = {
    # (scalars, dtype, operands, cast to the dtype, operands as wrapping unsigned integers)
    "fma": lambda s, d, v, to, wide: f"{to}({wide[0]} * {wide[1]} + {wide[2]})",
    "negative": lambda s, d, v, to, wide: f"{to}(0U - {wide[0]})",
    "abs": lambda s, d, v, to, wide: v[0] if d in UNSIGNED else f"{v[0]} < 0 ? {to}(0U - {wide[0]}) : {v[0]}",
    "sign": lambda s, d, v, to, wide: f"{to}(({v[0]} > 0) - ({v[0]} < 0))",
    "bitwise_invert": lambda s, d, v, to, wide: f"{to}~{v[0]}",
    "floor_divide": lambda s, d, v, to, wide: s._divide("floor_divide", d, v),
    "remainder": lambda s, d, v, to, wide: s._divide("remainder", d, v),
    "fmod": lambda s, d, v, to, wide: s._divide("fmod", d, v),
    "gcd": lambda s, d, v, to, wide: s._call("gcd", template.INTEGER_GCD, d, v),
    "shift_left": lambda s, d, v, to, wide: s._shift(d, v, "<<"),
    "shift_right": lambda s, d, v, to, wide: s._shift(d, v, ">>"),
    "multiply_high": lambda s, d, v, to, wide: f"{to}((({s.dialect.types['uint64']}){v[0]} * {v[1]}) >> 32)",
    "power": lambda s, d, v, to, wide: s._call("power", template.INTEGER_POWER, d, v),
}  # fmt: skip
