"""Functions that NumPy does not have, eagerly: by NumPy, by machine code and by the command of a graph alike."""

from __future__ import annotations

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.operator import OPERATORS
from nnc_cpu import nests
from nnc_cpu.device import CpuDevice
from nnc_cpu.eager import EAGER
from nnc_cpu.expanded import EXPANDED, ExpandedFunction
from nnc_cpu.left import IN_PASSES, LARGE
from tests.codegen.functions import points
from tests.codegen.nests import agree


def kernel(name: str) -> ExpandedFunction:
    """Of a device of its own, which has no machine code yet."""
    found = CpuDevice(machine_code=True).eager[name]
    assert isinstance(found, ExpandedFunction)
    return found


ATTRIBUTES = {"gelu": ("none",), "polygamma": (1,)}
LIKE = {"gelu": "ndtr", "polygamma": "lgamma", "zeta": "lgamma", "betaln": "lgamma", "heaviside": "ndtr"}
"""Whose points they are tried at."""


@pytest.mark.parametrize("name", EXPANDED)
def test_the_bits_before_and_after_machine_code_are_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    call, attributes, count = kernel(name), ATTRIBUTES.get(name, ()), len(OPERATORS[name].inputs)
    for dtype in (nnc.float32, nnc.float64, nnc.float16, nnc.bfloat16):
        given = [np.concatenate([x[:3000], x[-3000:]]) for x in points(LIKE.get(name, name), dtype)]
        operands = (given * count)[:count]
        ends = [tuple([x[part] for x in operands]) for part in (slice(None), slice(1), slice(0), 1)]
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
            assert np.shape(a) == np.shape(b) == c.shape and a.dtype == b.dtype == dtype
            assert agree(np.asarray(a), np.asarray(b)).all()
            assert agree(np.asarray(a), c).all() or name == "zeta", "whose powers NumPy rounds in its own way"


def test_machine_code_comes_when_numpy_has_cost_as_much() -> None:
    call, x = kernel("erf"), np.ones((3, 5), np.float32)
    while (tiered := call._tiered.get((x.dtype, ()))) is None or tiered.machine is None:
        found = call(x)
    assert tiered.together.spent > nests.LOADING, "its code may be on disk"
    assert agree(call(x), found).all() and call(x).shape == (3, 5)


def test_what_is_large_or_asked_for_otherwise_goes_other_ways() -> None:
    erf, gelu = kernel("erf"), kernel("gelu")
    assert erf(np.zeros(LARGE, np.float32)) is NotImplemented
    assert erf(0.5) is NotImplemented  # a number, which has no dtype yet
    x = np.linspace(-3, 3, 50, dtype=np.float32)
    assert agree(gelu(x, "tanh"), EAGER["gelu"](x, "tanh")).all()
    assert agree(erf(x[::2]), EAGER["erf"](x[::2])).all()
    assert set(erf._tiered) == set()


ALONE = [name for name in IN_PASSES if len(OPERATORS[name].inputs) == 1 and hasattr(nnc, name)]


@pytest.mark.parametrize("name", [*EXPANDED, *ALONE])
def test_large_arrays_are_within_the_bounds_of_small_ones(name: str) -> None:
    x = nnc.asarray(np.linspace(0.01, 0.99, LARGE + 5, dtype=np.float32))
    function, count = getattr(nnc, name), len(OPERATORS[name].inputs)
    before, further = ATTRIBUTES.get(name, ()) if name == "polygamma" else (), (x,) * (count - 1)
    large, small = (np.asarray(function(*before, x[part], *[y[part] for y in further]))
                    for part in (slice(None), slice(7, 1000)))
    np.testing.assert_allclose(large[7:1000], small, rtol=2e-6)
    if name in EXPANDED:
        assert agree(large[7:1000], small).all()


def test_without_machine_code_there_is_numpy_alone() -> None:
    assert CpuDevice(machine_code=False).eager is EAGER
