"""Places that elements are read from and written to, each as a vector of real and one of imaginary parts.

`base` is the address of an element, `read` and `write` take one so many elements further on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias

from nnc_cpu.fourier.complexes import Complex, ComplexWriter
from nnc_cpu.llvm.ir import FunctionWriter, Register, integer
from nnc_cpu.products.writing import lanes_below, loaded, moved, prefetch, product, store

PlaceKind: TypeAlias = Literal["room", "columns", "real columns", "real parts"]


class ElementPlace(Protocol):
    def base(self, element: Register) -> Register: ...

    def read(self, base: Register, further: int = 0) -> Complex: ...

    def write(self, base: Register, further: int, value: Complex) -> None: ...


class Room(NamedTuple):
    """Scratch memory: the real parts of an element in all lanes, then the imaginary parts, element by element."""

    w: ComplexWriter
    pointer: Register

    def base(self, element: Register) -> Register:
        return moved(self.w.function, self.pointer, self.w.type, element, 2 * self.w.lanes)

    def read(self, base: Register, further: int = 0) -> Complex:
        return Complex(*[_loaded(self.w, self._part(base, 2 * further + n)) for n in (0, 1)])

    def write(self, base: Register, further: int, value: Complex) -> None:
        for n, part in enumerate(value):
            store(self.w.function, part, self._part(base, 2 * further + n), self.w.dtype.itemsize, None)

    def _part(self, base: Register, n: int) -> Register:
        return moved(self.w.function, base, self.w.type, integer(n), self.w.lanes)


class Columns(NamedTuple):
    """An array of complex numbers whose lanes lie side by side; `step`: from an element to the next, in real numbers;
    `masks`: the numbers of both halves that there are, None: all; `ahead`: reading sends for what lies behind, which
    elements far apart do not make a processor foresee."""

    w: ComplexWriter
    pointer: Register
    step: Register
    masks: Sequence[Register] | None = None
    ahead: bool = False

    def base(self, element: Register) -> Register:
        return moved(self.w.function, self.pointer, self.w.type, product(self.w.function, element, self.step))

    def read(self, base: Register, further: int = 0) -> Complex:
        f, lanes = self.w.function, self.w.lanes
        place = _further(self.w, base, self.step, further)
        for n in (2, 3) if self.ahead else ():
            prefetch(f, moved(f, place, self.w.type, integer(n), lanes))
        low, high = [_loaded(self.w, moved(f, place, self.w.type, integer(n), lanes), self._mask(n)) for n in (0, 1)]
        return Complex(f.shuffled(low, high, range(0, 2 * lanes, 2)), f.shuffled(low, high, range(1, 2 * lanes, 2)))

    def write(self, base: Register, further: int, value: Complex) -> None:
        f, lanes = self.w.function, self.w.lanes
        place = _further(self.w, base, self.step, further)
        for n in (0, 1):
            first = n * lanes // 2
            which = [lane + part * lanes for lane in range(first, first + lanes // 2) for part in (0, 1)]
            store(f, f.shuffled(*value, which), moved(f, place, self.w.type, integer(n), lanes), self.w.dtype.itemsize,
                  self._mask(n))

    def _mask(self, n: int) -> Register | None:
        return None if self.masks is None else self.masks[n]


class RealColumns(NamedTuple):
    """An array of real numbers whose lanes lie side by side: those at even places are real parts, the others imaginary
    ones."""

    w: ComplexWriter
    pointer: Register
    step: Register
    mask: Register | None = None

    def base(self, element: Register) -> Register:
        f = self.w.function
        return moved(f, self.pointer, self.w.type, product(f, f.let(f"shl {element}, 1", "i64"), self.step))

    def read(self, base: Register, further: int = 0) -> Complex:
        return Complex(*[_loaded(self.w, _further(self.w, base, self.step, 2 * further + n), self.mask)
                         for n in (0, 1)])

    def write(self, base: Register, further: int, value: Complex) -> None:
        for n, part in enumerate(value):
            store(self.w.function, part, _further(self.w, base, self.step, 2 * further + n), self.w.dtype.itemsize,
                  self.mask)


class RealParts(NamedTuple):
    """An array of real numbers whose lanes lie side by side: they are read without imaginary parts, which are not
    written."""

    w: ComplexWriter
    pointer: Register
    step: Register
    mask: Register | None = None

    def base(self, element: Register) -> Register:
        return moved(self.w.function, self.pointer, self.w.type, product(self.w.function, element, self.step))

    def read(self, base: Register, further: int = 0) -> Complex:
        return Complex(_loaded(self.w, _further(self.w, base, self.step, further), self.mask), self.w.number(0.0))

    def write(self, base: Register, further: int, value: Complex) -> None:
        store(self.w.function, value.re, _further(self.w, base, self.step, further), self.w.dtype.itemsize, self.mask)


class Backwards(NamedTuple):
    """A row of complex numbers, of which the lanes go backwards from an element."""

    w: ComplexWriter
    pointer: Register
    masks: Sequence[Register] | None = None

    @property
    def _columns(self) -> Columns:
        return Columns(self.w, self.pointer, integer(2), self.masks)

    def base(self, element: Register) -> Register:
        """That of the last lane, which comes first."""
        return self._columns.base(self.w.function.let(f"sub {element}, {self.w.lanes - 1}", "i64"))

    def read(self, base: Register, further: int = 0) -> Complex:
        return self._turned(self._columns.read(base, further))

    def write(self, base: Register, further: int, value: Complex) -> None:
        self._columns.write(base, further, self._turned(value))

    def _turned(self, value: Complex) -> Complex:
        return Complex(*map(self.w.function.backwards, value))


class RowElements(NamedTuple):
    """A row of complex numbers, one by one: there is a single lane."""

    w: ComplexWriter
    pointer: Register

    def base(self, element: Register) -> Register:
        return moved(self.w.function, self.pointer, self.w.type, self.w.function.let(f"shl {element}, 1", "i64"))

    def read(self, base: Register, further: int = 0) -> Complex:
        return Complex(*[_loaded(self.w, _further(self.w, base, integer(1), 2 * further + n)) for n in (0, 1)])

    def write(self, base: Register, further: int, value: Complex) -> None:
        for n, part in enumerate(value):
            store(self.w.function, part, _further(self.w, base, integer(1), 2 * further + n), self.w.dtype.itemsize,
                  None)


class Placing:
    """Makes places of one function, in which there are as many lanes as `left` says, or all."""

    def __init__(self, w: ComplexWriter, left: Register | None) -> None:
        self.w = w
        self.mask = None if left is None else lanes_below(w.function, left, w.lanes)
        self.masks = None if left is None else halves_below(w.function, left, w.lanes)

    def __call__(self, kind: PlaceKind, pointer: Register, step: Register, ahead: bool = False) -> ElementPlace:
        if kind == "room":
            return Room(self.w, pointer)
        if kind == "columns":
            return Columns(self.w, pointer, step, self.masks, ahead)
        return (RealParts if kind == "real parts" else RealColumns)(self.w, pointer, step, self.mask)


def halves_below(f: FunctionWriter, left: Register, lanes: int) -> list[Register]:
    """The numbers of two vectors that belong to the first complex ones."""
    numbers = f.let(f"shl {left}, 1", "i64")
    return [lanes_below(f, f.let(f"sub {numbers}, {n * lanes}", "i64"), lanes) for n in (0, 1)]


def halves_above(f: FunctionWriter, left: int, lanes: int) -> list[Register]:
    """The numbers of two vectors that belong to the last complex ones."""
    below = [lane >= 2 * (lanes - left) for lane in range(2 * lanes)]
    return [Register("<" + ", ".join([f"i1 {str(is_there).lower()}" for is_there in part]) + ">", "i1", lanes)
            for part in (below[:lanes], below[lanes:])]


def _further(w: ComplexWriter, base: Register, step: Register, further: int) -> Register:
    f = w.function
    return moved(f, base, w.type, product(f, step, integer(further))) if further else base


def _loaded(w: ComplexWriter, place: Register, mask: Register | None = None) -> Register:
    return loaded(w.function, place, w.type, w.lanes, w.dtype.itemsize, mask)
