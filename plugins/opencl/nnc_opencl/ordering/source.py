"""Programs that sort rows of keys, each with its place in the row, so that equal keys stay as they came.

A program is the same for all sizes.  On CPUs a work item sorts whole rows by digits of eight bits.  On GPUs all items
sort pairs by a bitonic network, in rows of a power of two: near ones in local memory, far ones by a launch for each
distance.  Which pairs are compared depends on sizes alone, and no two pairs are equal, so every way gives the same.
"""

from __future__ import annotations

from typing import NamedTuple

from nnc_core.base.dtype import DType, boolean, float64, is_float, uint32, uint64
from nnc_core.codegen import OPENCL
from nnc_core.codegen.clike_helpers import Helpers
from nnc_core.codegen.clike_scalars import Scalars

GROUP = 256
BLOCK = 1024
"""Pairs that a group sorts in local memory."""
DIGITS = 256
"""Values of a digit."""

RADIX = """
KERNEL void sort_rows(PARAMETERS) {
  NUMBERS
  uint counts[DIGITS];
  const long me = get_global_id(0), items = get_global_size(0);
  __global key_t *from = (__global key_t *)work + me * count, *to = from + items * count;
  __global uint *from_places = (__global uint *)((__global key_t *)work + 2 * items * count) + me * count;
  __global uint *to_places = from_places + items * count;
  for (long row = me; row < rows; row += items) {
    ROW
    for (long k = 0; k < count; ++k) { PLACE from[k] = KEY; from_places[k] = (uint)k; }
    for (int digit = 0; digit < digits; ++digit) {
      for (int n = 0; n < DIGITS; ++n) counts[n] = 0;
      for (long k = 0; k < count; ++k) ++counts[(from[k] >> (8 * digit)) & (DIGITS - 1)];
      uint before = 0, most = 0;
      for (int n = 0; n < DIGITS; ++n) {
        const uint some = counts[n]; counts[n] = before; before += some; most = max(most, some);
      }
      if (most == (uint)count) continue;
      for (long k = 0; k < count; ++k) {
        const key_t key = from[k];
        const uint target = counts[(key >> (8 * digit)) & (DIGITS - 1)]++;
        to[target] = key; to_places[target] = from_places[k];
      }
      __global key_t *keys = from; from = to; to = keys;
      __global uint *places = from_places; from_places = to_places; to_places = places;
    }
    for (long k = 0; k < count; ++k) { const key_t key = from[k]; const uint place = from_places[k]; SORTED }
  }
}
"""
BITONIC = """
#define SWAPS(a, p, b, q, up) ((((a) > (b)) || ((a) == (b) && (p) > (q))) == (up))

KERNEL void fill(PARAMETERS) {
  NUMBERS
  const long t = get_global_id(0), row = t / wide, k = t % wide;
  __global key_t *keys = (__global key_t *)work;
  __global uint *places = (__global uint *)(keys + pairs);
  if (t >= pairs) return;
  key_t key = ~(key_t)0;
  if (row < rows && k < count) { ROW PLACE key = KEY; }
  keys[t] = key; places[t] = (uint)k;
}

/* Pairs `step` apart, of runs of `size` that go up and down in turn. */
KERNEL void far(PARAMETERS) {
  NUMBERS
  const long t = get_global_id(0), n = t / step * 2 * step + t % step;
  __global key_t *keys = (__global key_t *)work;
  __global uint *places = (__global uint *)(keys + pairs);
  if (n + step >= pairs) return;
  const key_t a = keys[n], b = keys[n + step];
  const uint p = places[n], q = places[n + step];
  if (SWAPS(a, p, b, q, ((n % wide) & size) == 0)) {
    keys[n] = b; keys[n + step] = a; places[n] = q; places[n + step] = p;
  }
}

/* A block in local memory: runs of twice `first` to `size` from runs that are sorted. */
KERNEL void near(PARAMETERS) {
  NUMBERS
  __local key_t near_keys[BLOCK];
  __local uint near_places[BLOCK];
  const long base = (long)get_group_id(0) * BLOCK;
  const int item = get_local_id(0);
  __global key_t *keys = (__global key_t *)work + base;
  __global uint *places = (__global uint *)((__global key_t *)work + pairs) + base;
  for (int n = item; n < BLOCK; n += GROUP) { near_keys[n] = keys[n]; near_places[n] = places[n]; }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (long run = 2 * step; run <= size; run *= 2) {
    for (int apart = (int)min(run / 2, (long)(BLOCK / 2)); apart; apart /= 2) {
      for (int t = item; t < BLOCK / 2; t += GROUP) {
        const int n = t / apart * 2 * apart + t % apart, m = n + apart;
        const key_t a = near_keys[n], b = near_keys[m];
        const uint p = near_places[n], q = near_places[m];
        if (SWAPS(a, p, b, q, (((base + n) % wide) & run) == 0)) {
          near_keys[n] = b; near_keys[m] = a; near_places[n] = q; near_places[m] = p;
        }
      }
      barrier(CLK_LOCAL_MEM_FENCE);
    }
  }
  for (int n = item; n < BLOCK; n += GROUP) { keys[n] = near_keys[n]; places[n] = near_places[n]; }
}

KERNEL void finish(PARAMETERS) {
  NUMBERS
  const long t = get_global_id(0), row = t / count, k = t % count;
  if (row >= rows) return;
  __global key_t *keys = (__global key_t *)work;
  const key_t key = keys[row * wide + k];
  const uint place = ((__global uint *)(keys + pairs))[row * wide + k];
  ROW
  SORTED
}
"""


class SortedRows(NamedTuple):
    """Rows that are sorted, and what becomes of them, as source."""

    key: DType
    """The dtype of keys, an unsigned integer."""
    functions: str
    parameters: str
    numbers: str
    """Declarations of numbers: among them rows, count, wide, pairs, digits; `size` and `step` come with each launch."""
    row: str
    """Statements that place `row`."""
    place: str
    """Statements that place `k` in it."""
    value: str
    """The key at this place."""
    sorted: str
    """Statements for `key` and its `place`, the k-th of the row."""


def sorting_source(rows: SortedRows, helpers: Helpers, grouped: bool) -> str:
    """The kernels that sort."""
    words = {"PARAMETERS": rows.parameters, "NUMBERS": rows.numbers, "ROW": rows.row, "PLACE": rows.place,
             "KEY": rows.value, "SORTED": rows.sorted, "DIGITS": DIGITS, "BLOCK": BLOCK, "GROUP": GROUP}
    preamble = OPENCL.preamble + (OPENCL.float64_preamble if helpers.uses_float64 else "")
    return "\n".join([
        preamble, *helpers.definitions.values(), *[f"#define {word} {text}" for word, text in words.items()],
        f"#define KERNEL {OPENCL.group_of.format(items=GROUP if grouped else 1).strip()} __kernel",
        f"typedef {OPENCL.types[rows.key.name]} key_t;", rows.functions, BITONIC if grouped else RADIX])


def key_dtype(dtype: DType) -> DType:
    """The unsigned integers that values of a dtype are sorted as."""
    return uint64 if dtype.itemsize == 8 else uint32


def key_of(element: str, dtype: DType, scalars: Scalars) -> str:
    """An unsigned integer that lies where the element does in the order of its dtype: NaN above all, zeros equal."""
    wide = key_dtype(dtype)
    unsigned = OPENCL.types[wide.name]
    top = f"(({unsigned})1 << {8 * wide.itemsize - 1})"
    if dtype == boolean or dtype.kind == "u":
        return f"({unsigned})({element})"
    if not is_float(dtype):
        signed = OPENCL.types["int64" if wide == uint64 else "int32"]
        return f"(({unsigned})({signed})({element}) ^ {top})"
    scalars.held(dtype)
    return f"nnc_key({scalars.load(element, dtype)})"


def key_function(dtype: DType, scalars: Scalars) -> str:
    """The function that makes keys of floats."""
    held, wide = scalars.held(dtype), key_dtype(dtype)
    unsigned, bits = OPENCL.types[wide.name], 8 * wide.itemsize - 1
    word = "ulong" if dtype == float64 else "uint"
    return (f"static inline {unsigned} nnc_key({held} x) {{ if (x != x) return ~({unsigned})0; "
            f"const {unsigned} bits = x == 0 ? 0 : as_{word}(x); "
            f"return bits >> {bits} ? ~bits : bits | (({unsigned})1 << {bits}); }}")
