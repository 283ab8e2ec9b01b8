"""Sequences: lists of values, which Python holds."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from nnc_core.base.errors import OutOfRangeError
from nnc_core.functions import public as nnc
from nnc_core.io.onnx.reading.graph import OnnxGraph
from nnc_core.io.onnx.reading.lanes import Host, Lane, is_host
from nnc_core.io.onnx.reading.registry import operator
from nnc_core.io.onnx.reading.run import NodeCall


@operator("SequenceEmpty")
def sequence_empty(*, dtype: int = 1) -> list[Lane]:
    return []


@operator("SequenceConstruct")
def sequence_construct(*values: Any) -> list[Lane]:
    return list(values)


@operator("SequenceLength")
def sequence_length(values: Any) -> Host:
    return np.asarray(len(values), np.int64)


def _place(values: list[Lane], position: Host | None, end: int) -> int:
    """A position counted from the end where it is negative."""
    number = end if position is None else int(position.reshape(()))
    if not -len(values) <= number <= end:
        raise OutOfRangeError(f"position {number} of a sequence of {len(values)}")
    return number + len(values) if number < 0 else number


@operator("SequenceAt")
def sequence_at(values: Any, position: Host) -> Lane:
    return values[_place(values, position, len(values) - 1)]


@operator("SequenceErase")
def sequence_erase(values: Any, position: Host | None = None) -> list[Lane]:
    at = _place(values, position, len(values) - 1)
    return [*values[:at], *values[at + 1:]]


@operator("SequenceInsert")
def sequence_insert(values: Any, value: Any, position: Host | None = None) -> list[Lane]:
    at = _place(values, position, len(values))
    return [*values[:at], value, *values[at:]]


@operator("SplitToSequence")
def split_to_sequence(x: Any, split: Host | None = None, *, axis: int = 0, keepdims: int = 1,
                      call: NodeCall) -> list[Lane]:
    """Parts of one element each, of `split` elements (the last may have fewer), or of as many as it lists."""
    size = int(x.shape[axis])
    if split is None:
        bounds = list(range(size + 1))
    elif split.ndim == 0:
        bounds = [*range(0, size, int(split)), size]
    else:
        bounds = [0, *np.cumsum(split).tolist()]
    ahead = (slice(None),) * (axis % x.ndim)
    parts = [x[(*ahead, slice(low, high))] for low, high in pairwise(bounds)]
    if split is not None or keepdims:
        return parts
    return [part.reshape([n for i, n in enumerate(part.shape) if i != axis % x.ndim]) if is_host(part)
            else nnc.squeeze(part, axis % x.ndim) for part in parts]


@operator("ConcatFromSequence")
def concat_from_sequence(values: Any, *, axis: int, new_axis: int = 0, call: NodeCall) -> Lane:
    if values and all(is_host(x) for x in values):
        return np.stack(values, axis) if new_axis else np.concatenate(values, axis)
    tensors = [call.tensor(x) for x in values]
    return nnc.stack(tensors, axis=axis) if new_axis else nnc.concat(tensors, axis=axis)


@operator("SequenceMap")
def sequence_map(values: Any, *others: Any, body: OnnxGraph, call: NodeCall) -> tuple[list[Lane], ...]:
    """The body for each element; others are sequences alike, or the same for every element."""
    rows = [call.graph(body, x, *(y[i] if isinstance(y, list) else y for y in others)) for i, x in enumerate(values)]
    return tuple(list(column) for column in zip(*rows, strict=True)) if rows else ([],) * call.outputs
