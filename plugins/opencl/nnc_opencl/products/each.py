"""Kernels of depthwise convolutions for CPUs: vectors of channels, each of which has a kernel of its own.

Where a work item has rows of pixels it adds up the elements of a window in registers; where it has a kernel's gradient,
the sums are those of the elements along a window's last axis, and it goes through all windows once.
"""

from __future__ import annotations

from nnc_core.codegen import OPENCL_LOOPS
from nnc_core.operator.products.clike_ending import ending_lines
from nnc_opencl.products.kind import TiledKind
from nnc_opencl.products.source import SourceWriter, split

ADD = """
static inline void add(__global const stored *x, __global const stored *y, real *kept, long width) {
  long c = 0;
  for (; c + LANES <= width; c += LANES) VSTORE(fma(WIDENED(x + c), WIDENED(y + c), VLOAD(kept + c)), kept + c);
  for (; c < width; ++c) kept[c] = fma(LOADED(x[c]), LOADED(y[c]), kept[c]);
}
static inline void add_nothing(__global const stored *y, real *kept, long width) {
  for (long c = 0; c < width; ++c) kept[c] = fma((real)0, LOADED(y[c]), kept[c]);
}
"""
"""Products of neighbouring channels: those of zeros outside of images are added too, as they are not 0 everywhere."""


def each_source(kind: TiledKind) -> str:
    """The program."""
    return (WindowsWriter if kind.left == "each" else TapsWriter)(kind).text()


class EachWriter(SourceWriter):
    """Writes what both kernels have in common."""

    def __init__(self, kind: TiledKind) -> None:
        super().__init__(kind, OPENCL_LOOPS)
        self.axes, self.vectors = range(kind.axes), range(kind.tile.vectors)

    def text(self) -> str:
        body = self.body()
        return self.source("\n".join([*self.places("get_global_id(0)"), "a += first_column;", *body]), ADD, 1)

    def body(self) -> list[str]:
        raise NotImplementedError

    def seen(self, axes: list[int]) -> str:
        """The condition that places on axes lie in the image."""
        return " && ".join([f"(ulong)p{n} < (ulong)image{n}" for n in axes]) or "1"

    def ended(self, kept: str, target: str) -> list[str]:
        """Give the sums of a row away."""
        places = {name: self.element(name, "target", "c") for name in self.kind.arrays[2:]}
        lines = [f"{{ const long target = {target}; const real *row = {kept};"]
        if self.kind.is_plain:
            stores = [f"VSTORE(VLOAD(row + {j} * LANES), x0 + target * x0_row + {j} * LANES);" for j in self.vectors]
            lines.append(f"if (width == WIDTH) {{ {' '.join(stores)} }} else")
        return [*lines, f"{OPENCL_LOOPS.apart_loop}for (long c = 0; c < width; ++c) {{",
                *ending_lines(self.kind.ending, self.kind.wide, self.scalars, "row[c]", places), "}", "}"]


class WindowsWriter(EachWriter):
    """Writes the kernel whose rows are windows, or pixels that windows see."""

    def body(self) -> list[str]:
        names = ["image", *[f"w{n}" for n in self.axes]]
        target = " + ".join(["image * image_rows", *[f"w{n} * row{n}" for n in self.axes]])
        moved = [f"if (++w{n} == places{n}) {{ w{n} = 0;" for n in reversed(self.axes)]
        whole = [*[f"vector s{j} = 0;" for j in self.vectors], *self.taps(
            [f"s{j} = fma(WIDENED(from + {j} * LANES), WIDENED(at + {j} * LANES), s{j});" for j in self.vectors],
            [f"s{j} = fma((vector)0, WIDENED(at + {j} * LANES), s{j});" for j in self.vectors]),
            *[f"VSTORE(s{j}, kept + {j} * LANES);" for j in self.vectors]]
        some = ["for (long c = 0; c < width; ++c) kept[c] = 0;",
                *self.taps(["add(from, at, kept, width);"], ["add_nothing(at, kept, width);"])]
        counted = [f"long {name} = q_{name};" for name in names]
        return [*split([f"q_{name}" for name in names], ["", *[f"places{n}" for n in self.axes]], "first_row"),
                *counted, "real kept[WIDTH];", "for (long r = 0; r < height; ++r) {",
                "if (width == WIDTH) {", *whole, "} else {", *some, "}",
                *self.ended("kept", target if self.kind.apart else "first_row + r"),
                *moved, "++image;", "}" * len(moved), "}"]

    def taps(self, inside: list[str], outside: list[str]) -> list[str]:
        """Go through the elements of a window, unless there are none: those that see a pixel, and others."""
        lines = ["if (steps > 0)"]
        for n in self.axes:
            lines += [f"for (long e{n} = 0; e{n} < window{n}; ++e{n}) {{",
                      f"const long p{n} = w{n} * stride{n} + offset{n} + e{n} * step{n};"]
        pixel = " + ".join(["image * image_step", *[f"p{n} * pixel{n}" for n in self.axes]])
        tap = " + ".join([f"e{n} * tap{n}" for n in self.axes])
        return [*lines, f"__global const stored *at = b + {tap};",
                f"if ({self.seen([*self.axes])}) {{ __global const stored *from = a + {pixel};", *inside, "} else {",
                *outside, "}", "}" * len(self.axes)]


class TapsWriter(EachWriter):
    """Writes the kernel whose rows are elements of windows, and whose steps are the windows of all images."""

    def body(self) -> list[str]:
        *outer, last = self.axes
        sums = [(e, j) for e in range(self.kind.tile.rows) for j in self.vectors]
        whole = [*[f"const vector g{j} = WIDENED(at + {j} * LANES);" for j in self.vectors],
                 "if (all_seen) {", *[self.taken(e, "") for e in range(self.kind.tile.rows)], "} else {",
                 *[self.taken(e, f"if (seen && (ulong)(p + {e} * step{last}) < (ulong)image{last})")
                   for e in range(self.kind.tile.rows)], "}"]
        some = ["for (int e = 0; e < HEIGHT; ++e) {", f"const long q = p + e * step{last};",
                f"if (seen && (ulong)q < (ulong)image{last}) add(from + q * pixel{last}, at, kept + e * WIDTH, width);",
                "else add_nothing(at, kept + e * WIDTH, width);", "}"]
        stored = " ".join([f"VSTORE(c{e}_{j}, kept + {e} * WIDTH + {j} * LANES);" for e, j in sums])
        return ["real kept[HEIGHT * WIDTH];", "for (int n = 0; n < HEIGHT * WIDTH; ++n) kept[n] = 0;",
                *[f"vector c{e}_{j} = 0;" for e, j in sums],
                *split(["none", *[f"e{n}" for n in outer]], ["", *[f"window{n}" for n in outer]], "block"),
                "(void)none;",
                "for (long k = 0, line = 0; k < steps; ++line) {",
                *split(["image", *[f"w{n}" for n in outer]], ["", *[f"places{n}" for n in outer]], "line"),
                *[f"const long p{n} = w{n} * stride{n} + offset{n} + e{n} * step{n};" for n in outer],
                f"const bool seen = {self.seen(outer)};",
                f"const long pixels = {' + '.join(['image * image_step', *[f'p{n} * pixel{n}' for n in outer]])};",
                "__global const stored *from = a + (seen ? pixels : 0);",
                f"for (long w = 0; w < places{last}; ++w, ++k) {{",
                "__global const stored *at = b + k * b_row;", f"const long p = w * stride{last} + offset{last};",
                f"const bool all_seen = seen && p >= 0 && p + (HEIGHT - 1) * step{last} < image{last};",
                "if (width == WIDTH) {", *whole, "} else {", *some, "}", "}", "}",
                f"if (width == WIDTH) {{ {stored} }}",
                "for (int e = 0; e < HEIGHT; ++e)", *self.ended("kept + e * WIDTH", "first_row + e")]

    def taken(self, e: int, condition: str) -> str:
        """The products of an element of the window."""
        last = self.axes[-1]
        from_ = f"from + (p + {e} * step{last}) * pixel{last}"
        loads = " ".join([f"x{j} = WIDENED({from_} + {j} * LANES);" for j in self.vectors])
        folds = " ".join([f"c{e}_{j} = fma(x{j}, g{j}, c{e}_{j});" for j in self.vectors])
        begin = " ".join([f"vector x{j} = 0;" for j in self.vectors])
        return f"{{ {begin} {condition} {{ {loads} }} {folds} }}"
