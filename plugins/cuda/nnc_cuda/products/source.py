"""The source of a kind of products: what its kernels have in common, and the one that adds up pieces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from nnc_core.codegen.clike_helpers import Helpers
from nnc_core.codegen.clike_places import split as codegen_split
from nnc_core.codegen.clike_scalars import Scalars
from nnc_core.operator.products.clike_arrays import array_parameters, element
from nnc_core.operator.products.clike_ending import ending_lines
from nnc_core.operator.products.numbers import AXES
from nnc_cuda.dialect import CUDA
from nnc_cuda.products.kind import STEPS, THREADS, ProductKind

TILES, PIECES = "product_tiles", "product_pieces"
"""Names of the kernels."""
split = partial(codegen_split, type="place")
"""Declarations of places, in the type that places are counted in."""


class BlockSource:
    """Writes what kernels of products have in common."""

    def __init__(self, kind: ProductKind) -> None:
        self.kind, self.helpers = kind, Helpers(CUDA)
        self.scalars = Scalars(self.helpers)
        self.real = self.scalars.held(kind.wide)
        self.fma = self.helpers.math("fma", kind.wide)

    def program(self, kernels: Mapping[str, Sequence[str]]) -> str:
        """The whole program of kernels by their names."""
        written = [f'extern "C" __global__ void {name}({self.parameters()}) {{\n' + "\n".join([*self.numbers(), *body])
                   + "\n}\n" for name, body in kernels.items()]
        loaded = self.scalars.load("(x)", self.kind.dtype)
        place = "long long" if self.kind.far else "int"
        head = [CUDA.preamble, *self.helpers.definitions.values(), f"typedef {self.real} real;",
                f"typedef {place} place; typedef unsigned {place} unsigned_place;",
                "typedef struct __align__(16) { real n[4]; } quad;", f"#define LOADED(x) ({loaded})",
                f"enum {{ STEPS = {STEPS}, HEIGHT = {self.kind.height}, WIDTH = {self.kind.width} }};", ""]
        return "\n".join(head) + "".join(written)

    def parameters(self) -> str:
        kind = self.kind
        arrays = array_parameters(kind.order, kind.dtypes, len(kind.ending.outputs), CUDA)
        sums = [f"{self.real} *partial"] if kind.split else []
        return ", ".join([*arrays, *sums, *[f"const long long n_{name}" for name in kind.numbers]])

    def numbers(self) -> Iterator[str]:
        """Declarations of the numbers as places, but for what counts through whole arrays."""
        for name in self.kind.numbers:
            if not name.endswith("_first") and "_batch" not in name:
                yield f"const place {name} = (place)n_{name};"

    def pointers(self, column: str) -> Iterator[str]:
        """Declarations of where the arrays of a batch begin, at a column."""
        kind = self.kind
        for name, at in zip(kind.arrays, kind.order, strict=True):
            steps = " + ".join([f"(long long)place{axis} * n_{name}_batch{axis}" for axis in range(AXES)])
            along = "" if name == "a" else f" + {column} * n_{name}_column"
            const = "" if int(name[1:] or -1) >= len(kind.ending.operands) else "const "
            dtype = CUDA.types[kind.dtypes[kind.arrays.index(name)].name]
            yield f"{const}{dtype} *{name} = g{at} + n_{name}_first + {steps}{along};"

    def element(self, name: str, row: str, column: str) -> str:
        """The element of an operand or output of the ending."""
        return element(name, row, column, self.kind.along[int(name[1:])])

    def row_of_result(self, row: str) -> list[str]:
        """Declare the row of the result that a row of the product is."""
        kind, axes = self.kind, range(self.kind.axes)
        if not kind.apart:
            return [f"const place target = {row};"]
        target = " + ".join(["of * image_rows", *[f"t{n} * row{n}" for n in axes]])
        return [*split(["of", *[f"t{n}" for n in axes]], ["", *[f"places{n}" for n in axes]], row),
                f"const place target = {target};"]

    def ending(self, sum: str, column: str) -> list[str]:
        """Statements for one element of the row `target`."""
        places = {name: self.element(name, "target", column) for name in self.kind.arrays[2:]}
        return ending_lines(self.kind.ending, self.kind.wide, self.scalars, sum, places)

    def pieces(self) -> list[str]:
        """The kernel that adds up what blocks have left, a thread for each element."""
        axes = range(AXES)
        return ["const long long elements = (long long)rows * columns * batch0 * batch1 * batch2;",
                f"const long long point = (long long)blockIdx.x * {THREADS} + threadIdx.x;",
                "if (point >= elements) return;",
                *split([f"place{n}" for n in axes] + ["row_of", "c"], ["", *[f"batch{n}" for n in list(axes)[1:]],
                                                                      "rows", "columns"], "point", type="long long"),
                "real sum = partial[point];",
                "for (place piece = 1; piece < splits; ++piece) sum += partial[piece * elements + point];",
                *self.pointers("0"), *self.row_of_result("(place)row_of"), *self.ending("sum", "c")]
