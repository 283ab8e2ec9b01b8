"""No rewrite changes a value: random graphs before and after, to the bit."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given, settings

from nnc_core.base.config import config
from nnc_core.optimiser import REWRITES, Optimiser, Rewrite
from nnc_core.symbol import postorder
from tests.graph.evaluate import evaluate, same_bits
from tests.graph.stack import OPTIMISER
from tests.graph.strategies import RandomGraph, random_graphs

MORE = settings(max_examples=8 * settings().max_examples)


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
