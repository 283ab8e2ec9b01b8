"""Products run on an OpenCL device and by core's interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nnc_core.base.command import Command
from nnc_core.device import Device
from nnc_core.operator.products.arrange import arranged
from nnc_opencl.products.kernel import TiledCompiler, TiledKernel
from nnc_opencl.products.kind import SumTile
from tests.cpu.products.running import by_itself, interpreted, same_bits, values

Values = np.ndarray[Any, Any]
SMALL_TILE = SumTile(3, 1, 16, 32)


def run(device: Device, kernel: TiledKernel, arrays: Sequence[Values]) -> None:
    """Run a kernel; the arrays are as it leaves them."""
    buffers = [device.allocate(array.nbytes) for array in arrays]
    for array, buffer in zip(arrays, buffers, strict=True):
        device.upload(array, buffer)
    kernel.bind(buffers)()
    for array, buffer in zip(arrays, buffers, strict=True):
        device.download(buffer, array).wait()


def check(device: Device, compiler: TiledCompiler, command: Command, tile: SumTile | None = None,
          given: Sequence[Values] | None = None) -> list[Values]:
    """The same bits as the interpreter's, whatever lies beside the results untouched; the storages of the results."""
    inputs = list(given or [values(x, seed) for seed, x in enumerate(command.inputs)])
    ours, theirs = ([values(x, 99 + n) for n, x in enumerate(command.outputs)] for _ in range(2))
    kernel = compiler.kernel(arranged(command), None if compiler.grouped else tile)
    run(device, kernel, [*[x.copy() for x in inputs], *ours])
    interpreted(by_itself(command), [*inputs, *theirs])
    for a, b in zip(ours, theirs, strict=True):
        assert same_bits(a, b)
    return ours
