"""Progressions against Python; random numbers against published vectors, a plain cipher and statistics."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

from nnc_core.base import dtype as dt
from nnc_core.base.dtype import FLOATS
from nnc_core.operator.philox import philox_blocks, philox_words
from nnc_core.symbol import Number
from tests.operator.host import host


def test_progressions(rng) -> None:
    def progression(start, step, size, dtype):
        wide = dt.accumulator(dtype)
        return host("progression", start=Number(start, wide), step=Number(step, wide), size=size, dtype=dtype)

    np.testing.assert_array_equal(progression(3, -2, 5, dt.int8), [3, 1, -1, -3, -5])
    np.testing.assert_array_equal(progression(0, 0.1, 50, dt.float64), [0.1 * k for k in range(50)])
    np.testing.assert_array_equal(progression(250, 3, 4, dt.uint8), [250, 253, 0, 3])


# Random123 1.14, tests/kat_vectors: philox4x32 with 10 rounds: counter, key, result
KNOWN_ANSWERS = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    ((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0),
     (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
]  # fmt: skip


def philox(counter, key):
    """Philox4x32-10 of one counter, word by word, as the paper has it."""
    (a, b, c, d), (k0, k1), mask = counter, key, 0xFFFFFFFF
    for _ in range(10):
        first, third = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = third >> 32 ^ b ^ k0, third & mask, first >> 32 ^ d ^ k1, first & mask
        k0, k1 = (k0 + 0x9E3779B9) & mask, (k1 + 0xBB67AE85) & mask
    return a, b, c, d


def words(number):
    return number & 0xFFFFFFFF, number >> 32


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN_ANSWERS)
def test_the_published_vectors(counter, key, expected) -> None:
    assert philox(counter, key) == expected


def test_the_first_block_has_a_published_vector() -> None:
    """Seed 0 and draw 0 make the first block's counter and key zero."""
    assert philox_words(np.zeros(2, np.uint64), 4).tolist() == list(KNOWN_ANSWERS[0][2])


def test_block_counters_and_keys_are_where_they_belong() -> None:
    for (a, b, c, d), (k0, k1), expected in KNOWN_ANSWERS:
        out = np.empty((1, 4), np.uint32)
        philox_blocks(k0 | k1 << 32, c | d << 32, np.array([a | b << 32], np.uint64), out)
        assert out[0].tolist() == list(expected)


@pytest.mark.parametrize("key", [(0, 0), (7, 9), (2**64 - 1, 2**63 + 5)])
def test_random_bits_are_philox_of_block_and_draw(key) -> None:
    seed, draw = key
    stream = [w for block in range(5) for w in philox((*words(block), *words(draw)), words(seed))]
    keys = np.array(key, np.uint64)
    assert host("random_bits", keys, shape=(18,), dtype=dt.uint32).tolist() == stream[:18]
    pairs = [high << 32 | low for high, low in zip(stream[::2], stream[1::2], strict=True)]
    assert host("random_bits", keys, shape=(3, 3), dtype=dt.uint64).reshape(-1).tolist() == pairs[:9]


def test_longer_draws_begin_as_shorter_ones() -> None:
    key = np.array([3, 4], np.uint64)
    long = host("random_bits", key, shape=(70001,), dtype=dt.uint32)
    np.testing.assert_array_equal(host("random_bits", key, shape=(65538,), dtype=dt.uint32), long[:65538])


KEY = np.array([2024, 1], np.uint64)
COUNT = 40_000


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_uniform_numbers_are_uniform(dtype) -> None:
    drawn = host("uniform", KEY, shape=(COUNT,), dtype=dtype).astype(np.float64)
    assert 0 <= drawn.min() <= drawn.max() < 1
    digits = {dt.float64: 53, dt.float32: 24, dt.float16: 11, dt.bfloat16: 8}[dtype]
    np.testing.assert_array_equal(np.floor(drawn * 2.0**digits), drawn * 2.0**digits)
    counts = np.bincount((drawn * 64).astype(int), minlength=64)
    assert scipy.stats.chisquare(counts).pvalue > 1e-3
    assert abs(np.corrcoef(drawn[1:], drawn[:-1])[0, 1]) < 4 / COUNT**0.5


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_normal_numbers_are_normal(dtype) -> None:
    drawn = host("normal", KEY, shape=(COUNT // 100, 100), dtype=dtype).astype(np.float64).reshape(-1)
    assert np.isfinite(drawn).all()
    edges = scipy.stats.norm.ppf(np.arange(1, 64) / 64)
    counts = np.histogram(drawn, [-np.inf, *edges, np.inf])[0]
    if dtype.itemsize > 2:  # half floats are too coarse for bins of equal probability
        assert scipy.stats.chisquare(counts).pvalue > 1e-3
    assert abs(drawn.mean()) < 4 / COUNT**0.5
    assert abs(drawn.var() - 1) < 4 * (2 / COUNT) ** 0.5
    assert abs((drawn**3).mean()) < 4 * (15 / COUNT) ** 0.5


def test_normal_numbers_are_box_and_mullers() -> None:
    u = host("uniform", KEY, shape=(50, 2), dtype=dt.float64)
    expected = [math.sqrt(-2 * math.log(1 - a)) * math.cos(2 * math.pi * b) for a, b in u]
    np.testing.assert_allclose(host("normal", KEY, shape=(50,), dtype=dt.float64), expected, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("probability", [0.0, 0.1, 0.5, 0.999, 1.0])
def test_bernoulli_has_its_probability(probability) -> None:
    drawn = host("bernoulli", KEY, shape=(COUNT,), probability=probability)
    spread = (probability * (1 - probability) / COUNT) ** 0.5
    assert abs(drawn.mean() - probability) <= 4 * spread
    bits = host("random_bits", KEY, shape=(COUNT,), dtype=dt.uint32).astype(np.float64)
    np.testing.assert_array_equal(drawn, bits < probability * 2.0**32)


@pytest.mark.parametrize(("size", "below"), [(0, 0), (0, 9), (1, 1), (9, 9), (5, 2**32), (300, 1000), (2000, 2001)])
def test_distinct_integers_are_the_first_of_a_stream_that_differ(size, below) -> None:
    words = host("random_bits", KEY, shape=(40 * size + 8,), dtype=dt.uint64).tolist()
    stream = dict.fromkeys([word * below >> 64 for word in words])
    found = host("distinct_integers", KEY, size=size, below=below)
    assert found.dtype == np.int64 and found.tolist() == list(stream)[:size]


def test_each_of_distinct_integers_is_as_likely_as_any_other() -> None:
    drawn = np.stack([host("distinct_integers", np.array([5, k], np.uint64), size=2, below=4) for k in range(3000)])
    counts = np.bincount(drawn[:, 0] * 4 + drawn[:, 1], minlength=16).reshape(4, 4)
    assert not counts.diagonal().any()
    assert scipy.stats.chisquare(counts[~np.eye(4, dtype=bool)]).pvalue > 1e-3


@pytest.mark.parametrize("size", [0, 1, 9, 500])
def test_a_permutation_sorts_the_words_of_its_key(size) -> None:
    words = host("random_bits", KEY, shape=(size,), dtype=dt.uint64).tolist()
    assert host("permutation", KEY, size=size).tolist() == sorted(range(size), key=lambda i: (words[i], i))
