"""Loop nests as OpenCL kernels: rendered and built once, then bound to any buffers."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Sequence
from typing import Any

import pyopencl as cl

from nnc_core.base.dtype import float64
from nnc_core.base.errors import DeviceError, DeviceFailureError, FallbackWarning, NotSupportedError
from nnc_core.base.line import Line
from nnc_core.base.loopnest import LoopNest
from nnc_core.codegen import OPENCL, entry_name, expand, render
from nnc_core.device import Buffer, DeviceSpec, Kernel, Launch, Stream, origin
from nnc_opencl.failure import failure, last_words
from nnc_opencl.stream import OpenCLStream

HANDLES = 64
"""cl.Kernel objects kept for the next binds: making one takes 100 us, setting its arguments 0.5 us."""


POINTER = 8
"""Bytes of an argument."""


def build(nest: LoopNest, context: cl.Context, spec: DeviceSpec) -> cl.Program:
    """The program of one nest.  DeviceFailureError: the driver refuses it; NotSupportedError: the device must."""
    if "float64" not in spec.dtypes and _uses_float64(nest):
        raise NotSupportedError(f"{nest.name} needs float64, which {spec.name} does not have",
                                device=spec.id, hint="cast to float32, or use another device")
    most = context.devices[0].max_parameter_size // POINTER
    if len(nest.arguments) > most:  # some compilers crash instead of refusing it
        raise NotSupportedError(f"{nest.name} takes {len(nest.arguments)} buffers; a kernel takes at most {most} here",
                                device=spec.id, hint="give it fewer inputs at a time")
    source = render(expand(nest), OPENCL)
    try:
        options = _options(context.devices[0])
        return _small(_build_source(source, context, options), context, options)
    except cl.Error as error:
        raise DeviceFailureError(f"the driver cannot build the kernel of {nest.name}: {last_words(str(error))}",
                            device=spec.id, hint="`nnc devices` examines the driver") from error


def _uses_float64(nest: LoopNest) -> bool:
    dtypes = {argument.dtype for argument in nest.arguments}
    for stage in nest.stages:
        dtypes |= {i.dtype for i in stage.instructions} | {r.dtype for r in stage.reductions}
    return float64 in dtypes


def _options(device: cl.Device) -> list[str]:
    """IEEE results: nothing relaxed; without the option float32's division may be wrong by 2.5 ULP."""
    rounded = device.single_fp_config & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT
    return ["-cl-fp32-correctly-rounded-divide-sqrt"] if rounded else []


def _build_source(source: str, context: cl.Context, options: list[str]) -> cl.Program:
    """Built through PyOpenCL's cache on disk, or without where that cannot be written or read."""
    _hush_remarks()
    try:
        return cl.Program(context, source).build(options)  # type: ignore[no-any-return]
    except (KeyError, OSError) as error:  # KeyError: PyOpenCL asks for a variable that says how to fail
        cause = error.__context__ or error
        message = f"PyOpenCL's cache on disk fails, building without: {cause}"
        warnings.warn(message, FallbackWarning, stacklevel=2)
        program = cl.Program(context, source)
        return program.build(options, cache_dir=False)  # type: ignore[no-any-return, arg-type]


def _small(program: cl.Program, context: cl.Context, options: list[str]) -> cl.Program:
    """Made again of its binary: with a program built from source, drivers for CPUs keep what their compiler knew."""
    [device] = context.devices
    if not device.type & cl.device_type.CPU or not program.get_info(cl.program_info.SOURCE):
        return program
    binaries: Any = program.get_info(cl.program_info.BINARIES)
    try:
        return cl.Program(context, [device], binaries).build(options)  # type: ignore[no-any-return]
    except cl.Error:
        return program


def _hush_remarks() -> None:
    """Intel's driver reports success in words, and PyOpenCL warns; PYOPENCL_COMPILER_OUTPUT=1 shows them."""
    if not warnings.filters or warnings.filters[0][2] is not cl.CompilerWarning:
        warnings.filterwarnings("ignore", "Non-empty compiler output", cl.CompilerWarning)


def work_sizes(points: int, device: cl.Device, largest: int) -> tuple[int, int]:
    """(global, local) number of work items.  Few local sizes, as some drivers build again for each.

    On a CPU a group runs on one core, its items in vectors: large groups, but enough of them for all cores.
    """
    if not device.type & cl.device_type.CPU:
        local = 64
    else:
        local = next((size for size in (64, 16) if points >= 4 * size * device.max_compute_units), 1)
    local = min(local, largest)
    return -(-points // local) * local, local


class OpenCLKernel(Kernel):
    """A built nest.  A cl.Kernel holds arguments, so each launch has one of its own, lent for its life."""

    def __init__(self, nest: LoopNest, program: cl.Program, device: cl.Device, default: OpenCLStream) -> None:
        self.name, self._arguments, self._points = nest.name, len(nest.arguments), nest.points
        self._program, self._entry, self._default = program, entry_name(nest), default
        first = cl.Kernel(program, self._entry)
        largest = first.get_work_group_info(cl.kernel_work_group_info.WORK_GROUP_SIZE, device)
        self._sizes = work_sizes(nest.points, device, largest)
        self._free: deque[cl.Kernel] = deque([first], maxlen=HANDLES)

    def bind(self, buffers: Sequence[Buffer], stream: Stream | None = None) -> Launch:
        if len(buffers) != self._arguments:
            raise DeviceError(f"{self.name} takes {self._arguments} buffers, not {len(buffers)}")
        queue = self._default if stream is None else stream
        assert isinstance(queue, OpenCLStream), f"{stream!r} is no stream of an OpenCL device"
        if not self._points:
            return _launch_nothing
        return OpenCLLaunch(self.name, self._lend(buffers), self._free, self._sizes, buffers, queue)

    def _lend(self, buffers: Sequence[Any]) -> cl.Kernel:
        """A cl.Kernel with its arguments set."""
        try:
            handle = self._free.pop()
        except IndexError:
            handle = cl.Kernel(self._program, self._entry)
        try:
            handle.set_args(*[buffer.memory for buffer in buffers])
        except cl.Error as error:
            raise failure(f"binding {self.name}", error, self._default.id) from error
        return handle


class OpenCLLaunch:
    """Enqueues one kernel with its arguments set, and keeps the buffers alive, which OpenCL does not."""

    __slots__ = ("_buffers", "_free", "_global", "_handle", "_label", "_line", "_local", "_queue", "_stream")

    def __init__(self, label: str, handle: cl.Kernel, free: deque[cl.Kernel], sizes: tuple[int, int],
                 buffers: Sequence[Buffer], stream: OpenCLStream) -> None:
        self._label, self._handle, self._free, self._buffers = label, handle, free, tuple(buffers)
        self._global, self._local = (sizes[0],), (sizes[1],)
        self._stream, self._queue = stream, stream.queue
        self._line: Line | None = origin.get()

    def __call__(self) -> None:
        try:
            event = cl.enqueue_nd_range_kernel(self._queue, self._handle, self._global, self._local)
        except cl.Error as error:
            raise failure(f"launching {self._label}", error, self._stream.id) from error
        self._stream.remember(event, self._label, self._line)

    def __del__(self) -> None:
        self._free.append(self._handle)  # what is enqueued has its arguments already


def _launch_nothing() -> None:
    """The launch of a nest without points."""
