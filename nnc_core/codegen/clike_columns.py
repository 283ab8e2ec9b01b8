"""Kernels that fold along rows for many neighbouring columns at once: what they read lies along the columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

from nnc_core.base.loopnest import PARTS, LoopNest, Reduction, Stage
from nnc_core.codegen.clike_inner import SHORT, is_split, step_along
from nnc_core.codegen.clike_runs import RunsWriter
from nnc_core.codegen.general import AnyNest, GeneralNest

COLUMNS = 64
"""Columns that are folded at once."""
POSITIONS = ("argmax", "argmin")


def is_by_columns(nest: AnyNest) -> bool:
    """Tell whether a nest folds, in its first stages, what lies along its last outer axis rather than along rows."""
    return folds_along_columns(nest, lambda stage: all([is_split(r) or r.kind in POSITIONS for r in stage.reductions]))


def folds_along_columns(nest: AnyNest, folds: Callable[[Stage], bool]) -> bool:
    """The same, where `folds` tells whether a stage's reductions may be folded so."""
    loops = nest if isinstance(nest, LoopNest) else nest.nest
    lengths = nest.lengths if isinstance(nest, GeneralNest) else ()
    last = len(loops.axes) - 1
    if last < 0 or (last not in lengths and loops.axes[last] < SHORT):
        return False
    folding = [stage for stage in loops.stages if stage.axes]
    if not folding or tuple(folding) != loops.stages[: len(folding)]:
        return False
    return all(_only_folds(stage) and folds(stage) for stage in folding) and _lies_along(loops, folding)


def _only_folds(stage: Stage) -> bool:
    """True where every point is folded, and nothing else happens."""
    stores = any(i.operation == "store" for i in stage.body)
    return bool(stage.reductions) and not stage.running and not stores


def _lies_along(nest: LoopNest, folding: Sequence[Stage]) -> bool:
    """True where more loads go along the last outer axis than along inner ones, or any, if rows are short."""
    outer, votes = len(nest.axes) - 1, 0
    for stage in folding:
        inner, is_short = outer + len(stage.axes), stage.axes[-1] < SHORT
        for i in stage.body:
            if i.access is not None:
                votes += abs(step_along(i.access, outer)) == 1
                votes -= abs(step_along(i.access, inner)) == 1 and not is_short
    return votes > 0


class ColumnsWriter(RunsWriter):
    """Writes a kernel whose items each fold some neighbouring columns."""

    def many_points(self) -> None:
        last = len(self.nest.axes) - 1
        folding = [stage for stage in self.nest.stages if stage.axes]
        self.folded: list[int] = []
        self.open("while (point < end)")
        self.begin_run(f"min(({self.index})(end - point), ({self.index}){COLUMNS})")
        for stage in folding:
            self.columns(stage, last)
        self.across(last)
        for stage in self.nest.stages[len(folding) :]:
            self.stage(stage)
        self.close()
        self.line("point += run;")
        self.close()

    def across(self, last: int) -> None:
        """Open a loop over the columns at hand, with what has been folded for each."""
        self.open(f"{self.apart_loop}for ({self.index} i = 0; i < run; ++i)")
        self.line(f"const {self.index} x{last} = first + i;")
        for number in self.folded:
            self.line(f"const {self.scalars.held(self.dtypes[number])} v{number} = v{number}_of[i];")

    def columns(self, stage: Stage, last: int) -> None:
        """Fold the columns at hand, row by row."""
        after, count = self.written + len(stage.body), min(PARTS, prod(stage.axes))
        numbered = dict(enumerate(stage.reductions, after))
        for number, reduction in numbered.items():
            self.declare_columns(number, reduction, max(count, 1))
        self.line(f"{self.index} row_of{after} = 0;")
        self.inner_loops(stage, self.axes_of(stage))
        self.line(f"const int part_of{after} = (int)(row_of{after} % {PARTS});")
        self.across(last)
        self.body(stage)
        for number, reduction in numbered.items():
            if reduction.kind in POSITIONS:
                self.take_position(number, reduction, f"row_of{after}")
            else:
                part = f"v{number}_parts[part_of{after}][i]"
                self.line(f"{part} = {self.folded_pair(reduction, part, f'({self.term(reduction)})')};")
        self.close()
        self.line(f"++row_of{after};")
        for _ in stage.axes:
            self.close()
        self.fold_columns({number: r for number, r in numbered.items() if r.kind not in POSITIONS}, count)
        self.folded += [*numbered]
        self.written += len(numbered)

    def declare_columns(self, number: int, reduction: Reduction, count: int) -> None:
        """Declare what is folded of each column: so many parts, or the best so far and its row."""
        held = self.scalars.held(reduction.dtype)
        each = f"for (int i = 0; i < {COLUMNS}; ++i)"
        if reduction.kind in POSITIONS:
            value = self.scalars.held(self.dtypes[reduction.value])
            self.line(f"{self.index} v{number}_of[{COLUMNS}]; {value} v{number}_best[{COLUMNS}];")
            self.line(f"{each} {{ v{number}_of[i] = 0; v{number}_best[i] = 0; }}")
            return
        self.line(f"{held} v{number}_of[{COLUMNS}], v{number}_parts[{count}][{COLUMNS}];")
        self.line(f"for (int n = 0; n < {count}; ++n) {each} v{number}_parts[n][i] = {self.identity(reduction)};")

    def take_position(self, number: int, reduction: Reduction, row: str) -> None:
        """Keep the first of the best."""
        best, value = f"v{number}_best[i]", f"v{reduction.value}"
        self.line(f"const bool v{number}_better = {row} == 0 || {self.better(reduction, best, value)};")
        self.line(f"{best} = v{number}_better ? {value} : {best};")
        self.line(f"v{number}_of[i] = v{number}_better ? {row} : v{number}_of[i];")

    def fold_columns(self, numbered: Mapping[int, Reduction], count: int) -> None:
        """Fold the parts of each column."""
        self.open(f"{self.apart_loop}for ({self.index} i = 0; i < run; ++i)")
        for number, reduction in numbered.items():
            self.tree(reduction, count, [f"v{number}_parts[{n}][i]" for n in range(max(count, 1))])
            self.line(f"v{number}_of[i] = v{number}_parts[0][i];")
        self.close()
