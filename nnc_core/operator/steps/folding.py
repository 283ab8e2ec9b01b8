"""Products and recurrences of complex numbers along axes: a work item folds whole rows, in order.

Loop nests fold real numbers by themselves, and both parts of a complex product depend on both parts of what has been
folded so far.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from nnc_core.base.command import Command
from nnc_core.base.dtype import DType, is_complex, real_of
from nnc_core.base.layout import Layout
from nnc_core.codegen import Dialect
from nnc_core.codegen.clike_helpers import Helpers
from nnc_core.codegen.clike_scalars import Scalars
from nnc_core.codegen.clike_steps import ArrayParameter, pairs, spelled, written_kernels
from nnc_core.device import CommandBackend, Kernel
from nnc_core.operator.steps.arrays import ArraySteps, Axes, first_of, sides
from nnc_core.operator.steps.program import EntryLaunch, StepsCompiler, StepsPart

FOLDED = ("prod", "cumulative_prod", "recurrence")
GROUP = 64
TIMES = """
FUNCTION pair times(pair a, pair b) { return PAIR(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
"""
FOLD = """
  for (int64 row = POINT; row < rows; row += POINTS) {
    ROW
    pair value = START;
    for (int64 place = 0; place < count; ++place) { PLACE value = NEXT; EACH }
    END
  }
"""
START = {"prod": "PAIR(1, 0)", "cumulative_prod": "PAIR(1, 0)", "recurrence": "PAIR(0, 0)"}
NEXT = {"prod": "times(value, x[X])", "cumulative_prod": "place ? times(value, x[X]) : x[X]",
        "recurrence": "PLUS(times(value, x[X]), added[ADDED])"}  # fmt: skip
"""As NumPy has it: products begin with 1, whose product with an infinity has a part that is NaN; products along an axis
begin with the first number."""


class FoldSource(NamedTuple):
    """All that the source depends on; `axes`: how many are kept, and how many folded."""

    name: str
    dtype: DType
    axes: tuple[int, int]

    @property
    def arrays(self) -> tuple[str, ...]:
        return ("x", "added", "y") if self.name == "recurrence" else ("x", "y")

    @property
    def groups(self) -> tuple[Axes, Axes]:
        return Axes("r", self.axes[0]), Axes("k", self.axes[1])

    @property
    def names(self) -> list[str]:
        """Names of the numbers that the kernel is given."""
        kept, folded = self.groups
        steps = [name for array in self.arrays for name in ArraySteps(array, self.groups).names()]
        return ["rows", "count", *kept.lengths, *folded.lengths, *steps]

    def text(self, dialect: Dialect, grouped: bool) -> str:
        helpers, real = Helpers(dialect), real_of(self.dtype)
        held, (kept, folded) = Scalars(helpers).held(real), self.groups
        elements = {array: ArraySteps(array, self.groups).element() for array in self.arrays}
        alone = ArraySteps("y", (kept,)).element()
        words = {
            "ROW": kept.split("row"), "PLACE": folded.split("place"), "START": START[self.name],
            "NEXT": NEXT[self.name], **{array.upper(): at for array, at in elements.items()},
            "EACH": "" if self.name == "prod" else f"y[{elements['y']}] = value;",
            "END": f"y[{alone}] = value;" if self.name == "prod" else ""}
        preamble = dialect.preamble + (dialect.float64_preamble if helpers.uses_float64 else "")
        defined = "\n".join([*[f"#define {word} {text}" for word, text in words.items()], TIMES])
        arrays = [ArrayParameter("pair", name, written=name == "y") for name in self.arrays]
        return "\n".join([preamble, pairs(held, real.itemsize, dialect), spelled(defined, dialect),
                          written_kernels({"fold": FOLD}, arrays, self.names, GROUP if grouped else 1, dialect)])


class ComplexFolds(CommandBackend):
    """prod, cumulative_prod or recurrence of complex numbers."""

    name = "folds"

    def __init__(self, compiler: StepsCompiler) -> None:
        self.compiler = compiler

    def refuse(self, command: Command) -> str | None:
        dtype = command.output.dtype
        if command.name not in FOLDED or not is_complex(dtype):
            return "it is made for products of complex numbers"
        missing = [d for d in (dtype, real_of(dtype)) if d.name not in self.compiler.dtypes]
        return f"the device has no {missing[0]}" if missing else None

    def prepare(self, command: Command) -> Kernel:
        rank, arrays = _in_order(command)
        names = FoldSource(command.name, command.output.dtype, (1, 1)).arrays
        named = dict(zip(names, arrays, strict=True))
        kept = sides({name: (x, slice(rank)) for name, x in named.items()})
        folded = sides({name: (x, slice(rank, None)) for name, x in named.items()})
        source = FoldSource(command.name, command.output.dtype, (len(kept.lengths), len(folded.lengths)))
        rows, count = prod(arrays[0].shape[:rank]), prod(arrays[0].shape[rank:])
        numbers = {"rows": rows, "count": count}
        for axes, part in zip(source.groups, (kept, folded), strict=True):
            numbers |= part.numbers(axes)
        for name, x in named.items():
            numbers |= first_of(name, x)
        whole = StepsPart(source, self._launches(rows), [numbers[name] for name in source.names])
        return self.compiler.kernel(command.name, [whole])

    def _launches(self, rows: int) -> Sequence[EntryLaunch]:
        if not rows:
            return ()
        if self.compiler.grouped:
            return (EntryLaunch("fold", min(-(-rows // GROUP) * GROUP, 1 << 22), GROUP),)
        return (EntryLaunch("fold", min(rows, 4 * self.compiler.cores), 1),)


def _in_order(command: Command) -> tuple[int, list[Layout]]:
    """Number of axes that are kept, and all arrays with these first and those that are folded behind, in the order of
    folding."""
    first, (axis, last) = command.inputs[0], command.attributes
    folded = (axis,) if isinstance(axis, int) else tuple(axis)
    kept = [n for n in range(len(first.shape)) if n not in folded]
    order = [*kept, *folded]
    if command.name == "prod":
        y = command.output
        strides = [y.strides[n] for n in kept] if last else list(y.strides)
        shape = tuple([first.shape[n] for n in order])
        alone = Layout(shape, y.dtype, y.offset, (*strides, *[0] * len(folded)))
        return len(kept), [_turned(first, order, False), alone]
    return len(kept), [_turned(x, order, bool(last)) for x in (*command.inputs, command.output)]


def _turned(x: Layout, order: Sequence[int], backwards: bool) -> Layout:
    """The array with its axes in an order, the last of them backwards."""
    strides, offset = [x.strides[n] for n in order], x.offset
    if backwards:
        offset += max(x.shape[order[-1]] - 1, 0) * strides[-1]
        strides[-1] = -strides[-1]
    return Layout(tuple([x.shape[n] for n in order]), x.dtype, offset, tuple(strides))
