"""The kit sees operators that run on the host although they have a loop nest."""

from __future__ import annotations

import warnings

import numpy as np

from nnc_core.base.errors import FallbackWarning, NotSupportedError
from nnc_core.base.loopnest import LoopNest
from nnc_core.builtin.strict import StrictDevice
from nnc_core.device import Kernel
from nnc_core.operator import OPERATORS
from nnc_core.stacks import make_stack
from nnc_plugins.conformance.running import eager, host_fallback

X = np.linspace(1, 2, 5).astype(np.float32)


class Refusing(StrictDevice):
    """Its compiler knows no digamma."""

    def compile(self, nest: LoopNest) -> Kernel:
        if any(i.operation == "digamma" for stage in nest.stages for i in stage.instructions):
            raise NotSupportedError("no digamma here")
        return super().compile(nest)


def fallback(name: str, x: np.ndarray = X) -> str | None:
    stack = make_stack(Refusing())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        eager(stack, OPERATORS[name], [x], ())
    return host_fallback(stack, OPERATORS[name], [x], ())


def test_a_refused_nest_is_a_fallback() -> None:
    assert "no digamma here" in (fallback("digamma") or "")


def test_kernels_are_none() -> None:
    assert fallback("tanh") is None


def test_operators_without_a_nest_are_none() -> None:
    """The host is their place, or there is no nest for such numbers."""
    assert fallback("inv", np.eye(3, dtype=np.float32)) is None
    assert fallback("tanh", X.astype(np.complex64)) is None
