"""Moving arrays and running nests by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nnc_core.base.loopnest import LoopNest
from nnc_opencl.device import OpenCLDevice
from nnc_opencl.memory import OpenCLBuffer

Values = np.ndarray[Any, Any]


def put(device: OpenCLDevice, array: Values) -> OpenCLBuffer:
    buffer = device.allocate(array.nbytes)
    device.upload(np.ascontiguousarray(array), buffer).wait()
    return buffer


def get(device: OpenCLDevice, buffer: OpenCLBuffer, like: Values) -> Values:
    host = np.empty(like.shape, like.dtype)
    device.download(buffer, host).wait()
    return host


def run(device: OpenCLDevice, nest: LoopNest, inputs: Sequence[Values], like: Values) -> Values:
    """The only output of a nest; what the nest does not write stays at byte 0xA5."""
    buffers = [*[put(device, x) for x in inputs], device.allocate(like.nbytes)]
    device.fill(buffers[-1], b"\xa5")
    device.compile(nest).bind(buffers)()
    return get(device, buffers[-1], like)
