"""How long the memory planners may look for a plan: more steps never give a larger one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nnc_core as nnc
from nnc_core.base.errors import AttributeValueError
from nnc_core.engine.allocation import BUDGET, Lifetime, allocate
from nnc_core.graph import SymbolicGraph

lifetime = st.builds(lambda nbytes, first, length: Lifetime(nbytes, first, first + length), st.integers(1, 400),
                     st.integers(0, 20), st.integers(0, 10))
BUDGETS = (0, 1 << 8, 1 << 12, 1 << 16, 1 << 20, 1 << 22)


@given(st.lists(lifetime, min_size=1, max_size=40))
def test_a_larger_budget_is_never_worse(items: list[Lifetime]) -> None:
    peaks = [allocate(items, alignment=16, budget=budget).peak for budget in BUDGETS]
    assert peaks == sorted(peaks, reverse=True)


def tangled() -> SymbolicGraph:
    """Values of many sizes whose lives overlap without order."""
    rng = np.random.default_rng(4)
    with nnc.use_device("strict:0"), nnc.deferred():
        x = nnc.asarray(np.linspace(-1, 1, 64, dtype=np.float32))
        kept = [nnc.sin(x[: int(n)]) for n in rng.integers(8, 64, 12)]
        for i in range(40):
            a, b = (kept[int(k)] for k in rng.integers(0, len(kept), 2))
            n = min(a.shape[0], b.shape[0])
            kept[int(rng.integers(len(kept)))] = nnc.concat([nnc.flip(a[:n]) * nnc.max(b), nnc.cos(b[: i % 9 + 1])])
        y = nnc.sum(nnc.concat(kept))
    return nnc.export({"x": x}, {"y": y})


def test_more_steps_for_a_graph_are_never_worse() -> None:
    graph = tangled()
    plans = [graph.compile("strict:0", memory_steps=steps).memory_plan for steps in (0, 1 << 16, 1 << 22, BUDGET)]
    assert [p.peak for p in plans] == sorted([p.peak for p in plans], reverse=True)
    assert plans[0].planner == "size_classes" and plans[0].peak > plans[-1].peak
    assert len({p.bound for p in plans}) == 1
    assert graph.compile("strict:0").memory_plan.peak == plans[-1].peak, "the default"


def test_a_setting_for_all_that_is_compiled() -> None:
    graph = tangled()
    with nnc.config.using(memory_steps=0):
        assert graph.compile("strict:0").memory_plan.planner == "size_classes"
        assert graph.compile("strict:0", memory_steps=BUDGET).memory_plan.planner != "size_classes"
    assert nnc.config.memory_steps == BUDGET


@pytest.mark.parametrize("steps", [-1, 1.5, "many"])
def test_nonsense_is_refused(steps: Any) -> None:
    with pytest.raises(AttributeValueError, match="memory_steps"):
        tangled().compile("strict:0", memory_steps=steps)


def test_graphs_with_named_sizes_and_in_stages_pass_it_on() -> None:
    with nnc.use_device("strict:0"):
        x = nnc.var_arr("x", (nnc.Dim("n"), 4))
        named: Any = nnc.export({"x": x}, {"y": nnc.sin(x) + 1}).compile("strict:0", memory_steps=0)
        np.testing.assert_allclose(named(x=np.zeros((3, 4), np.float32))["y"].numpy(), 1)
        x = nnc.asarray(np.array([0, 1, 2, 0, 3], np.float32))
        with nnc.deferred():
            y = nnc.take(x, nnc.nonzero(x)[0]) * 2.0
        staged: Any = nnc.export({"x": x}, {"y": y}).compile("strict:0", memory_steps=0)
        np.testing.assert_allclose(staged(x=x)["y"].numpy(), [2, 4, 6])
        with pytest.raises(AttributeValueError, match="memory_steps"):
            nnc.export({"x": x}, {"y": y}).compile("strict:0", memory_steps=-1)(x=x)
