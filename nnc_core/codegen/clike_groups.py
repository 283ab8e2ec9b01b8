"""Kernels for devices that run work items in groups: a group, or a part of one, folds the inner points of an outer one.

Items are *lanes*.  Of n lanes, lane p folds the points p, p + n, p + 2 n and so on; then lane p takes what lane
p + n / 2 has, and so on.  n depends on the count of inner points alone.  Where there are more than CHUNK, each chunk is
folded so, and then their results are, as if they were points.  Running reductions are scanned in blocks of as many
points as there are lanes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from nnc_core.base.loopnest import Instruction, LoopNest, Reduction, Stage
from nnc_core.codegen.general import AnyNest
from nnc_core.codegen.group_states import CHUNK, GROUP, Numbered, StateWriter, is_scanned, is_shared, lanes_of, widest
from nnc_core.codegen.ranges import axis_lengths


def is_grouped(nest: AnyNest) -> bool:
    """Tell whether a nest has something that lanes fold or scan together."""
    loops = nest if isinstance(nest, LoopNest) else nest.nest
    return any(is_scanned(stage) or any(is_shared(r, stage, loops) for r in stage.reductions)
               for stage in loops.stages)


class GroupsWriter(StateWriter):
    """Writes a kernel in which lanes go through the inner points of each outer one."""

    first_lane, first_item = "lane == 0", "item - lane"

    @classmethod
    def groups(cls, nest: LoopNest) -> int:
        """The groups that run the kernel of a nest."""
        return -(-nest.points // (GROUP // widest(nest)))

    def source(self) -> str:
        return self.dialect.group_of.format(items=GROUP) + super().source()

    def points(self) -> None:
        self.move_arguments()
        begin, indent = len(self.lines), "  " * self.depth
        self.declare_lanes()
        for stage in self.nest.stages:
            self.stage(stage)
        self.lines[begin:begin] = [indent + self.dialect.local.format(type=type, name=name, count=GROUP)
                                   for name, type in self.rooms.items()]

    def declare_lanes(self) -> None:
        """Declare this item's lane, and the point that it works at: the last one, where there is none for it."""
        lanes, ulong = widest(self.nest), self.dialect.types["uint64"]
        self.line(f"const int item = {self.dialect.item}, lane = item % {lanes};")
        self.line(f"const {ulong} all = {self.count()}, "
                  f"wanted = ({ulong}){self.dialect.group} * {GROUP // lanes} + item / {lanes};")
        self.line("const bool active = wanted < all;")
        self.place("(active ? wanted : all - 1)")

    # ---- stages
    def stage(self, stage: Stage) -> None:
        stores, begin = self.is_storing(stage.instructions), self.written
        together = [r for r in stage.reductions if is_shared(r, stage, self.nest)]
        if prod(stage.axes) == 1 and not stage.running:
            self.everywhere(stage)
        elif is_scanned(stage) and self.is_apart(stage):
            self.scanned(stage)
        elif stage.running or not self.is_apart(stage):
            self.alone(stage)
        else:
            if together or not stage.reductions:
                self.spread(stage, together)
            if len(together) < len(stage.reductions):
                self.written = begin
                self.left_out = [r for r in stage.reductions if r in together]
                self.storing = not together
                self.alone(stage)
                self.left_out, self.storing = [], True
        met = stage.reductions and not stage.running and prod(stage.axes) > 1
        self.touched = "" if met else "store" if stores else "load"

    def is_storing(self, instructions: Sequence[Instruction]) -> bool:
        return any(i.operation == "store" for i in instructions)

    def is_apart(self, stage: Stage) -> bool:
        """True where inner points neither read what others write nor write the same element."""
        loads = {i.access.argument for i in stage.instructions if i.operation == "load" and i.access is not None}
        first = len(self.nest.axes)
        inner = {first + n for n, length in enumerate(stage.axes) if length > 1}
        for i in stage.instructions:
            if i.operation == "store" and i.access is not None:
                own = [{axis for axis, _ in s.coefficients} & inner for s in i.access.subscripts
                       if s.divisor == 1 and s.gather is None and s.stride]
                if i.access.argument in loads or not all({axis} in own for axis in inner):
                    return False
        return True

    def everywhere(self, stage: Stage) -> None:
        """A stage of one inner point: each lane computes it, the first one stores."""
        self.guard, numbered = f"{self.first_lane} && active", self.numbered(stage)
        self.start_reductions(stage)
        if stage.axes:
            self.open("")
            self.inner_place(stage, "0")
        for instruction in stage.body:
            if instruction.operation in ("load", "store"):
                self.meet_before(instruction.operation)
            self.instruction(instruction, axis_lengths(self.nest, stage))
        for number, reduction in numbered:
            self.fold(number, reduction)
        if stage.axes:
            self.close()
        self.written += len(stage.reductions)
        self.guard = ""

    def alone(self, stage: Stage) -> None:
        """A stage whose points the first lane goes through in order."""
        self.meet_before("store")
        numbered = [(n, r) for n, r in self.numbered(stage) if r not in self.left_out]
        self.start_reductions(stage)
        self.open(f"if ({self.first_lane} && active)")
        self.in_order(stage)
        self.close()
        for number, reduction in numbered:
            room = self.room(self.scalars.held(reduction.dtype))
            self.line(f"if ({self.first_lane}) {room}[item] = v{number};")
            self.meet()
            self.line(f"v{number} = {room}[{self.first_item}];")
            self.meet()

    def spread(self, stage: Stage, reductions: Sequence[Reduction]) -> None:
        """A stage whose inner points are shared out among the lanes."""
        numbered = [(n, r) for n, r in self.numbered(stage) if r in reductions]
        self.meet_before("store" if self.is_storing(stage.body) else "load")
        for number, reduction in numbered:
            self.declare_state(number, reduction)
        self.guard, count, body = "active", prod(stage.axes), self.written
        chunks = bool(numbered) and count > CHUNK
        if chunks:
            for number, reduction in numbered:
                self.declare_state(number, reduction, "_all")
            self.open(f"for ({self.index} chunk = 0; chunk < {self.number(-(-count // CHUNK))}; ++chunk)")
            for number, reduction in numbered:
                self.set_state(number, reduction)
            begin = f"chunk * {CHUNK}"
            self.go_through(stage, begin, f"min({begin} + {CHUNK}, {self.number(count)})", numbered)
            for number, reduction in numbered:
                self.tree(number, reduction, lanes_of(stage))
                self.open(f"if (lane == chunk % {lanes_of(stage)})")
                self.merge(reduction, self.names(number, reduction, "_all"), self.names(number, reduction))
                self.close()
            self.close()
            for number, reduction in numbered:
                self.set_state(number, reduction, "_all")
        else:
            self.go_through(stage, "0", self.number(count), numbered)
        for number, reduction in numbered:
            self.tree(number, reduction, lanes_of(stage))
        self.guard, self.written = "", body + stage.values

    def go_through(self, stage: Stage, begin: str, end: str, numbered: Numbered) -> None:
        """Fold the points from `begin` to `end`, each lane its own."""
        lanes = lanes_of(stage) if numbered else widest(self.nest)
        first = self.written
        self.open(f"for ({self.index} n = {begin} + lane; n < {end}; n += {lanes})")
        self.inner_place(stage, "n")
        for instruction in stage.body:
            self.instruction(instruction, axis_lengths(self.nest, stage))
        for number, reduction in numbered:
            self.take(number, reduction, self.names(number, reduction), "n")
        self.close()
        self.written = first

    # ---- scans
    def scanned(self, stage: Stage) -> None:
        """A stage with running instructions: blocks of neighbouring points, one for each lane."""
        numbered, lanes, count = self.numbered(stage), lanes_of(stage), prod(stage.axes)
        self.meet_before("store" if self.is_storing(stage.running) else "load")
        for number, reduction in numbered:
            self.declare_state(number, reduction, "_before")
        self.open(f"for ({self.index} begin = 0; begin < {self.number(count)}; begin += {lanes})")
        self.line(f"const {self.index} n = min(begin + lane, {self.number(count - 1)});")
        self.line(f"const int last = min(({self.index}){lanes}, {self.number(count)} - begin) - 1;")
        self.inner_place(stage, "n")
        for instruction in stage.body:
            self.instruction(instruction, axis_lengths(self.nest, stage))
        for number, reduction in numbered:
            self.block(number, reduction, lanes)
        self.written += len(numbered)
        self.guard = f"active && begin + lane < {self.number(count)}"
        for instruction in stage.running:
            self.instruction(instruction, axis_lengths(self.nest, stage))
        self.guard = ""
        self.close()
        for number, reduction in numbered:
            self.line(f"const {self.scalars.held(reduction.dtype)} v{number} = v{number}_before;")

    def block(self, number: int, reduction: Reduction, lanes: int) -> None:
        """Declare what has been folded up to each lane's point, and take the block into what was before."""
        held = self.scalars.held(reduction.dtype)
        room = self.room(held)
        self.line(f"{room}[item] = {self.term(reduction)};")
        self.meet()
        self.open(f"for (int step = 1; step < {lanes}; step *= 2)")
        self.line(f"const {held} v{number}_mine = {room}[item];")
        self.line(f"const {held} v{number}_left = lane >= step ? {room}[item - step] : 0;")
        self.meet()
        both = self.together(reduction, f"v{number}_left", f"v{number}_mine")
        self.line(f"if (lane >= step) {room}[item] = {both};")
        self.meet()
        self.close()
        self.line(f"const {held} v{number}_to = {room}[item], v{number}_end = {room}[item - lane + last];")
        self.line(f"const {held} v{number} = {self.together(reduction, f'v{number}_before', f'v{number}_to')};")
        self.line(f"v{number}_before = {self.together(reduction, f'v{number}_before', f'v{number}_end')};")
        self.meet()
