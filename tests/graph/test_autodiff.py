"""Derivatives of every differentiable operator, of first and second order, against finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from nnc_core.base import dtype as dt
from nnc_core.base.errors import GradientError, GraphError
from nnc_core.graph import SymbolicGraph, forward, reverse
from nnc_core.operator import OPERATORS, Nodes
from nnc_core.symbol import Node, postorder
from nnc_core.type import Op, TensorSpec
from nnc_plugins.conformance.cases import CASES
from tests.graph.derivatives import Derivatives, smooth_cases
from tests.graph.evaluate import evaluate
from tests.graph.stack import GRAPHS, new_namespace

UNDIFFERENTIATED = ("random_gamma", "schur", "hessenberg")
"""Smooth, but without a rule for the derivative: an error says so."""
DIFFERENTIABLE = [op.name for op in OPERATORS.values() if op.differentiable and op.name not in UNDIFFERENTIATED]
F8, I4 = TensorSpec((2, 3), dt.float64), TensorSpec((2, 3), dt.int32)


def assert_near(found, wanted, what: str) -> None:  # type: ignore[no-untyped-def]
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-6, atol=1e-7, err_msg=what)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_first_order(name: str) -> None:
    cases = smooth_cases(name)
    assert cases, f"no smooth case of {name} in nnc_plugins.conformance.cases"
    for case in cases:
        d = Derivatives(name, case)
        assert_near(d.values(d.forward([d.y])), d.differences([d.y]), f"forward: {name}, {case.label}")
        pairing = d.paired(d.w, d.forward([d.y])[0])
        assert_near(d.values([d.along(d.reverse())]), d.values([pairing]), f"reverse: {name}, {case.label}")


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_second_order(name: str) -> None:
    for case in smooth_cases(name):
        d = Derivatives(name, case)
        gradient = d.reverse()
        wanted = d.differences(gradient)
        assert_near(d.values(d.forward(gradient)), wanted, f"forward over reverse: {name}, {case.label}")
        slope = d.along(gradient)  # the second derivative is symmetric: its gradient along v is H v
        one = d.F.full(shape=(), value=1, dtype=dt.float64)
        again = reverse(d.F, postorder([slope]), {id(slope): one}, d.wrt)
        twice = [d.F.zeros_like(x) if g is None else g for g, x in zip(again, d.wrt, strict=True)]
        assert_near(d.values(twice), wanted, f"reverse over reverse: {name}, {case.label}")


@pytest.mark.parametrize("name", [op.name for op in OPERATORS.values() if not op.differentiable])
def test_operators_without_derivative_pass_nothing_on(name: str) -> None:
    op = OPERATORS[name]
    case = CASES[name][0]
    F, rng = new_namespace(), np.random.default_rng(0)
    xs = [F.placeholder("x", TensorSpec(a.shape, a.dtype)) for a in map(np.asarray, case.inputs(rng, case.dtypes[-1]))]
    y = F.apply(op, tuple(xs), case.attribute_values(op, case.dtypes[-1]))
    assert reverse(F, postorder([y]), {id(y): y}, xs) == [None] * len(xs)
    assert forward(F, postorder([y]), {id(x): x for x in xs}, [y]) == [None]


@pytest.mark.parametrize("name", UNDIFFERENTIATED)
def test_a_derivative_that_is_not_known_is_an_error(name: str) -> None:
    op, case = OPERATORS[name], CASES[name][0]
    F, rng = new_namespace(), np.random.default_rng(0)
    xs = [F.placeholder("x", TensorSpec(a.shape, a.dtype)) for a in case.inputs(rng, dt.float64)]
    y = F.apply(op, tuple(xs), case.attribute_values(op, dt.float64))
    with pytest.raises(GradientError, match="stop_gradient"):
        reverse(F, postorder([y]), {id(y): y}, xs)
    with pytest.raises(GradientError, match="stop_gradient"):
        forward(F, postorder([y]), {id(x): x for x in xs}, [y])


def scalar_graph(build, *specs: TensorSpec) -> SymbolicGraph:  # type: ignore[no-untyped-def]
    F = new_namespace()
    xs = {f"x{i}": F.placeholder(f"x{i}", spec) for i, spec in enumerate(specs)}
    return SymbolicGraph(xs, {"y": build(F, *xs.values())})


def total(F: Nodes, x: Node) -> Node:
    return F.sum(x, axis=tuple(range(x.ndim)))


def test_the_gradient_graph_keeps_its_outputs_and_adds_one_for_each_input() -> None:
    graph = GRAPHS.grad(scalar_graph(lambda F, a, b: total(F, F.multiply(a, F.exp(b))), F8, F8), "y", ["x0", "x1"])
    assert graph.list_outputs() == ["y", "dx0", "dx1"]
    a, b = np.arange(6.0).reshape(2, 3), np.linspace(-1, 1, 6).reshape(2, 3)
    _, da, db = evaluate(list(graph.outputs.values()), dict(zip(graph.inputs.values(), (a, b), strict=True)))
    np.testing.assert_allclose(da, np.exp(b))
    np.testing.assert_allclose(db, a * np.exp(b))


def test_an_input_that_the_output_does_not_depend_on_has_gradient_zero() -> None:
    graph = GRAPHS.grad(scalar_graph(lambda F, a, b: total(F, F.add(a, F.stop_gradient(b))), F8, F8), "y", ["x1"])
    (zero,) = evaluate([graph.outputs["dx1"]], {})
    np.testing.assert_array_equal(zero, np.zeros((2, 3)))


def test_composites_without_rules_are_differentiated_through_their_bodies() -> None:
    graph = GRAPHS.grad(scalar_graph(lambda F, a: F.mean(a, axis=(0, 1)), F8), "y", ["x0"])
    (found,) = evaluate([graph.outputs["dx0"]], {graph.inputs["x0"]: np.ones((2, 3))})
    np.testing.assert_allclose(found, np.full((2, 3), 1 / 6))


def test_gradients_of_shared_nodes_add_up() -> None:
    def shared(F: Nodes, a: Node) -> Node:
        b = F.multiply(a, a)
        return total(F, F.add(F.multiply(b, b), b))

    graph = GRAPHS.grad(scalar_graph(shared, F8), "y", ["x0"])
    a = np.linspace(-1, 1, 6).reshape(2, 3)
    (found,) = evaluate([graph.outputs["dx0"]], {graph.inputs["x0"]: a})
    np.testing.assert_allclose(found, 4 * a**3 + 2 * a)


def test_a_gradient_can_be_taken_of_a_gradient() -> None:
    first = GRAPHS.grad(scalar_graph(lambda F, a: total(F, F.power(a, 3.0)), F8), "y", ["x0"])
    F = GRAPHS.optimiser.operator.open()
    summed = SymbolicGraph(first.inputs, {"s": F.sum(first.outputs["dx0"], axis=(0, 1))})
    second = GRAPHS.grad(summed, "s", ["x0"])
    a = np.linspace(1, 2, 6).reshape(2, 3)
    (found,) = evaluate([second.outputs["dx0"]], {second.inputs["x0"]: a})
    np.testing.assert_allclose(found, 6 * a)


def test_a_value_inside_may_be_asked_for_together_with_what_it_depends_on() -> None:
    F = new_namespace()
    x = F.placeholder("x", TensorSpec((), dt.float64))
    middle = F.multiply(x, x)
    y = F.sin(middle)
    one = F.full(shape=(), value=1, dtype=dt.float64)
    found = reverse(F, postorder([y]), {id(y): one}, [middle, x])
    by_middle, by_x = evaluate(found, {x: np.array(0.7)})
    np.testing.assert_allclose([by_middle, by_x], [np.cos(0.49), 1.4 * np.cos(0.49)])


def test_the_tangent_of_a_choice_has_the_shape_of_the_choice() -> None:
    F = new_namespace()
    c, a = F.placeholder("c", TensorSpec((), dt.boolean)), F.placeholder("a", F8)
    b = F.placeholder("b", TensorSpec((), dt.float64))
    y = F.where(c, a, b)
    (tangent,) = forward(F, postorder([y]), {id(b): b}, [y])
    assert tangent.spec == y.spec


@pytest.mark.parametrize(
    ("spec", "output", "wrt", "message"),
    [
        (F8, "z", ["x0"], "'z' is no output"),
        (TensorSpec((), dt.float64), "y", ["x9"], "'x9' is no input"),
        (F8, "y", ["x0"], "only a float scalar has a gradient"),
        (TensorSpec((), dt.int32), "y", ["x0"], "only a float scalar has a gradient"),
    ],
)
def test_gradients_that_are_not_defined(spec: TensorSpec, output: str, wrt: list[str], message: str) -> None:
    graph = scalar_graph(lambda F, a: F.negative(a), spec)
    with pytest.raises(GradientError, match=message) as caught:
        GRAPHS.grad(graph, output, wrt)
    assert isinstance(caught.value, ValueError) and caught.value.hint


def test_integers_have_no_gradient() -> None:
    graph = scalar_graph(lambda F, a, i: total(F, F.multiply(a, i)), F8, I4)
    with pytest.raises(GradientError, match="only floats have a gradient"):
        GRAPHS.grad(graph, "y", ["x1"])


def test_an_output_is_not_replaced_by_a_gradient_of_its_name() -> None:
    graph = scalar_graph(lambda F, a: total(F, a), F8)
    named = SymbolicGraph(graph.inputs, {"y": graph.outputs["y"], "dx0": graph.outputs["y"]})
    with pytest.raises(GraphError, match="'dx0' already"):
        GRAPHS.grad(named, "y", ["x0"])


def test_an_operator_without_rules_is_named() -> None:
    ruleless = Op("mystery", ("x",), (), lambda x: x, reference=np.exp)
    F = new_namespace()
    x = F.placeholder("x", TensorSpec((), dt.float64))
    y = F.apply(ruleless, (x,), ())
    with pytest.raises(GradientError, match="mystery: no rule to differentiate it in reverse mode"):
        reverse(F, postorder([y]), {id(y): y}, [x])
    with pytest.raises(GradientError, match="mystery: no rule to differentiate it in forward mode"):
        forward(F, postorder([y]), {id(x): x}, [y])
