"""Numbers put into few groups, by NumPy: the palette of a block, and the code of each of its elements.

Groups of numbers on a line are ranges of the sorted numbers, so that a grouping is a list of cuts, and a sum over a
group a difference of running sums.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nnc_core.base.dtype import DType
from nnc_core.base.errors import AttributeValueError

ROUNDS = 100
"""Most rounds of Lloyd's algorithm for a block."""


class Fit(NamedTuple):
    """palette (2**bits,), and for each element the number of its entry as uint8."""

    palette: Any
    codes: Any


def fit(block: Any, size: int, dtype: DType) -> Fit:
    """Entries of one block of finite numbers in rising order; exact where there are no more numbers than entries.

    Raises AttributeValueError where the dtype of the palette has no number so large.
    """
    numbers, counts = np.unique(np.asarray(block, np.float64) + 0.0, return_counts=True)
    entries = numbers if len(numbers) <= size else centres(numbers, counts, size)
    with np.errstate(over="ignore"):
        held = entries.astype(dtype)
    if not np.isfinite(held.astype(np.float64)).all():
        largest = entries[np.argmax(np.abs(entries))]
        raise AttributeValueError(f"{largest:g} is beyond the range of a palette of {dtype}", operator="palettise",
                                  hint="leave dtype out, or scale the array")
    codes = nearest(np.asarray(block, np.float64), held.astype(np.float64))
    return Fit(np.pad(held, (0, size - len(held)), mode="edge"), codes)


def nearest(block: Any, entries: Any) -> Any:
    """uint8: for each element the nearest of the rising entries, of two equally near ones the smaller one.

    By distances, not by the middles between entries, which may round to an entry.
    """
    if len(entries) < 2:
        return np.zeros(block.shape, np.uint8)
    above = np.clip(np.searchsorted(entries, block), 1, len(entries) - 1)
    with np.errstate(over="ignore"):
        is_below = block - entries[above - 1] <= entries[above] - block
    return (above - is_below).astype(np.uint8)


def centres(numbers: Any, counts: Any, size: int) -> Any:
    """Means of `size` groups of rising numbers with small squares of distances: Lloyd's algorithm, from a start that
    has no chance in it, until a round makes it no better."""
    scale = np.ldexp(1.0, int(np.frexp(np.abs(numbers).max())[1]) - 1)
    scaled = numbers / scale
    shifted = scaled - np.average(scaled, weights=counts)
    sums = _Sums(np.append(0, np.cumsum(counts)), np.append(0.0, np.cumsum(counts * shifted)))
    best = _first_cuts(shifted, counts, size)
    for _ in range(ROUNDS):
        means = sums.means(best)
        cuts = _rising(np.searchsorted(shifted, (means[1:] + means[:-1]) / 2), len(numbers))
        if not sums.gain(cuts) > sums.gain(best):
            break
        best = cuts
    starts = np.append(0, best)
    return np.sort(np.add.reduceat(scaled * counts, starts) / np.add.reduceat(counts, starts)) * scale


class _Sums(NamedTuple):
    """Before each place: how many elements there are, and their sum."""

    counts: Any
    totals: Any

    def means(self, cuts: Any) -> Any:
        return self._between(self.totals, cuts) / self._between(self.counts, cuts)

    def gain(self, cuts: Any) -> float:
        """The decrease in squares from one group around 0 to groups around their means."""
        totals = self._between(self.totals, cuts)
        return float((totals * totals / self._between(self.counts, cuts)).sum())

    @staticmethod
    def _between(sums: Any, cuts: Any) -> Any:
        return np.diff(sums[np.concatenate([[0], cuts, [-1]])])


def _first_cuts(numbers: Any, counts: Any, size: int) -> Any:
    """Cuts that give the integral of the cube root of the density equal parts, which is best for many groups (Panter
    and Dite, 1951); the density between two neighbours is their count over their distance."""
    weights = np.cbrt((counts[1:] + counts[:-1]) / 2) * np.cbrt(np.diff(numbers)) ** 2
    rising = np.cumsum(weights)
    parts = rising[-1] * np.arange(1, size) / size
    return _rising(np.searchsorted(rising, parts) + 1, len(numbers))


def _rising(cuts: Any, count: int) -> Any:
    """The cuts moved where two would be one, so that no group is empty."""
    steps = np.arange(len(cuts))
    rising = np.maximum.accumulate(np.maximum(cuts, 1) - steps)
    return np.minimum(rising, count - len(cuts)) + steps
