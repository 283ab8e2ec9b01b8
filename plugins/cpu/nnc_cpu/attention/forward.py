"""Attention ahead: a task is a panel of queries, which goes through the keys block by block (Dao et al. 2022).

Lanes are queries.  The rows of scores are keys, which are read where they lie, and what is added up are features of
values for each query; so the highest score and the sum of a query are those of a lane, and nothing but the queries is
packed.  Each sum is taken in order of its steps, block by block: no width of vectors and no thread changes a bit.
"""

from __future__ import annotations

from math import inf, nan

from nnc_core.base.dtype import DType
from nnc_core.base.loopnest import Access, Instruction
from nnc_core.operator.attention_problem import MOST_FEATURES
from nnc_cpu.attention.driver import DriverWriter, shared_functions
from nnc_cpu.attention.kind import BLOCK, AttentionKind
from nnc_cpu.attention.weighing import WeighAhead
from nnc_cpu.llvm.ir import Register, integer
from nnc_cpu.llvm.logic import constant
from nnc_cpu.llvm.scalars import ScalarWriter
from nnc_cpu.products.ending import expanded
from nnc_cpu.products.writing import difference, either, lanes_below, loaded, moved, product, smaller, store, total

NAME = "attend"


def render(kind: AttentionKind, halves: bool, declared: dict[str, None]) -> str:
    """The text of all functions; NAME is the one to call."""
    texts = [*shared_functions(kind, halves, declared), WeighAhead(kind, False, declared).text("weigh")]
    if kind.causal:
        texts.append(WeighAhead(kind, True, declared).text("weigh_crossing"))
    return "".join([*texts, ForwardWriter(kind, halves, declared).text(NAME)])


class ForwardWriter(DriverWriter):
    """Writes the function that gives results and sums."""

    def __init__(self, kind: AttentionKind, halves: bool, declared: dict[str, None]) -> None:
        super().__init__(kind, declared)
        self.scalars = ScalarWriter(self.function, halves)

    def rooms(self) -> None:
        kind = self.kind
        self.queries, self.scores = self.panel(MOST_FEATURES), self.panel(BLOCK)
        self.bias = self.panel(BLOCK if kind.mask else 1)
        self.mixture = self.panel(MOST_FEATURES + kind.value_rows + kind.lanes)
        self.state = self.panel(2)
        self.key_table, self.value_table = self.tables(2)

    def task(self, task: Register) -> None:
        f, numbers, width = self.function, self.numbers, integer(self.kind.width)
        panel, batch = self.split(task, "panels")
        self.places = self.axes(batch)
        self.first = product(f, panel, width)
        self.count = smaller(f, width, difference(f, numbers["queries"], self.first))
        query = self.row("query", self.matrix("query", self.places), self.first)
        self.call("turn", query, integer(1), numbers["query_row"], numbers["features"], self.count, self.queries)
        self.mixed_rows = self.whole_tiles(numbers["value_features"], self.kind.value_rows)
        self.fill(self.mixture, self.mixed_rows)
        self.fill(self.state, integer(2))
        for v in range(self.kind.vectors):
            self.set_state(v, self.lanes_of(-inf))
        key, value = (self.matrix(name, self.places) for name in ("key", "value"))
        with f.loop(integer(0), self.stop(), BLOCK) as first:
            self.block(first, self.row("key", key, first), self.row("value", value, first))
        self.finish()

    def stop(self) -> Register:
        """The number of keys that any query of the panel sees."""
        f, keys = self.function, self.numbers["keys"]
        if not self.kind.causal:
            return keys
        return smaller(f, keys, total(f, total(f, self.first, self.count), self.numbers["offset"]))

    def block(self, first: Register, key: Register, value: Register) -> None:
        """Keys from number `first` on."""
        f, numbers = self.function, self.numbers
        count = smaller(f, integer(BLOCK), difference(f, self.stop(), first))
        self.note(self.key_table, "key", key, self.whole_tiles(count, self.kind.rows), count)
        self.note(self.value_table, "value", value, count, count)
        self.beside(self.key_table, count, numbers["features"], self.queries, self.scores, fresh=True)
        if self.kind.mask is not None:
            mask = self.row("mask", self.matrix("mask", self.places), self.first)
            mask = self.at("mask", mask, product(f, first, numbers["mask_column"]))
            self.lay_mask(mask, False, count, self.count, self.bias)
        self.weigh(first, count)
        self.along("along_values", self.kind.value_rows, numbers["value_features"], self.value_table, count,
                   self.scores, self.mixture)

    def weigh(self, first: Register, count: Register) -> None:
        f = self.function
        edge = difference(f, difference(f, first, self.numbers["offset"]), self.first)
        operands = (self.scores, self.bias, count, edge, self.scale, self.state, self.mixture, self.mixed_rows)
        if not self.kind.causal:
            self.call("weigh", *operands)
            return
        crossing = f.let(f"icmp sgt {total(f, edge, count)}, 1", "i1")  # the first query does not see the last key
        either(f, crossing, lambda: self.call("weigh_crossing", *operands), lambda: self.call("weigh", *operands))

    # ---- the end
    def finish(self) -> None:
        """Divide by the sums, and give away."""
        f, kind, lanes = self.function, self.kind, self.kind.lanes
        sums = self.matrix("sums", self.places)
        sums = self.row("sums", sums, self.first)
        with f.loop(integer(0), integer(kind.vectors)) as v:
            highest, whole = self.state_of(v), self.state_of(total(f, v, integer(kind.vectors)))
            if kind.hides:
                highest = self.where(highest, -inf, 0.0)
                whole = self.where(whole, 0.0, 1.0)
            else:  # a row of nothing but -inf has no softmax
                whole = self.where(highest, -inf, nan, whole)
            self.divide(v, whole)
            logarithm = f.let(f"fadd {highest}, {self.logarithm(whole).name}", self.type, lanes)
            inside = lanes_below(f, difference(f, self.count, product(f, v, integer(lanes))), lanes)
            store(f, logarithm, moved(f, sums, self.type, v, lanes), self.size, inside)
        target = self.row("result", self.matrix("result", self.places), self.first)
        self.give(self.mixture, self.numbers["value_features"], kind.value_rows, self.count, "result", target)

    def divide(self, v: Register, by: Register) -> None:
        """Divide the mixtures of a vector of queries."""
        f, lanes = self.function, self.kind.lanes
        with f.loop(integer(0), self.mixed_rows) as row:
            place = moved(f, self.in_panel(self.mixture, row), self.type, v, lanes)
            value = loaded(f, place, self.type, lanes, self.size, None)
            store(f, f.let(f"fdiv {value}, {by.name}", self.type, lanes), place, self.size, None)

    def logarithm(self, x: Register) -> Register:
        values: list[Register] = []
        for instruction in _logarithm(self.kind.dtype):
            if instruction.operation == "load":
                values.append(x)
            elif instruction.operation == "constant":
                values.append(constant(instruction.literal, instruction.dtype))
            else:
                operands = [values[n] for n in instruction.operands]
                source = _logarithm(self.kind.dtype)[instruction.operands[0]].dtype
                values.append(self.scalars.instruction(instruction.operation, instruction.dtype, operands, source))
        return values[-1]

    # ---- the state of the softmax
    def lanes_of(self, number: float) -> Register:
        return self.function.spread(constant(number, self.kind.dtype), self.kind.lanes)

    def state_of(self, n: Register) -> Register:
        place = moved(self.function, self.state, self.type, n, self.kind.lanes)
        return loaded(self.function, place, self.type, self.kind.lanes, self.size, None)

    def set_state(self, n: int, value: Register) -> None:
        store(self.function, value, moved(self.function, self.state, self.type, integer(n), self.kind.lanes), self.size,
              None)

    def where(self, x: Register, number: float, instead: float, other: Register | None = None) -> Register:
        """Another number where x is one; elsewhere `other`, or x."""
        f = self.function
        found = f.let(f"fcmp oeq {x}, {self.lanes_of(number).name}", "i1", x.lanes)
        return f.let(f"select {found}, {self.lanes_of(instead)}, {other or x}", x.type, x.lanes)


def _logarithm(dtype: DType) -> tuple[Instruction, ...]:
    return expanded((Instruction("load", dtype, access=Access(0, 0, ())), Instruction("log", dtype, (0,))))
