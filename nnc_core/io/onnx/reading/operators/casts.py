"""Casts between dtypes, texts included."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import onnx

from nnc_core.base.dtype import is_integer
from nnc_core.functions import public as nnc
from nnc_core.io.onnx.reading.lanes import Host, Lane, as_element, element_of, has_dims, is_host, to_host
from nnc_core.io.onnx.reading.registry import operator
from nnc_core.io.onnx.reading.run import NodeCall
from nnc_core.io.onnx.reading.types import dtype_of, number_of
from nnc_core.values.tensor import Tensor


@operator("Cast")
def cast_first(x: Any, *, to: str, call: NodeCall) -> Lane:
    """Version 1 names the dtype by a text."""
    return cast_to(x, onnx.TensorProto.DataType.Value(to), call, SATURATING)


@operator("Cast", since=6)
def cast(x: Any, *, to: int, saturate: int = 1, round_mode: str = "up", call: NodeCall) -> Lane:
    return cast_to(x, to, call, Rounding(bool(saturate), round_mode))


@operator("CastLike")
def cast_like(x: Any, like: Any, *, saturate: int = 1, round_mode: str = "up", call: NodeCall) -> Lane:
    return cast_to(x, number_of(element_of(like)), call, Rounding(bool(saturate), round_mode))


class Rounding(NamedTuple):
    """Roundings by which floats of at most 8 bits are made."""

    saturate: bool
    round_mode: str


SATURATING = Rounding(True, "up")


def cast_to(x: Lane, number: int, call: NodeCall, rounding: Rounding) -> Lane:
    """The value as the dtype of that number; what Python knows stays with it."""
    if number == onnx.TensorProto.STRING:
        return _texts(to_host(x))
    dtype = dtype_of(number)
    if not is_host(x) or (x.dtype != object and not (_is_plain(x.dtype) and _is_plain(dtype))):
        return nnc.astype(call.tensor(x), dtype, **rounding._asdict())
    if x.dtype != object:
        return _cast_host(x, dtype)
    if has_dims(x):
        return as_element(x, dtype) if is_integer(dtype) else nnc.astype(call.tensor(x), dtype)
    return _parsed(x, dtype)


def _is_plain(dtype: np.dtype[Any]) -> bool:
    """True for the dtypes that NumPy has itself."""
    return dtype.kind in "biuf"


def _cast_host(x: Host, dtype: np.dtype[Any]) -> Host:
    with np.errstate(all="ignore"):
        return x.astype(dtype)


def _texts(x: Host) -> Host:
    texts = np.empty(x.size, object)
    texts[:] = [_text(n) for n in x.flat]
    return texts.reshape(x.shape)


def _text(n: Any) -> str:
    """Floats in the shortest form that gives them back, with the names that ONNX has for the others."""
    if isinstance(n, str):
        return n
    if isinstance(n, np.bool_):
        return str(int(n))
    if isinstance(n, (np.integer, int)):
        return str(int(n))
    if np.isnan(n):
        return "NaN"
    if np.isinf(n):
        return "INF" if n > 0 else "-INF"
    return str(n)


def _parsed(x: Host, dtype: np.dtype[Any]) -> Host:
    """Numbers written as texts: plain or scientific, "NaN", "INF" and "-INF"."""
    made = np.empty(x.size, dtype)
    made[:] = [int(text) if is_integer(dtype) else float(text) for text in x.flat]
    return made.reshape(x.shape)


@operator("BitCast", since=26)
def bitcast(x: Tensor, *, to: int) -> Tensor:
    return nnc.bitcast(x, dtype_of(to))
