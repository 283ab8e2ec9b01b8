"""Sums and the like along axes.  Results are of the dtype of what is reduced."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from nnc_core.base.dtype import is_float
from nnc_core.functions import public as nnc
from nnc_core.functions.linalg_norms import vector_norm
from nnc_core.io.onnx.reading.lanes import Host
from nnc_core.io.onnx.reading.registry import on_host, operator
from nnc_core.values.tensor import Tensor

Reduction = Callable[[Tensor, Any, bool], Tensor]


def _sum(x: Tensor, axis: Any, keepdims: bool) -> Tensor:
    return nnc.sum(x, axis=axis, keepdims=keepdims, dtype=x.dtype)


def _prod(x: Tensor, axis: Any, keepdims: bool) -> Tensor:
    return nnc.prod(x, axis=axis, keepdims=keepdims, dtype=x.dtype)


def _mean(x: Tensor, axis: Any, keepdims: bool) -> Tensor:
    return nnc.astype(nnc.mean(x, axis=axis, keepdims=keepdims), x.dtype)


def _largest(x: Tensor, axis: Any, keepdims: bool) -> Tensor:
    """The maximum; of nothing the smallest number there is."""
    if x.dtype == bool:
        return nnc.any(x, axis=axis, keepdims=keepdims)
    if 0 in x.shape:
        least = -np.inf if is_float(x.dtype) else np.iinfo(x.dtype).min
        return nnc.full(_reduced(x.shape, axis, keepdims), least, dtype=x.dtype, device=x.device)
    return nnc.max(x, axis=axis, keepdims=keepdims)


def _smallest(x: Tensor, axis: Any, keepdims: bool) -> Tensor:
    if x.dtype == bool:
        return nnc.all(x, axis=axis, keepdims=keepdims)
    if 0 in x.shape:
        most = np.inf if is_float(x.dtype) else np.iinfo(x.dtype).max
        return nnc.full(_reduced(x.shape, axis, keepdims), most, dtype=x.dtype, device=x.device)
    return nnc.min(x, axis=axis, keepdims=keepdims)


def _reduced(shape: tuple[Any, ...], axis: Any, keepdims: bool) -> tuple[Any, ...]:
    axes = {a % len(shape) for a in (range(len(shape)) if axis is None else axis)}
    kept = [1 if i in axes else n for i, n in enumerate(shape)]
    return tuple(n for i, n in enumerate(kept) if keepdims or i not in axes)


def _norm1(x: Tensor, axis: Any, keepdims: bool) -> Tensor:
    if is_float(x.dtype):
        return vector_norm(x, axis=axis, keepdims=keepdims, ord=1)
    return _sum(nnc.abs(x), axis, keepdims)


def _sum_square(x: Tensor, axis: Any, keepdims: bool) -> Tensor:
    return _sum(nnc.multiply(x, x), axis, keepdims)


def _norm2(x: Tensor, axis: Any, keepdims: bool) -> Tensor:
    """The root of squares; of floats by nnc's own norm, whose gradient at 0 is 0."""
    if is_float(x.dtype):
        return vector_norm(x, axis=axis, keepdims=keepdims)
    return nnc.astype(nnc.sqrt(_sum_square(x, axis, keepdims)), x.dtype)


def _log_sum(x: Tensor, axis: Any, keepdims: bool) -> Tensor:
    return nnc.astype(nnc.log(_sum(x, axis, keepdims)), x.dtype)


def _log_sum_exp(x: Tensor, axis: Any, keepdims: bool) -> Tensor:
    if not is_float(x.dtype) or 0 in x.shape:
        return nnc.astype(nnc.log(nnc.sum(nnc.exp(x), axis=axis, keepdims=keepdims)), x.dtype)
    return nnc.logsumexp(x, axis=axis, keepdims=keepdims)


REDUCTIONS: Mapping[str, tuple[int, Reduction]] = {  # with the version that takes axes as an input
    "ReduceSum": (13, _sum), "ReduceProd": (18, _prod), "ReduceMean": (18, _mean), "ReduceMax": (18, _largest),
    "ReduceMin": (18, _smallest), "ReduceL1": (18, _norm1), "ReduceL2": (18, _norm2),
    "ReduceSumSquare": (18, _sum_square), "ReduceLogSum": (18, _log_sum), "ReduceLogSumExp": (18, _log_sum_exp),
}  # fmt: skip
HOST: Mapping[str, Callable[..., Any]] = {"ReduceProd": np.prod, "ReduceSum": np.sum, "ReduceMax": np.max,
                                          "ReduceMin": np.min}


def _register(name: str, later: int, function: Reduction) -> None:
    @operator(name)
    def by_attribute(x: Tensor, *, axes: tuple[int, ...] | None = None, keepdims: int = 1) -> Tensor:
        return function(x, axes or None, bool(keepdims))

    @operator(name, since=later)
    def by_input(x: Tensor, axes: Host | None = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Tensor:
        listed = () if axes is None else tuple(axes.tolist())
        if not listed and noop_with_empty_axes:
            return function(x, (), bool(keepdims))
        return function(x, listed or None, bool(keepdims))


def _register_on_host(name: str, function: Callable[..., Any]) -> None:
    @on_host(name)
    def computed(x: Host, given: Host | None = None, *, axes: tuple[int, ...] | None = None, keepdims: int = 1,
                 noop_with_empty_axes: int = 0) -> Any:
        listed = tuple(axes or ()) if given is None else tuple(given.tolist())
        if not listed and noop_with_empty_axes:
            return x
        return np.asarray(function(x, axis=listed or None, keepdims=bool(keepdims))).astype(x.dtype)


for _name, (_later, _function) in REDUCTIONS.items():
    _register(_name, _later, _function)
for _name, _computed in HOST.items():
    _register_on_host(_name, _computed)


# ---- places of extremes
def _place(best: Callable[..., Tensor], x: Tensor, axis: int, keepdims: int, last: int) -> Tensor:
    if not last:
        return nnc.astype(best(x, axis=axis, keepdims=bool(keepdims)), np.int64)
    found = best(nnc.flip(x, axis=axis), axis=axis, keepdims=bool(keepdims))
    return nnc.subtract(x.shape[axis] - 1, nnc.astype(found, np.int64))


@operator("ArgMax")
def argmax(x: Tensor, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Tensor:
    return _place(nnc.argmax, x, axis, keepdims, select_last_index)


@operator("ArgMin")
def argmin(x: Tensor, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Tensor:
    return _place(nnc.argmin, x, axis, keepdims, select_last_index)


# ---- running totals
def _running(total: Callable[..., Tensor], first: int, x: Tensor, axis: int, exclusive: int, reverse: int) -> Tensor:
    """`exclusive`: of what comes before each element, beginning with `first`."""
    if reverse:
        x = nnc.flip(x, axis=axis)
    if exclusive:
        start = nnc.full_like(x[(*[slice(None)] * (axis % x.ndim), slice(0, 1))], first)
        x = nnc.concat([start, x[(*[slice(None)] * (axis % x.ndim), slice(0, -1))]], axis=axis)
    y = nnc.astype(total(x, axis=axis), x.dtype)
    return nnc.flip(y, axis=axis) if reverse else y


@operator("CumSum")
def cumsum(x: Tensor, axis: Host, *, exclusive: int = 0, reverse: int = 0) -> Tensor:
    return _running(nnc.cumsum, 0, x, int(axis.reshape(())), exclusive, reverse)


@operator("CumProd")
def cumprod(x: Tensor, axis: Host, *, exclusive: int = 0, reverse: int = 0) -> Tensor:
    return _running(nnc.cumprod, 1, x, int(axis.reshape(())), exclusive, reverse)
