"""Export: naming both ends of what was recorded, after the fact."""

from __future__ import annotations

import numpy as np
import pytest

import nnc_core as nnc
from tests.dynamic.faults import fails

HOST = np.arange(6, dtype=np.float32).reshape(2, 3)


def run(graph: nnc.SymbolicGraph, device: str, **given: object) -> dict[str, np.ndarray]:
    return {k: t.numpy() for k, t in graph.compile(device)(**given).items()}


def test_the_readme_example(x: nnc.Tensor, device: str) -> None:
    with nnc.deferred():
        y = (x + 5) * (x + 5)
        z = x**2
    graph = nnc.export(inputs={"x": x}, outputs={"y": y, "z": z})
    assert graph.list_inputs() == ["x"] and graph.list_outputs() == ["y", "z"]
    other = HOST - 3
    found = run(graph, device, x=other)
    np.testing.assert_array_equal(found["y"], (other + 5) ** 2)
    np.testing.assert_allclose(found["z"], other**2, rtol=1e-6)
    assert y.is_deferred, "an export computes nothing"
    np.testing.assert_array_equal(y.numpy(), (HOST + 5) ** 2)


def test_it_runs_on_another_device(x: nnc.Tensor) -> None:
    with nnc.deferred():
        y = nnc.sum(x * 2, axis=0)
    graph = nnc.export({"x": x}, {"y": y})
    np.testing.assert_array_equal(run(graph, "strict:0", x=HOST)["y"], HOST.sum(0) * 2)


def test_values_in_between_may_be_inputs(x: nnc.Tensor, device: str) -> None:
    """The graph is cut at a named input, even if that was computed itself."""
    with nnc.deferred():
        a = x * 3
        b = x * 3
        y = a * b
    cut_a = nnc.export({"x": x, "a": a}, {"y": y})
    found = run(cut_a, device, x=HOST, a=np.ones((2, 3), np.float32))
    np.testing.assert_array_equal(found["y"], HOST * 3, "b is another value than a, though computed alike")


def test_exporting_twice_gives_the_same(x: nnc.Tensor, device: str) -> None:
    with nnc.deferred():
        y = nnc.tanh(x)
    first, second = (nnc.export({"x": x}, {"y": y}) for _ in range(2))
    y.realize()
    third = nnc.export({"x": x}, {"y": y})
    assert first.list_inputs() == second.list_inputs() == third.list_inputs() == ["x"]
    assert str(first) == str(second) == str(third)
    results = [run(g, device, x=HOST)["y"] for g in (first, second, third)]
    assert all((r == results[0]).all() for r in results)


def test_another_name_in_another_export(x: nnc.Tensor) -> None:
    with nnc.deferred():
        y = x + 1
    assert nnc.export({"p": x}, {"y": y}).list_inputs() == ["p"]
    assert nnc.export({"q": x}, {"y": y}).list_inputs() == ["q"]


def test_inputs_equal_outputs_views_and_constants_as_outputs(x: nnc.Tensor, device: str) -> None:
    with nnc.deferred():
        y = x + 1
        same = x + 1
        view = x.T
        part = y[0]
        number = nnc.full((2,), 7.0)
    graph = nnc.export({"x": x}, {"x": x, "y": y, "same": same, "view": view, "part": part, "number": number})
    compiled = graph.compile(device)
    given = nnc.asarray(HOST)
    found = compiled(x=given)
    np.testing.assert_array_equal(found["x"].numpy(), HOST)
    np.testing.assert_array_equal(found["view"].numpy(), HOST.T)
    np.testing.assert_array_equal(found["part"].numpy(), HOST[0] + 1)
    np.testing.assert_array_equal(found["number"].numpy(), [7, 7])
    for name in ("y", "same"):
        np.testing.assert_array_equal(found[name].numpy(), HOST + 1)
    for name in found:  # each is a tensor of its own: changing one changes nothing else, nor the next call
        found[name][...] = -1
    np.testing.assert_array_equal(given.numpy(), HOST)
    again = compiled(x=given)
    np.testing.assert_array_equal(again["number"].numpy(), [7, 7])
    np.testing.assert_array_equal(again["x"].numpy(), HOST)


def test_two_calls_have_results_of_their_own(x: nnc.Tensor, device: str) -> None:
    with nnc.deferred():
        y = nnc.exp(x) + 1
    compiled = nnc.export({"x": x}, {"y": y}).compile(device)
    first = compiled(x=HOST)["y"]
    kept = first.numpy()
    compiled(x=HOST + 1)
    np.testing.assert_array_equal(first.numpy(), kept)


def test_scalars_are_constants(x: nnc.Tensor, device: str) -> None:
    scale = nnc.asarray(3.0)
    with nnc.deferred():
        y = x * scale + 1
    graph = nnc.export({"x": x}, {"y": y})
    scale[...] = 100
    np.testing.assert_array_equal(run(graph, device, x=HOST)["y"], HOST * 3 + 1)


def test_an_array_from_outside_is_an_error_or_on_request_a_constant(x: nnc.Tensor, device: str) -> None:
    w = nnc.asarray(np.array([1, 2, 3], np.float32))
    with nnc.deferred():
        y = x * w
    with fails(ValueError, "float32[3]", "capture", line=False):
        nnc.export({"x": x}, {"y": y})
    graph = nnc.export({"x": x}, {"y": y}, capture="constant")
    assert graph.list_inputs() == ["x"]
    np.testing.assert_array_equal(run(graph, device, x=HOST)["y"], HOST * [1, 2, 3])
    with fails(ValueError, "capture 'guess'", line=False):
        nnc.export({"x": x}, {"y": y}, capture="guess")


def test_errors_name_what_does_not_connect(x: nnc.Tensor) -> None:
    with nnc.deferred():
        y = x + 1
        unused = nnc.asarray([1.0]) * 2
    with fails(ValueError, "'u'", "reaches no output"):
        nnc.export({"x": x, "u": unused}, {"y": y})
    with fails(ValueError, "same tensor", line=False):
        nnc.export({"a": x, "b": x}, {"y": y})
    with fails(ValueError, "'z'", "no recorded history", line=False):
        nnc.export({"x": x}, {"z": nnc.asarray([1.0])})
    with fails(ValueError, "at least one output", line=False):
        nnc.export({"x": x}, {})


def test_an_eager_result_has_no_history(x: nnc.Tensor) -> None:
    with fails(ValueError, "deferred", line=False):
        nnc.export({"x": x}, {"y": x + 1})


def test_wrong_calls_of_a_compiled_graph(x: nnc.Tensor, device: str) -> None:
    with nnc.deferred():
        y = x + 1
    compiled = nnc.export({"x": x}, {"y": y}, name="plus").compile(device)
    with fails(TypeError, "missing x", "plus", "float32[2,3]", line=False):
        compiled()
    with fails(TypeError, "unknown z", line=False):
        compiled(x=HOST, z=HOST)
    with fails(ValueError, "float32[3]", "float32[2,3]", line=False):
        compiled(x=HOST[0])
    with fails(TypeError, "int32", line=False):
        compiled(x=nnc.asarray(HOST.astype(np.int32)))
    if device != "strict:0":
        with fails(ValueError, "strict:0", device, line=False):
            compiled(x=nnc.asarray(HOST, device="strict:0"))
    np.testing.assert_array_equal(compiled(x=HOST)["y"].numpy(), HOST + 1)


def test_compiled_for_no_such_device(x: nnc.Tensor) -> None:
    with nnc.deferred():
        y = x + 1
    with fails(ValueError, "nowhere:0", line=False):
        nnc.export({"x": x}, {"y": y}).compile("nowhere:0")


def test_the_printed_graph_names_ends_operators_and_lines(x: nnc.Tensor) -> None:
    with nnc.deferred():
        y = nnc.tanh(x * 2)
    text = str(nnc.export({"x": x}, {"y": y}, name="net"))
    assert text.startswith("net(x: float32[2,3])")
    assert "tanh" in text and "multiply" in text and "return y=" in text
    assert text.count("test_export.py:") >= 2, "each node has its line"


@pytest.mark.parametrize("batch", [1, 4])
def test_named_dimensions_are_filled_in_at_the_call(device: str, batch: int) -> None:
    x = nnc.var_arr("x", (nnc.Dim("n"), 3))
    graph = nnc.export({"x": x}, {"y": nnc.sum(x * 2, axis=0), "z": nnc.concat([x, x])})
    host = np.arange(3 * batch, dtype=np.float32).reshape(batch, 3)
    found = run(graph, device, x=host)
    np.testing.assert_array_equal(found["y"], 2 * host.sum(0))
    np.testing.assert_array_equal(found["z"], np.concatenate([host, host]))
    with fails(ValueError, "float32[n,3]", line=False):
        run(graph, device, x=np.ones((2, 4), np.float32))
