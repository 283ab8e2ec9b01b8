"""Concatenation."""

from __future__ import annotations

import numpy as np

from nnc_core.functions import public as nnc
from nnc_core.io.onnx.reading.lanes import Host
from nnc_core.io.onnx.reading.registry import on_host, operator
from nnc_core.values.tensor import Tensor


@operator("Concat")
def concat_first(*xs: Tensor, axis: int = 1) -> Tensor:
    return nnc.concat(xs, axis=axis)


@operator("Concat", since=4)
def concat(*xs: Tensor, axis: int) -> Tensor:
    return nnc.concat(xs, axis=axis)


@on_host("Concat")
def _concat(*xs: Host, axis: int = 1) -> Host:
    return np.concatenate(xs, axis)
