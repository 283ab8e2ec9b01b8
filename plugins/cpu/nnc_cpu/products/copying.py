"""B packed ahead: between their steps tiles copy what the next block of steps reads of it, line by line.

The rows of B lie pages apart, and a panel is a short piece of each: prefetchers of processors do not foresee them, and
a tile that waited for each line would take six times its time.  So a line is sent for some lines before it is copied,
a load and a store among two dozen multiply-adds; and all panels of a task are copied together, row by row, in longer
pieces.  There are two rooms: tiles read one while they fill the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from nnc_cpu.llvm.ir import FunctionWriter, Register, integer
from nnc_cpu.llvm.logic import held
from nnc_cpu.products.kind import Kind
from nnc_cpu.products.rooms import Rooms
from nnc_cpu.products.writing import (
    Signature,
    difference,
    function_text,
    loaded,
    moved,
    prefetch,
    product,
    smaller,
    split,
    store,
    total,
)

SENT = 16
"""Lines before a line at which it is sent for, about."""
SIGNATURE: Signature = (("note", "ptr"),)
NOTE = ("source", "target", "steps", "step", "line", "lines", "columns", "last", "distance")
"""What is copied, as 64-bit words: from the first element of `steps` rows of so many `columns`, which are `lines` lines
each and lie `distance` elements apart, to the first panel of a room; `step` and `line` are the next ones, `last` the
number of the panel that is the last of B."""


class NoteWriter:
    """Writes what reads and changes a note."""

    def __init__(self, kind: Kind, function: FunctionWriter, note: Register) -> None:
        self.kind, self.function, self.note = kind, function, note
        self.type, self.size = held(kind.dtype), kind.dtype.itemsize

    def get(self, name: str) -> Register:
        return self.function.get(self.at(name), "ptr" if name in ("source", "target") else "i64")

    def set(self, name: str, value: Register) -> None:
        self.function.set(self.at(name), value)

    def at(self, name: str) -> Register:
        return moved(self.function, self.note, "i64", integer(NOTE.index(name)))

    def is_left(self) -> Register:
        """Tell whether there is a line to copy."""
        return self.function.let(f"icmp slt {self.get('step')}, {self.get('steps').name}", "i1")

    def copy_line(self) -> None:
        """Copy the next line, and send for a later one."""
        f, step, line, distance = self.function, self.get("step"), self.get("line"), self.get("distance")
        column = product(f, line, integer(self.kind.lanes))
        source = moved(f, self.get("source"), self.type, total(f, product(f, step, distance), column))
        rows = max(1, SENT // (self.kind.strip * self.kind.vectors))
        prefetch(f, moved(f, source, self.type, product(f, distance, integer(rows))))
        value = loaded(f, source, self.type, self.kind.lanes, self.size, self.columns_from(column))
        store(f, value, self.place(step, line), self.size, None)
        following = total(f, line, integer(1))
        ends = f.let(f"icmp eq {following}, {self.get('lines').name}", "i1")
        self.set("line", f.let(f"select {ends}, i64 0, {following}", "i64"))
        self.set("step", total(f, step, f.let(f"zext {ends} to i64", "i64")))

    def columns_from(self, column: Register) -> Register:
        """The lanes that are columns, from one on."""
        f, lanes = self.function, self.kind.lanes
        there = smaller(f, integer(lanes), difference(f, self.get("columns"), column))
        bits = difference(f, f.let(f"shl i64 1, {there.name}", "i64"), integer(1))
        return f.let(f"bitcast {f.let(f'trunc {bits} to i{lanes}', f'i{lanes}')} to <{lanes} x i1>", "i1", lanes)

    def place(self, step: Register, line: Register) -> Register:
        """Where a line goes."""
        f, kind = self.function, self.kind
        vector, panel = split(f, line, integer(kind.vectors))
        width = integer(kind.vectors)
        if kind.last:
            in_last = f.let(f"icmp eq {panel}, {self.get('last').name}", "i1")
            width = f.let(f"select {in_last}, i64 {kind.last}, {width}", "i64")
        within = product(f, total(f, product(f, step, width), vector), integer(kind.lanes))
        return moved(f, self.get("target"), self.type, total(f, product(f, panel, integer(kind.panel_size)), within))


def copying_text(name: str, kind: Kind, declared: dict[str, None]) -> str:
    """The function that copies all lines that are left."""
    f = FunctionWriter(declared)
    note = NoteWriter(kind, f, Register("%note", "ptr"))
    lines = product(f, difference(f, note.get("steps"), note.get("step")), note.get("lines"))
    with f.loop(integer(0), difference(f, lines, note.get("line"))):
        note.copy_line()
    return function_text(f, name, SIGNATURE)


class Source(NamedTuple):
    """What a block of steps reads of B."""

    first: Register
    """The address of the first element."""
    steps: Register
    panel: Register
    """The number of the first panel."""
    panels: Register


class CopyingWriter:
    """Writes what the function of a product does about the two rooms."""

    def __init__(self, kind: Kind, function: FunctionWriter, numbers: Mapping[str, Register], rooms: Rooms) -> None:
        self.kind, self.function, self.numbers = kind, function, numbers
        self.note = NoteWriter(kind, function, function.variable("i64", 1, len(NOTE)))
        self.note.set("distance", numbers["b_step"])
        self.read, self.filled, self.is_filled = (function.variable(type) for type in ("ptr", "ptr", "i1"))
        for variable in (self.read, self.filled):
            room = rooms.reserve(held(kind.dtype), kind.dtype.itemsize, kind.strip * kind.panel_size)
            function.set(variable, room)
        function.set(self.is_filled, Register("false", "i1"))

    def begin(self, here: Source, following: Source, follows: Register) -> Register:
        """Have a block in a room, whose address is returned, and note what the next one reads, if any follows."""
        f, read = self.function, self.function.get(self.read, "ptr")
        with f.where(f.let(f"xor {f.get(self.is_filled, 'i1')}, true", "i1")):
            self.aim(here, read)
            self.copy_rest()
        self.aim(following, f.get(self.filled, "ptr"))
        self.note.set("steps", f.let(f"select {follows}, {following.steps}, i64 0", "i64"))
        f.set(self.is_filled, follows)
        return read

    def end(self) -> None:
        """Copy what no tile has copied, and change rooms."""
        f = self.function
        self.copy_rest()
        read, filled = f.get(self.read, "ptr"), f.get(self.filled, "ptr")
        f.set(self.read, filled)
        f.set(self.filled, read)

    def copy_rest(self) -> None:
        """Copy all lines that are left."""
        self.function.line(f"call void @copy({self.note.note})")

    def aim(self, source: Source, target: Register) -> None:
        """Note what is to be copied to a room."""
        f, kind, note = self.function, self.kind, self.note
        lines = product(f, source.panels, integer(kind.vectors))
        if kind.last:
            last = difference(f, difference(f, self.numbers["panels"], integer(1)), source.panel)
            note.set("last", last)
            there = f.let(f"icmp slt {last}, {source.panels.name}", "i1")
            less = difference(f, lines, integer(kind.vectors - kind.last))
            lines = f.let(f"select {there}, {less}, {lines}", "i64")
        before = product(f, source.panel, integer(kind.width))
        values = {"source": source.first, "target": target, "steps": source.steps, "step": integer(0),
                  "line": integer(0), "lines": lines, "columns": difference(f, self.numbers["columns"], before)}
        for name, value in values.items():
            note.set(name, value)
