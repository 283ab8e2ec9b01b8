"""Shapes, bounds and widths that are elements of tensors: what stays is counted when a graph runs."""

from __future__ import annotations

from math import prod
from typing import Any

from nnc_core.base.errors import NotSupportedError
from nnc_core.functions import public as nnc
from nnc_core.io.onnx.reading.run import NodeCall
from nnc_core.values.tensor import Tensor


def counted_slice(x: Tensor, start: Any, end: Any, axis: int, step: int, call: NodeCall) -> Tensor:
    """x[start:end:step] along an axis; bounds count from the end where they are negative, and stop at the ends."""
    size = call.number(x.shape[axis])
    low, high = (nnc.zeros_like(size), size) if step > 0 else (nnc.full_like(size, -1), nnc.subtract(size, 1))

    def bound(n: Any) -> Tensor:
        n = call.number(n)
        n = nnc.where(nnc.less(n, 0), nnc.add(n, size), n)
        return nnc.minimum(nnc.maximum(n, low), high)

    first, last = bound(start), bound(end)
    whole = nnc.floor_divide(nnc.subtract(nnc.add(nnc.subtract(last, first), step), 1 if step > 0 else -1), step)
    count = call.length(nnc.maximum(whole, 0))
    steps = nnc.arange(count, dtype=first.dtype, device=call.device)
    return nnc.take(x, nnc.add(first, nnc.multiply(steps, step)), axis=axis)


def counted_pad(x: Tensor, axis: int, low: Any, high: Any, mode: str, value: Any, call: NodeCall) -> Tensor:
    """Elements first taken away at both ends of an axis, then added, each read from where the mode finds it."""
    low, high = call.number(low), call.number(high)
    size = nnc.add(call.number(x.shape[axis]), nnc.add(nnc.minimum(low, 0), nnc.minimum(high, 0)))  # of what stays
    added = nnc.maximum(low, 0)
    count = call.length(nnc.add(nnc.add(size, added), nnc.maximum(high, 0)))
    places = nnc.subtract(nnc.arange(count, dtype=size.dtype, device=call.device), added)
    y = nnc.take(x, nnc.subtract(_found(places, size, mode), nnc.minimum(low, 0)), axis=axis)
    if mode != "constant":
        return y
    inside = nnc.logical_and(nnc.greater_equal(places, 0), nnc.less(places, size))
    beside = nnc.reshape(inside, (count, *[1] * (x.ndim - 1 - axis % x.ndim)))
    return nnc.where(beside, y, nnc.asarray(value, dtype=x.dtype, device=call.device))


def _found(places: Tensor, size: Tensor, mode: str) -> Tensor:
    """The places inside of so many elements that stand for others."""
    last = nnc.maximum(nnc.subtract(size, 1), 0)
    if mode == "wrap":
        return nnc.remainder(places, size)
    if mode == "reflect":
        twice = nnc.multiply(last, 2)
        turned = nnc.remainder(places, nnc.maximum(twice, 1))
        return nnc.minimum(turned, nnc.subtract(twice, turned))
    return nnc.minimum(nnc.maximum(places, 0), last)


def counted_reshape(x: Tensor, shape: list[Any], allow_zero: bool, call: NodeCall) -> Tensor:
    """Elements in a shape of which one size, with which nothing else than -1 goes, is an element of a tensor.

    Whatever it says, the size is that for which the others leave elements; anything else is an error when it runs.
    """
    late = [i for i, n in enumerate(shape) if isinstance(n, Tensor)]
    sizes = [x.shape[i] if not isinstance(n, Tensor) and n == 0 and not allow_zero else n for i, n in enumerate(shape)]
    others = prod([n for i, n in enumerate(sizes) if i not in late])
    if len(late) > 1 or any(not isinstance(n, Tensor) and n == -1 for n in sizes) or others == 0:
        raise NotSupportedError("more than one size of a shape depends on values that only a call computes", hint=(
            "call the model eagerly, without jit, hybridize or graph()"))
    (at,) = late
    n = shape[at]
    rest = nnc.floor_divide(call.number(prod(x.shape)), call.number(others))
    if not allow_zero and at < x.ndim:
        n = nnc.where(nnc.equal(n, 0), call.number(x.shape[at]), n)
    right = nnc.logical_or(nnc.equal(n, -1), nnc.equal(n, rest))
    call.length(nnc.where(right, 0, -1))  # no length is -1
    return nnc.reshape(x, tuple(-1 if i == at else size for i, size in enumerate(sizes)))
