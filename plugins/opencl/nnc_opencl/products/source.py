"""The source of a kind of products: what kernels of all devices have in common."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from nnc_core.base.dtype import DType, bfloat16, float16, float64
from nnc_core.codegen import OPENCL
from nnc_core.codegen.clike_helpers import Helpers
from nnc_core.codegen.clike_places import split as codegen_split
from nnc_core.codegen.clike_scalars import Scalars
from nnc_core.codegen.dialect import Dialect
from nnc_core.operator.products.clike_arrays import array_parameters, element
from nnc_core.operator.products.numbers import AXES
from nnc_opencl.products.kind import TiledKind

NAME = "product"
"""The kernel's name."""
split = partial(codegen_split, type="long")
"""Declarations of places, in the type that places are counted in."""


class SourceWriter:
    """Writes what is before the body of a kernel, and around it."""

    def __init__(self, kind: TiledKind, dialect: Dialect = OPENCL) -> None:
        self.kind, self.helpers = kind, Helpers(dialect)
        self.scalars = Scalars(self.helpers)
        self.real = self.scalars.held(kind.wide)
        self.vector = f"{self.real}{kind.tile.lanes}"

    def source(self, body: str, functions: str, group: int) -> str:
        """The whole program, whose kernel runs `body` in groups of so many work items."""
        used = self.macros()
        before = OPENCL.alone if group == 1 else OPENCL.group_of.format(items=group)
        head = f"{before}__kernel void {NAME}({self.parameters()}) {{"
        preamble = OPENCL.preamble + (OPENCL.float64_preamble if self.helpers.uses_float64 else "")
        return "\n".join([preamble, *self.helpers.definitions.values(), used, functions, head, *self.numbers(), body,
                          "}", ""])

    def macros(self) -> str:
        kind = self.kind
        loaded = self.scalars.load("(x)", kind.dtype)
        return "\n".join([
            f"typedef {self.real} real;", f"typedef {OPENCL.types[kind.dtype.name]} stored;",
            f"typedef {self.vector} vector;", f"#define LOADED(x) ({loaded})",
            f"#define VLOAD(p) vload{kind.tile.lanes}(0, p)",
            f"#define VSTORE(x, p) vstore{kind.tile.lanes}(x, 0, p)",
            f"#define WIDENED(p) {widened(kind.dtype, kind.tile.lanes)}",
            f"#define LANES {kind.tile.lanes}", f"#define HEIGHT {kind.tile.rows}", f"#define WIDTH {kind.tile.width}",
            f"#define STEPS {kind.tile.steps}"])

    def parameters(self) -> str:
        kind = self.kind
        arrays = array_parameters(kind.order, kind.dtypes, len(kind.ending.outputs), OPENCL)
        return ", ".join([*arrays, "__global const long *numbers"])

    def numbers(self) -> Iterator[str]:
        """Declarations of the numbers, and of where the arrays of this batch begin."""
        for n, name in enumerate(self.kind.numbers):
            yield f"const long {name} = numbers[{n}];"

    def places(self, task: str) -> Iterator[str]:
        """Declarations of the panel, the rows and the first elements of a task."""
        kind = self.kind
        yield f"long rest = {task};"
        yield "const long panel = rest % panels; rest /= panels;"
        yield "const long block = rest % blocks; rest /= blocks;"
        for axis in range(AXES - 1, 0, -1):
            yield f"const long place{axis} = rest % batch{axis}; rest /= batch{axis};"
        yield "const long place0 = rest;"
        yield "const long first_row = block * block_rows, height = min(block_rows, rows - first_row);"
        yield "const long first_column = panel * WIDTH, width = min((long)WIDTH, columns - first_column);"
        for name, place in zip(kind.arrays, kind.order, strict=True):
            steps = " + ".join([f"place{axis} * {name}_batch{axis}" for axis in range(AXES)])
            column = "" if name == "a" else f" + first_column * {name}_column"
            const = "" if int(name[1:] or -1) >= len(kind.ending.operands) else "const "
            yield f"__global {const}{self.stored_of(name)} *{name} = g{place} + {name}_first + {steps}{column};"

    def stored_of(self, name: str) -> str:
        dtype = self.kind.dtypes[self.kind.arrays.index(name)]
        return OPENCL.types[dtype.name]

    def element(self, name: str, row: str, column: str) -> str:
        """The element of an operand or output of the ending."""
        return element(name, row, column, self.kind.columns[int(name[1:])])


def widened(dtype: DType, lanes: int) -> str:
    """A vector of stored elements at p in the dtype of sums."""
    if dtype == float16:
        return f"vload_half{lanes}(0, (__global const half *)(p))"
    if dtype == bfloat16:
        return f"as_float{lanes}(convert_uint{lanes}(vload{lanes}(0, p)) << 16)"
    return f"vload{lanes}(0, p)"


def uses_float64(kind: TiledKind) -> bool:
    return float64 in (*kind.dtypes, *[instruction.dtype for instruction in kind.ending.body])
