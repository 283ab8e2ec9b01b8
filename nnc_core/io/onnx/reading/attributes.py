"""Attributes of a node as Python values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto

from nnc_core.base.errors import FileFormatError
from nnc_core.io.onnx.reading.external import external_array, is_external

KINDS: Mapping[int, Callable[[AttributeProto], Any]] = {
    AttributeProto.FLOAT: lambda a: float(a.f),
    AttributeProto.INT: lambda a: int(a.i),
    AttributeProto.STRING: lambda a: text_of(a.s),
    AttributeProto.TENSOR: lambda a: array_of(a.t),
    AttributeProto.SPARSE_TENSOR: lambda a: dense(a.sparse_tensor),
    AttributeProto.GRAPH: lambda a: a.g,
    AttributeProto.TYPE_PROTO: lambda a: a.tp,
    AttributeProto.FLOATS: lambda a: tuple(float(x) for x in a.floats),
    AttributeProto.INTS: lambda a: tuple(int(x) for x in a.ints),
    AttributeProto.STRINGS: lambda a: tuple(text_of(s) for s in a.strings),
    AttributeProto.TENSORS: lambda a: tuple(array_of(t) for t in a.tensors),
    AttributeProto.GRAPHS: lambda a: tuple(a.graphs),
}


def value_of(attribute: AttributeProto) -> Any:
    """The value; a graph stays a GraphProto, which only who parses a model can take apart."""
    kind = KINDS.get(attribute.type)
    if kind is None:
        raise FileFormatError(f"attribute {attribute.name!r} is of a kind that is not known: {attribute.type}")
    return kind(attribute)


def text_of(data: bytes) -> str:
    """Text of a file, which must be UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise FileFormatError(f"a text of the model is no UTF-8: {data[:40]!r}") from error


def array_of(tensor: onnx.TensorProto, folder: str = "") -> np.ndarray[Any, Any]:
    """The tensor as an array, read-only.  Texts are Python's, in an array of objects."""
    if is_external(tensor):
        return external_array(tensor, folder)
    try:
        array = onnx.numpy_helper.to_array(tensor)
    except Exception as error:  # whatever the package meets in damaged data
        raise FileFormatError(f"the tensor {tensor.name!r} cannot be read: {error}") from error
    if array.dtype == object:
        texts = np.empty(array.size, object)
        texts[:] = [text_of(x) if isinstance(x, bytes) else str(x) for x in array.flat]
        return texts.reshape(array.shape)
    return array


def dense(sparse: onnx.SparseTensorProto) -> np.ndarray[Any, Any]:
    """A sparse tensor written out: values at linearised or coordinate indices, zeros elsewhere."""
    values, indices = array_of(sparse.values), array_of(sparse.indices)
    array = np.zeros(tuple(sparse.dims), values.dtype)
    try:
        array[tuple(indices.T) if indices.ndim == 2 else np.unravel_index(indices, array.shape)] = values
    except (IndexError, ValueError) as error:
        raise FileFormatError(f"the sparse tensor {sparse.values.name!r} has indices that do not fit: {error}"
                              ) from error
    return array
