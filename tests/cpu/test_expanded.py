"""Operators that run their own formula eagerly: interpreted, by machine code and by the command of a graph alike."""

from __future__ import annotations

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.operator import OPERATORS
from nnc_cpu import nests
from nnc_cpu.device import CpuDevice
from nnc_cpu.eager import EAGER
from nnc_cpu.expanded import EXPANDED, IN_PASSES, OperatorKernel
from nnc_cpu.left import LARGE
from nnc_cpu.programs import FEW
from tests.codegen.functions import points
from tests.codegen.nests import agree


def kernel(name: str) -> OperatorKernel:
    """Of a device of its own, which has no machine code yet."""
    found = CpuDevice(machine_code=True).eager[name]
    assert isinstance(found, OperatorKernel)
    return found


ATTRIBUTES = {"gelu": ("none",), "polygamma": (1,), "elu": (1.0,), "leaky_relu": (0.01,)}
LIKE = {"gelu": "ndtr", "polygamma": "lgamma", "zeta": "lgamma", "betaln": "lgamma", **dict.fromkeys(
    ("heaviside", *IN_PASSES), "ndtr")}
"""Whose points they are tried at."""


@pytest.mark.parametrize("name", [*EXPANDED, *IN_PASSES])
def test_the_bits_before_and_after_machine_code_are_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    call, attributes, count = kernel(name), ATTRIBUTES.get(name, ()), len(OPERATORS[name].inputs)
    for dtype in (nnc.float32, nnc.float64, nnc.float16, nnc.bfloat16):
        given = [np.concatenate([x[:150], x[-150:]]) for x in points(LIKE.get(name, name), dtype)]
        operands = (given * count)[:count]
        if name == "ldexp":
            operands[1] = np.arange(-150, 150, dtype=np.int32)
        ends = [tuple([x[part] for x in operands]) for part in (slice(None), slice(1), slice(0), slice(None, None, 3))]
        ends.append(tuple([x[1:2].reshape(()) for x in operands]))
        with monkeypatch.context() as patch:
            patch.setattr(nests, "PATIENCE", np.inf)
            patch.setattr(nests, "LOADING", np.inf)
            before = [call(*part, *attributes) for part in ends]
        with monkeypatch.context() as patch:
            patch.setattr(nests, "PATIENCE", -1.0)
            after = [call(*part, *attributes) for part in ends]
        reference = OPERATORS[name].reference
        assert reference is not None
        with np.errstate(all="ignore"):
            wanted = [np.asarray(reference(*part, *attributes)) for part in ends]
        for a, b, c in zip(before, after, wanted, strict=True):
            assert np.shape(a) == np.shape(b) == c.shape
            assert a.dtype == b.dtype == (np.int32 if name == "exponent" else dtype)
            assert agree(np.asarray(a), np.asarray(b)).all()
            assert name in (*IN_PASSES, "zeta", "gelu") or agree(np.asarray(a), c).all()


def test_machine_code_comes_when_interpreting_has_cost_as_much() -> None:
    call, x = kernel("erf"), np.ones((3, 5), np.float32)
    found = call(x)
    [program] = call._known.values()
    while program.machine is None:
        call(x)
    assert program.tiered.together.spent > nests.LOADING, "its code may be on disk"
    assert agree(call(x), found).all() and call(x).shape == (3, 5)


def test_arrays_that_are_not_small_have_machine_code_at_once() -> None:
    call = kernel("erf")
    call(np.zeros(FEW + 1, np.float32))
    [program] = call._known.values()
    assert program.machine is not None


def test_numbers_and_complex_elements_are_left_to_commands() -> None:
    assert kernel("erf")(0.5) is NotImplemented, "a number has no dtype yet"
    assert kernel("xlogy")(np.ones(3, np.float32), 2.0) is NotImplemented
    assert kernel("sinc")(np.ones(3, np.complex64)) is NotImplemented


@pytest.mark.parametrize("name", [name for name in (*EXPANDED, *IN_PASSES) if hasattr(nnc, name) and name != "ldexp"])
def test_elements_have_the_same_bits_in_arrays_of_every_size(name: str) -> None:
    x = nnc.asarray(np.linspace(0.01, 0.99, LARGE + 5, dtype=np.float32))
    function, count = getattr(nnc, name), len(OPERATORS[name].inputs)
    before, further = ATTRIBUTES.get(name, ()) if name == "polygamma" else (), (x,) * (count - 1)
    whole, *parts = (np.asarray(function(*before, x[part], *[y[part] for y in further]))
                     for part in (slice(None), slice(7, 1000), slice(7, 15), slice(7, None, 4000)))
    for part, at in zip(parts, (slice(7, 1000), slice(7, 15), slice(7, None, 4000)), strict=True):
        assert agree(part, whole[at]).all()


def test_operands_are_broadcast() -> None:
    call, rows = kernel("xlogy"), np.linspace(0.1, 2, 12, dtype=np.float32).reshape(3, 4)
    wanted = call(np.ascontiguousarray(np.broadcast_to(rows[:, :1], (3, 4))), rows)
    assert agree(call(rows[:, :1], rows), wanted).all()
    assert agree(call(np.asarray(rows[1, 2]), rows), call(np.full_like(rows, rows[1, 2]), rows)).all()
    assert agree(call(rows.T, rows.T), call(rows, rows).T).all()
    afresh = kernel("xlogy")
    for first in (np.asarray(rows[1, 2]), rows[:, ::-1], np.asarray(rows[0, 1])):
        assert agree(afresh(first, rows), call(np.array(np.broadcast_to(first, rows.shape)), rows)).all()


def test_without_machine_code_there_is_numpy_alone() -> None:
    assert CpuDevice(machine_code=False).eager is EAGER
