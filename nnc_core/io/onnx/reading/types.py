"""Types that a model declares."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from nnc_core.base.errors import FileFormatError
from nnc_core.io.onnx.reading.graph import ValueInfo

FLOAT, INT32 = int(onnx.TensorProto.FLOAT), int(onnx.TensorProto.INT32)
KINDS = {"tensor_type": "tensor", "sparse_tensor_type": "tensor", "sequence_type": "sequence",
         "optional_type": "optional", "map_type": "map", None: ""}


def declared(info: onnx.ValueInfoProto) -> ValueInfo:
    """The declaration of a value."""
    kind = KINDS.get(info.type.WhichOneof("value"), "")
    if kind != "tensor":
        return ValueInfo(info.name, None, None, kind)
    tensor = info.type.tensor_type
    dtype = None if tensor.elem_type == onnx.TensorProto.UNDEFINED else dtype_of(tensor.elem_type)
    return ValueInfo(info.name, dtype, _shape(tensor) if tensor.HasField("shape") else None, kind)


def _shape(tensor: onnx.TypeProto.Tensor) -> tuple[int | str | None, ...]:
    return tuple(d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else _name(d.dim_param)
                 for d in tensor.shape.dim)


def _name(text: str | bytes) -> str | None:
    """The name of a dimension; None for what some exporters write for one that they know nothing of.  Protocol buffers
    give what is no UTF-8 as bytes."""
    if isinstance(text, bytes):
        raise FileFormatError(f"the name of a dimension is no UTF-8: {text[:40]!r}")
    return None if text in ("", "?", "None") else text


def dtype_of(number: int) -> np.dtype[Any]:
    """The dtype of a number of ONNX' enumeration; texts are objects.  Raises FileFormatError for an unknown one."""
    if number == onnx.TensorProto.STRING:
        return np.dtype(object)
    try:
        return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(number))
    except (KeyError, ValueError, TypeError) as error:
        raise FileFormatError(f"{number} is no dtype of ONNX") from error


def number_of(dtype: np.dtype[Any]) -> int:
    """The number of a dtype in ONNX' enumeration."""
    return int(onnx.TensorProto.STRING if dtype.kind == "O" else onnx.helper.np_dtype_to_tensor_dtype(dtype))
