"""Positions in order, for rows too long for loop nests that count."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from nnc_core.base.command import Command
from nnc_core.base.dtype import DType, float64
from nnc_core.codegen import Dialect
from nnc_core.codegen.clike_helpers import Helpers
from nnc_core.codegen.clike_scalars import Scalars
from nnc_core.codegen.clike_steps import ArrayParameter
from nnc_core.device import CommandBackend, Kernel
from nnc_core.operator.steps.arrays import ArraySteps, Axes, first_of, sides
from nnc_core.operator.steps.program import StepsCompiler, StepsPart
from nnc_core.operator.steps.sorting import Sorting
from nnc_core.operator.steps.sorting_text import SortedRows, key_dtype, key_function, key_of, sorting_source

SHORT = 64
"""Elements of rows that are sorted as quickly by counting."""
MOST = 1 << 31
"""Elements of a row, at most."""
PLACE = "k"


class ArgsortSource(NamedTuple):
    """All that the source of an argsort depends on; `axes`: those before and behind the one that is sorted; `long`:
    groups sort by digits."""

    dtype: DType
    descending: bool
    axes: tuple[int, int]
    long: bool

    @property
    def groups(self) -> tuple[Axes, Axes, Axes]:
        """The axes before the one that is sorted, those behind it, and itself."""
        return Axes("b", self.axes[0]), Axes("t", self.axes[1]), Axes(PLACE, 1)

    @property
    def names(self) -> list[str]:
        before, behind, _ = self.groups
        steps = [name for array in ("x", "y") for name in ArraySteps(array, self.groups).names()]
        return ["rows", "count", "wide", "pairs", "digits", "tails", *before.lengths, *behind.lengths, *steps]

    def text(self, dialect: Dialect, grouped: bool) -> str:
        scalars = Scalars(Helpers(dialect))
        x, y = ArraySteps("x", self.groups), ArraySteps("y", self.groups)
        key = key_of(f"x[{x.element()}]", self.dtype, scalars)
        before, behind, along = self.groups
        place = along.places[0]
        arrays = [ArrayParameter(dialect.types[self.dtype.name], "x"), ArrayParameter("int64", "y", written=True),
                  ArrayParameter("uint8", "work", written=True)]
        made = SortedRows(
            key_dtype(self.dtype), key_function(self.dtype, scalars) if "nnc_key" in key else "", arrays, self.names,
            f"{before.split('row / tails')} {behind.split('row % tails')}",
            f"const int64 {place} = k;",
            f"~({key})" if self.descending else key,
            f"const int64 {place} = k; y[{y.element()}] = place; (void)key;", self.long)
        return sorting_source(made, scalars.helpers, grouped)


class Argsort(CommandBackend):
    """Sorts rows of any length."""

    name = "sort"

    def __init__(self, compiler: StepsCompiler) -> None:
        self.compiler = compiler

    def refuse(self, command: Command) -> str | None:
        if command.name != "argsort":
            return "it is made for argsort"
        count = length_of(command)
        if count < SHORT or not command.output.size:
            return f"rows of {count} are sorted by counting"
        if count >= MOST:
            return f"rows of {count} elements are longer than {MOST}"
        if command.inputs[0].dtype == float64 and float64.name not in self.compiler.dtypes:
            return "the device has no float64"
        return None

    def workspace(self, command: Command) -> int:
        return sorting_of(command).workspace(self.compiler.grouped, self.compiler.cores)

    def prepare(self, command: Command) -> Kernel:
        axis, descending = command.attributes
        [x], y, sorting = command.inputs, command.output, sorting_of(command)
        parts = [sides({"x": (x, part), "y": (y, part)}) for part in (slice(axis), slice(axis + 1, None))]
        source = ArgsortSource(x.dtype, descending, (len(parts[0].lengths), len(parts[1].lengths)),
                               sorting.long and self.compiler.grouped)
        numbers = {"rows": sorting.rows, "count": sorting.length, "wide": sorting.wide, "pairs": sorting.pairs,
                   "digits": sorting.key.itemsize, "tails": prod(x.shape[axis + 1 :])}
        for axes, part in zip(source.groups, parts, strict=False):
            numbers |= part.numbers(axes)
        for name, array in (("x", x), ("y", y)):
            step = array.strides[axis] // array.dtype.itemsize
            numbers |= {**first_of(name, array), f"{name}_{PLACE}0": step}
        steps = list(sorting.steps(self.compiler.grouped, self.compiler.cores))
        whole = StepsPart(source, steps, [numbers[name] for name in source.names])
        return self.compiler.kernel("argsort", [whole])


def length_of(command: Command) -> int:
    """The elements of a row."""
    axis = command.attributes[0]
    assert isinstance(axis, int)
    return command.inputs[0].shape[axis]


def sorting_of(command: Command) -> Sorting:
    x, count = command.inputs[0], length_of(command)
    key = key_dtype(x.dtype)
    return Sorting(prod(x.shape) // count, count, key, key.itemsize)
