"""Kernels whose work items each go through many points, for devices whose compilers make vectors of loops.

Drivers for CPUs take long for each work item.  So an item goes through neighbouring points of the last outer axis, or
through rows, with loops over inner points that have no order (`clike_inner.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import frexp, isfinite

from nnc_core.base.dtype import is_float
from nnc_core.base.loopnest import Instruction, LoopNest, Reduction
from nnc_core.codegen.clike_helpers import Helpers
from nnc_core.codegen.clike_inner import SHORT, InnerPointsWriter, calls_library, is_split
from nnc_core.codegen.general import AnyNest, GeneralNest

HIDDEN = 24
"""Constants that a kernel reads from memory before its loops.  Of those that it knows, Intel's compiler fetches address
and value in each round anew, by which a softmax took a third longer."""


def is_in_runs(nest: AnyNest) -> bool:
    """Tell whether items of a nest's kernel go through many points each: not where points are neighbours along short
    axes alone, which compilers rather compute abreast in several work items."""
    loops = nest if isinstance(nest, LoopNest) else nest.nest
    lengths = nest.lengths if isinstance(nest, GeneralNest) else ()
    if any(map(is_split, _reductions(loops))):
        return True
    if any(stage.axes for stage in loops.stages) or calls_library(loops):
        return False
    last = len(loops.axes) - 1
    return last >= 0 and (last in lengths or loops.axes[last] >= SHORT)


def _is_worth_hiding(constant: Instruction) -> bool:
    """True of floats but powers of two, by which compilers multiply where they are told to divide."""
    number = float(constant.literal or 0)
    return is_float(constant.dtype) and isfinite(number) and abs(frexp(number)[0]) not in (0.0, 0.5)


def _reductions(nest: LoopNest) -> Iterator[Reduction]:
    for stage in nest.stages:
        if stage.axes and not stage.running:
            yield from stage.reductions


class RunsWriter(InnerPointsWriter):
    """Writes a kernel whose items share the points among themselves."""

    def __init__(self, name: str, nest: AnyNest, helpers: Helpers) -> None:
        super().__init__(name, nest, helpers)
        self.hidden: dict[tuple[str, str], str] = {}
        """Names of constants that the compiler is not to know, by type and text."""

    def source(self) -> str:
        return self.dialect.alone + super().source()

    def points(self) -> None:
        self.move_arguments()
        before = len(self.lines)
        self.line(f"const ulong all = {self.count()}, each = (all + {self.dialect.items} - 1) / {self.dialect.items};")
        self.line(f"ulong point = {self.dialect.point} * each;")
        self.line("const ulong end = min(point + each, all);")
        self.many_points()
        loops = self.lines[before:]
        del self.lines[before:]
        self.declare_hidden()
        self.lines += loops

    def declare_hidden(self) -> None:
        """Read the hidden constants from memory: they are in registers then, once for all rounds of the loops."""
        for (held, text), name in self.hidden.items():
            self.line(f"volatile {held} {name}_hidden = {text}; const {held} {name} = {name}_hidden;")

    def value(self, instruction: Instruction) -> str:
        value = super().value(instruction)
        if instruction.operation != "constant" or not _is_worth_hiding(instruction):
            return value
        key = self.scalars.held(instruction.dtype), value
        if key not in self.hidden and len(self.hidden) < HIDDEN:
            self.hidden[key] = f"c{len(self.hidden)}"
        return self.hidden.get(key, value)

    def many_points(self) -> None:
        """Go through the points from `point` to `end`."""
        if any(stage.axes for stage in self.nest.stages):
            self.keep_repeated()
            self.open("for (; point < end; ++point)")
            self.point("point")
            self.close()
        else:
            self.runs()

    def begin_run(self, most: str) -> None:
        """Declare the place of the point at hand, and how many follow it on the last axis, at most so many."""
        last = len(self.nest.axes) - 1
        self.line(f"{self.index} rest = ({self.index})point;")
        self.line(f"const {self.index} first = rest % {self.length(last)};")
        self.line(f"rest /= {self.length(last)};")
        for axis in reversed(range(last)):
            self.line(f"const {self.index} x{axis} = rest % {self.length(axis)};")
            self.line(f"rest /= {self.length(axis)};")
        self.line(f"const {self.index} run = min({most}, {self.length(last)} - first);")

    def runs(self) -> None:
        """Points that follow one another on the last axis, at once."""
        last = len(self.nest.axes) - 1
        self.open("while (point < end)")
        self.begin_run(f"({self.index})(end - point)")
        self.open(f"{self.apart_loop}for ({self.index} i = 0; i < run; ++i)")
        self.line(f"const {self.index} x{last} = first + i;")
        for stage in self.nest.stages:
            self.stage(stage)
        self.close()
        self.line("point += run;")
        self.close()
