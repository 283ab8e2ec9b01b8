"""Frozen symbols, and pairs of inputs and outputs that share memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from tests.support import at_once
from tests.tensors.faults import fails
from tests.tensors.symbols.evaluations import evaluations


# ---- freezing
def test_what_is_frozen_keeps_its_value(device: str) -> None:
    a, b = nnc.var_arr("a", (2,)), nnc.var_arr("b", (2,))
    c = nnc.exp(a)
    d = c + b
    with fails(ValueError, "no valid value to keep"):
        nnc.freeze(c)
    nnc.assign(a, [0.0, 0.0])
    nnc.assign(b, [1.0, 1.0])
    nnc.eval_arr([d])
    nnc.freeze(c)
    assert nnc.is_frozen(c) and not nnc.is_frozen(d)
    nnc.assign(a, [1.0, 1.0])
    assert evaluations(d) == 0 and nnc.unpack_arr(d).tolist() == [2, 2]
    nnc.assign(b, [5.0, 5.0])
    assert evaluations(d) == 1 and nnc.unpack_arr(d).tolist() == [6, 6]
    nnc.unfreeze(c)
    assert not nnc.is_valid(c) and not nnc.is_valid(d)
    assert evaluations(d) == 2
    np.testing.assert_allclose(nnc.unpack_arr(d), np.exp([1, 1]) + 5, rtol=1e-6)


def test_what_was_computed_from_a_frozen_value_is_computed_again_after_it(device: str) -> None:
    a = nnc.var_arr("a", (1,))
    b = a * 2
    c = b + a
    nnc.assign(a, [1.0])
    nnc.eval_arr([c])
    nnc.freeze(b)
    nnc.assign(a, [10.0])
    nnc.eval_arr([c])
    assert nnc.unpack_arr(c).tolist() == [12.0]
    nnc.unfreeze(b)
    nnc.eval_arr([b])
    assert not nnc.is_valid(c)
    nnc.eval_arr([c])
    assert nnc.unpack_arr(c).tolist() == [30.0]


def test_frozen_placeholders_and_draws(device: str) -> None:
    a, g = nnc.var_arr("weights", (4,)), nnc.var_random(2)
    noise = g.uniform((4,))
    y = a + noise
    nnc.assign(a, np.zeros(4))
    nnc.eval_arr([y])
    nnc.freeze(a, noise, nnc.ones(2))
    kept = nnc.unpack_arr(y)
    assert evaluations(y) == 0
    np.testing.assert_array_equal(nnc.unpack_arr(y), kept)
    with fails(ValueError, "'weights'", "frozen", "nnc.unfreeze", line=False):
        nnc.assign(a, np.ones(4))
    nnc.unfreeze(a, noise)
    nnc.assign(a, np.ones(4))
    nnc.eval_arr([y])
    assert (nnc.unpack_arr(y) >= 1).all() and (nnc.unpack_arr(y) != kept + 1).all()


# ---- iopairs
def test_iopairs_carry_values_on_all_at_once(device: str) -> None:
    """Fibonacci: both inputs change together."""
    a, b = nnc.var_arr("a", (1,)), nnc.var_arr("b", (1,))
    graph = nnc.make_graph([a, b], {"next_a": b + 0, "next_b": a + b})
    nnc.make_iopair(graph, "a", "next_a")
    nnc.make_iopair(graph, "b", "next_b")
    assert graph.iopairs == (("next_a", "a"), ("next_b", "b"))
    nnc.assign(a, [0.0])
    nnc.assign(b, [1.0])
    with fails(ValueError, "'next_a'", "no valid value", "nnc.eval_graph", line=False):
        nnc.update_iopair(graph)
    for _ in range(10):
        nnc.eval_graph(graph)
        nnc.update_iopair(graph)
    assert (nnc.unpack_arr(a).tolist(), nnc.unpack_arr(b).tolist()) == ([55], [89])
    assert graph.statistics().evaluations == 20
    compiled = graph.symbolic.compile(device)
    state = {"a": np.zeros(1, np.float32), "b": np.ones(1, np.float32)}
    for _ in range(10):
        found = compiled(**state)
        state = {"a": found["next_a"], "b": found["next_b"]}
    assert state["b"].tolist() == [89]


def test_pairs_that_cannot_be(device: str) -> None:
    a = nnc.var_arr("a", (2,))
    graph = nnc.make_graph([a], [nnc.sum(a), a * 2, a * 3])
    with fails(ValueError, "float32[]", "float32[2]", line=False):
        nnc.make_iopair(graph, "a", "out0")
    with fails(ValueError, "no such output or input", line=False):
        nnc.make_iopair(graph, "b", "out1")
    nnc.make_iopair(graph, "a", "out1")
    with fails(ValueError, "two iopairs", line=False):
        nnc.make_iopair(graph, "a", "out2")
    assert graph.iopairs == (("out1", "a"),), "an error changes nothing"
    with fails(ValueError, "no input 'b'", "inputs: a", line=False):
        nnc.is_iopair_safe(graph, "b", "out1")


def test_safe_and_unsafe_pairs_give_the_same_values(device: str) -> None:
    """Whether memory is taken over or copied shows in no value."""
    builders = {
        "only reader": (True, lambda a: {"new": a * 2}),
        "other readers before": (True, lambda a: {"new": nnc.exp(a), "seen": nnc.sum(a)}),
        "a reader that needs the output": (False, lambda a: (lambda new: {"new": new, "late": new * a})(a * 2)),
        "such a reader of a view": (False, lambda a: (lambda new: {"new": new, "late": new @ a.T})(a * 2)),
        "a view of itself": (False, lambda a: {"new": a.T}),
        "itself": (True, lambda a: {"new": a}),
    }
    host = np.linspace(0, 1, 9, dtype=np.float32).reshape(3, 3)
    for name, (safe, build) in builders.items():
        a = nnc.var_arr("a", (3, 3))
        graph = nnc.make_graph([a], build(a))
        assert nnc.is_iopair_safe(graph, "a", "new") == safe, name
        plain = graph.symbolic.compile(device)(a=host)
        nnc.make_iopair(graph, "a", "new")
        paired = graph.symbolic.compile(device)(a=host)
        for k, wanted in plain.items():
            np.testing.assert_array_equal(paired[k].numpy(), wanted.numpy(), f"{name}: {k}")


def test_what_a_graph_is_and_what_was_done_with_it(device: str) -> None:
    a, b = nnc.var_arr("a", (2, 3)), nnc.var_arr("b", (2, 3))
    graph = nnc.make_graph([a, b], [nnc.sum(nnc.tanh(a) * b)])
    assert graph.statistics()[:5] == (5, 4, 6 * 4 + 1, 0, 0)
    nnc.assign(a, np.ones((2, 3)))
    assert graph.statistics().assigned == 1
    nnc.assign(b, np.ones((2, 3)))
    nnc.eval_graph(graph)
    nnc.eval_graph(graph)
    assert graph.statistics()[3:] == (2, 5, 3)
    nnc.assign(b, np.zeros((2, 3)))
    nnc.eval_graph(graph)
    assert graph.statistics()[3:] == (2, 5, 5)
    plan = graph.symbolic.compile(device).memory_plan
    assert plan.total <= graph.statistics().elements * 4, "memory is shared"


def test_unused_inputs_of_a_graph(device: str) -> None:
    a, b = nnc.var_arr("a", (2,)), nnc.var_arr("b", (2,))
    with fails(ValueError, "input 'b' reaches no output", line=False):
        nnc.make_graph([a, b], [a + 1])
    assert nnc.make_graph([a, b], [a + 1], on_unused="ignore").symbolic.list_inputs() == ["a", "b"]


def test_two_threads_evaluate_graphs_of_their_own(device: str) -> None:
    found: dict[int, bool] = {}

    def work(k: int) -> None:
        a = nnc.var_arr("a", (8,), device=device)
        y = nnc.sum(nnc.tanh(a) * a)
        good = True
        for i in range(50):
            nnc.assign(a, np.full(8, i + k, np.float32))
            nnc.eval_arr([y])
            good &= bool(np.isclose(nnc.unpack_elt(y), 8 * np.tanh(i + k) * (i + k), rtol=1e-5))
        found[k] = good

    at_once(work, range(2))
    assert found == {0: True, 1: True}


@pytest.mark.parametrize("read", [lambda x: x.shape[0], lambda x: (x * 2).shape[0], lambda x: x.size // 2, len])
def test_a_size_that_python_has_read_is_held(device: str, read: Any) -> None:
    """What is computed from the number would not follow another size."""
    x = nnc.var_arr("x", shape=(2, 2))
    y = nnc.sum(x) / read(x)
    nnc.assign(x, np.ones((2, 2)))
    nnc.eval_arr([y])
    assert nnc.unpack_elt(y) == 2
    with pytest.raises(ValueError, match=r"Python has read its size, at test_symbol_freezing\.py"):
        nnc.assign(x, np.ones((4, 4)))


def test_a_size_with_a_name_that_python_has_read_follows(device: str) -> None:
    x = nnc.var_arr("x", shape=("n", 2))
    y = nnc.sum(x) / x.shape[0]
    for n in (2, 4):
        nnc.assign(x, np.ones((n, 2)))
        nnc.eval_arr([y])
        assert nnc.unpack_elt(y) == 2


def test_gradients_follow_sizes_with_names(device: str) -> None:
    x = nnc.var_arr("x", shape=("n", "m"))
    g, h = nnc.grad(lambda x: nnc.sum(x * x))(x), nnc.grad(lambda x: nnc.mean(x * x))(x)
    for shape in ((2, 3), (4, 5)):
        nnc.assign(x, np.full(shape, 3.0))
        nnc.eval_arr([g, h])
        np.testing.assert_array_equal(nnc.unpack_arr(g), np.full(shape, 6.0))
        np.testing.assert_allclose(nnc.unpack_arr(h), np.full(shape, 6.0 / (shape[0] * shape[1])), rtol=1e-6)
