"""Layers that give a part of their input."""

from __future__ import annotations

from typing import Any

from nnc_core.base.errors import AttributeValueError
from nnc_core.functions.elementwise import not_equal, where
from nnc_core.functions.indexing import index_select, masked_fill
from nnc_core.functions.joining import split
from nnc_core.functions.reduction import any as any_of
from nnc_core.nn.layers.checks import at_least_one, misfit
from nnc_core.nn.layers.settings import settings
from nnc_core.nn.module import Module
from nnc_core.values.tensor import Tensor

__all__ = ["Chunk", "Extract", "IndexSelect", "MaskedFill", "Masking", "Slice"]

Part = int | slice | tuple[int | None, ...]


class Slice(Module):
    """Ranges of the axes after the batch: each a slice, (start, stop), (start, stop, step) or one index, which takes
    the axis away; axes beyond the last range stay as they are.  With batch=False the first range is the batch's."""

    def __init__(self, *ranges: Part, batch: bool = True) -> None:
        self.ranges, self.batch = tuple(map(_range, ranges)), batch

    def forward(self, x: Tensor) -> Tensor:
        """(batch, ...) -> (batch, ...)"""
        if len(self.ranges) + self.batch > x.ndim:
            raise misfit(self, x, f"expected at least {len(self.ranges) + self.batch} dimensions")
        whole = (slice(None),) * self.batch
        return x[(*whole, *[p if isinstance(p, int) else slice(*p) for p in self.ranges])]

    def describe(self) -> str:
        return ", ".join([*map(repr, self.ranges), *["batch=False"] * (not self.batch)])


def _range(part: Part) -> int | tuple[int | None, int | None, int | None]:
    """An index, or (start, stop, step)."""
    if isinstance(part, slice):
        return (part.start, part.stop, part.step)
    if isinstance(part, int) and not isinstance(part, bool):
        return part
    if isinstance(part, (tuple, list)) and len(part) in (2, 3) and all(p is None or isinstance(p, int) for p in part):
        return (part[0], part[1], part[2] if len(part) == 3 else None)
    raise AttributeValueError(f"{part!r} is no index, no slice and no (start, stop[, step])", operator="Slice")


class Chunk(Module):
    """So many parts of equal length along an axis."""

    def __init__(self, count: int, axis: int = -1) -> None:
        at_least_one("Chunk", count=count)
        self.count, self.axis = count, axis

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """A tuple of `count` tensors."""
        return tuple(split(x, self.count, axis=self.axis))

    def describe(self) -> str:
        return settings(self, "count", "axis")


class Extract(Module):
    """One of several inputs, or of the results of a layer that has several: by place, or by name from a mapping."""

    def __init__(self, index: int | str) -> None:
        self.index = index

    def forward(self, *xs: Any) -> Any:
        """The input at the index; of a single tuple, list or mapping what is there."""
        several: Any = xs[0] if len(xs) == 1 and isinstance(xs[0], (tuple, list, dict)) else xs
        try:
            return several[self.index]
        except (IndexError, KeyError, TypeError):
            raise misfit(self, f"{type(several).__name__} of {len(several)}", f"which has no {self.index!r}") from None

    def describe(self) -> str:
        return settings(self, "index")


class IndexSelect(Module):
    """Slices along an axis at the indices of a vector, which is the second input."""

    def __init__(self, axis: int = 0) -> None:
        self.axis = axis

    def forward(self, x: Tensor, indices: Tensor) -> Tensor:
        """x with another length of that axis."""
        return index_select(x, self.axis, indices)

    def describe(self) -> str:
        return settings(self, "axis")


class MaskedFill(Module):
    """A number where the second input, a mask of booleans, is true; the first input elsewhere."""

    def __init__(self, value: float) -> None:
        self.value = value

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """The same shape as x, to which the mask is broadcast."""
        return masked_fill(x, mask, self.value)

    def describe(self) -> str:
        return settings(self, "value")


class Masking(Module):
    """Steps of a sequence whose features all equal `value` are padding: 0 in the result (Keras' Masking).

    `mask` says which ones are not, for layers that take masks.
    """

    def __init__(self, value: float = 0.0) -> None:
        self.value = value

    def forward(self, x: Tensor) -> Tensor:
        """(batch, length, features) -> the same shape"""
        return where(any_of(not_equal(x, self.value), axis=-1, keepdims=True), x, 0)

    def mask(self, x: Tensor) -> Tensor:
        """(batch, length, features) -> booleans (batch, length), false for padding"""
        return any_of(not_equal(x, self.value), axis=-1)

    def describe(self) -> str:
        return settings(self, "value")
