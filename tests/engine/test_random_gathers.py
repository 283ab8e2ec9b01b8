"""Random expressions with gathers among what may be fused: the bits and the error of a command for each operator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.config import config
from nnc_core.errors import OutOfRangeError

N = 6
"""The length of all axes, so that any gather fits any other."""


class Expression:
    """A function of arrays (N, N) and of arrays of N indices, each of which one gather reads."""

    def __init__(self, seed: int) -> None:
        self.seed, self.gathers = seed, 0
        with config.using(check_indices=False):
            self(*[np.zeros((N, N), np.float32)] * 2, np.zeros((8, N), np.int64))

    def __call__(self, a: Any, b: Any, indices: Any) -> Any:
        rng = np.random.default_rng(self.seed)
        values: list[Any] = [nnc.asarray(a), nnc.asarray(b)]
        self.gathers = 0
        for _ in range(int(rng.integers(3, 9))):
            x, y = (values[int(rng.integers(max(0, len(values) - 3), len(values)))] for _ in (0, 1))
            values.append(self.step(rng, x, y, nnc.asarray(indices)))
        return values[-1], values[int(rng.integers(2, len(values)))]

    def step(self, rng: Any, x: Any, y: Any, indices: Any) -> Any:
        kind, axis = int(rng.integers(12)), int(rng.integers(2))
        if kind < 4 and self.gathers < 8:
            i = indices[self.gathers]
            self.gathers += 1
            if kind == 0:
                return nnc.take_along_axis(x, nnc.broadcast_to(nnc.reshape(i, (N, 1)), (N, N)), axis=axis)
            return x[i, nnc.arange(N)] + y if kind == 1 else nnc.take(x, i, axis=axis)
        if kind == 4:
            return nnc.concat([x[:2] * 2, y[2:]], axis=0)
        if kind == 5:
            return nnc.pad(x[1:, :-1], ((1, 0), (0, 1)))
        if kind == 6:
            return x - nnc.sum(y, axis=axis, keepdims=True)
        if kind == 7:
            return nnc.softmax(x, axis=axis)
        if kind == 8:
            return nnc.reshape(nnc.reshape(x, (2, 3, N)), (N, N)).T
        return (x + y, x * y, nnc.maximum(x, y))[kind - 9]


def outcome(f: Any, fusion: bool, *args: Any) -> Any:
    """The bits of all results; or the message, the operator and the line of the error."""
    with config.using(fusion=fusion, deterministic=True, compile_at_once=True):
        try:
            return [y.numpy().tobytes() for y in nnc.jit(lambda *xs: f(*xs))(*map(nnc.asarray, args))]
        except OutOfRangeError as error:
            return error.message, error.operator, error.line, error.hint


@pytest.mark.parametrize("seed", range(20))
def test_fused_is_as_apart(seed: int) -> None:
    rng, f = np.random.default_rng(seed), Expression(seed)
    a, b = rng.standard_normal((2, N, N)).astype(np.float32)
    indices = rng.integers(-N, N, (8, N))
    with nnc.use_device("cpu:0"):
        assert outcome(f, True, a, b, indices) == outcome(f, False, a, b, indices)
        for k in range(f.gathers):
            bad = indices.copy()
            bad[k, rng.integers(N)] = rng.choice([N, N + 7, -N - 1])
            assert outcome(f, True, a, b, bad) == outcome(f, False, a, b, bad)
