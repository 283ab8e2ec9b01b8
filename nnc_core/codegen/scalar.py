"""Scalar instructions written as formulas, with Python's operators: real numbers.  Complex ones are `pairs.Pair`."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from nnc_core.base.dtype import DType, boolean, is_storage
from nnc_core.base.loopnest import COMPARISONS, OPERATIONS, Instruction
from nnc_core.codegen.storage import StoredScalar, stored

if TYPE_CHECKING:
    from nnc_core.codegen.pairs import Pair

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
        """The value converted to a dtype that is not complex: a `Scalar`, or what stands for one of a storage dtype."""
        if is_storage(dtype):
            return stored(self, dtype)
        return self if dtype == self.dtype else self._append("cast", dtype)

    def bitcast(self, dtype: DType) -> Scalar:
        """The same bits, read as another dtype of that size."""
        return self._append("bitcast", dtype)
