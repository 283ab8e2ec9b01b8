"""A Python number beside an array of integers takes the fast path where the array can hold it, and fails as before."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.fast_path import closed

FUNCTIONS: list[Callable[[Any, Any], Any]] = [
    operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.truediv, operator.pow,
    operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift, operator.lt, operator.le, operator.gt,
    operator.ge, operator.eq, operator.ne, nnc.maximum, nnc.minimum, nnc.gcd, nnc.lcm, nnc.fmod, nnc.copysign,
    nnc.hypot, nnc.logical_and, nnc.fmax, lambda a, b: nnc.where(True, a, b),
]  # fmt: skip
NUMBERS = [0, 1, -1, 7, 128, 255, 256, -129, 2**31, 2**63, 2**64, -(2**63), -(2**70), True, 1.5, -0.0, float("nan"),
           1e300, 2**24 + 1]  # fmt: skip


def outcome(f: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    try:
        y = f(a, b)
    except Exception as error:
        return type(error), str(error).split("\n")[0]
    return y.dtype, y.shape, y.numpy().tobytes()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64", "bool", "float32", "bfloat16"])
def test_numbers_are_what_they_are_on_the_slow_path(dtype: str) -> None:
    x = nnc.asarray(np.array([0, 1, 2, 5, 100])).astype(dtype)
    for f in FUNCTIONS:
        for number in NUMBERS:
            for a, b in ((x, number), (number, x)):
                found = [outcome(f, a, b) for _ in range(2)]
                with closed():
                    assert found == [outcome(f, a, b)] * 2, (f, number)
