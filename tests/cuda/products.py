"""Products run on the CUDA device of these tests and by core's interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nnc_core.base.command import Command
from nnc_core.operator.products.arrange import arranged
from nnc_cuda.device import CudaDevice
from nnc_cuda.products.kernel import BlockProductCompiler
from nnc_cuda.products.plan import plan_of
from tests.cpu.products.running import by_itself, interpreted, same_bits, values

Values = np.ndarray[Any, Any]


def compiled_products(device: CudaDevice) -> BlockProductCompiler:
    return BlockProductCompiler(device._builder, device.default_stream)


def run(device: CudaDevice, command: Command, arrays: Sequence[Values], tile: tuple[int, int] | None = None,
        pieces: int | None = None) -> None:
    """Run the kernel of a command; the arrays are as it leaves them."""
    problem = arranged(command)
    kernel = compiled_products(device).kernel(problem, tile, pieces)
    plan = plan_of(problem, tile, pieces)
    buffers = [device.allocate(array.nbytes) for array in arrays]
    for array, buffer in zip(arrays, buffers, strict=True):
        device.upload(array, buffer)
    partial = [device.allocate(plan.partial * plan.kind.wide.itemsize)] if plan.partial else []
    kernel.bind([*buffers, *partial])()
    for array, buffer in zip(arrays, buffers, strict=True):
        device.download(buffer, array).wait()


def check(device: CudaDevice, command: Command, tile: tuple[int, int] | None = None, pieces: int | None = None,
          given: Sequence[Values] | None = None) -> list[Values]:
    """The same bits as the interpreter's, whatever lies beside the results untouched, but for the order of sums where
    there are pieces; the storages of the results."""
    inputs = list(given or [values(x, seed) for seed, x in enumerate(command.inputs)])
    ours, theirs = ([values(x, 99 + n) for n, x in enumerate(command.outputs)] for _ in range(2))
    run(device, command, [*[x.copy() for x in inputs], *ours], tile, pieces)
    interpreted(by_itself(command), [*inputs, *theirs])
    for a, b in zip(ours, theirs, strict=True):
        if pieces is None:
            assert same_bits(a, b)
        else:
            np.testing.assert_allclose(a.astype(np.float64), b.astype(np.float64), rtol=1e-4, atol=1e-4)
    return ours
