"""Programs that sort rows of keys, each with its place in the row, so that equal keys stay as they came.

On CPUs a work item sorts whole rows by digits of eight bits.  On GPUs all items sort pairs by a bitonic network, in
rows of a power of two: near ones in memory that a group shares, far ones by a launch for each distance.  Which pairs
are compared depends on sizes alone, and no two pairs are equal, so every way gives the same.  Rows so long that the
network goes through them too often are sorted by digits there too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from nnc_core.base.dtype import DType, boolean, float32, float64, is_float, uint32, uint64
from nnc_core.codegen.clike_helpers import Helpers
from nnc_core.codegen.clike_scalars import Scalars
from nnc_core.codegen.clike_steps import ArrayParameter, spelled, written_kernels
from nnc_core.operator.steps import digits_text
from nnc_core.operator.steps.digits_text import BY_DIGITS, GROUP

BLOCK = 1024
"""Pairs that a group sorts in memory that it shares."""
DIGITS = 256
"""Values of a digit."""

SORT_ROWS = """
  uint32 counts[DIGITS];
  const int64 me = POINT, items = POINTS;
  GLOBAL key_type *from = (GLOBAL key_type *)work + me * count, *to = from + items * count;
  GLOBAL uint32 *from_places = (GLOBAL uint32 *)((GLOBAL key_type *)work + 2 * items * count) + me * count;
  GLOBAL uint32 *to_places = from_places + items * count;
  for (int64 row = me; row < rows; row += items) {
    ROW
    for (int64 k = 0; k < count; ++k) { PLACE from[k] = KEY; from_places[k] = (uint32)k; }
    for (int digit = 0; digit < digits; ++digit) {
      for (int n = 0; n < DIGITS; ++n) counts[n] = 0;
      for (int64 k = 0; k < count; ++k) ++counts[(from[k] >> (8 * digit)) & (DIGITS - 1)];
      uint32 before = 0, most = 0;
      for (int n = 0; n < DIGITS; ++n) {
        const uint32 some = counts[n]; counts[n] = before; before += some; most = max(most, some);
      }
      if (most == (uint32)count) continue;
      for (int64 k = 0; k < count; ++k) {
        const key_type key = from[k];
        const uint32 target = counts[(key >> (8 * digit)) & (DIGITS - 1)]++;
        to[target] = key; to_places[target] = from_places[k];
      }
      GLOBAL key_type *keys = from; from = to; to = keys;
      GLOBAL uint32 *places = from_places; from_places = to_places; to_places = places;
    }
    for (int64 k = 0; k < count; ++k) { const key_type key = from[k]; const uint32 place = from_places[k]; SORTED }
  }
"""
FILL = """
  const int64 t = POINT, row = t / wide, k = t % wide;
  GLOBAL key_type *keys = (GLOBAL key_type *)work;
  GLOBAL uint32 *places = (GLOBAL uint32 *)(keys + pairs);
  if (t >= pairs) return;
  key_type key = ~(key_type)0;
  if (row < rows && k < count) { ROW PLACE key = KEY; }
  keys[t] = key; places[t] = (uint32)k;
"""
FAR = """
  const int64 t = POINT, n = t / step * 2 * step + t % step;
  GLOBAL key_type *keys = (GLOBAL key_type *)work;
  GLOBAL uint32 *places = (GLOBAL uint32 *)(keys + pairs);
  if (n + step >= pairs) return;
  const key_type a = keys[n], b = keys[n + step];
  const uint32 p = places[n], q = places[n + step];
  if (SWAPS(a, p, b, q, ((n % wide) & size) == 0)) {
    keys[n] = b; keys[n + step] = a; places[n] = q; places[n + step] = p;
  }
"""
"""Pairs `step` apart, of runs of `size` that go up and down in turn."""
NEAR = """
  LOCAL(key_type, near_keys, BLOCK);
  LOCAL(uint32, near_places, BLOCK);
  const int64 base = (int64)GROUP_NUMBER * BLOCK;
  const int item = MEMBER;
  GLOBAL key_type *keys = (GLOBAL key_type *)work + base;
  GLOBAL uint32 *places = (GLOBAL uint32 *)((GLOBAL key_type *)work + pairs) + base;
  for (int n = item; n < BLOCK; n += GROUP) { near_keys[n] = keys[n]; near_places[n] = places[n]; }
  BARRIER
  for (int64 run = 2 * step; run <= size; run *= 2) {
    for (int apart = (int)min(run / 2, (int64)(BLOCK / 2)); apart; apart /= 2) {
      for (int t = item; t < BLOCK / 2; t += GROUP) {
        const int n = t / apart * 2 * apart + t % apart, m = n + apart;
        const key_type a = near_keys[n], b = near_keys[m];
        const uint32 p = near_places[n], q = near_places[m];
        if (SWAPS(a, p, b, q, (((base + n) % wide) & run) == 0)) {
          near_keys[n] = b; near_keys[m] = a; near_places[n] = q; near_places[m] = p;
        }
      }
      BARRIER
    }
  }
  for (int n = item; n < BLOCK; n += GROUP) { keys[n] = near_keys[n]; places[n] = near_places[n]; }
"""
"""A block in memory that a group shares: runs of twice `step` to `size` from runs that are sorted."""
FINISH = """
  const int64 t = POINT, row = t / count, k = t % count;
  if (row >= rows) return;
  GLOBAL key_type *keys = (GLOBAL key_type *)work;
  const key_type key = keys[row * wide + k];
  const uint32 place = ((GLOBAL uint32 *)(keys + pairs))[row * wide + k];
  ROW
  SORTED
"""
SWAPS = "#define SWAPS(a, p, b, q, up) ((((a) > (b)) || ((a) == (b) && (p) > (q))) == (up))"
BY_NETWORK = {"fill": FILL, "far": FAR, "near": NEAR, "finish": FINISH}
BY_ITEMS = {"sort_rows": SORT_ROWS}
EMPTY: Mapping[str, str] = MappingProxyType({})


class SortedRows(NamedTuple):
    """Rows that are sorted, and what becomes of them, as source."""

    key: DType
    """The dtype of keys, an unsigned integer."""
    functions: str
    arrays: Sequence[ArrayParameter]
    """Those that kernels are given: `work` is the workspace."""
    numbers: Sequence[str]
    """Names of numbers: among them rows, count, wide, pairs, digits."""
    row: str
    """Statements that place `row`."""
    place: str
    """Statements that place `k` in it."""
    value: str
    """The key at this place."""
    sorted: str
    """Statements for `key` and its `place`, the k-th of the row."""
    long: bool
    """Groups sort by digits."""


def sorting_source(rows: SortedRows, helpers: Helpers, grouped: bool, after: Mapping[str, str] = EMPTY) -> str:
    """The kernels that sort, and others that come `after`."""
    dialect = helpers.dialect
    words = {"ROW": rows.row, "PLACE": rows.place, "KEY": rows.value, "SORTED": rows.sorted, "DIGITS": DIGITS,
             "BLOCK": BLOCK, "GROUP": GROUP, **digits_text.WORDS}
    preamble = dialect.preamble + (dialect.float64_preamble if helpers.uses_float64 else "")
    defined = [*[f"#define {word} {text}" for word, text in words.items()], SWAPS,
               f"typedef {rows.key.name} key_type;", rows.functions]
    by_groups = {"fill": FILL, **BY_DIGITS, "finish": FINISH} if rows.long else BY_NETWORK
    bodies = {**(by_groups if grouped else BY_ITEMS), **after}
    return "\n".join([
        preamble, *helpers.definitions.values(), spelled("\n".join(defined), dialect),
        written_kernels(bodies, rows.arrays, rows.numbers, GROUP if grouped else 1, dialect)])


def key_dtype(dtype: DType) -> DType:
    """The unsigned integers that values of a dtype are sorted as."""
    return uint64 if dtype.itemsize == 8 else uint32


def key_of(element: str, dtype: DType, scalars: Scalars) -> str:
    """An unsigned integer that lies where the element does in the order of its dtype: NaN above all, zeros equal."""
    wide = key_dtype(dtype)
    if dtype == boolean or dtype.kind == "u":
        return f"({wide.name})({element})"
    if not is_float(dtype):
        signed = "int64" if wide == uint64 else "int32"
        return f"(({wide.name})({signed})({element}) ^ (({wide.name})1 << {8 * wide.itemsize - 1}))"
    scalars.held(dtype)
    return f"nnc_key({scalars.load(element, dtype)})"


def key_function(dtype: DType, scalars: Scalars) -> str:
    """The function that makes keys of floats."""
    held, wide = scalars.held(dtype), key_dtype(dtype)
    unsigned, last = wide.name, 8 * wide.itemsize - 1
    bits = scalars.helpers.bitcast(float64 if wide == uint64 else float32, wide)
    return (f"FUNCTION {unsigned} nnc_key({held} x) {{ if (x != x) return ~({unsigned})0; "
            f"const {unsigned} bits = x == 0 ? 0 : {bits}(x); "
            f"return bits >> {last} ? ~bits : bits | (({unsigned})1 << {last}); }}")
