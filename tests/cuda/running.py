"""Sums of arrays on the CUDA device of these tests."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnc_core.base.dtype import float32
from nnc_core.base.loopnest import Access, Argument, Instruction, LoopNest, Stage, Subscript
from nnc_core.device import Buffer
from nnc_cuda.device import CudaDevice

Values = np.ndarray[Any, Any]


def sum_nest(count: int, terms: int = 2) -> LoopNest:
    """Each number of the result is the sum of those at its place in so many arguments."""
    each = (Subscript(0, ((0, 1),), 1, extent=count),)
    body = [Instruction("load", float32, access=Access(argument, 0, each)) for argument in range(terms)]
    total = 0
    for term in range(1, terms):
        body.append(Instruction("add", float32, (total, term)))
        total = len(body) - 1
    body.append(Instruction("store", float32, (total,), access=Access(terms, 0, each)))
    arguments = (*[Argument(float32, written=False)] * terms, Argument(float32, written=True))
    return LoopNest("total", arguments, (count,), (Stage((), tuple(body)),))


def put(device: CudaDevice, values: Values) -> Buffer:
    buffer = device.allocate(values.nbytes)
    device.upload(values, buffer)
    return buffer


def get(device: CudaDevice, buffer: Buffer, count: int) -> Values:
    found = np.full(count, np.nan, np.float32)
    device.download(buffer, found).wait()
    return found
