"""Devices whose single allocations are small: programs larger than one, and values that are too large."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn, optim
from nnc_core.base.errors import DeviceMemoryError, Error
from nnc_core.builtin import StrictDevice
from nnc_core.builtin.flavours import Flavour
from nnc_core.device import Device
from nnc_core.stacks import Stack, make_stack, stack_for
from tests.engine.plans import every_program

KIB = 1 << 10
LIMIT = 8 * KIB
X = np.linspace(-1, 1, 32 * 24, dtype=np.float32).reshape(32, 24)


def strict(limit: int | None) -> Device:
    return StrictDevice(Flavour(max_allocation=limit))


def opencl(limit: int | None) -> Device:
    """A device of the plugin, to whose limit another is added."""
    try:
        offered: Any = stack_for("opencl:0").device
    except Error as error:
        pytest.skip(f"no OpenCL device: {error}")
    device: Device = type(offered)(offered._device, "opencl:0")
    if limit is not None:
        device.spec = replace(device.spec, max_allocation=limit)
    return device


@pytest.fixture(params=[strict, opencl])
def opened(request: pytest.FixtureRequest) -> Callable[[int | None], Device]:
    return request.param  # type: ignore[no-any-return]


def trained(stack: Stack) -> list[np.ndarray[Any, Any]]:
    nnc.manual_seed(0)
    with nnc.use_device(stack):
        net = nn.Sequential(nn.Linear(24, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 8))
        minimiser = optim.Adam(net.named_parameters(), learning_rate=0.01)
        x = nnc.asarray(X)
        step = optim.make_step(nn.value_and_grad(net, lambda x: nnc.mean(net(x) ** 2)), minimiser)
        for _ in range(3):
            step(x)
        return [parameter.numpy() for parameter in net.parameters()]


def test_a_network_whose_memory_is_in_pieces_learns_the_same_to_the_bit(
        opened: Callable[[int | None], Device]) -> None:
    with every_program() as programs:
        limited = trained(make_stack(opened(LIMIT)))
    assert max(len(run.plan.allocation.segments) for run in programs) > 1, "all of it fits into one allocation"
    assert all(nbytes <= LIMIT for run in programs for nbytes in run.plan.allocation.segments)
    for a, b in zip(limited, trained(make_stack(opened(None))), strict=True):
        assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("limit", [None, LIMIT])
def test_what_a_program_takes_is_what_was_planned(opened: Callable[[int | None], Device], limit: int | None) -> None:
    device = opened(limit)
    stack = make_stack(device)
    with nnc.use_device(stack):
        f = nnc.jit(lambda x: nnc.tanh((nnc.tanh(x @ nnc.permute_dims(x, (1, 0))) * 2) @ x) @ nnc.ones((24, 40)))
        run = f.lower(nnc.asarray(X)).program
    gc.collect()
    device.trim()
    before = device.memory_info().used
    run.reserve()
    taken, plan = device.memory_info().used - before, run.memory_plan
    assert plan.peak > 0 and abs(taken - plan.peak) <= plan.peak // 100
    assert plan.ratio <= 1.01 or limit is not None


BIG = 3 * LIMIT // 4


@pytest.mark.parametrize("f", [
    lambda x: nnc.concat([x, x]), lambda x: nnc.cumsum(nnc.concat([x, x]))[5],
    lambda x: nnc.sum(nnc.sort(nnc.concat([x, x]))),
], ids=["an output", "read once", "in between"])  # fmt: skip
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_a_value_larger_than_an_allocation_is_one_error_that_names_it(
        f: Callable[[nnc.Tensor], nnc.Tensor], compiled: bool) -> None:
    """Operator, sizes, device, line and what to do; what is there already still works."""
    stack = make_stack(strict(LIMIT))
    with nnc.use_device(stack), nnc.config.using(fusion=False):
        x = nnc.ones(BIG // 4)
        with pytest.raises(DeviceMemoryError) as caught:
            (nnc.jit(f) if compiled else f)(x)
        for part in (f"{2 * BIG} bytes", f"{LIMIT}", "concat(float32[1536], float32[1536])", "device: strict:0",
                     "at: test_allocation_limit.py", "try: "):
            assert part in str(caught.value)
        assert nnc.sum(x).item() == BIG // 4
