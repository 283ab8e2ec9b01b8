"""Owl's way: symbols are assigned and graphs evaluated, again only where an assignment made them invalid."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.symbols.symbolic import SYMBOLS
from tests.tensors.faults import fails

ONES = np.ones((2, 2), np.float32)


def evaluations(*outputs: nnc.Tensor) -> int:
    """How many operators an evaluation runs."""
    before = SYMBOLS.evaluations
    nnc.eval_arr(list(outputs))
    return SYMBOLS.evaluations - before


def test_the_books_first_example(device: str) -> None:
    x, y = nnc.var_arr("x", shape=(2, 2)), nnc.var_elt("y")
    g = x + y
    assert g.is_symbol and g.shape == (2, 2) and not nnc.is_assigned(x)
    nnc.assign(x, ONES)
    nnc.assign(y, 2.0)
    nnc.eval_arr([g])
    np.testing.assert_array_equal(nnc.unpack_arr(g), [[3, 3], [3, 3]])
    assert nnc.is_assigned(x) and nnc.unpack_elt(y) == 2.0


def test_only_what_an_assignment_invalidates_runs_again(device: str) -> None:
    a, b = nnc.var_arr("a", (2, 2)), nnc.var_arr("b", (2, 2))
    left, right = nnc.tanh(a), nnc.sum(b * b)
    both = left + right
    nnc.assign(a, ONES)
    nnc.assign(b, ONES)
    assert evaluations(both) == 4
    assert evaluations(both) == 0 == evaluations(left, right)
    nnc.assign(b, ONES * 2)
    assert evaluations(left) == 0
    assert evaluations(both) == 3
    np.testing.assert_allclose(nnc.unpack_arr(both), np.tanh(ONES) + 16, rtol=1e-6)
    nnc.assign(a, ONES * 0)
    nnc.assign(b, ONES * 0)
    assert evaluations(right) == 2 and evaluations(both) == 2
    np.testing.assert_array_equal(nnc.unpack_arr(both), ONES * 0)


def test_an_assignment_takes_a_copy(device: str) -> None:
    a, host = nnc.var_arr("a", (2,)), np.ones(2, np.float32)
    b = a * 2
    nnc.assign(a, host)
    host[:] = 9
    tensor = nnc.asarray([5.0, 6.0])
    nnc.eval_arr([b])
    assert nnc.unpack_arr(b).tolist() == [2, 2]
    nnc.assign(a, tensor)
    tensor[0] = -1
    nnc.eval_arr([b])
    assert nnc.unpack_arr(b).tolist() == [10, 12]


def test_another_shape_as_long_as_the_operators_take_it(device: str) -> None:
    a, b = nnc.var_arr("a", (2,)), nnc.var_arr("b", (2,))
    c = a + b
    nnc.assign(a, [1.0, 2.0])
    nnc.assign(b, [1.0, 2.0])
    nnc.eval_arr([c])
    nnc.assign(a, [1.0, 2.0, 3.0])
    with fails(ValueError, "float32[3]", "float32[2]", operator="add"):
        nnc.eval_arr([c])
    nnc.assign(b, [1.0, 1.0, 1.0])
    nnc.eval_arr([c])
    assert nnc.unpack_arr(c).tolist() == [2, 3, 4]
    with fails(ValueError, "'a'", "2 dimensions", line=False):
        nnc.assign(a, ONES)


def test_values_are_cast_to_the_symbols_dtype(device: str) -> None:
    a, n = nnc.var_arr("a", (2,), dtype=nnc.int32), nnc.var_elt("n")
    nnc.assign(a, [1, 2])
    nnc.assign(n, 3)
    s = a * n
    nnc.eval_arr([s])
    assert nnc.unpack_arr(a).dtype == np.int32 and nnc.unpack_arr(s).dtype == np.float32
    assert nnc.unpack_arr(s).tolist() == [3.0, 6.0]


def test_what_is_not_assigned_has_no_value(device: str) -> None:
    a = nnc.var_arr("weights", (2,))
    b = a + 1
    with fails(ValueError, "'weights'", "float32[2]", "nnc.assign", line=False):
        nnc.eval_arr([b])
    with fails(ValueError, "not been evaluated", "nnc.eval_arr"):
        nnc.unpack_arr(b)
    with fails(TypeError, "symbol", line=False):
        b.numpy()
    nnc.assign(a, [1.0, 2.0])
    nnc.eval_arr([b])
    assert nnc.unpack_arr(b).tolist() == [2, 3]


@pytest.mark.parametrize("shape", [(2,), None])
def test_a_variable_has_a_value_and_a_symbol_has_none(device: str, shape: Any) -> None:
    with fails(TypeError, "has no value", operator="variable"):
        nnc.variable(nnc.var_arr("a", shape))
    with fails(TypeError, "<lambda>"):
        nnc.jit(lambda x: nnc.variable(x) * 2)(nnc.ones(2))
    with nnc.deferred():
        late = nnc.ones(2) * 3
    assert nnc.variable(late).tolist() == [3.0, 3.0]


@pytest.mark.parametrize("shape", [(2,), (), None])
def test_one_symbol_is_given_by_itself(device: str, shape: Any) -> None:
    a = nnc.var_arr("a", shape)
    b = nnc.exp(a)
    nnc.assign(a, np.zeros(shape or ()))
    nnc.eval_arr(b)
    assert (nnc.unpack_arr(b) == 1).all() and nnc.unpack_arr(b).shape == (shape or ())
    graph = nnc.make_graph(a, b + 1)
    assert graph.symbolic.list_inputs() == ["a"] and graph.symbolic.list_outputs() == ["out0"]


def test_a_name_and_a_shape_are_not_each_other(device: str) -> None:
    with fails(TypeError, "name is (2, 3)", operator="var_arr"):
        nnc.var_arr((2, 3))  # type: ignore[arg-type]
    with fails(TypeError, "name is 1", operator="var_elt"):
        nnc.var_elt(1)  # type: ignore[arg-type]
    with fails(TypeError, "shape is the text 'float32'", operator="var_arr"):
        nnc.var_arr("x", "float32")
    assert str(nnc.var_arr("x", ("float32",)).shape) == "(float32,)"


def test_only_placeholders_are_assigned(device: str) -> None:
    a = nnc.var_arr("a", (2,))
    with fails(ValueError, "no placeholder"):
        nnc.assign(a + 1, [1.0, 2.0])
    with fails(ValueError, "no placeholder", line=False):
        nnc.assign(nnc.ones(2), [1.0, 2.0])


def test_constants_and_captured_tensors(device: str) -> None:
    a = nnc.var_arr("a", (2,))
    b = a * nnc.const_arr([2.0, 3.0]) + nnc.const_elt(1)
    nnc.assign(a, [1.0, 1.0])
    nnc.eval_arr([b])
    assert nnc.unpack_arr(b).tolist() == [3.0, 4.0]


def test_graphs(device: str) -> None:
    x, y = nnc.var_arr("x", (2, 2)), nnc.var_elt("y")
    z = nnc.sum(x * y)
    graph = nnc.make_graph([x, y], [z, x + 1], "both")
    assert graph.symbolic.list_inputs() == ["x", "y"] and graph.symbolic.list_outputs() == ["out0", "out1"]
    assert "both(" in str(graph) and "multiply" in str(graph)
    nnc.assign(x, ONES)
    nnc.assign(y, 3.0)
    nnc.eval_graph(graph)
    assert nnc.unpack_elt(z) == 12.0
    compiled = graph.symbolic.compile(device)(x=ONES, y=nnc.asarray(3.0))
    assert compiled["out0"].item() == 12.0
    with fails(ValueError, "different names", line=False):
        nnc.make_graph([x, nnc.var_arr("x", (2, 2))], [z])


def test_the_same_nodes_in_a_trace_as_in_an_export(device: str) -> None:
    """A graph of symbols and a deferred one are the same graph."""
    s = nnc.var_arr("x", (2, 2))
    t = nnc.asarray(ONES)
    with nnc.deferred():
        deferred = nnc.tanh(t * 2) @ t
    symbolic = nnc.tanh(s * 2) @ s
    graphs = [nnc.export({"x": x}, {"y": y}) for x, y in ((s, symbolic), (t, deferred))]
    assert [n.op.name for n in graphs[0].nodes] == [n.op.name for n in graphs[1].nodes]
    assert [str(n.spec) for n in graphs[0].nodes] == [str(n.spec) for n in graphs[1].nodes]


def test_symbols_and_their_values_are_freed(device: str) -> None:
    a = nnc.var_arr("a", (2,))
    b = nnc.exp(a)
    nnc.assign(a, [1.0, 2.0])
    nnc.eval_arr([b])
    gone = [weakref.ref(a._value), weakref.ref(b._value)]
    del a, b
    gc.collect()
    assert [r() for r in gone] == [None, None]


def test_symbols_are_drawn_into_jit_as_errors(device: str) -> None:
    """A placeholder has no value that compiled code could read."""
    a = nnc.var_arr("a", (3,))
    with fails(TypeError, "symbol float32[3]", line=False):
        nnc.jit(lambda x: x + a)(nnc.ones(3))


# ---- what is invalid has no value
def test_a_value_that_became_invalid_is_not_given_out(device: str) -> None:
    a, b = nnc.var_arr("a", (2,)), nnc.var_arr("b", (2,))
    c = nnc.exp(a)
    d = c + b
    nnc.assign(a, [0.0, 0.0])
    nnc.assign(b, [1.0, 2.0])
    nnc.eval_arr([d])
    assert nnc.is_valid(c) and nnc.is_valid(d) and nnc.unpack_arr(c).tolist() == [1, 1]
    nnc.assign(b, [5.0, 6.0])
    assert nnc.is_valid(c) and not nnc.is_valid(d)
    with fails(ValueError, "not been evaluated since it became invalid"):
        nnc.unpack_arr(d)
    assert nnc.unpack_arr(c).tolist() == [1, 1]
    assert evaluations(d) == 1 and nnc.unpack_arr(d).tolist() == [6, 7]


def test_errors_of_an_evaluation_keep_the_line_and_what_was_done_before(device: str) -> None:
    """The parent's defect "lost line"."""
    a, b = nnc.var_arr("a", (2,)), nnc.var_arr("b", (2,))
    early = nnc.tanh(a)
    late = early + b
    nnc.assign(a, [1.0, 2.0])
    nnc.assign(b, [1.0, 2.0, 3.0])
    with fails(ValueError, "float32[2]", "float32[3]", operator="add"):
        nnc.eval_arr([late])
    assert nnc.is_valid(early) and not nnc.is_valid(late)
    nnc.assign(b, [1.0, 1.0])
    assert evaluations(late) == 1, "what was computed before the error is not computed again"


def test_eval_of_what_is_none_of_its_symbols(x: nnc.Tensor) -> None:
    with fails(TypeError, "ndarray is no tensor", line=False):
        nnc.eval_arr([ONES])
    nnc.eval_arr([x])
    np.testing.assert_array_equal(nnc.unpack_arr(x), x.numpy())

    def traced(y: nnc.Tensor) -> nnc.Tensor:
        nnc.eval_arr([y + 1])
        return y

    with fails(TypeError, "has no value here", line=False):
        nnc.jit(traced)(x)


@pytest.mark.parametrize("shape", [(2,), None])
def test_what_is_invalidated_is_evaluated_anew(device: str, shape: Any) -> None:
    a, outside = nnc.var_arr("a", shape), [1.0]
    read = nnc.delay(lambda x: x * 0 + outside[0], a)
    total = nnc.sum(read)
    other = a + 1
    nnc.invalidate(total)
    nnc.assign(a, [0.0, 0.0])
    nnc.eval_arr([total, other])
    outside[0] = 5.0
    assert evaluations(total) == 0 and nnc.unpack_elt(total) == 2
    nnc.invalidate(read)
    assert not nnc.is_valid(read) and not nnc.is_valid(total) and nnc.is_valid(other)
    assert evaluations(total) == 2 and nnc.unpack_elt(total) == 10
    nnc.invalidate(a)
    assert nnc.is_assigned(a) and nnc.is_valid(a) and not nnc.is_valid(other)
    assert evaluations(total, other) == 3
    nnc.freeze(read)
    with fails(ValueError, "frozen", "nnc.unfreeze"):
        nnc.invalidate(read)
    nnc.unfreeze(read)
    nnc.invalidate(nnc.ones(2))


# ---- sizes
def test_another_shape_where_an_operator_holds_the_declared_one_is_refused(device: str) -> None:
    """The parent's defect "baked shape"."""
    a = nnc.var_arr("a", (2,))
    whole = a[:]
    flat = nnc.reshape(a, (1, 2))
    nnc.assign(a, [1.0, 2.0, 3.0])
    with fails(ValueError, "stop=(2,)", "float32[3]", "nnc.Dim", operator="slice"):
        nnc.eval_arr([whole])
    with fails(ValueError, "shape=(1, 2)", "float32[3]", operator="reshape"):
        nnc.eval_arr([flat])
    nnc.assign(a, [1.0, 2.0])
    nnc.eval_arr([whole, flat])
    assert nnc.unpack_arr(flat).tolist() == [[1, 2]]


def test_named_dimensions_follow_what_is_assigned(device: str) -> None:
    n = nnc.Dim("n")
    a, b = nnc.var_arr("a", (n, 3)), nnc.var_arr("b", (n,))
    rest = nnc.reshape(a[:, 1:], (n * 2,)) + nnc.concat([b, b])
    for count in (2, 5, 1):
        host = np.arange(3 * count, dtype=np.float32).reshape(count, 3)
        nnc.assign(a, host)
        nnc.assign(b, np.arange(count))
        nnc.eval_arr([rest])
        np.testing.assert_array_equal(nnc.unpack_arr(rest), host[:, 1:].reshape(-1) + np.tile(np.arange(count), 2))
    nnc.assign(b, np.arange(4))
    with fails(ValueError, "dimension 'n' is 1 in symbol 'a' and 4 in symbol 'b'", line=False):
        nnc.eval_arr([rest])


def test_sizes_that_depend_on_data_and_loops_follow_too(device: str) -> None:
    n = nnc.Dim("n")
    a = nnc.var_arr("a", (n,))
    positive = a[a > 0] * 2
    (doubled,) = nnc.while_loop(lambda x: nnc.sum(x) < 100, lambda x: (x + x,), (a,))
    for host in ([1.0, -1.0, 50.0], [-3.0, 64.0], [2.0, 2.0, 2.0, 2.0]):
        nnc.assign(a, host)
        nnc.eval_arr([positive, doubled])
        assert nnc.unpack_arr(positive).tolist() == [2 * v for v in host if v > 0]
        wanted = np.array(host)
        while wanted.sum() < 100:
            wanted += wanted
        np.testing.assert_array_equal(nnc.unpack_arr(doubled), wanted)


@pytest.mark.parametrize("f", [
    lambda x: nnc.grad(lambda y: nnc.sum(nnc.while_loop(lambda z: nnc.sum(z) < 30, lambda z: (z * z,), (y,))[0]))(x),
    lambda x: nnc.grad(lambda y: nnc.sum(nnc.linalg.expm(y)))(x),
    lambda x: nnc.grad(lambda y: nnc.sum(y[y > 0.4]))(x),
    lambda x: nnc.grad(lambda y: nnc.sum(nnc.unique(y)))(x),
    lambda x: nnc.unique(x, return_counts=True)[1],
])  # fmt: skip
@pytest.mark.filterwarnings("ignore:.* has no kernel")
def test_what_is_counted_and_how_often_loops_ran(device: str, f: Any) -> None:
    """Gradients, too, by sizes that are known only when a symbol is evaluated."""
    x = nnc.var_arr("x", (3, 3))
    found = f(x)
    for host in (np.eye(3) * 0.5 + 1.2, np.full((3, 3), 1.5), np.arange(9.0).reshape(3, 3) / 4):
        nnc.assign(x, host)
        nnc.eval_arr([found])
        np.testing.assert_allclose(nnc.unpack_arr(found), f(nnc.asarray(host.astype("float32"))).numpy(), rtol=1e-4)


def test_sizes_counted_in_deferred_arrays_beside_symbols(device: str) -> None:
    x = nnc.var_arr("x", (3,))
    with nnc.deferred():
        t = nnc.asarray([3.0, 1.0, 3.0, 0.0]) + 0
        y = nnc.concat([nnc.setxor1d(t, x), t[t > 0] * nnc.sum(x)])
    for host in ([1.0, 2.0, 5.0], [7.0, 7.0, 8.0]):
        nnc.assign(x, host)
        nnc.eval_arr(y)
        np.testing.assert_array_equal(nnc.unpack_arr(y), np.concatenate(
            [np.setxor1d([3, 1, 3, 0], host), np.array([3, 1, 3]) * np.sum(host)]))


# ---- random symbols
def test_random_symbols_are_drawn_anew_by_each_evaluation(device: str) -> None:
    g, x = nnc.var_random(7), nnc.var_arr("x", (64,))
    noise = g.normal((64,))
    y, plain = x + noise, nnc.exp(x)
    nnc.assign(x, np.zeros(64))
    draws = []
    for _ in range(3):
        nnc.eval_arr([y, plain])
        draws.append(nnc.unpack_arr(y))
        np.testing.assert_array_equal(nnc.unpack_arr(noise), draws[-1])
    assert all((draws[i] != draws[j]).all() for i, j in ((0, 1), (0, 2), (1, 2)))
    eager = nnc.Generator(7)
    for drawn in draws:
        np.testing.assert_array_equal(eager.normal((64,)).numpy(), drawn, "as the same generator draws eagerly")
    nnc.eval_arr([y])
    assert nnc.is_valid(plain), "what does not depend on a draw stays valid"
    nnc.eval_arr([noise])
    assert nnc.is_valid(noise) and not nnc.is_valid(y), "what depends on an older draw is invalid"


def test_two_draws_of_one_generator_differ_and_one_draw_is_one_value(device: str) -> None:
    g = nnc.var_random(1)
    a, b = g.uniform((32,)), g.uniform((32,))
    same, other = a - a, a - b
    nnc.eval_arr([same, other])
    assert (nnc.unpack_arr(same) == 0).all() and (nnc.unpack_arr(other) != 0).all()


def test_random_symbols_of_all_kinds_in_a_graph_that_is_compiled(device: str) -> None:
    g, x = nnc.var_random(3), nnc.var_arr("x", (8,))
    y = nnc.where(g.bernoulli(0.5, (8,)), x, g.uniform((8,), 1, 2)) + nnc.astype(g.bits((8,)) // 2**31, "float32")
    graph = nnc.make_graph([x], [y], "noisy")
    assert graph.symbolic.list_inputs() == ["x", "random0", "random1", "random2"] == ["x", *graph.random]
    nnc.assign(x, np.ones(8))
    nnc.eval_graph(graph)
    keys = {k: nnc.unpack_arr(t) for k, t in graph.random.items()}
    compiled = graph.symbolic.compile(device)(x=np.ones(8, np.float32), **keys)
    np.testing.assert_array_equal(compiled["out0"].numpy(), nnc.unpack_arr(y))


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

    threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == {0: True, 1: True}


@pytest.mark.parametrize("read", [lambda x: x.shape[0], lambda x: (x * 2).shape[0], lambda x: x.size // 2, len])
def test_a_size_that_python_has_read_is_held(device: str, read: Any) -> None:
    """What is computed from the number would not follow another size."""
    x = nnc.var_arr("x", shape=(2, 2))
    y = nnc.sum(x) / read(x)
    nnc.assign(x, np.ones((2, 2)))
    nnc.eval_arr([y])
    assert nnc.unpack_elt(y) == 2
    with pytest.raises(ValueError, match=r"Python has read its size, at test_symbols\.py"):
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
