"""Reductions: what is folded over the inner points of a stage, in order, in parts, or by lanes together."""

from __future__ import annotations

from math import log
from typing import Protocol

from nnc_core.base.dtype import DType, is_float
from nnc_core.base.loopnest import PARTS, Instruction, Reduction
from nnc_core.codegen.expansions import EXPANSIONS
from nnc_core.codegen.numpy_reductions import identity
from nnc_core.codegen.scalar import BodyBuilder, Scalar
from nnc_cpu.llvm.ir import FunctionWriter, Register, integer
from nnc_cpu.llvm.logic import constant, held
from nnc_cpu.llvm.scalars import ScalarWriter

_FOLDS = {"sum": "add", "product": "multiply", "maximum": "maximum", "minimum": "minimum", "all": "bitwise_and",
          "any": "bitwise_or", "recurrence": "add"}


class Points(Protocol):
    """The points at hand, as reductions see them: see `PointWriter`."""

    function: FunctionWriter
    scalars: ScalarWriter
    width: int
    values: dict[int, Register]
    dtypes: list[DType]

    @property
    def mask(self) -> Register | None:
        """The lanes that have a point; None for all."""


class InnerPoints(Protocol):
    """The inner points of a stage, as reductions see them."""

    @property
    def points(self) -> Points:
        """The points at hand."""

    @property
    def shared(self) -> bool:
        """True if lanes are inner points, whose results are folded at the end."""

    @property
    def count(self) -> int:
        """The count of inner points."""

    def flat(self) -> Register:
        """The place of the inner point in row-major order."""


def fold_of(stage: InnerPoints, number: int, reduction: Reduction, varies: bool, in_parts: bool) -> FoldWriter:
    """The writer for a reduction, which is value `number`; `varies`: lanes that are outer points have results of their
    own."""
    if reduction.kind in ("argmax", "argmin"):
        return PositionFoldWriter(stage, number, reduction, varies)
    return (PartialFoldWriter if in_parts else FoldWriter)(stage, number, reduction, varies)


class FoldWriter:
    """Writes one reduction: what is folded so far is a variable, of all lanes where these have different values."""

    def __init__(self, stage: InnerPoints, number: int, reduction: Reduction, varies: bool) -> None:
        self.stage, self.number, self.reduction = stage, number, reduction
        self.points, self.dtype, self.shared = stage.points, reduction.dtype, stage.shared
        self.function, self.scalars = stage.points.function, stage.points.scalars
        self.type = held(reduction.dtype)
        self.lanes = stage.points.width if self.shared or varies else 1
        self.first = self.function.spread(constant(identity(reduction.kind, reduction.dtype), reduction.dtype),
                                          self.lanes)

    def start(self) -> None:
        self.total = self.function.variable(self.type, self.lanes)
        self.function.set(self.total, self.first)

    def fold(self) -> Register:
        """Fold the point at hand; what has been folded so far."""
        before = self.function.get(self.total, self.type, self.lanes)
        after = self.folded(before)
        if self.shared and self.points.mask is not None:
            after = self.scalars.select(self.points.mask, after, before)
        self.function.set(self.total, after)
        return after

    def take_in(self, other: FoldWriter) -> None:
        """Fold in what another one of the same reduction has folded, in whatever order."""
        totals = [self.function.get(fold.total, self.type, self.lanes) for fold in (self, other)]
        self.function.set(self.total, self.merged(*totals))

    def finished(self) -> Register:
        total = self.function.get(self.total, self.type, self.lanes)
        return self.across(total) if self.shared else total

    def folded(self, before: Register) -> Register:
        """The total with the values at hand folded in."""
        terms = [self.function.spread(self.term(operand), self.lanes) for operand in self.reduction.operands]
        if self.reduction.kind == "dot":
            return self.operation("fma", *terms, before)
        if self.reduction.kind == "logsumexp":
            return _log_add_exp(self.scalars, before, terms[0], self.dtype)
        if self.reduction.factor is not None:
            before = self.operation("multiply", before, terms[1])
        return self.merged(before, terms[0])

    def term(self, operand: int) -> Register:
        return self.scalars.cast(self.points.values[operand], self.points.dtypes[operand], self.dtype)

    def merged(self, a: Register, b: Register) -> Register:
        """Two partial results as one."""
        return self.operation(_FOLDS.get(self.reduction.kind, "add"), a, b)

    def operation(self, name: str, *operands: Register) -> Register:
        return self.scalars.instruction(name, self.dtype, operands, self.dtype)

    def across(self, total: Register) -> Register:
        """Lanes folded as a tree, the first half with the second."""
        while total.lanes > 1:
            half = total.lanes // 2
            total = self.merged(*[self.part(total, begin, half) for begin in (0, half)])
        return total

    def part(self, x: Register, begin: int, count: int) -> Register:
        """Neighbouring lanes."""
        if count == 1:
            return self.function.lane(x, begin)
        which = ", ".join([f"i32 {begin + k}" for k in range(count)])
        return self.function.let(f"shufflevector {x}, {x.full} poison, <{count} x i32> <{which}>", x.type, count)


class PartialFoldWriter(FoldWriter):
    """Writes a reduction as PARTS partial ones: see `loopnest`.

    Where there are fewer points, parts without any are left out: what is folded began with the identity, so that
    folding in another changes no bit.
    """

    def start(self) -> None:
        self.count = PARTS // self.lanes if self.shared else min(PARTS, self.stage.count)
        self.totals = self.function.variable(self.type, self.lanes, self.count)
        for n in range(self.count):
            self.function.set(self.at(integer(n)), self.first)

    def at(self, place: Register) -> Register:
        """The variable of some of the parts."""
        full = self.first.full
        return self.function.let(f"getelementptr {full}, {self.totals}, {place}", "ptr")

    def fold(self) -> Register:
        place = self.stage.flat()
        if self.shared and self.lanes != 1:
            place = self.function.let(f"udiv {place}, {self.lanes}", "i64") if place.name.startswith("%") else place
        if self.count != 1 and (self.shared or self.stage.count > PARTS):
            place = self.function.let(f"and {place}, {self.count - 1}", "i64")
        self.total = self.at(integer(0) if self.count == 1 else place)
        return super().fold()

    def finished(self) -> Register:
        parts = [self.function.get(self.at(integer(n)), self.type, self.lanes) for n in range(self.count)]
        half = (PARTS // self.lanes if self.shared else PARTS) // 2
        while half:
            parts = [self.merged(a, b) for a, b in zip(parts, parts[half:], strict=False)] + parts[max(
                0, len(parts) - half) : half]
            half //= 2
        return self.across(parts[0]) if self.shared else parts[0]


class PositionFoldWriter(FoldWriter):
    """Writes argmax and argmin: the first of equals; a NaN beats numbers, and nothing beats it.

    A position is held in as few bits as will do.  It is -1 while nothing has beaten the value that everything else
    beats, which stands for a position of 0.
    """

    def start(self) -> None:
        self.source = self.points.dtypes[self.reduction.value]
        self.larger = self.reduction.kind == "argmax"
        self.type = "i32" if self.stage.count < 1 << 31 else "i64"
        self.first = self.function.spread(Register("-1", self.type), self.lanes)
        super().start()
        worst = constant(identity("maximum" if self.larger else "minimum", self.source), self.source)
        self.best = self.function.variable(held(self.source), self.lanes)
        self.function.set(self.best, self.function.spread(worst, self.lanes))

    def fold(self) -> Register:
        f, s = self.function, self.scalars
        value = f.spread(self.points.values[self.reduction.value], self.lanes)
        best, before = f.get(self.best, held(self.source), self.lanes), f.get(self.total, self.type, self.lanes)
        better = self.beats(value, best)
        if self.shared and self.points.mask is not None:
            better = s.both(better, self.points.mask)
        after = s.select(better, self.here(), before)
        f.set(self.best, s.select(better, value, best))
        f.set(self.total, after)
        return self.position(after)

    def here(self) -> Register:
        """The positions of the points at hand."""
        place = self.stage.flat()
        if self.type == "i32":
            known = not place.name.startswith("%")
            place = place._replace(type="i32") if known else self.function.let(f"trunc {place} to i32", "i32")
        if not self.shared:
            return self.function.spread(place, self.lanes)
        steps = ", ".join([f"{self.type} {k}" for k in range(self.lanes)])
        return self.scalars.binary("add", place, Register(f"<{steps}>", self.type, self.lanes))

    def beats(self, a: Register, b: Register) -> Register:
        """Tell whether a value takes the place of another that is no worse than all before it."""
        if not is_float(self.source):
            return self.scalars.compare("greater" if self.larger else "less", a, b, self.source)
        order = "ugt" if self.larger else "ult"  # true for NaN
        better = self.function.let(f"fcmp {order} {a}, {b.name}", "i1", a.lanes)
        return self.scalars.both(better, self.function.let(f"fcmp ord {b}, {b.name}", "i1", b.lanes))

    def found(self) -> tuple[Register, Register]:
        """The values that nothing beats so far, and where they are."""
        f = self.function
        return f.get(self.best, held(self.source), self.lanes), f.get(self.total, self.type, self.lanes)

    def take_in(self, other: FoldWriter) -> None:
        assert isinstance(other, PositionFoldWriter), "folds of one reduction are of one kind"
        value, place = self.better(self.found(), other.found())
        self.function.set(self.best, value)
        self.function.set(self.total, place)

    def finished(self) -> Register:
        value, place = self.found()
        while self.shared and place.lanes > 1:
            half = place.lanes // 2
            first, second = ((self.part(value, begin, half), self.part(place, begin, half)) for begin in (0, half))
            value, place = self.better(first, second)
        return self.position(place)

    def better(self, first: tuple[Register, Register], second: tuple[Register, Register]) -> tuple[Register, Register]:
        """Those of two values and places that beat the other, or come before an equal one."""
        s, (a, p), (b, q) = self.scalars, first, second
        before = self.function.let(f"icmp slt {q}, {p.name}", "i1", p.lanes)
        wins = s.either(self.beats(b, a), s.both(before, s.negated(self.beats(a, b))))
        return s.select(wins, b, a), s.select(wins, q, p)

    def position(self, place: Register) -> Register:
        """A position as an index."""
        none, full = self.function.spread(Register("0", self.type), place.lanes), Register("", "i64", place.lanes).full
        below = self.function.let(f"icmp slt {place}, {none.name}", "i1", place.lanes)
        place = self.scalars.select(below, none, place)
        return place if self.type == "i64" else self.function.let(f"sext {place} to {full}", "i64", place.lanes)


def _log_add_exp(scalars: ScalarWriter, a: Register, b: Register, dtype: DType) -> Register:
    """log(exp(a) + exp(b)), written out in scalar instructions."""
    body = BodyBuilder(0)
    x, y = (Scalar(body, body.append(Instruction("load", dtype)), dtype) for _ in range(2))
    larger = x.apply("greater", y).select(x, y)
    more = EXPANSIONS["log1p"](EXPANSIONS["exp"](-abs(x - y)))
    result = x.apply("equal", y).select(x + log(2), larger + more)
    values: dict[int, Register] = {0: a, 1: b}
    dtypes = [i.dtype for i in body.instructions]
    for number, i in enumerate(body.instructions):
        if i.operation == "constant":
            values[number] = constant(i.literal, i.dtype)
        elif number > 1:
            operands = [values[n] for n in i.operands]
            values[number] = scalars.instruction(i.operation, i.dtype, operands, dtypes[i.operands[0]])
    return values[result.number]
