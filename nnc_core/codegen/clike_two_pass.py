"""Kernels for few long folds, in two passes: groups fold chunks, then one group for each point folds their results."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from nnc_core.base.loopnest import LoopNest, Reduction, Stage
from nnc_core.codegen.clike_groups import GroupsWriter
from nnc_core.codegen.general import AnyNest
from nnc_core.codegen.group_states import CHUNK, FEW, GROUP, POSITIONS, is_shared

LONG = 4 * CHUNK
"""Points that are worth a second pass."""
WORD = 8
"""Bytes of what a chunk leaves of a value."""


def is_in_two_passes(nest: AnyNest) -> bool:
    """Tell whether a nest folds long rows, too few to keep a device busy, and nothing else."""
    loops = nest if isinstance(nest, LoopNest) else nest.nest
    folding = [n for n, stage in enumerate(loops.stages) if prod(stage.axes) > 1]
    if loops.points >= FEW or len(folding) != 1:
        return False
    stage = loops.stages[folding[0]]
    stores = any(i.operation == "store" for before in loops.stages[: folding[0] + 1] for i in before.body)
    alone = any(other.running or other.reductions for other in loops.stages if other is not stage)
    shared = bool(stage.reductions) and all(is_shared(r, stage, loops) for r in stage.reductions)
    return shared and not stores and not alone and prod(stage.axes) >= LONG


def chunks_of(nest: LoopNest) -> int:
    """The chunks of each point."""
    return -(-max([prod(stage.axes) for stage in nest.stages]) // CHUNK)


def results_size(nest: LoopNest) -> int:
    """Bytes of what the first pass leaves to the second."""
    values = sum([1 + (r.kind in POSITIONS) for stage in nest.stages for r in stage.reductions])
    return values * WORD * nest.points * chunks_of(nest)


class TwoPassWriter(GroupsWriter):
    """Writes what both passes have in common: they take the results of chunks behind the arguments."""

    def numbers(self) -> list[str]:
        template = self.dialect.parameter or "{const}{type} *{name}"
        return [template.format(const="", type=self.dialect.types["int64"], name="results"), *super().numbers()]

    def places(self, stage: Stage) -> Iterator[tuple[int, Reduction, list[str]]]:
        """For each reduction its results, as arrays."""
        slot, each = 0, self.nest.points * chunks_of(self.nest)
        for number, reduction in self.numbered(stage):
            arrays: list[str] = []
            for type in self.types(reduction):
                stored = self.dialect.types["bool"] if type == "bool" else type
                pointer = (self.dialect.parameter or "{const}{type} *{name}").format(const="", type=stored, name="")
                arrays.append(f"(({pointer})(results + {slot * each}))")
                slot += 1
            yield number, reduction, arrays


class ChunksWriter(TwoPassWriter):
    """Writes the first pass."""

    @classmethod
    def groups(cls, nest: LoopNest) -> int:
        return nest.points * chunks_of(nest)

    def declare_lanes(self) -> None:
        chunks = chunks_of(self.nest)
        self.line(f"const int item = {self.dialect.item}, lane = item;")
        self.line(f"const {self.index} group = {self.dialect.group}, chunk = group % {chunks};")
        self.line("const bool active = true;")
        self.place(f"(group / {chunks})")

    def stage(self, stage: Stage) -> None:
        if prod(stage.axes) > 1:
            self.chunk(stage)
        elif not self.is_storing(stage.body) and not self.done:
            super().stage(stage)

    done = False

    def chunk(self, stage: Stage) -> None:
        """Fold a chunk, and leave the result."""
        numbered, count = self.numbered(stage), prod(stage.axes)
        for number, reduction in numbered:
            self.declare_state(number, reduction)
        begin = f"chunk * {CHUNK}"
        self.go_through(stage, begin, f"min({begin} + {CHUNK}, {self.number(count)})", numbered)
        for number, reduction, arrays in self.places(stage):
            self.tree(number, reduction, GROUP)
            for name, array in zip(self.names(number, reduction), arrays, strict=True):
                self.line(f"if (lane == 0) {array}[group] = {name};")
        self.done = True


class ResultsWriter(TwoPassWriter):
    """Writes the second pass."""

    def stage(self, stage: Stage) -> None:
        if prod(stage.axes) == 1:
            super().stage(stage)
            return
        chunks = chunks_of(self.nest)
        for number, reduction, arrays in self.places(stage):
            self.declare_state(number, reduction)
            self.open(f"for (int n = lane; n < {chunks}; n += {GROUP})")
            self.merge(reduction, self.names(number, reduction),
                       [f"{array}[({self.dialect.group}) * {chunks} + n]" for array in arrays])
            self.close()
            self.tree(number, reduction, GROUP)
        self.written += stage.values
