"""Tensors that lie in files beside a model: mapped, read-only, and nowhere but in the model's folder."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from nnc_core.base.errors import FileFormatError
from nnc_core.base.missing import MissingFileError
from nnc_core.io.onnx.reading.types import dtype_of

PACKED = {onnx.TensorProto.INT4, onnx.TensorProto.UINT4, onnx.TensorProto.FLOAT4E2M1}
"""Several elements in a byte: these are unpacked into memory."""


def is_external(tensor: onnx.TensorProto) -> bool:
    return bool(tensor.data_location == onnx.TensorProto.EXTERNAL)


def external_array(tensor: onnx.TensorProto, folder: str) -> np.ndarray[Any, Any]:
    """The array of a tensor whose elements lie in another file.

    Raises FileFormatError for a place outside of the model's folder, or that does not hold what the tensor says.
    """
    entries = {entry.key: entry.value for entry in tensor.external_data}
    path = _path(entries.get("location", ""), folder, tensor.name)
    dtype, shape = dtype_of(tensor.data_type), tuple(tensor.dims)
    offset, length = _number(entries, "offset", tensor.name), _number(entries, "length", tensor.name)
    needed = prod(shape) * dtype.itemsize
    if tensor.data_type in PACKED:
        return np.asarray(onnx.numpy_helper.to_array(tensor, folder))
    size = path.stat().st_size
    if length not in (0, needed) or offset + needed > size:
        raise FileFormatError(f"the tensor {tensor.name!r} needs {needed:,} bytes from {offset:,} on in {path.name!r}, "
                              f"which has {size:,}" + (f"; it says {length:,}" if length not in (0, needed) else ""))
    if needed == 0:
        return np.zeros(shape, dtype)
    return np.memmap(path, dtype.newbyteorder("<"), "r", offset, shape).view(dtype)


def _path(location: str, folder: str, name: str) -> Path:
    """The file, which must be inside of the folder, links followed."""
    base = Path(folder).resolve()
    path = (base / location).resolve()
    if not location or Path(location).is_absolute() or base not in path.parents:
        raise FileFormatError(f"the tensor {name!r} lies in {location!r}, which is no file in the model's folder")
    if not path.is_file():
        raise MissingFileError(f"the tensor {name!r} lies in {str(path)!r}, which is no file",
                               hint="keep the files of a model together")
    return path


def _number(entries: dict[str, str], key: str, name: str) -> int:
    text = entries.get(key, "0")
    if not text.isdecimal():
        raise FileFormatError(f"the {key} of the tensor {name!r} is {text!r}")
    return int(text)
