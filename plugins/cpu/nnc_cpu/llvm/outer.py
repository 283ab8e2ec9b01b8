"""The outer points of a kernel's tasks: how many tasks there are, and which points each of them stands for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import NamedTuple

from nnc_cpu.llvm.ir import FunctionWriter, Register, integer
from nnc_cpu.llvm.places import plus, times

BLOCK = 4096
"""Points of the lanes' axis that make a task, if nothing is done at each but a few instructions."""
TILED_BLOCK = 512
"""The same of tiles: what they touch should lie in pages whose addresses the processor remembers."""


class TaskShape(NamedTuple):
    """The tasks of a kernel: one for each so many points of each outer axis."""

    axes: tuple[int, ...]
    lengths: tuple[int, ...]
    """Axes whose lengths are among the numbers that the kernel is given."""
    steps: tuple[int, ...]
    """Points of a task along each axis."""

    def tasks(self, numbers: Sequence[int]) -> int:
        """The count of tasks; `numbers` are the lengths of the axes that are left open."""
        given = dict(zip(self.lengths, numbers, strict=True))
        return prod([-(-given.get(axis, n) // step) for axis, (n, step) in enumerate(zip(self.axes, self.steps,
                                                                                         strict=True))])


class TaskCounter:
    """Writes where the tasks begin, one after the other: only the first is found by divisions."""

    def __init__(self, function: FunctionWriter, shape: TaskShape, lengths: Mapping[int, Register],
                 order: Sequence[int]) -> None:
        self.function, self.shape = function, shape
        self.axes = [axis for axis in order if shape.axes[axis] > shape.steps[axis]]
        """Axes along which there is more than one task, those that change from task to task first."""
        self.counts = {axis: self._tasks_along(axis, lengths[axis]) for axis in self.axes}
        self.variables = {axis: function.variable("i64") for axis in self.axes}

    def start(self, task: Register) -> None:
        """Go to a task."""
        rest = task
        for axis in self.axes[:-1]:
            count = self.counts[axis].name
            self.function.set(self.variables[axis], self.function.let(f"urem {rest}, {count}", "i64"))
            rest = self.function.let(f"udiv {rest}, {count}", "i64")
        for axis in self.axes[-1:]:
            self.function.set(self.variables[axis], rest)

    def advance(self) -> None:
        """Go to the next one."""
        f, carry = self.function, integer(1)
        for axis in self.axes:
            following = plus(f, f.get(self.variables[axis], "i64"), carry)
            if axis != self.axes[-1]:
                ends = f.let(f"icmp eq {following}, {self.counts[axis].name}", "i1")
                following = f.let(f"select {ends}, i64 0, {following}", "i64")
                carry = f.let(f"zext {ends} to i64", "i64")
            f.set(self.variables[axis], following)

    def first(self, axis: int) -> Register:
        """The first point of the task along an axis."""
        if axis not in self.variables:
            return integer(0)
        return times(self.function, self.function.get(self.variables[axis], "i64"), self.shape.steps[axis])

    def _tasks_along(self, axis: int, length: Register) -> Register:
        step = self.shape.steps[axis]
        if not length.name.startswith("%"):
            return integer(-(-int(length.name) // step))
        if step == 1:
            return length
        return self.function.let(f"udiv {plus(self.function, length, integer(step - 1))}, {step}", "i64")
