"""Constants, and tensors filled with one number."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnc_core.base.errors import FileFormatError
from nnc_core.functions import public as nnc
from nnc_core.io.onnx.reading.lanes import Host, Sizes
from nnc_core.io.onnx.reading.registry import operator
from nnc_core.io.onnx.reading.run import NodeCall
from nnc_core.io.onnx.reading.types import dtype_of
from nnc_core.type import Dim
from nnc_core.values.tensor import Tensor

ZERO = np.zeros(1, np.float32)


@operator("Constant")
def constant(*, value: Host | None = None, sparse_value: Host | None = None, value_float: float | None = None,
             value_floats: tuple[float, ...] | None = None, value_int: int | None = None,
             value_ints: tuple[int, ...] | None = None, value_string: str | None = None,
             value_strings: tuple[str, ...] | None = None) -> Host:
    given = {np.float32: (value_float, value_floats), np.int64: (value_int, value_ints),
             object: (value_string, value_strings)}
    found = [x for x in (value, sparse_value) if x is not None]
    found += [np.asarray(x, dtype) for dtype, pair in given.items() for x in pair if x is not None]
    if len(found) != 1:
        raise FileFormatError(f"a constant has one value, not {len(found)}")
    return found[0]


@operator("ConstantOfShape")
def constant_of_shape(shape: Sizes, *, value: Host = ZERO, call: NodeCall) -> Any:
    dims = tuple(shape.tolist())
    if not any(isinstance(n, Dim) for n in dims) and int(np.prod(dims)) <= SMALL:
        return np.full(dims, value.reshape(())[()], value.dtype)
    return nnc.full(dims, value.reshape(())[()], dtype=value.dtype, device=call.device)


SMALL = 256
"""Elements up to which such a tensor may be part of the computation of a size, and stays with Python."""


@operator("EyeLike")
def eye_like(x: Any, *, dtype: int | None = None, k: int = 0, call: NodeCall) -> Tensor:
    made = nnc.eye(x.shape[0], x.shape[1], k=k, dtype=x.dtype if dtype is None else dtype_of(dtype))
    return nnc.asarray(made, device=call.device)


