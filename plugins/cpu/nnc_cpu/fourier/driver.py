"""Drivers of steps, as all kinds have them: numbers, arrays, tasks, and a slot of scratch memory for each thread.

They are `fourier(arguments, numbers, begin, end)`; arguments are x, y and scratch memory, which begins with words that
are zero when the first task begins.
"""

from __future__ import annotations

from collections.abc import Sequence

from nnc_core.base.loopnest import NOTE_WORDS
from nnc_cpu.fourier.chain import Chain, RootTable
from nnc_cpu.fourier.problem import FourierKind, FourierProblem
from nnc_cpu.llvm.ir import FunctionWriter, Register, integer
from nnc_cpu.llvm.logic import held
from nnc_cpu.products.parts import SIGNATURE
from nnc_cpu.products.writing import function_text, moved, parameters, places_in, product, total

NAME = "fourier"
MOST_SLOTS = 63
"""Bits of a word, but for the sign."""
HEAD = 8 * NOTE_WORDS
"""Bytes of scratch memory before the slots: of word 1 each bit is a slot that is taken; word 0, which would note a
mistake, stays zero."""
CLAIM = """\
define internal i64 @claim(ptr %taken, i64 %slots) #0 {
entry:
  %beyond = shl i64 -1, %slots
  br label %look
look:
  %old = load atomic i64, ptr %taken monotonic, align 8
  %not.free = or i64 %old, %beyond
  %free = xor i64 %not.free, -1
  %none = icmp eq i64 %free, 0
  br i1 %none, label %look, label %take
take:
  %below = sub i64 0, %free
  %mine = and i64 %free, %below
  %new = or i64 %old, %mine
  %exchange = cmpxchg ptr %taken, i64 %old, i64 %new acquire monotonic
  %got = extractvalue { i64, i1 } %exchange, 1
  br i1 %got, label %done, label %look
done:
  ret i64 %mine
}
define internal void @release(ptr %taken, i64 %mine) #0 {
  %others = xor i64 %mine, -1
  %before = atomicrmw and ptr %taken, i64 %others release
  ret void
}
"""


def names_of(kind: FourierKind) -> list[str]:
    """The numbers that a function is given, in order."""
    axes = [f"{name}{n}" for n in range(kind.axes) for name in ("length", "x", "y")]
    return ["table", "factors", "far", "scale", "slots", "slot", "x_offset", "y_offset", "rows", "x_row", "y_row",
            "x_step", "y_step", *axes]


def numbers_of(problem: FourierProblem, table: RootTable, slots: int, slot: int) -> list[int]:
    """The numbers of a problem: slots of so many bytes, each."""
    place, size = table.numbers.ctypes.data, table.numbers.itemsize
    axes = [number for axis in problem.others for number in axis]
    starts = [place + size * n for n in (0, table.factors, table.far, len(table.numbers) - 1)]
    return [*starts, slots, slot, *problem.offsets, *problem.rows, *problem.steps, *axes]


class TransformWriter:
    """Writes the function of a kind."""

    def __init__(self, kind: FourierKind, chain: Chain, declared: dict[str, None]) -> None:
        self.kind, self.chain, self.function = kind, chain, FunctionWriter(declared)
        self.type, self.lanes = held(kind.dtype), kind.lanes

    @classmethod
    def slot_numbers(cls, kind: FourierKind) -> int:
        """Real numbers of scratch memory that each thread wants."""
        raise NotImplementedError

    @classmethod
    def shared_numbers(cls, kind: FourierKind) -> int:
        """Those that all threads share."""
        return 0

    @classmethod
    def tasks(cls, problem: FourierProblem) -> int:
        raise NotImplementedError

    def text(self) -> str:
        f = self.function
        arguments, numbers, begin, end = parameters(SIGNATURE)
        self.numbers = {name: f.let(f"load i64, {moved(f, numbers, 'i64', integer(n))}", "i64")
                        for n, name in enumerate(names_of(self.kind))}
        x, y, self.scratch = [f.let(f"load ptr, {moved(f, arguments, 'ptr', integer(n))}", "ptr") for n in range(3)]
        self.x, self.y = (moved(f, array, "i8", self.numbers[f"{name}_offset"]) for name, array in
                          (("x", x), ("y", y)))
        self.table, self.factors, self.far, self.scale = (
            f.let(f"inttoptr {self.numbers[name]} to ptr", "ptr") for name in ("table", "factors", "far", "scale"))
        taken = moved(f, self.scratch, "i64", integer(1))
        mine = f.let(f"call i64 @claim({taken}, {self.numbers['slots']})", "i64")
        slot = f.call("llvm.cttz.i64", "i64", mine, Register("false", "i1"))
        self.slot = moved(f, moved(f, self.scratch, "i8", integer(HEAD)), "i8", product(f, slot, self.numbers["slot"]))
        self.rooms()
        with f.loop(begin, end) as task:
            self.task(task)
        f.line(f"call void @release({taken}, {mine})")
        return CLAIM + function_text(f, NAME, SIGNATURE, linkage="")

    def rooms(self) -> None:
        """Find places in the slot."""
        raise NotImplementedError

    def task(self, task: Register) -> None:
        raise NotImplementedError

    # ---- places
    def room(self, numbers: int) -> Register:
        """The place so many numbers behind the beginning of the slot."""
        return moved(self.function, self.slot, self.type, integer(numbers))

    def at(self, array: Register, by: Register) -> Register:
        """The place so many numbers further on."""
        return moved(self.function, array, self.type, by)

    def row(self, row: Register, outer: Register) -> tuple[Register, Register]:
        """The addresses at which a row begins in both arrays."""
        f, numbers, axes = self.function, self.numbers, self.kind.axes
        places = places_in(f, outer, [numbers[f"length{n}"] for n in range(1, axes)]) if axes else []
        found = []
        for name, array in (("x", self.x), ("y", self.y)):
            by = product(f, row, numbers[f"{name}_row"])
            for n, place in enumerate(places):
                by = total(f, by, product(f, place, numbers[f"{name}{n}"]))
            found.append(self.at(array, by))
        return found[0], found[1]

    # ---- steps
    def call(self, step: str, source: Register, target: Register, source_step: Register | int = 0,
             target_step: Register | int = 0, left: Register | int = 0, factors: Register | None = None,
             far: Register | None = None) -> None:
        """Run the function of a step; a number stands for itself."""
        steps = [integer(n) if isinstance(n, int) else n for n in (source_step, target_step, left)]
        factors, far = factors or self.factors, far or self.far
        operands: Sequence[Register] = (source, target, *steps, self.table, factors, far, self.scale)
        self.function.line(f"call void @{step}({', '.join(map(str, operands))})")

    def turn(self, step: str, array: str, place: Register, room: Register, left: Register) -> None:
        """Run a function that takes rows of an array, or gives them."""
        operands = (place, self.numbers[f"{array}_row"], self.numbers[f"{array}_step"], left, room)
        self.function.line(f"call void @{step}({', '.join(map(str, operands))})")
