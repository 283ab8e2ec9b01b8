"""Transfers: from the host, to strict:0, and back; whole arrays and views of them."""

from __future__ import annotations

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.dtype import ALL_DTYPES
from nnc_core.graph import SymbolicGraph
from nnc_core.operator import OPERATORS
from nnc_core.stacks import Stack, stack_for
from nnc_core.type import TensorSpec
from nnc_plugins.conformance.agreement import assert_ulps
from nnc_plugins.conformance.case import draw, extremes
from nnc_plugins.conformance.cases import CASES
from nnc_plugins.conformance.running import called

OTHER = "strict:0"


@pytest.mark.parametrize("name", ALL_DTYPES)
def test_there_and_back(on_device: str, stack: Stack, rng: np.random.Generator, name: str) -> None:
    if name not in stack.device.spec.dtypes:
        pytest.skip(f"the device has no {name}, and says so")
    for case in CASES["transfer"]:
        if ALL_DTYPES[name] not in case.dtypes:
            continue
        (host,) = case.inputs(rng, ALL_DTYPES[name])
        here = nnc.asarray(host)
        assert here.device.id == on_device
        there = here.to(OTHER)
        back = there.to(on_device)
        for tensor, device in ((there, OTHER), (back, on_device)):
            assert tensor.device.id == device and tensor.spec == here.spec
            assert tensor.numpy().tobytes() == host.tobytes(), f"{case.label} {name} changed on its way to {device}"


def test_every_bit_survives(on_device: str, stack: Stack) -> None:
    """NaN, infinities, signed zeros, the ends of integers."""
    for name in sorted(stack.device.spec.dtypes):
        host = extremes(ALL_DTYPES[name])
        assert nnc.asarray(host).to(OTHER).to(on_device).numpy().tobytes() == host.tobytes(), name


@pytest.mark.parametrize("view", [
    pytest.param(lambda x: x.T, id="transposed"),
    pytest.param(lambda x: x[1:3, ::2], id="sliced"),
    pytest.param(lambda x: nnc.broadcast_to(x[0], (3, 6)), id="broadcast"),
    pytest.param(lambda x: x[2:2], id="empty"),
    pytest.param(lambda x: x[3, 5], id="one element"),
    pytest.param(lambda x: nnc.flip(x), id="flipped"),
])
def test_views_are_transferred_as_they_look(on_device: str, view: object) -> None:
    assert callable(view)
    x = nnc.asarray(np.arange(24, dtype=np.float32).reshape(4, 6))
    seen, there = view(x), view(x.to(OTHER))
    wanted = seen.numpy()
    for tensor in (seen.to(OTHER), there.to(on_device), there):
        assert tensor.shape == wanted.shape and (tensor.numpy() == wanted).all()


def test_a_transfer_is_a_copy(on_device: str) -> None:
    x = nnc.asarray(np.zeros(3, np.float32))
    there = x.to(OTHER)
    x[0] = 1
    assert there.tolist() == [0, 0, 0] and x.tolist() == [1, 0, 0]


def test_devices_do_not_mix(on_device: str) -> None:
    if on_device == OTHER:
        pytest.skip("the device under test is the other one")
    x = nnc.asarray([1.0, 2.0])
    with pytest.raises(ValueError) as caught:
        x + x.to(OTHER)
    assert on_device in str(caught.value) and OTHER in str(caught.value)
    assert (x + x).tolist() == [2.0, 4.0]


def test_a_graph_runs_wherever_it_is_compiled(stack: Stack, rng: np.random.Generator) -> None:
    """One graph, made on one stack, compiled on both."""
    F = stack.operator.open()
    host = draw(rng, np.dtype(np.float32), (4, 5))
    x = F.placeholder("x", TensorSpec((4, 5), host.dtype))
    graph = SymbolicGraph({"x": x}, {"y": F.add(F.multiply(x, x), F.apply(OPERATORS["negative"], (x,), ()))})
    here, there = (called(s.engine.compile(graph), {"x": host})["y"] for s in (stack, stack_for(OTHER)))
    assert_ulps(here, host * host - host, np.float32, each=8, beside=8)
    assert_ulps(here, there, np.float32, each=8, beside=8)
