"""Real numbers as half as many complex ones: the transform of these is made that of the real ones, and the other way.

z[j] = x[2 j] + i x[2 j + 1] has Z = E + i O, of the transforms E of the even places and O of the odd ones, each its own
conjugate backwards; X[k] = E[k] + w^k O[k] (Cooley, Lewis, Welch 1970).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from nnc_core.base.dtype import DType
from nnc_cpu.fourier.complexes import Complex, ComplexWriter
from nnc_cpu.fourier.passes import SIGNATURE
from nnc_cpu.fourier.places import (
    Backwards,
    Columns,
    ElementPlace,
    PlaceKind,
    Placing,
    Room,
    RowElements,
    halves_above,
    halves_below,
)
from nnc_cpu.llvm.ir import FunctionWriter, Register, integer
from nnc_cpu.products.writing import difference, function_text, moved, parameters, product

Ends: TypeAlias = tuple[ElementPlace, ElementPlace]
"""Source and target of an element."""


class Pairs(NamedTuple):
    """All that the function of a way depends on: `points` complex numbers, `joined` from the frequencies of twice as
    many real ones, or parted to them."""

    joined: bool
    points: int
    table: int
    """The number of the table at which its roots begin: those of 1 up to half of the points."""
    source: PlaceKind = "room"
    target: PlaceKind = "room"
    masked: bool = False
    scaled: bool = False


def parted(w: ComplexWriter, z: Complex, mirrored: Complex, root: Complex) -> tuple[Complex, Complex]:
    """X[k] and X[n - k] of Z[k] and Z[n - k]."""
    half = w.number(0.5)
    even = w.scaled(w.plus(z, w.conjugate(mirrored)), half)
    odd = w.times(w.scaled(w.minus(z, w.conjugate(mirrored)), half), root)
    return w.minus_turned(even, odd), w.conjugate(w.plus_turned(even, odd))


def joined(w: ComplexWriter, x: Complex, mirrored: Complex, root: Complex) -> tuple[Complex, Complex]:
    """2 Z[k] and 2 Z[n - k] of X[k] and X[n - k]."""
    even = w.plus(x, w.conjugate(mirrored))
    odd = w.times(w.minus(x, w.conjugate(mirrored)), w.conjugate(root))
    return w.plus_turned(even, odd), w.conjugate(w.minus_turned(even, odd))


class PairsWriter:
    """Writes the function of a way between scratch memory and arrays; each lane has a transform of its own."""

    def __init__(self, made: Pairs, dtype: DType, lanes: int, declared: dict[str, None]) -> None:
        self.made, self.function = made, FunctionWriter(declared)
        self.w = ComplexWriter(self.function, dtype, lanes)
        (self.x, self.y, source_step, target_step, left, table, _, _, self.scale) = parameters(SIGNATURE)
        self.table = moved(self.function, table, self.w.type, integer(made.table))
        place = Placing(self.w, left if made.masked else None)
        self.source, self.target = place(made.source, self.x, source_step), place(made.target, self.y, target_step)

    def text(self, name: str) -> str:
        f, n = self.function, integer(self.made.points)
        self.ends(self.w, self.source, self.target)
        with f.loop(integer(1), integer(self.made.points // 2 + 1)) as k:
            root = self.w.number_at(self.table, difference(f, k, integer(1)))
            self.pair(k, (self.source, self.target), difference(f, n, k), (self.source, self.target), root)
        return function_text(f, name, SIGNATURE)

    def ends(self, w: ComplexWriter, source: ElementPlace, target: ElementPlace) -> None:
        """The first element and, of frequencies, the last."""
        first, last = integer(0), integer(self.made.points)
        if self.made.joined:
            x, y = source.read(source.base(first)), source.read(source.base(last))
            value = Complex(w.real("fadd", x.re, y.re), w.real("fsub", x.re, y.re))
            target.write(target.base(first), 0, value)
            return
        z, zero = source.read(source.base(first)), w.number(0.0)
        for k, operation in ((first, "fadd"), (last, "fsub")):
            target.write(target.base(k), 0, self.scaled(w, Complex(w.real(operation, z.re, z.im), zero)))

    def pair(self, k: Register, at_k: Ends, mirrored: Register, at_mirrored: Ends, root: Complex) -> None:
        """Both of a pair, each with its source and its target."""
        way: Callable[..., tuple[Complex, Complex]] = joined if self.made.joined else parted
        read = [source.read(source.base(n)) for n, (source, _) in ((k, at_k), (mirrored, at_mirrored))]
        for n, (_, target), value in zip((k, mirrored), (at_k, at_mirrored), way(self.w, *read, root), strict=True):
            target.write(target.base(n), 0, self.scaled(self.w, value))

    def scaled(self, w: ComplexWriter, value: Complex) -> Complex:
        return w.scaled(value, w.spread(self.scale)) if self.made.scaled else value


class OddWriter(PairsWriter):
    """Writes the function of a way for an odd number of real numbers, which are as many complex ones: half of their
    frequencies are parted from all, or joined by their conjugates."""

    def text(self, name: str) -> str:
        f, n = self.function, integer(self.made.points)
        source, target = self.source, self.target
        first = source.read(source.base(integer(0)))
        real = Complex(first.re, self.w.number(0.0))
        target.write(target.base(integer(0)), 0, real if self.made.joined else self.scaled(self.w, real))
        with f.loop(integer(1), integer(self.made.points // 2 + 1)) as k:
            value = source.read(source.base(k))
            target.write(target.base(k), 0, self.scaled(self.w, value))
            if self.made.joined:
                target.write(target.base(difference(f, n, k)), 0, self.w.conjugate(value))
        return function_text(f, name, SIGNATURE)


class OddRowWriter(OddWriter):
    """Writes the same on rows whose elements lie side by side, one by one."""

    def __init__(self, made: Pairs, dtype: DType, lanes: int, declared: dict[str, None]) -> None:
        super().__init__(made, dtype, 1, declared)
        self.source, self.target = RowElements(self.w, self.x), RowElements(self.w, self.y)


class RowPairsWriter(PairsWriter):
    """Writes the function of a way on rows whose elements lie side by side, in lanes; what is parted may stay where it
    is.  Roots are in blocks of lanes."""

    def text(self, name: str) -> str:
        f, lanes, most = self.function, self.w.lanes, self.made.points // 2
        one = ComplexWriter(f, self.w.dtype, 1)
        self.ends(one, RowElements(one, self.x), RowElements(one, self.y))
        whole = most // lanes * lanes
        with f.loop(integer(0), integer(whole), lanes) as k:
            self.block(k, lanes)
        if whole < most:
            self.block(integer(whole), most - whole)
        return function_text(f, name, SIGNATURE)

    def block(self, before: Register, count: int) -> None:
        """So many pairs from the one behind `before` on."""
        f, lanes = self.function, self.w.lanes
        left = None if count == lanes else halves_below(f, integer(count), lanes)
        right = None if count == lanes else halves_above(f, count, lanes)
        k = f.let(f"add {before}, 1", "i64")
        root = Room(self.w, self.table)
        roots = root.read(moved(f, self.table, self.w.type, product(f, before, integer(2))))
        ahead = tuple(Columns(self.w, row, integer(2), left) for row in (self.x, self.y))
        back = tuple(Backwards(self.w, row, right) for row in (self.x, self.y))
        self.pair(k, ahead, difference(f, integer(self.made.points), k), back, roots)  # type: ignore[arg-type]
