"""Distributions sampled with machine code have the bits of NumPy's, few or many, of one parameter or of many."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.operator import sampling
from nnc_core.operator.sampling import drawing
from nnc_core.operator.sampling.drawing import ATTEMPT
from nnc_core.operator.sampling.gamma import cos_of_turns
from nnc_cpu.device import CpuDevice
from nnc_cpu.sampling import MANY

DRAWS: dict[str, Callable[[nnc.Generator, int], nnc.Tensor]] = {
    "few events": lambda g, n: g.poisson(3.0, n), "many": lambda g, n: g.poisson(300.0, n),
    "own rates": lambda g, n: g.poisson(nnc.arange(n) % 31),
    "gamma": lambda g, n: g.gamma(2.5, n), "gamma below 1": lambda g, n: g.gamma(0.3, n),
    "own concentrations": lambda g, n: g.gamma((nnc.arange(n) % 7).astype("float32") - 1),
    "few successes": lambda g, n: g.binomial(10, 0.7, n), "more": lambda g, n: g.binomial(1000, 0.3, n),
    "own trials": lambda g, n: g.binomial(nnc.arange(n) % 90, 0.4),
    "multinomial": lambda g, n: g.multinomial(20, [0.2, 0.5, 0.3], n),
    "weights": lambda g, n: g.choice(n, n, weights=nnc.arange(n) + 1),
    "permutation": lambda g, n: g.permutation(n),
    "a few of many": lambda g, n: g.choice(4 * n + 9, min(n, 9), replace=False),
}


@pytest.mark.parametrize("name", DRAWS)
def test_machine_code_and_numpy_draw_the_same(name: str) -> None:
    ours, graphs = nnc.Generator(5), nnc.Generator(5)
    for n in (1, 7, 7, 3, MANY + 3, 20_000, 2):  # a small draw after another one has words that are made ahead
        found = DRAWS[name](ours, n)
        with nnc.config.using(deterministic=True):  # by the commands of graphs
            assert found.numpy().tobytes() == DRAWS[name](graphs, n).numpy().tobytes()


@pytest.mark.parametrize("name", DRAWS)
def test_pieces_are_drawn_as_the_whole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = DRAWS[name](nnc.Generator(5), 1000)
    monkeypatch.setattr(drawing, "PIECE", 64)
    assert DRAWS[name](nnc.Generator(5), 1000).numpy().tobytes() == whole.numpy().tobytes()


def test_alike_and_each_with_its_own_rate_are_drawn_alike() -> None:
    rates = np.full(20_000, 4.5)
    alike = sampling.poisson((3, 1), rates, np.int64)
    rates[-1] = 4.6
    np.testing.assert_array_equal(sampling.poisson((3, 1), rates, np.int64)[:-1], alike[:-1])
    trials = np.full(20_000, 12)
    alike = sampling.binomial((3, 1), trials, 0.6, np.int64)
    trials[-1] = 11
    np.testing.assert_array_equal(sampling.binomial((3, 1), trials, 0.6, np.int64)[:-1], alike[:-1])


def test_words_of_blocks_are_those_of_the_cipher() -> None:
    blocks = CpuDevice(machine_code=True).eager["random_gamma"].tools.blocks  # type: ignore[attr-defined]
    numbers = np.arange(2 * MANY, dtype=np.uint64) * np.uint64(ATTEMPT + 1)
    for seed, draw in ((0, 0), (2**64 - 1, 2**63 + 5)):
        np.testing.assert_array_equal(blocks(seed, draw, numbers), sampling.TOOLS.blocks(seed, draw, numbers))


def test_cosines_of_turns() -> None:
    u = np.random.default_rng(0).random(10_000)
    np.testing.assert_allclose(cos_of_turns(u.copy()), np.cos(2 * np.pi * u), atol=1e-13)
