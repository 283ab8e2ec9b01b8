"""Kernels that sort rows of keys with their places by digits of four bits, the lowest first, on devices with groups.

A group has a tile of a row, each of its items keys that lie side by side.  It counts them by digit, a scan over all
tiles of a row says where each tile's keys of a digit go, and a scan over the items where each item's go.  Keys of a
digit stay as they came, and every number depends on keys alone: nothing is added to by whoever comes first.
"""

from __future__ import annotations

GROUP = 256
BITS = 4
VALUES = 1 << BITS
"""Those of a digit."""
EACH = 8
"""Keys of an item."""
TILE = GROUP * EACH

SCANNED = """
  sums[item] = sum;
  BARRIER
  for (int apart = 1; apart < GROUP; apart *= 2) {
    const uint32 before = item >= apart ? sums[item - apart] : 0;
    BARRIER
    sums[item] += before;
    BARRIER
  }
"""
"""The sums of all items up to each."""
COUNTED = """
  LOCAL(uint32, counts, VALUES * GROUP);
  LOCAL(uint32, sums, GROUP);
  const int64 tiles = (count + TILE - 1) / TILE, row = GROUP_NUMBER / tiles, tile = GROUP_NUMBER % tiles;
  const int item = MEMBER;
  const int64 turn = pairs * (int64)(sizeof(key_type) + sizeof(uint32));
  GLOBAL key_type *from = (GLOBAL key_type *)(work + (step ? turn : 0));
  GLOBAL key_type *to = (GLOBAL key_type *)(work + (step ? 0 : turn));
  GLOBAL uint32 *table = (GLOBAL uint32 *)(work + 2 * turn) + row * VALUES * tiles + tile;
  const int64 first = row * count, begin = tile * TILE + item * EACH;
  const int some = begin < count ? (int)min((int64)EACH, count - begin) : 0;
  for (int v = 0; v < VALUES; ++v) counts[v * GROUP + item] = 0;
  for (int n = 0; n < some; ++n) ++counts[DIGIT(from[first + begin + n]) * GROUP + item];
  BARRIER
  uint32 sum = 0;
  for (int n = item * VALUES; n < (item + 1) * VALUES; ++n) { sum += counts[n]; counts[n] = sum; }
""" + SCANNED + """
  for (int n = item * VALUES; n < (item + 1) * VALUES; ++n) counts[n] += sums[item] - sum;
  BARRIER
"""
"""Where the keys of each digit and item end in their tile, digit by digit and item by item."""
TALLY = COUNTED + """
  if (item < VALUES) {
    table[item * tiles] = counts[item * GROUP + GROUP - 1] - (item ? counts[item * GROUP - 1] : 0);
  }
"""
RANKS = """
  LOCAL(uint32, sums, GROUP);
  const int64 all = (count + TILE - 1) / TILE * VALUES, some = (all + GROUP - 1) / GROUP;
  const int item = MEMBER;
  const int64 begin = min(item * some, all), end = min(begin + some, all);
  GLOBAL uint32 *table = (GLOBAL uint32 *)(work + 2 * pairs * (int64)(sizeof(key_type) + sizeof(uint32)))
    + (int64)GROUP_NUMBER * all;
  uint32 sum = 0;
  for (int64 n = begin; n < end; ++n) sum += table[n];
""" + SCANNED + """
  uint32 before = sums[item] - sum;
  for (int64 n = begin; n < end; ++n) { const uint32 own = table[n]; table[n] = before; before += own; }
"""
"""Where the keys of each digit and tile begin in their row."""
MOVE = COUNTED + """
  GLOBAL uint32 *from_places = (GLOBAL uint32 *)(from + pairs), *to_places = (GLOBAL uint32 *)(to + pairs);
  if (item < VALUES) sums[item] = table[item * tiles] - (item ? counts[item * GROUP - 1] : 0);
  BARRIER
  for (int n = some - 1; n >= 0; --n) {
    const key_type key = from[first + begin + n];
    const int digit = DIGIT(key);
    const int64 target = first + (uint32)(sums[digit] + --counts[digit * GROUP + item]);
    to[target] = key; to_places[target] = from_places[first + begin + n];
  }
"""
BY_DIGITS = {"tally": TALLY, "ranks": RANKS, "move": MOVE}
WORDS = {"VALUES": VALUES, "EACH": EACH, "TILE": TILE, "DIGIT(key)": "(int)(((key) >> size) & (VALUES - 1))"}
"""Those of these texts; `size` of a launch is where a digit begins, `step` tells which of two arrays is read."""
