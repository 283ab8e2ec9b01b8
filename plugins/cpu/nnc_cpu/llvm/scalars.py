"""Scalar instructions of loop nests as LLVM IR, on one element or on all lanes at once.

float16 and bfloat16 are rounded after each instruction.
"""

from __future__ import annotations

from collections.abc import Sequence

from nnc_core.base.dtype import DType, accumulator, is_float, is_integer
from nnc_core.base.errors import NotSupportedError
from nnc_core.base.loopnest import COMPARISONS
from nnc_core.codegen.expansions import EXPANSIONS
from nnc_cpu.llvm.conversions import ConversionWriter
from nnc_cpu.llvm.integers import IntegerWriter
from nnc_cpu.llvm.ir import Register
from nnc_cpu.llvm.scaling import scaled

_ARITHMETIC = {"add": "fadd", "subtract": "fsub", "multiply": "fmul", "divide": "fdiv"}
_BITWISE = {"bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor"}
_INTRINSICS = {"floor": "floor", "ceil": "ceil", "trunc": "trunc", "round": "rint", "abs": "fabs", "sqrt": "sqrt",
               "fma": "fma"}
_LIBRARY = {"power": "pow", "fmod": "fmod"}
"""Functions of the C library, called lane by lane."""
EXPANDED = frozenset(EXPANSIONS)
"""Functions that are written out before: see `nnc_core.codegen.expand`."""


class ScalarWriter(ConversionWriter, IntegerWriter):
    """Writes scalar instructions into a function."""

    def instruction(self, operation: str, dtype: DType, operands: Sequence[Register], source: DType) -> Register:
        """One of OPERATIONS on values whose dtype is `source`; the result is of `dtype`."""
        lanes = max(x.lanes for x in operands)
        values = [self.function.spread(x, lanes) for x in operands]
        if operation == "select":
            return self.select(*values)
        if operation == "cast":
            return self.cast(values[0], source, dtype)
        if operation == "bitcast":
            return self.bitcast(values[0], source, dtype)
        if operation in COMPARISONS:
            return self.compare(operation, values[0], values[1], source)
        if operation in ("minimum", "maximum"):
            return self.extreme(operation, values[0], values[1], source)
        kind = self._float if is_float(source) else self.integer if is_integer(source) else self._boolean
        return kind(operation, dtype, values)

    def _boolean(self, operation: str, dtype: DType, operands: Sequence[Register]) -> Register:
        if operation in _BITWISE:
            return self.binary(_BITWISE[operation], *operands)
        if operation == "bitwise_invert":
            return self.negated(operands[0])
        raise _unsupported(operation, dtype)

    def _float(self, operation: str, dtype: DType, operands: Sequence[Register]) -> Register:
        return self.rounded(self._wide_float(operation, accumulator(dtype), operands), dtype)

    def _wide_float(self, operation: str, dtype: DType, operands: Sequence[Register]) -> Register:
        """The operation computed in float32 or float64."""
        a = operands[0]
        if operation in _ARITHMETIC:
            return self.binary(_ARITHMETIC[operation], *operands)
        if operation in _INTRINSICS:
            return self.intrinsic(_INTRINSICS[operation], *operands)
        if operation in _LIBRARY:
            return self.library(_LIBRARY[operation], *operands)
        if operation == "negative":
            return self.function.let(f"fneg {a}", a.type, a.lanes)
        if operation == "sign":
            return self._sign(a, dtype)
        if operation == "scale":
            return scaled(self.function, *operands)
        if operation == "remainder":
            return self._float_remainder(a, operands[1], dtype)
        if operation == "floor_divide":
            return self._float_floor_divide(a, operands[1], dtype)
        raise _unsupported(operation, dtype)

    def library(self, name: str, *operands: Register) -> Register:
        """A function of the C library."""
        type = operands[0].type
        suffix = "f" if type == "float" else ""
        return self.each(lambda *one: self.function.call(name + suffix, type, *one), *operands)

    def _sign(self, a: Register, dtype: DType) -> Register:
        zero = self.like(a, 0.0, dtype)
        result = self.select(self.compare("equal", a, zero, dtype), zero, a)
        result = self.select(self.compare("less", a, zero, dtype), self.like(a, -1.0, dtype), result)
        return self.select(self.compare("greater", a, zero, dtype), self.like(a, 1.0, dtype), result)

    def _float_remainder(self, a: Register, b: Register, dtype: DType) -> Register:
        """fmod moved to the divisor's sign, zeros included."""
        rest, zero = self.library("fmod", a, b), self.like(a, 0.0, dtype)
        moved = self.select(self._signs_differ(rest, b, dtype), self.binary("fadd", rest, b), rest)
        signed = self.intrinsic("copysign", zero, b)
        result = self.select(self.compare("equal", rest, zero, dtype), signed, moved)
        return self.select(self.compare("equal", b, zero, dtype), rest, result)

    def _signs_differ(self, a: Register, b: Register, dtype: DType) -> Register:
        zero = self.like(a, 0.0, dtype)
        return self.binary("xor", self.compare("less", a, zero, dtype), self.compare("less", b, zero, dtype))

    def _float_floor_divide(self, a: Register, b: Register, dtype: DType) -> Register:
        """(a - remainder) / b, which is nearly an integer, made one; a / b for b = 0."""
        rest, zero, one = self.library("fmod", a, b), self.like(a, 0.0, dtype), self.like(a, 1.0, dtype)
        ratio = self.binary("fdiv", a, b)
        quotient = self.binary("fdiv", self.binary("fsub", a, rest), b)
        below = self.both(self.compare("not_equal", rest, zero, dtype), self._signs_differ(rest, b, dtype))
        quotient = self.select(below, self.binary("fsub", quotient, one), quotient)
        whole = self.intrinsic("floor", quotient)
        above = self.compare("greater", self.binary("fsub", quotient, whole), self.like(a, 0.5, dtype), dtype)
        whole = self.select(above, self.binary("fadd", whole, one), whole)
        nothing = self.intrinsic("copysign", zero, ratio)
        whole = self.select(self.compare("equal", quotient, zero, dtype), nothing, whole)
        return self.select(self.compare("equal", b, zero, dtype), ratio, whole)


def _unsupported(operation: str, dtype: DType) -> NotSupportedError:
    return NotSupportedError(f"no scalar instruction {operation} on {dtype}")
