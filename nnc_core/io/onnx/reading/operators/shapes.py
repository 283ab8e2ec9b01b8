"""Shapes and axes, and repetitions of what is there."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from nnc_core.base.errors import ShapeError
from nnc_core.functions import public as nnc
from nnc_core.io.onnx.reading.lanes import Host, Numbers, Sizes
from nnc_core.io.onnx.reading.operators.counts import counted_reshape
from nnc_core.io.onnx.reading.registry import on_host, operator
from nnc_core.io.onnx.reading.run import NodeCall
from nnc_core.type import Dim
from nnc_core.values.tensor import Tensor


@operator("Reshape")
def reshape_first(x: Tensor, *, shape: tuple[int, ...] = (), consumed_inputs: Any = ()) -> Tensor:
    return _reshaped(x, shape, False)


@operator("Reshape", since=5)
def reshape(x: Tensor, shape: Numbers, *, allowzero: int = 0, call: NodeCall) -> Tensor:
    if any(isinstance(n, Tensor) for n in shape):
        return counted_reshape(x, shape, bool(allowzero), call)
    return _reshaped(x, tuple(shape), bool(allowzero))


def _reshaped(x: Tensor, shape: tuple[Any, ...], allow_zero: bool) -> Tensor:
    """0 stands for the size that is there, unless zeros mean themselves."""
    return nnc.reshape(x, new_shape(x.shape, shape, allow_zero))


def new_shape(old: tuple[Any, ...], shape: tuple[Any, ...], allow_zero: bool) -> tuple[Any, ...]:
    if allow_zero:
        return shape
    return tuple(old[i] if not isinstance(n, Dim) and n == 0 else n for i, n in enumerate(shape))


@on_host("Reshape")
def _reshape_host(x: Host, shape: Host, *, allowzero: int = 0) -> Host:
    return x.reshape(new_shape(x.shape, tuple(shape.tolist()), bool(allowzero)))


@operator("Flatten")
def flatten(x: Tensor, *, axis: int = 1) -> Tensor:
    axis = axis if axis >= 0 else axis + x.ndim
    return nnc.reshape(x, (prod(x.shape[:axis]), prod(x.shape[axis:])))


@operator("Transpose")
def transpose(x: Tensor, *, perm: tuple[int, ...] | None = None) -> Tensor:
    return nnc.permute_dims(x, perm or tuple(reversed(range(x.ndim))))


@on_host("Transpose")
def _transpose_host(x: Host, *, perm: tuple[int, ...] | None = None) -> Host:
    return np.transpose(x, perm)


@operator("Squeeze")
def squeeze_first(x: Tensor, *, axes: tuple[int, ...] | None = None) -> Tensor:
    return nnc.squeeze(x, axes if axes is not None else tuple(i for i, n in enumerate(x.shape) if n == 1))


@operator("Squeeze", since=13)
def squeeze(x: Tensor, axes: Host | None = None) -> Tensor:
    return squeeze_first(x, axes=None if axes is None else tuple(axes.tolist()))


@on_host("Squeeze")
def _squeeze_host(x: Host, given: Host | None = None, *, axes: tuple[int, ...] | None = None) -> Host:
    return np.squeeze(x, axes if given is None else tuple(given.tolist()))


@operator("Unsqueeze")
def unsqueeze_first(x: Tensor, *, axes: tuple[int, ...]) -> Tensor:
    return nnc.expand_dims(x, axes)


@operator("Unsqueeze", since=13)
def unsqueeze(x: Tensor, axes: Host) -> Tensor:
    return nnc.expand_dims(x, tuple(axes.reshape(-1).tolist()))


@on_host("Unsqueeze")
def _unsqueeze_host(x: Host, given: Host | None = None, *, axes: tuple[int, ...] | None = None) -> Host:
    return np.expand_dims(x, axes if given is None else tuple(given.reshape(-1).tolist()))  # type: ignore[arg-type]


@operator("Expand")
def expand(x: Tensor, shape: Sizes) -> Tensor:
    """Broadcast both ways: a size of 1 in the shape leaves what is there."""
    return nnc.broadcast_to(x, broadcast(x.shape, tuple(shape.tolist())))


@on_host("Expand")
def _expand_host(x: Host, shape: Host) -> Any:
    return np.broadcast_to(x, broadcast(x.shape, tuple(shape.tolist())))


def broadcast(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    """The shape of both, dimensions without a number among them."""
    length = max(len(a), len(b))
    a, b = (1,) * (length - len(a)) + a, (1,) * (length - len(b)) + b
    for n, m in zip(a, b, strict=True):
        if not (_is_one(n) or _is_one(m) or n == m):
            raise ShapeError(f"[{', '.join(map(str, a))}] cannot be broadcast with [{', '.join(map(str, b))}]")
    return tuple(m if _is_one(n) else n for n, m in zip(a, b, strict=True))


def _is_one(n: Any) -> bool:
    return not isinstance(n, Dim) and bool(n == 1)


@operator("Tile")
def tile_first(x: Tensor, tiles: Host, axis: Host) -> Tensor:
    repeats = [1] * x.ndim
    repeats[int(axis.reshape(()))] = int(tiles.reshape(()))
    return nnc.tile(x, tuple(repeats))


@operator("Tile", since=6)
def tile(x: Tensor, repeats: Sizes) -> Tensor:
    return nnc.tile(x, tuple(repeats.tolist()))


@on_host("Tile")
def _tile_host(x: Host, repeats: Host) -> Host:
    return np.tile(x, repeats.tolist())
