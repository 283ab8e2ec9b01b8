"""The function of a scatter: it looks at all indices first, so that a mistake leaves everything as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from nnc_cpu.llvm.ir import FunctionWriter, Register, integer
from nnc_cpu.products.parts import SIGNATURE
from nnc_cpu.products.writing import difference, function_text, moved, parameters, product, smaller, split, total
from nnc_cpu.scattering.problem import ScatterKind, ScatterNumbers

NAME = "scatter"
ARRAYS = ("x", "indices", "updates", "out", "note")
UNROLLED = 4
"""Updates of short rows that one round of a loop makes."""
_ARITHMETIC = {"add": "add", "multiply": "mul"}


def render(kind: ScatterKind, declared: dict[str, None]) -> str:
    """The text of the function."""
    return ScatterWriter(kind, declared).text()


class ScatterWriter:
    """Goes through the indices in order, column by column: of replacements the last stays, and sums have one order,
    whatever the number of threads."""

    def __init__(self, kind: ScatterKind, declared: dict[str, None]) -> None:
        self.kind, self.function = kind, FunctionWriter(declared)
        self.size = kind.size

    def text(self) -> str:
        f = self.function
        arguments, numbers, begin, end = parameters(SIGNATURE)
        loaded = [f.let(f"load i64, {moved(f, numbers, 'i64', integer(n))}", "i64")
                  for n in range(len(ScatterNumbers._fields))]
        self.numbers = dict(zip(ScatterNumbers._fields, loaded, strict=True))
        pointers = [f.let(f"load ptr, {moved(f, arguments, 'ptr', integer(n))}", "ptr") for n in range(len(ARRAYS))]
        x, indices, updates, out, self.note = pointers
        self.x, self.indices, self.updates, self.out = [
            moved(f, pointer, "i8", self.numbers[f"{name}_offset"]) for pointer, name in
            zip((x, indices, updates, out), ("x", "index", "update", "out"), strict=True)]
        wrong = self.any_is_wrong()
        with f.where(wrong):
            self.note_the_first()
        with f.where(f.let(f"xor {wrong}, true", "i1")), f.loop(begin, end) as task:
            self.task(task)
        return function_text(f, NAME, SIGNATURE, linkage="")

    # ---- indices
    def index(self, batch: Register, k: Register) -> Register:
        """An index as a word."""
        return self.indices_at(self.index_place(batch, k), 1)

    def index_place(self, batch: Register, k: Register) -> Register:
        f = self.function
        step = integer(1) if self.kind.beside else self.numbers["index_step"]
        at = total(f, product(f, batch, self.numbers["index_batch"]), product(f, k, step))
        return moved(f, self.indices, self.kind.index_type, at)

    def indices_at(self, place: Register, lanes: int) -> Register:
        """Neighbouring indices as words."""
        f, given = self.function, Register("", self.kind.index_type, lanes)
        found = f.let(f"load {given.full}, {place}, align {int(given.type[1:]) // 8}", given.type, lanes)
        if given.type == "i64":
            return found
        wide = Register("", "i64", lanes).full
        return f.let(f"{'sext' if self.kind.signed else 'zext'} {found} to {wide}", "i64", lanes)

    def is_wrong(self, index: Register) -> Register:
        f, length = self.function, self.numbers["length"]
        most = f.spread(total(f, length, length) if self.kind.signed else length, index.lanes)
        if self.kind.signed:
            index = f.let(f"add {index}, {f.spread(length, index.lanes).name}", "i64", index.lanes)
        return f.let(f"icmp uge {index}, {most.name}", "i1", index.lanes)

    @contextmanager
    def each(self) -> Iterator[tuple[Register, Register]]:
        """Go through all indices: the number of one in the batch, and its own."""
        f = self.function
        with f.loop(integer(0), self.numbers["batch"]) as batch, f.loop(integer(0), self.numbers["updated"]) as k:
            yield batch, k

    def any_is_wrong(self) -> Register:
        """Tell whether an index is out of range: vectors of them where they lie side by side, and what is left."""
        f, lanes, updated = self.function, self.kind.lanes * self.size // 8, self.numbers["updated"]
        found, among = f.variable("i1"), f.variable("i1", lanes)
        f.set(found, integer(0, 1))
        f.set(among, Register("zeroinitializer", "i1", lanes))
        whole = f.let(f"and {updated}, {-lanes if self.kind.beside else 0}", "i64")
        with f.loop(integer(0), self.numbers["batch"]) as batch:
            with f.loop(integer(0), whole, lanes) as k:
                self.gather_wrong(among, self.indices_at(self.index_place(batch, k), lanes))
            with f.loop(whole, updated) as k:
                self.gather_wrong(found, self.index(batch, k))
        return f.let(f"or {f.get(found, 'i1')}, {f.any(f.get(among, 'i1', lanes)).name}", "i1")

    def gather_wrong(self, found: Register, index: Register) -> None:
        f = self.function
        wrong = self.is_wrong(index)
        f.set(found, f.let(f"or {f.get(found, 'i1', index.lanes)}, {wrong.name}", "i1", index.lanes))

    def note_the_first(self) -> None:
        """Note what is wrong: of the notes of all threads that with the lowest place stays."""
        f = self.function
        with self.each() as (batch, k):
            index = self.index(batch, k)
            with f.where(self.is_wrong(index)):
                place = total(f, product(f, batch, self.numbers["updated"]), k)
                f.call_void("nnc_note_s64", self.note, integer(0), place, index)

    # ---- rows
    def task(self, task: Register) -> None:
        """Change some columns of the rows that lie one behind the other."""
        f, numbers = self.function, self.numbers
        piece, row = split(f, task, numbers["pieces"])
        outer, batch = split(f, row, numbers["outer"])
        first = product(f, piece, numbers["columns"])
        columns = smaller(f, numbers["columns"], difference(f, numbers["inner"], first))
        base = total(f, product(f, product(f, row, numbers["length"]), numbers["inner"]), first)
        target = self.at(self.out, base)
        with f.where(f.let(f"icmp ne {self.out}, {self.x.name}", "i1")):
            self.copy(self.at(self.x, base), target, columns)
        update = total(f, product(f, batch, numbers["update_batch"]), product(f, outer, numbers["update_outer"]))
        source = self.at(self.updates, update if self.kind.spread else total(f, update, first))
        few = UNROLLED if self.kind.inner else 1
        whole = f.let(f"and {numbers['updated']}, {-few}", "i64")
        for begin, end, step in ((integer(0), whole, few), (whole, numbers["updated"], 1)):
            with f.loop(begin, end, step) as k:
                for n in range(step):
                    self.update(target, source, batch, total(f, k, integer(n)), columns)

    def update(self, target: Register, source: Register, batch: Register, k: Register, columns: Register) -> None:
        """Change one row."""
        f, kind, numbers = self.function, self.kind, self.numbers
        inner = integer(kind.inner) if kind.inner else numbers["inner"]
        step = inner if kind.beside else numbers["update_step"]
        place = self.at(target, product(f, self.near(self.index(batch, k)), inner))
        self.change(place, self.at(source, product(f, k, step)), columns)

    def near(self, index: Register) -> Register:
        """An index that counts from the beginning."""
        f = self.function
        if not self.kind.signed:
            return index
        behind = f.let(f"icmp slt {index}, 0", "i1")
        return f.let(f"select {behind}, {total(f, index, self.numbers['length'])}, {index}", "i64")

    def copy(self, source: Register, target: Register, columns: Register) -> None:
        """Copy the columns of all rows: at once where they are whole."""
        f, length, inner = self.function, self.numbers["length"], self.numbers["inner"]
        whole = f.let(f"icmp eq {columns}, {inner.name}", "i1")
        rows = f.let(f"select {whole}, i64 1, {length}", "i64")
        elements = f.let(f"select {whole}, {product(f, length, inner)}, {columns}", "i64")
        with f.loop(integer(0), rows) as row:
            at = product(f, row, inner)
            f.call_void("llvm.memcpy.p0.p0.i64", self.at(target, at), self.at(source, at),
                        product(f, elements, integer(self.size)), integer(0, 1))

    def change(self, place: Register, update: Register, columns: Register) -> None:
        """Change a row by its update: vectors, and what is left; a short one without loops."""
        f, lanes, done = self.function, self.kind.lanes, 0
        while done < self.kind.inner:
            width = 1 << (self.kind.inner - done).bit_length() - 1
            self.element(self.at(place, integer(done)), update, integer(done), width)
            done += width
        if self.kind.inner:
            return
        whole = f.let(f"and {columns}, {-lanes}", "i64")
        with f.loop(integer(0), whole, lanes) as n:
            self.element(self.at(place, n), update, n, lanes)
        with f.loop(whole, columns) as n:
            self.element(self.at(place, n), update, n, 1)

    def element(self, place: Register, update: Register, n: Register, lanes: int) -> None:
        f, kind = self.function, self.kind
        full = Register("", kind.element_type, lanes).full
        if kind.spread:
            new = f.spread(f.let(f"load {kind.element_type}, {update}, align {self.size}", kind.element_type), lanes)
        else:
            new = f.let(f"load {full}, {self.at(update, n)}, align {self.size}", kind.element_type, lanes)
        if kind.mode != "set":
            old = f.let(f"load {full}, {place}, align {self.size}", kind.element_type, lanes)
            floating = "" if kind.element_type.startswith("i") else "f"
            new = f.let(f"{floating}{_ARITHMETIC[kind.mode]} {old}, {new.name}", kind.element_type, lanes)
        f.line(f"store {new}, {place}, align {self.size}")

    def at(self, pointer: Register, by: Register) -> Register:
        return moved(self.function, pointer, self.kind.element_type, by)
