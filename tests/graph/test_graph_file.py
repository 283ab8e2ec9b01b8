"""Graphs on disk: the same graph comes back, and nothing but a whole file is taken for one."""

from __future__ import annotations

import json
import random
import struct
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nnc_core.base import dtype as dt
from nnc_core.base.errors import DTypeError, FileFormatError, NotSupportedError
from nnc_core.base.missing import MissingFileError
from nnc_core.graph import SymbolicGraph
from nnc_core.io import load_arrays, load_graph, save_arrays, save_graph
from nnc_core.io.graph_attributes import decode, encode
from nnc_core.symbol import Literal, Number, user_line
from nnc_core.type import Dim, TensorSpec
from tests.graph.evaluate import evaluate, same_bits
from tests.graph.graph_files import F4, OPERATOR, rewritten
from tests.graph.stack import GRAPHS, make_graph_layer, new_namespace
from tests.graph.strategies import RandomGraph, grow_graph, random_graphs

pytest.importorskip("safetensors")


def graph_of(grown: RandomGraph) -> SymbolicGraph:
    """The random nodes as a graph whose outputs have other names than its nodes."""
    inputs = {f"in {i} é": p for i, p in enumerate(grown.placeholders)}
    return SymbolicGraph(inputs, {f"out{i}": o for i, o in enumerate(grown.outputs)}, name="ein Graph")


def through_a_file(graph: SymbolicGraph) -> SymbolicGraph:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "graph.nnc")
        save_graph(graph, path)
        return load_graph(path, OPERATOR)


@given(random_graphs())
def test_random_graphs_come_back_with_the_same_text_and_values(grown: RandomGraph) -> None:
    graph = graph_of(grown)
    loaded = through_a_file(graph)
    assert str(loaded) == str(graph)
    assert (loaded.list_inputs(), loaded.list_outputs()) == (graph.list_inputs(), graph.list_outputs())
    again = {loaded.inputs[name]: grown.values[node] for name, node in graph.inputs.items()}
    for a, b in zip(evaluate(grown.outputs, grown.values), evaluate(list(loaded.outputs.values()), again), strict=True):
        assert same_bits(a, b)


def test_pairs_lines_named_dimensions_and_gradients_come_back() -> None:
    F, n = new_namespace(), Dim("n")
    x, w = F.placeholder("x", TensorSpec((n, 3), dt.float32)), F.placeholder("w", TensorSpec((3,), dt.float32))
    F.table.line = user_line()
    loss = F.sum(F.multiply(F.reshape(x, shape=(n * 3 // 2, 2)), 0.5), axis=(0, 1))
    F.table.line = None
    loss = F.add(loss, F.sum(F.relu(w), axis=(0,)))
    graph = GRAPHS.grad(SymbolicGraph({"x": x, "w": w}, {"loss": loss, "w'": F.exp(w)}, (("w'", "w"),), "step"),
                        "loss", ["x", "w"])
    loaded = through_a_file(graph)
    assert str(loaded) == str(graph) and "test_graph_file.py:" in str(loaded)
    assert loaded.iopairs == (("w'", "w"),)
    assert str(through_a_file(loaded)) == str(graph)
    assert GRAPHS.specialise(loaded, {"n": 4}).inputs["x"].shape == (4, 3)


def test_inputs_that_nothing_reads_and_graphs_without_nodes_come_back() -> None:
    F = new_namespace()
    graph = SymbolicGraph({"a": F.placeholder("x", F4), "b": F.placeholder("x", F4)}, {})
    assert through_a_file(graph).list_inputs() == ["a", "b"]
    assert str(through_a_file(SymbolicGraph({}, {}))) == str(SymbolicGraph({}, {}))


def test_a_loaded_graph_has_its_own_symbols_and_constants_that_cannot_be_written() -> None:
    F = new_namespace()
    x = F.placeholder("x", F4)
    graph = SymbolicGraph({"x": x}, {"y": F.add(x, F.constant(Literal(np.ones((2, 3), np.float32)), F4))})
    a, b = through_a_file(graph), through_a_file(graph)
    assert len({x, a.inputs["x"], b.inputs["x"]}) == 3
    (constant,) = [n for n in a.nodes if n.op.name == "constant"]
    assert not constant.attributes[0].array.flags.writeable


def polynomial(terms: Any) -> Any:
    return sum(factor * np.prod([1, *map(Dim, names)], dtype=object) for factor, names in terms)


POLYNOMIALS = st.lists(st.tuples(st.integers(-(2**70), 2**70), st.lists(st.sampled_from("nmé"), max_size=3)),
                       max_size=3).map(polynomial)  # fmt: skip
QUOTIENTS = st.tuples(POLYNOMIALS, st.one_of(st.integers(1, 9), st.just(Dim("k")))).map(lambda ab: ab[0] // ab[1])
POLYNOMIALS_OF_QUOTIENTS = st.tuples(POLYNOMIALS, QUOTIENTS, QUOTIENTS).map(lambda abc: abc[0] * abc[1] + abc[2])
DIMS = st.one_of(POLYNOMIALS, POLYNOMIALS_OF_QUOTIENTS).filter(lambda d: not isinstance(d, int) or d >= 0)
DTYPES = st.sampled_from(list(dt.DTYPES.values()))


def number_of_bits(dtype: Any, bits: bytes) -> Number:
    return Number(np.frombuffer(bits[: dtype.itemsize], dtype)[0], dtype)


NUMBERS = st.builds(number_of_bits, DTYPES.filter(lambda d: d != dt.boolean), st.binary(min_size=16, max_size=16))
PLAIN = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), DTYPES, NUMBERS, DIMS.map(lambda d: (d,)),
    st.builds(TensorSpec, st.lists(DIMS, max_size=3).map(tuple), DTYPES), NUMBERS.map(lambda n: n.value),
    st.sampled_from([Number(True, dt.boolean), Number(False, dt.boolean), np.True_]),
)  # fmt: skip
ATTRIBUTES = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=4).map(tuple), max_leaves=8)


def exact(value: Any) -> Any:
    """Comparable, and equal only for the same types and bits."""
    if isinstance(value, tuple):
        return tuple(exact(v) for v in value)
    if isinstance(value, np.generic):
        return (value.dtype, value.tobytes())
    return (type(value), struct.pack(">d", value) if isinstance(value, float) else value)


@settings(max_examples=5 * settings().max_examples)
@given(ATTRIBUTES)
def test_attributes_come_back_to_the_bit(value: Any) -> None:
    assert exact(decode(json.loads(json.dumps(encode(value))))) == exact(value)


@pytest.mark.parametrize("value", [object(), [1], {"a": 1}, 1j, b"x", Literal(np.zeros(2)), (1, {2})])
def test_what_is_no_attribute_is_refused(value: Any) -> None:
    with pytest.raises(NotSupportedError, match="cannot be written to a graph file"):
        encode(value)


def device_constant() -> SymbolicGraph:
    F = new_namespace()
    x = F.placeholder("x", F4)
    return SymbolicGraph({"x": x}, {"y": F.add(x, F.constant(Literal("a buffer", "opencl:0"), F4))})


def test_a_constant_of_a_device_needs_a_way_down(tmp_path: Path) -> None:
    with pytest.raises(NotSupportedError, match="constant: the constant is on opencl:0") as caught:
        save_graph(device_constant(), tmp_path / "g.nnc")
    assert "download" in str(caught.value) and not list(tmp_path.iterdir())
    seen: list[Any] = []
    save_graph(device_constant(), tmp_path / "g.nnc",
               download=lambda literal: seen.append(literal.array) or np.full((2, 3), 7, np.float32))
    (found,) = evaluate([(g := load_graph(tmp_path / "g.nnc", OPERATOR)).outputs["y"]],
                        {g.inputs["x"]: np.ones((2, 3), np.float32)})
    assert seen == ["a buffer"]
    np.testing.assert_array_equal(found, np.full((2, 3), 8))


def test_a_flipped_bit_in_any_byte_is_noticed_or_harmless(small: Path, rng: np.random.Generator) -> None:
    content, text = small.read_bytes(), str(load_graph(small, OPERATOR))
    harmless = 0
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(rng.integers(8))
        small.write_bytes(damaged)
        try:
            assert str(load_graph(small, OPERATOR)) == text
            harmless += 1
        except FileFormatError as error:
            assert str(small) in str(error) and error.hint
    assert harmless < 0.01 * len(content)


def test_every_truncation_is_noticed(small: Path) -> None:
    content = small.read_bytes()
    for length in range(len(content)):
        small.write_bytes(content[:length])
        with pytest.raises(FileFormatError):
            load_graph(small, OPERATOR)


def node(index: int, part: int, value: Any) -> Callable[[dict[str, Any]], object]:
    return lambda d: d["nodes"][index].__setitem__(part, value)


OPERATION, INPUTS, GIVEN, LINE = range(4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(version=3), "its version is 3, this nnc reads 1, 2"),
        (lambda d: d.update(version=True), "its version is True, this nnc reads 1, 2"),
        (lambda d: d["inputs"].append(["x", 0]), "a name is there twice"),
        (lambda d: d.pop("version"), "not what save_graph writes"),
        (lambda d: d["operators"].append(["teleport", []]), "this nnc has no operator 'teleport'"),
        (lambda d: d["operators"][-1].__setitem__(1, ["axis", "depth"]), "operator 'sum' has attributes"),
        (lambda d: d["operators"][-1].__setitem__(1, ["keepdims"]), "operator 'sum' has no attribute 'axis' there"),
        (lambda d: d["operators"][-1].__setitem__(1, ["axis"]), "operator 'sum' does not take .*2 attributes"),
        (lambda d: d["operators"].pop(), "is no number below"),
        (lambda d: d["outputs"][0].__setitem__(2, {"spec": ["float32", [9]]}), "output 'y' was float32"),
        (lambda d: d["outputs"][0].__setitem__(1, -1), "is no number below"),
        (lambda d: d["inputs"].clear(), "depend on 'x', which is no input"),
        (lambda d: d["inputs"].append(["z", 0]), "two inputs"),
        (lambda d: d["iopairs"].append(["y", "x"]), "cannot take the place"),
        (lambda d: d["iopairs"].append(["y"]), "not what save_graph writes"),
        (lambda d: d.update(name=7), "is no name"),
        (lambda d: d.pop("nodes"), "KeyError"),
        (node(2, INPUTS, [0, 2]), "is no number below 2"),
        (node(2, INPUTS, [0]), "operator 'add' does not take .*1 inputs and 0 attributes"),
        (node(2, INPUTS, [0, True]), "is no number below"),
        (node(2, LINE, 40), "IndexError"),
        (node(3, GIVEN, [[1], [0], [0], 0]), "operator 'pad' does not take .*need one entry for each"),
        (node(3, GIVEN, [[1, 0], [0, 0], ["a", 0], 0]), "operator 'pad' does not take"),
        (node(4, GIVEN, [[7], False]), "operator 'sum' does not take .*axis 7 is out of range"),
        (node(4, GIVEN, [{"dtype": "float32"}, False]), "operator 'sum' does not take"),
        (node(4, GIVEN, [{"dtype": "complex64"}, False]), "operator 'sum' does not take"),
        (node(4, GIVEN, [{"nonsense": 1}, False]), "stands for no attribute"),
        (node(1, GIVEN, ["constant.9", {"spec": ["float32", [3]]}]), "operator 'constant' does not take"),
        (node(1, GIVEN, ["constant.0", {"spec": ["float32", [4]]}]), "where float32.4. is expected"),
        (node(1, GIVEN, ["constant.0", 3]), "is no spec"),
        (node(0, GIVEN, ["x", {"spec": ["float32", [-2]]}]), "negative dimension"),
        (node(0, GIVEN, ["x", {"spec": ["float32", ["two"]]}]), "is no dimension"),
        (node(0, GIVEN, [1, {"spec": ["float32", [2, 3]]}]), "is no name"),
    ],
)
def test_a_description_that_does_not_fit_is_refused(
    small: Path, change: Callable[[dict[str, Any]], object], message: str
) -> None:
    with pytest.raises(FileFormatError, match=message) as caught:
        load_graph(rewritten(small, change), OPERATOR)
    assert str(small) in str(caught.value) and caught.value.hint


def places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The ways to every part of a JSON value."""
    steps = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [path, *(p for key, part in steps for p in places(part, (*path, key)))]


PARTS = [None, True, -2, 0, 1, 2, 9, 1e308, "x", [], [0], {"dim": [[1, ["n"]]]}, {"dim": [[1, [[7, 0]]]]},
         {"float": "00"}, {"number": ["int32", "00"]}, {"dtype": "int8"}, {"spec": ["int32", [0]]}]  # fmt: skip


@settings(max_examples=10 * settings().max_examples)
@given(st.integers(0, 50), st.randoms(use_true_random=False), st.sampled_from(PARTS))
def test_a_description_changed_anywhere_gives_a_graph_or_one_clear_error(seed: int, choice: Any, value: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "graph.nnc")
        save_graph(graph_of(grow_graph(random.Random(seed), 12)), path)

        def change(description: dict[str, Any]) -> None:
            *way, last = choice.choice([p for p in places(description) if p])
            part: Any = description
            for step in way:
                part = part[step]
            part[last] = value

        try:
            assert isinstance(load_graph(rewritten(path, change), OPERATOR), SymbolicGraph)
        except FileFormatError as error:
            assert str(path) in str(error)


def test_nesting_without_end_is_refused(small: Path) -> None:
    arrays, metadata = load_arrays(small)
    deep = "[" * 100_000 + "]" * 100_000
    save_arrays(small, arrays, {"nnc.graph": metadata["nnc.graph"].replace('"lines":[', f'"lines":[{deep},')})
    with pytest.raises(FileFormatError, match="RecursionError"):
        load_graph(small, OPERATOR)


def test_other_files_are_no_graphs(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError):
        load_graph(tmp_path / "absent.nnc", OPERATOR)
    save_arrays(tmp_path / "weights", {"w": np.ones(3)})
    with pytest.raises(FileFormatError, match="without a graph") as caught:
        load_graph(tmp_path / "weights", OPERATOR)
    assert "load_arrays" in str(caught.value)


def test_a_dtype_that_the_device_lacks_is_no_damage(small: Path) -> None:
    poor = make_graph_layer(frozenset({"int32"})).optimiser.operator
    with pytest.raises(DTypeError, match="device has no float32"):
        load_graph(small, poor)


def test_a_failed_save_leaves_the_old_file(small: Path) -> None:
    text = str(load_graph(small, OPERATOR))
    with pytest.raises(NotSupportedError):
        save_graph(device_constant(), small)
    assert str(load_graph(small, OPERATOR)) == text
