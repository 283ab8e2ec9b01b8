"""Discrete Fourier transforms: of the host NumPy's, where a device has no code of its own, which it says once.

They are linear: tangents are transformed as the operands are, cotangents by the adjoint, which is the transform the
other way with the scale on the other side.
"""

from __future__ import annotations

from math import log2, prod
from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from nnc_core.base import dtype as dt
from nnc_core.base.command import Command
from nnc_core.operator.declare import Base, V, op
from nnc_core.shape import fft as rule
from nnc_core.type import DimLike

if TYPE_CHECKING:
    from nnc_core.operator import Namespace

OTHER = {"backward": "forward", "ortho": "ortho", "forward": "backward"}
"""The norm with which the transform the other way is the adjoint."""


def _fft(x: Any, axes: tuple[int, ...], inverse: bool, norm: Any) -> Any:
    return (np.fft.ifftn if inverse else np.fft.fftn)(x, axes=axes, norm=norm).astype(x.dtype, copy=False)


def _rfft(x: Any, axis: int, norm: Any) -> Any:
    return np.fft.rfft(x, axis=axis, norm=norm).astype(dt.complex_of(x.dtype), copy=False)


def _irfft(x: Any, axis: int, size: int, norm: Any) -> Any:
    return np.fft.irfft(x, size, axis, norm).astype(dt.real_of(x.dtype), copy=False)


def _weights(F: Any, x: Any, axis: int, size: DimLike, inside: float) -> Any:
    """1 for the frequencies that are their own conjugates, the first and the middle one; `inside` for the others."""
    k = F.arange(size=x.shape[axis], dtype=dt.int64)
    alone = F.logical_or(F.equal(k, 0), F.equal(F.multiply(k, 2), size))
    factors = F.where(alone, F.full(shape=(), value=1, dtype=x.dtype), F.full(shape=(), value=inside, dtype=x.dtype))
    return F.reshape(factors, shape=(x.shape[axis], *(1,) * (x.ndim - axis - 1)))


def _rfft_vjp(F: Namespace[V], g: V, y: V, x: V, axis: int, norm: str) -> tuple[V | None, ...]:
    size = x.shape[axis]
    return (F.irfft(F.multiply(g, _weights(F, g, axis, size, 0.5)), axis=axis, size=size, norm=OTHER[norm]),)


def _irfft_vjp(F: Namespace[V], g: V, y: V, x: V, axis: int, size: DimLike, norm: str) -> tuple[V | None, ...]:
    return (F.multiply(F.rfft(g, axis=axis, norm=OTHER[norm]), _weights(F, x, axis, size, 2.0)),)


def _along_axes(command: Command) -> float:
    """5 n log2 n for each transform of n complex numbers."""
    shape, axes = command.inputs[0].shape, command.attributes[0]
    return 5 * prod(shape) * log2(max(prod(shape[axis] for axis in axes), 2))


def _along_axis(command: Command) -> float:
    """Half of what complex numbers take."""
    real = max(command.inputs[0].shape, command.output.shape, key=prod)
    return 2.5 * prod(real) * log2(max(real[command.attributes[0]], 2))


class Fourier(Base[V], Generic[V]):
    """`norm`, the way that is scaled by the number of elements: "backward", "forward", or both by its root, "ortho"."""

    @op(infer=rule.fft, reference=_fft, linear="jointly",
        vjp=lambda F, g, y, x, axes, inverse, norm: (F.fft(g, axes=axes, inverse=not inverse, norm=OTHER[norm]),),
        flops=_along_axes)
    def fft(self, x: V, *, axes: tuple[int, ...], inverse: bool = False, norm: str = "backward") -> V:
        """The transform of complex numbers along axes, or its inverse."""
        ...

    @op(infer=rule.rfft, reference=_rfft, linear="jointly", vjp=_rfft_vjp, flops=_along_axis)
    def rfft(self, x: V, *, axis: int, norm: str = "backward") -> V:
        """The non-negative frequencies of real numbers along an axis; the others are their conjugates."""
        ...

    @op(infer=rule.irfft, reference=_irfft, linear="jointly", vjp=_irfft_vjp, flops=_along_axis)
    def irfft(self, x: V, *, axis: int, size: DimLike, norm: str = "backward") -> V:
        """The `size` real numbers whose non-negative frequencies are given.  Those that are their own conjugates, the
        first and of an even size the last, are real: their imaginary parts are not read."""
        ...
