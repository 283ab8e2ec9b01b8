from __future__ import annotations

import random
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from nnc_core.base import dtype as dt
from nnc_core.base.errors import AttributeValueError, Error, NotSupportedError
from nnc_core.base.missing import MissingPackageError
from nnc_core.graph import SymbolicGraph
from nnc_core.graph.drawing.layout import BEND_WIDTH, place
from nnc_core.type import TensorSpec
from tests.graph.stack import GRAPHS, new_namespace
from tests.graph.strategies import grow_graph

F4 = TensorSpec((3,), dt.float32)


def some_graph(steps: int = 40, seed: int = 5) -> SymbolicGraph:
    grown = grow_graph(random.Random(seed), steps)
    inputs = {f"in{i} $x_{{": p for i, p in enumerate(grown.placeholders)}
    return SymbolicGraph(inputs, {f"out{i}": o for i, o in enumerate(grown.outputs)}, name="a $graph$ <&>")


def chain(length: int) -> SymbolicGraph:
    F = new_namespace()
    x = y = F.placeholder("x", F4)
    for _ in range(length - 1):
        y = F.exp(y)
    return SymbolicGraph({"x": x}, {"y": y})


@pytest.mark.parametrize(
    ("name", "magic"), [("g.png", b"\x89PNG"), ("g.svg", b"<?xml"), ("g.pdf", b"%PDF"), ("g", b"\x89PNG")]
)
def test_the_suffix_says_the_format(tmp_path: Path, name: str, magic: bytes) -> None:
    before = set(sys.modules)
    path = some_graph().draw(tmp_path / name)
    assert path == tmp_path / name and path.read_bytes().startswith(magic)
    assert [file.name for file in tmp_path.iterdir()] == [name]
    assert "matplotlib.pyplot" not in set(sys.modules) - before


def test_every_node_is_labelled(tmp_path: Path) -> None:
    F = new_namespace()
    x, unused = F.placeholder("x", F4), F.placeholder("unused", F4)
    graph = SymbolicGraph({"x": x, "spare": unused}, {"total": F.sum(F.exp(x), axis=(0,))}, name="tiny")
    import matplotlib as mpl

    with mpl.rc_context({"svg.fonttype": "none"}):
        text = graph.draw(tmp_path / "g.svg").read_text()
    for label in ("tiny: 3 nodes, 2 edges", ">x<", ">spare<", ">exp<", ">total = sum<", ">float32[3]<", ">float32[]<"):
        assert label in text, label


def test_a_graph_of_nothing(tmp_path: Path) -> None:
    assert SymbolicGraph({}, {}).draw(tmp_path / "g.png").stat().st_size > 0


def test_a_long_graph_is_drawn_within_the_limits_of_the_format(tmp_path: Path) -> None:
    image = chain(300).draw(tmp_path / "g.png").read_bytes()
    width, height = (int.from_bytes(image[i : i + 4], "big") for i in (16, 20))
    assert 0 < width * height < 5e7 and height < 2**16


def test_beyond_3000_nodes_it_says_what_to_do_instead(tmp_path: Path) -> None:
    with pytest.raises(NotSupportedError, match=r"3001 nodes") as caught:
        chain(3001).draw(tmp_path / "g.png")
    assert "to_dot" in str(caught.value) and "to_trace" in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_without_matplotlib_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingPackageError, match=r"nnc-core\[plots\]") as caught:
        some_graph().draw(tmp_path / "g.png")
    assert isinstance(caught.value, ImportError)


def test_a_format_or_folder_that_is_not_there_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nonsense"):
        some_graph().draw(tmp_path / "g.nonsense")
    with pytest.raises(Error, match="no directory"):
        some_graph().draw(tmp_path / "absent" / "g.png")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("seed", range(8))
def test_layout(seed: int) -> None:
    """Inputs above users, boxes apart, every edge drawn from its source to its user."""
    graph = GRAPHS.expand(some_graph(60, seed))
    number = {node: i for i, node in enumerate(graph.nodes)}
    inputs = [[number[x] for x in node.inputs] for node in graph.nodes]
    placement = place(inputs)
    assert all(placement.centres[s][1] < placement.centres[user][1] for user, xs in enumerate(inputs) for s in xs)
    _assert_apart(placement.centres)
    _assert_connected(inputs, placement.centres, placement.lines)
    assert all(0 <= x <= placement.width - 1 and 0 <= y < placement.height for x, y in placement.centres)


def _assert_apart(centres: list[tuple[float, float]]) -> None:
    rows: dict[float, list[float]] = {}
    for x, y in centres:
        rows.setdefault(y, []).append(x)
    for row in map(sorted, rows.values()):
        assert all(b - a > 1 - 1e-9 for a, b in pairwise(row))


def _assert_connected(inputs: list[list[int]], centres: list[tuple[float, float]],
                      lines: list[list[tuple[float, float]]]) -> None:
    """Each line goes one layer down; following them from a source leads to all its users and to no other box."""
    below: dict[tuple[float, float], list[tuple[float, float]]] = {}
    for start, end in lines:
        assert end[1] - start[1] == 1
        below.setdefault(start, []).append(end)
    boxes = {centre: i for i, centre in enumerate(centres)}
    users: dict[int, set[int]] = {}
    for user, xs in enumerate(inputs):
        for x in xs:
            users.setdefault(x, set()).add(user)
    for source, centre in enumerate(centres):
        found, pending = set(), list(below.get(centre, ()))
        while pending:
            point = pending.pop()
            if point in boxes:
                found.add(boxes[point])
            else:
                pending += below[point]
        assert found == users.get(source, set())


def test_short_lines_a_chain_is_straight_and_a_late_leaf_stands_near_its_user() -> None:
    placement = place([[], [0], [1], [2], [], [3, 4]])
    assert {x for x, _ in placement.centres[:4]} == {placement.centres[0][0]}
    assert placement.centres[4][1] == placement.centres[5][1] - 1


def test_lines_that_pass_a_layer_go_between_its_boxes() -> None:
    placement = place([[], [0], [1], [0, 2]])
    bends = {p for line in placement.lines for p in line} - set(placement.centres)
    assert len(bends) == 2
    for x, y in bends:
        assert all(abs(x - cx) >= (1 + BEND_WIDTH) / 2 - 1e-9 for cx, cy in placement.centres if cy == y)


def test_an_ending_that_is_no_picture_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(AttributeValueError, match="dot") as caught:
        some_graph().draw(tmp_path / "g.dot")
    assert "to_dot()" in str(caught.value) and not list(tmp_path.iterdir())
