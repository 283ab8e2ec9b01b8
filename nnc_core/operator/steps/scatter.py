"""Updates put where indices say, in their order, however many mean one element: sorted by index, one item for each."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from nnc_core.base.command import Command
from nnc_core.base.dtype import DType, accumulator, element_of, is_complex, is_float, real_of, uint32, uint64
from nnc_core.codegen import Dialect
from nnc_core.codegen.clike_helpers import Helpers
from nnc_core.codegen.clike_scalars import Scalars
from nnc_core.codegen.clike_steps import ArrayParameter, pairs
from nnc_core.device import CommandBackend, Kernel
from nnc_core.operator.steps.arrays import ArraySteps, Axes, Sides, first_of, sides
from nnc_core.operator.steps.digits_text import GROUP
from nnc_core.operator.steps.program import EntryLaunch, StepsCompiler, StepsPart
from nnc_core.operator.steps.sorting import SHARES, Sorting, rounded
from nnc_core.operator.steps.sorting_text import SortedRows, sorting_source

OPERATIONS = {"add": "add", "multiply": "multiply", "min": "minimum", "max": "maximum"}
COPY = """
  for (int64 t = FIRST(elements); t < LAST(elements); t += NEXT) { ALL y[TO_ALL] = x[FROM_ALL]; }
"""
COMBINE = """
  GLOBAL const key_type *keys = (GLOBAL const key_type *)(work + keys_at);
  GLOBAL const uint32 *places = (GLOBAL const uint32 *)(work + places_at);
  const int64 items = rows * count * between * behind;
  for (int64 n = FIRST(items); n < LAST(items); n += NEXT) {
    int64 rest = n;
    const int64 tail = rest % behind; rest /= behind;
    const int64 sorted = rest % count; rest /= count;
    const int64 middle = rest % between, row = rest / between;
    const int64 begin = row * wide;
    const key_type index = keys[begin + sorted];
    if (index >= length || (sorted && keys[begin + sorted - 1] == index)) continue;
    ROW MIDDLE TAIL
    const int64 a0 = index;
    held_type value = LOADED(y[TO]);
    for (int64 s = sorted; s < count && keys[begin + s] == index; ++s) {
      const int64 k = places[begin + s];
      PLACE
      const held_type update = LOADED(updates[UPDATE]);
      value = COMBINED;
    }
    y[TO] = STORED(value);
  }
"""
LOOPS = """
#define FIRST(n) (POINT * (((n) + POINTS - 1) / POINTS))
#define LAST(n) min((int64)(n), (int64)((POINT + 1) * (((n) + POINTS - 1) / POINTS)))
#define NEXT 1
"""
STRIDES = """
#define FIRST(n) POINT
#define LAST(n) (n)
#define NEXT POINTS
"""


class ScatterSource(NamedTuple):
    """All that the source of a scatter depends on: dtypes, the mode, and how many axes are shared with the indices,
    before the one that is indexed, of indices, and behind it."""

    dtype: DType
    of_indices: DType
    mode: str
    key: DType
    axes: tuple[int, int, int, int]
    long: bool
    """Groups sort indices by digits."""

    @property
    def groups(self) -> tuple[Axes, Axes, Axes, Axes]:
        shared, middle, indices, tail = self.axes
        return Axes("r", shared), Axes("m", middle), Axes("k", indices), Axes("t", tail)

    @property
    def steps(self) -> tuple[ArraySteps, ArraySteps, ArraySteps, ArraySteps]:
        """The strides of x, the indices, the updates and the result."""
        shared, middle, indices, tail = self.groups
        whole = (shared, middle, Axes("a", 1), tail)
        return (ArraySteps("x", whole), ArraySteps("indices", (shared, indices)),
                ArraySteps("updates", (shared, middle, indices, tail)), ArraySteps("y", whole))

    @property
    def names(self) -> list[str]:
        found = ["rows", "count", "wide", "pairs", "digits", "length", "between", "behind", "elements", "keys_at",
                 "places_at", "a_length0"]
        found += [name for axes in self.groups for name in axes.lengths]
        return found + [name for steps in self.steps for name in steps.names()]

    def text(self, dialect: Dialect, grouped: bool) -> str:
        scalars = Scalars(Helpers(dialect))
        shared, middle, indices, tail = self.groups
        x, places, updates, y = self.steps
        whole = Axes("r", shared.rank), Axes("m", middle.rank), Axes("a", 1), Axes("t", tail.rank)
        types, stored, held, loaded, kept, combined = self.elements(scalars)
        words = {
            "ALL": _split_all(whole), "FROM_ALL": x.element(), "TO_ALL": y.element(), "TO": y.element(),
            "UPDATE": updates.element(), "MIDDLE": middle.split("middle"), "TAIL": tail.split("tail"),
            "LOADED(e)": loaded, "STORED(e)": kept, "COMBINED": combined}
        functions = [
            types, f"typedef {stored} stored_type;", f"typedef {held} held_type;", STRIDES if grouped else LOOPS,
            *[f"#define {name} {text}" for name, text in words.items()],
            f"FUNCTION {self.key.name} nnc_index(int64 index, int64 length) {{ index += index < 0 ? length : 0; "
            f"return index < 0 || index >= length ? ({self.key.name})length : ({self.key.name})index; }}"]
        arrays = [ArrayParameter("stored_type", "x"), ArrayParameter(self.of_indices.name, "indices"),
                  ArrayParameter("stored_type", "updates"), ArrayParameter("stored_type", "y", written=True),
                  ArrayParameter("uint8", "work", written=True)]
        value = f"nnc_index((int64)indices[{places.element()}], length)"
        back = "" if grouped else "((GLOBAL key_type *)(work + keys_at))[row * count + k] = key; " \
                                  "((GLOBAL uint32 *)(work + places_at))[row * count + k] = place;"
        made = SortedRows(self.key, "\n".join(functions), arrays, self.names, shared.split("row"),
                          indices.split("k"), value, back, self.long)
        return sorting_source(made, scalars.helpers, grouped, {"copy": COPY, "combine": COMBINE})

    def elements(self, scalars: Scalars) -> tuple[str, str, str, str, str, str]:
        """Definitions of types, those of elements as stored and as combined, both ways between them, and how two are
        combined."""
        dialect = scalars.dialect
        if is_complex(self.dtype):
            real = real_of(self.dtype)
            product = "PAIR(value.x * update.x - value.y * update.y, value.x * update.y + value.y * update.x)"
            both = {"set": "update", "add": "PLUS(value, update)", "multiply": product}
            types = pairs(scalars.held(real), real.itemsize, dialect)
            return types, "pair", "pair", "(e)", "(e)", both[self.mode]
        stored = dialect.types[element_of(self.dtype).name]
        if self.mode == "set":
            return "", stored, stored, "(e)", "(e)", "update"
        summed = self.mode in ("add", "multiply") and is_float(self.dtype)
        wide = accumulator(self.dtype) if summed else self.dtype
        combined = scalars.expression(OPERATIONS[self.mode], wide, ("value", "update"), wide)
        kept = scalars.store(scalars.cast("(e)", wide, self.dtype), self.dtype)
        return "", stored, scalars.held(self.dtype), scalars.load("(e)", self.dtype), kept, combined


def _split_all(axes: tuple[Axes, ...]) -> str:
    """Declarations of all places from t."""
    lines, rest = ["int64 all = t;"], [(place, length) for group in axes for place, length in
                                      zip(group.places, group.lengths, strict=True)]
    for place, length in reversed(rest):
        lines.append(f"const int64 {place} = all % {length}; all /= {length};")
    return " ".join(lines)


class Scatter(CommandBackend):
    """Changes elements by index.  An index out of range changes nothing."""

    name = "sort"

    def __init__(self, compiler: StepsCompiler) -> None:
        self.compiler = compiler

    def refuse(self, command: Command) -> str | None:
        if command.name != "scatter":
            return "it is made for scatter"
        wide = real_of(command.output.dtype) if is_complex(command.output.dtype) else command.output.dtype
        if wide.name not in self.compiler.dtypes:
            return f"the device has no {wide}"
        return None if sorting_of(command).length < 1 << 31 else "there are too many indices"

    def workspace(self, command: Command) -> int:
        return max(self.layout(command)[2], 8)

    def inplace(self, command: Command, offered: tuple[int, ...]) -> tuple[int, ...]:
        return offered if command.inputs[0] == command.output else ()

    def layout(self, command: Command) -> tuple[int, int, int]:
        """The bytes at which sorted keys and their places lie in the workspace, and all its bytes."""
        sorting, grouped, cores = sorting_of(command), self.compiler.grouped, self.compiler.cores
        if grouped:
            return 0, sorting.pairs * sorting.key.itemsize, sorting.workspace(grouped, cores)
        first = -(-sorting.workspace(grouped, cores) // 8) * 8
        places = first + sorting.rows * sorting.length * sorting.key.itemsize
        return first, places, places + 4 * sorting.rows * sorting.length

    def prepare(self, command: Command) -> Kernel:
        axis, mode, batch = command.attributes
        x, indices, updates = command.inputs
        y, sorting, grouped, cores = command.output, sorting_of(command), self.compiler.grouped, self.compiler.cores
        parts = parts_of(command)
        shared, middle, along, tail = [len(part.lengths) for part in parts]
        source = ScatterSource(x.dtype, indices.dtype, mode, sorting.key, (shared, middle, along, tail),
                               sorting.long and grouped)
        keys, places, _ = self.layout(command)
        between, behind = prod(x.shape[batch:axis]), prod(x.shape[axis + 1 :])
        numbers = {"rows": sorting.rows, "count": sorting.length, "pairs": sorting.pairs,
                   "wide": sorting.wide if grouped else sorting.length, "digits": sorting.digits,
                   "length": x.shape[axis], "between": between, "behind": behind, "elements": y.size,
                   "keys_at": keys, "places_at": places, "a_length0": x.shape[axis]}
        for axes, part in zip(source.groups, parts, strict=True):
            numbers |= part.numbers(axes)
        for steps, array in zip(source.steps, (x, indices, updates, y), strict=True):
            numbers |= first_of(steps.name, array)
        for name, array in (("x", x), ("y", y)):
            numbers[f"{name}_a0"] = array.strides[axis] // array.dtype.itemsize
        launches = [self.over("copy", y.size)] if y.size else []
        if updates.size and y.size:
            launches += [*[step for step in sorting.steps(grouped, cores) if step.entry != "finish"],
                      self.over("combine", sorting.rows * sorting.length * between * behind)]
        whole = StepsPart(source, launches, [numbers[name] for name in source.names])
        return self.compiler.kernel("scatter", [whole])

    def over(self, entry: str, items: int) -> EntryLaunch:
        """A launch for so many elements."""
        if self.compiler.grouped:
            return EntryLaunch(entry, min(rounded(items), 1 << 24), GROUP)
        return EntryLaunch(entry, max(min(items // 1024, SHARES * self.compiler.cores), 1), 1)


def parts_of(command: Command) -> list[Sides]:
    """The axes that are shared with the indices, those before the one that is indexed, of indices, and behind it."""
    axis, _, batch = command.attributes
    assert isinstance(axis, int) and isinstance(batch, int)
    (x, indices, updates), y = command.inputs, command.output
    end = axis + len(indices.shape) - batch
    shared, middle, behind = slice(batch), slice(batch, axis), slice(axis + 1, None)
    return [
        sides({"x": (x, shared), "indices": (indices, shared), "updates": (updates, shared), "y": (y, shared)}),
        sides({"x": (x, middle), "updates": (updates, middle), "y": (y, middle)}),
        sides({"indices": (indices, slice(batch, None)), "updates": (updates, slice(axis, end))}),
        sides({"x": (x, behind), "updates": (updates, slice(end, None)), "y": (y, behind)})]


def sorting_of(command: Command) -> Sorting:
    """The indices of a command as rows."""
    axis, _, batch = command.attributes
    assert isinstance(axis, int) and isinstance(batch, int)
    indices, length = command.inputs[1], command.inputs[0].shape[axis]
    key = uint32 if length < 1 << 31 else uint64
    return Sorting(prod(indices.shape[:batch]), prod(indices.shape[batch:]), key, digits_of(length))


def digits_of(length: int) -> int:
    """Bytes of a number up to this one."""
    return max(-(-length.bit_length() // 8), 1)
