"""Scalar instructions written as formulas, with Python's operators: real numbers, and complex ones as two real ones.

A loop nest knows real numbers only.  A complex array is to it an array of twice as many, and a complex scalar a `Pair`,
so that one formula, and one nest for moving, summing and multiplying, serves both kinds.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol, TypeVar

from nnc_core.base.dtype import DType, boolean, complex_of, is_complex, is_storage, real_of
from nnc_core.base.errors import NotSupportedError
from nnc_core.base.loopnest import COMPARISONS, OPERATIONS, Instruction
from nnc_core.codegen.storage import StoredScalar, stored

Number = float | int | bool
S = TypeVar("S", "Scalar", "Pair", StoredScalar)


class Builder(Protocol):
    """Collects the instructions that formulas are made of."""

    def append(self, instruction: Instruction) -> int:
        """Add an instruction; returns the number of its value."""


class BodyBuilder:
    """Instructions of a stage's body, numbered from `first`; equal constants are made once.

    direct: instructions that expansions may use beside those that every target has.
    """

    def __init__(self, first: int, direct: Collection[str] = ()) -> None:
        self.first, self.direct = first, direct
        self.instructions: list[Instruction] = []
        self._constants: dict[tuple[str, str], int] = {}

    @property
    def next(self) -> int:
        """The number that the next instruction gets."""
        return self.first + len(self.instructions)

    def append(self, instruction: Instruction) -> int:
        """Add an instruction; returns its number, or that of an equal constant."""
        if instruction.operation != "constant":
            return self._number(instruction)
        key = (instruction.dtype.name, repr(instruction.literal))
        if key not in self._constants:
            self._constants[key] = self._number(instruction)
        return self._constants[key]

    def _number(self, instruction: Instruction) -> int:
        self.instructions.append(instruction)
        return self.next - 1


class Scalar:
    """A numbered value of a builder.  Python numbers beside it become constants of its dtype."""

    __slots__ = ("builder", "dtype", "number")

    def __init__(self, builder: Builder, number: int, dtype: DType) -> None:
        self.builder, self.number, self.dtype = builder, number, dtype

    def apply(self, operation: str, *others: Scalar | Number) -> Scalar:
        """Any operation of OPERATIONS whose result has this dtype, or is boolean, with this as its first operand."""
        assert OPERATIONS[operation] == len(others) + 1, f"{operation} takes {OPERATIONS[operation]} operands"
        return self._append(operation, boolean if operation in COMPARISONS else self.dtype, *map(self._lift, others))

    def constant(self, value: Number, dtype: DType | None = None) -> Scalar:
        """A constant beside this value, of its dtype if none is given."""
        dtype = dtype or self.dtype
        return Scalar(self.builder, self.builder.append(Instruction("constant", dtype, literal=value)), dtype)

    def _append(self, operation: str, dtype: DType, *others: Scalar) -> Scalar:
        operands = (self.number, *[other.number for other in others])
        return Scalar(self.builder, self.builder.append(Instruction(operation, dtype, operands)), dtype)

    def _lift(self, other: Scalar | Number) -> Scalar:
        return other if isinstance(other, Scalar) else self.constant(other)

    def __add__(self, other: Scalar | Number) -> Scalar:
        return self.apply("add", other)

    def __sub__(self, other: Scalar | Number) -> Scalar:
        return self.apply("subtract", other)

    def __rsub__(self, other: Number) -> Scalar:
        return self.constant(other) - self

    def __mul__(self, other: Scalar | Number) -> Scalar:
        return self.apply("multiply", other)

    __radd__, __rmul__ = __add__, __mul__

    def __truediv__(self, other: Scalar | Number) -> Scalar:
        return self.apply("divide", other)

    def __rtruediv__(self, other: Number) -> Scalar:
        return self.constant(other) / self

    def __neg__(self) -> Scalar:
        return self.apply("negative")

    def __abs__(self) -> Scalar:
        return self.apply("abs")

    def __lshift__(self, other: Scalar | Number) -> Scalar:
        return self.apply("shift_left", other)

    def __rshift__(self, other: Scalar | Number) -> Scalar:
        return self.apply("shift_right", other)

    def __and__(self, other: Scalar | Number) -> Scalar:
        return self.apply("bitwise_and", other)

    def __or__(self, other: Scalar | Number) -> Scalar:
        return self.apply("bitwise_or", other)

    def __xor__(self, other: Scalar | Number) -> Scalar:
        return self.apply("bitwise_xor", other)

    def __invert__(self) -> Scalar:
        return self.apply("bitwise_invert")

    def __lt__(self, other: Scalar | Number) -> Scalar:
        return self.apply("less", other)

    def __le__(self, other: Scalar | Number) -> Scalar:
        return self.apply("less_equal", other)

    def __gt__(self, other: Scalar | Number) -> Scalar:
        return self.apply("greater", other)

    def __ge__(self, other: Scalar | Number) -> Scalar:
        return self.apply("greater_equal", other)

    def equal(self, other: Scalar | Number) -> Scalar:
        return self.apply("equal", other)

    def not_equal(self, other: Scalar | Number) -> Scalar:
        return self.apply("not_equal", other)

    def minimum(self, other: Scalar | Number) -> Scalar:
        return self.apply("minimum", other)

    def maximum(self, other: Scalar | Number) -> Scalar:
        return self.apply("maximum", other)

    def fma(self, factor: Scalar | Number, term: Scalar | Number) -> Scalar:
        """This times a factor plus a term, rounded once."""
        return self.apply("fma", factor, term)

    def sqrt(self) -> Scalar:
        return self.apply("sqrt")

    def select(self, true: S, false: S | Number) -> S:
        """`true` where this boolean holds, else `false`."""
        return true.chosen(self, false)

    def chosen(self, condition: Scalar, other: Scalar | Number) -> Scalar:
        """This where the condition holds, else the other."""
        return condition._append("select", self.dtype, self, self._lift(other))

    def cast(self, dtype: DType) -> Any:
        """The value converted: a `Scalar`, or what stands for one of a complex or of a storage dtype."""
        if is_complex(dtype):
            re = self.cast(real_of(dtype))
            return Pair(re, re.constant(0))
        if is_storage(dtype):
            return stored(self, dtype)
        return self if dtype == self.dtype else self._append("cast", dtype)

    def bitcast(self, dtype: DType) -> Scalar:
        """The same bits, read as another dtype of that size."""
        return self._append("bitcast", dtype)


class Pair:
    """A complex value: its real and its imaginary part."""

    __slots__ = ("im", "re")

    def __init__(self, re: Scalar, im: Scalar) -> None:
        self.re, self.im = re, im

    @property
    def dtype(self) -> DType:
        return complex_of(self.re.dtype)

    def constant(self, value: complex) -> Pair:
        """A constant beside this value, of its dtype."""
        return Pair(self.re.constant(complex(value).real), self.re.constant(complex(value).imag))

    def apply(self, operation: str, *others: Any) -> Any:
        """NotSupportedError for functions that have no formula here: the operator runs by other code then."""
        raise NotSupportedError(f"loop nests have no {operation} of {self.dtype}")

    def _lift(self, other: Any) -> Pair:
        return other if isinstance(other, Pair) else self.constant(other)

    def __add__(self, other: Any) -> Pair:
        b = self._lift(other)
        return Pair(self.re + b.re, self.im + b.im)

    def __sub__(self, other: Any) -> Pair:
        b = self._lift(other)
        return Pair(self.re - b.re, self.im - b.im)

    def __mul__(self, other: Any) -> Pair:
        b = self._lift(other)
        return Pair(self.re * b.re - self.im * b.im, self.re * b.im + self.im * b.re)

    def __truediv__(self, other: Any) -> Pair:
        """Smith's algorithm (1962), which divides by the larger part first, as NumPy does."""
        b = self._lift(other)
        larger = abs(b.re) >= abs(b.im)
        nothing = b.re.equal(0) & b.im.equal(0)
        by_re, by_im = self._divided(b.re, b.im), self._turned()._divided(b.im, b.re)
        by_im = Pair(by_im.re, -by_im.im)
        by_zero = Pair(self.re / abs(b.re), self.im / abs(b.re))
        return nothing.select(by_zero, larger.select(by_re, by_im))

    def _turned(self) -> Pair:
        """i times the conjugate: the parts exchanged."""
        return Pair(self.im, self.re)

    def _divided(self, large: Scalar, small: Scalar) -> Pair:
        ratio = small / large
        scale = 1.0 / (large + small * ratio)
        return Pair((self.re + self.im * ratio) * scale, (self.im - self.re * ratio) * scale)

    def __neg__(self) -> Pair:
        return Pair(-self.re, -self.im)

    def equal(self, other: Any) -> Scalar:
        b = self._lift(other)
        return self.re.equal(b.re) & self.im.equal(b.im)

    def not_equal(self, other: Any) -> Scalar:
        b = self._lift(other)
        return self.re.not_equal(b.re) | self.im.not_equal(b.im)

    def chosen(self, condition: Scalar, other: Any) -> Pair:
        """This where the condition holds, else the other."""
        b = self._lift(other)
        return Pair(self.re.chosen(condition, b.re), self.im.chosen(condition, b.im))

    def cast(self, dtype: DType) -> Any:
        """The value converted to another complex dtype."""
        part = real_of(dtype)
        return Pair(self.re.cast(part), self.im.cast(part))
