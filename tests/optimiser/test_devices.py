"""Random graphs on a device: compiled with the optimiser as without it."""

from __future__ import annotations

from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nnc_core.base.config import config
from nnc_core.base.errors import Error
from nnc_core.graph import SymbolicGraph
from nnc_core.stacks import stack_for
from nnc_core.symbol import postorder
from nnc_plugins.conformance.agreement import same_bits
from nnc_plugins.conformance.running import called
from tests.graph.strategies import RandomGraph
from tests.optimiser.bounds import FORMULAS, assert_within, evaluated
from tests.optimiser.random_operators import grow_over_operators


@settings(max_examples=settings().max_examples)
@given(st.integers(0, 2**32), st.integers(1, 8))
def test_optimised_is_unoptimised_to_the_bit(seed: int, steps: int) -> None:
    graph = grow_over_operators(Random(seed), steps)
    if not graph.outputs:
        return
    with np.errstate(all="ignore"):
        plain, better = (_results(graph, optimise, deterministic=True) for optimise in (False, True))
    if plain is None:
        return  # an operator refuses what others made
    assert better is not None, "optimised it is refused"
    for name, array in plain.items():
        assert same_bits(array, better[name]).all(), f"{graph.outputs}: {array} became {better[name]}"


@settings(max_examples=settings().max_examples)
@given(st.integers(0, 2**32), st.integers(1, 8))
def test_what_is_compiled_stays_within_the_bounds_of_the_operators(seed: int, steps: int) -> None:
    """Without `config.deterministic`: other kernels, other orders of sums, inexact rewrites."""
    graph = grow_over_operators(Random(seed), steps, FORMULAS)
    if not graph.outputs:
        return
    with np.errstate(all="ignore"):
        found = _results(graph, True, deterministic=False)
        wanted = evaluated(graph)
    if found is None or wanted is None:
        assert found is wanted is None or _results(graph, False, deterministic=False) is None, "optimised it is refused"
        return
    for i, (node, array) in enumerate(zip(graph.outputs, wanted, strict=True)):
        assert_within(node, graph.values, array, found[f"y{i}"], f"{node}")


def _results(graph: RandomGraph, optimise: bool, *,
             deterministic: bool) -> dict[str, np.ndarray] | None:  # type: ignore[type-arg]
    used = set(postorder(graph.outputs))
    inputs = {f"x{i}": x for i, x in enumerate(graph.placeholders) if x in used}
    made = SymbolicGraph(inputs, {f"y{i}": y for i, y in enumerate(graph.outputs)})
    try:
        with config.using(deterministic=deterministic):
            run = stack_for("cpu:0").engine.compile(made, optimise=optimise)
            return called(run, {name: graph.values[x] for name, x in inputs.items()})
    except (Error, ValueError, np.linalg.LinAlgError):
        return None
