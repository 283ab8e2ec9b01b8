"""Floor 1: what a device is.  Knows bytes, layouts and loop nests; nothing of graphs."""

from nnc_core.device.buffer import Array, Buffer, StridedArray
from nnc_core.device.built_kernels import BuiltKernels
from nnc_core.device.capture import Around, Program, PythonProgram, calls_of
from nnc_core.device.device import Device, DirectCopy, HostArray
from nnc_core.device.host_copy import check_host_copy
from nnc_core.device.interpret import BufferTape
from nnc_core.device.kernel import CommandBackend, Kernel, Launch
from nnc_core.device.origin import enqueued_for, origin
from nnc_core.device.pool import MemoryInfo, Pool
from nnc_core.device.registry import Registry
from nnc_core.device.spec import CODEGEN, NO_VALUES, NO_VIEWS, NOTES, REPRODUCIBLE, DeviceSpec
from nnc_core.device.stream import DONE, DoneEvent, Event, Gate, SerialStream, Stream

__all__ = [
    "CODEGEN",
    "DONE",
    "NOTES",
    "NO_VALUES",
    "NO_VIEWS",
    "REPRODUCIBLE",
    "Around",
    "Array",
    "Buffer",
    "BufferTape",
    "BuiltKernels",
    "CommandBackend",
    "Device",
    "DeviceSpec",
    "DirectCopy",
    "DoneEvent",
    "Event",
    "Gate",
    "HostArray",
    "Kernel",
    "Launch",
    "MemoryInfo",
    "Pool",
    "Program",
    "PythonProgram",
    "Registry",
    "SerialStream",
    "Stream",
    "StridedArray",
    "calls_of",
    "check_host_copy",
    "enqueued_for",
    "origin",
]  # fmt: skip
