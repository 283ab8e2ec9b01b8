"""Owl's way: symbols are assigned and graphs evaluated, again only where an assignment made them invalid."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from tests.tensors.faults import fails
from tests.tensors.symbols.evaluations import evaluations

ONES = np.ones((2, 2), np.float32)


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
