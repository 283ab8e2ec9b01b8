"""Phases of complex vectors, with the operations of `operator/phases.py` one by one, and so its bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from nnc_cpu.llvm.ir import FunctionWriter, Register, integer
from nnc_cpu.matrices.elements import ElementWriter
from nnc_cpu.matrices.steps import Settle
from nnc_cpu.products.writing import moved, product, total

Complex: TypeAlias = Sequence[Register]
"""The real part of a number, and the imaginary one."""


class PhaseWriter:
    """Writes the step for one matrix, whose areas lie in a room."""

    def __init__(self, f: FunctionWriter, step: Settle, numbers: Sequence[Register], room: Register) -> None:
        self.function, self.step, self.type = f, step, step.element.array
        self.elements = ElementWriter(f, step.element, None)
        self.rows, self.count, self.columns, place, *others = numbers
        self.vectors = moved(f, room, "i8", place)
        self.others = (others[0], moved(f, room, "i8", others[1])) if others else None

    def write(self) -> None:
        f = self.function
        with f.loop(integer(0), self.count) as column:
            largest = self.largest(column)
            phase = self.phase(self.number(largest))
            with f.loop(integer(0), self.rows) as row:
                place = self.vector(row, column)
                self.put(self.turned(self.number(place), phase), place)
            self.put([self.number(largest)[0], self.constant("0.0")], largest)
            if self.others is not None:
                columns, area = self.others
                back = [phase[0], f.let(f"fneg {phase[1]}", self.type)]
                with f.loop(integer(0), columns) as along:
                    place = self.place(area, total(f, product(f, column, columns), along))
                    self.put(self.turned(self.number(place), back), place)

    def largest(self, column: Register) -> Register:
        """The place of the first largest component of a vector."""
        f = self.function
        most, found = f.variable(self.type), f.variable("ptr")
        f.set(most, self.constant("-1.0"))
        f.set(found, self.vector(integer(0), column))
        with f.loop(integer(0), self.rows) as row:
            place = self.vector(row, column)
            square = self.square(self.number(place))
            with f.where(f.let(f"fcmp ogt {square}, {f.get(most, self.type).name}", "i1")):
                f.set(most, square)
                f.set(found, place)
        return f.get(found, "ptr")

    def phase(self, x: Complex) -> Complex:
        """The conjugate of a number that has magnitude 1; 1 for zero."""
        f, type = self.function, self.type
        size = f.call(f"llvm.sqrt.{'f32' if type == 'float' else 'f64'}", type, self.square(x))
        none = f.let(f"fcmp oeq {size}, 0.0", "i1")
        parts = [self.real("fdiv", part, size) for part in (x[0], f.let(f"fneg {x[1]}", type))]
        return [f.let(f"select {none}, {type} {instead}, {part}", type)
                for part, instead in zip(parts, ("1.0", "0.0"), strict=True)]

    def turned(self, x: Complex, by: Complex) -> Complex:
        re = self.real("fsub", self.real("fmul", x[0], by[0]), self.real("fmul", x[1], by[1]))
        return [re, self.real("fadd", self.real("fmul", x[0], by[1]), self.real("fmul", x[1], by[0]))]

    def square(self, x: Complex) -> Register:
        return self.real("fadd", *[self.real("fmul", part, part) for part in x])

    def real(self, operation: str, a: Register, b: Register) -> Register:
        return self.elements.operation(operation, a, b)

    def constant(self, number: str) -> Register:
        return Register(number, self.type)

    # ---- places
    def vector(self, row: Register, column: Register) -> Register:
        """The place of a component."""
        f = self.function
        return self.place(self.vectors, total(f, product(f, row, self.columns), column))

    def place(self, area: Register, n: Register) -> Register:
        f = self.function
        return moved(f, area, self.step.element.area, product(f, integer(2), n))

    def number(self, place: Register) -> Complex:
        """As arrays have it."""
        return [self.elements.converted(x, self.type) for x in self.elements.area(place)]

    def put(self, value: Complex, place: Register) -> None:
        self.elements.take(value, place)
