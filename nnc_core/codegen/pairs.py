"""Complex numbers in loop nests, which know real ones only: a `Pair` of them, with Python's operators.

A complex array is to a nest an array of twice as many real numbers, so that one formula, and one nest for moving,
summing and multiplying, serves both kinds.  Functions are written out in functions of real numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nnc_core.base.dtype import DType, complex_of, is_complex, real_of
from nnc_core.base.errors import NotSupportedError
from nnc_core.codegen import complex_exponentials, complex_logarithms, complex_powers, complex_roots
from nnc_core.codegen.parts import quotient, times
from nnc_core.codegen.scalar import Scalar

COMPLEX_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "abs": complex_logarithms.magnitude,
    "exp": complex_exponentials.exp, "exp2": complex_exponentials.exp2, "expm1": complex_exponentials.expm1,
    "sinh": complex_exponentials.sinh, "cosh": complex_exponentials.cosh, "tanh": complex_exponentials.tanh,
    "sin": complex_exponentials.sin, "cos": complex_exponentials.cos, "tan": complex_exponentials.tan,
    "log": complex_logarithms.log, "log2": complex_logarithms.log2, "log10": complex_logarithms.log10,
    "log1p": complex_logarithms.log1p, "atan": complex_logarithms.atan, "atanh": complex_logarithms.atanh,
    "sqrt": complex_roots.sqrt, "asin": complex_roots.asin, "acos": complex_roots.acos, "asinh": complex_roots.asinh,
    "acosh": complex_roots.acosh, "power": complex_powers.power,
}  # fmt: skip
"""Functions by the name of their instruction: of the parts of their operands, giving two parts, or one real number."""


class Pair:
    """A complex value: its real and its imaginary part."""

    __slots__ = ("im", "re")

    def __init__(self, re: Scalar, im: Scalar) -> None:
        self.re, self.im = re, im

    @property
    def dtype(self) -> DType:
        return complex_of(self.re.dtype)

    @property
    def parts(self) -> tuple[Scalar, Scalar]:
        return self.re, self.im

    def constant(self, value: complex) -> Pair:
        """A constant beside this value, of its dtype."""
        return Pair(self.re.constant(complex(value).real), self.re.constant(complex(value).imag))

    def apply(self, operation: str, *others: Any) -> Any:
        """One of COMPLEX_FUNCTIONS; NotSupportedError for what has no formula: the operator runs by other code then."""
        if operation not in COMPLEX_FUNCTIONS:
            raise NotSupportedError(f"loop nests have no {operation} of {self.dtype}")
        operands = [part for z in (self, *map(self._lift, others)) for part in z.parts]
        result = COMPLEX_FUNCTIONS[operation](*operands)
        return Pair(*result) if isinstance(result, tuple) else result

    def _lift(self, other: Any) -> Pair:
        return other if isinstance(other, Pair) else self.constant(other)

    def __add__(self, other: Any) -> Pair:
        b = self._lift(other)
        return Pair(self.re + b.re, self.im + b.im)

    def __sub__(self, other: Any) -> Pair:
        b = self._lift(other)
        return Pair(self.re - b.re, self.im - b.im)

    def __mul__(self, other: Any) -> Pair:
        return Pair(*times(self.parts, self._lift(other).parts))

    def __truediv__(self, other: Any) -> Pair:
        return Pair(*quotient(self.parts, self._lift(other).parts))

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

    def cast(self, dtype: DType) -> Pair:
        """The value converted to another complex dtype."""
        part = real_of(dtype)
        return Pair(self.re.cast(part), self.im.cast(part))


def converted(x: Any, dtype: DType) -> Any:
    """A value of any kind converted to any dtype, complex ones too; complex numbers to complex ones only."""
    if not is_complex(dtype) or isinstance(x, Pair):
        return x.cast(dtype)
    re = x.cast(real_of(dtype))
    return Pair(re, re.constant(0))
