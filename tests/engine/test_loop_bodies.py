"""Bodies of loops as they are planned and written down: once or several times, with the memory around them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.record import Call, RotatePointer
from nnc_core.engine.plan_control import WRITTEN_OUT
from tests.engine.loops import BY, X, counted
from tests.engine.plans import both_ways, calls, copied, copies_written, loops, lowered, records, steps_of

IMAGE = np.linspace(-1, 1, 36, dtype=np.float32).reshape(1, 6, 6, 1)
WEIGHT = np.linspace(-0.3, 0.4, 9, dtype=np.float32).reshape(3, 3, 1, 1)


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
