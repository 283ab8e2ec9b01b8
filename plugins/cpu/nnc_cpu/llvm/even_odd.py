"""Products of uint32 one after another, by lanes of twice the width.

Processors multiply the lower halves of lanes of 64 bits.  A vector of 32 bits is two of them, its even and its odd
lanes, and stays so from one product to the next: what lies in the upper halves is left alone until the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from nnc_core.base.dtype import DType, uint32
from nnc_cpu.llvm.ir import Register, integer
from nnc_cpu.llvm.scalars import ScalarWriter

OPERATIONS = frozenset({"multiply", "multiply_high", "bitwise_xor"})
_HALF = 32


class EvenOdd(NamedTuple):
    """The even and the odd lanes of a vector of uint32; the upper halves may be anything."""

    even: Register
    odd: Register


class EvenOddWriter:
    """Writes instructions on values that may be apart."""

    def __init__(self, scalars: ScalarWriter) -> None:
        self.scalars, self.function = scalars, scalars.function
        self._products: dict[tuple[Register | EvenOdd, ...], EvenOdd] = {}

    def instruction(self, operation: str, dtype: DType, operands: Sequence[Register | EvenOdd], source: DType
                    ) -> Register | EvenOdd:
        """The same as `ScalarWriter.instruction`."""
        vectors = any(isinstance(x, EvenOdd) or x.lanes > 1 for x in operands)
        if dtype != uint32 or operation not in OPERATIONS or not vectors:
            return self.scalars.instruction(operation, dtype, [self.together(x) for x in operands], source)
        lanes = max([x.even.lanes if isinstance(x, EvenOdd) else x.lanes // 2 for x in operands])
        if operation == "bitwise_xor":
            return self.each("xor", *[self.apart(x, lanes) for x in operands])
        product = self.product(operands, lanes)
        if operation == "multiply":
            return product
        by = integer(_HALF)
        return EvenOdd(*[self.scalars.binary("lshr", x, by) for x in product])

    def product(self, operands: Sequence[Register | EvenOdd], lanes: int) -> EvenOdd:
        """All 64 bits of products, of which one operation wants the upper half and another one the lower."""
        key = tuple(operands)
        if key not in self._products:
            low = integer((1 << _HALF) - 1)
            factors = [EvenOdd(*[self.scalars.binary("and", half, low) for half in self.apart(x, lanes)])
                       for x in operands]
            self._products[key] = self.each("mul", *factors)
        return self._products[key]

    def each(self, word: str, a: EvenOdd, b: EvenOdd) -> EvenOdd:
        return EvenOdd(self.scalars.binary(word, a.even, b.even), self.scalars.binary(word, a.odd, b.odd))

    def apart(self, x: Register | EvenOdd, lanes: int) -> EvenOdd:
        """A value as even and odd lanes, so many of each."""
        if isinstance(x, EvenOdd):
            return x
        f = self.function
        if x.lanes == 1:
            both = f.spread(f.let(f"zext {x} to i64", "i64"), lanes)
            return EvenOdd(both, both)
        even = f.let(f"bitcast {x} to <{lanes} x i64>", "i64", lanes)
        return EvenOdd(even, self.scalars.binary("lshr", even, integer(_HALF)))

    def together(self, x: Register | EvenOdd) -> Register:
        """A value as one vector."""
        if isinstance(x, Register):
            return x
        f, lanes = self.function, 2 * x.even.lanes
        low = self.scalars.binary("and", x.even, integer((1 << _HALF) - 1))
        both = self.scalars.binary("or", low, self.scalars.binary("shl", x.odd, integer(_HALF)))
        return f.let(f"bitcast {both} to <{lanes} x i32>", "i32", lanes)
