"""Jacobians and Hessians by one batched sweep, against a sweep for each row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import GradientError
from tests.support import eagerly, lazily
from tests.tensors.control.examples import near, numbers

Host = np.ndarray[Any, Any]


def row_by_row(f: Callable[..., Any], x: nnc.Tensor) -> Host:
    """One reverse sweep for each element of the result."""
    y, pull = nnc.vjp(f, x)
    units = np.eye(y.size, dtype=y.numpy().dtype).reshape(y.size, *y.shape)
    rows = [pull(nnc.asarray(unit))[0].numpy() for unit in units]
    return np.stack(rows).reshape(*y.shape, *x.shape) if rows else np.zeros((*y.shape, *x.shape), x.numpy().dtype)


def recurrent(x: nnc.Tensor) -> nnc.Tensor:
    last, ys = nnc.scan(lambda c, r: (nnc.tanh(c * 0.5 + r), c * r), x[0], x)
    return nnc.concat([nnc.reshape(last, (1, -1)), ys])


MAPS: dict[str, Callable[[nnc.Tensor], nnc.Tensor]] = {
    "products": lambda x: nnc.tanh(x @ nnc.matrix_transpose(x)) * nnc.sum(x),
    "softmax": lambda x: nnc.softmax(x, axis=0),
    "parts": lambda x: nnc.concat([x[1:, ::2], x[:1, ::2]]) * x[0, 0],
    "a scalar": lambda x: nnc.sum(x * x * x),
    "the largest": lambda x: nnc.max(x, axis=0),
    "chosen": lambda x: nnc.cond(nnc.sum(x) > 0, lambda x: nnc.sin(x), lambda x: x, x),
    "a loop": lambda x: nnc.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, nnc.sin(y) * x),
                                       (nnc.asarray(0), x))[1],
    "a recurrent network": recurrent,
    "nothing": lambda x: nnc.ones((2,)),
    "of no elements": lambda x: x[:0],
}  # fmt: skip


@pytest.mark.parametrize("name", MAPS)
def test_jacobians_and_hessians_by_one_batched_sweep(device: str, name: str) -> None:
    f, x = MAPS[name], numbers(3, 3)
    wanted = row_by_row(f, x)
    for run in (eagerly, nnc.jit, lazily):
        near(run(nnc.jacobian(f))(x), wanted)

    def scalar(x: nnc.Tensor) -> nnc.Tensor:
        return nnc.sum(nnc.sin(f(x)))

    wanted = row_by_row(nnc.grad(scalar), x)
    for run in (eagerly, nnc.jit):
        near(run(nnc.hessian(scalar))(x), wanted)


def test_the_sweep_is_one(device: str) -> None:
    """A matrix product for every row of the Jacobian is a single one, and a scan's way back a single loop."""
    text = str(nnc.jit(nnc.jacobian(lambda x: nnc.tanh(x @ nnc.ones((3, 3))))).lower(numbers(4, 3)).graph)
    assert text.count("matmul(") == 2
    text = str(nnc.jit(nnc.jacobian(recurrent)).lower(numbers(3, 2)).graph)
    assert text.count("= loop(") == 2


def test_a_jacobian_of_a_jacobian(device: str) -> None:
    x = numbers(3)
    third = nnc.jacobian(nnc.hessian(lambda x: nnc.sum(x**3) + x[0] * x[1] * x[2]))(x)
    wanted = np.zeros((3, 3, 3), np.float32)
    for i in range(3):
        wanted[i, i, i] = 6
    for i, j, k in ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)):
        wanted[i, j, k] = 1
    near(third, wanted)


def test_a_jacobian_in_a_sweep_and_by_another_argument(device: str) -> None:
    x, w = numbers(3), numbers(3, seed=1)
    by_w = nnc.jacobian(lambda x, w: nnc.sin(x * w), 1)
    near(by_w(x, w), np.diag(np.cos(x.numpy() * w.numpy()) * x.numpy()))
    trace = nnc.grad(lambda w: nnc.sum(by_w(x, w)))(w)
    near(trace, -np.sin(x.numpy() * w.numpy()) * x.numpy() ** 2)


def test_a_rule_that_looks_at_cotangents_is_swept_row_by_row(device: str) -> None:
    """Python may not look at the elements of batched cotangents; it may at those of one row."""
    looked: list[float] = []

    @nnc.custom_vjp
    def f(x: nnc.Tensor) -> nnc.Tensor:
        return x * 2

    def back(kept: Any, g: nnc.Tensor) -> tuple[nnc.Tensor]:
        looked.append(float(nnc.sum(g)))
        return (g * 2,)

    f.defvjp(lambda x: (x * 2, None), back)
    near(nnc.jacobian(f)(numbers(3)), np.eye(3, dtype=np.float32) * 2)
    assert looked == [1.0] * 3


def test_the_jacobian_of_several_results_is_refused(device: str) -> None:
    with pytest.raises(GradientError, match="jacobian: the function gives tuple, not a tensor"):
        nnc.jacobian(lambda x: (x, x))(numbers(3))
