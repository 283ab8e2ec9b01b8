"""Places of memory that an access touches, as seen by a vector of neighbouring points."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from nnc_core.base.dtype import int64
from nnc_core.base.loopnest import Access, Subscript
from nnc_core.codegen.ranges import always_valid, numerator_range
from nnc_cpu.llvm.ir import FunctionWriter, Register, integer
from nnc_cpu.llvm.scalars import ScalarWriter

NOTHING = integer(0)


class Place(NamedTuple):
    """The elements that the lanes touch: lane k that of number `first + step * k`, and beyond it `further`, which
    differs from lane to lane in no regular way.  `valid` says which may touch theirs; None for all."""

    first: Register
    step: int
    further: Register | None
    valid: Register | None

    @property
    def contiguous(self) -> bool:
        """True if the lanes touch neighbours, in this or in the other order."""
        return self.further is None and abs(self.step) == 1

    @property
    def every_other(self) -> bool:
        """True if the lanes touch every other element, as where complex numbers lie."""
        return self.further is None and self.step == 2

    def lowest(self, function: FunctionWriter, lanes: int) -> Place:
        """The same, beginning with the element of contiguous lanes that comes first in memory."""
        if self.step == 1:
            return self
        return self._replace(first=plus(function, self.first, integer(1 - lanes)))

    @property
    def uniform(self) -> bool:
        """True if all lanes touch the same element."""
        return self.step == 0 and self.further is None


class PlaceWriter:
    """Writes the addresses of accesses.  `axes` holds the position on each axis, of the first lane on `vector`."""

    def __init__(self, scalars: ScalarWriter, lanes: int) -> None:
        self.scalars, self.function, self.lanes = scalars, scalars.function, lanes
        self.axes: dict[int, Register] = {}
        self.vector: int | None = None

    def place(self, access: Access, lengths: Sequence[int], gathered: Callable[[int], Register]) -> Place:
        """Write out what has to be computed for an access; `gathered` gives values as indices, by number."""
        offset, terms = access.offset, dict[int, int]()
        first, further, valid = NOTHING, None, None
        for subscript in access.subscripts:
            if subscript.divisor == 1 and subscript.gather is None:
                offset += subscript.stride * subscript.offset
                for axis, coefficient in subscript.coefficients:
                    terms[axis] = terms.get(axis, 0) + subscript.stride * coefficient
                if not always_valid(subscript, lengths):
                    index = self.positions(self.numerator(subscript, lengths), subscript)
                    valid = self._and(valid, self._inside(index, subscript))
                continue
            index, holds = self._index(subscript, lengths, gathered)
            valid = valid if holds is None else self._and(valid, holds)
            moved = times(self.function, index, subscript.stride)
            if index.lanes == 1:
                first = plus(self.function, first, moved)
            else:
                further = moved if further is None else plus(self.function, further, moved)
        first = plus(self.function, first, self.linear(offset, terms, lengths))
        step = terms.get(self.vector, 0) if self.vector is not None and lengths[self.vector] != 1 else 0
        return Place(first, step, further, valid)

    # ---- subscripts
    def numerator(self, subscript: Subscript, lengths: Sequence[int]) -> Register:
        """offset + sum(coefficient * axis) at the first lane."""
        return self.linear(subscript.offset, dict(subscript.coefficients), lengths)

    def positions(self, first: Register, subscript: Subscript) -> Register:
        """The same at every lane."""
        step = dict(subscript.coefficients).get(self.vector, 0) if self.vector is not None else 0
        return self.along(first, step)

    def along(self, first: Register, step: int) -> Register:
        """first + step * lane."""
        if step == 0 or self.lanes == 1:
            return first
        steps = Register("<" + ", ".join([f"i64 {step * k}" for k in range(self.lanes)]) + ">", "i64", self.lanes)
        return self.function.let(f"add {self.function.spread(first, self.lanes)}, {steps.name}", "i64", self.lanes)

    def _inside(self, index: Register, subscript: Subscript) -> Register:
        extent = self.function.spread(integer(subscript.extent), index.lanes)
        return self.function.let(f"icmp ult {index}, {extent.name}", "i1", index.lanes)

    def _index(self, subscript: Subscript, lengths: Sequence[int],
               gathered: Callable[[int], Register]) -> tuple[Register, Register | None]:
        """The index of a subscript that divides or gathers, and where it is valid; None for everywhere."""
        index = self.positions(self.numerator(subscript, lengths), subscript)
        valid: Register | None = None
        if subscript.divisor != 1:
            index, valid = self._divided(index, subscript, lengths)
        if subscript.gather is not None:
            index = plus(self.function, index, gathered(subscript.gather))
        if subscript.checked:
            return index, self._and(valid, self._inside(index, subscript))
        return index, None

    def _divided(self, index: Register, subscript: Subscript,
                 lengths: Sequence[int]) -> tuple[Register, Register | None]:
        """Rounded down; whether nothing is left, where that is asked for."""
        below = numerator_range(subscript, lengths)[0] < 0
        divisor = self.function.spread(integer(subscript.divisor), index.lanes)
        zero = self.function.spread(NOTHING, index.lanes)
        if not below:
            ratio = self.function.let(f"udiv {index}, {divisor.name}", "i64", index.lanes)
            if not subscript.checked:
                return ratio, None
            rest = self.function.let(f"urem {index}, {divisor.name}", "i64", index.lanes)
            return ratio, self.function.let(f"icmp eq {rest}, {zero.name}", "i1", index.lanes)
        ratio = self.scalars.quotient("floor_divide", int64, index, divisor)
        if not subscript.checked:
            return ratio, None
        rest = self.function.let(f"srem {index}, {divisor.name}", "i64", index.lanes)
        return ratio, self.function.let(f"icmp eq {rest}, {zero.name}", "i1", index.lanes)

    def _and(self, a: Register | None, b: Register) -> Register:
        return b if a is None else self.scalars.both(a, b)

    def linear(self, offset: int, terms: Mapping[int, int], lengths: Sequence[int]) -> Register:
        """offset + sum(coefficient * axis), leaving out what is 0."""
        total = integer(offset)
        for axis, coefficient in terms.items():
            if lengths[axis] != 1:
                total = plus(self.function, times(self.function, self.axes[axis], coefficient), total)
        return total


def plus(function: FunctionWriter, a: Register, b: Register) -> Register:
    """The sum of two integers of 64 bits, without code where it is known."""
    if b == NOTHING:
        return a
    if a == NOTHING:
        return b
    if _known(a) and _known(b):
        return integer(int(a.name) + int(b.name))
    lanes = max(a.lanes, b.lanes)
    return function.let(f"add {function.spread(a, lanes)}, {function.spread(b, lanes).name}", "i64", lanes)


def times(function: FunctionWriter, a: Register, by: int) -> Register:
    """The product of an integer of 64 bits and a number."""
    if by == 1 or a == NOTHING:
        return a
    if by == 0:
        return NOTHING
    if _known(a):
        return integer(int(a.name) * by)
    return function.let(f"mul {a}, {function.spread(integer(by), a.lanes).name}", "i64", a.lanes)


def _known(x: Register) -> bool:
    return x.lanes == 1 and not x.name.startswith("%")
