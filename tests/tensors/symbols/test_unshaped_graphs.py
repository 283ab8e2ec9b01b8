"""Symbols of unknown shape: what is evaluated when, and graphs made of them."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.errors import UnassignedError
from nnc_core.symbols.symbolic import SYMBOLS
from tests.tensors.faults import fails
from tests.tensors.symbols.evaluations import evaluations
from tests.tensors.symbols.unshaped import SHAPES, host, value

pytestmark = pytest.mark.filterwarnings("ignore:.* has no kernel")  # linear algebra


# ---- evaluation
def test_only_what_an_assignment_invalidates_runs_again(device: str) -> None:
    a, b = nnc.var_arr("a"), nnc.var_arr("b")
    left, right = nnc.tanh(a), nnc.sum(b * b)
    both = left + right
    assert not nnc.is_assigned(a) and not nnc.is_valid(both)
    with fails(UnassignedError, "has not been evaluated"):
        nnc.unpack_arr(both)
    nnc.assign(a, host(2, 2))
    nnc.assign(b, host(3))
    assert nnc.is_assigned(a) and evaluations(both) == 4 and nnc.is_valid(both)
    assert evaluations(both) == 0 == evaluations(left, right)
    nnc.assign(b, host(3) * 2)
    assert not nnc.is_valid(both) and evaluations(both) == 3
    nnc.assign(b, host(5))
    assert evaluations(both) == 3, "another shape of b leaves what a gives"
    nnc.assign(a, host(4))
    assert evaluations(right) == 0 and evaluations(both) == 2


def test_shapes_that_come_again_are_not_inferred_again(device: str) -> None:
    x = nnc.var_arr("x")
    inferred = []
    y = nnc.grad(lambda z: inferred.append(z.shape) or nnc.sum(z * z))(x)
    for n in (2, 3, 2, 3, 2):
        nnc.assign(x, host(n))
        np.testing.assert_allclose(value(y), 2 * host(n))
    assert inferred == [(2,), (3,)]


def test_arrays_of_former_shapes_are_let_go(device: str) -> None:
    x = nnc.var_arr("x")
    y = nnc.sum(nnc.tanh(x), axis=0)
    gc.collect()
    known = len(SYMBOLS.known)
    for n in (2, 3, 4, 5):
        nnc.assign(x, host(n, n))
        value(y)
        assert len(SYMBOLS.known) == known + 3


def test_symbols_and_what_was_recorded_are_freed(device: str) -> None:
    x = nnc.var_arr("x")
    y = nnc.mean(nnc.exp(x))
    nnc.assign(x, host(2, 2))
    value(y)
    gone = [weakref.ref(x._value), weakref.ref(y._value)]
    del x, y
    gc.collect()
    assert [r() for r in gone] == [None, None]


def test_what_is_frozen_keeps_its_value_and_its_shape(device: str) -> None:
    a, b = nnc.var_arr("a"), nnc.var_arr("b")
    c = nnc.exp(a)
    d = nnc.sum(c) + b
    nnc.assign(a, np.zeros(2))
    nnc.assign(b, np.ones((2, 2)))
    nnc.eval_arr([d])
    nnc.freeze(c)
    nnc.assign(a, np.zeros(5))
    assert nnc.is_frozen(c) and value(d).tolist() == [[3, 3], [3, 3]] and value(c).shape == (2,)
    nnc.unfreeze(c)
    assert not nnc.is_frozen(c) and value(d).tolist() == [[6, 6], [6, 6]]
    nnc.freeze(a)
    with fails(ValueError, "'a'", "frozen", "nnc.unfreeze", line=False):
        nnc.assign(a, np.ones(4))
    nnc.unfreeze(a)
    nnc.assign(a, np.ones(4))


def test_snapshots_hold_the_shape_too(device: str) -> None:
    x = nnc.var_arr("x")
    y = nnc.sum(x, axis=0)
    before = nnc.snapshot(y)
    nnc.assign(x, host(2, 3))
    wanted = value(y)
    taken = nnc.snapshot(y)
    nnc.assign(x, host(4))
    assert value(y).shape == ()
    nnc.restore(taken)
    assert evaluations(y) == 0 and x.shape == (2, 3)
    np.testing.assert_array_equal(nnc.unpack_arr(y), wanted)
    nnc.restore(before)
    assert not nnc.is_assigned(x) and not nnc.is_valid(y)


# ---- graphs
def graph_of_two() -> tuple[nnc.Tensor, nnc.Tensor, Any]:
    x, w = nnc.var_arr("x"), nnc.var_arr("w", (4, 3))
    q, r = nnc.linalg.qr(x @ w)
    gradient = nnc.grad(lambda x: nnc.sum(nnc.tanh(x @ w)))(x)
    return x, w, nnc.make_graph([x, w], {"r": r, "loss": nnc.sum(q * 2, axis=0, keepdims=True), "gradient": gradient})


def test_graphs_are_compiled_for_each_shape_and_kept(device: str) -> None:
    x, w, graph = graph_of_two()
    run = graph.symbolic.compile(device)
    for rows in (5, 7, 5):
        nnc.assign(x, host(rows, 4) ** 3)
        nnc.assign(w, host(4, 3))
        nnc.eval_graph(graph)
        found = run(x=host(rows, 4) ** 3, w=host(4, 3))
        assert list(found) == ["r", "loss", "gradient"]
        for name, t in found.items():
            np.testing.assert_allclose(t.numpy(), nnc.unpack_arr(graph.outputs[name]), rtol=1e-3, atol=1e-4)
    assert len(run.compiled) == 2
    assert run.for_shapes(x=host(5, 4)).memory_plan.peak > 0
    with fails(TypeError, "missing x", "float32[?]", line=False):
        run(w=host(4, 3))


def test_graphs_are_printed_and_drawn_before_shapes_are_known(device: str, tmp_path: Path) -> None:
    x, _, graph = graph_of_two()
    text = str(graph)
    assert "graph(x: float32[?], w: float32[4,3]):" in text and "= qr(" in text and "index=1" in text
    assert "sum(%6, axis=0, keepdims=True)  # test_unshaped_graphs.py:" in text
    assert "qr" in graph.symbolic.to_dot() and "<- x" in graph.symbolic.to_trace()
    assert graph.symbolic.draw(tmp_path / "graph.svg").stat().st_size > 1000
    assert graph.statistics()[:4] == (9, 8, 0, 0)
    nnc.assign(x, host(5, 4))
    nnc.assign(graph.inputs["w"], host(4, 3))
    nnc.eval_graph(graph)
    assert graph.statistics().elements > 0 and graph.statistics().assigned == 2


def test_graphs_are_saved_with_shapes(device: str, tmp_path: Path) -> None:
    x, _, graph = graph_of_two()
    with fails(NotImplementedError, "unknown shape", "specialise", line=False):
        nnc.save_graph(graph.symbolic, tmp_path / "graph")
    with fails(UnassignedError, "'x'", "specialise", line=False):
        graph.symbolic.specialise()
    nnc.assign(x, host(5, 4))
    for made in (graph.symbolic.specialise(), graph.symbolic.specialise(x=nnc.TensorSpec((7, 4), "float32"))):
        nnc.save_graph(made, tmp_path / "graph")
        loaded = nnc.load_graph(tmp_path / "graph")
        assert str(loaded.inputs["x"].spec) == str(made.inputs["x"].spec)
        found = loaded.compile(device)(x=host(*made.inputs["x"].shape), w=host(4, 3))
        assert found["gradient"].shape == made.inputs["x"].shape
    assert graph.symbolic.specialise() is graph.symbolic.specialise(x=host(5, 4))


def test_exports(device: str) -> None:
    x, u = nnc.var_arr("x"), nnc.var_arr("u")
    run = nnc.export({"x": x}, {"y": nnc.exp(x)}).compile(device)
    for shape in SHAPES:
        np.testing.assert_allclose(run(x=host(*shape))["y"].numpy(), np.exp(host(*shape)), rtol=1e-5)
    with fails(ValueError, "'u'", "not among the inputs"):
        nnc.export({"x": x}, {"y": x @ u})
    with fails(ValueError, "'u'", "reaches no output"):
        nnc.export({"x": x, "u": u}, {"y": x + 1})
    hidden = nnc.export({"x": x}, {"y": nnc.grad(lambda y: nnc.sum(y * u))(x)}, name="hidden")
    with fails(ValueError, "'u'", "not among the inputs"):
        hidden.specialise(x=host(2))
    h = x * 2
    cut = nnc.export({"h": h}, {"y": nnc.sum(h, axis=0)}).compile(device)
    np.testing.assert_allclose(cut(h=host(3, 2))["y"].numpy(), host(3, 2).sum(0), rtol=1e-5)


def test_inputs_that_only_functions_read(device: str) -> None:
    """What these read is known when they have run."""
    x, u, w = nnc.var_arr("x"), nnc.var_arr("u"), nnc.var_arr("w")
    gradient = nnc.grad(lambda a: nnc.sum(a * u))(x)
    found = nnc.make_graph([x, u], [gradient]).symbolic.compile(device)(x=np.ones((3, 2)), u=np.full(2, 5.0))
    assert found["out0"].tolist() == [[5.0, 5.0]] * 3
    graph = nnc.make_graph([x, u, w], [gradient])
    with fails(ValueError, "'w'", "reaches no output", line=False):
        graph.symbolic.specialise(x=host(2), u=host(2), w=host(2))
    assert nnc.export({"x": x}, {"y": nnc.zeros_like(x) + 1}).compile(device)(x=host(2, 3))["y"].shape == (2, 3)


def test_what_is_drawn_once_shapes_are_known_is_an_input(device: str) -> None:
    x, g = nnc.var_arr("x"), nnc.var_random(1)
    graph = nnc.make_graph([x], [nnc.dropout(x, 0.5, generator=g)])
    assert graph.symbolic.specialise(x=host(6)).list_inputs() == ["x", "random0"]
    run, key = graph.symbolic.compile(device), np.array([1, 2], np.uint64)
    assert set(np.unique(run(x=np.ones(64), random0=key)["out0"].numpy())) == {0.0, 2.0}


def test_what_cannot_be_with_what_is_assigned_is_not_valid(device: str) -> None:
    x, u = nnc.var_arr("x"), nnc.var_arr("u")
    y, hidden = x @ u, nnc.grad(lambda a: nnc.sum(a * nnc.var_arr("other")))(x)
    nnc.assign(x, host(2, 3))
    nnc.assign(u, host(4, 5))
    assert not nnc.is_valid(y) and not nnc.is_valid(hidden) and not nnc.is_frozen(y)
    assert nnc.make_graph([x, u], [y]).statistics().assigned == 2
    nnc.restore(nnc.snapshot(y))
    with fails(ValueError, operator="matmul"):
        nnc.unpack_arr(y)
    with fails(TypeError, "'x'"):
        x.register_hook(lambda g: None)


def test_values_are_carried_on(device: str) -> None:
    a = nnc.var_arr("a")
    graph = nnc.make_graph([a], {"next": a * 2})
    nnc.make_iopair(graph, "a", "next")
    assert graph.iopairs == (("next", "a"),)
    with fails(UnassignedError, "'next'", "nnc.eval_graph", line=False):
        nnc.update_iopair(graph)
    for shape in ((2,), (2, 2)):
        nnc.assign(a, np.ones(shape))
        for _ in range(3):
            nnc.eval_graph(graph)
            nnc.update_iopair(graph)
        assert nnc.unpack_arr(a).tolist() == np.full(shape, 8.0).tolist()
        assert nnc.is_iopair_safe(graph, "a", "next")
    with fails(ValueError, "no such output or input", line=False):
        nnc.make_iopair(graph, "b", "next")
