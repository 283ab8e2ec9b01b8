"""The domain ai.onnx.ml: labels and features."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnc_core.base.errors import AttributeValueError
from nnc_core.functions import public as nnc
from nnc_core.io.onnx.reading.lanes import Host
from nnc_core.io.onnx.reading.operators.texts import texts
from nnc_core.io.onnx.reading.registry import ML, operator
from nnc_core.values.tensor import Tensor


@operator("ArrayFeatureExtractor", domain=ML)
def array_feature_extractor(x: Tensor, indices: Tensor) -> Tensor:
    """Elements of the last axis by their indices."""
    found = nnc.take(x, nnc.reshape(indices, (-1,)), axis=-1)
    return nnc.expand_dims(found, 0) if x.ndim == 1 else found


@operator("Binarizer", domain=ML)
def binarizer(x: Tensor, *, threshold: float = 0.0) -> Tensor:
    return nnc.astype(nnc.greater(x, threshold), x.dtype)


@operator("LabelEncoder", domain=ML, since=2)
def label_encoder(x: Host, *, default_float: float = -0.0, default_int64: int = -1, default_string: str = "_Unused",
                  default_tensor: Host | None = None, keys_floats: Any = None, keys_int64s: Any = None,
                  keys_strings: Any = None, keys_tensor: Host | None = None, values_floats: Any = None,
                  values_int64s: Any = None, values_strings: Any = None, values_tensor: Host | None = None) -> Host:
    """Each element as the value of its key, or a default; NaN is a key like others."""
    keys = _given(keys_floats, keys_int64s, keys_strings, keys_tensor)
    other: Any
    if values_tensor is not None:
        values, dtype = values_tensor.reshape(-1).tolist(), values_tensor.dtype
        other = np.zeros((), dtype)[()] if default_tensor is None else default_tensor.reshape(())[()]
    else:
        chosen = [(values_strings, default_string, object), (values_int64s, default_int64, np.int64),
                  (values_floats, default_float, np.float32)]
        values, other, dtype = next((list(v), d, np.dtype(t)) for v, d, t in chosen if v is not None)
    if len(keys) != len(values):
        raise AttributeValueError(f"{len(keys)} keys for {len(values)} values")
    table = {_key(key): value for key, value in zip(keys, values, strict=True)}
    found = [table.get(_key(element), other) for element in x.reshape(-1).tolist()]
    return texts(found, x.shape) if dtype.kind == "O" else np.asarray(found, dtype).reshape(x.shape)


def _given(*options: Any) -> list[Any]:
    found = [x.reshape(-1).tolist() if isinstance(x, np.ndarray) else list(x) for x in options if x is not None]
    if len(found) != 1:
        raise AttributeValueError(f"{len(found)} lists of keys, expected one")
    return found[0]


def _key(element: Any) -> Any:
    return "NaN of floats" if element != element else element
