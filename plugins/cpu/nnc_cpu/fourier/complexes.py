"""Vectors of complex numbers: their real parts in one register, their imaginary parts in another."""

from __future__ import annotations

from typing import NamedTuple

from nnc_core.base.dtype import DType
from nnc_cpu.llvm.ir import FunctionWriter, Register, suffix
from nnc_cpu.llvm.logic import constant, held


class Complex(NamedTuple):
    """Numbers in the lanes of two registers."""

    re: Register
    im: Register

    @property
    def swapped(self) -> Complex:
        """i times the conjugate: what turns a transform into its inverse, if done before and behind it."""
        return Complex(self.im, self.re)


class ComplexWriter:
    """Writes arithmetic on vectors of complex numbers; each operation is rounded in the same way everywhere."""

    def __init__(self, function: FunctionWriter, dtype: DType, lanes: int) -> None:
        """`dtype`: of real parts."""
        self.function, self.dtype, self.lanes = function, dtype, lanes
        self.type = held(dtype)

    # ---- real parts
    def real(self, operation: str, a: Register, b: Register) -> Register:
        return self.function.let(f"{operation} {a}, {b.name}", self.type, self.lanes)

    def fma(self, a: Register, b: Register, c: Register) -> Register:
        """a b + c."""
        name = f"llvm.fma.{'' if self.lanes == 1 else f'v{self.lanes}'}{suffix(self.type)}"
        return self.function.call(name, self.type, a, b, c, lanes=self.lanes)

    def negated(self, a: Register) -> Register:
        return self.function.let(f"fneg {a}", self.type, self.lanes)

    def number(self, value: float) -> Register:
        """A constant in all lanes."""
        return self.function.spread(constant(value, self.dtype), self.lanes)

    # ---- complex numbers
    def plus(self, a: Complex, b: Complex) -> Complex:
        return Complex(self.real("fadd", a.re, b.re), self.real("fadd", a.im, b.im))

    def minus(self, a: Complex, b: Complex) -> Complex:
        return Complex(self.real("fsub", a.re, b.re), self.real("fsub", a.im, b.im))

    def minus_turned(self, a: Complex, b: Complex) -> Complex:
        """a - i b."""
        return Complex(self.real("fadd", a.re, b.im), self.real("fsub", a.im, b.re))

    def plus_turned(self, a: Complex, b: Complex) -> Complex:
        """a + i b."""
        return Complex(self.real("fsub", a.re, b.im), self.real("fadd", a.im, b.re))

    def plus_scaled(self, a: Complex, b: Complex, factor: float) -> Complex:
        """a + factor b."""
        by = self.number(factor)
        return Complex(self.fma(b.re, by, a.re), self.fma(b.im, by, a.im))

    def scaled(self, a: Complex, by: Register) -> Complex:
        return Complex(self.real("fmul", a.re, by), self.real("fmul", a.im, by))

    def conjugate(self, a: Complex) -> Complex:
        return Complex(a.re, self.negated(a.im))

    def times(self, a: Complex, b: Complex) -> Complex:
        """a b."""
        re = self.fma(a.re, b.re, self.negated(self.real("fmul", a.im, b.im)))
        return Complex(re, self.fma(a.re, b.im, self.real("fmul", a.im, b.re)))

    def times_number(self, a: Complex, number: complex) -> Complex:
        return self.times(a, Complex(self.number(number.real), self.number(number.imag)))

    # ---- from memory
    def spread(self, place: Register) -> Register:
        """A number of memory in all lanes."""
        f = self.function
        return f.spread(f.let(f"load {self.type}, {place}, align {self.dtype.itemsize}", self.type), self.lanes)

    def number_at(self, table: Register, n: Register) -> Complex:
        """A complex number of a table, in all lanes."""
        f = self.function
        place = f.let(f"getelementptr {self.type}, {table}, {f.let(f'shl {n}, 1', 'i64')}", "ptr")
        beside = f.let(f"getelementptr {self.type}, {place}, i64 1", "ptr")
        return Complex(self.spread(place), self.spread(beside))
