"""What calls of an OpenCL device cost beside what its driver takes: one operation, one record, a training step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl

import nnc_core as nnc
from benchmarks._measure import least
from nnc_core.stacks import stack_for
from nnc_opencl.stream import OpenCLStream

RECORDS = 200
"""Commands of the graph whose records are counted."""


def chain(device: str) -> Callable[[], object]:
    """A graph of many small commands, each of which needs the one before."""
    x = nnc.asarray(np.ones(8, np.float32), device=device)

    def steps(x: Any) -> Any:
        for _ in range(RECORDS):
            x = nnc.tanh(x)
        return x

    compiled = nnc.jit(steps)

    def run() -> None:
        with nnc.config.using(fusion=False):
            compiled(x)

    return run


def bare(stream: OpenCLStream) -> Callable[[], object]:
    """As many launches of one kernel by the driver alone."""
    source = "__kernel void turn(__global float *x) { x[get_global_id(0)] = -x[get_global_id(0)]; }"
    kernel = cl.Kernel(cl.Program(stream.context, source).build(), "turn")
    memory = cl.Buffer(stream.context, cl.mem_flags.READ_WRITE, 32)
    kernel.set_args(memory)

    def run() -> None:
        assert memory.size  # which the kernel does not keep alive
        for _ in range(RECORDS):
            cl.enqueue_nd_range_kernel(stream.queue, kernel, (8,), (1,))

    return run


def on_device(function: Callable[[], object]) -> float:
    """Seconds that the kernels of a call took by the driver's clock."""
    events: list[cl.Event] = []
    remember = OpenCLStream.remember

    def noted(self: OpenCLStream, event: cl.Event, *rest: Any) -> None:
        events.append(event)
        remember(self, event, *rest)

    OpenCLStream.remember = noted  # type: ignore[method-assign]
    try:
        function()
        nnc.synchronize()
    finally:
        OpenCLStream.remember = remember  # type: ignore[method-assign]
    return sum([event.profile.end - event.profile.start for event in events]) * 1e-9


def calls(device: str, step: Callable[[], object]) -> list[list[str]]:
    """Rows of names, microseconds, and how many times what the driver takes."""
    stream = stack_for(device).device.default_stream
    assert isinstance(stream, OpenCLStream)
    x = nnc.asarray(np.ones(8, np.float32), device=device)

    def waited(function: Callable[[], object]) -> Callable[[], None]:
        def run() -> None:
            function()
            nnc.synchronize()

        return run

    def adding() -> None:
        for _ in range(RECORDS):
            nnc.add(x, x)

    works = {"bare": waited(bare(stream)), "record": waited(chain(device)), "add": waited(adding)}
    for work in works.values():
        work(), work()
    times = {name: seconds / RECORDS * 1e6 for name, seconds in least(works, repeats=20, calls=5).items()}
    for _ in range(3):
        step()
    took = least({"step": step}, repeats=25, calls=1)["step"]
    kernels = min([on_device(step) for _ in range(10)])
    return [["a kernel enqueued bare", f"{times['bare']:.1f}", ""],
            ["a record of a compiled graph", f"{times['record']:.1f}", f"{times['record'] / times['bare']:.1f}"],
            ["eager add of 8 floats", f"{times['add']:.1f}", f"{times['add'] / times['bare']:.1f}"],
            ["LeNet training step beside its kernels", f"{took * 1e6:.0f}", f"{took / kernels:.2f}"]]
