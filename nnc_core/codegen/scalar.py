"""Scalar instructions written as formulas: `Body` collects them, `Scalar` has Python's operators."""

from __future__ import annotations

from nnc_core.base.dtype import DType, boolean
from nnc_core.base.loopnest import OPERATIONS, Instruction

Number = float | int | bool


class Body:
    """Instructions of a stage, numbered from `first`; equal constants are made once."""

    def __init__(self, first: int) -> None:
        self.first = first
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

    def scalar(self, number: int, dtype: DType) -> Scalar:
        """An existing value, ready for formulas."""
        return Scalar(self, number, dtype)

    def constant(self, literal: Number, dtype: DType) -> Scalar:
        return Scalar(self, self.append(Instruction("constant", dtype, literal=literal)), dtype)

    def apply(self, operation: str, dtype: DType, *operands: Scalar) -> Scalar:
        """`operation` on values of this body; `dtype` is the result's."""
        assert len(operands) == OPERATIONS[operation], f"{operation} takes {OPERATIONS[operation]} operands"
        numbers = tuple(operand.number for operand in operands)
        return Scalar(self, self.append(Instruction(operation, dtype, numbers)), dtype)

    def _number(self, instruction: Instruction) -> int:
        self.instructions.append(instruction)
        return self.next - 1


class Scalar:
    """A numbered value of a body.  Python numbers beside it become constants of its dtype."""

    __slots__ = ("body", "dtype", "number")

    def __init__(self, body: Body, number: int, dtype: DType) -> None:
        self.body, self.number, self.dtype = body, number, dtype

    def lift(self, other: Scalar | Number) -> Scalar:
        return other if isinstance(other, Scalar) else self.body.constant(other, self.dtype)

    def _with(self, operation: str, *others: Scalar | Number, dtype: DType | None = None) -> Scalar:
        return self.body.apply(operation, dtype or self.dtype, self, *map(self.lift, others))

    def __add__(self, other: Scalar | Number) -> Scalar:
        return self._with("add", other)

    def __sub__(self, other: Scalar | Number) -> Scalar:
        return self._with("subtract", other)

    def __rsub__(self, other: Number) -> Scalar:
        return self.lift(other) - self

    def __mul__(self, other: Scalar | Number) -> Scalar:
        return self._with("multiply", other)

    __radd__, __rmul__ = __add__, __mul__

    def __truediv__(self, other: Scalar | Number) -> Scalar:
        return self._with("divide", other)

    def __rtruediv__(self, other: Number) -> Scalar:
        return self.lift(other) / self

    def __neg__(self) -> Scalar:
        return self._with("negative")

    def __abs__(self) -> Scalar:
        return self._with("abs")

    def __lshift__(self, other: Scalar | Number) -> Scalar:
        return self._with("shift_left", other)

    def __rshift__(self, other: Scalar | Number) -> Scalar:
        return self._with("shift_right", other)

    def __and__(self, other: Scalar | Number) -> Scalar:
        return self._with("bitwise_and", other)

    def __or__(self, other: Scalar | Number) -> Scalar:
        return self._with("bitwise_or", other)

    def __xor__(self, other: Scalar | Number) -> Scalar:
        return self._with("bitwise_xor", other)

    def __lt__(self, other: Scalar | Number) -> Scalar:
        return self._with("less", other, dtype=boolean)

    def __le__(self, other: Scalar | Number) -> Scalar:
        return self._with("less_equal", other, dtype=boolean)

    def __gt__(self, other: Scalar | Number) -> Scalar:
        return self._with("greater", other, dtype=boolean)

    def __ge__(self, other: Scalar | Number) -> Scalar:
        return self._with("greater_equal", other, dtype=boolean)

    def equal(self, other: Scalar | Number) -> Scalar:
        return self._with("equal", other, dtype=boolean)

    def minimum(self, other: Scalar | Number) -> Scalar:
        return self._with("minimum", other)

    def maximum(self, other: Scalar | Number) -> Scalar:
        return self._with("maximum", other)

    def sqrt(self) -> Scalar:
        return self._with("sqrt")

    def rounded(self) -> Scalar:
        """To the nearest integer, halves to even."""
        return self._with("round")

    def select(self, true: Scalar, false: Scalar | Number) -> Scalar:
        """`true` where this boolean holds, else `false`."""
        return self.body.apply("select", true.dtype, self, true, true.lift(false))

    def cast(self, dtype: DType) -> Scalar:
        return self._with("cast", dtype=dtype)

    def bitcast(self, dtype: DType) -> Scalar:
        return self._with("bitcast", dtype=dtype)
