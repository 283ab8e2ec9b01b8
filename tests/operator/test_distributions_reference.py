"""Distributions against SciPy's: frequencies, moments, the words that they are made of, and what is odd."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special
import scipy.stats

from nnc_core.base import dtype as dt
from nnc_core.base.errors import AttributeValueError
from nnc_core.operator.philox import philox_words
from tests.operator.host import host

KEY = np.array([2024, 1], np.uint64)
COUNT = 20_000
LEAST = 1e-3
"""Of p-values: the draws are fixed, so that these tests pass always or never."""


def fits(counts, distribution, support) -> None:
    """Counts of integers against their probabilities, rare ones together."""
    expected = distribution.pmf(support) * counts.sum()
    common = expected >= 8
    found = [*counts[common], counts.sum() - counts[common].sum()]
    wanted = [*expected[common], counts.sum() - expected[common].sum()]
    if wanted[-1] < 8:
        found, wanted = [*found[:-2], found[-2] + found[-1]], [*wanted[:-2], wanted[-2] + wanted[-1]]
    assert scipy.stats.chisquare(found, wanted).pvalue > LEAST


@pytest.mark.parametrize("dtype", [dt.float32, dt.float64], ids=str)
def test_open_uniform_numbers(dtype) -> None:
    drawn = host("open_uniform", KEY, shape=(COUNT,), dtype=dtype)
    bits = 52 if dtype == dt.float64 else 23
    whole = drawn.astype(np.float64) * 2.0 ** (bits + 1)
    assert (whole % 2 == 1).all() and 0 < drawn.min() < drawn.max() < 1
    assert scipy.stats.kstest(drawn.astype(np.float64), "uniform").pvalue > LEAST
    words = philox_words(KEY, 2 * COUNT).astype(np.uint64)
    pairs = words[0::2] << np.uint64(32) | words[1::2]
    tops = pairs >> np.uint64(12) if bits == 52 else words[:COUNT] >> np.uint64(9)
    np.testing.assert_array_equal(whole, 2.0 * tops.astype(np.float64) + 1)


@pytest.mark.parametrize("concentration", [0.05, 0.4, 1.0, 2.5, 40.0, 1e4])
def test_gamma(concentration) -> None:
    a = np.full(COUNT, concentration)
    drawn = host("random_gamma", KEY, a, log=False)
    assert scipy.stats.kstest(drawn, scipy.stats.gamma(concentration).cdf).pvalue > LEAST
    logs = host("random_gamma", KEY, a, log=True)
    np.testing.assert_allclose(np.exp(logs), drawn, rtol=1e-12)


def test_logarithms_of_gamma_numbers_do_not_underflow() -> None:
    logs = host("random_gamma", KEY, np.full(1000, 1e-3), log=True)
    assert np.isfinite(logs).all() and logs.min() < -2000
    exponential = scipy.stats.kstest(-logs * 1e-3, scipy.stats.expon(scale=1).cdf)  # as the concentration goes to 0
    assert exponential.pvalue > LEAST


@pytest.mark.parametrize("rate", [0.02, 0.7, 4.0, 9.99, 10.0, 35.5, 900.0])
def test_poisson(rate) -> None:
    drawn = host("random_poisson", KEY, np.full(COUNT, rate), dtype=dt.int64)
    counts = np.bincount(drawn)
    fits(counts, scipy.stats.poisson(rate), np.arange(len(counts)))


@pytest.mark.parametrize(("trials", "chance"), [
    (1, 0.3), (12, 0.5), (12, 0.95), (19, 0.1), (60, 0.4), (60, 0.7), (5000, 0.002), (5000, 0.3), (10**9, 1e-8),
])
def test_binomial(trials, chance) -> None:
    drawn = host("random_binomial", KEY, np.full(COUNT, trials), np.array(chance), dtype=dt.int64)
    counts = np.bincount(drawn)
    assert len(counts) <= trials + 1
    fits(counts, scipy.stats.binom(trials, chance), np.arange(len(counts)))


def test_counts_that_no_one_counts_one_by_one() -> None:
    drawn = host("random_poisson", KEY, np.full(2000, 1e12), dtype=dt.int64)
    assert abs(scipy.stats.zscore(np.append(drawn, 1e12))[-1]) < 0.1
    np.testing.assert_allclose(drawn.std(), 1e6, rtol=0.1)
    many = host("random_binomial", KEY, np.full(2000, 10**12), np.array(0.25), dtype=dt.int64)
    np.testing.assert_allclose([many.mean(), many.std()], [2.5e11, (1e12 * 3 / 16) ** 0.5], rtol=0.1)


def test_multinomial() -> None:
    p = np.array([0.1, 0.0, 0.5, 0.4])
    drawn = host("random_multinomial", KEY, np.full(3000, 30), np.tile(p * 7, (3000, 1)), dtype=dt.int64)
    assert (drawn.sum(1) == 30).all() and (drawn[:, 1] == 0).all()
    for k in (0, 2, 3):
        counts = np.bincount(drawn[:, k])
        fits(counts, scipy.stats.binom(30, p[k]), np.arange(len(counts)))
    wanted = 30 * (np.diag(p) - np.outer(p, p))
    np.testing.assert_allclose(np.cov(drawn.T), wanted, atol=0.5)


@pytest.mark.parametrize("replace", [True, False])
def test_choices_have_their_weights(replace) -> None:
    weights = np.array([3.0, 0.0, 1.0, 2.0, 2.0])
    firsts = np.zeros(5)
    for draw in range(2000):
        key = np.array([5, draw], np.uint64)
        found = host("random_choice", key, weights, size=1 if replace else 3, replace=replace)
        assert len(set(found.tolist())) == len(found)
        firsts[found[0]] += 1
    assert firsts[1] == 0
    assert scipy.stats.chisquare(firsts[weights > 0], weights[weights > 0] / 8 * 2000).pvalue > LEAST
    many = host("random_choice", KEY, weights, size=COUNT, replace=True)
    assert scipy.stats.chisquare(np.bincount(many)[weights > 0], weights[weights > 0] / 8 * COUNT).pvalue > LEAST


def test_the_second_of_two_that_are_not_put_back() -> None:
    """P(second = j) is a sum over what was taken first."""
    p = np.array([0.5, 0.3, 0.2])
    seconds = np.zeros(3)
    for draw in range(2000):
        found = host("random_choice", np.array([6, draw], np.uint64), p, size=2, replace=False)
        seconds[found[1]] += 1
    wanted = [sum(p[i] * p[j] / (1 - p[i]) for i in range(3) if i != j) for j in range(3)]
    assert scipy.stats.chisquare(seconds, np.array(wanted) * 2000).pvalue > LEAST


@pytest.mark.parametrize("name", ["random_gamma", "random_poisson"])
def test_an_element_depends_on_its_place_and_parameter_alone(name) -> None:
    attributes = {"log": False} if name == "random_gamma" else {"dtype": dt.int64}
    sizes = np.array([0.5, 3.0, 20.0, 100.0] * 5)
    drawn = host(name, KEY, sizes, **attributes)
    others = np.where(np.arange(20) == 7, sizes, 55.0)
    assert host(name, KEY, others, **attributes)[7] == drawn[7]
    np.testing.assert_array_equal(host(name, KEY, sizes[:9], **attributes), drawn[:9])
    other = host(name, np.array([2024, 2], np.uint64), sizes, **attributes)
    assert (other != drawn).any() and len(set(drawn.tolist())) > 10


def test_what_is_odd() -> None:
    odd = np.array([0.0, -1.0, np.nan, np.inf])
    np.testing.assert_array_equal(host("random_gamma", KEY, odd, log=False), [0, np.nan, np.nan, np.inf])
    np.testing.assert_array_equal(host("random_gamma", KEY, odd, log=True), [-np.inf, np.nan, np.nan, np.inf])
    assert host("random_poisson", KEY, odd[:3], dtype=dt.int8).tolist() == [0, 0, 0]
    assert host("random_poisson", KEY, np.array([1e3]), dtype=dt.int8).tolist() == [127]
    chances = np.array([0.0, 1.0, -1.0, 2.0, np.nan])
    assert host("random_binomial", KEY, np.array(9), chances, dtype=dt.int64).tolist() == [0, 9, 0, 9, 0]
    assert host("random_binomial", KEY, np.array(-9), chances, dtype=dt.int64).tolist() == [0] * 5


@pytest.mark.parametrize(("weights", "size", "replace", "said"), [
    ([1.0, -1.0], 1, True, "weight -1.0"), ([1.0, np.nan], 1, True, "weight nan"), ([np.inf], 1, True, "weight inf"),
    ([0.0, 0.0], 1, True, "1 of 0 elements"), ([1.0, 0.0], 2, False, "(?s)2 of 1 elements.*replace=True"),
])
def test_weights_that_nothing_can_be_chosen_by(weights, size, replace, said) -> None:
    with pytest.raises(AttributeValueError, match=said):
        host("random_choice", KEY, np.array(weights), size=size, replace=replace)
