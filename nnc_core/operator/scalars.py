"""Scalars of a loop nest under construction, with Python's operators: real ones, and complex ones as two real ones.

A nest knows real numbers only.  A complex array is to it an array of twice as many, and a complex scalar a `Pair`, so
that one formula, and one nest for moving, summing and multiplying, serves both kinds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from nnc_core.base import dtype as dt
from nnc_core.base.dtype import DType, complex_of, is_complex, real_of
from nnc_core.base.errors import NotSupportedError
from nnc_core.base.loopnest import OPERATIONS

if TYPE_CHECKING:
    from nnc_core.operator.loops import NestBuilder

S = TypeVar("S", "Scalar", "Pair")


class Scalar:
    """A value of the nest's body."""

    __slots__ = ("dtype", "id", "nest")

    def __init__(self, nest: NestBuilder, id: int, dtype: DType) -> None:
        self.nest, self.id, self.dtype = nest, id, dtype

    def apply(self, operation: str, *others: Any, dtype: DType | None = None) -> Scalar:
        """Any operation of the loop nest; Python numbers take this value's dtype."""
        assert OPERATIONS[operation] == len(others) + 1, operation
        operands = [self, *[self.constant(o) if not isinstance(o, Scalar) else o for o in others]]
        return self.nest.instruction(operation, dtype or self.dtype, *operands)

    def constant(self, value: float) -> Scalar:
        return self.nest.instruction("constant", self.dtype, literal=value)

    def __add__(self, other: Any) -> Scalar:
        return self.apply("add", other)

    def __sub__(self, other: Any) -> Scalar:
        return self.apply("subtract", other)

    def __rsub__(self, other: float) -> Scalar:
        return self.constant(other) - self

    def __mul__(self, other: Any) -> Scalar:
        return self.apply("multiply", other)

    __radd__, __rmul__ = __add__, __mul__

    def __truediv__(self, other: Any) -> Scalar:
        return self.apply("divide", other)

    def __rtruediv__(self, other: float) -> Scalar:
        return self.constant(other) / self

    def __neg__(self) -> Scalar:
        return self.apply("negative")

    def __and__(self, other: Any) -> Scalar:
        return self.apply("bitwise_and", other)

    def __or__(self, other: Any) -> Scalar:
        return self.apply("bitwise_or", other)

    def __xor__(self, other: Any) -> Scalar:
        return self.apply("bitwise_xor", other)

    def __invert__(self) -> Scalar:
        return self.apply("bitwise_invert")

    def __lshift__(self, other: Any) -> Scalar:
        return self.apply("shift_left", other)

    def __rshift__(self, other: Any) -> Scalar:
        return self.apply("shift_right", other)

    def compare(self, relation: str, other: Any) -> Scalar:
        """equal, not_equal, less, less_equal, greater, greater_equal."""
        return self.apply(relation, other, dtype=dt.boolean)

    def select(self, a: S, b: S) -> S:
        """a where this boolean is true, b elsewhere."""
        return a.chosen(self, b)

    def chosen(self, condition: Scalar, other: Scalar) -> Scalar:
        return self.nest.instruction("select", self.dtype, condition, self, other)

    def cast(self, dtype: DType) -> Any:
        """A `Scalar`, or a `Pair` where the dtype is complex."""
        if is_complex(dtype):
            re = self.cast(real_of(dtype))
            return Pair(re, re.constant(0))
        return self if dtype == self.dtype else self.nest.instruction("cast", dtype, self)

    def bitcast(self, dtype: DType) -> Scalar:
        return self.nest.instruction("bitcast", dtype, self)


class Pair:
    """A complex value: its real and its imaginary part."""

    __slots__ = ("im", "re")

    def __init__(self, re: Scalar, im: Scalar) -> None:
        self.re, self.im = re, im

    @property
    def dtype(self) -> DType:
        return complex_of(self.re.dtype)

    def constant(self, value: complex) -> Pair:
        return Pair(self.re.constant(complex(value).real), self.re.constant(complex(value).imag))

    def apply(self, operation: str, *others: Any, dtype: DType | None = None) -> Any:
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
        larger = b.re.apply("abs").compare("greater_equal", b.im.apply("abs"))
        nothing = b.re.compare("equal", 0) & b.im.compare("equal", 0)
        by_re, by_im = self._divided(b.re, b.im), self._turned()._divided(b.im, b.re)
        by_im = Pair(by_im.re, -by_im.im)
        by_zero = Pair(self.re / b.re.apply("abs"), self.im / b.re.apply("abs"))
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

    def compare(self, relation: str, other: Any) -> Scalar:
        b = self._lift(other)
        re, im = self.re.compare(relation, b.re), self.im.compare(relation, b.im)
        return re & im if relation == "equal" else re | im

    def chosen(self, condition: Scalar, other: Pair) -> Pair:
        return Pair(self.re.chosen(condition, other.re), self.im.chosen(condition, other.im))

    def cast(self, dtype: DType) -> Any:
        part = real_of(dtype)
        return Pair(self.re.cast(part), self.im.cast(part))
