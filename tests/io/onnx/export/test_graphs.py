"""Graphs: sizes with names, sizes that depend on data, loops and branches, names, and what cannot be said."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
import pytest

import nnc_core as nnc
from nnc_core.base.errors import NotSupportedError, OperandError
from nnc_core.graph import SymbolicGraph
from nnc_core.io import load_onnx, to_onnx
from tests.io.onnx.export.evaluating import HAS_RUNTIME, by_reference, by_runtime, check
from tests.support import numbers

ENGINES = [by_reference, pytest.param(by_runtime, marks=pytest.mark.skipif(
    not HAS_RUNTIME, reason="onnxruntime is not installed"))]
Given = Mapping[str, Any]


def graph_of(f: Callable[..., Any], iopairs: Any = (), **shapes: Any) -> SymbolicGraph:
    """The graph of a function, its results called y0, y1, ...; inputs of the specs or shapes that are given."""
    inputs = {name: nnc.var_arr(name, spec.shape, dtype=spec.dtype) if isinstance(spec, nnc.TensorSpec)
              else nnc.var_arr(name, spec) for name, spec in shapes.items()}
    made = f(**inputs)
    results = made if isinstance(made, tuple) else (made,)
    return nnc.export(inputs, {f"y{i}": y for i, y in enumerate(results)}, capture="constant", iopairs=iopairs)


def agrees(graph: SymbolicGraph, evaluate: Callable[..., list[Any]], *calls: Given) -> onnx.ModelProto:
    """The model of a graph, which is valid and gives the graph's values for each of some inputs."""
    model = to_onnx(graph)
    check(model)
    assert to_onnx(load_onnx(model.SerializeToString())) == model
    run = graph.compile("strict:0")
    for given in calls:
        wanted = [x.numpy() for x in run(**given).values()]
        for a, b in zip(evaluate(model, given), wanted, strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    return model


@pytest.mark.parametrize("evaluate", ENGINES)
class TestSizes:
    def test_products_and_quotients_of_names(self, evaluate: Any) -> None:
        n, m = nnc.Dim("n"), nnc.Dim("m")
        graph = graph_of(lambda x: (nnc.reshape(x, (n * m, 4)), nnc.reshape(x, (n, 2, m * 2)),
                                    nnc.broadcast_to(nnc.sum(x, axis=0), (n + 1, m, 4))), x=(n, m, 4))
        agrees(graph, evaluate, {"x": numbers(2, 3, 4)}, {"x": numbers(5, 1, 4)})

    def test_windows_over_named_sizes(self, evaluate: Any) -> None:
        n = nnc.Dim("n")
        graph = graph_of(lambda x: nnc.max_pool2d(x, 3, strides=2, padding=1), x=(1, n, n, 2))
        agrees(graph, evaluate, {"x": numbers(1, 7, 7, 2)}, {"x": numbers(1, 4, 4, 2)})

    def test_sizes_that_depend_on_data(self, evaluate: Any) -> None:
        graph = graph_of(lambda x: nnc.broadcast_to(nnc.nonzero(x > 0)[0], (2, nnc.nonzero(x > 0)[0].shape[0])), x=(6,))
        model = to_onnx(graph)
        check(model)
        x = numbers(6)
        (found,) = evaluate(model, {"x": x})
        assert np.array_equal(found, np.broadcast_to(np.flatnonzero(x > 0), (2, int((x > 0).sum()))))


@pytest.mark.parametrize("evaluate", ENGINES)
class TestControlFlow:
    def test_scan(self, evaluate: Any) -> None:
        def f(x: Any, w: Any) -> Any:
            return nnc.scan(lambda c, row: (nnc.tanh(c @ w + row), c * 2), nnc.zeros((3,)), x)

        agrees(graph_of(f, x=(5, 3), w=(3, 3)), evaluate, {"x": numbers(5, 3), "w": numbers(3, 3, seed=1)})

    def test_while(self, evaluate: Any) -> None:
        def f(x: Any) -> Any:
            return nnc.while_loop(lambda k, y: nnc.sum(y) < 100.0, lambda k, y: (k + 1, y * 2.0),
                                  (nnc.asarray(0), x))

        agrees(graph_of(f, x=(3,)), evaluate, {"x": np.ones(3, np.float32)}, {"x": np.full(3, 99, np.float32)})

    def test_branches(self, evaluate: Any) -> None:
        def f(i: Any, x: Any) -> Any:
            return nnc.case_of(i, [lambda x: (x,), lambda x: (x * 2.0,), lambda x: (-x,)], (x,))

        graph = graph_of(f, i=nnc.TensorSpec((), np.dtype(np.int32)), x=(3,))
        agrees(graph, evaluate, *[{"i": np.asarray(i, np.int32), "x": numbers(3)} for i in range(3)])

    def test_loops_within_branches(self, evaluate: Any) -> None:
        def twice(x: Any) -> Any:
            return nnc.scan(lambda c, row: (c + row, c), nnc.zeros((2,)), x)[0]

        graph = graph_of(lambda x: nnc.cond(nnc.sum(x) > 0, twice, lambda x: x[0], x), x=(4, 2))
        agrees(graph, evaluate, {"x": np.ones((4, 2), np.float32)}, {"x": -np.ones((4, 2), np.float32)})


def test_names_and_parameters_stay() -> None:
    n = nnc.Dim("n")
    graph = graph_of(lambda x, w: (x @ w, w), x=(n, 3), w=(3, 2))
    w = numbers(3, 2)
    model = to_onnx(graph, parameters={"w": w})
    check(model)
    assert [x.name for x in model.graph.input] == ["x"] and [y.name for y in model.graph.output] == ["y0", "y1"]
    again = load_onnx(model.SerializeToString())
    assert set(again.named_parameters()) == {"w"}
    made = again.graph()
    assert set(made.inputs) == {"x", "w"} and set(made.outputs) == {"y0", "y1"}
    assert made.inputs["x"].spec == graph.inputs["x"].spec
    with pytest.raises(OperandError, match="no input 'v'"):
        to_onnx(graph, parameters={"v": w})


def test_outputs_that_are_inputs_and_each_other() -> None:
    graph = graph_of(lambda x: (x, x + 1.0, x + 1.0), x=(2,))
    agrees(graph, by_reference, {"x": numbers(2)})


def test_a_parameter_read_in_two_orders() -> None:
    graph = graph_of(lambda x, w: (x @ w, nnc.permute_dims(w, (1, 0)), x @ w.T), x=(3, 3), w=(3, 3))
    w, x = numbers(3, 3), numbers(3, 3, seed=1)
    model = to_onnx(graph, parameters={"w": w})
    found = by_reference(model, {"x": x})
    for a, b in zip(found, (x @ w, w.T, x @ w.T), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_everything_that_cannot_be_said_is_one_error() -> None:
    def f(x: Any) -> Any:
        return nnc.lgamma(x), nnc.lgamma(x + 1.0), nnc.linalg.inv(x), nnc.fft.fft(x)

    with pytest.raises(NotSupportedError) as caught:
        to_onnx(graph_of(f, x=(3, 3)))
    text = str(caught.value)
    assert "lgamma (2 times at test_graphs.py" in text and "inv (at test_graphs.py" in text
    assert "fft" in text and "complex64" in text


def test_half_precision() -> None:
    dtype = np.dtype(np.float16)
    graph = graph_of(lambda x: nnc.softmax(nnc.sum(nnc.exp(x), axis=0)), x=nnc.TensorSpec((4, 3), dtype))
    model = to_onnx(graph)
    check(model)
    assert model.opset_import[0].version == 21
    assert to_onnx(graph_of(lambda x: x + x, x=nnc.TensorSpec((2,), nnc.bfloat16))).opset_import[0].version == 23
