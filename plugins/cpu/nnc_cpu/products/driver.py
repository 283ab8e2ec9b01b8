"""The function of a product: `void name(ptr arguments, ptr numbers, i64 begin, i64 end)`, as those of loop nests.

A task is a block of rows of a strip of panels of columns.  It goes through the steps of the sum block by block: it
notes where the elements of A lie, packs each panel's steps unless they are read where they lie, and lets each tile of
rows go through them; the sums are kept in between, and ended with the last block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from nnc_cpu.llvm.ir import FunctionWriter, Register, integer
from nnc_cpu.llvm.logic import held, stored
from nnc_cpu.products.ahead import AheadWriter
from nnc_cpu.products.at_once import ends_at_once
from nnc_cpu.products.converted import room_size, wanted
from nnc_cpu.products.kind import AXES, MOST_STRIP, TABLE, Kind
from nnc_cpu.products.late import MOST_PAUSE
from nnc_cpu.products.numbers import names_of, operand_names
from nnc_cpu.products.parts import SIGNATURE
from nnc_cpu.products.pooled_tables import PooledTableWriter
from nnc_cpu.products.rooms import Rooms
from nnc_cpu.products.stream import StreamWriter
from nnc_cpu.products.tables import ROW_LANES, TableWriter
from nnc_cpu.products.window_tables import WindowTableWriter
from nnc_cpu.products.words import word_count
from nnc_cpu.products.writing import (
    difference,
    function_text,
    moved,
    places_in,
    prefetch,
    prefetch_to_write,
    product,
    smaller,
    split,
    total,
)


class ProductWriter:
    """Writes the function of a kind of products."""

    def __init__(self, kind: Kind, declared: dict[str, None]) -> None:
        self.kind, self.function = kind, FunctionWriter(declared)
        self.type = held(kind.wide)
        self.numbers: dict[str, Register] = {}
        self.arguments: dict[str, Register] = {}
        self.rooms = Rooms(self.function)

    def text(self, name: str, linkage: str = "internal ") -> str:
        f, kind = self.function, self.kind
        for n, number in enumerate(names_of(kind)):
            place = moved(f, Register("%numbers", "ptr"), "i64", integer(n))
            self.numbers[number] = f.let(f"load i64, {place}", "i64")
        self.take_arguments()
        self.all_sums = self.reserve((MOST_STRIP if kind.strips else 1) * (kind.most_rows + kind.rows) * kind.width)
        self.table = f.variable("ptr", 1, TABLE + ROW_LANES)
        noted = (kind, f, stored(kind.dtype), self.numbers, self.table)
        windows = WindowTableWriter if kind.ending.pool is None else PooledTableWriter
        self.windows = windows(*noted) if kind.windows else None
        self.tables = self.windows or TableWriter(*noted)
        self.ahead = AheadWriter(kind, f, self.numbers)
        self.stream = StreamWriter(kind, f, stored(kind.dtype), self.numbers) if kind.streams else None
        if kind.wide != kind.dtype or kind.copies:
            self.room = self.reserve(room_size(kind))
        self.panel = Register("null", "ptr")
        if kind.right != "panels":
            self.panel = self.reserve(kind.most_words * kind.width)
        if kind.is_moved:
            self.excess = f.variable(self.type, kind.lanes, kind.vectors)
        self.begin_tasks()
        with f.loop(Register("%begin", "i64"), Register("%end", "i64")) as task:
            self.task(task)
        self.end_tasks()
        self.rooms.give_back()
        return function_text(f, name, SIGNATURE, linkage)

    def take_arguments(self) -> None:
        """Find where the arrays begin."""
        f, ending = self.function, self.kind.ending
        factors = self.kind.dtype, self.kind.b_dtype or self.kind.dtype
        dtypes = (*factors, *[x.dtype for x in ending.operands], *ending.outputs)
        self.types = dict(zip(operand_names(self.kind), map(stored, dtypes), strict=True))
        for n, name in zip(self.kind.order, self.types, strict=True):
            pointer = f.let(f"load ptr, {moved(f, Register('%arguments', 'ptr'), 'ptr', integer(n))}", "ptr")
            self.arguments[name] = self.at(pointer, name, self.numbers[f"{name}_offset"])

    def at(self, pointer: Register, name: str, by: Register) -> Register:
        return moved(self.function, pointer, self.types[name], by)

    def reserve(self, count: int) -> Register:
        """Room for so many elements of what sums are made of."""
        return self.rooms.reserve(self.type, self.kind.wide.itemsize, count)

    def begin_tasks(self) -> None:
        """Do what is to be done before all tasks."""

    def begin_task(self, rows: Register) -> None:
        """Do what is to be done before a task, of a block of rows of this number."""

    def end_tasks(self) -> None:
        """Undo it."""

    # ---- a task
    def task(self, task: Register) -> None:
        f, numbers = self.function, self.numbers
        length = numbers["strip"] if self.kind.strips else integer(1)
        before_next = total(f, numbers["panels"], difference(f, length, integer(1)))
        strip, rest = split(f, task, f.let(f"udiv {before_next}, {length.name}", "i64"))
        self.begin_task(rest)
        block, batch = split(self.function, rest, self.numbers["blocks"])
        self.batch = places_in(self.function, batch, [self.numbers[f"batch{axis}"] for axis in range(1, AXES)])
        self.first_row = product(f, block, numbers["block_rows"])
        self.rows = smaller(f, numbers["block_rows"], difference(f, numbers["rows"], self.first_row))
        self.first_panel = product(f, strip, length)
        self.panels = smaller(f, length, difference(f, numbers["panels"], self.first_panel))
        tiles = f.let(f"udiv {total(f, self.rows, integer(self.kind.rows - 1))}, {self.kind.rows}", "i64")
        self.whole_rows = product(f, tiles, integer(self.kind.rows))
        a = self.of_batch("a")
        if self.stream is not None:
            self.stream.begin(a, self.first_row, self.first_panel, tiles)
        if self.kind.left == "each":
            a = self.at(a, "a", product(f, self.first_panel, integer(self.kind.width)))
        self.tables.begin(a, self.first_row, self.whole_rows, self.batch[-1])
        self.panel_sums = self.sums_of_panel()
        if not self.kind.strips:
            self.begin_panel(integer(0))
        with self.parts("segments", "group") as (segment, segments), self.parts("length", "part") as (step, length):
            self.block(segment, segments, step, length)

    def begin_panel(self, number: Register) -> None:
        """Go on to a panel of the strip."""
        f, numbers, width = self.function, self.numbers, integer(self.kind.width)
        panel = total(f, self.first_panel, number)
        self.first_column = product(f, panel, width)
        self.columns = smaller(f, width, difference(f, numbers["columns"], self.first_column))
        self.in_last = f.let(f"icmp eq {panel}, {difference(f, numbers['panels'], integer(1)).name}", "i1")
        self.b = self.at(self.of_batch("b"), "b", product(f, panel, numbers["b_panel"]))
        self.outer = [self.outer_argument(name) for name in operand_names(self.kind)[2:]]
        self.sums = moved(f, self.all_sums, self.type, product(f, number, self.panel_sums))

    def sums_of_panel(self) -> Register:
        """The sums from one panel of a strip to the next: all share a room where each is ended before the next."""
        f = self.function
        if not self.kind.strips:
            return integer(0)
        at_once = [self.is_end(integer(0), self.numbers[part], length)
                   for length, part in (("segments", "group"), ("length", "part"))]
        kept = integer((self.kind.most_rows + self.kind.rows) * self.kind.width)
        return f.let(f"select {self.both(*at_once)}, i64 0, {kept}", "i64")

    def of_batch(self, name: str) -> Register:
        """The address at which a matrix of the batch begins."""
        pointer = self.arguments[name]
        for axis, place in enumerate(self.batch):
            pointer = self.at(pointer, name, product(self.function, place, self.numbers[f"{name}_batch{axis}"]))
        return pointer

    def outer_argument(self, name: str) -> Register:
        """The address at which the task's part of an operand or an output of the ending begins."""
        f, number = self.function, int(name[1:])
        first = self.of_batch(name)
        if self.kind.windows != "apart":
            first = self.at(first, name, product(f, self.results(self.first_row), self.numbers[f"{name}_row"]))
        operands = self.kind.ending.operands
        if number < len(operands) and not operands[number].along:
            return first
        return self.at(first, name, self.first_column)

    def results(self, rows: Register) -> Register:
        """The rows of the results that so many rows of the product become."""
        height = self.kind.ending.height
        return rows if height == 1 else self.function.let(f"udiv {rows}, {height}", "i64")

    @contextmanager
    def parts(self, length: str, part: str) -> Iterator[tuple[Register, Register]]:
        """Go along an axis part by part."""
        f, whole, most = self.function, self.numbers[length], self.numbers[part]
        count = f.let(f"udiv {total(f, whole, difference(f, most, integer(1)))}, {most.name}", "i64")
        if self.kind.windows == "apart":  # of no steps, too, there is a sum
            count = f.call("llvm.smax.i64", "i64", count, integer(1))
        with f.loop(integer(0), count) as n:
            first = product(f, n, most)
            yield first, smaller(f, most, difference(f, whole, first))

    # ---- a block of steps
    def block(self, segment: Register, segments: Register, step: Register, length: Register) -> None:
        shift = self.tabled(segment, segments, step, length)
        if not self.kind.strips:
            self.block_of_panel(segment, segments, step, length, shift, Register("true", "i1"))
            return
        f = self.function
        with f.loop(integer(0), self.panels) as number:
            self.begin_panel(number)
            last = f.let(f"icmp eq {total(f, number, integer(1))}, {self.panels.name}", "i1")
            self.block_of_panel(segment, segments, step, length, shift, last)

    def block_of_panel(self, segment: Register, segments: Register, step: Register, length: Register,
                       shift: Register, last: Register) -> None:
        """The block's steps of one panel; `last`: of the strip."""
        f, numbers = self.function, self.numbers
        b = self.at(self.b, "b", product(f, step, numbers["b_step"]))
        self.ahead.begin(b, self.is_end(step, length, "length"), length, self.b, last, self.panels)
        panel, b_step = self.panel, self.width()
        if self.kind.right == "panels":
            panel, b_step = self.at(b, "b", self.before(segment)), numbers["b_step"]
        elif not self.kind.packs_in_tiles:
            self.pack(b, segment, segments, length)
        fresh = self.both(self.is_zero(segment), self.is_zero(step))
        final = self.both(self.is_end(segment, segments, "segments"), self.is_end(step, length, "length"))
        length, first = self.elements(length), integer(0)
        if self.kind.is_moved:
            self.call("exceed", panel, product(f, segments, length), b_step, self.excess)
        late = self.both(self.both(fresh, final), self.can_end_late(length)) if self.kind.ends_late else None
        at_once = final if late is None else self.both(final, self.negated(late))
        if self.kind.ending.pool is not None:  # windows are whole in a block alone
            at_once = Register("false", "i1")
        if late is not None:
            with f.where(late):
                self.send_for_first()
        if self.kind.packs_in_tiles:
            self.tile(first, shift, (segments, length, b, numbers["b_step"]), fresh, at_once, "packing_tile")
            first = integer(self.kind.rows)
        steps = self.steps_of(segments, length, panel, b_step)
        if late is not None:
            with f.where(late):
                self.late_tiles(shift, steps, fresh)
            first = f.let(f"select {late}, {self.rows}, {first}", "i64")
        if ends_at_once(self.kind):
            first = self.tiles_at_once(first, shift, steps, self.both(fresh, final))
        with f.loop(first, self.rows, self.kind.rows) as row:
            self.tile(row, shift, steps, fresh, at_once)
        if self.kind.ending.pool is not None:
            with f.where(final):
                self.finish(integer(0), self.results(self.rows), self.sums)

    def steps_of(self, segments: Register, length: Register, panel: Register, b_step: Register) -> tuple[Register, ...]:
        """The steps at hand and B, as tiles are told of them."""
        return segments, length, panel, b_step

    def tiles_at_once(self, first: Register, shift: Register, steps: tuple[Register, ...], whole: Register) -> Register:
        """Tiles that end their own sums, where the block has all steps of them: from a row on, as many as are whole;
        the first row behind these."""
        f, height = self.function, self.kind.rows
        end = difference(f, self.rows, f.let(f"urem {self.rows}, {height}", "i64"))
        end = f.let(f"select {whole}, {end}, i64 0", "i64")
        with f.loop(first, end, height) as row:
            arrays = self.ended(row, self.sums_at(row))[1:]
            self.tile(row, shift, steps, whole, Register("false", "i1"), "ending_tile", arrays)
        return f.call("llvm.smax.i64", "i64", first, end)

    def can_end_late(self, steps: Register) -> Register:
        """Tell whether all tiles of the panel are as wide as can be, and have steps enough to end each other."""
        f, kind = self.function, self.kind
        long = f.let(f"icmp sge {steps}, {kind.rows * kind.vectors}", "i1")
        wide = self.both(long, f.let(f"icmp eq {self.columns}, {kind.width}", "i1"))
        return self.both(wide, self.negated(self.in_last)) if kind.last else wide

    def negated(self, x: Register) -> Register:
        return self.function.let(f"xor {x}, true", "i1")

    def late_tiles(self, shift: Register, steps: tuple[Register, ...], fresh: Register) -> None:
        """Tiles of which each ends the one before; the last is ended behind it."""
        f, height, never = self.function, integer(self.kind.rows), Register("false", "i1")
        if not self.kind.packs_in_tiles:
            self.tile(integer(0), shift, steps, fresh, never)
        pause = integer(0)
        for bits in range(1, MOST_PAUSE + 1):
            enough = f.let(f"icmp sge {steps[1]}, {self.kind.rows * self.kind.vectors << bits}", "i1")
            pause = f.let(f"select {enough}, i64 {bits}, {pause}", "i64")
        with f.loop(height, self.rows, self.kind.rows) as row:
            before = difference(f, row, height)
            self.tile(row, shift, steps, fresh, never, "late_tile", [pause, *self.ended(before, self.sums_at(before))])
        last = difference(f, self.whole_rows, height)
        rows = difference(f, self.rows, last)
        skipped = difference(f, height, rows) if self.kind.left == "columns" else integer(0)
        self.finish(last, rows, self.sums_at(total(f, last, skipped)))

    def send_for_first(self) -> None:
        """Send for what the end of the panel's first tile reads and writes: tiles send for that of the next one."""
        f, kind = self.function, self.kind
        operands, names = kind.ending.operands, operand_names(kind)[2:]
        with f.loop(integer(0), smaller(f, integer(kind.rows), self.rows)) as row:
            for n, (name, pointer) in enumerate(zip(names, self.outer, strict=True)):
                if n < len(operands) and not operands[n].along:
                    continue
                send = prefetch if n < len(operands) else prefetch_to_write
                start = self.at(pointer, name, product(f, row, self.numbers[f"{name}_row"]))
                for v in range(kind.vectors):
                    send(f, moved(f, start, self.types[name], integer(v * kind.lanes)))

    def sums_at(self, row: Register) -> Register:
        return moved(self.function, self.sums, self.type, product(self.function, row, integer(self.kind.width)))

    def elements(self, steps: Register) -> Register:
        """The elements of A and of B, as they are packed, that a number of steps are."""
        return steps if self.kind.dots is None else word_count(self.function, steps, self.kind.dots)

    def before(self, segment: Register) -> Register:
        """The elements of B before a segment."""
        if self.windows is not None and self.kind.windows == "apart":
            return self.windows.tap(segment)
        return product(self.function, segment, self.numbers["b_segment"])

    def is_zero(self, x: Register) -> Register:
        return self.function.let(f"icmp eq {x}, 0", "i1")

    def is_end(self, first: Register, count: Register, whole: str) -> Register:
        return self.function.let(f"icmp eq {total(self.function, first, count)}, {self.numbers[whole].name}", "i1")

    def both(self, a: Register, b: Register) -> Register:
        return self.function.let(f"and {a}, {b.name}", "i1")

    def pack(self, b: Register, segment: Register, segments: Register, length: Register) -> None:
        """Pack the panel's steps."""
        f, numbers, width = self.function, self.numbers, self.width()
        with f.loop(integer(0), segments) as n:
            source = self.at(b, "b", self.before(total(f, segment, n)))
            target = moved(f, self.panel, self.type, product(f, product(f, n, self.elements(length)), width))
            self.call("pack", source, numbers["b_step"], numbers["b_column"], length, self.columns, target)

    def width(self) -> Register:
        """Columns of the panel at hand, those that fill its last vector up included."""
        kind = self.kind
        if not kind.last:
            return integer(kind.width)
        last = integer(kind.last * kind.lanes)
        return self.function.let(f"select {self.in_last}, {last}, {integer(kind.width)}", "i64")

    def call(self, name: str, *operands: Register) -> None:
        """Call a function, or that for the last panel in the last panel."""
        f, function = self.function, f"@{name}"
        if self.kind.last and name != "late_tile":
            function = f.let(f"select {self.in_last}, ptr @last_{name}, ptr @{name}", "ptr").name
        f.line(f"call void {function}({', '.join(map(str, operands))})")

    def tabled(self, segment: Register, segments: Register, step: Register, length: Register) -> Register:
        """Note where the elements of A lie; addresses from one segment to the next."""
        f, kind = self.function, self.kind
        if kind.left == "columns":
            self.tables.columns(step, length)
            if kind.wide != kind.dtype or kind.copies:
                self.convert(length, *wanted(f, kind, self.rows))
            return integer(0)
        self.tables.rows(segment, segments, step, self.whole_rows)
        if kind.wide != kind.dtype:
            self.convert(product(f, segments, self.whole_rows), integer(0), length)
        return self.whole_rows

    def convert(self, entries: Register, first: Register, length: Register) -> None:
        """Have what the table says in the dtype of sums."""
        operands = ", ".join(map(str, (self.table, entries, first, length, self.room)))
        self.function.line(f"call void @convert({operands})")

    def tile(self, row: Register, shift: Register, steps: tuple[Register, ...], fresh: Register,
             final: Register, name: str = "tile", late: Sequence[Register] = ()) -> None:
        """Go through the steps with the tile at a row, and end it if they are the last."""
        f, kind = self.function, self.kind
        segments, length, panel, b_step = steps
        rows = smaller(f, integer(kind.rows), difference(f, self.rows, row))
        skipped = integer(0)
        table = self.table
        if kind.left == "columns":  # a tile that has fewer rows takes some before along
            skipped = difference(f, integer(kind.rows), rows)
            shift = difference(f, row, skipped)
        else:
            table = moved(f, self.table, "ptr", row)
        if self.stream is not None:
            self.stream.of_tile()
        sums = self.sums_at(row)
        others = [*self.ahead.of_tile(row, sums), self.panel] if kind.looks_ahead else []
        others += [self.excess] if kind.is_moved else []
        self.call(name, table, shift, segments, length, panel, b_step, self.columns, sums, fresh, *others, *late)
        with f.where(final):
            self.finish(row, rows, self.sums_at(total(f, row, skipped)))

    def finish(self, row: Register, rows: Register, sums: Register) -> None:
        operands = ", ".join(map(str, [sums, rows, self.columns, *self.ended(row, sums)[1:]]))
        self.function.line(f"call void @finish({operands})")

    def ended(self, row: Register, sums: Register) -> list[Register]:
        """The sums at a row, and what their ending takes."""
        f, names = self.function, operand_names(self.kind)[2:]
        targets = None if self.windows is None else self.windows.targets
        operands = [sums] if targets is None else [sums, moved(f, targets, "i64", row)]
        for name, pointer in zip(names, self.outer, strict=True):
            step = self.numbers[f"{name}_row"]
            operands += [pointer if targets else self.at(pointer, name, product(f, row, step)), step]
        return operands
