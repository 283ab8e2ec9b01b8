"""Numbers that are counted out."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnc_core.functions import public as nnc
from nnc_core.io.onnx.reading.lanes import Host, Sizes, element_of
from nnc_core.io.onnx.reading.registry import operator
from nnc_core.io.onnx.reading.run import NodeCall
from nnc_core.type import Dim


@operator("Range")
def count(start: Host, limit: Sizes, delta: Host, *, call: NodeCall) -> Any:
    """start, start + delta ... before limit; with Python where all are numbers, for these may be sizes."""
    numbers: list[Any] = [x.reshape(())[()] for x in (start, limit, delta)]
    dtype = element_of(start)
    if not any(isinstance(n, Dim) for n in numbers):
        return np.arange(*numbers, dtype=dtype)
    first, last, step = (n if isinstance(n, Dim) else int(n) for n in numbers)
    length = (first - last - step - 1) // -step if step < 0 else (last - first + step - 1) // step
    steps = nnc.arange(length, dtype=dtype, device=call.device)
    scaled = steps if step == 1 else nnc.multiply(steps, call.tensor(delta))
    return scaled if first == 0 else nnc.add(scaled, call.tensor(start))
