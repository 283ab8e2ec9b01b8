"""NNC's unit cases of loops and of the tape, restated: values and gradients equal the unrolled program's.

docs/nnc_cases.md says which case became which test.
"""

from __future__ import annotations

import gc
import weakref
from functools import partial
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from tests.semantics.loops import (
    bodies,
    both,
    compare,
    compare_gradients,
    in_a_loop,
    one,
    operators,
    piece,
    repeat,
    repeat_in_python,
)
from tests.semantics.modes import check, hosts
from tests.support import numbers, same


# ---- while.tests
def powers(again: Any, start: nnc.Tensor, by: nnc.Tensor) -> nnc.Tensor:
    (z,) = again(5, lambda z: (z * by,), (start,))
    return z


def test_while_0_34_times_1_11_to_the_fifth(device: str, mode: str) -> None:
    def program(again: Any, x: nnc.Tensor, y: nnc.Tensor) -> nnc.Tensor:
        return x * powers(again, nnc.ones_like(y), y)

    compare(mode, *both(program), one(0.34), one(1.11))
    assert program(repeat, one(0.34), one(1.11)).item() == pytest.approx(0.34 * 1.11**5, rel=1e-6)


def test_while_reuses_allocations_0_32_times_2_8_to_the_fifth(device: str, mode: str) -> None:
    """Two places take turns (multi-view type I): neither x nor its first value is overwritten."""
    x, y = one(0.32), one(2.8)
    compare(mode, *both(powers), x, y)
    assert powers(repeat, x, y).item() == pytest.approx(0.32 * 2.8**5, rel=1e-6)
    same(hosts([x, y]), hosts([one(0.32), one(2.8)]))


def test_while_set_again_0_47_times_5_5_to_the_fifth(device: str, mode: str) -> None:
    """NNC changes the inputs of a node and changes them back; here one traced loop runs from another start."""
    f, y = nnc.jit(partial(powers, repeat)), one(5.5)
    for start in (0.32, 0.47, 0.32):
        compare(mode, *both(powers), one(start), y)
        assert f(one(start), y).item() == pytest.approx(start * 5.5**5, rel=1e-5)
    assert f.traces == 1


def test_while_graph_from_its_node(device: str, mode: str) -> None:
    """The body of a loop is a graph that can be looked at; the loop is one node, however often it runs."""
    x, y = one(0.92), one(3.2)
    with nnc.deferred():
        z = powers(repeat, x, y)
    graph = nnc.export({"x": x, "y": y}, {"z": z})
    inside = operators(bodies(graph, "loop"))
    assert inside.count("multiply") == 1 and inside.count("less") == 1
    assert str(graph).count(" = loop(") == 1
    check(mode, partial(powers, repeat), x, y)


def test_while_x_to_the_fifth_times_y(device: str, mode: str) -> None:
    def program(again: Any, x: nnc.Tensor, y: nnc.Tensor) -> nnc.Tensor:
        return powers(again, nnc.ones_like(x), x) * y

    compare(mode, *both(program), one(0.92), one(3.2))
    compare_gradients(mode, *both(program), one(0.92), one(3.2))
    assert program(repeat, one(0.92), one(3.2)).item() == pytest.approx(0.92**5 * 3.2, rel=1e-6)


def test_while_z_times_x_to_the_fifth_times_y_plus_z(device: str, mode: str) -> None:
    """The carried value's start is read after the loop: it must still be there."""

    def program(again: Any, x: nnc.Tensor, y: nnc.Tensor, z: nnc.Tensor) -> nnc.Tensor:
        return powers(again, z, x) * y + z

    args = one(0.92), one(3.2), one(1.2)
    compare(mode, *both(program), *args)
    compare_gradients(mode, *both(program), *args)
    assert program(repeat, *args).item() == pytest.approx(1.2 * 0.92**5 * 3.2 + 1.2, rel=1e-6)


X, W, B = numbers(1, 5, 5, 4), numbers(3, 3, 4, 4, seed=1) * np.float32(0.2), numbers(4, seed=2)


def conv(x: nnc.Tensor, w: nnc.Tensor, b: nnc.Tensor) -> nnc.Tensor:
    return nnc.conv2d(x, w, padding="SAME") + b


def images() -> tuple[nnc.Tensor, nnc.Tensor, nnc.Tensor]:
    return nnc.asarray(X), nnc.asarray(W), nnc.asarray(B)


def conv_then_pool(again: Any, x: nnc.Tensor, w: nnc.Tensor, b: nnc.Tensor, pool: Any = nnc.max_pool2d) -> nnc.Tensor:
    (x,) = again(5, lambda x: (pool(conv(x, w, b), 3, strides=1, padding="SAME"),), (x,))
    return x


@pytest.mark.parametrize("pool", [nnc.max_pool2d, nnc.avg_pool2d], ids=["max", "average"])
def test_while_pool_of_conv_5_times(device: str, mode: str, pool: Any) -> None:
    """NNC's title says max, its code takes the average: both."""
    compare(mode, *both(partial(conv_then_pool, pool=pool)), *images())
    compare_gradients(mode, *both(partial(conv_then_pool, pool=pool)), *images(), second=False)


def convs(again: Any, x: nnc.Tensor, w: nnc.Tensor, b: nnc.Tensor) -> nnc.Tensor:
    (x,) = again(5, lambda x: (conv(x, w, b),), (x,))
    return x


def test_while_conv_5_times(device: str, mode: str) -> None:
    compare(mode, *both(convs), *images())
    compare_gradients(mode, *both(convs), *images(), second=mode in ("deferred", "jit"))


def test_while_conv_5_times_then_plus_x0(device: str, mode: str) -> None:
    def program(again: Any, x: nnc.Tensor, w: nnc.Tensor, b: nnc.Tensor) -> nnc.Tensor:
        return x + convs(again, x, w, b)

    compare(mode, *both(program), *images())
    compare_gradients(mode, *both(program), *images(), second=False)


def nested(again: Any, x: nnc.Tensor, w: nnc.Tensor, b: nnc.Tensor) -> nnc.Tensor:
    (z,) = again(5, lambda x0: (x0 + convs(again, x0, w, b),), (x,))
    return z


def test_while_conv_5_times_plus_x0_5_times(device: str, mode: str) -> None:
    compare(mode, *both(nested), *images())
    compare_gradients(mode, *both(nested), *images(), second=False)


def two_carried(again: Any, x0: nnc.Tensor, x1: nnc.Tensor, w: nnc.Tensor, b: nnc.Tensor) -> list[nnc.Tensor]:
    return list(again(5, lambda x0, x1: (x1, x0 + conv(x1, w, b)), (x0, x1)))


def test_while_two_carried_values_change_places(device: str, mode: str) -> None:
    """y = conv(x1, w, b), x2 = x0 + y; x0 <- x1, x1 <- x2."""
    x, w, b = images()
    args = x, x * 0.5, w, b
    compare(mode, *both(two_carried), *args)
    compare_gradients(mode, *both(two_carried), *args, second=False)


def three_carried(again: Any, x: nnc.Tensor, w: nnc.Tensor, b: nnc.Tensor) -> nnc.Tensor:
    def step(x0: nnc.Tensor, x1: nnc.Tensor, x2: nnc.Tensor, y: nnc.Tensor) -> tuple[nnc.Tensor, ...]:
        y = conv(x1, w, b)
        return x1, x2, x0 + y * 1.2, y

    x0, x1, x2, y = again(5, step, (x, x * 0.5, x * 0.25, nnc.zeros_like(x)))
    return y + x2 + x1 + x0


def test_while_three_carried_values_and_one_from_inside(device: str, mode: str) -> None:
    """Used after the loop: the last three values, and an intermediate of the last round."""
    compare(mode, *both(three_carried), *images())
    compare_gradients(mode, *both(three_carried), *images(), second=False)


@pytest.mark.parametrize("program", [convs, nested, conv_then_pool], ids=["conv", "nested", "pool"])
def test_while_conv_without_a_copy(device: str, program: Any) -> None:
    """Carried values take turns in memory: no command of the plan, bodies included, copies one."""
    f = nnc.jit(partial(program, repeat))
    with nnc.config.using(fusion=False):
        run, timings = f.lower(*images()), f.profile(*images()).timings
    assert "conv" in run.explain(), "bodies are explained as well"
    copies = [line for line in run.explain().splitlines() if " copy(" in line]
    assert all("only if too few rounds run" in line for line in copies), "an output is the caller's own in any case"
    rows = {t.command.split("(")[0]: t.seconds for t in timings}
    assert rows.get("copy", 0.0) == 0.0 and rows["conv"] > 0, "nothing was copied in the rounds that did run"


def test_while_that_never_runs(device: str, mode: str) -> None:
    """No round at all gives the carried values; the gradient passes through."""

    def program(x: nnc.Tensor) -> nnc.Tensor:
        (y,) = nnc.while_loop(lambda y: nnc.sum(y) > 1e6, lambda y: (y * y,), (x,))
        return y

    compare(mode, program, lambda x: x * 1, one(0.5))
    compare_gradients(mode, program, lambda x: x * 1, one(0.5))


# ---- while.backward.tests
def test_while_backward_of_0_34_times_1_11_to_the_fifth(device: str, mode: str) -> None:
    x, y = one(0.34), one(1.11)
    compare_gradients(mode, *both(powers), x, y)
    by_x = nnc.grad(lambda x: nnc.sum(powers(repeat, x, y)))
    check(mode, by_x, x)
    assert by_x(x).item() == pytest.approx(1.11**5, rel=1e-6)


def logs(again: Any, x: nnc.Tensor, y: nnc.Tensor, v: nnc.Tensor) -> nnc.Tensor:
    (z,) = again(5, lambda x: (nnc.log(x * y),), (x,))
    return v * z


def test_while_backward_of_log_x_y_5_times_times_v(device: str, mode: str) -> None:
    """By y, which every round reads."""
    args = one(1.0), one(3.2), one(0.22)
    compare(mode, *both(logs), *args)
    compare_gradients(mode, *both(logs), *args)

    def by_hand(y: float) -> float:
        z = 1.0
        for _ in range(5):
            z = np.log(z * y)
        return 0.22 * z

    slope = (by_hand(3.2 + 1e-6) - by_hand(3.2 - 1e-6)) / 2e-6
    found = nnc.grad(lambda y: nnc.sum(logs(repeat, args[0], y, args[2])))(args[1])
    assert found.item() == pytest.approx(slope, rel=1e-4)


# ---- tape.tests
def triangle(x: nnc.Tensor, w: nnc.Tensor) -> nnc.Tensor:
    """Outer round i runs the inner loop i + 1 times: what the tape holds differs from round to round."""

    def outer(i: nnc.Tensor, x: nnc.Tensor) -> tuple[nnc.Tensor, nnc.Tensor]:
        def inner(j: nnc.Tensor, x: nnc.Tensor) -> tuple[nnc.Tensor, nnc.Tensor]:
            return j + 1, nnc.sin(x * w) + x

        _, x = nnc.while_loop(lambda j, x: j <= i, inner, (i * 0, x))
        return i + 1, x * w

    return nnc.while_loop(lambda i, x: i < 3, outer, (nnc.asarray(np.array(0, np.int32)), x))[1]


def triangle_in_python(x: nnc.Tensor, w: nnc.Tensor) -> nnc.Tensor:
    for i in range(3):
        for _ in range(i + 1):
            x = nnc.sin(x * w) + x
        x = x * w
    return x


def test_tape_of_nested_loops(device: str, mode: str) -> None:
    """Values by (outer round, inner round), and how often each inner loop ran, as NNC's tape numbers them."""
    args = nnc.asarray(numbers(3)), nnc.asarray(numbers(3, seed=1))
    compare(mode, triangle, triangle_in_python, *args)
    compare_gradients(mode, triangle, triangle_in_python, *args)


def test_tape_numbers_the_branches_that_were_taken(device: str, mode: str) -> None:
    """A branch in each round of a loop: the way back goes through the branch of that round."""

    def step(x: nnc.Tensor) -> nnc.Tensor:
        branches = (lambda x: (x * x * 0.5,), lambda x: (nnc.sin(x),), lambda x: (x + 1.5,))
        return nnc.case_of(piece(x), branches, (x,), replacement=(x * 2.5,))[0]

    def plain(x: nnc.Tensor) -> nnc.Tensor:
        at = piece(x).item()
        return x * x * 0.5 if at == 0 else nnc.sin(x) if at == 1 else x + 1.5 if at == 2 else x * 2.5

    program = partial(in_a_loop, repeat, step, 0.9)
    unrolled = partial(in_a_loop, repeat_in_python, plain, 0.9)
    for point in (-1.3, 0.3, 1.1, 2.4):
        compare(mode, program, unrolled, one(point))
        compare_gradients(mode, program, unrolled, one(point))


def test_tape_is_freed(device: str) -> None:
    """NNC's tape is freed by hand."""
    x = nnc.variable(numbers(3))
    y = nnc.sum(triangle(x, nnc.asarray(numbers(3, seed=1))))
    y.backward()
    kept = weakref.ref(y._value)
    del y
    gc.collect()
    assert kept() is None and x.grad is not None
