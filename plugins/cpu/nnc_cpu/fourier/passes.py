"""Passes: all butterflies of one radix, from one place to another.

A pass of radix r takes `together` transforms of length n side by side to r times as many that are r times shorter, so
that what comes out of the last one is in order (Stockham 1966).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, NamedTuple

from nnc_core.base.dtype import DType
from nnc_cpu.fourier.butterflies import transformed
from nnc_cpu.fourier.complexes import Complex, ComplexWriter
from nnc_cpu.fourier.places import PlaceKind, Placing, Room
from nnc_cpu.llvm.ir import FunctionWriter, Register, integer
from nnc_cpu.products.writing import Signature, function_text, moved, parameters, product, total

SIGNATURE: Signature = (("source", "ptr"), ("target", "ptr"), ("source_step", "i64"), ("target_step", "i64"),
                        ("left", "i64"), ("table", "ptr"), ("factors", "ptr"), ("far", "ptr"),
                        ("scale", "ptr"))
"""`table`: where that of the whole transform begins; `factors`: of the elements of the result, or nothing; `far`: of
those that are products."""


class Pass(NamedTuple):
    """All that the function of a pass depends on."""

    radix: int
    butterflies: int
    """Those of one transform."""
    together: int
    """Transforms side by side."""
    steps: tuple[int, int]
    """Elements from one transform to the next in the source, and from one element of each to the next."""
    table: int
    """The number in the table at which its own begin."""
    source: PlaceKind = "room"
    target: PlaceKind = "room"
    factors: Literal["", "lanes", "elements", "products"] = ""
    """Whether results are multiplied: by a number for each lane, one for all, or both."""
    inverse_source: bool = False
    inverse_target: bool = False
    scaled: bool = False
    masked: bool = False
    ahead: bool = False
    """The source's columns that come next are sent for."""

    @property
    def numbers(self) -> int:
        """Numbers of its part of the table."""
        return 2 * self.butterflies * (self.radix - 1) if self.butterflies > 1 else 0


class PassWriter:
    """Writes the function of a pass."""

    def __init__(self, made: Pass, dtype: DType, lanes: int, declared: dict[str, None]) -> None:
        self.made, self.function = made, FunctionWriter(declared)
        self.w = ComplexWriter(self.function, dtype, lanes)
        (source, target, source_step, target_step, left, self.table, self.factors, self.far,
         self.scale) = parameters(SIGNATURE)
        place = Placing(self.w, left if made.masked else None)
        self.source = place(made.source, source, source_step, made.ahead)
        self.target = place(made.target, target, target_step)

    def text(self, name: str) -> str:
        f, made = self.function, self.made
        with repeated(f, made.butterflies) as p:
            twiddles = self.twiddles(p)
            with repeated(f, made.together) as q:
                self.butterfly(p, q, twiddles)
        return function_text(f, name, SIGNATURE)

    def twiddles(self, p: Register) -> Register:
        f, made = self.function, self.made
        first = total(f, product(f, p, integer(2 * (made.radix - 1))), integer(made.table))
        return moved(f, self.table, self.w.type, first)

    def butterfly(self, p: Register, q: Register, twiddles: Register) -> None:
        f, made, (apart, step) = self.function, self.made, self.made.steps
        base = self.source.base(total(f, product(f, p, integer(step)), product(f, q, integer(apart))))
        values = [self.source.read(base, k * made.butterflies * step) for k in range(made.radix)]
        found = transformed(self.w, [v.swapped for v in values] if made.inverse_source else values)
        first = total(f, q, product(f, p, integer(made.together * made.radix)))
        target = self.target.base(first)
        for k, value in enumerate(self.turned(found, twiddles)):
            value = self.multiplied(value, total(f, first, integer(k * made.together)))
            self.target.write(target, k * made.together, value.swapped if made.inverse_target else value)

    def turned(self, values: Sequence[Complex], twiddles: Register) -> list[Complex]:
        """Times the roots of what is left of the length."""
        if self.made.butterflies == 1:
            return list(values)
        return [values[0], *[self.w.times(value, self.w.number_at(twiddles, integer(k)))
                             for k, value in enumerate(values[1:])]]

    def multiplied(self, value: Complex, element: Register) -> Complex:
        if self.made.factors == "elements":
            value = self.w.times(value, self.w.number_at(self.factors, element))
        elif self.made.factors:
            room = Room(self.w, self.factors)
            root = room.read(room.base(element))
            if self.made.factors == "products":
                root = self.w.times(root, self.w.number_at(self.far, element))
            value = self.w.times(value, root)
        if self.made.scaled:
            value = self.w.scaled(value, self.w.spread(self.scale))
        return value


@contextmanager
def repeated(f: FunctionWriter, count: int) -> Iterator[Register]:
    """A loop of so many rounds, or none for one."""
    if count == 1:
        yield integer(0)
    else:
        with f.loop(integer(0), integer(count)) as n:
            yield n


def passes_of(radices: Sequence[int], together: int, table: int, steps: tuple[int, int] | None = None) -> list[Pass]:
    """The passes of transforms of a length, `together` side by side; `steps`: those in the first source."""
    found, left, table_end = list[Pass](), 1, table
    for radix in radices:
        left *= radix
    for radix in radices:
        left //= radix
        apart = steps if steps and not found else (1, together)
        found.append(Pass(radix, left, together, apart, table_end))
        table_end += found[-1].numbers
        together *= radix
    return found
