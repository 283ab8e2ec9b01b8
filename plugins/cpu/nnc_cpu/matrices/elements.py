"""Elements on their way between arrays and scratch memory: as many registers as they have parts."""

from __future__ import annotations

from collections.abc import Sequence

from nnc_cpu.llvm.ir import FunctionWriter, Register, integer
from nnc_cpu.matrices.steps import Element
from nnc_cpu.products.writing import moved

SIZES = {"float": 4, "double": 8}


class ElementWriter:
    """Writes what becomes of an element; `unbounded` remembers whether one was NaN or infinite, None: nobody asks."""

    def __init__(self, f: FunctionWriter, element: Element, unbounded: Register | None) -> None:
        self.function, self.element, self.unbounded = f, element, unbounded

    def array(self, place: Register) -> list[Register]:
        """The element there in an array."""
        return self.loaded(place, self.element.array)

    def area(self, place: Register) -> list[Register]:
        """The element there in an area."""
        return self.loaded(place, self.element.area)

    def take(self, value: Sequence[Register], place: Register) -> None:
        """Store what comes from an array to an area."""
        self.look(value)
        self.stored([self.converted(x, self.element.area) for x in value], place)

    def give(self, value: Sequence[Register], place: Register, out: Register | None) -> None:
        """Store what comes from an area to an array; zero where a condition holds."""
        f, type = self.function, self.element.array
        value = [self.converted(x, type) for x in value]
        self.look(value)
        if out is not None:
            value = [f.let(f"select {out}, {type} 0.0, {x}", type) for x in value]
        self.stored(value, place)

    def halved(self, a: Sequence[Register], b: Sequence[Register]) -> list[Register]:
        """(a + conjugate of b) / 2, with the signs of zeros that NumPy's division of complex numbers gives."""
        real = self.operation("fadd", a[0], b[0])
        half = Register("5.000000e-01", real.type)
        if len(a) == 1:
            return [self.operation("fmul", real, half)]
        imaginary, zero = self.operation("fsub", a[1], b[1]), Register("0.000000e+00", real.type)
        parts = (self.operation("fadd", real, self.operation("fmul", imaginary, zero)),
                 self.operation("fsub", imaginary, self.operation("fmul", real, zero)))
        return [self.operation("fmul", part, half) for part in parts]

    def look(self, value: Sequence[Register]) -> None:
        """Remember a number that is not finite: it less itself is NaN."""
        f = self.function
        if self.unbounded is None:
            return
        for x in value:
            rest = self.operation("fsub", x, x)
            found = f.let(f"fcmp uno {rest}, {rest.name}", "i1")
            with f.where(found):
                f.set(self.unbounded, integer(1, 1))

    def operation(self, name: str, a: Register, b: Register) -> Register:
        return self.function.let(f"{name} {a}, {b.name}", a.type)

    def converted(self, x: Register, type: str) -> Register:
        if x.type == type:
            return x
        return self.function.let(f"{'fpext' if type == 'double' else 'fptrunc'} {x} to {type}", type)

    def loaded(self, place: Register, type: str) -> list[Register]:
        f = self.function
        return [f.let(f"load {type}, {moved(f, place, type, integer(n))}, align {SIZES[type]}", type)
                for n in range(self.element.parts)]

    def stored(self, value: Sequence[Register], place: Register) -> None:
        f = self.function
        for n, x in enumerate(value):
            f.line(f"store {x}, {moved(f, place, x.type, integer(n))}, align {SIZES[x.type]}")
