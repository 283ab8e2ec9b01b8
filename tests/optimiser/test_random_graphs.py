"""No rewrite changes a value: random graphs before and after, to the bit."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from nnc_core.base.config import config
from nnc_core.optimiser import REWRITES, Optimiser, Rewrite
from nnc_core.symbol import postorder
from nnc_plugins.conformance.agreement import same_bits as equal_bits
from tests.graph.evaluate import evaluate, same_bits
from tests.graph.stack import OPTIMISER
from tests.graph.strategies import RandomGraph, random_graphs
from tests.optimiser.bounds import FORMULAS, assert_within, evaluated
from tests.optimiser.helpers import text_of
from tests.optimiser.random_operators import grow_over_operators

MORE = settings(max_examples=8 * settings().max_examples)
MANY = settings(max_examples=300 if settings().max_examples < 100 else 5000)
"""300 graphs in the quick profile, 5,000 in the whole one."""


class ExactOnly(Optimiser):
    """The exact rewrites, with all of constant folding: it computes what the reference computes."""

    def rewrites(self) -> Iterable[Rewrite]:
        return (r for r in REWRITES.values() if r.exact)


def _assert_same(graph: RandomGraph, optimiser: Optimiser) -> None:
    after = optimiser.run(graph.outputs)
    assert [n.spec for n in after] == [n.spec for n in graph.outputs]
    for old, new, a, b in zip(graph.outputs, after, evaluate(graph.outputs, graph.values),
                              evaluate(after, graph.values), strict=True):
        assert same_bits(a, b), f"{old} became {new}: {a} became {b}"


@MORE
@given(random_graphs())
def test_exact_rewrites_keep_every_bit(graph: RandomGraph) -> None:
    _assert_same(graph, ExactOnly(OPTIMISER.operator))


@MORE
@given(random_graphs())
def test_everything_that_runs_under_deterministic_keeps_every_bit(graph: RandomGraph) -> None:
    with config.using(deterministic=True):
        _assert_same(graph, OPTIMISER)


@MORE
@given(random_graphs())
def test_it_ends_and_running_it_again_changes_nothing(graph: RandomGraph) -> None:
    once = OPTIMISER.run(graph.outputs)
    assert [n.spec for n in once] == [n.spec for n in graph.outputs]
    assert OPTIMISER.run(once) == once
    assert len(postorder(once)) <= len(postorder(graph.outputs))


@MANY
@given(st.integers(0, 2**32), st.integers(1, 14))
def test_over_all_operators(seed: int, steps: int) -> None:
    """Under `config.deterministic` every bit is kept; whatever applies, optimising twice is optimising once."""
    graph = grow_over_operators(Random(seed), steps)
    wanted = evaluated(graph)
    if not graph.outputs or wanted is None:
        return
    with config.using(deterministic=True):
        after = OPTIMISER.run(OPTIMISER.recognise(graph.outputs))
    assert [n.spec for n in after] == [n.spec for n in graph.outputs]
    for old, new, a, b in zip(graph.outputs, after, wanted, evaluate(after, graph.values), strict=True):
        assert equal_bits(a, b).all(), f"{old} became {new}: {a} became {b}"
    once = OPTIMISER.run(OPTIMISER.recognise(graph.outputs))
    assert text_of(graph.placeholders, *OPTIMISER.run(once)) == text_of(graph.placeholders, *once)


@MANY
@given(st.integers(0, 2**32), st.integers(1, 14))
def test_what_is_not_exact_stays_within_the_bounds_of_the_operators(seed: int, steps: int) -> None:
    """Without `config.deterministic`, when rewrites may round at other places."""
    graph = grow_over_operators(Random(seed), steps, FORMULAS)
    wanted = evaluated(graph)
    if not graph.outputs or wanted is None:
        return
    with config.using(deterministic=False):
        after = OPTIMISER.run(OPTIMISER.recognise(graph.outputs))
    for old, new, a, b in zip(graph.outputs, after, wanted, evaluate(after, graph.values), strict=True):
        assert_within(old, graph.values, a, b, f"{old} became {new}")
