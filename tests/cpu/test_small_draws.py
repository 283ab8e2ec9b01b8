"""Small draws are made ahead together with those that follow: their words are those of the cipher."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.fast_path import closed
from nnc_core.operator.philox import philox_words

DRAWS: list[Callable[[nnc.Generator, int], nnc.Tensor]] = [
    lambda g, n: g.bits(n), lambda g, n: g.bits(n, "uint64"), lambda g, n: g.uniform(n), lambda g, n: g.normal(n),
    lambda g, n: g.uniform(n, dtype="float64"), lambda g, n: g.normal((n, 2), dtype="float64"),
    lambda g, n: g.normal(n, dtype="float16"), lambda g, n: g.uniform(n, dtype="bfloat16"),
    lambda g, n: g.bernoulli(0.3, n), lambda g, n: g.integers(0, 10, n), lambda g, n: g.exponential(n),
    lambda g, n: g.gumbel(n), lambda g, n: g.laplace((n, 1)), lambda g, n: g.logistic(n), lambda g, n: g.permutation(n),
    lambda g, n: g.exponential(n, 2.0, "float64"), lambda g, n: g.laplace(n, dtype="float16"),
]  # fmt: skip


def drawn(seed: int) -> list[bytes]:
    g = nnc.Generator(seed)
    sizes = [0, 1, 3, 8, 16, 17, 63, 64, 65, 500] * 15
    return [DRAWS[i % len(DRAWS)](g, n).numpy().tobytes() for i, n in enumerate(sizes)]


@pytest.mark.parametrize("seed", [0, 2**64 - 1])
def test_draws_do_not_depend_on_what_was_drawn_before(seed: int) -> None:
    first = drawn(seed)
    drawn(seed + 1 if not seed else 1)
    assert drawn(seed) == first
    with closed():
        assert drawn(seed) == first


@pytest.mark.parametrize("start", [0, 61, 253, 2**32 - 2, 2**64 - 3])
def test_words_are_those_of_the_cipher(start: int) -> None:
    g = nnc.Generator(7)
    for k, n in enumerate([8, 8, 1, 64, 33, 8]):
        g.state = (7, (start + k) % 2**64)
        wanted = philox_words(np.array([7, (start + k) % 2**64], np.uint64), n)
        np.testing.assert_array_equal(g.bits(n).numpy(), wanted)


@pytest.mark.parametrize("draw", [lambda g: g.bits(8), lambda g: g.uniform((2, 3)), lambda g: g.normal(8)])
def test_what_was_drawn_is_in_memory_of_its_own(draw: Callable[[nnc.Generator], nnc.Tensor]) -> None:
    g = nnc.Generator(3)
    draw(g)
    x = draw(g)
    g.state = (3, 1)
    before = x.numpy()
    x[...] = 0
    np.testing.assert_array_equal(draw(g).numpy(), before)


@pytest.mark.parametrize("draw", [
    lambda g, n: g.uniform(n), lambda g, n: g.normal(n), lambda g, n: g.normal(n, 1, 2), lambda g, n: g.exponential(n),
    lambda g, n: g.gumbel(n), lambda g, n: g.laplace(n),
])
def test_finished_numbers_are_those_of_a_draw_by_itself(draw: Callable[[nnc.Generator, int], nnc.Tensor]) -> None:
    g = nnc.Generator(11)
    for k in range(150):
        n = (1, 5, 8, 16, 31, 32, 33)[k % 7]
        found, state = draw(g, n).numpy(), g.state
        alone = nnc.Generator(11)
        alone.state = (11, k)
        with closed():
            np.testing.assert_array_equal(draw(alone, n).numpy(), found)
        assert alone.state == state == (11, k + 1)


def test_draws_of_counters_at_their_end_begin_anew() -> None:
    g = nnc.Generator(7)
    g.state = (7, 2**64 - 3)
    for _ in range(5):
        g.normal(8)
    assert g.state == (7, 2)


@pytest.mark.parametrize("span", [3, 10, 2**31 + 1, 2**32 - 1])
def test_words_are_scaled_as_the_operators_scale_them(span: int) -> None:
    draw = [lambda g, n=n: g.integers(-2, span - 2, n) for n in ((), 5, (3, 7), 40_000)]
    found = [d(nnc.Generator(4)).numpy() for d in draw]
    with closed():
        wanted = [d(nnc.Generator(4)).numpy() for d in draw]
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.min() >= -2 and a.max() < span - 2


SAMPLED: list[Callable[[nnc.Generator], nnc.Tensor]] = [
    lambda g: g.poisson(3.0, 8), lambda g: g.poisson(1000.0, (2, 3)), lambda g: g.gamma(0.7, 8),
    lambda g: g.binomial(100, 0.3, (2, 3)), lambda g: g.beta(2.0, 3.0, 8),
    lambda g: g.poisson(nnc.asarray([0.5, 20.0, 0.0, -1.0]), (3, 4)),
    lambda g: g.binomial(nnc.asarray([1, 50, 0]), nnc.asarray([[0.2], [0.9]])),
    lambda g: g.multinomial(nnc.asarray([10, 3]), nnc.asarray([0.2, 0.3, 0.5])),
]  # fmt: skip


@pytest.mark.parametrize("start", [0, 2**64 - 20])
@pytest.mark.parametrize("sample", SAMPLED)
def test_what_is_sampled_ahead_is_that_of_a_draw_by_itself(sample: Callable[[nnc.Generator], nnc.Tensor],
                                                           start: int) -> None:
    g = nnc.Generator(11)
    g.state = (11, start)
    found = [sample(g).numpy() for _ in range(30)]
    for k in (0, 1, 4, 5, 6, 19, 20, 29):
        alone = nnc.Generator(11)
        alone.state = (11, (start + k) % 2**64)
        alone.bits(1)
        alone.state = (11, (start + k) % 2**64)
        np.testing.assert_array_equal(sample(alone).numpy(), found[k])


def test_other_parameters_and_other_seeds_are_other_numbers() -> None:
    g, other = nnc.Generator(1), nnc.Generator(2)
    for _ in range(8):
        first, second = g.poisson(50.0, 8).numpy(), other.poisson(50.0, 8).numpy()
        assert (first != second).any()
    x = g.poisson(50.0, 8)
    kept = x.numpy()
    x[...] = 0
    g.state = (1, 8)
    for _ in range(6):
        g.state = (1, 8)
        np.testing.assert_array_equal(g.poisson(50.0, 8).numpy(), kept)
    assert (g.poisson(5.0, 8).numpy() < 30).all()
