"""Graphs with control flow on disk: bodies come back, and damaged ones are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nnc_core.base import dtype as dt
from nnc_core.base.errors import FileFormatError, NotSupportedError
from nnc_core.graph import SymbolicGraph
from nnc_core.io import load_arrays, load_graph, save_graph
from nnc_core.io.graph_attributes import decode, encode
from nnc_core.io.graph_writer import nested_bodies
from nnc_core.operator import Nodes
from nnc_core.operator.control import LoopAttributes
from nnc_core.symbol import Body, Literal, Node, show_line
from nnc_core.type import Dim, Op, TensorSpec, TupleSpec
from tests.graph.graph_files import F4, OPERATOR, rewritten
from tests.graph.stack import new_namespace


# ---- bodies
def counted(F: Nodes, x: Node, body: Body, length: int = 3) -> Node:
    """`body` run on x again and again."""
    return F.pick(F.loop((x,), (), (), body=body, length=length), index=0)


def body_of(build: Callable[[Nodes, Node], Node], spec: TensorSpec = F4) -> Body:
    F = new_namespace()
    F.table.line = "model.py:7"
    x = F.placeholder("inner", spec)
    return Body((x,), (build(F, x),))


def description_of(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(load_arrays(path)[1]["nnc.graph"])
    return found


def all_lines(nodes: list[Node]) -> list[str]:
    inner = [n for body in nested_bodies(nodes) for n in body.nodes]
    return [show_line(n.line) for n in (*inner, *nodes) if n.line is not None]


def test_loops_branches_and_calls_come_back_with_their_bodies(tmp_path: Path) -> None:
    F = new_namespace()
    x, k = F.placeholder("x", F4), F.placeholder("k", TensorSpec((), dt.int32))
    weights = np.arange(6, dtype=np.float32).reshape(2, 3)
    double = body_of(lambda G, a: G.multiply(a, 2.0))
    shift = body_of(lambda G, a: G.add(a, G.constant(Literal(weights), F4)))
    looped = counted(F, x, body_of(lambda G, a: counted(G, G.tanh(a), double)))
    chosen = F.pick(F.case_of(k, (looped,), branches=(double, shift), otherwise=True), index=0)
    rows = body_of(lambda G, a: G.exp(a), TensorSpec((3,), dt.float32))
    stacked = F.pick(F.loop((), (x,), (), body=rows, length=2, reverse=True), index=0)
    called = F.pick(F.call((x,), body=double, name="double"), index=0)
    graph = SymbolicGraph({"x": x, "k": k}, {"chosen": chosen, "stacked": stacked, "called": called})
    path = tmp_path / "g.nnc"
    save_graph(graph, path)
    loaded = load_graph(path, OPERATOR)
    description = description_of(path)
    assert description["version"] == 2 and len(description["bodies"]) == 4, "a body that is used twice is there once"
    assert "model.py:7" in all_lines(loaded.nodes) and all_lines(loaded.nodes) == all_lines(graph.nodes)
    again = description_of_saved(loaded, tmp_path)
    assert again == description
    loops = [n for n in loaded.nodes if n.op.name == "loop"]
    assert [n.attributes[2:] for n in loops] == [n.attributes[2:] for n in graph.nodes if n.op.name == "loop"]
    (case,) = [n for n in loaded.nodes if n.op.name == "case_of"]
    (call,) = [n for n in loaded.nodes if n.op.name == "call"]
    assert case.attributes[0][0] is call.attributes[0], "and still shared"
    (constant,) = [n for n in case.attributes[0][1].nodes if n.op.name == "constant"]
    np.testing.assert_array_equal(constant.attributes[0].array, weights)
    assert case.attributes[0][0] == double


def description_of_saved(graph: SymbolicGraph, folder: Path) -> dict[str, Any]:
    save_graph(graph, folder / "again.nnc")
    return description_of(folder / "again.nnc")


def test_a_graph_without_bodies_is_a_file_of_version_1(small: Path) -> None:
    """So that an nnc that knows no bodies reads it."""
    assert description_of(small)["version"] == 1 and "bodies" not in description_of(small)


@pytest.mark.parametrize("depth", [1, 100, 3000])
def test_bodies_in_bodies_to_any_depth(tmp_path: Path, depth: int) -> None:
    body = body_of(lambda G, a: G.tanh(a))
    for _ in range(depth):
        body.key()  # its hash, as interning asks for it on the way up
        held = body
        body = body_of(lambda G, a: counted(G, a, held))  # noqa: B023 - called at once
    F = new_namespace()
    x = F.placeholder("x", F4)
    save_graph(SymbolicGraph({"x": x}, {"y": counted(F, x, body)}), tmp_path / "deep.nnc")
    loaded = load_graph(tmp_path / "deep.nnc", OPERATOR)
    found, level = loaded.nodes, 0
    while inner := [LoopAttributes.of(n).body for n in found if n.op.name == "loop"]:
        found, level = inner[0].nodes, level + 1
    assert level == depth + 1 and [n.op.name for n in found] == ["placeholder", "tanh"]


def body(index: int, part: str, value: Any) -> Callable[[dict[str, Any]], object]:
    return lambda d: d["bodies"][index].__setitem__(part, value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (body(0, "inputs", []), "a placeholder that is none of its inputs"),
        (body(0, "inputs", [1]), "not its placeholders"),
        (body(0, "inputs", [0, 0]), "not its placeholders"),
        (body(0, "outputs", [9]), "is no number below"),
        (body(0, "nodes", None), "not what save_graph writes"),
        (lambda d: d.pop("bodies"), "is no number below 0"),
        (lambda d: d["bodies"].reverse(), "is no number below 0"),
        (lambda d: d["nodes"][1][2].__setitem__(1, {"body": 7}), "is no number below 2"),
        (lambda d: d["nodes"][1][2].__setitem__(1, None), "operator 'loop' does not take"),
        (lambda d: d["nodes"][1][2].__setitem__(3, 5), "operator 'loop' does not take"),
        (lambda d: d["nodes"][2][2].__setitem__(0, 4), "operator 'pick' does not take"),
        (lambda d: d["outputs"][0].__setitem__(1, 1), "output 'y' was float32"),
    ],
)
def test_bodies_that_do_not_fit_are_refused(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], message: str
) -> None:
    F = new_namespace()
    x = F.placeholder("x", F4)
    inner = body_of(lambda G, a: G.tanh(a))
    outer = body_of(lambda G, a: counted(G, a, inner))
    path = tmp_path / "loops.nnc"
    save_graph(SymbolicGraph({"x": x}, {"y": counted(F, x, outer)}), path)
    with pytest.raises(FileFormatError, match=message) as caught:
        load_graph(rewritten(path, change), OPERATOR)
    assert str(path) in str(caught.value) and caught.value.hint


def test_a_tuple_of_specs_is_an_attribute() -> None:
    spec = TupleSpec((F4, TensorSpec((Dim("n"),), dt.int8)))
    assert decode(json.loads(json.dumps(encode(spec)))) == spec and isinstance(decode(encode(spec)), TupleSpec)
    with pytest.raises(FileFormatError, match="are no specs"):
        decode({"specs": [1]})
    with pytest.raises(NotSupportedError, match="cannot be written"):
        encode(body_of(lambda G, a: a))


def test_operators_of_a_program_are_refused_with_their_line(tmp_path: Path) -> None:
    """Callbacks and rules in Python: not even one that is called like an operator of nnc."""
    F = new_namespace()
    x = F.placeholder("x", F4)
    for name in ("mine", "tanh"):
        op = Op(name, ("x",), ("function",), lambda x, function: x)
        F.table.line = f"{name}.py:8"
        y = F.apply(op, (x,), (len,))
        with pytest.raises(NotSupportedError, match="belongs to the program") as caught:
            save_graph(SymbolicGraph({"x": x}, {"y": y}), tmp_path / "g.nnc")
        assert f"{name}.py:8" in str(caught.value) and f"{name}: " in str(caught.value)
        inside = body_of(lambda G, a: (setattr(G.table, "line", "inside.py:2"), G.apply(op, (a,), (len,)))[1])  # noqa: B023
        with pytest.raises(NotSupportedError, match="belongs to the program") as caught:
            save_graph(SymbolicGraph({"x": x}, {"y": counted(F, x, inside)}), tmp_path / "g.nnc")
        assert "inside.py:2" in str(caught.value)
    assert not list(tmp_path.iterdir())
