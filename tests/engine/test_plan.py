"""Where values lie: aliases, in-place, donation, outputs with memory of their own."""

from __future__ import annotations

import numpy as np

from nnc_core.operator import Nodes
from nnc_core.stacks import Stack
from tests.engine.conftest import call, floats, graph

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def test_views_cost_nothing(stack: Stack, F: Nodes) -> None:
    x = floats(F, "x", 3, 4)
    part = F.slice(F.permute(F.exp(x), axes=(1, 0)), start=(1, 0), stop=(4, 3), step=(2, 1))
    run = stack.engine.compile(graph({"x": x}, {"y": F.negative(part)}))
    assert run.memory_plan.aliases == 2 and run.memory_plan.commands == 2
    np.testing.assert_array_equal(call(run, x=X)["y"], -np.exp(X).T[1:4:2])


def test_a_chain_runs_in_one_piece_of_memory(stack: Stack, F: Nodes) -> None:
    x = floats(F, "x", 1000)
    y = x
    for _ in range(10):
        y = F.sin(F.negative(y))
    run = stack.engine.compile(graph({"x": x}, {"y": y}))
    assert run.memory_plan.peak == 0  # all of it happens in the output
    assert run.memory_plan.overwrites == 19


def test_no_overwriting_what_is_read_through_another_view(stack: Stack, F: Nodes) -> None:
    x = floats(F, "x", 4, 4)
    e = F.exp(x)
    run = stack.engine.compile(graph({"x": x}, {"y": F.sum(F.add(e, F.permute(e, axes=(1, 0))), axis=(0, 1))}))
    given = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)
    e_host = np.exp(given)
    np.testing.assert_allclose(call(run, x=given)["y"], (e_host + e_host.T).sum(), rtol=1e-6)


def test_a_value_read_later_is_not_overwritten(stack: Stack, F: Nodes) -> None:
    x = floats(F, "x", 8)
    a = F.exp(x)
    b = F.negative(a)
    c = F.sin(b)
    run = stack.engine.compile(graph({"x": x}, {"y": F.add(c, a)}))
    given = np.linspace(-1, 1, 8, dtype=np.float32)
    np.testing.assert_array_equal(call(run, x=given)["y"], np.sin(-np.exp(given)) + np.exp(given))


def test_new_state_lands_in_the_memory_of_the_old(stack: Stack, F: Nodes) -> None:
    w, g = floats(F, "w", 100), floats(F, "g", 100)
    g_out = graph({"w": w, "g": g}, {"new": F.subtract(w, F.multiply(g, 0.5))}, ("new", "w"))
    run = stack.engine.compile(g_out)
    assert run.donated == {"w"}
    executor = stack.engine.executor
    arrays = {"w": executor.upload(np.ones(100, np.float32)), "g": executor.upload(np.ones(100, np.float32))}
    result = run.run(arrays)
    np.testing.assert_array_equal(executor.download(result["new"]), np.full(100, 0.5))
    np.testing.assert_array_equal(executor.download(arrays["w"]), np.full(100, 0.5))


def test_updates_wait_for_every_other_reader(stack: Stack, F: Nodes) -> None:
    """The update is listed first, yet what reads the old weight, even through a view, must run before it."""
    w, g = floats(F, "w", 4, 3), floats(F, "g", 4, 3)
    update = F.subtract(w, g)
    readers = {"sum": F.sum(w, axis=(0, 1)), "view": F.exp(F.permute(w, axes=(1, 0)))}
    run = stack.engine.compile(graph({"w": w, "g": g}, {"new": update, **readers}, ("new", "w")))
    assert run.donated == {"w"}
    out = call(run, w=X.T.copy(), g=np.ones((4, 3), np.float32))
    np.testing.assert_array_equal(out["new"], X.T - 1)
    assert out["sum"] == X.sum()
    np.testing.assert_array_equal(out["view"], np.exp(X))


def test_updates_that_read_each_other_stay_right(stack: Stack, F: Nodes) -> None:
    p, q = floats(F, "p", 5), floats(F, "q", 5)
    outputs = {"p2": F.subtract(p, q), "q2": F.subtract(q, p)}
    run = stack.engine.compile(graph({"p": p, "q": q}, outputs, ("p2", "p"), ("q2", "q")))
    assert len(run.donated) <= 1
    a, b = np.arange(5, dtype=np.float32), np.full(5, 10, np.float32)
    out = call(run, p=a, q=b)
    np.testing.assert_array_equal(out["p2"], a - b)
    np.testing.assert_array_equal(out["q2"], b - a)


def test_outputs_that_are_inputs_constants_views_or_equal(stack: Stack, F: Nodes) -> None:
    x = floats(F, "x", 3, 4)
    e = F.exp(x)
    outputs = {"same": x, "number": F.full(shape=(), value=3, dtype=x.dtype), "filled": F.full_like(x, 2), "e": e,
               "again": e, "view": F.permute(e, axes=(1, 0)), "of input": F.reshape(x, shape=(12,))}
    run = stack.engine.compile(graph({"x": x}, outputs))
    out = call(run, x=X)
    np.testing.assert_array_equal(out["same"], X)
    np.testing.assert_array_equal(out["of input"], X.reshape(-1))
    np.testing.assert_array_equal(out["view"], np.exp(X).T)
    np.testing.assert_array_equal(out["again"], np.exp(X))
    np.testing.assert_array_equal(out["filled"], np.full((3, 4), 2))
    assert out["number"] == 3


def test_outputs_are_not_reused_by_the_next_call(stack: Stack, F: Nodes) -> None:
    x = floats(F, "x", 4)
    run = stack.engine.compile(graph({"x": x}, {"y": F.exp(x), "z": x}))
    executor = stack.engine.executor
    first = run.run({"x": executor.upload(np.zeros(4, np.float32))})
    run.run({"x": executor.upload(np.ones(4, np.float32))})
    np.testing.assert_array_equal(executor.download(first["y"]), np.ones(4))
    np.testing.assert_array_equal(executor.download(first["z"]), np.zeros(4))


def test_empty_arrays(stack: Stack, F: Nodes) -> None:
    x = floats(F, "x", 0, 4)
    outputs = {"y": F.exp(F.negative(x)), "s": F.sum(x, axis=(0,)), "t": F.matmul(F.permute(x, axes=(1, 0)), x)}
    out = call(stack.engine.compile(graph({"x": x}, outputs)), x=np.empty((0, 4), np.float32))
    assert out["y"].shape == (0, 4)
    np.testing.assert_array_equal(out["s"], np.zeros(4))
    np.testing.assert_array_equal(out["t"], np.zeros((4, 4)))


def test_the_report(stack: Stack, F: Nodes) -> None:
    x = floats(F, "x", 256)
    a, b = F.exp(x), F.sin(x)
    run = stack.engine.compile(graph({"x": x}, {"y": F.sum(F.multiply(a, b), axis=(0,))}))
    plan = run.memory_plan
    assert plan.peak == plan.bound == 2048 and plan.total == 2048 and plan.ratio == 1.0
    assert "peak 2 KiB" in str(plan)
    assert "multiply(float32[256], float32[256])" in run.explain()
