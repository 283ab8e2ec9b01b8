"""Loop nests as functions of LLVM IR: `void name(ptr arguments, ptr numbers, i64 begin, i64 end)`.

A function runs *tasks* `begin` to `end`: those of a nest are independent, and `TaskShape.tasks` counts them.
Neighbouring points are computed together, as the lanes of vectors: points of an outer axis, each of which folds what is
its own, or points of the inner axis of a stage, which fold together.  What is the same in all lanes stays a scalar.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import NamedTuple

from nnc_core.base.dtype import DType
from nnc_core.base.loopnest import Instruction, LoopNest, Stage
from nnc_core.codegen.expand import expand
from nnc_core.codegen.general import AnyNest, GeneralNest
from nnc_core.codegen.ranges import axis_lengths
from nnc_core.codegen.repeated import NOTHING_REPEATED, repeated_values
from nnc_cpu.llvm.blocks import BlockWriter, blocks_of
from nnc_cpu.llvm.branches import Branch, branches
from nnc_cpu.llvm.folds import fold_of
from nnc_cpu.llvm.ir import FunctionWriter, Register, integer
from nnc_cpu.llvm.logic import held, stored
from nnc_cpu.llvm.outer import BLOCK, TILED_BLOCK, TaskCounter, TaskShape
from nnc_cpu.llvm.places import plus, times
from nnc_cpu.llvm.points import PointWriter
from nnc_cpu.llvm.scalars import EXPANDED
from nnc_cpu.llvm.strategy import (
    chains,
    choose,
    crossing,
    rows_abreast,
    tile_axis,
    varying,
    vector_axis,
    vectors_abreast,
)
from nnc_cpu.llvm.tiles import TileReader
from nnc_cpu.partial_sums import in_parts


class Rendered(NamedTuple):
    """The text of a function, and how its work is divided."""

    text: str
    shape: TaskShape


def render(name: str, nest: AnyNest, lanes: int, halves: bool, declared: dict[str, None], scales: bool = False
           ) -> Rendered:
    """The function of a nest; NotSupportedError for what it cannot say.

    lanes: elements of a vector, a power of two up to PARTS; halves: the host converts float16 by itself; declared:
    gathers what the module has to declare; scales: the host multiplies by powers of two by itself.
    """
    direct = ("scale",) if scales else ()
    return KernelWriter(expand(nest, EXPANDED, direct), lanes, halves, declared).rendered(name)


class KernelWriter:
    """Writes the function of one nest: what it is given, its tasks, and the stages at each point."""

    def __init__(self, nest: AnyNest, lanes: int, halves: bool, declared: dict[str, None]) -> None:
        self.general = nest if isinstance(nest, GeneralNest) else None
        self.nest: LoopNest = nest if isinstance(nest, LoopNest) else nest.nest
        self.axis = choose(self.nest, lanes)
        self.varying = varying(self.nest, self.axis)
        self.function = FunctionWriter(declared)
        self.points = PointWriter(self.nest, lanes, self.function, halves)
        self.places = self.points.places
        self.lengths: dict[int, Register] = {}
        self.tile = None if self.axis is None else tile_axis(self.nest, self.axis)
        if self.axis is not None and self.tile is not None:
            self.tiles = TileReader(self.points, crossing(self.nest, self.axis, self.tile), self.tile,
                                    self.known_length(self.tile), axis_lengths(self.nest, self.nest.stages[0]))
        self.abreast = 1 if self.axis is None or self.tile is not None else vectors_abreast(self.nest, self.axis)
        self.row_axis, self.rows_abreast = (0, 1) if self.axis is not None else rows_abreast(self.nest)
        steps = {self.axis: self.block(lanes * self.abreast), self.tile: lanes}
        if self.rows_abreast > 1:
            steps[self.row_axis] = self.rows_abreast
        self.repeated = NOTHING_REPEATED if self.abreast > 1 else repeated_values(
            self.nest, 1 if self.axis is None else lanes)
        self.steady: set[int] = set()
        """Values that are computed once for each task."""
        self.rows: dict[tuple[int, int], Register] = {}
        """Where kept values lie, in memory of the stack: by the row of those at hand, and by number."""
        self.blocks: dict[int, BlockWriter | None] = {}
        """What neighbouring points have in common, by the first value of a stage."""
        self.shape = TaskShape(self.nest.axes, () if self.general is None else self.general.lengths,
                               tuple([steps.get(axis, 1) for axis in range(len(self.nest.axes))]))

    def block(self, least: int) -> int:
        """Points of the lanes' axis in a task: the fewer, the more is done at each of them."""
        if self.tile is not None:
            return TILED_BLOCK
        inner = max([prod(stage.axes) for stage in self.nest.stages])
        return max(BLOCK // max(inner, 1) // least, 1) * least

    def rendered(self, name: str) -> Rendered:
        f = self.function
        if self.nest.points:
            self.take_arguments()
            begin, end = Register("%begin", "i64"), Register("%end", "i64")
            counter = TaskCounter(f, self.shape, self.lengths, self.order())
            with f.where(f.let(f"icmp slt {begin}, {end.name}", "i1")):
                counter.start(begin)
                with f.loop(begin, end):
                    self.task(counter)
                    counter.advance()
        head = f"define void @{name}(ptr %arguments, ptr %numbers, i64 %begin, i64 %end) #0 {{"
        lines = [head, "entry:", *self.function.variables, *self.function.lines, "  ret void", "}"]
        return Rendered("\n".join(lines) + "\n", self.shape)

    # ---- outer points
    def order(self) -> list[int]:
        """The axes, those that change from task to task first: what lies together is computed together."""
        fast = [axis for axis in (self.tile, self.axis) if axis is not None]
        return fast + [axis for axis in reversed(range(len(self.nest.axes))) if axis not in fast]

    def take_arguments(self) -> None:
        f, count = self.function, len(self.nest.arguments)
        open_lengths = self.shape.lengths
        numbers = [integer(0)] * count
        if self.general is not None:
            numbers = [self.number(n) for n in range(count)]
        for n, argument in enumerate(self.nest.arguments):
            slot = f.let(f"getelementptr ptr, ptr %arguments, i64 {n}", "ptr")
            pointer = f.let(f"load ptr, {slot}", "ptr")
            first = f.let(f"getelementptr {stored(argument.dtype)}, {pointer}, {numbers[n]}", "ptr")
            self.points.pointers.append(first)
        for n, length in enumerate(self.nest.axes):
            place = open_lengths.index(n) if n in open_lengths else None
            self.lengths[n] = integer(length) if place is None else self.number(count + place)
        self.points.lengths = self.lengths

    def number(self, n: int) -> Register:
        place = self.function.let(f"getelementptr i64, ptr %numbers, i64 {n}", "ptr")
        return self.function.let(f"load i64, {place}", "i64")

    def task(self, counter: TaskCounter) -> None:
        """The points of one task."""
        f = self.function
        for axis in range(len(self.nest.axes)):
            self.places.axes[axis] = counter.first(axis)
        if self.axis is None:
            self.rows_of_task()
            return
        first = self.places.axes[self.axis]
        stop = self.end_of(self.axis)
        self.steadily()
        for positions in self.points.along(self.axis, first, stop, self.known_length(self.axis), self.abreast):
            if self.tile is None:
                self.stages(positions)
            else:
                left = f.let(f"sub {stop}, {self.places.axes[self.axis].name}", "i64")
                self.tile_of(self.tile, left)

    def rows_of_task(self) -> None:
        """The rows of one task: together, or one by one where there are fewer."""
        if self.rows_abreast == 1:
            self.stages()
            return
        f, axis, count = self.function, self.row_axis, self.rows_abreast
        first, stop = self.places.axes[axis], self.end_of(axis)
        left = f.let(f"sub {stop}, {first.name}", "i64")
        whole = f.let(f"icmp eq {left}, {count}", "i1")
        with f.where(whole):
            self.stages([plus(f, first, integer(n)) for n in range(count)])
        with f.loop(f.let(f"select {whole}, {stop}, {first}", "i64"), stop) as row:
            self.stages([row])

    def steadily(self) -> None:
        """Compute what is the same at all points of a task, before it goes through them."""
        [stage, *others] = self.nest.stages
        if others or stage.axes or stage.reductions or stage.running or self.tile is not None:
            return
        self.points.begin(None, ())
        for _ in self.points.vectors():
            for number, instruction in enumerate(stage.body):
                if number not in self.varying and instruction.operation != "store":
                    self.points.instruction(number, instruction, self.nest.axes)
                    self.steady.add(number)
            self.points.steady = self.points.values
        blocks = self.blocks_in(stage, 0, self.axis)
        if blocks is not None:
            blocks.steadily(self.points.steady)

    def tile_of(self, axis: int, left: Register) -> None:
        """The points of a tile; so many are left along the axis of the lanes."""
        f, first = self.function, self.places.axes[axis]
        count = f.let(f"sub {self.end_of(axis)}, {first.name}", "i64")
        self.tiles.read(count, left)
        with f.loop(integer(0), count) as row:
            self.places.axes[axis], self.points.row = plus(f, first, row), row
            self.stages()
        self.places.axes[axis] = first

    def end_of(self, axis: int) -> Register:
        """The end of a task that begins here, along an axis."""
        more = plus(self.function, self.places.axes[axis], integer(self.shape.steps[axis]))
        return self.function.call("llvm.smin.i64", "i64", more, self.lengths[axis])

    def blocks_in(self, stage: Stage, first: int, axis: int | None) -> BlockWriter | None:
        """The writer of what neighbouring points of a stage have in common, if lanes lie along an axis."""
        if first not in self.blocks:
            one_by_one = self.tile is not None or self.abreast > 1 or self.rows_abreast > 1
            found = None if one_by_one else blocks_of(self.nest, stage, first, axis, self.repeated.numbers)
            self.blocks[first] = None if found is None else BlockWriter(self.points, found, stage.body, first)
        return self.blocks[first]

    def known_length(self, axis: int) -> int | None:
        return None if self.general is not None and axis in self.general.lengths else self.nest.axes[axis]

    def stages(self, positions: Sequence[Register] = ()) -> None:
        """All stages at the outer points at hand, those of several vectors, or rows, if there are several positions of
        the lanes' axis, or of that of rows."""
        written = 0
        self.points.begin(self.row_axis if self.axis is None else self.axis, positions)
        for stage in self.nest.stages:
            StageWriter(self, stage, written).write()
            written += stage.values


class StageWriter:
    """Writes one stage at the points at hand."""

    def __init__(self, kernel: KernelWriter, stage: Stage, first: int) -> None:
        self.kernel = kernel
        self.stage, self.first, self.after = stage, first, first + len(stage.body)
        self.points, self.outer = kernel.points, len(kernel.nest.axes)
        self.lengths = axis_lengths(kernel.nest, stage)
        self.axis = vector_axis(kernel.nest, stage) if kernel.axis is None else None
        """The inner axis along which the lanes lie; None where they are points of an outer axis, or there is one."""
        self.blocks = kernel.blocks_in(stage, first, kernel.axis if self.axis is None else self.axis)
        members = () if self.blocks is None else self.blocks.blocks.members
        self.branches = branches(kernel.nest, stage, first, kernel.repeated.numbers.union(members))
        self.folds = [[fold_of(self, n, r, n in kernel.varying, in_parts(r, stage, kernel.nest))
                       for n, r in enumerate(stage.reductions, self.after)] for _ in self.vectors_or_chains()]
        """Of each vector of points at hand, or of each chain of vectors along the stage's own axis."""
        self.chain = self.row = 0

    @property
    def shared(self) -> bool:
        return self.axis is not None

    @property
    def count(self) -> int:
        return prod(self.stage.axes)

    @property
    def chains(self) -> int:
        if self.axis is None or self.kernel.rows_abreast > 1:
            return 1
        return chains(self.kernel.nest, self.stage, self.lengths[self.axis] // self.points.width)

    def vectors_or_chains(self) -> Iterator[int]:
        return self.points.vectors() if self.chains == 1 else iter(range(self.chains))

    def write(self) -> None:
        for n in self.vectors_or_chains():
            for fold in self.folds[n]:
                fold.start()
        self.along(self.outer)
        for chain in self.folds[1 : self.chains]:
            for fold, other in zip(self.folds[0], chain, strict=True):
                fold.take_in(other)
        for n in self.points.vectors():
            for fold in self.folds[n]:
                self.points.values[fold.number] = fold.finished()

    def along(self, axis: int) -> None:
        """Go along the inner axes from `axis` on."""
        points = self.points
        if axis == len(self.lengths):
            self.point()
        elif axis == self.axis:
            length = self.lengths[axis]
            for positions in points.along(axis, integer(0), integer(length), length, self.chains):
                for self.chain, points.places.axes[axis] in enumerate(positions):
                    self.along(axis + 1)
        elif self.lengths[axis] == 1:
            points.places.axes[axis] = integer(0)
            self.along(axis + 1)
        else:
            with points.function.loop(integer(0), integer(self.lengths[axis])) as x:
                points.places.axes[axis] = x
                self.along(axis + 1)

    def point(self) -> None:
        """Everything at one inner point, or at those of all lanes."""
        points, stage = self.points, self.stage
        for n in points.vectors():
            self.row = n
            self.instructions(range(self.first, self.after), None)
            for fold in self.folds[n + self.chain]:
                points.values[fold.number] = fold.fold()
            for number, instruction in enumerate(stage.running, self.after + len(stage.reductions)):
                points.instruction(number, instruction, self.lengths)

    def instructions(self, numbers: Iterable[int], within: Branch | None) -> None:
        """Instructions of the body, those of a branch if there is one."""
        for number in numbers:
            if self.branches.home(number) is within:
                for branch in self.branches.before(number):
                    self.branch(branch)
                self.instruction(number, self.stage.body[number - self.first])

    def branch(self, branch: Branch) -> None:
        """The instructions of a branch, where a lane needs them."""
        points, f = self.points, self.points.function
        condition = points.values[branch.condition]
        if not branch.wanted:
            condition = points.scalars.negated(condition)
        kept: dict[int, Register] = {}
        with f.where(f.any(condition)):
            self.instructions(sorted(branch.members), branch)
            for number in branch.results:
                value = points.values[number]
                kept[number] = f.variable(value.type, value.lanes)
                f.set(kept[number], value)
        for number, variable in kept.items():
            value = points.values[number]
            points.values[number] = f.get(variable, value.type, value.lanes)

    def instruction(self, number: int, instruction: Instruction) -> None:
        """An instruction of the body, or the value that an equal one has had."""
        points, repeated = self.points, self.kernel.repeated
        if number in self.kernel.steady:
            return
        if self.blocks is not None and number in self.blocks.blocks.members:
            if number == self.blocks.blocks.members[-1]:
                self.blocks.write()
            return
        if number in repeated.sources:
            row = self.place_in_row(self.kernel.rows[self.row, repeated.sources[number]], points.dtypes[number])
            points.values[number] = points.function.get(row, held(points.dtypes[number]), self.lanes)
        elif number not in repeated.needless:
            points.instruction(number, instruction, self.lengths)
        if number in repeated.sources.values():
            self.keep(number)

    def keep(self, number: int) -> None:
        """Keep a value at the inner points at hand."""
        f, dtype = self.points.function, self.points.dtypes[number]
        if (self.row, number) not in self.kernel.rows:
            size = prod(self.stage.axes) + self.points.width  # the last vector may go beyond
            self.kernel.rows[self.row, number] = f.variable(held(dtype), 1 if self.shared else self.lanes, size)
        place = self.place_in_row(self.kernel.rows[self.row, number], dtype)
        f.set(place, f.spread(self.points.values[number], self.lanes))

    def place_in_row(self, row: Register, dtype: DType) -> Register:
        full = Register("", held(dtype), 1 if self.shared else self.lanes).full
        return self.points.function.let(f"getelementptr {full}, {row}, {self.flat()}", "ptr")

    @property
    def lanes(self) -> int:
        """The points at hand that lanes stand for."""
        return self.points.width if self.shared or self.kernel.axis is not None else 1

    def flat(self) -> Register:
        """The place of the inner point in row-major order."""
        function, total = self.points.function, integer(0)
        for axis in range(self.outer, len(self.lengths)):
            step = prod(self.lengths[axis + 1 :])
            total = plus(function, total, times(function, self.points.places.axes[axis], step))
        return total
