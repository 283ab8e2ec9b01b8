"""OpenCL beside the processor's own device: both at work at once, and no memory that grows."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest

import nnc_core as nnc
from examples.two_devices import Fit
from nnc_core.base.errors import Error
from nnc_core.device import DONE, Event
from nnc_core.stacks import stack_for

OPENCL, CPU = "opencl:0", "cpu:0"
MOST_PRODUCTS = 1 << 12
STATM = Path("/proc/self/statm")


@pytest.fixture(autouse=True)
def _both_are_there() -> None:
    try:
        for id in (OPENCL, CPU):
            stack_for(id)
    except Error as error:
        pytest.skip(f"two devices are needed: {error}")


def products(count: int) -> list[Event]:
    """Many products enqueued on the OpenCL device, and an event behind each."""
    stream, x = stack_for(OPENCL).device.default_stream, nnc.eye(300, device=OPENCL)
    events = []
    for _ in range(count):
        x = x @ x
        events.append(stream.record())
    return events


def test_both_work_at_the_same_time() -> None:
    """OpenCL has done some of its work before a step of the processor's begins, and not all of it when that has ended:
    it was at work in between.  With more work each time, as the processor's cores may be others'."""
    x, f = nnc.ones((64, 64), device=CPU), nnc.jit(lambda x: nnc.sum(nnc.tanh(x @ x)))
    f(x).item()
    assert stack_for(CPU).device.default_stream.record() is DONE, "its work is done when a call returns"
    count = 64
    while True:
        first, *_, last = products(count)
        first.wait()
        begun_before = first.done and not last.done
        y = f(x).item()
        overlap = begun_before and not last.done
        last.wait()
        assert y == pytest.approx(64 * 64)
        if overlap:
            return
        count *= 2
        assert count <= MOST_PRODUCTS, "never at the same time"


def resident() -> int:
    """Pages of the process in memory."""
    return int(STATM.read_text().split()[1]) * 4096


@pytest.mark.slow
@pytest.mark.skipif(not STATM.exists(), reason="the system does not tell what a process holds")
def test_two_thousand_steps_leave_memory_flat() -> None:
    """On both devices in turn, with moves between them."""
    host = np.linspace(-3, 3, 64, dtype=np.float32)[:, None]
    data = {id: (nnc.asarray(host, device=id), nnc.asarray(np.sin(host), device=id)) for id in (CPU, OPENCL)}
    fit, seen = Fit(CPU), list[tuple[int, int, int]]()
    for part in range(20):
        id = (CPU, OPENCL)[part % 2]
        fit.move(id)
        fit.train(*data[id], 100)
        if part % 2:
            gc.collect()
            seen.append((*[stack_for(id).device.memory_info().used for id in (CPU, OPENCL)], resident()))
    settled = seen[2:]
    assert {used[:2] for used in settled} == {settled[0][:2]}
    assert settled[-1][2] - settled[0][2] < 8 << 20
