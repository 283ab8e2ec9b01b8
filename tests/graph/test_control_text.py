"""Control flow as text and pictures: bodies beneath their nodes, however deep."""

from __future__ import annotations

from pathlib import Path

import pytest

import nnc_core as nnc
from nnc_core.base import dtype as dt
from nnc_core.graph import SymbolicGraph
from nnc_core.operator import Nodes
from nnc_core.symbol import Body, Node
from nnc_core.type import TensorSpec
from tests.graph.flows import PROGRAMS, Recorded, arguments, bound
from tests.graph.stack import GRAPHS, OPTIMISER, new_namespace

ROW, ROWS, INT = TensorSpec((3,), dt.float32), TensorSpec((4, 3), dt.float32), TensorSpec((), dt.int64)


def counted(F: Nodes, x: Node, inner: Body | None = None) -> Node:
    """x doubled (or what `inner` makes of it) four times."""
    G = new_namespace()
    i, n, y = G.placeholder("i", INT), G.placeholder("n", INT), G.placeholder("y", ROW)
    j, m, z = G.placeholder("i", INT), G.placeholder("n", INT), G.placeholder("y", ROW)
    G.table.line = "model.py:3 in step"
    after = G.add(y, y) if inner is None else G.pick(G.call((y,), body=inner, name="f"), index=0)
    body = Body((i, y, n), (G.add(i, 1), after))
    cond = Body((j, z, m), (G.less(j, m),))
    F.table.line = "model.py:5 in forward"
    zero, four = F.full(shape=(), value=0, dtype=dt.int64), F.full(shape=(), value=4, dtype=dt.int64)
    return F.pick(F.loop((zero, x), (), (four,), body=body, cond=cond), index=1)


def test_a_loop_with_its_condition_and_body() -> None:
    F = new_namespace()
    x = F.placeholder("x", ROW)
    assert str(SymbolicGraph({"x": x}, {"y": counted(F, x)}, name="f")) == """\
f(x: float32[3]):
  %0: int64[] = filled(shape=(), number=0)  # model.py:5 in forward
  %2: int64[] = filled(shape=(), number=4)  # model.py:5 in forward
  %3: (int64[], float32[3]) = loop(%0, x, %2, length=trips, carried=2, scanned=0, reverse=False)  # model.py:5 in forward
    cond(i: int64[], y: float32[3], n: int64[]):
      %3: bool[] = less(i, n)  # model.py:3 in step
      return %3
    body(i: int64[], y: float32[3], n: int64[]):
      %3: int64[] = filled(shape=(), number=1)  # model.py:3 in step
      %4: int64[] = add(i, %3)  # model.py:3 in step
      %5: float32[3] = add(y, y)  # model.py:3 in step
      return %4, %5
  %4: float32[3] = pick(%3, index=1)  # model.py:5 in forward
  return y=%4"""  # noqa: E501


def branches_of_scans() -> SymbolicGraph:
    """A scan in one branch, a call in the other; two placeholders have the same name, a body has no inputs."""
    F, G, H, K = (new_namespace() for _ in range(4))
    x, at = F.placeholder("x", ROWS), F.placeholder("at", INT)
    F.table.line = G.table.line = H.table.line = K.table.line = "net.py:1"
    c, row, w = (H.placeholder(name, ROW) for name in ("x", "x", "w"))
    step = Body((c, row, w), (H.multiply(c, row), H.add(row, w)))
    whole = G.placeholder("x", ROWS)
    first = G.full(shape=(3,), value=1, dtype=dt.float32)
    loop = G.loop((first,), (whole,), (first,), body=step, length=4, reverse=True)
    nothing = Body((), (K.full(shape=(3,), value=0, dtype=dt.float32),))
    other = K.placeholder("x", ROWS)
    zeros = Body((other,), (K.pick(K.call((), body=nothing, name="zeros"), index=0), other))
    node = F.case_of(at, (x,), branches=(Body((whole,), tuple(G.picks(loop))), zeros), otherwise=True)
    return SymbolicGraph({"x": x, "at": at}, dict(zip("ab", F.picks(node), strict=True)))


def test_branches_scans_and_calls_in_each_other() -> None:
    assert str(branches_of_scans()) == """\
graph(x: float32[4,3], at: int64[]):
  %2: (float32[3], float32[4,3]) = case_of(at, x, otherwise=True)  # net.py:1
    branches[0](x: float32[4,3]):
      %1: float32[3] = filled(shape=(3,), number=1.0)  # net.py:1
      %2: (float32[3], float32[4,3]) = loop(%1, x, %1, cond=None, length=4, carried=1, scanned=1, reverse=True)  # net.py:1
        body(x: float32[3], x'2: float32[3], w: float32[3]):
          %3: float32[3] = multiply(x, x'2)  # net.py:1
          %4: float32[3] = add(x'2, w)  # net.py:1
          return %3, %4
      %3: float32[3] = pick(%2, index=0)  # net.py:1
      %4: float32[4,3] = pick(%2, index=1)  # net.py:1
      return %3, %4
    branches[1](x: float32[4,3]):
      %1: (float32[3]) = call(name=zeros)  # net.py:1
        body():
          %0: float32[3] = filled(shape=(3,), number=0.0)  # net.py:1
          return %0
      %2: float32[3] = pick(%1, index=0)  # net.py:1
      return %2, x
  %3: float32[3] = pick(%2, index=0)  # net.py:1
  %4: float32[4,3] = pick(%2, index=1)  # net.py:1
  return a=%3, b=%4"""  # noqa: E501


def test_edges_go_into_bodies_and_out_of_them() -> None:
    F = new_namespace()
    x = F.placeholder("x", ROW)
    assert SymbolicGraph({"x": x}, {"y": counted(F, x)}).to_trace().splitlines() == [
        "%3.cond.i <- %0", "%3.cond.y <- x", "%3.cond.n <- %2", "%3.cond.%3 <- %3.cond.i", "%3.cond.%3 <- %3.cond.n",
        "%3.body.i <- %0", "%3.body.y <- x", "%3.body.n <- %2", "%3.body.%4 <- %3.body.i", "%3.body.%4 <- %3.body.%3",
        "%3.body.%5 <- %3.body.y", "%3.body.%5 <- %3.body.y", "%3 <- %3.cond.%3", "%3 <- %3.body.%4",
        "%3 <- %3.body.%5", "%4 <- %3",
    ]  # fmt: skip


def test_rows_and_captured_values_go_to_the_placeholders_that_stand_for_them() -> None:
    edges = branches_of_scans().to_trace().splitlines()
    assert "%2 <- at" in edges and "%2 <- x" not in edges  # x goes to the branches
    for inner, outer in (("x", "%1"), ("x'2", "x"), ("w", "%1")):
        assert f"%2.branches[0].%2.body.{inner} <- %2.branches[0].{outer}" in edges


def test_bodies_are_clusters_in_dot() -> None:
    lines = branches_of_scans().to_dot().splitlines()
    clusters = [line.split("label=")[1] for line in lines if "subgraph" in line]
    assert clusters == ['"%2 branches[0]";', '"%2 body";', '"%2 branches[1]";', '"%1 body";']
    assert len({line.split()[1] for line in lines if "subgraph" in line}) == 4
    assert sum(line.count("{") - line.count("}") for line in lines if "label=\"" not in line or "subgraph" in line) == 0
    depth = [0]
    for line in lines:
        depth.append(depth[-1] + line.startswith("  subgraph") - (line == "  }"))
    assert max(depth) == 2 and depth[-1] == 0 and min(depth) == 0


def test_a_picture_shows_what_is_in_bodies(tmp_path: Path) -> None:
    mpl = pytest.importorskip("matplotlib")
    with mpl.rc_context({"svg.fonttype": "none"}):
        text = branches_of_scans().draw(tmp_path / "g.svg").read_text()
    for label in (">a = pick<", ">case_of<", ">branches[0]: x<", ">body: x'2<", ">multiply<", ">call<", ">x<"):
        assert label in text or label.replace("'", "&#39;") in text, label


def deep(levels: int) -> SymbolicGraph:
    """A loop in a function in a loop ..."""
    inner: Body | None = None
    for _ in range(levels // 2):
        G = new_namespace()
        x = G.placeholder("x", ROW)
        inner = Body((x,), (counted(G, x, inner),))
    assert inner is not None
    return SymbolicGraph({"x": inner.inputs[0]}, {"y": inner.outputs[0]}, name="deep")


def test_a_hundred_bodies_in_each_other() -> None:
    levels = 100
    graph = deep(levels)
    lines = str(graph).splitlines()
    assert sum(line.strip().startswith("body(") for line in lines) == levels - 1
    assert max(len(line) - len(line.lstrip()) for line in lines) == 2 + 4 * (levels - 1)
    assert max(edge.count(".") for edge in graph.to_trace().splitlines()) == 2 * 2 * (levels - 1)
    dot = graph.to_dot().splitlines()
    assert sum("subgraph" in line for line in dot) == sum(line == "  }" for line in dot) == levels - 1 + levels // 2


def test_a_hundred_bodies_in_each_other_are_optimised_and_compared() -> None:
    """The same is found twice; where calls are written out half of the levels are left."""
    once, again = (OPTIMISER.run(list(deep(100).outputs.values())) for _ in range(2))
    assert once[0].inputs[0].attributes == again[0].inputs[0].attributes
    written_out = GRAPHS.inline(deep(100))
    assert str(written_out).count("= loop(") == 50 and "call(" not in str(written_out)


def test_an_explanation_says_how_often_commands_run() -> None:
    program = PROGRAMS["loop_of_branches"]
    text = nnc.jit(bound(program, Recorded)).lower(*arguments(program)).explain()
    heads = [line for line in text.splitlines()[1:] if not line[:4].strip()]
    assert [line.partition("  #")[0] for line in heads] == [
        "     the condition:", "     while the condition holds:", "       branch 0:", "       branch 1:",
        "       branch 2 or none:"]
    assert all("flows.py:" in line for line in heads)
    program = PROGRAMS["rolled_back"]
    text = nnc.jit(nnc.grad(bound(program, Recorded))).lower(*arguments(program)).explain()
    heads = [line.partition(":")[0].strip() for line in text.splitlines()[1:] if not line[:4].strip()]
    assert heads == ["4 times, backwards", "4 times"]
