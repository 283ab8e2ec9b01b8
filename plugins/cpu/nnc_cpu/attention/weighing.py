"""From scores to weights: the functions between the products of a block."""

from __future__ import annotations

from math import inf

from nnc_cpu.attention.exponential import exponential
from nnc_cpu.attention.kind import AttentionKind
from nnc_cpu.llvm.ir import FunctionWriter, Register, integer
from nnc_cpu.llvm.logic import constant, held
from nnc_cpu.products.writing import (
    Signature,
    function_text,
    loaded,
    moved,
    parameters,
    product,
    store,
    total,
)


class Weighing:
    """Writes what both ways need: rows of vectors, and scores with what hides them."""

    def __init__(self, kind: AttentionKind, crossing: bool, declared: dict[str, None]) -> None:
        self.kind, self.crossing = kind, crossing
        """`crossing`: some of the block's keys are later than some of its queries."""
        self.function = FunctionWriter(declared)
        self.type, self.size, self.lanes = held(kind.dtype), kind.dtype.itemsize, kind.lanes

    # ---- vectors
    def number(self, value: float) -> Register:
        return self.function.spread(constant(value, self.kind.dtype), self.lanes)

    def row(self, base: Register, row: Register) -> Register:
        """The address of a row of a panel."""
        return moved(self.function, base, self.type, product(self.function, row, integer(self.kind.width)))

    def read(self, row: Register, v: int) -> Register:
        place = moved(self.function, row, self.type, integer(v), self.lanes)
        return loaded(self.function, place, self.type, self.lanes, self.size, None)

    def write(self, value: Register, row: Register, v: int) -> None:
        store(self.function, value, moved(self.function, row, self.type, integer(v), self.lanes), self.size, None)

    def binary(self, word: str, a: Register, b: Register) -> Register:
        return self.function.let(f"{word} {a}, {b.name}", a.type, a.lanes)

    def compare(self, order: str, a: Register, b: Register) -> Register:
        return self.function.let(f"fcmp {order} {a}, {b.name}", "i1", a.lanes)

    def select(self, condition: Register, a: Register, b: Register) -> Register:
        return self.function.let(f"select {condition}, {a}, {b}", a.type, a.lanes)

    # ---- scores
    def score(self, product: Register, v: int, scale: Register, bias: Register, edge: Register,
              first_sees: bool) -> Register:
        """A vector of scores: `bias` the row of what the mask adds; lane number n lies behind the edge if it is above
        `edge`, or, where `first_sees` is false, below."""
        hidden = self.number(-inf)
        x = self.binary("fmul", product, scale)
        if self.kind.mask is not None:
            more = self.read(bias, v)
            boolean = self.kind.mask.dtype != self.kind.dtype
            x = self.select(self.compare("oeq", more, hidden), hidden, x) if boolean else self.binary("fadd", x, more)
        if self.crossing:
            numbers = ", ".join([f"i64 {v * self.lanes + n}" for n in range(self.lanes)])
            limit = self.function.spread(edge, self.lanes)
            order = "sle" if first_sees else "sge"
            seen = self.function.let(f"icmp {order} <{self.lanes} x i64> <{numbers}>, {limit.name}", "i1", self.lanes)
            x = self.select(seen, x, hidden)
        return x


AHEAD: Signature = (("scores", "ptr"), ("bias", "ptr"), ("count", "i64"), ("edge", "i64"), ("scale", "ptr"),
                    ("state", "ptr"), ("mixture", "ptr"), ("size", "i64"))
"""`scores`: `count` rows of keys, which become weights; query number n sees row i if n >= edge + i; `state`: the
highest score of each query so far, and the sum of its weights; `mixture`: what values have been added up to, `size`
rows."""


class WeighAhead(Weighing):
    """Writes one step of the running softmax (Milakov and Gimelshein 2018): the weights of a block relative to the
    highest scores so far; what was added up before is brought to the same scale."""

    def text(self, name: str) -> str:
        f = self.function
        self.scores, self.bias, self.count, self.edge, scale, self.state, self.mixture, self.mixed = parameters(AHEAD)
        self.scale = f.spread(f.let(f"load {self.type}, {scale}", self.type), self.lanes)
        before = [self.read(self.state, v) for v in range(self.kind.vectors)]
        highest = self.highest(before)
        base = [self.select(self.compare("oeq", h, self.number(-inf)), self.number(0.0), h) for h in highest]
        factors = [exponential(f, self.binary("fsub", a, b), self.kind.dtype)
                   for a, b in zip(before, base, strict=True)]
        sums = self.weigh(base)
        for v, (h, factor, added) in enumerate(zip(highest, factors, sums, strict=True)):
            self.write(h, self.state, v)
            place = self.kind.vectors + v
            known = self.binary("fmul", self.read(self.state, place), factor)
            self.write(self.binary("fadd", known, added), self.state, place)
        self.rescale(factors)
        return function_text(f, name, AHEAD)

    def highest(self, before: list[Register]) -> list[Register]:
        """Scale and hide the scores; the highest of each query."""
        f = self.function
        variables = [f.variable(self.type, self.lanes) for _ in before]
        for variable, x in zip(variables, before, strict=True):
            f.set(variable, x)
        with f.loop(integer(0), self.count) as i:
            row, bias = self.row(self.scores, i), self.row(self.bias, i)
            edge = total(f, self.edge, i)
            for v, variable in enumerate(variables):
                x = self.score(self.read(row, v), v, self.scale, bias, edge, first_sees=False)
                self.write(x, row, v)
                known = f.get(variable, self.type, self.lanes)
                f.set(variable, self.select(self.compare("ogt", x, known), x, known))
        return [f.get(variable, self.type, self.lanes) for variable in variables]

    def weigh(self, base: list[Register]) -> list[Register]:
        """Make weights of scores; their sums."""
        f = self.function
        variables = [f.variable(self.type, self.lanes) for _ in base]
        for variable in variables:
            f.set(variable, self.number(0.0))
        with f.loop(integer(0), self.count) as i:
            row = self.row(self.scores, i)
            for v, (variable, b) in enumerate(zip(variables, base, strict=True)):
                weight = exponential(f, self.binary("fsub", self.read(row, v), b), self.kind.dtype)
                self.write(weight, row, v)
                f.set(variable, self.binary("fadd", f.get(variable, self.type, self.lanes), weight))
        return [f.get(variable, self.type, self.lanes) for variable in variables]

    def rescale(self, factors: list[Register]) -> None:
        """Bring the mixture to the new scale, if that is another one for any query."""
        f = self.function
        other = [self.compare("une", factor, self.number(1.0)) for factor in factors]
        some = other[0]
        for more in other[1:]:
            some = self.binary("or", some, more)
        with f.where(f.call(f"llvm.vector.reduce.or.v{self.lanes}i1", "i1", some)), \
                f.loop(integer(0), self.mixed) as i:
            row = self.row(self.mixture, i)
            for v, factor in enumerate(factors):
                self.write(self.binary("fmul", self.read(row, v), factor), row, v)


BACK: Signature = (("scores", "ptr"), ("onto", "ptr"), ("bias", "ptr"), ("count", "i64"), ("edge", "i64"),
                   ("scale", "ptr"), ("sums", "ptr"), ("sums_step", "i64"), ("shift", "ptr"), ("shift_step", "i64"))
"""`scores`: `count` rows of queries, which become weights; `onto`: their cotangents times values, which become the
cotangents of scores; row i sees key number n if n <= edge + i; `sums` and `shift` have a number for each row."""


class WeighBack(Weighing):
    """Writes what finds weights again from sums, and the cotangents of scores."""

    def text(self, name: str) -> str:
        f = self.function
        scores, onto, bias, count, edge, scale, sums, sums_step, shift, shift_step = parameters(BACK)
        factor = f.spread(f.let(f"load {self.type}, {scale}", self.type), self.lanes)
        with f.loop(integer(0), count) as i:
            rows = [self.row(base, i) for base in (scores, onto, bias)]
            base, less = self.single(sums, product(f, i, sums_step)), self.single(shift, product(f, i, shift_step))
            limit = total(f, edge, i)
            for v in range(self.kind.vectors):
                x = self.score(self.read(rows[0], v), v, factor, rows[2], limit, first_sees=True)
                weight = exponential(f, self.binary("fsub", x, base), self.kind.dtype, above=True)
                self.write(weight, rows[0], v)
                relative = self.binary("fsub", self.read(rows[1], v), less)
                self.write(self.binary("fmul", weight, relative), rows[1], v)
        return function_text(f, name, BACK)

    def single(self, base: Register, place: Register) -> Register:
        """A number in all lanes."""
        f = self.function
        return f.spread(f.let(f"load {self.type}, {moved(f, base, self.type, place)}", self.type), self.lanes)


