"""Casts, and the values that are held for what is stored.

float16 and bfloat16 are held as float, booleans as i1.
"""

from __future__ import annotations

from nnc_core.base.dtype import SIGNED, DType, bfloat16, boolean, float16, float32, float64, is_float
from nnc_core.base.errors import NotSupportedError
from nnc_cpu.llvm.ir import FunctionWriter, Register
from nnc_cpu.llvm.logic import LogicWriter, held, stored


class ConversionWriter(LogicWriter):
    """Writes conversions into a function.  `halves`: the host converts float16 by itself."""

    def __init__(self, function: FunctionWriter, halves: bool) -> None:
        super().__init__(function)
        self.halves = halves

    def cast(self, x: Register, source: DType, target: DType) -> Register:
        """Floats saturate as integers, and NaN gives 0; float64 becomes float16 with one rounding."""
        if source == target:
            return x
        if target == boolean:
            return self.compare("not_equal", x, self.like(x, 0, source), source)
        full = Register("", held(target), x.lanes).full
        if is_float(source) and is_float(target):
            return self.rounded(self._float_to_float(x, source, target), target)
        if is_float(source):
            return self._saturated(x, target)
        signed = source in SIGNED
        if is_float(target):
            word = "sitofp" if signed else "uitofp"
            return self.rounded(self.function.let(f"{word} {x} to {full}", held(target), x.lanes), target)
        width, wanted = (1 if source == boolean else source.itemsize * 8), target.itemsize * 8
        if width == wanted:
            return x
        word = "trunc" if width > wanted else "sext" if signed else "zext"
        return self.function.let(f"{word} {x} to {full}", held(target), x.lanes)

    def _float_to_float(self, x: Register, source: DType, target: DType) -> Register:
        if held(source) == held(target):
            return x
        full = Register("", held(target), x.lanes).full
        if target == float16:
            return self._odd_float(x)
        word = "fpext" if held(target) == "double" else "fptrunc"
        return self.function.let(f"{word} {x} to {full}", held(target), x.lanes)

    def _odd_float(self, x: Register) -> Register:
        """A double as a float rounded to an odd last bit where inexact, so that rounding once more is right."""
        closest = self.function.let(f"fptrunc {x} to {Register('', 'float', x.lanes).full}", "float", x.lanes)
        back = self.function.let(f"fpext {closest} to {x.full}", "double", x.lanes)
        bits = self.bits(closest, "i32")
        one = self.function.spread(Register("1", "i32"), x.lanes)
        exact = self.either(self.compare("equal", back, x, float64), self.is_nan(x))
        odd = self.function.let(f"trunc {bits} to {Register('', 'i1', x.lanes).full}", "i1", x.lanes)
        beyond = self.compare("greater", self.intrinsic("fabs", back), self.intrinsic("fabs", x), float64)
        moved = self.select(beyond, self.binary("sub", bits, one), self.binary("add", bits, one))
        return self.bits(self.select(self.either(exact, odd), bits, moved), "float")

    def _saturated(self, x: Register, target: DType) -> Register:
        """Written out: LLVM takes lane by lane what saturates by itself."""
        signed, bits = target in SIGNED, target.itemsize * 8
        held_as = "i32" if bits < 32 else held(target)  # shorter ones are truncated, which vectors can do
        word, full = ("fptosi" if signed or bits < 32 else "fptoui"), Register("", held_as, x.lanes).full
        source = float32 if x.type == "float" else float64
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
        above = self.compare("greater_equal", x, self.like(x, high + 1, source), source)
        inside = self.both(self.compare("greater_equal", x, self.like(x, low, source), source), self.negated(above))
        safe = self.select(inside, x, self.like(x, 0.0, source))
        whole = self.function.let(f"{word} {safe} to {full}", held_as, x.lanes)
        below = self.compare("less", x, self.like(x, low, source), source)
        for outside, limit in ((above, high), (below, low)):
            if limit:
                spread = self.function.spread(Register(str(limit), held_as), x.lanes)
                whole = self.select(outside, spread, whole)
        if held_as == held(target):
            return whole
        return self.function.let(f"trunc {whole} to {Register('', held(target), x.lanes).full}", held(target), x.lanes)

    def bits(self, x: Register, type: str) -> Register:
        """The same bits as another type."""
        return x if x.type == type else self.function.let(
            f"bitcast {x} to {Register('', type, x.lanes).full}", type, x.lanes)

    def bitcast(self, x: Register, source: DType, target: DType) -> Register:
        if source.itemsize != target.itemsize or boolean in (source, target):
            raise NotSupportedError(f"no bitcast of {source} to {target}: other width, or boolean")
        return self.loaded(self.bits(self.storable(x, source), stored(target)), target)

    # ---- what is stored
    def loaded(self, x: Register, dtype: DType) -> Register:
        """The value held for an element of memory."""
        if dtype == boolean:
            return self.function.let(f"icmp ne {x}, {self.function.spread(Register('0', 'i8'), x.lanes).name}", "i1",
                                     x.lanes)
        if dtype == bfloat16:
            return self._bfloat16_value(x)
        return self._float16_value(x) if dtype == float16 else x

    def storable(self, x: Register, dtype: DType) -> Register:
        """The element of memory for a held value."""
        if dtype == boolean:
            return self.function.let(f"zext {x} to {Register('', 'i8', x.lanes).full}", "i8", x.lanes)
        if dtype == bfloat16:  # held values have been rounded
            return self._short(self._by("lshr", self.bits(x, "i32"), 16))
        return self._float16_bits(x) if dtype == float16 else x

    def rounded(self, x: Register, dtype: DType) -> Register:
        """The nearest float16 or bfloat16, as float."""
        if dtype == bfloat16:
            return self.bits(self._by("shl", self._bfloat16_bits(x), 16), "float")
        return self.loaded(self.storable(x, dtype), dtype) if dtype == float16 else x

    def _bfloat16_value(self, x: Register) -> Register:
        wide = self.function.let(f"zext {x} to {Register('', 'i32', x.lanes).full}", "i32", x.lanes)
        return self.bits(self._by("shl", wide, 16), "float")

    def _bfloat16_bits(self, x: Register) -> Register:
        """The bits of the nearest, in words of 32; halves to even."""
        bits = self.bits(x, "i32")
        high = self._by("lshr", bits, 16)
        odd = self._by("and", high, 1)
        nearest = self._by("lshr", self.binary("add", self._by("add", bits, 0x7FFF), odd), 16)
        return self.select(self.is_nan(x), self._by("or", high, 0x40), nearest)

    def _float16_value(self, x: Register) -> Register:
        if self.halves:
            half = self.function.let(f"bitcast {x} to {Register('', 'half', x.lanes).full}", "half", x.lanes)
            return self.function.let(f"fpext {half} to {Register('', 'float', x.lanes).full}", "float", x.lanes)
        wide = self.function.let(f"zext {x} to {Register('', 'i32', x.lanes).full}", "i32", x.lanes)
        sign, size = self._by("shl", self._by("and", wide, 0x8000), 16), self._by("and", wide, 0x7FFF)
        count = self.function.let(f"uitofp {size} to {Register('', 'float', x.lanes).full}", "float", x.lanes)
        small = self.bits(self.binary("fmul", count, self.like(count, 2.0**-24, float32)), "i32")
        far = self._unsigned("uge", size, 0x7C00)
        moved = self.select(far, self._by("add", self._by("shl", size, 13), 0x70000000),
                            self._by("add", self._by("shl", size, 13), 0x38000000))
        magnitude = self.select(self._unsigned("ult", size, 0x400), small, moved)
        return self.bits(self.binary("or", magnitude, sign), "float")

    def _float16_bits(self, x: Register) -> Register:
        if self.halves:
            half = self.function.let(f"fptrunc {x} to {Register('', 'half', x.lanes).full}", "half", x.lanes)
            return self.bits(half, "i16")
        bits = self.bits(x, "i32")
        sign, size = self._by("and", self._by("lshr", bits, 16), 0x8000), self._by("and", bits, 0x7FFFFFFF)
        odd = self._by("and", self._by("lshr", size, 13), 1)
        normal = self._by("lshr", self.binary("add", self._by("add", size, 0xFFF - 0x38000000), odd), 13)
        shifted = self.binary("fadd", self.bits(size, "float"), self.like(x, 0.5, float32))
        small = self._by("sub", self.bits(shifted, "i32"), 0x3F000000)
        result = self.select(self._unsigned("ult", size, 0x38800000), small, normal)
        result = self.select(self._unsigned("uge", size, 0x47800000), self._by("or", self._zero(size), 0x7C00), result)
        result = self.select(self._unsigned("ugt", size, 0x7F800000), self._by("or", self._zero(size), 0x7E00), result)
        return self._short(self.binary("or", result, sign))

    def _zero(self, x: Register) -> Register:
        return self.function.spread(Register("0", x.type), x.lanes)

    def _by(self, word: str, x: Register, number: int) -> Register:
        """An instruction with a constant of 32 bits as its second operand."""
        return self.binary(word, x, Register(str(number), "i32"))

    def _unsigned(self, order: str, x: Register, number: int) -> Register:
        other = self.function.spread(Register(str(number), "i32"), x.lanes)
        return self.function.let(f"icmp {order} {x}, {other.name}", "i1", x.lanes)

    def _short(self, x: Register) -> Register:
        return self.function.let(f"trunc {x} to {Register('', 'i16', x.lanes).full}", "i16", x.lanes)
