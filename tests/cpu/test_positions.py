"""Positions in order, by numbers that hold rank and position: those of a stable sort."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base import dtype as dt
from nnc_core.operator import OPERATORS, ordering
from nnc_cpu import positions
from nnc_cpu.positions import FEW, argsort, permutation
from nnc_cpu.sorting.digits import BITS, sort_by_bits

SIZE = FEW + 3
DTYPES = [d for d in dt.DTYPES.values() if d.kind != "b" and not dt.is_complex(d)]


@pytest.fixture(params=[1, 1 << 60], ids=["machine code", "NumPy"], autouse=True)
def many(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of every length are sorted in one way, or in the other."""
    monkeypatch.setattr(positions, "MANY", request.param)


def numbers(dtype: Any, kind: str) -> Any:
    rng = np.random.default_rng(5)
    if not dt.is_inexact(dtype):
        limits = np.iinfo(dtype)
        least, most = (limits.min, limits.max) if kind == "wide" else (0, 7)
        return rng.integers(least, most, SIZE, dtype, endpoint=True)
    x = rng.standard_normal(SIZE)
    if kind == "few":
        x = np.round(x)
    x[::7] = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 5e-324, 1e-45, -1e-45], len(x[::7]))
    return x.astype(dtype)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("kind", ["wide", "few"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_positions_are_those_of_a_stable_sort(dtype: Any, kind: str, descending: bool) -> None:
    x = numbers(dtype, kind)
    before = x.tobytes()
    np.testing.assert_array_equal(argsort(x, 0, descending), ordering.argsort(x, 0, descending))
    rows = np.stack([x, x[::-1], np.roll(x, 3)])
    for table, axis in ((rows, 1), (rows.T, 0), (rows[None], 2), (rows[:, ::2], 1)):
        found = argsort(table, axis, descending)
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, ordering.argsort(table, axis, descending))
    assert x.tobytes() == before


@pytest.mark.parametrize("share", [2, 64, SIZE])
def test_ranks_whose_upper_bits_are_alike_are_told_apart(share: int) -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(0, 2**63, SIZE).astype(np.uint64) * np.uint64(2)
    x[rng.choice(SIZE, SIZE // share, replace=False)] = (np.uint64(2**60)
                                                         + rng.integers(0, 3, SIZE // share).astype(np.uint64))
    x[0], x[1] = 0, 2**64 - 1
    for descending in (False, True):
        np.testing.assert_array_equal(argsort(x, 0, descending), ordering.argsort(x, 0, descending))


@pytest.mark.parametrize("shape", [(0,), (1,), (FEW,), (3, 0), (0, 600)])
def test_what_is_small_or_empty(shape: tuple[int, ...]) -> None:
    x = np.zeros(shape, np.float32)
    np.testing.assert_array_equal(argsort(x, len(shape) - 1, True), ordering.argsort(x, len(shape) - 1, True))


def test_what_is_nearly_in_order_is_left_to_merging(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.arange(4.0 * FEW, dtype=np.float32)
    x[::100] = 7.0
    wanted = ordering.argsort(x, 0, False), ordering.argsort(x[::-1], 0, False)
    monkeypatch.setattr(positions, "_ranks", None)
    np.testing.assert_array_equal(argsort(x, 0, False), wanted[0])
    np.testing.assert_array_equal(argsort(x[::-1], 0, False), wanted[1])


@pytest.mark.parametrize("size", [0, 1, 100, 70_000])
def test_permutations_are_those_of_the_reference(size: int) -> None:
    key = np.array([3, 9], np.uint64)
    reference = OPERATORS["permutation"].reference
    assert reference is not None
    np.testing.assert_array_equal(permutation(key, size), reference(key, size))
    drawn = nnc.Generator(3)
    drawn.state = (3, 9)
    np.testing.assert_array_equal(drawn.permutation(size).numpy(), reference(key, size))


@pytest.mark.parametrize("size", [0, 1, 2, 1000, 4097])
@pytest.mark.parametrize(("lowest", "end"), [(0, 64), (12, 44), (3, 4), (60, 64), (5, 5)])
def test_words_are_sorted_by_their_bits_and_keep_their_order(size: int, lowest: int, end: int) -> None:
    words = np.random.default_rng(8).integers(0, 2**64, size, np.uint64)
    words[::3] &= np.uint64(0xFFFF)
    key = (words >> np.uint64(lowest)) & np.uint64(2 ** (-(-(end - lowest) // BITS) * BITS) - 1 & 2**64 - 1)
    wanted = words[np.argsort(key, kind="stable")]
    sort_by_bits(words, lowest, end)
    np.testing.assert_array_equal(words, wanted)
