"""Kernels of products for GPUs: each group of work items computes a tile, with factors in local memory."""

from __future__ import annotations

from nnc_core.operator.products.clike_ending import ending_lines
from nnc_opencl.products.kind import TiledKind
from nnc_opencl.products.source import SourceWriter, split

GROUP = 256
"""Work items of a group, 16 x 16, each of which keeps 4 x 4 sums."""
EACH = 4


def group_source(kind: TiledKind) -> str:
    """The program for devices that run groups of work items together."""
    return GroupWriter(kind).text()


class GroupWriter(SourceWriter):
    """Writes the kernel in which each group computes a tile of 64 x 64."""

    def text(self) -> str:
        finish = self.finish()
        lines = [*self.places("get_group_id(0)"),
                 "__local real lefts[STEPS][HEIGHT + 1], rights[STEPS][WIDTH];",
                 "const int item = get_local_id(0), across = item % 16, down = item / 16;",
                 f"const int my_row = item / {EACH}, my_step = item % {EACH} * {EACH};",
                 "const bool is_row = my_row < height;", *self.sight(),
                 f"real sums[{EACH}][{EACH}];",
                 f"for (int i = 0; i < {EACH}; ++i) for (int j = 0; j < {EACH}; ++j) sums[i][j] = 0;",
                 "for (long begin = 0; begin < steps; begin += STEPS) {",
                 "const int count = (int)min((long)STEPS, steps - begin);",
                 f"for (int n = 0; n < {EACH}; ++n) {{", "const long k = begin + my_step + n;", "real left = 0;",
                 "if (is_row && k < steps) {", *self.left(), "}", "lefts[my_step + n][my_row] = left;", "}",
                 "for (int n = item; n < STEPS * WIDTH; n += 256) {",
                 *self.right_place(), "real right = 0;", "if (c < width && k < steps) {", *self.right(), "}",
                 "rights[q][c] = right;", "}", "barrier(CLK_LOCAL_MEM_FENCE);",
                 "for (int q = 0; q < count; ++q) {", f"real x[{EACH}], y[{EACH}];",
                 f"for (int i = 0; i < {EACH}; ++i) x[i] = lefts[q][down + 16 * i];",
                 f"for (int j = 0; j < {EACH}; ++j) y[j] = rights[q][across + 16 * j];",
                 f"for (int i = 0; i < {EACH}; ++i) for (int j = 0; j < {EACH}; ++j)",
                 "sums[i][j] = fma(x[i], y[j], sums[i][j]);", "}", "barrier(CLK_LOCAL_MEM_FENCE);", "}", *finish]
        return self.source("\n".join(lines), "", GROUP)

    # ---- A
    def sight(self) -> list[str]:
        """Declare where this item's row begins."""
        kind, axes = self.kind, range(self.kind.axes)
        if not kind.axes:
            return ["__global const stored *from = a + (first_row + my_row) * a_row;"]
        if kind.left == "columns":
            return split([f"e{n}" for n in axes], [f"window{n}" for n in axes], "place2")
        return [*split(["image", *[f"w{n}" for n in axes]], ["", *[f"places{n}" for n in axes]], "first_row + my_row"),
                *[f"const long p{n} = w{n} * stride{n} + offset{n};" for n in axes]]

    def left(self) -> list[str]:
        """Load an element of A."""
        kind, axes = self.kind, range(self.kind.axes)
        if not kind.axes:
            return ["left = LOADED(from[k * a_column]);"]
        if kind.left == "columns":
            lines = [*split(["image", *[f"w{n}" for n in axes]], ["", *[f"places{n}" for n in axes]], "k"),
                     *[f"const long s{n} = w{n} * stride{n} + offset{n} + e{n} * step{n};" for n in axes],
                     "const long along = first_row + my_row;"]
            along = "along * a_row"
        else:
            lines = [*split([f"e{n}" for n in axes], [f"window{n}" for n in axes], "k / length"),
                     *[f"const long s{n} = p{n} + e{n} * step{n};" for n in axes], "const long along = k % length;"]
            along = "along * a_column"
        last = f"s{axes[-1]}" + (" + along / channels" if kind.run else "")
        seen = [f"(ulong)({place}) < (ulong)image{n}" for n, place in zip(axes, [f"s{n}" for n in axes[:-1]] + [last],
                                                                        strict=True)]
        pixel = " + ".join(["image * image_step", *[f"s{n} * pixel{n}" for n in axes]])
        return [*lines, f"if ({' && '.join(seen)}) left = LOADED(a[{pixel} + {along}]);"]

    # ---- B
    def right_place(self) -> list[str]:
        """Declare the step and the column of an element of B: neighbours in memory for neighbouring items."""
        if self.kind.right == "rows":
            return ["const int q = n / WIDTH, c = n % WIDTH;", "const long k = begin + q;"]
        return ["const int c = n / STEPS, q = n % STEPS;", "const long k = begin + q;"]

    def right(self) -> list[str]:
        if not self.kind.axes or self.kind.left == "columns":
            return ["right = LOADED(b[k * b_row + c * b_column]);"]
        axes = range(self.kind.axes)
        taps = " + ".join([f"e{n} * tap{n}" for n in axes])
        return [*split([f"e{n}" for n in axes], [f"window{n}" for n in axes], "k / length"),
                f"right = LOADED(b[{taps} + k % length * b_row + c * b_column]);"]

    # ---- results
    def finish(self) -> list[str]:
        kind = self.kind
        places = {name: self.element(name, "target", "c") for name in kind.arrays[2:]}
        target = "first_row + r"
        lines = [f"for (int i = 0; i < {EACH}; ++i) for (int j = 0; j < {EACH}; ++j) {{",
                 "const long r = down + 16 * i, c = across + 16 * j;", "if (r >= height || c >= width) continue;"]
        if kind.apart:
            axes = range(kind.axes)
            lines += split(["of", *[f"t{n}" for n in axes]], ["", *[f"places{n}" for n in axes]], "first_row + r")
            target = " + ".join(["of * image_rows", *[f"t{n} * row{n}" for n in axes]])
        return [*lines, f"const long target = {target};",
                *ending_lines(kind.ending, kind.wide, self.scalars, "sums[i][j]", places), "}"]
