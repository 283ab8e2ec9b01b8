"""Graphs: what they say of themselves, what they refuse, named dimensions, and very long chains."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from nnc_core.base import dtype as dt
from nnc_core.base.errors import Error, GraphError, SymbolicDimensionError, UnconnectedError
from nnc_core.graph import SymbolicGraph
from nnc_core.symbol import Literal, Node, Number, user_line
from nnc_core.type import Dim, TensorSpec
from tests.graph.evaluate import evaluate
from tests.graph.stack import GRAPHS, new_namespace
from tests.sizes import LONG

F4 = TensorSpec((2, 3), dt.float32)


def example() -> SymbolicGraph:
    F = new_namespace()
    x, w = F.placeholder("x", F4), F.placeholder("w", F4)
    F.table.line = "model.py:7 in forward"
    y = F.sum(F.multiply(x, w), axis=(1,), keepdims=True)
    return SymbolicGraph({"x": x, "w": w}, {"y": y, "w'": F.add(w, 1.0)}, (("w'", "w"),), "step")


def test_text_is_typed_and_has_the_lines() -> None:
    assert str(example()) == """\
step(x: float32[2,3], w: float32[2,3]):
  %2: float32[2,3] = multiply(x, w)  # model.py:7 in forward
  %3: float32[2,1] = sum(%2, axis=(1,), keepdims=True)  # model.py:7 in forward
  %4: float32[] = filled(shape=(), number=1.0)  # model.py:7 in forward
  %5: float32[2,3] = add(w, %4)  # model.py:7 in forward
  return y=%3, w'=%5
  w' takes the memory of w"""


def test_source_lines_are_resolved_when_shown() -> None:
    F = new_namespace()
    x = F.placeholder("x", F4)
    F.table.line = user_line()
    graph = SymbolicGraph({"x": x}, {"y": F.exp(x)})
    assert "# test_symbolic.py:" in str(graph) and "in test_source_lines_are_resolved_when_shown" in str(graph)


def test_trace_has_a_line_for_each_edge() -> None:
    assert example().to_trace().splitlines() == ["%2 <- x", "%2 <- w", "%3 <- %2", "%5 <- w", "%5 <- %4"]


def test_dot_has_every_node_and_edge_and_quotes_what_dot_would_read() -> None:
    F = new_namespace()
    x = F.placeholder("x", F4)
    graph = SymbolicGraph({'a"b<c>': x}, {"y": F.negative(x)}, name='say "hi" {1}')
    lines = graph.to_dot().splitlines()
    assert lines[0] == 'digraph "say \\"hi\\" \\{1\\}" {' and lines[-1] == "}"
    assert sum("label=" in line for line in lines) == 2
    assert '  n0 [label="a\\"b\\<c\\> | placeholder | float32[2,3]", style=filled, fillcolor=lightgrey];' in lines
    assert "  n0 -> n1;" in lines


def test_lists_and_complexity() -> None:
    graph = example()
    assert (graph.list_inputs(), graph.list_outputs(), graph.complexity) == (["x", "w"], ["y", "w'"], (6, 5))


def test_an_output_that_depends_on_another_symbol_is_refused() -> None:
    F = new_namespace()
    x, hidden = F.placeholder("x", F4), F.placeholder("hidden", F4)
    with pytest.raises(UnconnectedError, match="depend on 'hidden', which is no input") as caught:
        SymbolicGraph({"x": x}, {"y": F.add(x, hidden)}, name="part")
    assert isinstance(caught.value, ValueError) and caught.value.hint == "add it to inputs: x"


def test_one_symbol_cannot_be_two_inputs() -> None:
    x = new_namespace().placeholder("x", F4)
    with pytest.raises(GraphError, match="two inputs of 'graph' are the same symbol"):
        SymbolicGraph({"a": x, "b": x}, {"y": x})


def test_an_input_has_to_be_a_placeholder() -> None:
    F = new_namespace()
    x = F.placeholder("x", F4)
    with pytest.raises(GraphError, match="'x' of 'graph' is no placeholder but exp"):
        SymbolicGraph({"x": F.exp(x)}, {"y": x})


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ((("z", "x"),), "'z' -> 'x' of 'graph': there is no such output or input"),
        ((("y", "z"),), "'y' -> 'z' of 'graph': there is no such output or input"),
        ((("s", "x"),), r"'s' -> 'x' of 'graph': float32\[\] cannot take the place of float32\[2,3\]"),
        ((("y", "x"), ("y", "v")), "an output of 'graph' is in two iopairs"),
        ((("y", "x"), ("z", "x")), "there is no such output"),
        ((("y", "x"), ("t", "x")), "an input of 'graph' is in two iopairs"),
    ],
)
def test_pairs_that_cannot_share_memory(pairs: tuple[tuple[str, str], ...], message: str) -> None:
    F = new_namespace()
    x, v = F.placeholder("x", F4), F.placeholder("v", F4)
    outputs = {"y": F.exp(x), "s": F.sum(x, axis=(0, 1)), "t": F.sin(v)}
    with pytest.raises(GraphError, match=message):
        SymbolicGraph({"x": x, "v": v}, outputs, pairs)


def test_compiling_without_a_compiler_says_what_registers_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SymbolicGraph, "_compiler", None)
    with pytest.raises(GraphError, match=r"nothing compiles 'step'.*\n.*import nnc_core"):
        example().compile()


def test_a_registered_compiler_gets_the_graph_the_device_and_the_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SymbolicGraph, "_compiler", None)
    seen = []
    SymbolicGraph.register_compiler(lambda *args, **options: seen.append((args, options)))
    graph = example()
    graph.compile("cpu", optimise=False)
    assert seen == [((graph, "cpu"), {"optimise": False})]


def batch_graph() -> SymbolicGraph:
    F, n = new_namespace(), Dim("n")
    x = F.placeholder("x", TensorSpec((n, 4), dt.float32))
    halves = F.reshape(x, shape=(n * 2, 2))
    last = F.slice(halves, start=(n, 0), stop=(n * 2, 2), step=(1, 1))
    ones = F.filled(shape=(n, 1), number=Number(1, dt.float32))
    return SymbolicGraph({"x": x}, {"y": F.concat(last, ones, axis=1)}, name="batch")


def test_named_dimensions_become_numbers_everywhere() -> None:
    graph = batch_graph()
    assert graph.outputs["y"].shape == (Dim("n"), 3)
    fixed = GRAPHS.specialise(graph, {"n": 3})
    assert fixed.inputs["x"].shape == (3, 4) and fixed.outputs["y"].shape == (3, 3)
    assert "n" not in {d for node in fixed.nodes for d in node.shape if isinstance(d, Dim)}
    given = np.arange(12, dtype=np.float32).reshape(3, 4)
    (found,) = evaluate([fixed.outputs["y"]], {fixed.inputs["x"]: given})
    np.testing.assert_array_equal(found, np.concatenate([given.reshape(6, 2)[3:], np.ones((3, 1))], 1))
    assert GRAPHS.specialise(graph, {"n": 0}).outputs["y"].shape == (0, 3)


def test_a_size_that_is_not_given_is_named() -> None:
    with pytest.raises(SymbolicDimensionError, match="no size given for dimension 'n'"):
        GRAPHS.specialise(batch_graph(), {"m": 3})


def test_a_size_that_does_not_fit_names_the_operator() -> None:
    F = new_namespace()
    x = F.placeholder("x", TensorSpec((Dim("n"),), dt.float32))
    graph = SymbolicGraph({"x": x}, {"y": F.reshape(x, shape=(2, 3))})
    assert GRAPHS.specialise(graph, {"n": 6}).outputs["y"].shape == (2, 3)
    with pytest.raises(Error, match=r"reshape: .*has 5 elements"):
        GRAPHS.specialise(graph, {"n": 5})


def test_optimise_and_expand_keep_names_and_pairs() -> None:
    graph = example()
    for other in (GRAPHS.optimise(graph), GRAPHS.expand(graph), GRAPHS.specialise(graph, {})):
        assert (other.list_inputs(), other.list_outputs()) == (graph.list_inputs(), graph.list_outputs())
        assert (other.iopairs, other.name) == (graph.iopairs, graph.name)


def test_expanding_leaves_no_composite() -> None:
    F = new_namespace()
    x = F.placeholder("x", F4)
    labels = F.constant(Literal(np.array([0, 2])), TensorSpec((2,), dt.int64))
    graph = SymbolicGraph({"x": x}, {"y": F.mean(F.cross_entropy(x, labels), axis=(0,))})
    assert all(n.op.decompose is None for n in GRAPHS.expand(graph).nodes)
    kept = GRAPHS.expand(graph, lambda node: node.op.name == "mean")
    assert [n.op.name for n in kept.nodes if n.op.decompose] == ["cross_entropy"]


def chain(length: int) -> SymbolicGraph:
    """`length` nodes, half of which multiply by 1 or -1."""
    F = new_namespace()
    x = y = F.placeholder("x", TensorSpec((), dt.float64))
    for i in range(length // 2):
        y = F.sin(F.multiply(y, 1.0 if i % 2 else -1.0))
    return SymbolicGraph({"x": x}, {"y": y})


def test_a_chain_keeps_its_value_and_has_its_slope() -> None:
    graph = chain(400)
    gradient = GRAPHS.grad(GRAPHS.optimise(graph), "y", ["x"])
    value, slope = evaluate(list(gradient.outputs.values()), {gradient.inputs["x"]: np.array(0.3)})
    sides = [evaluate([graph.outputs["y"]], {graph.inputs["x"]: np.array(0.3 + h)})[0] for h in (-1e-6, 0, 1e-6)]
    np.testing.assert_allclose([value, slope], [sides[1], (sides[2] - sides[0]) / 2e-6], rtol=1e-7)


def test_a_long_chain_is_built_optimised_differentiated_and_freed() -> None:
    length, before = LONG, nodes_alive()
    graph = chain(length)
    assert graph.complexity[0] == length + 3
    optimised = GRAPHS.optimise(graph)
    assert optimised.complexity[0] == 3 * length // 4 + 1  # x * 1 is x, and x * -1 needs no number
    gradient = GRAPHS.grad(optimised, "y", ["x"])
    assert gradient.complexity[0] > length
    assert len(str(graph).splitlines()) == length + 4
    del graph, optimised, gradient
    assert nodes_alive() < before + length / 100


def nodes_alive() -> int:
    gc.collect()
    return sum(isinstance(thing, Node) for thing in gc.get_objects())


def test_attributes_that_differ_in_the_sign_of_zero_are_two_nodes() -> None:
    F = new_namespace()
    x = F.placeholder("x", TensorSpec((1,), dt.float64))
    around = {"low": (1,), "high": (0,), "interior": (0,)}
    plus, minus = F.pad(x, **around, value=0.0), F.pad(x, **around, value=-0.0)
    assert plus is not minus and minus is F.pad(x, **around, value=-0.0) and plus is F.pad(x, **around, value=0.0)
    values = evaluate([plus, minus], {x: np.ones(1)})
    assert [np.signbit(v[0]) for v in values] == [False, True]
