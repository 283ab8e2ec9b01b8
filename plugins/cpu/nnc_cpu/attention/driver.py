"""Parts that the functions of attention share: `void name(ptr arguments, ptr numbers, i64 begin, i64 end)`."""

from __future__ import annotations

from collections.abc import Sequence

from nnc_core.operator.attention_problem import AXES
from nnc_cpu.attention.giving import GiveWriter
from nnc_cpu.attention.kind import BLOCK, AttentionKind
from nnc_cpu.attention.masks import MaskWriter
from nnc_cpu.attention.numbers import arrays_of, names_of
from nnc_cpu.llvm.ir import FunctionWriter, Register, integer
from nnc_cpu.llvm.logic import constant, held, stored
from nnc_cpu.products.panels import PanelWriter
from nnc_cpu.products.tile import TileWriter
from nnc_cpu.products.writing import (
    Signature,
    difference,
    function_text,
    loaded,
    moved,
    places_in,
    product,
    smaller,
    split,
    store,
    total,
)

SIGNATURE: Signature = (("arguments", "ptr"), ("numbers", "ptr"), ("begin", "i64"), ("end", "i64"))


def shared_functions(kind: AttentionKind, halves: bool, declared: dict[str, None]) -> list[str]:
    """Tiles, packing, masks, and giving away.  Tiles beside a panel have rows of an array, those of features what lies
    along them."""
    texts = [TileWriter(kind.tile(kind.rows, "rows"), kind.vectors, False, declared).text("beside"),
             TileWriter(kind.tile(kind.value_rows, "columns"), kind.vectors, False, declared).text("along_values"),
             PanelWriter(kind.tile(kind.rows, "rows", "columns"), kind.vectors, halves, declared).text("turn"),
             GiveWriter(kind, declared).text("give")]
    if kind.mask is not None:
        texts.append(MaskWriter(kind, kind.mask, halves, declared).text("lay_mask"))
    return texts


class DriverWriter:
    """Writes a function whose tasks lie along the axes of batches."""

    def __init__(self, kind: AttentionKind, declared: dict[str, None]) -> None:
        self.kind, self.function = kind, FunctionWriter(declared)
        self.type, self.size = held(kind.dtype), kind.dtype.itemsize
        self.numbers: dict[str, Register] = {}
        self.arrays: dict[str, Register] = {}
        self.types = {name: self.type for name in arrays_of(kind)}
        if kind.mask is not None:
            self.types["mask"] = stored(kind.mask.dtype)

    def text(self, name: str) -> str:
        f = self.function
        for n, number in enumerate(names_of(self.kind)):
            place = moved(f, Register("%numbers", "ptr"), "i64", integer(n))
            self.numbers[number] = f.let(f"load i64, {place}", "i64")
        for n, array in enumerate(arrays_of(self.kind)):
            pointer = f.let(f"load ptr, {moved(f, Register('%arguments', 'ptr'), 'ptr', integer(n))}", "ptr")
            self.arrays[array] = self.at(array, pointer, self.numbers[f"{array}_offset"])
        self.scale = f.variable(self.type)
        f.set(self.scale, self.scale_number())
        self.rooms()
        with f.loop(Register("%begin", "i64"), Register("%end", "i64")) as task:
            self.task(task)
        return function_text(f, name, SIGNATURE, linkage="")

    def scale_number(self) -> Register:
        f = self.function
        whole = f.let(f"bitcast {self.numbers['scale']} to double", "double")
        return whole if self.type == "double" else f.let(f"fptrunc {whole} to float", "float")

    def rooms(self) -> None:
        """Reserve what a task holds."""

    def task(self, task: Register) -> None:
        raise NotImplementedError

    # ---- places
    def at(self, array: str, pointer: Register, by: Register) -> Register:
        return moved(self.function, pointer, self.types[array], by)

    def row(self, array: str, pointer: Register, row: Register) -> Register:
        """The address of a query or a key in a matrix."""
        return self.at(array, pointer, product(self.function, row, self.numbers[f"{array}_row"]))

    def split(self, x: Register, by: str) -> tuple[Register, Register]:
        """(x modulo a number, x divided by it)."""
        return split(self.function, x, self.numbers[by])

    def axes(self, batch: Register) -> list[Register]:
        """The place on each axis of batches."""
        return places_in(self.function, batch, [self.numbers[f"axis{axis}"] for axis in range(1, AXES)])

    def matrix(self, array: str, places: Sequence[Register]) -> Register:
        """The address at which a matrix of the batch begins."""
        pointer = self.arrays[array]
        for axis, place in enumerate(places):
            pointer = self.at(array, pointer, product(self.function, place, self.numbers[f"{array}_axis{axis}"]))
        return pointer

    def in_panel(self, panel: Register, row: Register) -> Register:
        """The address of a row of a panel."""
        return moved(self.function, panel, self.type, product(self.function, row, integer(self.kind.width)))

    def whole_tiles(self, count: Register, rows: int) -> Register:
        """The rows of the tiles that so many rows take."""
        f = self.function
        tiles = f.let(f"udiv {total(f, count, integer(rows - 1))}, {rows}", "i64")
        return product(f, tiles, integer(rows))

    # ---- rooms
    def panel(self, rows: int) -> Register:
        """Room for a panel of so many rows, on the stack."""
        return self.function.variable(self.type, self.kind.lanes, rows * self.kind.vectors)

    def fill(self, panel: Register, rows: Register) -> None:
        """Zeros in the rows of a panel."""
        f, lanes = self.function, self.kind.lanes
        zero = f.spread(constant(0.0, self.kind.dtype), lanes)
        with f.loop(integer(0), product(f, rows, integer(self.kind.vectors))) as n:
            store(f, zero, moved(f, panel, self.type, n, lanes), self.size, None)

    def scaled(self, panel: Register, rows: Register, by: Register) -> None:
        """Multiply the rows of a panel by a vector."""
        f, lanes = self.function, self.kind.lanes
        with f.loop(integer(0), product(f, rows, integer(self.kind.vectors))) as n:
            place = moved(f, panel, self.type, n, lanes)
            value = loaded(f, place, self.type, lanes, self.size, None)
            store(f, f.let(f"fmul {value}, {by.name}", self.type, lanes), place, self.size, None)

    # ---- steps
    def call(self, name: str, *operands: Register) -> None:
        self.function.line(f"call void @{name}({', '.join(map(str, operands))})")

    def note(self, table: Register, array: str, start: Register, count: Register, most: Register) -> None:
        """Addresses of `count` rows; those from number `most` on are the last's."""
        f = self.function
        last = difference(f, most, integer(1))
        with f.loop(integer(0), count) as n:
            address = self.row(array, start, smaller(f, n, last))
            f.line(f"store {address}, {moved(f, table, 'ptr', n)}")

    def beside(self, table: Register, count: Register, length: Register, panel: Register, sums: Register,
               fresh: bool) -> None:
        """Rows of a table times a panel of `length` steps; `fresh`: there are no sums yet."""
        f, rows = self.function, self.kind.rows
        with f.loop(integer(0), count, rows) as row:
            self.call("beside", moved(f, table, "ptr", row), integer(0), integer(1), length, panel,
                      integer(self.kind.width), integer(self.kind.width), self.in_panel(sums, row),
                      Register("true" if fresh else "false", "i1"))

    def along(self, name: str, rows: int, size: Register, table: Register, length: Register, panel: Register,
              sums: Register) -> None:
        """Features of the rows of a table, as many as `size`, times a panel of a step for each row."""
        f = self.function
        with f.loop(integer(0), size, rows) as row:
            shift = smaller(f, row, difference(f, size, integer(rows)))
            self.call(name, table, shift, integer(1), length, panel, integer(self.kind.width),
                      integer(self.kind.width), self.in_panel(sums, row), Register("false", "i1"))

    def give(self, panel: Register, size: Register, rows: int, count: Register, array: str, target: Register) -> None:
        """Turn a panel of tiles of so many rows, and write it to the rows of an array."""
        f = self.function
        last = difference(f, self.whole_tiles(size, rows), integer(rows))
        skipped = difference(f, last, difference(f, size, integer(rows)))
        self.call("give", panel, size, skipped, last, count, target, self.numbers[f"{array}_row"])

    def lay_mask(self, mask: Register, back: bool, steps: Register, lanes: Register, room: Register) -> None:
        """Lay out the part of a mask that is added to a block of scores."""
        if self.kind.mask is not None:
            step, lane = ("row", "column") if back else ("column", "row")
            self.call("lay_mask", mask, self.numbers[f"mask_{step}"], self.numbers[f"mask_{lane}"], steps, lanes, room)

    def tables(self, count: int) -> list[Register]:
        """Room for the addresses of a block's rows."""
        return [self.function.variable("ptr", 1, BLOCK) for _ in range(count)]
