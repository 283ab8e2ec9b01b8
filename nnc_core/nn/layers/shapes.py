"""Layers that change how elements are arranged, or nothing at all."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from nnc_core.base.errors import AttributeValueError, AxisError
from nnc_core.functions.movement import matrix_transpose, permute_dims, reshape, swapaxes
from nnc_core.nn.layers.checks import misfit, title
from nnc_core.nn.layers.settings import settings
from nnc_core.nn.module import Module
from nnc_core.type import admit_numpy
from nnc_core.values.tensor import Tensor

__all__ = ["Cast", "Contiguous", "Flatten", "Identity", "Permute", "Reshape", "Transpose", "Unflatten"]


class Identity(Module):
    """x itself."""

    def forward(self, x: Any) -> Any:
        """x"""
        return x


class Contiguous(Module):
    """x itself: arrays have no strides that a user can see, and a kernel that wants elements one after another gets
    them so.  For networks that were written where this matters."""

    def forward(self, x: Tensor) -> Tensor:
        """x"""
        return x


class Cast(Module):
    """x in another dtype; gradients come back in the dtype of x."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = admit_numpy(dtype)

    def forward(self, x: Tensor) -> Tensor:
        """The same shape as x."""
        return x.astype(self.dtype)

    def describe(self) -> str:
        return self.dtype.name


class Reshape(Module):
    """Each example in another shape, in which one length may be -1: (batch, *any) -> (batch, *shape).

    With batch=False the shape is that of everything.
    """

    def __init__(self, shape: Sequence[int], batch: bool = True) -> None:
        self.shape, self.batch = tuple(shape), batch
        if any(isinstance(n, bool) or not isinstance(n, int) or n < -1 for n in self.shape) or self.shape.count(-1) > 1:
            raise AttributeValueError(f"shape is {shape!r}, expected lengths, one of which may be -1",
                                      operator="Reshape")

    def forward(self, x: Tensor) -> Tensor:
        """(batch, *any) -> (batch, *shape)"""
        if self.batch and x.ndim == 0:
            raise misfit(self, x, "which has no batch", hint="batch=False")
        self._check_size(x)
        return reshape(x, (x.shape[0], *self.shape) if self.batch else self.shape)

    def _check_size(self, x: Tensor) -> None:
        old = [n for n in x.shape[self.batch :] if isinstance(n, int)]
        if len(old) < x.ndim - self.batch:
            return
        count, wanted = prod(old), prod(n for n in self.shape if n >= 0)
        fits = count == wanted if -1 not in self.shape else wanted > 0 and count % wanted == 0
        if not fits:
            whose = "each example of which has" if self.batch else "which has"
            raise misfit(self, x, f"{whose} {count} elements, which do not fit shape {self.shape}")

    def describe(self) -> str:
        return settings(self, "shape", "batch")


class Flatten(Module):
    """Axes from `start` to `stop`, both included, made one: (n, h, w, c) -> (n, h * w * c)."""

    def __init__(self, start: int = 1, stop: int = -1) -> None:
        self.start, self.stop = start, stop

    def forward(self, x: Tensor) -> Tensor:
        """With fewer axes than x."""
        stop = self.stop + x.ndim if self.stop < 0 else self.stop
        if not 0 <= self.start < x.ndim:
            raise AxisError(f"{x.spec} has no axis {self.start} to flatten from", operator=title(self))
        if not self.start <= stop < x.ndim:
            raise AxisError(f"{x.spec} has no axis {self.stop} from {self.start} on to flatten up to",
                            operator=title(self))
        if stop == x.ndim - 1:
            return reshape(x, (*x.shape[: self.start], -1))
        return reshape(x, (*x.shape[: self.start], -1, *x.shape[stop + 1 :]))

    def describe(self) -> str:
        return settings(self, "start", "stop")


class Unflatten(Module):
    """An axis parted into several, of which one length may be -1: (n, h * w * c) -> (n, h, w, c)."""

    def __init__(self, axis: int, shape: Sequence[int]) -> None:
        self.axis, self.shape = axis, tuple(shape)
        if not self.shape or self.shape.count(-1) > 1 or any(n < -1 for n in self.shape):
            raise AttributeValueError(f"shape is {shape!r}, expected lengths, one of which may be -1",
                                      operator="Unflatten")

    def forward(self, x: Tensor) -> Tensor:
        """With more axes than x."""
        if not -x.ndim <= self.axis < x.ndim:
            raise AxisError(f"{x.spec} has no axis {self.axis} to part", operator=title(self))
        at = self.axis % x.ndim
        length, known = x.shape[at], prod(n for n in self.shape if n >= 0)
        if isinstance(length, int) and (known == 0 or length % known or (length != known and -1 not in self.shape)):
            raise misfit(self, x, f"whose axis {self.axis} does not part into {self.shape}")
        return reshape(x, (*x.shape[:at], *self.shape, *x.shape[at + 1 :]))

    def describe(self) -> str:
        return settings(self, "axis", "shape")


class Permute(Module):
    """Axes in another order, the batch's included: axis i of the result is axis axes[i] of x."""

    def __init__(self, axes: Sequence[int]) -> None:
        self.axes = tuple(axes)
        if sorted(a % len(self.axes) for a in self.axes) != list(range(len(self.axes))):
            raise AttributeValueError(f"axes {axes!r} are no order of {len(self.axes)} axes", operator="Permute")

    def forward(self, x: Tensor) -> Tensor:
        """x with its lengths in the new order."""
        if x.ndim != len(self.axes):
            raise misfit(self, x, f"expected {len(self.axes)} dimensions")
        return permute_dims(x, self.axes)

    def describe(self) -> str:
        return settings(self, "axes")


class Transpose(Module):
    """Two axes exchanged, by default the last two: matrices transposed."""

    def __init__(self, first: int = -2, second: int = -1) -> None:
        self.first, self.second = first, second

    def forward(self, x: Tensor) -> Tensor:
        """x with two lengths exchanged."""
        if (self.first, self.second) == (-2, -1):
            return matrix_transpose(x)
        return swapaxes(x, self.first, self.second)

    def describe(self) -> str:
        return settings(self, "first", "second")
