"""Graphs of the cuDNN of these tests, computed by NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnc_core.operator import window_reference as reference
from tests.cuda.host_calls import memory
from tests.cuda.host_cudnn_descriptors import (
    ATTENTION,
    BAND,
    DTYPES,
    GRADIENTS,
    POINTWISE_STEP,
    PRODUCT,
    RESHAPE,
    TOTAL,
    WAYS,
    Described,
    extent_of,
    name_of,
    operands_of,
    result_of,
    shape_of,
)

KEYS = 16
"""Keys that attention goes through at once."""


def run_graph(graph: Described, addresses: dict[int, int]) -> None:
    unseen = dict[int, Any]()

    def array(tensor: Described) -> Any:
        number = tensor.one(906)
        if number in unseen:
            return unseen[number]
        dtype = DTYPES[tensor.one(901)]
        flat = memory(addresses[number], extent_of(tensor) // dtype.itemsize, dtype)
        strides = [step * dtype.itemsize for step in tensor.values[903]]
        return np.lib.stride_tricks.as_strided(flat, shape_of(tensor), strides)

    def store(tensor: Described, values: Any) -> None:
        if tensor.values.get(907, [False])[0]:
            unseen[tensor.one(906)] = values.astype(DTYPES[tensor.one(901)])
        else:
            array(tensor)[...] = values.astype(DTYPES[tensor.one(901)])

    for step in graph.values[801]:
        if step.kind == ATTENTION:
            _attend(step, array, store)
        elif step.kind == GRADIENTS:
            _attend_back(step, array, store)
        else:
            store(result_of(step), _COMPUTED.get(step.kind, _convolved)(step, array))


def _pointwise(step: Described, array: Any) -> Any:
    wide = DTYPES[step.one(750).one(1)]
    x = array(step.one(751)).astype(wide)
    other = array(step.one(752)).astype(wide) if 752 in step.values else None
    return {"add": np.add, "multiply": np.multiply, "subtract": np.subtract, "exp": lambda x, _: np.exp(x),
            "relu": lambda x, _: np.maximum(x, 0)}[name_of(step)](x, other)


def _product(step: Described, array: Any) -> Any:
    a, b = (array(step.one(n)).astype(DTYPES[step.one(1523).one(1500)]) for n in (1520, 1521))
    return a @ np.repeat(b, a.shape[1] // b.shape[1], 1)


def _total(step: Described, array: Any) -> Any:
    assert step.one(1612).one(1600) == 0, "a sum"
    x, shape = array(step.one(1610)).astype(DTYPES[step.one(1612).one(1601)]), shape_of(step.one(1611))
    for axis, (n, m) in enumerate(zip(x.shape, shape, strict=True)):
        x = x.reshape(*x.shape[:axis], m, n // m, *x.shape[axis + 1 :]).sum(axis + 1)
    return x


def _reshaped(step: Described, array: Any) -> Any:
    return array(step.one(2200)).swapaxes(-1, -2)


def _banded(step: Described, array: Any) -> Any:
    x = array(step.one(3000)).copy()
    x[..., np.triu(np.ones(x.shape[-2:], bool), 1)] = array(step.one(3005))[0, 0, 0, 0]
    return x


_COMPUTED = {POINTWISE_STEP: _pointwise, PRODUCT: _product, TOTAL: _total, RESHAPE: _reshaped, BAND: _banded}


def _convolved(step: Described, array: Any) -> Any:
    """By the operators' references, channels first."""
    of, x, w, y = operands_of(step)
    way, first = WAYS[step.kind]
    wide = DTYPES[of.one(100)]
    slide = [of.values[103], list(zip(of.values[105], of.values[104], strict=True)), of.values[102]]
    groups, order = shape_of(x)[1] // shape_of(w)[1], {2: "NCHW", 3: "NCDHW"}[of.one(106)]
    given = [array(one).astype(wide) for one in {10: (x, w), 12: (y, w), 11: (x, y)}[step.kind]]
    size = {10: [], 12: [shape_of(x)[2:]], 11: [shape_of(w)[2:]]}[step.kind]
    assert step.one(first + 1) == 0
    return getattr(reference, way)(*given, *size, *slide, groups, order) * wide.type(step.one(first))


def _changed(step: Described, first: int, scores: Any, array: Any) -> Any:
    """Scores through the graph within an operation."""
    if first not in step.values:
        return scores
    found = {step.one(first + 1): scores}

    def within(tensor: Described) -> Any:
        return found[tensor.one(906)] if tensor.one(906) in found else array(tensor)

    for one in step.one(first).values[801]:
        found[result_of(one).one(906)] = _COMPUTED[one.kind](one, within)
    return found[step.one(first + 2)]


def _attend(step: Described, array: Any, store: Any) -> None:
    """By blocks of keys, whose largest scores are subtracted: one of -inf at the beginning leaves NaN."""
    query, key, value = (array(step.one(n)).astype(np.float32) for n in range(2800, 2803))
    times = query.shape[1] // key.shape[1]
    key, value = np.repeat(key, times, 1), np.repeat(value, times, 1)
    scores = query @ key.swapaxes(-1, -2) * array(step.one(2805)).astype(np.float32)
    scores = _changed(step, 2811, scores, array)
    largest, total, result = np.float32(-np.inf), np.float32(0), np.float32(0)
    for begin in range(0, scores.shape[-1], KEYS):
        some, of = scores[..., begin : begin + KEYS], value[..., begin : begin + KEYS, :]
        now = np.maximum(largest, some.max(-1, keepdims=True))
        left, weights = np.exp(largest - now), np.exp(some - now)
        total, result = total * left + weights.sum(-1, keepdims=True), result * left + weights @ of
        largest = now
    store(step.one(2803), result / total)
    if 2804 in step.values:
        store(step.one(2804), largest + np.log(total))


def _attend_back(step: Described, array: Any, store: Any) -> None:
    query, key, value, result, sums, cotangent = (
        array(step.one(n)).astype(np.float32) for n in (*range(2851, 2856), 2862))
    n, kept, keys, _ = key.shape
    times, scale = query.shape[1] // kept, array(step.one(2856)).astype(np.float32)
    key, value = np.repeat(key, times, 1), np.repeat(value, times, 1)
    weights = np.exp(_changed(step, 2867, query @ key.swapaxes(-1, -2) * scale, array) - sums)
    shift = (result * cotangent).sum(-1, keepdims=True)
    of_scores = weights * (cotangent @ value.swapaxes(-1, -2) - shift) * scale
    store(step.one(2859), of_scores @ key)
    for number, left, right in ((2860, of_scores, query), (2861, weights, cotangent)):
        each = left.swapaxes(-1, -2) @ right
        store(step.one(number), each.reshape(n, kept, times, keys, -1).sum(2))
