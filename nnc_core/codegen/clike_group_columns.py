"""Kernels for groups that fold neighbouring columns at once: neighbouring items read what lies side by side."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from nnc_core.base.loopnest import LoopNest, Reduction, Stage
from nnc_core.codegen.clike_columns import folds_along_columns
from nnc_core.codegen.clike_groups import GroupsWriter
from nnc_core.codegen.general import AnyNest
from nnc_core.codegen.group_states import CHUNK, GROUP, is_shared, lanes_of
from nnc_core.codegen.ranges import axis_lengths

COLUMNS = 32
"""Columns of a group."""
DOWN = GROUP // COLUMNS
"""Items of each column; each of them folds for several lanes."""


def is_by_group_columns(nest: AnyNest) -> bool:
    """Tell whether a nest folds, in its first stages, what lies along its last outer axis rather than along rows."""
    loops = nest if isinstance(nest, LoopNest) else nest.nest
    return folds_along_columns(nest, lambda stage: all(is_shared(r, stage, loops) for r in stage.reductions))


class GroupColumnsWriter(GroupsWriter):
    """Writes a kernel in which a group folds some neighbouring columns, in the order of `GroupsWriter`."""

    first_lane, first_item = "down == 0", "column"

    @classmethod
    def groups(cls, nest: LoopNest) -> int:
        *outer, last = nest.axes
        return prod(outer) * -(-last // COLUMNS)

    def declare_lanes(self) -> None:
        last = len(self.nest.axes) - 1
        length = self.length(last)
        self.line(f"const int item = {self.dialect.item}, column = item % {COLUMNS}, down = item / {COLUMNS};")
        self.line(f"const {self.index} blocks = ({length} - 1) / {COLUMNS} + 1;")
        self.line(f"{self.index} rest = ({self.index}){self.dialect.group};")
        self.line(f"const {self.index} wanted = rest % blocks * {COLUMNS} + column;")
        self.line(f"const bool active = wanted < {length};")
        self.line(f"const {self.index} x{last} = active ? wanted : {length} - 1;")
        self.line("rest /= blocks;")
        for axis in reversed(range(last)):
            self.line(f"const {self.index} x{axis} = rest % {self.length(axis)};")
            self.line(f"rest /= {self.length(axis)};")

    def spread(self, stage: Stage, reductions: Sequence[Reduction]) -> None:
        """Fold a column in all its lanes, of which each item has some."""
        numbered, count, lanes = self.numbered(stage), prod(stage.axes), lanes_of(stage)
        self.meet_before("load")
        chunks, body = count > CHUNK, self.written
        for number, reduction in numbered:
            self.declare_state(number, reduction)
            self.declare_states(number, reduction, "_of", lanes // DOWN)
            if chunks:
                self.declare_states(number, reduction, "_all", lanes // DOWN)
        if chunks:
            self.open(f"for ({self.index} chunk = 0; chunk < {self.number(-(-count // CHUNK))}; ++chunk)")
            for number, reduction in numbered:
                self.clear_states(number, reduction, "_of", lanes // DOWN)
            begin = f"chunk * {CHUNK}"
            self.go_down(stage, begin, f"min({begin} + {CHUNK}, {self.number(count)})")
            for number, reduction in numbered:
                self.tree_of_lanes(number, reduction, "_of", lanes)
                self.open(f"if (down == chunk % {lanes} % {DOWN})")
                mine = [f"{name}[chunk % {lanes} / {DOWN}]" for name in self.names(number, reduction, "_all")]
                self.merge(reduction, mine, self.names(number, reduction))
                self.close()
            self.close()
        else:
            self.go_down(stage, "0", self.number(count))
        for number, reduction in numbered:
            self.tree_of_lanes(number, reduction, "_all" if chunks else "_of", lanes)
        self.written = body + stage.values

    def go_down(self, stage: Stage, begin: str, end: str) -> None:
        """Fold the points from `begin` to `end`, each lane its own."""
        lanes, first = lanes_of(stage), self.written
        self.open(f"for ({self.index} base = {begin} + down; base < {end}; base += {lanes})")
        self.open(f"{self.dialect.unrolled_loop}for (int k = 0; k < {lanes // DOWN}; ++k)")
        self.line(f"const {self.index} n = base + k * {DOWN};")
        self.open(f"if (n < {end})")
        self.inner_place(stage, "n")
        for instruction in stage.body:
            self.instruction(instruction, axis_lengths(self.nest, stage))
        for number, reduction in enumerate(stage.reductions, self.written):
            self.take(number, reduction, [f"{name}[k]" for name in self.names(number, reduction, "_of")], "n")
        for _ in range(3):
            self.close()
        self.written = first

    def declare_states(self, number: int, reduction: Reduction, suffix: str, count: int) -> None:
        for name, type in zip(self.names(number, reduction, suffix), self.types(reduction), strict=True):
            self.line(f"{type} {name}[{count}];")
        self.clear_states(number, reduction, suffix, count)

    def clear_states(self, number: int, reduction: Reduction, suffix: str, count: int) -> None:
        for name, value in zip(self.names(number, reduction, suffix), self.nothing(reduction), strict=True):
            self.line(f"{self.dialect.unrolled_loop}for (int k = 0; k < {count}; ++k) {name}[k] = {value};")

    def tree_of_lanes(self, number: int, reduction: Reduction, suffix: str, lanes: int) -> None:
        """Fold the lanes of each item, then those of a column."""
        names = self.names(number, reduction, suffix)
        half = lanes // DOWN // 2
        while half:
            self.open(f"{self.dialect.unrolled_loop}for (int k = 0; k < {half}; ++k)")
            self.merge(reduction, [f"{name}[k]" for name in names], [f"{name}[k + {half}]" for name in names])
            self.close()
            half //= 2
        self.line(" ".join([f"{result} = {name}[0];" for result, name in
                            zip(self.names(number, reduction), names, strict=True)]))
        self.tree(number, reduction, DOWN, COLUMNS)
