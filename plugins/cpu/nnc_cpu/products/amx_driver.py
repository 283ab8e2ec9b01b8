"""The function of a product by AMX: as `driver.py` has it, but that A is always copied into rows of words."""

from __future__ import annotations

from collections.abc import Sequence

from nnc_cpu.llvm.ir import Register, integer
from nnc_cpu.products.amx import CONFIGURATION, ROWS
from nnc_cpu.products.driver import ProductWriter
from nnc_cpu.products.writing import difference, moved, product, smaller, total


class AmxProductWriter(ProductWriter):
    """Writes the function of a kind of products by AMX."""

    def begin_tasks(self) -> None:
        f, kind = self.function, self.kind
        self.rest = f.variable("i32", kind.lanes, ROWS * kind.vectors)
        self.copied = f.variable("i64")
        f.set(self.copied, integer(-1))
        f.call_void("llvm.x86.ldtilecfg", Register(f"@{CONFIGURATION}", "ptr"))

    def begin_task(self, rows: Register) -> None:
        """Tell whether the rows that the task before has copied are those of this one, with all steps of their sums."""
        f = self.function
        whole = self.both(*[f.let(f"icmp sge {self.numbers[part]}, {self.numbers[axis].name}", "i1")
                            for axis, part in (("segments", "group"), ("length", "part"))])
        same = f.let(f"icmp eq {f.get(self.copied, 'i64')}, {rows.name}", "i1")
        self.are_copied = self.both(whole, same)
        f.set(self.copied, rows)

    def end_tasks(self) -> None:
        """Registers in use make threads dearer to switch, and slow some processors down."""
        self.function.call_void("llvm.x86.tilerelease")

    def steps_of(self, segments: Register, length: Register, panel: Register, b_step: Register) -> tuple[Register, ...]:
        """The words of all segments, which lie side by side in A and in B."""
        words = product(self.function, segments, length)
        self.call("rest", panel, words, b_step, self.rest)
        return words, panel, b_step

    def tabled(self, segment: Register, segments: Register, step: Register, length: Register) -> Register:
        """Copy A, where it is not yet; words from a row to the next."""
        f = self.function
        words = product(f, segments, self.elements(length))
        filled = f.let(f"and {total(f, words, integer(ROWS - 1))}, {-ROWS}", "i64")
        distance = total(f, filled, integer(ROWS))  # no power of two, which would have rows meet in the cache
        with f.where(self.negated(self.are_copied)):
            rows = self.whole_rows
            if self.kind.left == "columns":
                self.tables.columns(step, length)
                rows = self.rows
            else:
                self.tables.rows(segment, segments, step, rows)
            operands = (self.table, rows, self.whole_rows, segments, length, self.room, distance)
            f.line(f"call void @convert({', '.join(map(str, operands))})")
        return distance

    def tile(self, row: Register, shift: Register, steps: tuple[Register, ...], fresh: Register,
             final: Register, name: str = "tile", late: Sequence[Register] = ()) -> None:
        f = self.function
        words, panel, b_step = steps
        if self.stream is not None:
            self.stream.of_tile()
        sums, a = self.sums_at(row), moved(f, self.room, "i32", product(f, row, shift))
        self.call(name, a, shift, words, panel, b_step, self.rest, sums, fresh)
        with f.where(final):
            rows = smaller(f, integer(self.kind.rows), difference(f, self.rows, row))
            self.finish(row, rows, sums)
