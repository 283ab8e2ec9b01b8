"""Random graphs, computed with fusion and without."""

from __future__ import annotations

from random import Random
from typing import Any

from nnc_core.base.config import config
from nnc_core.base.errors import Error
from nnc_core.graph import SymbolicGraph
from nnc_core.stacks import Stack
from nnc_core.symbol import postorder
from nnc_plugins.conformance.agreement import same_bits
from nnc_plugins.conformance.running import called
from tests.engine.fusible_graphs import grow_fusible
from tests.graph.strategies import RandomGraph, grow_graph
from tests.optimiser.random_operators import grow_over_operators


def grown(seed: int) -> RandomGraph:
    random = Random(seed)
    if seed % 3 == 0:
        return grow_fusible(random, random.randint(2, 24))
    return grow_over_operators(random, random.randint(2, 24)) if seed % 3 == 1 else grow_graph(
        random, random.randint(2, 30))


def assert_fused_as_apart(seed: int, stack: Stack) -> None:
    """Both give the same bits, or errors of one class."""
    found = grown(seed)
    outputs = {f"y{i}": y for i, y in enumerate(found.outputs)}
    read = set(postorder(outputs.values()))
    inputs = {f"x{i}": p for i, p in enumerate(found.placeholders) if p in read}
    if not outputs:
        return
    results: list[Any] = []
    for fusion in (True, False):
        with config.using(fusion=fusion, deterministic=True):
            try:
                run = stack.engine.compile(SymbolicGraph(inputs, outputs))
                results.append(called(run, {name: found.values[p] for name, p in inputs.items()}))
            except Error as error:
                results.append(error)
    fused, apart = results
    if isinstance(fused, Error) or isinstance(apart, Error):
        assert type(fused) is type(apart)
        return
    for name in fused:
        assert same_bits(fused[name], apart[name]).all(), name
