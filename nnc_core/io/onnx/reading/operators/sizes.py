"""Sizes: values that Python knows, dimensions among them."""

from __future__ import annotations

from math import prod
from typing import Any

from nnc_core.io.onnx.reading.lanes import Host, sizes
from nnc_core.io.onnx.reading.registry import operator


@operator("Shape")
def shape(x: Any, *, start: int = 0, end: int | None = None) -> Host:
    return sizes(x.shape[start:end])


@operator("Size")
def size(x: Any) -> Host:
    return sizes([prod(x.shape)]).reshape(())


@operator("Identity")
def identity(x: Any) -> Any:
    return x
