"""Export: naming both ends of what was recorded, after the fact."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import UnusedInputWarning, VariableRebindError
from nnc_core.shape import Shape
from nnc_core.symbol import Literal
from tests.sizes import LONG
from tests.tensors.faults import fails

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


# ---- names, and what hangs together: row M2 of the mission, case by case
def structure(graph: nnc.SymbolicGraph) -> object:
    """Equal for graphs that compute the same by the same operators in the same order, constants to the bit."""
    number = {node: i for i, node in enumerate(graph.nodes)}

    def plain(value: object) -> object:
        if isinstance(value, Literal):
            return (value.array.dtype, value.array.shape, value.array.tobytes())
        return value

    lines = [(n.op.name, [number[x] for x in n.inputs], n.spec,
              () if n.op.name == "placeholder" else tuple(map(plain, n.attributes))) for n in graph.nodes]
    ends = [{k: number.get(n) for k, n in side.items()} for side in (graph.inputs, graph.outputs)]
    return lines, ends, graph.iopairs, graph.name


def test_m2_naming_both_ends_after_the_fact(x: nnc.Tensor, device: str) -> None:
    """The mission's row M2, in its order."""
    w, unused = nnc.asarray([1.0, 2.0, 3.0]), nnc.asarray([4.0, 5.0])
    with nnc.deferred():
        y = x * w + 1
        z = nnc.sum(y)
        more = z + 0.5
    for name in ("first", "second"):  # the names are given here, not when it was recorded
        graph = nnc.export({name: x, "w": w}, {"y" + name: y, "z" + name: z})
        assert graph.list_inputs() == [name, "w"] and graph.list_outputs() == ["y" + name, "z" + name]
        np.testing.assert_array_equal(run(graph, device, **{name: HOST, "w": w})["y" + name], HOST * [1, 2, 3] + 1)
    with fails(ValueError, "input 'u' reaches no output", line=False):
        nnc.export({"x": x, "w": w, "u": unused}, {"y": y})
    with fails(ValueError, "float32[3]", "neither an input nor a constant", operator="multiply"):
        nnc.export({"x": x}, {"y": y})
    scalar = nnc.export({"y": y}, {"z": more})  # a scalar is a constant without being asked for
    assert scalar.list_inputs() == ["y"]
    captured = [nnc.export({"x": x}, {"y": y, "z": z}, capture="constant") for _ in range(2)]
    assert structure(captured[0]) == structure(captured[1])
    assert captured[0].list_inputs() == ["x"] and captured[0].list_outputs() == ["y", "z"]


def test_exported_twice_is_the_same_also_after_computing(x: nnc.Tensor, device: str) -> None:
    w = nnc.asarray(np.full(3, -0.0, np.float32))
    with nnc.deferred():
        y = nnc.softmax(x @ x.T + w[0], axis=0) * nnc.arange(2, dtype="float32")

    def again() -> nnc.SymbolicGraph:
        return nnc.export({"x": x}, {"y": y}, capture="constant")

    first, second = again(), again()
    y.realize()
    assert structure(first) == structure(second) == structure(again())
    with nnc.deferred():
        other = nnc.softmax(x @ x.T + (w[0] + 0.0), axis=0) * nnc.arange(2, dtype="float32")
    assert structure(first) != structure(nnc.export({"x": x}, {"y": other}, capture="constant"))


def test_export_changes_nothing(x: nnc.Tensor) -> None:
    """C12: neither values nor what other exports find."""
    with nnc.deferred():
        y = x + 1
        z = y * 2
    cut = nnc.export({"y": y}, {"z": z})
    whole = nnc.export({"x": x}, {"z": z})
    assert (cut.list_inputs(), whole.list_inputs()) == (["y"], ["x"])
    assert y.is_deferred and z.is_deferred
    assert structure(cut) == structure(nnc.export({"y": y}, {"z": z}))


def test_two_names_for_one_tensor_and_one_name_for_two(x: nnc.Tensor) -> None:
    """C13, restated: names belong to an export, so that another export may name otherwise."""
    with nnc.deferred():
        y = x + 1
    with pytest.raises(VariableRebindError, match="inputs 'a' and 'b' are the same tensor"):
        nnc.export({"a": x, "b": x}, {"y": y})
    handle = nnc.positive(x)  # another handle of the same value
    with fails(ValueError, "same tensor", line=False):
        nnc.export({"a": x, "b": handle}, {"y": y})
    assert nnc.export({"a": x}, {"y": y, "again": y}).list_outputs() == ["y", "again"]
    a, b = nnc.var_arr("a", (2,)), nnc.var_arr("a", (2,))
    with pytest.raises(VariableRebindError, match=r"called 'a'.*different names"):
        nnc.make_graph([a, b], [a + b])
    with pytest.raises(VariableRebindError, match="given twice"):
        nnc.make_graph([a, a], [a + 1])
    assert nnc.make_graph({"a": a, "b": b}, [a + b]).symbolic.list_inputs() == ["a", "b"]


@pytest.mark.parametrize("inputs, outputs, said", [
    ({"x": HOST}, {}, "input 'x' is ndarray"), ({}, {"y": 1.0}, "output 'y' is float"), ({3: None}, {}, "name of an"),
])
def test_ends_that_are_no_tensors(inputs: dict[str, object], outputs: dict[str, object], said: str) -> None:
    with fails(TypeError, said, line=False):
        nnc.export(inputs, outputs)


def test_a_symbol_that_is_no_input_is_named() -> None:
    x, w = nnc.var_arr("x", (2,)), nnc.var_arr("weights", (2,))
    with fails(ValueError, "'weights'", "float32[2]", "inputs: x", operator="multiply"):
        nnc.export({"x": x}, {"y": x * w})


def test_a_symbol_of_a_trace_that_has_ended(x: nnc.Tensor) -> None:
    kept: list[nnc.Tensor] = []
    nnc.jit(lambda a: kept.append(a + 1) or a)(x)
    with fails(RuntimeError, "outlived", line=False):
        nnc.export({}, {"y": kept[0]})


# ---- inputs that nothing reads
def test_unused_inputs_may_be_kept_with_a_warning_or_without(x: nnc.Tensor, device: str) -> None:
    unused = nnc.asarray(np.array([1.0, 2.0], np.float32))
    with nnc.deferred():
        y = x + 1
    with pytest.warns(UnusedInputWarning, match="'u' reaches no output: callers may leave it out") as caught:
        warned = nnc.export({"x": x, "u": unused}, {"y": y}, on_unused="warn")
    assert [w.filename for w in caught] == [__file__]
    for graph in (warned, nnc.export({"x": x, "u": unused}, {"y": y}, on_unused="ignore")):
        assert graph.list_inputs() == ["x", "u"]
        compiled = graph.compile(device)
        for given in ({}, {"u": unused}, {"u": np.zeros(2, np.float32)}):
            np.testing.assert_array_equal(compiled(x=HOST, **given)["y"].numpy(), HOST + 1)
        with fails(ValueError, "float32[5]", "float32[2]", line=False):
            compiled(x=HOST, u=np.zeros(5, np.float32))
        with fails(TypeError, "missing x", line=False):
            compiled(u=unused)
    with fails(ValueError, "on_unused 'never'", "'warn'", line=False):
        nnc.export({"x": x}, {"y": y}, on_unused="never")


def test_an_input_behind_another_one_is_unused(x: nnc.Tensor) -> None:
    with nnc.deferred():
        a = x * 3
        y = a + 1
    with fails(ValueError, "input 'x' reaches no output but through other inputs", line=False):
        nnc.export({"x": x, "a": a}, {"y": y})
    assert nnc.export({"x": x, "a": a}, {"y": y, "x": x}).list_outputs() == ["y", "x"]


# ---- devices, state, size
def test_a_graph_names_no_device(x: nnc.Tensor, device: str) -> None:
    """Copies between devices are copies between places; on one device they cost nothing and change nothing."""
    elsewhere = "strict:0" if device != "strict:0" else "cpu:0"
    with nnc.deferred():
        there = x.to(elsewhere) - 1
        y = there.to(device) * 2
    graph = nnc.export({"x": x}, {"y": y})
    assert [n.attributes for n in graph.nodes if n.op.name == "transfer"] == [("", "place1"), ("place1", "")]
    assert elsewhere not in str(graph) and device not in str(graph)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of a transfer that goes by the host
        for target in dict.fromkeys((device, elsewhere)):
            np.testing.assert_array_equal(run(graph, target, x=HOST)["y"], (HOST - 1) * 2)
    assert y.device.id == device and there.device.id == elsewhere
    np.testing.assert_array_equal(y.numpy(), (HOST - 1) * 2)


def test_inputs_of_several_devices_meet_on_the_one_that_is_compiled_for(x: nnc.Tensor, device: str) -> None:
    w = nnc.asarray(np.array([1, 2, 3], np.float32), device="strict:0")
    with nnc.deferred():
        y = x * w.to(device)
    np.testing.assert_array_equal(run(nnc.export({"x": x, "w": w}, {"y": y}), device, x=HOST, w=w.numpy())["y"],
                                  HOST * [1, 2, 3])


def test_state_that_a_call_carries_on(device: str) -> None:
    w, g = (nnc.asarray(np.full(3, v, np.float32)) for v in (1, 2))
    with nnc.deferred():
        new = w - g * 0.5
    graph = nnc.export({"w": w, "g": g}, {"new": new}, iopairs=[("new", "w")])
    compiled = graph.compile(device)
    assert graph.iopairs == (("new", "w"),) and list(compiled.donated) == ["w"]
    first = compiled(w=w, g=g)["new"]
    second = compiled(w=first, g=g)["new"]
    assert (w.tolist(), first.tolist(), second.tolist()) == ([1] * 3, [0] * 3, [-1] * 3)
    with fails(ValueError, "iopair 'new' -> 'v'", line=False):
        nnc.export({"w": w, "g": g}, {"new": new}, iopairs=[("new", "v")])


def test_a_long_chain_is_exported_in_linear_work(monkeypatch: pytest.MonkeyPatch) -> None:
    length = LONG
    x = nnc.var_arr("x", (2,))
    y = x
    for _ in range(length):
        y = -y
    asked, inferred = list[int](), list[int]()
    once, infer = Shape.once, Shape.infer
    monkeypatch.setattr(Shape, "once", lambda self, *a: asked.append(1) or once(self, *a))
    monkeypatch.setattr(Shape, "infer", lambda self, *a: inferred.append(1) or infer(self, *a))
    graph = nnc.export({"x": x}, {"y": y})
    assert graph.complexity == (length + 1, length)
    assert len(asked) == length + 1, "each node once"
    assert len(inferred) == 2, "each kind once: the input, and its negative"
    del graph, y, x  # taken apart without recursion


def test_the_device_in_use_is_compiled_for() -> None:
    x = nnc.asarray([1.0, 2.0], device="cpu:0")
    with nnc.deferred():
        y = nnc.exp(x)
    graph = nnc.export({"x": x}, {"y": y})
    with nnc.use_device("strict:0"):
        assert graph.compile()(x=np.asarray([1.0, 2.0], np.float32))["y"].device.id == "strict:0"
    named = nnc.export({"x": x}, {"y": y}, named_dims={"x": ("n",)})
    with nnc.use_device("strict:0"):
        run = named.compile()
    assert run(x=np.zeros(3, np.float32))["y"].device.id == "strict:0", "the device when it was compiled"
