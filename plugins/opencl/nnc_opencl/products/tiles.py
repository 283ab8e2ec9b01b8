"""Kernels of products for CPUs: each work item packs panels of B and goes through its rows tile by tile.

The panel and the rows of a tile lie in local memory, which is the cache; sums of all rows on the stack, between blocks
of steps.
"""

from __future__ import annotations

from nnc_core.codegen import OPENCL_LOOPS
from nnc_core.operator.products.clike_ending import ending_lines
from nnc_opencl.products.kind import TiledKind
from nnc_opencl.products.plan import ROWS
from nnc_opencl.products.source import SourceWriter, split

COPY = """
static inline void copy(__global const stored *from, __local real *to, long count) {
  long k = 0;
  for (; k + LANES <= count; k += LANES) VSTORE(WIDENED(from + k), to + k);
  for (; k < count; ++k) to[k] = LOADED(from[k]);
}
"""
COPY_APART = """
static inline void copy(__global const stored *from, long step, __local real *to, long count) {
  for (long k = 0; k < count; ++k) to[k] = LOADED(from[k * step]);
}
"""
ZERO = """
static inline void zero(__local real *to, long count) {
  for (long k = 0; k < count; ++k) to[k] = 0;
}
"""


def tile_source(kind: TiledKind) -> str:
    """The program for a CPU."""
    return ItemWriter(kind).text()


class ItemWriter(SourceWriter):
    """Writes the kernel in which each work item computes some rows of a panel."""

    def __init__(self, kind: TiledKind) -> None:
        super().__init__(kind, OPENCL_LOOPS)
        tile = kind.tile
        self.most = max(ROWS // tile.rows * tile.rows, tile.rows)
        self.by_rows = kind.left == "rows"
        self.step = f"{tile.steps} + {tile.lanes}"

    def text(self) -> str:
        finish = self.finish()
        lines = [*self.places("get_global_id(0)"), *self.rooms(), *self.sights(),
                 "long begin = 0;", "do {",
                 "const long count = min((long)STEPS, steps - begin);", *self.panel_lines(), *self.table(),
                 "for (long row = 0; row < height; row += HEIGHT) {", *self.rows_lines(), *self.sums_lines(), "}",
                 "begin += STEPS;", "} while (begin < steps);", *finish]
        copy = COPY if self.kind.a_dense else COPY_APART
        return self.source("\n".join(lines), copy + ZERO, 1)

    def rooms(self) -> list[str]:
        room = f"HEIGHT * ({self.step})" if self.by_rows else "HEIGHT * STEPS"
        return [f"__local real panel_of[STEPS * WIDTH]; __local real rows_of[{room}];",
                f"real sums[{self.most} * WIDTH];"]

    # ---- windows
    def sights(self) -> list[str]:
        """Declare, for each row, where the pixel that the first element of its window sees lies, and its place."""
        kind = self.kind
        if not kind.axes:
            return []
        if not self.by_rows:
            return [*split([f"e{n}" for n in range(kind.axes)], [f"window{n}" for n in range(kind.axes)], "place2"),
                    "long pixel_of[STEPS], low_of[STEPS], high_of[STEPS];"]
        axes = range(kind.axes)
        names = ["image", *[f"w{n}" for n in axes]]
        lines = [f"long base_of[{self.most}]; " + " ".join([f"int p{n}_of[{self.most}];" for n in axes])]
        if kind.apart:
            lines.append(f"long target_of[{self.most}];")
        lines += ["for (long r = 0; r < height; ++r) {",
                  *split(names, ["", *[f"places{n}" for n in axes]], "first_row + r"),
                  "long base = image * image_step;"]
        for n in axes:
            lines.append(f"const long p{n} = w{n} * stride{n} + offset{n}; p{n}_of[r] = (int)p{n}; "
                         f"base += p{n} * pixel{n};")
        lines.append("base_of[r] = base;")
        if kind.apart:
            target = " + ".join(["image * image_rows", *[f"w{n} * row{n}" for n in axes]])
            lines.append(f"target_of[r] = {target};")
        return [*lines, "}"]

    def pieces(self, inside: list[str]) -> list[str]:
        """Go through the steps at hand, those of one element of windows at a time."""
        axes = range(self.kind.axes)
        elements = split([f"e{n}" for n in axes], [f"window{n}" for n in axes], "(begin + k) / length")
        return ["for (long k = 0; k < count; ) {",
                "const long inner = (begin + k) % length, piece = min(length - inner, count - k);", *elements,
                *inside, "k += piece;", "}"]

    # ---- B
    def panel_lines(self) -> list[str]:
        if self.kind.axes and self.by_rows:
            taps = " + ".join([f"e{n} * tap{n}" for n in range(self.kind.axes)])
            return self.pieces([f"__global const stored *from = b + {taps} + inner * b_row;",
                                "__local real *to = panel_of + k * WIDTH;", *self.packed("piece")])
        return ["{ __global const stored *from = b + begin * b_row; __local real *to = panel_of;",
                *self.packed("count"), "}"]

    def packed(self, steps: str) -> list[str]:
        """Pack so many steps."""
        if self.kind.right == "rows":
            whole = " ".join([f"VSTORE(WIDENED(from + q * b_row + {n} * LANES), to + q * WIDTH + {n} * LANES);"
                              for n in range(self.kind.tile.vectors)])
            return [f"if (width == WIDTH) for (long q = 0; q < {steps}; ++q) {{ {whole} }}",
                    f"else for (long q = 0; q < {steps}; ++q) {{",
                    "for (long c = 0; c < width; ++c) to[q * WIDTH + c] = LOADED(from[q * b_row + c]);",
                    "for (long c = width; c < WIDTH; ++c) to[q * WIDTH + c] = 0;", "}"]
        along = "q" if self.kind.right == "columns" else "q * b_row"
        return ["for (long c = 0; c < WIDTH; ++c) {",
                f"if (c < width) for (long q = 0; q < {steps}; ++q) "
                f"to[q * WIDTH + c] = LOADED(from[c * b_column + {along}]);",
                f"else for (long q = 0; q < {steps}; ++q) to[q * WIDTH + c] = 0;", "}"]

    # ---- A
    def rows_lines(self) -> list[str]:
        """Pack the rows of a tile."""
        if not self.by_rows:
            return self.columns_packed()
        step = "" if self.kind.a_dense else "a_column, "
        if not self.kind.axes:
            return ["for (int i = 0; i < HEIGHT; ++i)",
                    "copy(a + min(first_row + row + i, rows - 1) * a_row + begin * a_column, "
                    f"{step}rows_of + i * ({self.step}), count);"]
        axes = range(self.kind.axes)
        lines = [f"const long m{n} = e{n} * step{n};" for n in axes]
        moved = " + ".join([f"m{n} * pixel{n}" for n in axes])
        lines += [f"__global const stored *from = a + {moved} + inner * a_column;",
                  "for (int i = 0; i < HEIGHT; ++i) {",
                  f"__local real *to = rows_of + i * ({self.step}) + k;",
                  "const long r = min(row + i, height - 1);"]
        checked = list(axes)[:-1] if self.kind.run else axes
        seen = [f"(ulong)(p{n}_of[r] + m{n}) < (ulong)image{n}" for n in checked]
        condition = " && ".join(seen) or "1"
        if self.kind.run:
            lines += [*self.clipped(f"p{axes[-1]}_of[r]", condition, "length"),
                      "const long first = clamp(low - inner, 0L, piece), end = clamp(high - inner, first, piece);",
                      "zero(to, first); if (first < end) copy(from + base_of[r] + first, to + first, end - first);",
                      "zero(to + end, piece - end);"]
        else:
            lines += [f"if ({condition}) copy(from + base_of[r], {step}to, piece); else zero(to, piece);"]
        return self.pieces([*lines, "}"])

    def clipped(self, place: str, condition: str, length: str) -> list[str]:
        """Declare the first and the end of a window's neighbours that are in the image."""
        axis = self.kind.axes - 1
        return [f"const long from_pixel = {place}, most = {length};",
                f"const long low = {condition} ? clamp(-from_pixel * channels, 0L, most) : 0;",
                f"const long high = {condition} ? clamp((image{axis} - from_pixel) * channels, low, most) : 0;"]

    def table(self) -> list[str]:
        """Note where what each step sees lies, and which rows are in the image."""
        kind = self.kind
        if self.by_rows or not kind.axes:
            return []
        axes = range(kind.axes)
        lines = ["for (long k = 0; k < count; ++k) {",
                 *split(["image", *[f"w{n}" for n in axes]], ["", *[f"places{n}" for n in axes]], "begin + k"),
                 *[f"const long p{n} = w{n} * stride{n} + offset{n} + e{n} * step{n};" for n in axes],
                 "pixel_of[k] = image * image_step + " + " + ".join([f"p{n} * pixel{n}" for n in axes]) + ";"]
        checked = list(axes)[:-1] if kind.run else axes
        condition = " && ".join([f"(ulong)p{n} < (ulong)image{n}" for n in checked]) or "1"
        if kind.run:
            lines += self.clipped(f"p{axes[-1]}", f"({condition})", "rows")
        else:
            lines += [f"const long low = 0, high = ({condition}) ? rows : 0;"]
        return [*lines, "low_of[k] = low; high_of[k] = high;", "}"]

    def columns_packed(self) -> list[str]:
        """The column of each step, as many rows as the tile has."""
        along = "" if self.kind.a_dense else " * a_row"
        start = "a + pixel_of[k]" if self.kind.axes else "a + (begin + k) * a_column"
        low, high = ("low_of[k]", "high_of[k]") if self.kind.axes else ("0", "rows")
        whole = f"for (int i = 0; i < HEIGHT; ++i) to[i] = LOADED(from[(first + i){along}]);"
        some = (f"for (int i = 0; i < HEIGHT; ++i) to[i] = first + i >= {low} && first + i < {high} ? "
                f"LOADED(from[(first + i){along}]) : (real)0;")
        return ["const long first = first_row + row;", "for (long k = 0; k < count; ++k) {",
                f"__global const stored *from = {start}; __local real *to = rows_of + k * HEIGHT;",
                f"if ({low} <= first && first + HEIGHT <= {high}) {whole}", f"else {some}", "}"]

    # ---- sums
    def sums_lines(self) -> list[str]:
        """Take the steps into the sums of a tile."""
        rows, vectors = range(self.kind.tile.rows), range(self.kind.tile.vectors)
        each = [(i, j) for i in rows for j in vectors]
        row_step, step = (self.step, "1") if self.by_rows else ("1", "HEIGHT")
        lines = ["real *kept = sums + row * WIDTH; __local const real *p = panel_of, *x = rows_of;",
                 " ".join([f"vector c{i}_{j} = 0;" for i, j in each]),
                 "if (begin) {", *[f"c{i}_{j} = VLOAD(kept + {i} * WIDTH + {j} * LANES);" for i, j in each], "}",
                 f"for (long k = 0; k < count; ++k, p += WIDTH, x += {step}) {{",
                 *[f"const vector b{j} = VLOAD(p + {j} * LANES);" for j in vectors]]
        for i in rows:
            folds = " ".join([f"c{i}_{j} = fma(factor, b{j}, c{i}_{j});" for j in vectors])
            lines.append(f"{{ const vector factor = (vector)(x[{i} * ({row_step})]); {folds} }}")
        return [*lines, "}", *[f"VSTORE(c{i}_{j}, kept + {i} * WIDTH + {j} * LANES);" for i, j in each]]

    # ---- results
    def finish(self) -> list[str]:
        kind = self.kind
        target = "target_of[r]" if kind.apart else "first_row + r"
        places = {name: self.element(name, "target", "c") for name in kind.arrays[2:]}
        lines = ["for (long r = 0; r < height; ++r) {", f"const long target = {target};",
                 "const real *kept = sums + r * WIDTH;"]
        if kind.is_plain:
            stores = " ".join([f"VSTORE(VLOAD(kept + {j} * LANES), x0 + target * x0_row + {j} * LANES);"
                               for j in range(kind.tile.vectors)])
            lines.append(f"if (width == WIDTH) {{ {stores} }} else")
        return [*lines, f"{OPENCL_LOOPS.apart_loop}for (long c = 0; c < width; ++c) {{",
                *ending_lines(kind.ending, kind.wide, self.scalars, "kept[c]", places), "}", "}"]
