"""The kernel of products: each block of threads computes a tile, with factors in shared memory.

While the factors of some steps are multiplied, those of the next are on their way to registers.  Threads that load
neighbouring elements are neighbours, and what finding them costs is paid once: for each row in advance, for each step
once a round.
"""

from __future__ import annotations

from nnc_core.operator.products.numbers import AXES
from nnc_cuda.products.kind import STEPS, THREADS, ProductKind
from nnc_cuda.products.source import PIECES, TILES, BlockSource, split

UNROLLED = '_Pragma("unroll")'


def product_source(kind: ProductKind) -> str:
    """The program of a kind."""
    writer = BlockTileWriter(kind)
    kernels = {TILES: writer.text()}
    if kind.split:
        kernels[PIECES] = writer.pieces()
    return writer.program(kernels)


class BlockTileWriter(BlockSource):
    """Writes the kernel whose blocks of 16 x 16 threads compute tiles."""

    @property
    def by_rows(self) -> bool:
        return self.kind.left == "rows"

    @property
    def lefts(self) -> int:
        """Elements of A that a thread loads at once."""
        return self.kind.height * STEPS // THREADS

    @property
    def rights(self) -> int:
        return self.kind.width * STEPS // THREADS

    def text(self) -> list[str]:
        rows, columns = self.kind.rows, self.kind.columns
        return [
            *self.task(),
            "__shared__ __align__(16) real lefts[STEPS][HEIGHT + 4];",
            "__shared__ __align__(16) real rights[STEPS][WIDTH + 4];",
            "const int item = (int)threadIdx.x, across = item % 16, down = item / 16;",
            f"real sums[{rows}][{columns}], next_left[{self.lefts}], next_right[{self.rights}];",
            f"{UNROLLED} for (int i = 0; i < {rows}; ++i)",
            f"{UNROLLED} for (int j = 0; j < {columns}; ++j) sums[i][j] = 0;",
            *self.sight(),
            "place begin = first_step;",
            "if (begin < last_step) {", *self.fetch(), "}",
            "while (begin < last_step) {",
            *self.store(),
            "__syncthreads();",
            "const int count = (int)min((place)STEPS, last_step - begin);",
            "begin += STEPS;",
            "if (begin < last_step) {", *self.fetch(), "}",
            f"if (count == STEPS) {{ {UNROLLED} for (int q = 0; q < STEPS; ++q) {{", *self.multiply(), "} }",
            "else for (int q = 0; q < count; ++q) {", *self.multiply(), "}",
            "__syncthreads();", "}",
            *self.finish()]

    def task(self) -> list[str]:
        """Declare the tile, the steps and the first elements of this block."""
        axes = range(AXES)
        names = [*[f"place{n}" for n in axes], "piece", "block", "panel"]
        lengths = ["", *[f"batch{n}" for n in list(axes)[1:]], "splits", "blocks", "panels"]
        return [*split(names, lengths, "(place)blockIdx.x"),
                "const place first_row = block * HEIGHT, height = min((place)HEIGHT, rows - first_row);",
                "const place first_column = panel * WIDTH, width = min((place)WIDTH, columns - first_column);",
                "const place first_step = piece * split_steps, last_step = min(steps, first_step + split_steps);",
                *self.pointers("first_column")]

    # ---- A
    def sight(self) -> list[str]:
        """Declare where the windows of this thread's rows begin, or what element of windows this block sees."""
        kind, axes, count = self.kind, range(self.kind.axes), self.lefts
        if not kind.axes:
            return []
        if not self.by_rows:
            return split([f"e{n}" for n in axes], [f"window{n}" for n in axes], "place2")
        return [f"place base[{count}]; " + " ".join([f"place p{n}[{count}];" for n in axes]),
                f"{UNROLLED} for (int i = 0; i < {count}; ++i) {{",
                *split(["image", *[f"w{n}" for n in axes]], ["", *[f"places{n}" for n in axes]],
                       f"first_row + item / STEPS + i * {THREADS // STEPS}"),
                "base[i] = image * image_step;",
                *[f"p{n}[i] = w{n} * stride{n} + offset{n};" for n in axes], "}"]

    def fetch(self) -> list[str]:
        """Load the factors of the steps from `begin` on."""
        return [*(self.fetched_rows() if self.by_rows else self.fetched_columns()), *self.fetched_right()]

    def fetched_rows(self) -> list[str]:
        kind, axes = self.kind, range(self.kind.axes)
        lines = ["{", "const place k = begin + item % STEPS;"]
        if kind.axes:
            lines += [*split([f"e{n}" for n in axes], [f"window{n}" for n in axes], "k / length"),
                      "const place along = k % length;", *[f"const place m{n} = e{n} * step{n};" for n in axes]]
        lines += [f"{UNROLLED} for (int i = 0; i < {self.lefts}; ++i) {{",
                  f"const place r = item / STEPS + i * {THREADS // STEPS};",
                  "real x = 0;", "if (r < height && k < last_step) {"]
        if not kind.axes:
            return [*lines, "x = LOADED(a[(first_row + r) * a_row + k * a_column]);", *_kept("left")]
        return [*lines, *[f"const place s{n} = p{n}[i] + m{n};" for n in axes],
                *self.pixel("base[i]", "along * a_column"), *_kept("left")]

    def fetched_columns(self) -> list[str]:
        kind, axes = self.kind, range(self.kind.axes)
        lines = [f"{UNROLLED} for (int i = 0; i < {self.lefts}; ++i) {{",
                 f"const place r = item % HEIGHT, k = begin + item / HEIGHT + i * {THREADS // kind.height};",
                 "real x = 0;", "if (r < height && k < last_step) {"]
        if not kind.axes:
            return [*lines, "x = LOADED(a[(first_row + r) * a_row + k * a_column]);", *_kept("left", nested=False)]
        return [*lines, *split(["image", *[f"w{n}" for n in axes]], ["", *[f"places{n}" for n in axes]], "k"),
                *[f"const place s{n} = w{n} * stride{n} + offset{n} + e{n} * step{n};" for n in axes],
                "const place along = first_row + r;", *self.pixel("image * image_step", "along * a_row"),
                *_kept("left", nested=False)]

    def pixel(self, image: str, along: str) -> list[str]:
        """Load the element of a pixel, if it is in its image."""
        axes = range(self.kind.axes)
        last = f"s{axes[-1]}" + (" + along / channels" if self.kind.run else "")
        seen = [f"(unsigned_place)({place}) < (unsigned_place)image{n}"
                for n, place in zip(axes, [*[f"s{n}" for n in axes[:-1]], last], strict=True)]
        pixel = " + ".join([image, *[f"s{n} * pixel{n}" for n in axes]])
        return [f"if ({' && '.join(seen)}) x = LOADED(a[{pixel} + {along}]);"]

    # ---- B
    def fetched_right(self) -> list[str]:
        kind = self.kind
        if kind.right == "rows":
            places = f"const place c = item % WIDTH, k = begin + item / WIDTH + i * {THREADS // kind.width};"
        else:
            places = f"const place c = item / STEPS + i * {THREADS // STEPS}, k = begin + item % STEPS;"
        lines = [f"{UNROLLED} for (int i = 0; i < {self.rights}; ++i) {{", places, "real x = 0;",
                 "if (c < width && k < last_step) {"]
        if kind.whole:
            return [*lines, "x = LOADED(b[k * b_row + c * b_column]);", *_kept("right", nested=False)]
        axes = range(kind.axes)
        taps = " + ".join([f"e{n} * tap{n}" for n in axes])
        return [*lines, *split([f"e{n}" for n in axes], [f"window{n}" for n in axes], "k / length"),
                f"x = LOADED(b[{taps} + k % length * b_row + c * b_column]);", *_kept("right", nested=False)]

    # ---- sums
    def store(self) -> list[str]:
        """Put what was fetched into shared memory."""
        left = (f"lefts[item % STEPS][item / STEPS + i * {THREADS // STEPS}]" if self.by_rows else
                f"lefts[item / HEIGHT + i * {THREADS // self.kind.height}][item % HEIGHT]")
        right = (f"rights[item / WIDTH + i * {THREADS // self.kind.width}][item % WIDTH]" if self.kind.right == "rows"
                 else f"rights[item % STEPS][item / STEPS + i * {THREADS // STEPS}]")
        return [f"{UNROLLED} for (int i = 0; i < {self.lefts}; ++i) {left} = next_left[i];",
                f"{UNROLLED} for (int i = 0; i < {self.rights}; ++i) {right} = next_right[i];"]

    def multiply(self) -> list[str]:
        """Take step q into the sums."""
        rows, columns = self.kind.rows, self.kind.columns
        return [f"quad x[{rows // 4}], y[{columns // 4}];",
                f"{UNROLLED} for (int i = 0; i < {rows // 4}; ++i) x[i] = *(const quad *)&lefts[q][64 * i + 4 * down];",
                f"{UNROLLED} for (int j = 0; j < {columns // 4}; ++j) "
                "y[j] = *(const quad *)&rights[q][64 * j + 4 * across];",
                f"{UNROLLED} for (int i = 0; i < {rows}; ++i)",
                f"{UNROLLED} for (int j = 0; j < {columns}; ++j)",
                f"sums[i][j] = {self.fma}(x[i / 4].n[i % 4], y[j / 4].n[j % 4], sums[i][j]);"]

    def finish(self) -> list[str]:
        """Store the sums, or what is made of them."""
        lines = [f"{UNROLLED} for (int i = 0; i < {self.kind.rows}; ++i) {{",
                 "const place r = 64 * (i / 4) + 4 * down + i % 4;", "if (r < height) {"]
        each = [f"{UNROLLED} for (int j = 0; j < {self.kind.columns}; ++j) {{",
                "const place c = 64 * (j / 4) + 4 * across + j % 4;", "if (c < width) {"]
        if not self.kind.split:
            return [*lines, *self.row_of_result("first_row + r"), *each, *self.ending("sums[i][j]", "c"), "} } } }"]
        left = ("(((long long)piece * batch0 * batch1 * batch2 + ((long long)place0 * batch1 + place1) * batch2 "
                "+ place2) * rows + first_row + r) * columns + first_column + c")
        return [*lines, *each, f"partial[{left}] = sums[i][j];", "} } } }"]


def _kept(side: str, nested: bool = True) -> list[str]:
    """The end of the loop over what a thread loads, and of the block around it."""
    return ["}", f"next_{side}[i] = x;", "}", *(["}"] if nested else [])]
