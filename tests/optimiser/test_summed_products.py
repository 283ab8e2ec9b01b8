"""Sums of products leave loops, where no more rows have to be kept for it, and where no round looks at them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.config import config
from nnc_core.operator.control import LOOP, LoopAttributes
from nnc_core.symbol import Node

ROUNDS, ROWS, WIDTH = 5, 3, 4
Function = Callable[..., Any]


@pytest.fixture(autouse=True, params=["cpu:0", "strict:0"])
def _device(request: pytest.FixtureRequest) -> Any:
    with nnc.use_device(request.param):
        yield


def drawn(*shape: int, seed: int = 0) -> Any:
    return nnc.asarray(np.random.default_rng(seed).standard_normal(shape).astype(np.float32) / 2)


def recurrent(x: Any, w: Any) -> Any:
    """Steps that are given all that does not depend on the state, so that its gradient is stacked up."""
    return nnc.scan(lambda h, row: (y := nnc.tanh(row + h @ w), y), nnc.zeros((ROWS, WIDTH)), x)[1]


def gradients(x: Any, w: Any) -> Any:
    return nnc.grad(lambda x, w: nnc.sum(recurrent(x, w) ** 2), argnums=(0, 1))(x, w)


def updated(x: Any, w: Any) -> Any:
    """The gradient by x is wanted too: it is made of the same rows."""
    of_x, of_w = gradients(x, w)
    return w - 0.1 * (of_w + nnc.mean(of_x))


X, W = (ROUNDS, ROWS, WIDTH), (WIDTH, WIDTH)


def loops(f: Function, *arguments: Any) -> list[Node]:
    return [node for node in nnc.jit(f).lower(*arguments).graph.nodes if node.op is LOOP]


def carried(f: Function, *arguments: Any) -> list[tuple[Any, ...]]:
    """The shapes of all values that loops carry."""
    return [x.shape for loop in loops(f, *arguments) for x in LoopAttributes.of(loop).carried]


def near(f: Function, *arguments: Any) -> None:
    """Compiled as it is by default and under `deterministic`, where sums stay."""
    found = nnc.jit(f)(*arguments)
    with config.using(deterministic=True):
        wanted = nnc.jit(f)(*arguments)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-6)


def test_the_gradient_of_a_shared_weight_is_one_product() -> None:
    arguments = drawn(*X), drawn(*W, seed=1)
    assert W not in carried(gradients, *arguments)
    near(gradients, *arguments)
    with config.using(deterministic=True):
        assert W in carried(gradients, *arguments)


def test_a_loop_written_so() -> None:
    def f(a: Any, b: Any, start: Any) -> Any:
        return nnc.scan(lambda total, rows: (total + rows[0].T @ rows[1], None), start, (a, b))[0]

    a, b, start = drawn(ROUNDS, ROWS, 2), drawn(ROUNDS, ROWS, WIDTH, seed=1), drawn(2, WIDTH, seed=2)
    assert not loops(f, a, b, start), "nothing is left of it"
    np.testing.assert_allclose(nnc.jit(f)(a, b, start).numpy(),
                               start.numpy() + np.einsum("tri,trj->ij", a.numpy(), b.numpy()), rtol=1e-5)


def test_backwards_through_rows() -> None:
    def f(a: Any, b: Any) -> Any:
        def turn(state: Any, row: Any) -> Any:
            h, total = state
            y = nnc.sin(h + row[1])
            return (y, total + row[0].T @ y), y

        state, ys = nnc.scan(turn, (nnc.zeros((ROWS, WIDTH)), nnc.ones((2, WIDTH))), (a, b), reverse=True)
        return state[1], ys

    a, b = drawn(ROUNDS, ROWS, 2), drawn(ROUNDS, ROWS, WIDTH, seed=1)
    assert (2, WIDTH) not in carried(f, a, b)
    near(f, a, b)
    total, ys = nnc.jit(f)(a, b)
    np.testing.assert_allclose(total.numpy(), 1 + np.einsum("tri,trj->ij", a.numpy(), ys.numpy()), rtol=1e-5)


def stays(turn: Function, *, start: tuple[int, int] = (2, WIDTH), picked: Function = lambda found: found[0]) -> None:
    """A loop that keeps what it carries."""
    def f(a: Any, b: Any, total: Any) -> Any:
        return picked(nnc.scan(turn, total, (a, b)))

    arguments = drawn(ROUNDS, ROWS, 2), drawn(ROUNDS, ROWS, WIDTH, seed=1), drawn(*start, seed=2)
    assert start in carried(f, *arguments)


def test_a_sum_that_rounds_look_at_stays() -> None:
    stays(lambda total, rows: (total + rows[0].T @ rows[1], nnc.sum(total)), picked=lambda found: found)


def test_a_sum_that_is_scaled_stays() -> None:
    stays(lambda total, rows: (total * 0.5 + rows[0].T @ rows[1], None))


def test_rows_that_would_have_to_be_kept_for_it_stay_where_they_are() -> None:
    stays(lambda total, rows: (total + nnc.sin(rows[0]).T @ nnc.cos(rows[1]), None))


def test_a_product_that_is_read_elsewhere_stays() -> None:
    def turn(total: Any, rows: Any) -> Any:
        product = rows[0].T @ rows[1]
        return total + product, nnc.max(product)

    stays(turn, picked=lambda found: found)


def test_loops_whose_rounds_nobody_knows_stay() -> None:
    def f(a: Any, b: Any) -> Any:
        start = (0, nnc.zeros((2, 2)))
        return nnc.while_loop(lambda i, total: i < 3, lambda i, total: (i + 1, total + a.T @ b), start)[1]

    a, b = drawn(3, 2), drawn(3, 2, seed=1)
    assert (2, 2) in carried(f, a, b)


def test_weights_after_several_steps() -> None:
    """Losses that agree prove little."""
    x = drawn(*X)

    def trained(w: Any) -> Any:
        step = nnc.jit(updated)
        for _ in range(5):
            w = step(x, w)
        return w

    w = drawn(*W, seed=1)
    found = trained(w)
    with config.using(deterministic=True):
        np.testing.assert_allclose(found.numpy(), trained(w).numpy(), rtol=1e-4)


def test_in_the_body_of_another_loop() -> None:
    def f(x: Any, w: Any) -> Any:
        return nnc.scan(lambda w, _: (updated(x, w), None), w, nnc.zeros((3,)))[0],

    arguments = drawn(*X), drawn(*W, seed=1)
    (outer,) = loops(f, *arguments)
    inner = [LoopAttributes.of(n).body for n in LoopAttributes.of(outer).body.nodes if n.op is LOOP]
    assert inner and not [n for body in inner for n in body.nodes if n.op.name == "matmul" and n.attributes[0]]
    near(f, *arguments)
