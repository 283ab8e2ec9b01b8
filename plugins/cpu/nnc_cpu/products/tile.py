"""Register tiles: some rows and some vectors of columns of a product, whose sums stay in registers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from nnc_cpu.llvm.ir import FunctionWriter, Register, integer
from nnc_cpu.llvm.logic import constant, held
from nnc_cpu.products.dots import added
from nnc_cpu.products.kind import Kind
from nnc_cpu.products.taps import NOTES
from nnc_cpu.products.writing import (
    Signature,
    difference,
    function_text,
    lanes_below,
    loaded,
    moved,
    parameters,
    prefetch,
    product,
    store,
    total,
)

SIGNATURE: Signature = (
    ("table", "ptr"), ("shift", "i64"), ("segments", "i64"), ("length", "i64"), ("b", "ptr"), ("step", "i64"),
    ("columns", "i64"), ("sums", "ptr"), ("fresh", "i1"))  # fmt: skip
"""`table`: addresses in A, `shift`: see the two writers; `segments` of `length` steps each; `step`: elements of B from
one step of the sum to the next; `columns`: those that B has; `sums`: where the sums are kept between blocks of steps,
`fresh`: there are none yet.  Where steps are words, words are counted, as elements of A and B are then."""
TOGETHER, FEW_SUMS = 4, 16
"""Steps that most tiles go through at a time, and sums that leave registers for what these load."""
SENT = 32
"""Steps before a step at which its elements of B are sent for, where all elements of windows are rows."""
EXCESS: Signature = (("excess", "ptr"),)
"""What is to be taken from the sums of each column, where elements of A are moved."""


class TileWriter:
    """Writes the function of one tile, which goes through some steps of its sums."""

    together = TOGETHER

    def __init__(self, kind: Kind, vectors: int, masked: bool, declared: dict[str, None]) -> None:
        self.kind, self.vectors, self.lanes = kind, vectors, kind.lanes
        if masked or vectors != kind.vectors:
            self.together = 1  # the last panel's: code for it takes time to compile, too
        self.masked = masked
        """The last vector of B may not be whole."""
        self.type, self.size = held(kind.wide), kind.wide.itemsize
        self.function = FunctionWriter(declared)
        (self.table, self.shift, self.segments, self.length, self.b, self.step, self.columns, self.sums,
         self.fresh, *self.others) = parameters(self.signature)

    def text(self, name: str) -> str:
        f = self.function
        self.mask = None
        if self.masked:
            whole = integer((self.vectors - 1) * self.lanes)
            self.mask = lanes_below(f, difference(f, self.columns, whole), self.lanes)
        self.begin_sums()
        if self.kind.is_moved:
            self.take(self.others[0])
        self.right = f.variable("ptr")
        f.set(self.right, self.b)
        self.steps()
        self.end_sums()
        return function_text(f, name, self.signature)

    def begin_sums(self) -> None:
        """Begin with nothing, or with what the block of steps before has left."""
        f = self.function
        self.begin_with_nothing()
        with f.where(f.let(f"xor {self.fresh}, true", "i1")):
            for place, variable in self.totals.items():
                f.set(variable, loaded(f, self.kept(place), self.type, self.lanes, self.size, None))

    def begin_with_nothing(self) -> None:
        f = self.function
        places = [(row, v) for row in range(self.kind.rows) for v in range(self.vectors)]
        self.totals = {place: f.variable(self.type, self.lanes) for place in places}
        zero = f.spread(constant(0, self.kind.wide), self.lanes)
        for variable in self.totals.values():
            f.set(variable, zero)

    def end_sums(self) -> None:
        """Keep the sums for the next block of steps, or for what ends them."""
        f = self.function
        for place, variable in self.totals.items():
            store(f, f.get(variable, self.type, self.lanes), self.kept(place), self.size, None)

    @property
    def signature(self) -> Signature:
        return (*SIGNATURE, *EXCESS) if self.kind.is_moved else SIGNATURE

    def take(self, excess: Register) -> None:
        """Take so much from the sums."""
        f = self.function
        for (_, v), variable in self.totals.items():
            place = moved(f, excess, self.type, integer(v), self.lanes)
            less, before = (f.get(x, self.type, self.lanes) for x in (place, variable))
            f.set(variable, f.let(f"sub {before}, {less.name}", self.type, self.lanes))

    def kept(self, place: tuple[int, int]) -> Register:
        row, v = place
        return moved(self.function, self.sums, self.type, integer(row * self.kind.vectors + v), self.lanes)

    def steps(self) -> None:
        """All steps, in order."""
        self.segment = product(self.function, self.length, self.step)
        (self.by_columns if self.kind.left == "columns" else self.by_rows)()

    def by_rows(self) -> None:
        """`table` has for each segment the addresses of rows, those of two segments `shift` apart."""
        f = self.function
        of_channels = self.kind.left == "each"  # segments of one step, or of none where nothing sees the rows
        count = product(f, self.segments, self.length) if of_channels else self.segments
        with f.loop(integer(0), count) as segment:
            first = moved(f, self.table, "ptr", product(f, segment, self.shift))
            rows = [f.let(f"load ptr, {moved(f, first, 'ptr', integer(row))}", "ptr") for row in range(self.kind.rows)]
            if of_channels:
                self.one_step(rows, self.next_right(1))
            else:
                self.each_step(lambda k, b: self.one_step([moved(f, row, self.type, k) for row in rows], b))

    def by_columns(self) -> None:
        """`table` has the address of the column of each step, whose row number `shift` is the tile's first; one for
        each element of windows that is among the rows."""
        f, rows = self.function, self.kind.rows // self.kind.taps

        def one_step(k: Register, b: Register) -> None:
            if self.kind.taps > 1:  # each panel is gone through once, past what others have of each row
                prefetch(f, moved(f, b, self.type, product(f, self.step, integer(SENT))))
            places = []
            for tap in range(self.kind.taps):
                noted = moved(f, moved(f, self.table, "ptr", integer(tap * NOTES)), "ptr", k)
                first = moved(f, f.let(f"load ptr, {noted}", "ptr"), self.type, self.shift)
                places += [moved(f, first, self.type, integer(row)) for row in range(rows)]
            self.one_step(places, b)

        self.each_step(one_step)

    def each_step(self, one_step: Callable[[Register, Register], None]) -> None:
        """All steps of a segment, some at a time: counting them takes instructions that a busy core has no room for."""
        few = self.kind.rows * self.vectors <= FEW_SUMS
        (self.steps_in_groups if few and self.together > 1 else self.steps_in_blocks)(one_step)

    def steps_in_groups(self, one_step: Callable[[Register, Register], None]) -> None:
        """Some steps at a time are one block of code, in which LLVM loads ahead."""
        f = self.function
        whole = f.let(f"and {self.length}, {-self.together}", "i64")
        for first, end, count in ((integer(0), whole, self.together), (whole, self.length, 1)):
            with f.loop(first, end, count) as k:
                self.begin_steps(k, count)
                b = self.next_right(count)
                for n in range(count):
                    self.step_behind(one_step, k, b, n)

    def steps_in_blocks(self, one_step: Callable[[Register, Register], None]) -> None:
        """Each step is a block by itself: LLVM would load so much for those behind it that sums had no registers."""
        f, start = self.function, self.function.get(self.right, "ptr")
        with f.loop(integer(0), self.length, self.together) as k:
            if self.together > 1:
                self.begin_steps(k, self.together)
            b = self.next_right(self.together)
            with ExitStack() as blocks:
                for n in range(self.together):
                    if n:
                        condition = f"icmp slt {total(f, k, integer(n))}, {self.length.name}"
                        blocks.enter_context(f.where(f.let(condition, "i1")))
                    self.step_behind(one_step, k, b, n)
        f.set(self.right, moved(f, start, self.type, self.segment))

    def step_behind(self, one_step: Callable[[Register, Register], None], k: Register, b: Register, n: int) -> None:
        """The n-th step behind number `k`, whose elements of B are at `b`."""
        f = self.function
        one_step(total(f, k, integer(n)), moved(f, b, self.type, product(f, self.step, integer(n))))

    def next_right(self, steps: int) -> Register:
        """The place of B, which is so many steps further on then."""
        f, b = self.function, self.function.get(self.right, "ptr")
        f.set(self.right, moved(f, b, self.type, product(f, self.step, integer(steps))))
        return b

    def begin_steps(self, k: Register, count: int) -> None:
        """Do whatever else there is to do at so many steps."""

    @contextmanager
    def each_of(self, k: Register, count: int, shift: Register) -> Iterator[Register]:
        """The block of what is done at one of 1 << `shift` steps, for so many of them from `k` on: its number."""
        f = self.function
        first, end = (f.let(f"lshr {x}, {shift.name}", "i64") for x in (k, total(f, k, integer(count))))
        with f.loop(first, end) as number:
            yield number

    def one_step(self, places: Sequence[Register], b: Register) -> None:
        """One step of all sums, with elements of A, and the first of B, at these places."""
        f, right = self.function, self.right_at(b)
        for row, place in enumerate(places):
            for v, (left, vector) in enumerate(zip(self.left_at(place), right, strict=True)):
                variable = self.totals[row, v]
                f.set(variable, self.added(f.get(variable, self.type, self.lanes), left, vector))

    def added(self, before: Register, left: Register, right: Register) -> Register:
        """Sums with the products of a step, or of the steps of a word."""
        f, dots = self.function, self.kind.dots
        if dots is not None:
            return added(f, dots, before, left, right)
        name = f"llvm.fma.v{self.lanes}{'f32' if self.type == 'float' else 'f64'}"
        return f.call(name, self.type, left, right, before, lanes=self.lanes)

    def right_at(self, place: Register) -> list[Register]:
        """The vectors of B of a step."""
        return self.vectors_at(place)

    def left_at(self, place: Register) -> list[Register]:
        """The factors of a row for all its vectors."""
        if self.kind.left == "each":
            return self.vectors_at(place)
        f = self.function
        return [f.spread(f.let(f"load {self.type}, {place}, align {self.size}", self.type), self.lanes)] * self.vectors

    def vectors_at(self, place: Register) -> list[Register]:
        """Neighbouring vectors, the last of which may not be whole."""
        return [loaded(self.function, moved(self.function, place, self.type, integer(v), self.lanes), self.type,
                       self.lanes, self.size, self.mask if v == self.vectors - 1 else None)
                for v in range(self.vectors)]

