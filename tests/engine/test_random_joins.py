"""Joins, parts changed and views at random: the same values by every plan."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnc_core.base.config import config
from nnc_core.graph import SymbolicGraph
from nnc_core.operator import Nodes
from nnc_core.stacks import stack_for
from nnc_core.symbol import Node
from nnc_plugins.conformance.running import one_by_one
from tests.engine.conftest import call, floats, graph
from tests.engine.joins import X, watched

# ---- any of this, at random
PARTS = ("exp", "sin", "negative", "join", "join", "stack", "slice", "turn", "put", "mix")


@st.composite
def joiners(draw: st.DrawFn) -> list[tuple[str, int, int, int]]:
    return draw(st.lists(st.tuples(st.sampled_from(PARTS), *[st.integers(0, 20)] * 3), min_size=3, max_size=24))


def grown(F: Nodes, rows: Sequence[tuple[str, int, int, int]]) -> SymbolicGraph:
    """A graph of joins, views and changes of parts, of matrices with two rows or columns and more."""
    x = floats(F, "x", 4, 6)
    pool: list[Node] = [x, F.exp(x)]
    for name, i, j, k in rows:
        a, b = pool[-1 - i % len(pool)], pool[-1 - j % len(pool)]
        axis = k % 2
        if name in ("exp", "sin", "negative"):
            new = getattr(F, name)(a)
        elif name == "mix":
            new = F.multiply(F.tanh(a), F.sum(b, axis=(0, 1)))
        elif name == "turn":
            new = F.permute(a, axes=(1, 0))
        elif name == "slice":
            start = (min(k, a.shape[0] - 1), 0) if axis == 0 else (0, min(k, a.shape[1] - 1))
            new = F.slice(a, start=start, stop=a.shape, step=(1, 1))
        elif name == "put":
            value = F.slice(b, start=(0, 0), stop=tuple(map(min, a.shape, b.shape)), step=(1, 1))
            new = F.update_slice(a, value, start=tuple(n - m for n, m in zip(a.shape, value.shape, strict=True)),
                                 step=(1, 1))
        elif name == "stack":
            new = F.reshape(F.concat(*[F.reshape(v, shape=(*a.shape, 1)) for v in (a, F.cos(a))], axis=2),
                            shape=(a.shape[0], 2 * a.shape[1]))
        else:
            other = 1 - axis
            parts = [v for v in (a, b, pool[-1]) if v.shape[other] == a.shape[other]]
            new = F.concat(*parts, axis=axis)
        if new.shape[0] * new.shape[1] <= 200:
            pool.append(new)
    read = {y for node in pool for y in node.inputs}
    outputs = [y for y in pool if y not in read] + [pool[len(pool) // 2]]
    return graph({"x": x}, {f"y{i}": y for i, y in enumerate(dict.fromkeys(outputs))})


@pytest.mark.parametrize("device", ["strict:0", "strict-align128:0"])
@given(rows=joiners(), optimise=st.booleans())
def test_at_random_what_is_read_is_what_was_written_there(
        device: str, rows: list[tuple[str, int, int, int]], optimise: bool) -> None:
    stack = stack_for(device)
    made = grown(stack.operator.open(), rows)
    run = stack.engine.compile(made, optimise=optimise)
    watched(run, {"x": X})


@pytest.mark.parametrize("device", ["cpu:0", "strict-poison:0", "strict-noviews:0"])
@given(rows=joiners(), optimise=st.booleans())
def test_at_random_the_bits_are_those_of_one_command_after_the_other(
        device: str, rows: list[tuple[str, int, int, int]], optimise: bool) -> None:
    with config.using(deterministic=True):
        stack = stack_for(device)
        made = grown(stack.operator.open(), rows)
        wanted = one_by_one(stack, made, {"x": X})
        run = stack.engine.compile(made, optimise=optimise)
        for _ in range(2):
            for name, y in call(run, x=X).items():
                assert y.tobytes() == wanted[name].tobytes(), f"{name}\n{made}\n{run.explain()}"
