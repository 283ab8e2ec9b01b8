"""Kernels of Fourier transforms: rows are taken to a workspace, go through the stages there, and are given away.

A stage of radix r takes a row that is `size` transforms side by side, of length n each, to r times as many that are r
times shorter, so that what comes out of the last stage is in order (Stockham 1966).
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from nnc_core.base.dtype import DType, real_of
from nnc_core.codegen import Dialect
from nnc_core.codegen.clike_helpers import Helpers
from nnc_core.codegen.clike_scalars import Scalars
from nnc_core.codegen.clike_steps import ArrayParameter, pairs, spelled, written_kernels
from nnc_core.operator.steps.arrays import ArraySteps, Axes

Way: TypeAlias = Literal["fft", "rfft", "irfft"]
GROUP = 256
PART = 32
"""Terms that are added before they are added to a sum, which keeps roundings of long ones small."""
UNROLLED = 16
"""The radix up to which the elements of a butterfly are held."""

TIMES = """
FUNCTION pair times(pair a, pair b) {
  return PAIR(FMA(a.x, b.x, -(a.y * b.y)), FMA(a.x, b.y, a.y * b.x));
}
"""
TAKE = """
  for (int64 t = FIRST(rows * points); t < LAST(rows * points); t += NEXT) {
    const int64 row = t / points, place = t % points;
    PLACES
    TAKEN
    work[t] = value;
  }
"""
GIVE = """
  const real scale = table[points].x;
  for (int64 t = FIRST(rows * given); t < LAST(rows * given); t += NEXT) {
    const int64 row = t / given, k0 = t % given;
    PLACES
    const pair value = SCALED(work[step * rows * points + row * points + k0], scale);
    GIVEN
  }
"""
STAGE = """
  enum { R = %(radix)d };
  const int64 each = points / R, all = rows * each, apart = each;
  GLOBAL const pair *source = work + step * rows * points;
  GLOBAL pair *target = work + (1 - step) * rows * points;
  for (int64 t = FIRST(all); t < LAST(all); t += NEXT) {
    const int64 row = t / each, p = t %% each / size, q = t %% each %% size;
    GLOBAL const pair *from = source + row * points + t %% each;
    GLOBAL pair *to = target + row * points + q + size * R * p;
    %(held)s
    for (int u = 0; u < R; ++u) {
      pair sum = %(first)s, part = PAIR(0, 0);
      for (int k = 1; k < R; ++k) {
        part = PLUS(part, times(%(element)s, table[(int64)(u * k %% R) * each]));
        if (k %% PART == 0) { sum = PLUS(sum, part); part = PAIR(0, 0); }
      }
      to[u * size] = times(PLUS(sum, part), table[p * u * size]);
    }
  }
"""
TAKEN = {
    "fft": "const int64 k0 = place; const pair value = x[X];",
    "rfft": "const int64 k0 = place; const pair value = PAIR(x[X], 0);",
    "irfft": "const bool mirrored = place > points - place; const int64 k0 = mirrored ? points - place : place; "
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

    @property
    def arrays(self) -> tuple[ArrayParameter, ...]:
        x, y = ("pair" if self.way != real_way else "real" for real_way in ("rfft", "irfft"))
        return (ArrayParameter(x, "x"), ArrayParameter(y, "y", written=True),
                ArrayParameter("pair", "work", written=True), ArrayParameter("pair", "table"))

    def text(self, dialect: Dialect, grouped: bool) -> str:
        helpers, real = Helpers(dialect), real_of(self.dtype)
        held = Scalars(helpers).held(real)
        before, behind, _ = self.groups
        words = {
            "FMA": helpers.math("fma", real), "PART": PART, "TAKEN": TAKEN[self.way], "GIVEN": GIVEN[self.way],
            "PLACES": f"{before.split('row / tails')} {behind.split('row % tails')}",
            "X": ArraySteps("x", self.groups).element(),
            "Y": ArraySteps("y", self.groups).element(), **_shares(grouped)}
        preamble = dialect.preamble + (dialect.float64_preamble if helpers.uses_float64 else "")
        defined = "\n".join([*[f"#define {word} {text}" for word, text in words.items()], TIMES])
        bodies = {"take": TAKE, "give": GIVE, **{f"stage_{radix}": stage(radix) for radix in self.radices}}
        return "\n".join([preamble, f"typedef {held} real;", pairs(held, real.itemsize, dialect),
                          spelled(defined, dialect),
                          written_kernels(bodies, self.arrays, self.names, GROUP if grouped else 1, dialect)])


def stage(radix: int) -> str:
    """The kernel of a factor of the length."""
    held = radix <= UNROLLED
    return STAGE % {
        "radix": radix, "held": "pair v[R]; for (int k = 0; k < R; ++k) v[k] = from[k * apart];" if held else "",
        "first": "v[0]" if held else "from[0]", "element": "v[k]" if held else "from[k * apart]"}


def _shares(grouped: bool) -> dict[str, str]:
    """The part of so many elements that an item has: neighbours on CPUs, every so many on GPUs."""
    if grouped:
        return {"FIRST(count)": "POINT", "LAST(count)": "(count)", "NEXT": "POINTS"}
    return {"FIRST(count)": "((count) * POINT / POINTS)", "LAST(count)": "((count) * (POINT + 1) / POINTS)",
            "NEXT": "1"}
