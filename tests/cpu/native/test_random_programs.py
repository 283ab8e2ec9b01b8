"""Random programs of loops and branches, in machine code alone and with Python's calls between, give Python's bits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import nnc_core as nnc
from tests.cpu.native.runs import Captured, Mixed, called
from tests.engine.flow import Program, programs
from tests.sizes import WHOLE

SOME = settings(max_examples=settings().max_examples if WHOLE else 4)


@pytest.mark.parametrize("device", [Captured, Mixed], ids=["machine code", "mixed"])
@SOME
@given(program=programs())
def test_random_programs(device: type[Captured], program: Program) -> None:
    """Two calls with the same arguments, and one with others between: what a call has moved does not stay."""
    given = [np.asarray(x) for x in program.arguments()]
    calls = [given, [x[::-1].copy() if x.ndim else x for x in given], given]
    ours = device()
    found = called(ours, lambda *xs: program(*xs), calls)
    wanted = called(Captured(native=False), lambda *xs: program(*xs), calls)
    for k, (a, b) in enumerate(zip(found, wanted, strict=True)):
        assert [x.tobytes() for x in a] == [x.tobytes() for x in b], f"call {k}"
    assert ours.guarded


@pytest.mark.parametrize("device", [Captured, Mixed], ids=["machine code", "mixed"])
@SOME
@given(program=programs())
def test_gradients_of_random_programs(device: type[Captured], program: Program) -> None:
    """They read tapes and rows backwards."""
    given = [np.asarray(x) for x in program.arguments()]
    floats = tuple([k for k, x in enumerate(given) if x.dtype.kind == "f"])

    def slopes(*xs: nnc.Tensor) -> object:
        def total(*xs: nnc.Tensor) -> nnc.Tensor:
            ys = [y for y in program(*xs) if y.dtype.kind == "f"]
            return sum([nnc.sum(y * y) for y in ys], nnc.asarray(0.0))

        return nnc.grad(total, floats)(*xs)

    ours = device()
    calls = [given, given]
    found, wanted = called(ours, slopes, calls), called(Captured(native=False), slopes, calls)
    for k, (a, b) in enumerate(zip(found, wanted, strict=True)):
        assert [x.tobytes() for x in a] == [x.tobytes() for x in b], f"call {k}"
    assert ours.guarded
