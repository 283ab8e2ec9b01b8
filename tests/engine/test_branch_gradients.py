"""Gradients through branches, compiled, are those of the branch that eager execution takes.

The way back of a branch runs the branch again, so that both have nodes in common; what follows reads the result, the
operand or both, and the whole may stand in other branches and loops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc

Function = Callable[[Any], Any]
SMALL, X = 9.0, np.array([0.5, 0.25, 0.75, 0.125], np.float32)


def taken(branch: Function, x: Any, otherwise: Function = lambda v: v) -> Any:
    """The branch, chosen by data."""
    return nnc.cond(nnc.sum(x) > SMALL, otherwise, branch, x)


def norm(v: Any) -> Any:
    return nnc.sqrt(nnc.sum(nnc.square(v)))


BRANCHES: dict[str, Function] = {
    "exp": nnc.exp,
    "tanh": nnc.tanh,
    "sigmoid": nnc.sigmoid,
    "softmax": nnc.softmax,
    "relu": lambda v: nnc.relu(v - 0.3),
    "sqrt": nnc.sqrt,
    "reciprocal": lambda v: 1 / v,
    "clipped": lambda v: v / norm(v),
    "normalised twice": lambda v: v / norm(v) + v / nnc.sum(v),
    "power": lambda v: v**3,
    "chain": lambda v: nnc.exp(nnc.tanh(v) * v),
    "matmul": lambda v: nnc.tanh(nnc.matmul(v.reshape(2, 2), v.reshape(2, 2))).reshape(4),
    "cumulated": lambda v: nnc.cumsum(nnc.exp(v)),
}

AFTER: dict[str, Callable[[Any, Any], Any]] = {
    "as it is": lambda y, x: y * nnc.asarray([1.0, 2, 3, 4]),
    "square": lambda y, x: nnc.square(y),
    "times the input": lambda y, x: y * x,
    "exp of it": lambda y, x: nnc.exp(y) * x,
    "joined": lambda y, x: nnc.square(nnc.concat([y, x, y])),
    "a branch": lambda y, x: taken(nnc.exp, y),
    "the same branch": lambda y, x: nnc.square(taken(nnc.tanh, taken(nnc.tanh, y))),
    "a branch of both": lambda y, x: nnc.cond(nnc.sum(y) > 99, lambda a, b: a, lambda a, b: nnc.sqrt(a * a + b * b),
                                              y, x),
}


def counted(f: Function, x: Any, rounds: int = 3) -> Any:
    return nnc.scan(lambda v, _: (f(v) * 0.5, None), x, length=rounds)[0]


def along_rows(f: Function, x: Any) -> Any:
    last, rows = nnc.scan(lambda c, row: (f(c * row), nnc.square(f(row))), x, nnc.stack([x, x * 0.5]))
    return last + nnc.sum(rows, axis=0)


def while_small(f: Function, x: Any) -> Any:
    return nnc.while_loop(lambda i, v: (i < 3) & (nnc.sum(v) < 1e6), lambda i, v: (i + 1, f(v) * 0.5),
                          (nnc.asarray(0), x))[1]


NESTINGS: dict[str, Callable[[Function], Function]] = {
    "alone": lambda f: lambda x: taken(f, x),
    "in a branch": lambda f: lambda x: taken(lambda v: nnc.tanh(taken(f, v)), x),
    "beside itself": lambda f: lambda x: taken(f, x) * nnc.cond(nnc.sum(x) < SMALL, f, f, x),
    "in a loop": lambda f: lambda x: counted(lambda v: taken(f, v), x),
    "in a scan": lambda f: lambda x: along_rows(lambda v: taken(f, v), x),
    "under a condition": lambda f: lambda x: while_small(lambda v: taken(f, v), x),
    "around a loop": lambda f: lambda x: taken(lambda v: counted(f, v), x),
    "around a scan": lambda f: lambda x: taken(lambda v: along_rows(f, v), x),
    "around a loop under a condition": lambda f: lambda x: taken(lambda v: while_small(f, v), x),
    "in a loop in a branch": lambda f: lambda x: taken(lambda v: counted(lambda w: taken(f, w), v), x),
}


def test_the_result_of_a_branch_is_not_its_way_back() -> None:
    """The first that was seen to be wrong: exp's derivative is its result."""
    grad = nnc.grad(lambda x: nnc.sum(nnc.square(taken(nnc.exp, x))))
    with nnc.use_device("strict:0"):
        found = nnc.jit(grad)(nnc.asarray(X))
    np.testing.assert_allclose(found.numpy(), 2 * np.exp(2 * X), rtol=1e-5)


@pytest.mark.parametrize("nesting", NESTINGS)
@pytest.mark.parametrize("after", AFTER)
@pytest.mark.parametrize("branch", BRANCHES)
@pytest.mark.parametrize("device", ["cpu:0", "strict:0"])
def test_compiled_gradients_are_eager_ones(device: str, branch: str, after: str, nesting: str) -> None:
    def loss(x: Any) -> Any:
        return nnc.sum(AFTER[after](NESTINGS[nesting](BRANCHES[branch])(x), x))

    with nnc.use_device(device):
        x = nnc.asarray(X)
        value, wanted = nnc.value_and_grad(loss)(x)
        compiled = nnc.jit(nnc.value_and_grad(loss))
        for _ in range(2):
            again, found = compiled(x)
            np.testing.assert_allclose(again.numpy(), value.numpy(), rtol=1e-4)
            np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-4, atol=1e-5)
