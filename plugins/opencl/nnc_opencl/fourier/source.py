"""Kernels of Fourier transforms: rows are taken to a workspace, go through the stages there, and are given away.

A stage of radix r takes a row that is `size` transforms side by side, of length n each, to r times as many that are r
times shorter, so that what comes out of the last stage is in order (Stockham 1966).
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from nnc_core.base.dtype import DType, float64, real_of
from nnc_core.codegen import OPENCL
from nnc_opencl.ordering.arrays import ArraySteps, Axes, declared

Way: TypeAlias = Literal["fft", "rfft", "irfft"]
GROUP = 256
PART = 32
"""Terms that are added before they are added to a sum, which keeps roundings of long ones small."""
UNROLLED = 16
"""The radix up to which the elements of a butterfly are held."""

HEAD = """
static inline pair times(pair a, pair b) {
  return (pair)(fma(a.x, b.x, -(a.y * b.y)), fma(a.x, b.y, a.y * b.x));
}

KERNEL void take(PARAMETERS) {
  NUMBERS
  for (long t = FIRST(rows * points); t < LAST(rows * points); t += NEXT) {
    const long row = t / points, place = t % points;
    PLACES
    TAKEN
    work[t] = value;
  }
}

KERNEL void give(PARAMETERS) {
  NUMBERS
  const real scale = table[points].x;
  for (long t = FIRST(rows * given); t < LAST(rows * given); t += NEXT) {
    const long row = t / given, k0 = t % given;
    PLACES
    const pair value = work[step * rows * points + row * points + k0] * scale;
    GIVEN
  }
}
"""
STAGE = """
KERNEL void stage_%(radix)d(PARAMETERS) {
  NUMBERS
  enum { R = %(radix)d };
  const long each = points / R, all = rows * each, apart = each;
  __global const pair *source = work + step * rows * points;
  __global pair *target = work + (1 - step) * rows * points;
  for (long t = FIRST(all); t < LAST(all); t += NEXT) {
    const long row = t / each, p = t %% each / size, q = t %% each %% size;
    __global const pair *from = source + row * points + t %% each;
    __global pair *to = target + row * points + q + size * R * p;
    %(held)s
    for (int u = 0; u < R; ++u) {
      pair sum = %(first)s, part = 0;
      for (int k = 1; k < R; ++k) {
        part += times(%(element)s, table[(long)(u * k %% R) * each]);
        if (k %% PART == 0) { sum += part; part = 0; }
      }
      to[u * size] = times(sum + part, table[p * u * size]);
    }
  }
}
"""
TAKEN = {
    "fft": "const long k0 = place; const pair value = x[X];",
    "rfft": "const long k0 = place; const pair value = (pair)(x[X], 0);",
    "irfft": "const bool mirrored = place > points - place; const long k0 = mirrored ? points - place : place; "
             "pair value = x[X]; if (mirrored) value.y = -value.y; if (k0 == 0 || 2 * k0 == points) value.y = 0;"}
GIVEN = {"fft": "y[Y] = value;", "rfft": "y[Y] = value;", "irfft": "y[Y] = value.x;"}


class FourierSource(NamedTuple):
    """All that the source of a transform along an axis depends on; `axes`: those before and behind it."""

    way: Way
    dtype: DType
    """Of complex numbers."""
    axes: tuple[int, int]
    radices: tuple[int, ...]

    @property
    def groups(self) -> tuple[Axes, Axes, Axes]:
        """The axes before the one that is transformed, those behind it, and itself."""
        return Axes("b", self.axes[0]), Axes("t", self.axes[1]), Axes("k", 1)

    @property
    def names(self) -> list[str]:
        before, behind, _ = self.groups
        steps = [name for array in ("x", "y") for name in ArraySteps(array, self.groups).names()]
        return ["rows", "points", "given", "tails", *before.lengths, *behind.lengths, *steps]

    def text(self, grouped: bool) -> str:
        real = OPENCL.types[real_of(self.dtype).name]
        x, y = ("pair" if self.way != real_way else "real" for real_way in ("rfft", "irfft"))
        before, behind, _ = self.groups
        words = {
            "KERNEL": f"{OPENCL.group_of.format(items=GROUP if grouped else 1).strip()} __kernel",
            "PARAMETERS": f"__global const {x} *x, __global {y} *y, __global pair *work, __global const pair *table, "
                          "__global const long *numbers, const long size, const long step",
            "PART": PART, "NUMBERS": declared(self.names), "TAKEN": TAKEN[self.way], "GIVEN": GIVEN[self.way],
            "PLACES": f"{before.split('row / tails')} {behind.split('row % tails')}",
            "X": ArraySteps("x", self.groups).element(),
            "Y": ArraySteps("y", self.groups).element(), **_shares(grouped)}
        preamble = OPENCL.preamble + (OPENCL.float64_preamble if real_of(self.dtype) == float64 else "")
        return "\n".join([preamble, f"typedef {real} real; typedef {real}2 pair;",
                          *[f"#define {word} {text}" for word, text in words.items()], HEAD,
                          *map(stage, self.radices)])


def stage(radix: int) -> str:
    """The kernel of a factor of the length."""
    held = radix <= UNROLLED
    return STAGE % {
        "radix": radix, "held": "pair v[R]; for (int k = 0; k < R; ++k) v[k] = from[k * apart];" if held else "",
        "first": "v[0]" if held else "from[0]", "element": "v[k]" if held else "from[k * apart]"}


def _shares(grouped: bool) -> dict[str, str]:
    """The part of so many elements that an item has: neighbours on CPUs, every so many on GPUs."""
    if grouped:
        return {"FIRST(count)": "get_global_id(0)", "LAST(count)": "(count)", "NEXT": "get_global_size(0)"}
    return {"FIRST(count)": "((count) * get_global_id(0) / get_global_size(0))",
            "LAST(count)": "((count) * (get_global_id(0) + 1) / get_global_size(0))", "NEXT": "1"}
