"""Integer arithmetic.  What LLVM leaves undefined (shifts beyond the width, divisions by zero and of the smallest
integer by -1) is written out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nnc_core.base.dtype import SIGNED, UNSIGNED, DType
from nnc_core.base.errors import NotSupportedError
from nnc_cpu.llvm.ir import Register
from nnc_cpu.llvm.logic import LogicWriter

_PLAIN = {"add": "add", "subtract": "sub", "multiply": "mul", "bitwise_and": "and", "bitwise_or": "or",
          "bitwise_xor": "xor"}
_WHOLE = ("floor", "ceil", "trunc", "round")


class IntegerWriter(LogicWriter):
    """Writes operations on integers into a function."""

    def integer(self, operation: str, dtype: DType, operands: Sequence[Register]) -> Register:
        if operation in _PLAIN:
            return self.binary(_PLAIN[operation], *operands)
        if operation in _WHOLE:
            return operands[0]
        if operation not in _RULES:
            raise NotSupportedError(f"no scalar instruction {operation} on {dtype}")
        return _RULES[operation](self, dtype, operands)

    def negative(self, a: Register, dtype: DType) -> Register:
        return self.binary("sub", self.like(a, 0, dtype), a)

    def absolute(self, a: Register, dtype: DType) -> Register:
        if dtype in UNSIGNED:
            return a
        below = self.compare("less", a, self.like(a, 0, dtype), dtype)
        return self.select(below, self.negative(a, dtype), a)

    def integer_sign(self, a: Register, dtype: DType) -> Register:
        zero, one = self.like(a, 0, dtype), self.like(a, 1, dtype)
        above = self.select(self.compare("greater", a, zero, dtype), one, zero)
        if dtype in UNSIGNED:
            return above
        return self.select(self.compare("less", a, zero, dtype), self.like(a, -1, dtype), above)

    def shift(self, operation: str, dtype: DType, a: Register, by: Register) -> Register:
        """Counts below 0 or beyond the width shift everything out."""
        bits, zero = dtype.itemsize * 8, self.like(a, 0, dtype)
        fits = self.function.let(f"icmp ult {by}, {self.like(by, bits, dtype).name}", "i1", by.lanes)
        count = self.select(fits, by, zero)
        word = "shl" if operation == "shift_left" else "ashr" if dtype in SIGNED else "lshr"
        emptied = zero
        if word == "ashr":
            emptied = self.binary("ashr", a, self.like(a, bits - 1, dtype))
        return self.select(fits, self.binary(word, a, count), emptied)

    def quotient(self, operation: str, dtype: DType, a: Register, b: Register) -> Register:
        """floor_divide, remainder and fmod; 0 for a division by 0."""
        zero, one = self.like(a, 0, dtype), self.like(a, 1, dtype)
        nothing = self.compare("equal", b, zero, dtype)
        if dtype in UNSIGNED:
            safe = self.select(nothing, one, b)
            return self.select(nothing, zero, self.binary("udiv" if operation == "floor_divide" else "urem", a, safe))
        minus = self.compare("equal", b, self.like(b, -1, dtype), dtype)
        safe = self.select(self.either(nothing, minus), one, b)
        rest = self.select(minus, zero, self.binary("srem", a, safe))
        if operation == "fmod":
            return self.select(nothing, zero, rest)
        moves = self.both(self.compare("not_equal", rest, zero, dtype), self._signs_differ_of(a, b, dtype))
        if operation == "remainder":
            return self.select(nothing, zero, self.select(moves, self.binary("add", rest, b), rest))
        ratio = self.binary("sdiv", a, safe)
        ratio = self.select(moves, self.binary("sub", ratio, one), ratio)
        return self.select(nothing, zero, self.select(minus, self.negative(a, dtype), ratio))

    def _signs_differ_of(self, a: Register, b: Register, dtype: DType) -> Register:
        return self.compare("less", self.binary("xor", a, b), self.like(a, 0, dtype), dtype)

    def multiply_high(self, a: Register, b: Register) -> Register:
        """The upper half of the product of two uint32."""
        if a.lanes > 1:
            return self.multiply_high_in_pairs(a, b)
        wide = [self.function.let(f"zext {x} to {Register('', 'i64', x.lanes).full}", "i64", x.lanes) for x in (a, b)]
        product = self.binary("mul", *wide)
        high = self.binary("lshr", product, self.function.spread(Register("32", "i64"), a.lanes))
        return self.function.let(f"trunc {high} to {Register('', 'i32', a.lanes).full}", "i32", a.lanes)

    def multiply_high_in_pairs(self, a: Register, b: Register) -> Register:
        """The same of lanes in pairs, which processors multiply where they lie."""
        f, half, pairs = self.function, a.lanes // 2, Register("", "i64", a.lanes // 2).full
        wide = [f.let(f"bitcast {x} to {pairs}", "i64", half) for x in (a, b)]
        low, by = (f.spread(Register(n, "i64"), half) for n in (str(0xFFFFFFFF), "32"))
        even = self.binary("mul", *[self.binary("and", x, low) for x in wide])
        odd = self.binary("mul", *[self.binary("lshr", x, by) for x in wide])
        upper = self.binary("and", odd, f.spread(Register(str(-1 << 32), "i64"), half))
        both = self.binary("or", self.binary("lshr", even, by), upper)
        return f.let(f"bitcast {both} to {a.full}", "i32", a.lanes)

    def by_loop(self, name: str, dtype: DType, a: Register, b: Register) -> Register:
        """Lane by lane, by a function that is defined beside the kernel: see `helpers`."""
        signed = "s" if dtype in SIGNED else "u"
        return self.each(lambda *one: self.function.call(f"nnc_{name}_{signed}{dtype.itemsize * 8}", a.type, *one),
                          a, b)


_Rule = Callable[[IntegerWriter, DType, Sequence[Register]], Register]
_RULES: dict[str, _Rule] = {
    "fma": lambda s, d, x: s.binary("add", s.binary("mul", x[0], x[1]), x[2]),
    "negative": lambda s, d, x: s.negative(x[0], d),
    "abs": lambda s, d, x: s.absolute(x[0], d),
    "sign": lambda s, d, x: s.integer_sign(x[0], d),
    "bitwise_invert": lambda s, d, x: s.binary("xor", x[0], s.like(x[0], -1, d)),
    "floor_divide": lambda s, d, x: s.quotient("floor_divide", d, x[0], x[1]),
    "remainder": lambda s, d, x: s.quotient("remainder", d, x[0], x[1]),
    "fmod": lambda s, d, x: s.quotient("fmod", d, x[0], x[1]),
    "gcd": lambda s, d, x: s.by_loop("gcd", d, x[0], x[1]),
    "shift_left": lambda s, d, x: s.shift("shift_left", d, x[0], x[1]),
    "shift_right": lambda s, d, x: s.shift("shift_right", d, x[0], x[1]),
    "multiply_high": lambda s, d, x: s.multiply_high(x[0], x[1]),
    "power": lambda s, d, x: s.by_loop("power", d, x[0], x[1]),
}
