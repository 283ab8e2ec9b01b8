"""Loops as they are planned, written down as records, and run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.dtype import boolean, float32
from nnc_core.base.errors import ExecutionError
from nnc_core.graph import SymbolicGraph
from nnc_core.operator import Nodes
from nnc_core.stacks import Stack
from nnc_core.symbol import Body
from nnc_core.type import TensorSpec
from tests.engine.conftest import call, floats
from tests.engine.loops import BY, X, counted, cumulated
from tests.engine.plans import both_ways, lowered
from tests.support import at_once


# ---- how often it runs
@BY
@pytest.mark.parametrize("rounds", [0, 1, 2, 3, 4, 9])
def test_any_number_of_rounds(again: Any, rounds: int) -> None:
    """The values lie elsewhere after each; inputs stay as they are, and results are the caller's own."""

    def f(a: Any, b: Any) -> list[Any]:
        return [*again(rounds, lambda a, b: (b, nnc.flip(a) + b), a, b), a]

    wanted = [X, X * 2]
    for _ in range(rounds):
        wanted = [wanted[1], np.flip(wanted[0]) + wanted[1]]
    for found, w in zip(both_ways(f, X, X * 2), [*wanted, X], strict=True):
        np.testing.assert_array_equal(found, w)


def test_a_condition_that_is_known() -> None:
    def f(x: Any) -> Any:
        return nnc.while_loop(lambda y: nnc.asarray(False), lambda y: (y * 2.0,), (x,))[0]

    np.testing.assert_array_equal(both_ways(f, X)[0], X)


def test_a_condition_that_looks_at_nothing_that_changes() -> None:
    def f(x: Any, go: Any) -> Any:
        return nnc.while_loop(lambda y: go, lambda y: (y * 2.0,), (x,))[0]

    np.testing.assert_array_equal(both_ways(f, X, np.array(False))[0], X)


@pytest.mark.parametrize("rounds", [1, 2, 5, 6])
@pytest.mark.parametrize("changed", [False, True])
def test_what_an_inner_loop_stacks_is_carried_on(rounds: int, changed: bool) -> None:
    """What was carried before is read when the inner loop has written: it lies in another memory."""
    xs = np.arange(32 * rounds, dtype=np.float32).reshape(rounds, 2, 16) + 1

    def f(a: Any, xs: Any) -> Any:
        def body(a: Any, x: Any) -> tuple[Any, Any]:
            last, stacked = nnc.scan(lambda c, row: (nnc.flip(row), c * row), x[0], x)
            return -stacked if changed else stacked, a * last

        return nnc.scan(body, a, xs)

    wanted, a = [], np.ones((2, 16), np.float32)
    for x in xs:
        wanted.append(a * x[1, ::-1])
        a = np.stack([x[0] * x[0], x[0, ::-1] * x[1]])
        a = -a if changed else a
    for found, w in zip(both_ways(f, np.ones((2, 16), np.float32), xs), [a, np.stack(wanted)], strict=True):
        np.testing.assert_array_equal(found, w)


def test_nothing_carried() -> None:
    xs = np.arange(48, dtype=np.float32).reshape(3, 16)
    np.testing.assert_array_equal(both_ways(lambda xs: nnc.map(lambda x: nnc.flip(x) * 2.0, xs), xs)[0],
                                  xs[:, ::-1] * 2)


@BY
@pytest.mark.parametrize("shape", [(0,), (0, 4), (3, 0)])
def test_empty_arrays(again: Any, shape: tuple[int, ...]) -> None:
    """Carried, gone over and stacked up."""

    def f(x: Any) -> list[Any]:
        _, ys = nnc.scan(lambda c, row: (c + row, c * 2.0), x, nnc.stack([x, x]))
        return [*again(3, lambda a, b: (b, nnc.flip(a) + b), x, x * 2.0), ys]

    assert [y.shape for y in both_ways(f, np.empty(shape, np.float32))] == [shape, shape, (2, *shape)]


def test_no_rows_to_go_over() -> None:
    def f(x: Any, xs: Any) -> list[Any]:
        last, ys = nnc.scan(lambda c, row: (c + row, c * row), x, xs)
        return [last, ys]

    last, ys = both_ways(f, X, np.empty((0, 16), np.float32))
    np.testing.assert_array_equal(last, X)
    assert ys.shape == (0, 16)


def test_a_body_that_returns_what_it_is_given() -> None:
    def f(a: Any, b: Any) -> list[Any]:
        return list(counted(3, lambda a, b: (a, b), a, b))

    a, b = both_ways(f, X, X * 2)
    np.testing.assert_array_equal(a, X)
    np.testing.assert_array_equal(b, X * 2)


def nested_bodies(stack: Stack, lengths: list[int]) -> Body:
    """x + 1, in loops of these lengths, the outermost first, each of which reverses what the one inside gives."""
    spec = TensorSpec((4,), float32)
    G = stack.operator.open()
    p = G.placeholder("x", spec)
    body = Body((p,), (G.add(p, 1.0),))
    for length in reversed(lengths):
        G = stack.operator.open()
        p = G.placeholder("x", spec)
        body = Body((p,), (G.flip(G.pick(G.loop((p,), (), (), body=body, length=length), index=0), axes=(0,)),))
    return body


def by_python(x: np.ndarray[Any, Any], lengths: list[int]) -> np.ndarray[Any, Any]:
    """What they compute."""
    if not lengths:
        return x + 1
    for _ in range(lengths[0]):
        x = by_python(x, lengths[1:])
    return x[::-1]


@pytest.mark.parametrize("optimise", [False, True])
def test_loops_100_deep(stack: Stack, F: Nodes, optimise: bool) -> None:
    x, lengths = floats(F, "x", 4), [2] + [1] * 96 + [3, 1, 2]
    body = nested_bodies(stack, lengths)
    run = stack.engine.compile(SymbolicGraph({"x": x}, {"y": F.pick(F.loop((x,), (), (), body=body, length=1),
                                                                    index=0)}), optimise=optimise)
    given = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(call(run, x=given)["y"], by_python(given, lengths))


def test_loops_100_deep_traced() -> None:
    def nest(x: Any, depth: int) -> Any:
        if not depth:
            return x + 1.0
        return counted(1, lambda y: (nest(y, depth - 1),), x)[0]

    with nnc.use_device("strict:0"):
        assert nnc.jit(lambda x: nest(x, 100))(nnc.asarray(X)).tolist() == (X + 1).tolist()


# ---- errors, and calls at the same time
class Fuse:
    """A host function that fails at its third call."""

    def __init__(self) -> None:
        self.left = 3

    def __call__(self, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        self.left -= 1
        if not self.left:
            raise ValueError("the fuse has blown")
        return x + 1


@BY
@pytest.mark.parametrize("device", ["strict:0", "strict-async:0"])
def test_an_error_inside_a_body_names_operator_and_line(again: Any, device: str) -> None:
    with nnc.use_device(device):
        x, fuse = nnc.asarray(X), Fuse()

        def f(x: Any) -> Any:
            return again(5, lambda y: (nnc.flip(nnc.callback(fuse, TensorSpec((16,), float32), y)),), x)[0]

        run = nnc.jit(f)
        with pytest.raises(ExecutionError, match="the fuse has blown") as caught:
            run(x).numpy()
        assert "callback" in str(caught.value.operator) and "test_loops.py" in str(caught.value.line)
        fuse.left = 100
        np.testing.assert_array_equal(run(x).numpy(), np.flip(X + 5))


def test_results_of_one_call_survive_the_next() -> None:
    run = lowered(lambda x: counted(3, lambda y, z: (z, nnc.flip(y) + z), x, x * 2.0)[0], X)
    upload, download = run.executor.upload, run.executor.download
    (name,) = [k for k, n in run.graph.inputs.items() if n.shape == (16,)]
    others = {k: upload(np.zeros(n.shape, n.dtype)) for k, n in run.graph.inputs.items() if k != name}
    first = run.run({name: upload(X), **others})
    kept = {k: download(v) for k, v in first.items()}
    run.run({name: upload(X * 7), **others})
    for k, v in first.items():
        np.testing.assert_array_equal(download(v), kept[k])


@BY
def test_two_calls_at_the_same_time(again: Any) -> None:
    """Pointers, windows and tapes belong to a call."""

    def f(x: Any, n: Any) -> list[Any]:
        (y,) = again(5, lambda y: (nnc.flip(y) * 0.5 + x,), x)
        (z,) = nnc.while_loop(lambda z: nnc.sum(z) < n, lambda z: (nnc.flip(z) * 1.5,), (x,))
        return [y, nnc.grad(lambda x: nnc.sum(nnc.while_loop(lambda z: nnc.sum(z) < n, lambda z: (z * z + 1.0,),
                                                             (x,))[0]))(x), z, *cumulated(nnc.stack([x, y, z]))]

    wrong: list[str] = []
    with nnc.use_device("strict:0"):
        compiled = nnc.jit(f)
        given = [(nnc.asarray(X + 1.5 + k), nnc.asarray(np.float32(30 + 20 * k))) for k in range(3)]
        wanted = [[y.numpy() for y in compiled(*g)] for g in given]

    def work(k: int) -> None:
        with nnc.use_device("strict:0"):
            for _ in range(8):
                found = [y.numpy() for y in compiled(*given[k])]
                wrong.extend(f"{k}" for a, b in zip(found, wanted[k], strict=True) if a.tobytes() != b.tobytes())

    at_once(work, range(3))
    assert not wrong


def test_a_condition_that_is_not_a_boolean_is_refused(stack: Stack, F: Nodes) -> None:
    x = floats(F, "x", 4)
    G = stack.operator.open()
    p = G.placeholder("p", x.spec)
    body = Body((p,), (G.negative(p),))
    with pytest.raises(ValueError, match="boolean scalar"):
        F.loop((x,), (), (), body=body, cond=Body((p,), (p,)))
    F.loop((x,), (), (), body=body, cond=Body((p,), (G.full(shape=(), value=False, dtype=boolean),)))
