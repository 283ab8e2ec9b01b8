"""Addresses of what windows of images see; what is outside of an image is read from a place where there are zeros."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nnc_core.operator.products.problem import WindowAxis
from nnc_cpu.llvm.ir import FunctionWriter, Register, integer
from nnc_cpu.products.kind import Kind
from nnc_cpu.products.numbers import SPATIAL
from nnc_cpu.products.tables import ROW_LANES, TableWriter
from nnc_cpu.products.taps import NOTES
from nnc_cpu.products.writing import difference, either, lanes_below, moved, product, smaller, split, store, total

BEFORE = 16
"""Zeros before the place: a tile may begin so many rows before its block's first."""
BEYOND = -(1 << 60)
"""A place in no image."""


class WindowTableWriter(TableWriter):
    """Writes the addresses of the pixels that windows see."""

    def __init__(self, kind: Kind, function: FunctionWriter, type: str, numbers: Mapping[str, Register],
                 table: Register) -> None:
        super().__init__(kind, function, type, numbers, table)
        f, lanes = function, kind.lanes
        vectors, most = (kind.most_steps + 2 * BEFORE) // lanes, kind.most_rows + 4 * ROW_LANES
        zeros = f.variable(type, lanes, vectors)
        with f.loop(integer(0), integer(vectors)) as n:
            nothing = Register("zeroinitializer", type, lanes)
            store(f, nothing, moved(f, zeros, type, n, lanes), kind.dtype.itemsize, None)
        self.zeros = self.number_of(moved(f, zeros, type, integer(BEFORE)))
        self.axes = [{name: numbers[f"{name}{n}"] for name in WindowAxis._fields} for n in range(SPATIAL)]
        self.places = [f.variable("i64", 1, most) for _ in range(SPATIAL)]
        """The pixel on each axis that the first element of each window sees, or would see."""
        self.targets = f.variable("i64", 1, most) if kind.windows == "apart" else None
        """The row of the result, in a part of a product."""
        self.bases = f.variable("i64", 1, most)
        """The bytes from A to it."""
        self.noted_row = f.variable("i64")
        """The first of the rows that have been noted."""
        f.set(self.noted_row, integer(-1))
        self.tabled = [f.variable("i64") for _ in range(4)]
        """What the table is of: A, the first row, segment and step."""
        f.set(self.tabled[1], integer(-1))
        self.noted_steps = f.variable("i64")
        """Of a block, while they are noted."""
        self.counters = [f.variable("i64") for _ in range(SPATIAL + 1)]
        """The image, and the place on each axis, of a window."""
        self.windows = [f.variable("i64", ROW_LANES) for _ in self.counters]
        """The same of neighbouring ones."""
        self.digits = [f.variable("i64", 1, 2 * ROW_LANES) for _ in self.counters]
        """The same of the first windows there are, and of the one behind these."""
        self.inner = f.variable("i8", 1, most)
        """1 where that row and its neighbours have windows that lie in the image as a whole."""
        self.size = integer(kind.dtype.itemsize)
        if kind.left != "columns" and kind.ending.pool is None:
            self.note_digits()

    def number_of(self, pointer: Register) -> Register:
        return self.function.let(f"ptrtoint {pointer} to i64", "i64")

    def bytes_of(self, elements: Register) -> Register:
        return product(self.function, elements, integer(self.kind.dtype.itemsize))

    # ---- windows one after another
    def at(self, window: Register) -> None:
        """Set the counters (image, then place on each axis) to a window."""
        f, rest = self.function, window
        for n in reversed(range(SPATIAL)):
            place, rest = split(self.function, rest, self.axes[n]["places"])
            f.set(self.counters[n + 1], place)
        f.set(self.counters[0], rest)

    def advance(self) -> None:
        """Go on to the next window."""
        f = self.function
        carry = integer(1)
        for n in reversed(range(SPATIAL)):
            following = total(f, f.get(self.counters[n + 1], "i64"), carry)
            over = f.let(f"icmp eq {following}, {self.axes[n]['places'].name}", "i1")
            f.set(self.counters[n + 1], f.let(f"select {over}, i64 0, {following}", "i64"))
            carry = f.let(f"zext {over} to i64", "i64")
        f.set(self.counters[0], total(f, f.get(self.counters[0], "i64"), carry))

    def sighted(self, n: int) -> Register:
        """The pixel that the first element of the window at hand sees on an axis."""
        f, axis = self.function, self.axes[n]
        return total(f, product(f, f.get(self.counters[n + 1], "i64"), axis["stride"]), axis["offset"])

    def pixel(self, places: Sequence[Register]) -> Register:
        """The elements before a pixel in the image at hand."""
        f = self.function
        elements = product(f, f.get(self.counters[0], "i64"), self.numbers["image_step"])
        for axis, place in zip(self.axes, places, strict=True):
            elements = total(f, elements, product(f, place, axis["pixel"]))
        return elements

    def pixels(self, images: Register, places: Sequence[Register]) -> Register:
        """The same of neighbouring windows."""
        elements = self.times(images, self.numbers["image_step"])
        for axis, place in zip(self.axes, places, strict=True):
            elements = self.plus(elements, self.times(place, axis["pixel"]))
        return elements

    def inside(self, n: int, place: Register) -> Register:
        f, lanes = self.function, place.lanes
        return f.let(f"icmp ult {place}, {f.spread(self.axes[n]['image'], lanes).name}", "i1", lanes)

    def elements(self, number: Register) -> list[Register]:
        """The place on each axis of an element of windows."""
        found: list[Register] = []
        for axis in reversed(self.axes):
            place, number = split(self.function, number, axis["window"])
            found.append(place)
        return found[::-1]

    # ---- windows as rows
    def begin(self, a: Register, first_row: Register, count: Register, last: Register) -> None:
        super().begin(a, first_row, count, last)
        self.element = last
        if self.kind.left != "columns":  # neighbouring tasks are panels of the same rows
            f = self.function
            before = f.get(self.noted_row, "i64")
            with f.where(f.let(f"icmp ne {before}, {first_row.name}", "i1")):
                self.note_windows(count)
                self.note_inner(count)
                f.set(self.noted_row, first_row)

    def note_windows(self, count: Register) -> None:
        """Note for each row where its window is; past the end nothing is seen."""
        f = self.function
        self.at(self.first_row)
        firsts = [f.spread(f.get(counter, "i64"), ROW_LANES) for counter in self.counters]
        self.go_to(self.further_on(firsts, [self.noted(x, integer(0)) for x in self.digits]))
        with f.loop(integer(0), count, ROW_LANES) as row:
            counters = [f.get(variable, "i64", ROW_LANES) for variable in self.windows]
            places = [self.plus(self.times(counter, axis["stride"]), axis["offset"])
                      for counter, axis in zip(counters[1:], self.axes, strict=True)]
            if self.targets is not None:
                self.keep(self.target(counters), self.targets, row)
            self.keep(self.times(self.pixels(counters[0], places), self.size), self.bases, row)
            places[0] = self.unless_past(row, places[0])
            for noted, place in zip(self.places, places, strict=True):
                self.keep(place, noted, row)
            behind = [f.let(f"load i64, {moved(f, x, 'i64', integer(ROW_LANES))}", "i64") for x in self.digits]
            self.go_to(self.further_on(counters, behind))

    def note_digits(self) -> None:
        """Note the counters of the first windows, from which those of others follow by additions."""
        f = self.function
        for counter in self.counters:
            f.set(counter, integer(0))
        with f.loop(integer(0), integer(ROW_LANES + 1)) as n:
            for counter, digits in zip(self.counters, self.digits, strict=True):
                f.line(f"store {f.get(counter, 'i64')}, {moved(f, digits, 'i64', n)}")
            self.advance()

    def further_on(self, counters: Sequence[Register], by: Sequence[Register]) -> list[Register]:
        """The counters of windows so many windows, given as counters too, behind others."""
        f, found, carry = self.function, list[Register](), integer(0)
        for n in reversed(range(SPATIAL)):
            places = f.spread(self.axes[n]["places"], ROW_LANES)
            place = self.plus(self.plus(counters[n + 1], by[n + 1]), carry)
            over = f.let(f"icmp sge {place}, {places.name}", "i1", ROW_LANES)
            less = f.let(f"sub {place}, {places.name}", "i64", ROW_LANES)
            found.append(f.let(f"select {over}, {less}, {place}", "i64", ROW_LANES))
            carry = f.let(f"zext {over} to <{ROW_LANES} x i64>", "i64", ROW_LANES)
        return [self.plus(self.plus(counters[0], by[0]), carry), *reversed(found)]

    def go_to(self, counters: Sequence[Register]) -> None:
        for variable, counter in zip(self.windows, counters, strict=True):
            self.function.set(variable, counter)

    def unless_past(self, row: Register, places: Register) -> Register:
        """Places on the first axis of rows from one on, or behind the last row some that are in no image."""
        f = self.function
        left = difference(f, difference(f, self.numbers["rows"], self.first_row), row)
        beyond = f.spread(integer(BEYOND), ROW_LANES)
        return f.let(f"select {lanes_below(f, left, ROW_LANES)}, {places}, {beyond}", "i64", ROW_LANES)

    def note_inner(self, count: Register) -> None:
        """Note of which neighbouring rows all windows lie in the image as a whole."""
        f = self.function
        with f.loop(integer(0), count, ROW_LANES) as row:
            inside = Register("true", "i1")
            for n, axis in enumerate(self.axes):
                place = self.noted(self.places[n], row)
                reach = product(f, difference(f, axis["window"], integer(1)), axis["step"])
                for seen in (place, self.plus(place, reach)):
                    inside = self.both(inside, self.inside(n, seen))
            all_are = f.call(f"llvm.vector.reduce.and.v{ROW_LANES}i1", "i1", inside)
            f.line(f"store {f.let(f'zext {all_are} to i8', 'i8')}, {moved(f, self.inner, 'i8', row)}")

    def rows(self, segment: Register, segments: Register, step: Register, count: Register) -> None:
        if self.kind.wide != self.kind.dtype:  # what is converted lies elsewhere
            self.note_rows(segment, segments, step, count)
            return
        f, same = self.function, Register("true", "i1")
        a, *place = (self.number_of(self.a), self.first_row, segment, step)
        for variable, number in zip(self.tabled[1:], place, strict=True):
            same = self.both(same, f.let(f"icmp eq {f.get(variable, 'i64')}, {number.name}", "i1"))
        either(f, same, lambda: self.shift(a, product(f, segments, count)),
               lambda: self.note_rows(segment, segments, step, count))
        for variable, number in zip(self.tabled, (a, *place), strict=True):
            f.set(variable, number)

    def shift(self, a: Register, entries: Register) -> None:
        """Have a table of the same windows say where they are in A now."""
        f = self.function
        by = difference(f, a, f.get(self.tabled[0], "i64"))
        moves = f.let(f"icmp ne {by}, 0", "i1")
        with f.where(moves), f.loop(integer(0), entries, ROW_LANES) as n:
            place = moved(f, self.table, "i64", n)
            before = f.let(f"load <{ROW_LANES} x i64>, {place}, align 8", "i64", ROW_LANES)
            nothing = f.let(f"icmp eq {before}, {f.spread(self.zeros, ROW_LANES).name}", "i1", ROW_LANES)
            after = f.let(f"add {before}, {f.spread(by, ROW_LANES).name}", "i64", ROW_LANES)
            f.line(f"store {f.let(f'select {nothing}, {before}, {after}', 'i64', ROW_LANES)}, {place}, align 8")

    def note_rows(self, segment: Register, segments: Register, step: Register, count: Register) -> None:
        """Note what each row sees of some segments, from a step of these on."""
        f = self.function
        with f.loop(integer(0), segments) as n:
            moves = [product(f, place, axis["step"])
                     for axis, place in zip(self.axes, self.elements(total(f, segment, n)), strict=True)]
            elements = step
            for axis, move in zip(self.axes, moves, strict=True):
                elements = total(f, elements, product(f, move, axis["pixel"]))
            further = self.number_of(moved(f, self.a, self.type, elements))
            table = moved(f, self.table, "i64", product(f, n, count))
            with f.loop(integer(0), count, ROW_LANES) as row:
                address = self.plus(self.noted(self.bases, row), further)
                inner = f.let(f"load i8, {moved(f, self.inner, 'i8', row)}", "i8")
                either(f, f.let(f"icmp ne {inner}, 0", "i1"), lambda: self.keep(address, table, row),
                       lambda: self.keep(self.unless_outside(address, row, moves), table, row))

    def unless_outside(self, address: Register, row: Register, moves: Sequence[Register]) -> Register:
        """Addresses of what rows see, or of zeros where that is outside of the image."""
        zeros = self.function.spread(self.zeros, ROW_LANES)
        return self.function.let(f"select {self.seen(row, moves)}, {address}, {zeros}", "i64", ROW_LANES)

    def tap(self, segment: Register) -> Register:
        """The elements of B before what an element of windows is multiplied by."""
        f, elements = self.function, integer(0)
        for axis, place in zip(self.axes, self.elements(segment), strict=True):
            elements = total(f, elements, product(f, place, axis["tap"]))
        return elements

    def target(self, counters: Sequence[Register]) -> Register:
        """The rows of the result that windows are."""
        row = self.times(counters[0], self.numbers["image_rows"])
        for axis, counter in zip(self.axes, counters[1:], strict=True):
            row = self.plus(row, self.times(counter, axis["row"]))
        return row

    def seen(self, row: Register, moves: Sequence[Register]) -> Register:
        """Tell which of some rows see a pixel."""
        f = self.function
        found = Register("true", "i1")
        for n, move in enumerate(moves):
            place = f.let(f"add {self.noted(self.places[n], row)}, {f.spread(move, ROW_LANES).name}", "i64", ROW_LANES)
            found = self.both(found, self.inside(n, place))
        return found

    def both(self, a: Register, b: Register) -> Register:
        return b if a.name == "true" else self.function.let(f"and {a}, {b.name}", "i1", b.lanes)

    def noted(self, variable: Register, row: Register) -> Register:
        f = self.function
        return f.let(f"load <{ROW_LANES} x i64>, {moved(f, variable, 'i64', row)}, align 8", "i64", ROW_LANES)

    def keep(self, lanes: Register, variable: Register, row: Register) -> None:
        self.function.line(f"store {lanes}, {moved(self.function, variable, 'i64', row)}, align 8")

    def times(self, lanes: Register, by: Register) -> Register:
        return self.function.let(f"mul {lanes}, {self.function.spread(by, ROW_LANES).name}", "i64", ROW_LANES)

    # ---- windows as steps
    def columns(self, step: Register, length: Register) -> None:
        """Runs of windows that are neighbours on the last axis, one after another."""
        f, counter, most, taps = self.function, self.counters[-1], self.axes[-1]["places"], integer(self.kind.taps)
        numbers = [total(f, product(f, self.element, taps), integer(tap)) for tap in range(self.kind.taps)]
        elements = [[product(f, place, axis["step"])
                     for axis, place in zip(self.axes, self.elements(number), strict=True)] for number in numbers]
        lanes = Register("<" + ", ".join([f"i64 {k}" for k in range(ROW_LANES)]) + ">", "i64", ROW_LANES)
        further = self.bytes_of(product(f, self.axes[-1]["stride"], self.axes[-1]["pixel"]))
        moves = [f.let(f"mul {lanes}, {f.spread(by, ROW_LANES).name}", "i64", ROW_LANES)
                 for by in (self.axes[-1]["stride"], further)]
        self.at(step)
        first = smaller(f, length, difference(f, most, f.get(counter, "i64")))
        rest = total(f, difference(f, length, first), difference(f, most, integer(1)))
        f.set(self.noted_steps, integer(0))
        with f.loop(integer(0), total(f, f.let(f"udiv {rest}, {most.name}", "i64"), integer(1))):
            start, before = f.get(self.noted_steps, "i64"), f.get(counter, "i64")
            count = smaller(f, difference(f, length, start), difference(f, most, before))
            self.note_run(start, count, elements, moves, further)
            f.set(self.noted_steps, total(f, start, count))
            f.set(counter, total(f, before, difference(f, count, integer(1))))
            self.advance()

    def note_run(self, start: Register, count: Register, elements: Sequence[Sequence[Register]],
                 moves: Sequence[Register], further: Register) -> None:
        """Note what `count` neighbours see, from the window at hand on, of each element of windows that is among the
        rows; `moves`: pixels and bytes of lanes behind it, `further`: bytes from one to the next."""
        f, stride = self.function, self.axes[-1]["stride"]
        sighted = [self.sighted(n) for n in range(SPATIAL)]
        firsts = [self.first_of_run([total(f, place, by) for place, by in zip(sighted, element, strict=True)])
                  for element in elements]
        with f.loop(integer(0), count, ROW_LANES) as k:
            for tap, (first, base, seen) in enumerate(firsts):
                place, address = (self.plus(by, total(f, of_first, product(f, k, step))) for by, of_first, step in zip(
                    moves, (first, base), (stride, further), strict=True))
                known = self.both(seen, self.inside(SPATIAL - 1, place))
                chosen = f.let(f"select {known}, {address}, {f.spread(self.zeros, ROW_LANES)}", "i64", ROW_LANES)
                noted = total(f, total(f, start, k), integer(tap * NOTES))
                f.line(f"store {chosen}, {moved(f, self.table, 'i64', noted)}, align 8")

    def first_of_run(self, places: Sequence[Register]) -> tuple[Register, Register, Register]:
        """The last of these places, the address of the pixel there, and whether the others are in the image."""
        f, inside = self.function, Register("true", "i1")
        for n, place in enumerate(places[:-1]):
            inside = self.both(inside, self.inside(n, place))
        base = self.number_of(moved(f, self.a, self.type, total(f, self.pixel(places), self.first_row)))
        return places[-1], base, f.spread(inside, ROW_LANES)

    def plus(self, lanes: Register, by: Register) -> Register:
        return self.function.let(f"add {lanes}, {self.function.spread(by, lanes.lanes).name}", "i64", lanes.lanes)
