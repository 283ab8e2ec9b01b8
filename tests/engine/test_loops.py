"""Loops as they are planned, written down as records, and run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.dtype import boolean, float32
from nnc_core.base.errors import ExecutionError
from nnc_core.base.record import Call, Repeat, RotatePointer, Window
from nnc_core.engine import ComputationGraph
from nnc_core.engine.plan_control import WRITTEN_OUT
from nnc_core.graph import SymbolicGraph
from nnc_core.operator import Nodes
from nnc_core.stacks import Stack
from nnc_core.symbol import Body
from nnc_core.type import TensorSpec
from tests.engine.conftest import call, floats
from tests.engine.plans import both_ways, calls, copied, copies_written, kinds, loops, lowered, records, steps_of

X = np.linspace(-1, 1, 16, dtype=np.float32)
IMAGE = np.linspace(-1, 1, 36, dtype=np.float32).reshape(1, 6, 6, 1)
WEIGHT = np.linspace(-0.3, 0.4, 9, dtype=np.float32).reshape(3, 3, 1, 1)
Step = Callable[..., tuple[Any, ...]]


def counted(rounds: int, step: Step, *first: Any) -> tuple[Any, ...]:
    """A while loop of so many rounds."""
    found = nnc.while_loop(lambda i, *_: i < rounds, lambda i, *v: (i + 1, *step(*v)), (nnc.asarray(0), *first))
    return found[1:]


def scanned(rounds: int, step: Step, *first: Any) -> tuple[Any, ...]:
    """The same by a loop of known length."""
    last, _ = nnc.scan(lambda v, _: (tuple(step(*v)), None), tuple(first), None, rounds)
    return tuple(last)


BY = pytest.mark.parametrize("again", [counted, scanned], ids=["while", "scan"])


# ---- how often a body is written
@BY
def test_a_convolution_takes_turns_between_two_places(again: Any) -> None:
    """x = conv(x): one copy of the body more, one round before that reads the input, and no command that copies."""

    def f(x: Any, w: Any) -> Any:
        return nnc.sum(again(7, lambda x: (nnc.conv2d(x, w, padding="SAME"),), x)[0])

    run = lowered(f, IMAGE, WEIGHT)
    (loop,) = loops(run)
    assert loop.plan.unrolling is not None and (len(loop.plan.unrolling.first), loop.plan.unrolling.copies) == (1, 1)
    assert not copied(run) and sum(name.startswith("conv") for name in steps_of(loop)) == 1
    assert sum(s.nbytes == IMAGE.nbytes for s in run.plan.arena) == 2, "two places, and the input where it lies"
    both_ways(f, IMAGE, WEIGHT)


@BY
@pytest.mark.parametrize("n", [2, 3, 4])
def test_a_shift_of_n_values(again: Any, n: int) -> None:
    """Nothing is copied: n + 1 places, and n copies of the body more."""

    def f(x: Any) -> Any:
        first = [nnc.exp(x + float(k)) for k in range(n)]
        return sum([nnc.sum(v) * (k + 1) for k, v in
                    enumerate(again(11, lambda *v: (*v[1:], nnc.flip(v[0]) * 0.5), *first))])

    run = lowered(f, X)
    assert copies_written(run) == n and not copied(run)
    both_ways(f, X)


@BY
def test_a_value_overwritten_in_place_needs_one_place(again: Any) -> None:
    def f(x: Any) -> Any:
        return nnc.sum(again(5, lambda y: (nnc.sin(y) * 0.5,), nnc.exp(x))[0])

    run = lowered(f, X)
    assert copies_written(run) == 0 and not copied(run)
    assert sum(s.nbytes == X.nbytes for s in run.plan.arena) == 1
    both_ways(f, X)


@BY
def test_swapped_values_move_by_themselves(again: Any) -> None:
    def f(a: Any, b: Any) -> Any:
        a, b = again(5, lambda a, b: (b, a), nnc.exp(a), nnc.sin(b))
        return a - b * 2

    run = lowered(f, X, X)
    (loop,) = loops(run)
    assert not copied(run) and "copy" not in steps_of(loop) and copies_written(run) == 1
    np.testing.assert_allclose(both_ways(f, X, X)[0], np.sin(X) - np.exp(X) * 2, rtol=1e-5, atol=1e-6)


@BY
def test_a_value_that_is_carried_and_captured_is_not_overwritten(again: Any) -> None:
    def f(x: Any) -> Any:
        y = nnc.exp(x)
        return again(4, lambda z: (z * y,), y)[0] - y

    np.testing.assert_allclose(both_ways(f, X)[0], np.exp(X) ** 5 - np.exp(X), rtol=1e-5, atol=1e-5)
    assert not [note for note in copied(lowered(f, X)) if note == "before the first round"]


@BY
def test_one_value_carried_twice_becomes_two(again: Any) -> None:
    def f(x: Any) -> Any:
        y = nnc.exp(x)
        a, b = again(3, lambda a, b: (a * 2.0, nnc.flip(b) + a), y, y)
        return [a, b]

    a = b = np.exp(X)
    for _ in range(3):
        a, b = a * 2, np.flip(b) + a
    for found, wanted in zip(both_ways(f, X), (a, b), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5)


@BY
@pytest.mark.parametrize("rounds", [0, 1, 2, 5])
def test_results_of_a_body_that_are_no_values_of_its_own(again: Any, rounds: int) -> None:
    """A number, a constant, what comes from outside, a carried value twice, a view: each in place after any round."""
    outside = np.arange(16, dtype=np.float32).reshape(4, 4)

    def f(x: Any, k: Any) -> list[Any]:
        def step(a: Any, b: Any, c: Any, d: Any, e: Any) -> tuple[Any, ...]:
            return nnc.full((4, 4), 0.25), nnc.asarray(outside), k, a, e.T

        return list(again(rounds, step, x, x, x, x * 2.0, x))

    x, k = X.reshape(4, 4), X.reshape(4, 4) * 3
    a, b, c, d, e = both_ways(f, x, k)
    ran = rounds > 0
    np.testing.assert_array_equal(a, np.full((4, 4), 0.25) if ran else x)
    np.testing.assert_array_equal(b, outside if ran else x)
    np.testing.assert_array_equal(c, k if ran else x)
    np.testing.assert_array_equal(d, x * 2 if not ran else x if rounds == 1 else np.full((4, 4), 0.25))
    np.testing.assert_array_equal(e, x.T if rounds % 2 else x)


def test_too_many_copies_are_not_written_and_pointers_rotate() -> None:
    """Shifts by three and by five: their places come back together after twelve rounds."""

    def f(x: Any) -> Any:
        first = [nnc.exp(x * float(k)) for k in range(8)]

        def step(*v: Any) -> tuple[Any, ...]:
            return (*v[1:3], nnc.flip(v[0]) * 0.5, *v[4:], nnc.flip(v[3]) + v[1])

        return sum([nnc.sum(v) * (k + 1) for k, v in enumerate(counted(17, step, *first))])

    run = lowered(f, X)
    (loop,) = loops(run)
    assert loop.plan.unrolling is None and WRITTEN_OUT < 4 * 6
    assert {len(r.slots) for r in records(run.records) if isinstance(r, RotatePointer)} == {4, 6}
    written = [r.label for r in records(run.records) if isinstance(r, Call)]
    assert steps_of(loop).count("flip") == written.count("flip") == 2, "the body is written once"
    both_ways(f, X)


@BY
def test_loops_in_loops_do_not_multiply_without_end(again: Any) -> None:
    """Four deep: the two outer ones are written out, in the others pointers rotate."""

    def nest(x: Any, w: Any, depth: int) -> Any:
        if not depth:
            return nnc.conv2d(x, w, padding="SAME")
        return again(3, lambda x: (nest(x, w, depth - 1) + x * 0.25,), x)[0]

    runs = [lowered(lambda x, w, d=d: nest(x, w, d), IMAGE, WEIGHT) for d in (4, 5, 6, 7)]
    assert [loop.plan.unrolling is None for loop in loops(runs[0])] == [False, False, True, True]
    four, five, six, seven = map(calls, runs)
    assert five - four == six - five == seven - six, "each loop more is written once"
    both_ways(lambda x, w: nest(x, w, 4), IMAGE, WEIGHT)


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


# ---- memory around a loop
@BY
@pytest.mark.parametrize("rounds", [0, 1, 2, 3])
def test_what_may_lie_where_a_value_came_from_is_not_overwritten(again: Any, rounds: int) -> None:
    """After no round the result is the first value itself, which dies with it in the same command: y - z.T must not
    be written over y."""

    def f(x: Any) -> Any:
        y = nnc.exp(x)
        (z,) = again(rounds, lambda z: (nnc.flip(z) * 0.5,), y)
        return (y - z.T) * 2.0

    x = X.reshape(4, 4)
    (step,) = [s for s in lowered(f, x).plan.steps if s.group.op.name == "subtract"]
    assert step.writes[0] is not step.reads[0] or not step.reads[1].may_be(step.reads[0])
    both_ways(f, x, device="strict-poison:0")


def test_a_result_of_a_branch_that_a_loop_carries_on() -> None:
    """It is computed by either branch, then changed: not in place, since the place moves from round to round."""

    def f(x: Any) -> Any:
        def step(i: Any, a: Any, b: Any) -> tuple[Any, ...]:
            (y,) = nnc.case_of(i % 2, [lambda a: (nnc.flip(a),), lambda a: (a * 0.5,)], (a,))
            return i + 1, b, y * 0.75

        return nnc.while_loop(lambda i, *_: i < 5, step, (nnc.asarray(0), nnc.exp(x), nnc.sin(x)))[1:]

    both_ways(f, X, device="strict-poison:0")


def test_a_result_of_an_inner_loop_that_an_outer_one_carries_on() -> None:
    def f(x: Any) -> Any:
        def step(a: Any, b: Any) -> tuple[Any, ...]:
            (y,) = counted(3, lambda y: (nnc.flip(y) + a,), b)
            return b, y * 0.25

        return counted(5, step, nnc.exp(x), nnc.sin(x))

    both_ways(f, X, device="strict-poison:0")


# ---- rows
ROWS = np.linspace(-1, 1, 5 * 32, dtype=np.float32).reshape(5, 32)


def cumulated(xs: Any, reverse: bool = False) -> list[Any]:
    last, ys = nnc.scan(lambda c, x: (nnc.flip(c) * 0.5 + x, c * x), xs[0] * 0.0, xs, reverse=reverse)
    return [last, ys]


@pytest.mark.parametrize("reverse", [False, True], ids=["forwards", "backwards"])
@pytest.mark.parametrize(("device", "columns", "windows"), [
    ("strict:0", 32, True), ("strict:0", 16, True), ("strict:0", 3, False), ("strict-align128:0", 32, True),
    ("strict-align128:0", 16, False), ("strict-noviews:0", 32, False), ("strict-small:0", 16, True),
    ("strict-async:0", 16, True),
])
def test_rows_are_windows_where_they_are_aligned(device: str, columns: int, windows: bool, reverse: bool) -> None:
    """Otherwise they are taken and put by an index, and the values are the same."""
    xs = ROWS[:, :columns]
    run = lowered(lambda xs: cumulated(xs, reverse), xs, device=device)
    names = [s.group.op.name for s in run.plan.steps]
    assert ("Window" in kinds(run)) == windows
    assert ("put_row" in names) == ("take" in names) == (not windows)
    assert "copy" not in names or not windows, "rows are read and computed where they lie"
    last, ys = both_ways(lambda xs: cumulated(xs, reverse), xs, device=device)
    c, wanted = np.zeros(columns, np.float32), np.empty_like(xs)
    for i in range(5)[::-1] if reverse else range(5):
        c, wanted[i] = c[::-1] * np.float32(0.5) + xs[i], c * xs[i]
    np.testing.assert_array_equal(last, c)
    np.testing.assert_array_equal(ys, wanted)


def test_windows_lie_within_the_whole_in_every_round() -> None:
    """Backwards the last row comes first."""
    xs = np.concatenate([ROWS] * 4)
    for reverse in (False, True):
        run = lowered(lambda xs, reverse=reverse: cumulated(xs, reverse), xs)
        found: dict[int, list[int]] = {}
        for record in run.records:
            inner = record.records if isinstance(record, Repeat) else (record,)
            for i in range(record.count if isinstance(record, Repeat) else 1):
                for w in inner:
                    if isinstance(w, Window):
                        found.setdefault(w.source, []).append(w.offset + w.step * i)
        rows = [k * 128 for k in range(20)]
        assert len(found) == 2 and all(at == (rows[::-1] if reverse else rows) for at in found.values())


def test_some_rows_are_windows_and_some_are_not() -> None:
    def f(xs: Any, ns: Any) -> list[Any]:
        last, (ys, ms) = nnc.scan(lambda c, row: (c + row[0], (c * row[0], row[1] + 1)), xs[0] * 0.0, (xs, ns))
        return [last, ys, ms]

    run = lowered(f, ROWS, np.arange(5))
    assert "Window" in kinds(run) and "put_row" in [s.group.op.name for s in run.plan.steps]
    np.testing.assert_array_equal(both_ways(f, ROWS, np.arange(5))[2], np.arange(5) + 1)


# ---- tapes
def slope(x: Any, limit: Any) -> Any:
    """The gradient through a loop that runs until a sum reaches a limit, or not at all."""

    def loss(x: Any) -> Any:
        return nnc.sum(nnc.while_loop(lambda y: nnc.sum(y) < limit, lambda y: (y * y + 0.5,), (x,))[0])

    return nnc.grad(loss)(x)


def by_hand(x: np.ndarray[Any, Any], limit: float) -> np.ndarray[Any, Any]:
    slopes = np.ones_like(x)
    while x.sum() < limit:
        slopes, x = slopes * 2 * x, x * x + np.float32(0.5)
    return slopes


LIMITS = (20.0, 1e9, -100.0, 60.0)
"""Several rounds, more, none, fewer."""


def test_a_tape_holds_as_many_rounds_as_ran() -> None:
    f = nnc.jit(slope)
    with nnc.use_device("strict-poison:0"):
        x = nnc.asarray(X * 0.5 + 1)
        run = f.lower(x, nnc.asarray(np.float32(20))).program
        assert {"TapePush", "TapeRead", "TapeReset", "Repeat"} <= set(kinds(run))
        for limit in (*LIMITS, *LIMITS[::-1]):
            found = f(x, nnc.asarray(np.float32(limit))).numpy()
            np.testing.assert_allclose(found, by_hand(x.numpy(), limit), rtol=1e-5)
        assert f.traces == 1


class Allocations:
    """Sizes of what a device allocates."""

    def __init__(self, run: ComputationGraph, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sizes: list[int] = []
        allocate = run.device.allocate

        def counted(nbytes: int) -> Any:
            self.sizes.append(nbytes)
            return allocate(nbytes)

        monkeypatch.setattr(run.device, "allocate", counted)

    def during(self, action: Callable[[], object]) -> list[int]:
        self.sizes.clear()
        action()
        return sorted(self.sizes)


def test_tapes_use_their_memory_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second run allocates its outputs alone, as do shorter ones; a longer one what it has more."""
    run = lowered(slope, X * 0.5 + 1, np.float32(20))
    upload = run.executor.upload
    inputs = {shape: name for name, shape in ((k, n.shape) for k, n in run.graph.inputs.items())}
    given = {limit: {inputs[(16,)]: upload(X * np.float32(0.5) + 1), inputs[()]: upload(np.array(limit, np.float32))}
             for limit in LIMITS}
    allocations = Allocations(run, monkeypatch)
    first = allocations.during(lambda: run.run(given[20.0]))
    again = allocations.during(lambda: run.run(given[20.0]))
    assert len(again) < len(first)
    fresh = allocations.during(lambda: run.run(given[-100.0]))
    assert again == fresh, "no round at all needs as much as a second run: the outputs"
    longer = allocations.during(lambda: run.run(given[1e9]))
    assert len(longer) > len(fresh)
    assert allocations.during(lambda: run.run(given[1e9])) == fresh
    assert allocations.during(lambda: run.run(given[60.0])) == fresh


def test_a_loop_that_goes_back_may_leave_a_tape_for_another() -> None:
    """Second order: the way back of the first loop is taped backwards, and that tape is turned."""

    def curvature(x: Any, limit: Any) -> Any:
        return nnc.grad(lambda x: nnc.sum(slope(x, limit) ** 2))(x)

    with nnc.use_device("strict:0"):
        x, limit = nnc.asarray(X * np.float32(0.5) + 1), nnc.asarray(np.float32(60))
        f = nnc.jit(curvature)
        assert "TapeReverse" in kinds(f.lower(x, limit).program)
        for _ in range(2):
            np.testing.assert_allclose(f(x, limit).numpy(), curvature(x, limit).numpy(), rtol=1e-4)


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

    threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_a_condition_that_is_not_a_boolean_is_refused(stack: Stack, F: Nodes) -> None:
    x = floats(F, "x", 4)
    G = stack.operator.open()
    p = G.placeholder("p", x.spec)
    body = Body((p,), (G.negative(p),))
    with pytest.raises(ValueError, match="boolean scalar"):
        F.loop((x,), (), (), body=body, cond=Body((p,), (p,)))
    F.loop((x,), (), (), body=body, cond=Body((p,), (G.full(shape=(), value=False, dtype=boolean),)))
