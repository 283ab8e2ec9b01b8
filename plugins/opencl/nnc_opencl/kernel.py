"""Kernels of built loop nests, bound to any buffers."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np
import pyopencl as cl

from nnc_core.base.errors import DeviceError
from nnc_core.base.loopnest import LoopNest
from nnc_core.codegen import GroupsWriter, RunsWriter, results_size
from nnc_core.codegen.clike_columns import COLUMNS, ColumnsWriter
from nnc_core.codegen.group_states import GROUP
from nnc_core.device import Buffer, Kernel, Launch, Stream, origin
from nnc_opencl.failure import failure
from nnc_opencl.programs import Code, FittedCode, KernelHandle
from nnc_opencl.stream import Asked, OpenCLStream

RUN = 2048
"""Points that are worth a work item."""
FEW = 128
"""Points in all that a few groups go through sooner than many: a driver for a CPU takes 80 ns for a group."""
SHARES = 8
"""Work items for each core."""


def work_sizes(points: int, device: cl.Device, largest: int, inner: int = 1) -> tuple[int, int]:
    """(global, local) number of work items, each of which goes through `inner` points.  Few local sizes, as some
    drivers build again for each.

    On a CPU a group runs on one core, its items in vectors: large groups, but enough of them for all cores, unless what
    there is to do takes less than starting another group.
    """
    if not device.type & cl.device_type.CPU:
        local = 64
    elif points * inner <= FEW:
        local = 16 if points <= 16 else 64
    else:
        local = next((size for size in (64, 16) if points >= 4 * size * device.max_compute_units), 1)
    local = min(local, largest)
    return -(-points // local) * local, local


def sizes_of(nest: LoopNest, code: Code, device: cl.Device) -> tuple[int, int]:
    """The same for the code of a nest."""
    if issubclass(code.writer, GroupsWriter):
        return code.writer.groups(nest) * GROUP, GROUP
    inner = max([prod(stage.axes) for stage in nest.stages])
    if issubclass(code.writer, RunsWriter):
        return run_sizes(nest.points, inner, device, COLUMNS if code.writer is ColumnsWriter else 1)
    return work_sizes(nest.points, device, code.largest_group, inner)


def run_sizes(points: int, inner: int, device: cl.Device, least: int) -> tuple[int, int]:
    """The same for items that share the points among themselves: enough for all cores, each with much to do, `least`
    points or more."""
    items = min(points * max(inner, 1) // RUN, points // least, SHARES * device.max_compute_units)
    return max(items, 1), 1


class OpenCLKernel(Kernel):
    """A built nest: code that it may share, and the numbers that the code takes behind the buffers.

    A cl.Kernel holds arguments, so each launch has one of its own, lent for its life.
    """

    def __init__(self, nest: LoopNest, fitted: FittedCode, device: cl.Device, default: OpenCLStream) -> None:
        self.name, self._arguments, self._points = nest.name, len(nest.arguments), nest.points
        self._code, self._numbers, self._default = fitted.code, fitted.numbers, default
        self._sizes = sizes_of(nest, fitted.code, device)
        after = fitted.code.after
        self._after = None if after is None else OpenCLKernel(nest, FittedCode(after, fitted.numbers), device, default)
        self._results = 0 if after is None else results_size(nest)

    def bind(self, buffers: Sequence[Buffer], stream: Stream | None = None) -> Launch:
        if len(buffers) != self._arguments:
            raise DeviceError(f"{self.name} takes {self._arguments} buffers, not {len(buffers)}")
        queue = self._default if stream is None else stream
        assert isinstance(queue, OpenCLStream), f"{stream!r} is no stream of an OpenCL device"
        if not self._points:
            return _launch_nothing
        if self._after is None:
            return self._launch(buffers, queue)
        results = Results(queue.context, self._results)
        return all_of([kernel._launch([*buffers, results], queue) for kernel in (self, self._after)])

    def _launch(self, buffers: Sequence[Any], queue: OpenCLStream) -> OpenCLLaunch:
        handle = lend(self._code, buffers, self._numbers, self.name, self._default.id)
        return OpenCLLaunch(self.name, handle, self._code.free, self._sizes, buffers, queue)


class Numbers:
    """Numbers that a kernel reads, in the device's memory, and the work items of its launch."""

    def __init__(self, context: cl.Context, numbers: Sequence[int], items: int) -> None:
        flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
        self.memory = cl.Buffer(context, flags, hostbuf=np.array(numbers, np.int64))
        self.items = items


class Results:
    """Memory for the results that one pass of a kernel leaves to the next: of each launch its own, and small."""

    def __init__(self, context: cl.Context, nbytes: int) -> None:
        self.memory = cl.Buffer(context, cl.mem_flags.READ_WRITE, nbytes)


def all_of(launches: Sequence[Launch]) -> Launch:
    """Several launches as one."""
    if len(launches) == 1:
        return launches[0]

    def run() -> None:
        for launch in launches:
            launch()

    return run


def lend(code: Code, buffers: Sequence[Any], numbers: tuple[np.int64, ...], name: str, id: str) -> KernelHandle:
    """A handle with its arguments set, for a kernel of this name on the device `id`."""
    try:
        handle = code.free.pop()
    except IndexError:
        handle = code.handle()
    try:
        handle.set_arguments(buffers, numbers)
    except cl.Error as error:
        raise failure(f"binding {name}", error, id) from error
    return handle


class OpenCLLaunch:
    """Enqueues one kernel with its arguments set, and keeps the buffers alive, which OpenCL does not."""

    __slots__ = ("_asked", "_buffers", "_enqueue", "_free", "_handle", "_stream")

    def __init__(self, label: str, handle: KernelHandle, free: deque[KernelHandle], sizes: tuple[int, int],
                 buffers: Sequence[Buffer], stream: OpenCLStream) -> None:
        self._handle, self._free, self._buffers, self._stream = handle, free, tuple(buffers), stream
        self._enqueue = partial(cl.enqueue_nd_range_kernel, stream.queue, handle.kernel, (sizes[0],), (sizes[1],))
        self._asked = Asked(label, origin.get(), self._buffers if stream.keeps else None)

    def __call__(self) -> None:
        try:
            event = self._enqueue()
        except cl.Error as error:
            raise failure(f"launching {self._asked.label}", error, self._stream.id) from error
        self._stream.remember(event, self._asked)

    def __del__(self) -> None:
        self._free.append(self._handle)  # what is enqueued has its arguments already


def _launch_nothing() -> None:
    """The launch of a nest without points."""
