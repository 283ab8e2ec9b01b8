"""Batches: the rows of the data that an update sees.

What batch number i holds depends on i and the seed alone, so that a run goes on where it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from nnc_core.base.errors import DataError
from nnc_core.optim.settings import COUNT, WHOLE, check_all

Rows: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]


class Batch:
    """A way to divide data into batches."""

    def rows(self, i: int, count: int) -> Rows | None:
        """The row numbers of batch i, of `count` rows; None for all."""
        return None

    def batches(self, count: int) -> int:
        """Batches in an epoch."""
        return 1


@dataclass(frozen=True)
class Full(Batch):
    """All rows at once."""


@dataclass(frozen=True)
class Mini(Batch):
    """`size` rows after another, round and round; the last ones of an epoch may be left for the next."""

    size: int

    def __post_init__(self) -> None:
        check_all(self, size=COUNT)

    def rows(self, i: int, count: int) -> Rows:
        return (i * self.size + np.arange(self.size, dtype=np.int64)) % count

    def batches(self, count: int) -> int:
        if count < self.size:
            raise DataError(f"{count} rows make no batch of {self.size}", operator="Mini",
                            hint="smaller ones, or Full()")
        return count // self.size


@dataclass(frozen=True)
class Sample(Batch):
    """`size` rows drawn by chance, with replacement."""

    size: int = 100
    seed: int = 0

    def __post_init__(self) -> None:
        check_all(self, size=COUNT, seed=WHOLE)

    def rows(self, i: int, count: int) -> Rows:
        return np.random.default_rng((self.seed, i)).integers(count, size=self.size)

    def batches(self, count: int) -> int:
        return max(1, count // self.size)


@dataclass(frozen=True)
class Stochastic(Batch):
    """One row drawn by chance."""

    seed: int = 0

    def __post_init__(self) -> None:
        check_all(self, seed=WHOLE)

    def rows(self, i: int, count: int) -> Rows:
        return Sample(1, self.seed).rows(i, count)

    def batches(self, count: int) -> int:
        return count
