"""The host as a device's last resort: NumPy references between a download and an upload."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nnc_core.base.command import Command
from nnc_core.base.layout import Layout
from nnc_core.device.buffer import Buffer
from nnc_core.device.device import Device
from nnc_core.device.kernel import Kernel, Launch
from nnc_core.device.stream import Stream


class HostKernel(Kernel):
    """Runs a NumPy reference between a download and an upload."""

    def __init__(self, device: Device, reference: Callable[..., Any], command: Command) -> None:
        self.device, self.reference, self.command = device, reference, command

    def bind(self, buffers: Sequence[Buffer], stream: Stream | None = None) -> Launch:
        inputs, outputs = self.command.inputs, self.command.outputs
        sources, targets = buffers[: len(inputs)], buffers[len(inputs) :]

        def launch() -> None:
            arrays = [download(self.device, b, layout, stream) for b, layout in zip(sources, inputs, strict=True)]
            with np.errstate(all="ignore"):
                result = self.reference(*arrays, *self.command.attributes)
            results = result if isinstance(result, tuple) else (result,)
            for x, target, out in zip(results, targets, outputs, strict=True):
                host = np.ascontiguousarray(np.asarray(x, out.dtype).reshape(out.shape))
                self.device.upload(host, target, stream).wait()

        return launch


def download(device: Device, buffer: Buffer, layout: Layout, stream: Stream | None = None) -> Any:
    """A host array of what lies in a buffer; strided layouts are gathered on the host."""
    host = np.empty(max(layout.extent, 1), np.uint8)
    device.download(buffer, host[: layout.extent], stream).wait()
    array: Any = np.ndarray(layout.shape, layout.dtype, host, layout.offset, layout.strides)
    return np.ascontiguousarray(array).reshape(layout.shape)
