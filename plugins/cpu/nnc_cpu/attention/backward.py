"""Attention back: a task is a chunk of keys, which goes through its panels of keys, and each panel through all queries.

Lanes are keys.  Weights are found again from scores and sums, a block of queries at a time (Dao et al. 2022).
Cotangents of keys and values are added up in the task; those of queries over each chunk of keys, in memory, and over
the chunks by tasks of their own.  How many chunks there are depends on the sizes alone, and each sum is taken in order.
"""

from __future__ import annotations

from nnc_core.operator.attention_problem import MOST_FEATURES
from nnc_cpu.attention.driver import DriverWriter, shared_functions
from nnc_cpu.attention.kind import BLOCK, AttentionKind
from nnc_cpu.attention.numbers import PARTS
from nnc_cpu.attention.weighing import WeighBack
from nnc_cpu.llvm.ir import Register, integer
from nnc_cpu.llvm.logic import constant
from nnc_cpu.products.panels import PanelWriter
from nnc_cpu.products.tile import TileWriter
from nnc_cpu.products.writing import (
    difference,
    either,
    lanes_below,
    loaded,
    moved,
    product,
    smaller,
    store,
    total,
)

NAMES, IN_TURN = ("go_back", "add_up"), "go_back_and_add_up"
"""The functions to call, one after the other, and that which calls both."""
BOTH = f"""\
; numbers: the tasks of each function, then those of both
define void @{IN_TURN}(ptr %arguments, ptr %numbers, i64 %begin, i64 %end) {{
  %first = load i64, ptr %numbers
  %second.at = getelementptr i64, ptr %numbers, i64 1
  %second = load i64, ptr %second.at
  %of.both = getelementptr i64, ptr %numbers, i64 2
  call void @{NAMES[0]}(ptr %arguments, ptr %of.both, i64 0, i64 %first)
  call void @{NAMES[1]}(ptr %arguments, ptr %of.both, i64 0, i64 %second)
  ret void
}}
"""


def render(kind: AttentionKind, halves: bool, declared: dict[str, None]) -> str:
    """The text of all functions."""
    texts = [*shared_functions(kind, halves, declared), WeighBack(kind, False, declared).text("weigh"),
             PanelWriter(kind.tile(kind.rows, "rows", "rows"), kind.vectors, halves, declared).text("copy"),
             *_feature_tiles(kind, declared)]
    if kind.causal:
        texts.append(WeighBack(kind, True, declared).text("weigh_crossing"))
    writers = (BackwardWriter, PartsWriter)
    texts += [make(kind, declared).text(name) for make, name in zip(writers, NAMES, strict=True)]
    return "".join([*texts, BOTH])


def _feature_tiles(kind: AttentionKind, declared: dict[str, None]) -> list[str]:
    """Tiles of features, if these are not as those of values."""
    if kind.feature_rows == kind.value_rows:
        return []
    return [TileWriter(kind.tile(kind.feature_rows, "columns"), kind.vectors, False, declared).text("along_features")]


class PartsPlaces(DriverWriter):
    """Finds what was added up of the cotangents of queries."""

    def of_head(self, chunk: Register, head: Register) -> Register:
        """The address of a head's, over a chunk."""
        f, numbers = self.function, self.numbers
        number = total(f, product(f, chunk, numbers["heads"]), head)
        return self.at(PARTS, self.arrays[PARTS], product(f, number, self.head_size()))

    def head_size(self) -> Register:
        f, numbers = self.function, self.numbers
        return product(f, product(f, numbers["blocks"], numbers["columns"]), integer(BLOCK * self.kind.width))

    def of_block(self, head: Register, block: Register, column: Register) -> Register:
        """The address of a panel of features of a block of queries."""
        f = self.function
        number = total(f, product(f, block, self.numbers["columns"]), column)
        return self.at(PARTS, head, product(f, number, integer(BLOCK * self.kind.width)))


class BackwardWriter(PartsPlaces):
    """Writes the function that goes through chunks of keys."""

    def rooms(self) -> None:
        kind = self.kind
        self.turned_keys, self.turned_values = self.panel(MOST_FEATURES), self.panel(MOST_FEATURES)
        columns = -(-MOST_FEATURES // kind.width)
        self.keys = self.panel(columns * kind.width)
        self.of_keys = self.panel(MOST_FEATURES + kind.feature_rows + kind.lanes)
        self.of_values = self.panel(MOST_FEATURES + kind.value_rows + kind.lanes)
        self.weights, self.of_scores = self.panel(BLOCK), self.panel(BLOCK)
        self.bias = self.panel(BLOCK if kind.mask else 1)
        self.query_table, self.cotangent_table, self.score_table = self.tables(3)

    def task(self, task: Register) -> None:
        f, numbers = self.function, self.numbers
        self.chunk, self.batch = self.split(task, "chunks")
        self.places = self.axes(self.batch)
        first = product(f, self.chunk, numbers["chunk"])
        self.end = smaller(f, numbers["keys"], total(f, first, numbers["chunk"]))
        heads = self.of_head(self.chunk, product(f, self.batch, numbers["group"]))
        rows = f.let(f"udiv {product(f, self.head_size(), numbers['group'])}, {self.kind.width}", "i64")
        self.fill(heads, rows)
        with f.loop(first, self.end, self.kind.width) as key:
            self.panel_of_keys(key)

    # ---- a panel of keys
    def panel_of_keys(self, first: Register) -> None:
        f, numbers, kind = self.function, self.numbers, self.kind
        self.first, self.count = first, smaller(f, integer(kind.width), difference(f, self.end, first))
        self.pack()
        feature_rows = self.whole_tiles(numbers["features"], kind.feature_rows)
        self.fill(self.of_keys, feature_rows)
        self.fill(self.of_values, self.whole_tiles(numbers["value_features"], kind.value_rows))
        with f.loop(integer(0), numbers["group"]) as member, f.loop(self.start(), numbers["queries"], BLOCK) as query:
            self.block(member, query)
        scale = f.spread(f.let(f"load {self.type}, {self.scale}", self.type), kind.lanes)
        self.scaled(self.of_keys, feature_rows, scale)
        for panel, size, rows, array in ((self.of_keys, "features", kind.feature_rows, "of_key"),
                                         (self.of_values, "value_features", kind.value_rows, "of_value")):
            target = self.row(array, self.matrix(array, self.places), first)
            self.give(panel, numbers[size], rows, self.count, array, target)

    def pack(self) -> None:
        """Keys and values turned, and the keys as they are."""
        f, numbers, width = self.function, self.numbers, self.kind.width
        key, value = (self.row(name, self.matrix(name, self.places), self.first) for name in ("key", "value"))
        self.call("turn", key, integer(1), numbers["key_row"], numbers["features"], self.count, self.turned_keys)
        self.call("turn", value, integer(1), numbers["value_row"], numbers["value_features"], self.count,
                  self.turned_values)
        with f.loop(integer(0), numbers["columns"]) as column:
            feature = product(f, column, integer(width))
            left = smaller(f, integer(width), difference(f, numbers["features"], feature))
            target = self.in_panel(self.keys, feature)  # as many rows as a panel has columns
            self.call("copy", self.at("key", key, feature), numbers["key_row"], integer(1), self.count, left, target)

    def start(self) -> Register:
        """The first block of queries of which any sees a key of the panel."""
        f = self.function
        if not self.kind.causal:
            return integer(0)
        first = difference(f, self.first, self.numbers["offset"])
        first = f.call("llvm.smax.i64", "i64", first, integer(0))
        return product(f, f.let(f"udiv {first}, {BLOCK}", "i64"), integer(BLOCK))

    # ---- a block of queries
    def member(self, array: str, member: Register, query: Register) -> Register:
        """The address of a query, in one of the heads that share keys."""
        f = self.function
        start = self.at(array, self.matrix(array, self.places), product(f, member, self.numbers[f"{array}_group"]))
        return self.row(array, start, query)

    def block(self, member: Register, query: Register) -> None:
        f, numbers, kind = self.function, self.numbers, self.kind
        count = smaller(f, integer(BLOCK), difference(f, numbers["queries"], query))
        rows = self.whole_tiles(count, kind.rows)
        for table, array in ((self.query_table, "query"), (self.cotangent_table, "cotangent")):
            self.note(table, array, self.member(array, member, query), rows, count)
        self.beside(self.query_table, count, numbers["features"], self.turned_keys, self.weights, fresh=True)
        self.beside(self.cotangent_table, count, numbers["value_features"], self.turned_values, self.of_scores,
                    fresh=True)
        if kind.mask is not None:
            mask = self.at("mask", self.member("mask", member, query), product(f, self.first, numbers["mask_column"]))
            self.lay_mask(mask, True, count, self.count, self.bias)
        self.weigh(member, query, count)
        self.along("along_values", kind.value_rows, numbers["value_features"], self.cotangent_table, count,
                   self.weights, self.of_values)
        along = "along_values" if kind.feature_rows == kind.value_rows else "along_features"
        self.along(along, kind.feature_rows, numbers["features"], self.query_table, count, self.of_scores,
                   self.of_keys)
        self.onto_queries(member, query, count, rows)

    def weigh(self, member: Register, query: Register, count: Register) -> None:
        f, numbers = self.function, self.numbers
        edge = difference(f, total(f, query, numbers["offset"]), self.first)
        operands = (self.weights, self.of_scores, self.bias, count, edge, self.scale,
                    self.member("sums", member, query), numbers["sums_row"],
                    self.member("shift", member, query), numbers["shift_row"])
        if not self.kind.causal:
            self.call("weigh", *operands)
            return
        crossing = f.let(f"icmp sgt {self.count}, {total(f, edge, integer(1)).name}", "i1")
        either(f, crossing, lambda: self.call("weigh_crossing", *operands), lambda: self.call("weigh", *operands))

    def onto_queries(self, member: Register, query: Register, count: Register, rows: Register) -> None:
        """Add the cotangents of scores times keys to the chunk's part."""
        f, numbers = self.function, self.numbers
        last = difference(f, count, integer(1))
        with f.loop(integer(0), rows) as n:
            row = self.in_panel(self.of_scores, smaller(f, n, last))
            f.line(f"store {row}, {moved(f, self.score_table, 'ptr', n)}")
        head = self.of_head(self.chunk, total(f, product(f, self.batch, numbers["group"]), member))
        block = f.let(f"udiv {query}, {BLOCK}", "i64")
        with f.loop(integer(0), numbers["columns"]) as column:
            keys = self.in_panel(self.keys, product(f, column, integer(self.kind.width)))
            self.beside(self.score_table, count, self.count, keys, self.of_block(head, block, column), fresh=False)


class PartsWriter(PartsPlaces):
    """Writes the function that adds up the cotangents of queries; a task is a block of a head."""

    def task(self, task: Register) -> None:
        f, numbers = self.function, self.numbers
        self.block, self.head = self.split(task, "blocks")
        member, batch = self.split(self.head, "group")
        self.first = product(f, self.block, integer(BLOCK))
        count = smaller(f, integer(BLOCK), difference(f, numbers["queries"], self.first))
        start = self.at("of_query", self.matrix("of_query", self.axes(batch)),
                        product(f, member, numbers["of_query_group"]))
        start = self.row("of_query", start, self.first)
        with f.loop(integer(0), numbers["columns"]) as column, f.loop(integer(0), count) as row:
            feature = product(f, column, integer(self.kind.width))
            target = self.at("of_query", self.row("of_query", start, row), feature)
            self.give_row(column, row, smaller(f, integer(self.kind.width),
                                               difference(f, numbers["features"], feature)), target)

    def give_row(self, column: Register, row: Register, size: Register, target: Register) -> None:
        """The sums over all chunks, scaled."""
        f, lanes = self.function, self.kind.lanes
        scale = f.spread(f.let(f"load {self.type}, {self.scale}", self.type), lanes)
        with f.loop(integer(0), size, lanes) as feature:
            f.set(self.sum, f.spread(constant(0.0, self.kind.dtype), lanes))
            with f.loop(integer(0), self.numbers["chunks"]) as chunk:
                part = self.of_block(self.of_head(chunk, self.head), self.block, column)
                place = moved(f, self.in_panel(part, row), self.type, feature)
                value = loaded(f, place, self.type, lanes, self.size, None)
                known = f.get(self.sum, self.type, lanes)
                f.set(self.sum, f.let(f"fadd {known}, {value.name}", self.type, lanes))
            whole = f.let(f"fmul {f.get(self.sum, self.type, lanes)}, {scale.name}", self.type, lanes)
            store(f, whole, moved(f, target, self.type, feature), self.size,
                  lanes_below(f, difference(f, size, feature), lanes))

    def rooms(self) -> None:
        self.sum = self.function.variable(self.type, self.kind.lanes)
