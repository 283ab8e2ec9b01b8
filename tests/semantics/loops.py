"""Programs with loops and branches beside what they mean: Python that runs eagerly and knows no control flow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

import nnc_core as nnc
from nnc_core.symbol import Body
from tests.semantics.modes import check, hosts, tensors

Program = Callable[..., Any]


def one(value: float) -> nnc.Tensor:
    """A tensor of shape (1,), which NNC's cases compute with."""
    return nnc.asarray(np.array([value], np.float32))


def repeat(times: int, body: Program, carried: Sequence[nnc.Tensor]) -> tuple[nnc.Tensor, ...]:
    """The values after a counted while loop: NNC's `while_count < times`."""
    count = nnc.asarray(np.array(0, np.int32))

    def step(count: nnc.Tensor, *carried: nnc.Tensor) -> tuple[nnc.Tensor, ...]:
        return count + 1, *body(*carried)

    _, *found = nnc.while_loop(lambda count, *_: count < times, step, (count, *carried))
    return tuple(found)


def repeat_in_python(times: int, body: Program, carried: Sequence[nnc.Tensor]) -> tuple[nnc.Tensor, ...]:
    """What `repeat` means."""
    values = tuple(carried)
    for _ in range(times):
        values = tuple(body(*values))
    return values


def both(program: Program) -> tuple[Program, Program]:
    """A program that takes `repeat` first, with it, and with Python's loop in its place."""
    return partial(program, repeat), partial(program, repeat_in_python)


def bodies(graph: nnc.SymbolicGraph, op: str) -> list[Body]:
    """What the only node with this operator holds: conditions, bodies, branches."""
    (node,) = [node for node in graph.nodes if node.op.name == op]
    given = [x for a in node.attributes for x in (a if isinstance(a, tuple) else (a,))]
    return [x for x in given if isinstance(x, Body)]


def operators(found: Sequence[Body]) -> list[str]:
    """Names of the operators in bodies."""
    return [node.op.name for body in found for node in body.nodes]


def choose_in_python(index: int, branches: Sequence[Program], operands: Sequence[nnc.Tensor],
                     replacement: Sequence[nnc.Tensor]) -> tuple[nnc.Tensor, ...]:
    """What `nnc.case_of` means."""
    return tuple(branches[index](*operands)) if 0 <= index < len(branches) else tuple(replacement)


def compare(mode: str, program: Program, plain: Program, *args: nnc.Tensor) -> None:
    """The program in one of the modes against itself eager, to the bit, and against the plain one."""
    check(mode, program, *args)
    near(program(*args), plain(*args))


def compare_gradients(mode: str, program: Program, plain: Program, *args: nnc.Tensor, second: bool = True) -> None:
    """First and second order, by all arguments; each in the mode.  Where a loop adds up what its rounds contribute,
    the order of the sum is another one than in the unrolled program, which is what eager differentiates."""
    everywhere = tuple(range(len(args)))
    first, wanted = (nnc.grad(loss_of(f), everywhere) for f in (program, plain))
    check(mode, lambda *xs: list(first(*xs)), *args, compare=near)
    near(first(*args), wanted(*args))
    if second:
        twice, wanted_twice = (nnc.grad(loss_of(g), everywhere) for g in (first, wanted))
        check(mode, lambda *xs: list(twice(*xs)), *args, compare=near)
        near(twice(*args), wanted_twice(*args))
    forwards, wanted_forwards = (nnc.jvp(f, args, tuple(x * 0 + 1 for x in args))[1] for f in (program, plain))
    near(forwards, wanted_forwards)


def loss_of(f: Program) -> Program:
    """Cubes, so that the second derivative of a linear program is not zero."""

    def loss(*args: nnc.Tensor) -> nnc.Tensor:
        total, *rest = [nnc.sum(y * y * y) for y in tensors(f(*args))]
        for part in rest:
            total = total + part
        return total

    return loss


def _sequence(x: Any) -> Any:
    return x if isinstance(x, (list, tuple)) else [x]


def near(found: Any, wanted: Any) -> None:
    """Equal but for the order of a few roundings."""
    a, b = (x if isinstance(x[0], np.ndarray) else hosts(x) for x in (_sequence(found), _sequence(wanted)))
    assert len(a) == len(b) > 0
    for x, y in zip(a, b, strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_allclose(x, y, rtol=2e-5, atol=1e-6 * max(1.0, float(np.abs(y).max(initial=0))))


POINTS = (-1.0, 0.0, 0.76, 1.226, 2.1)


def piece(x: nnc.Tensor) -> nnc.Tensor:
    """0 below zero, nothing (-1) below 1, 1 below 2, else 2."""
    first = x[0]
    above = nnc.where(first < 2.0, 1, 2)
    return nnc.where(first < 0.0, 0, nnc.where(first < 1.0, -1, above)).astype(nnc.int32)


PIECES: tuple[Callable[[nnc.Tensor], tuple[nnc.Tensor]], ...] = (
    lambda x: (nnc.zeros_like(x),), lambda x: (x * 0.5 + 0.5,), lambda x: (nnc.full_like(x, 1.5),),
)  # fmt: skip


def piecewise(x: nnc.Tensor) -> nnc.Tensor:
    """A branch for each piece but [0, 1), where x itself is the replacement."""
    (y,) = nnc.case_of(piece(x), PIECES, (x,), replacement=(x,))
    return y


def piecewise_in_python(x: nnc.Tensor) -> nnc.Tensor:
    return choose_in_python(piece(x).item(), PIECES, (x,), (x,))[0]


def by_numpy(x: float) -> float:
    return 0.0 if x < 0 else x if x < 1 else (x - 1) * 0.5 + 1 if x < 2 else 1.5


def in_a_loop(again: Any, choose: Any, factor: float, x: nnc.Tensor) -> nnc.Tensor:
    (x,) = again(4, lambda x: (choose(x * factor if factor != 1.0 else x),), (x,))
    return x * 0.3
