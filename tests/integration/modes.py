"""The ways to compute a function of one tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.device import Device
from nnc_core.graph import SymbolicGraph
from nnc_core.operator import Operator

Mode = Callable[[Callable[[Any], Any], Any], Any]


def eager(f: Callable[[Any], Any], x: Any) -> Any:
    return f(x)


def deferred(f: Callable[[Any], Any], x: Any) -> Any:
    with nnc.deferred():
        y = f(x)
    nnc.realize(y)
    return y


def jitted(f: Callable[[Any], Any], x: Any) -> Any:
    return nnc.jit(f)(x)


def exported(f: Callable[[Any], Any], x: Any) -> Any:
    """Recorded on the stack of x, and compiled for it."""
    return graph_of(f, x).compile(x._value.stack)(x=x)["y"]


def graph_of(f: Callable[[Any], Any], x: Any) -> SymbolicGraph:
    with nnc.deferred():
        return nnc.export({"x": x}, {"y": f(x)})


MODES = (eager, deferred, jitted, exported)
COMPILED = (jitted, exported)


def repeat(f: Callable[[Any], Any], times: int, x: Any) -> Any:
    """f(f(...f(x))), as one loop."""
    return nnc.scan(lambda x, _: (f(x), None), x, length=times)[0]


every_mode = pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.__name__)
compiled_modes = pytest.mark.parametrize("mode", COMPILED, ids=lambda mode: mode.__name__)


def strict() -> Device:
    return nnc.stack_for("strict:0").device


def floats(stack: nnc.Stack, *numbers: float, dtype: str = "float32") -> nnc.Tensor:
    with nnc.use_device(stack):
        return nnc.asarray(np.array(numbers, np.float32), dtype=dtype)


# ---- operator
class Muted(Operator):
    """tanh is 0, exp a line, and sums of everything count in another way."""

    def tanh(self, F: Any, x: Any) -> Any:
        return F.multiply(x, 0.0)

    def exp(self, F: Any, x: Any) -> Any:
        return F.add(x, 1.5)

    def sum(self, F: Any, x: Any, *, axis: tuple[int, ...], keepdims: bool) -> Any:
        return F.max(x, axis=axis, keepdims=keepdims)
