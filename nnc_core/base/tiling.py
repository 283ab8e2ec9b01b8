"""Orders of elements in memory that library code wants: blocks along some axes, axes in another order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nnc_core.base.errors import ShapeError

HostArray = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Tiling:
    """An array of r axes as a packed one of more axes.

    Each axis is cut into blocks, the last one filled up with zeros; a block of 1 leaves an axis as it is.  `order` says
    how the axes follow each other then: axis i (of blocks, where it is cut) is number i, the axis within its blocks
    number r + i.  So `Tiling((1, 16), (1, 0, 3))` makes of a matrix (K, N) panels of sixteen columns, (N / 16, K, 16),
    and `Tiling((1, 16, 1, 1), (0, 1, 2, 3, 5))` sixteen channels the innermost axis of images.
    """

    blocks: tuple[int, ...]
    order: tuple[int, ...]

    def __post_init__(self) -> None:
        rank = len(self.blocks)
        axes = [*range(rank), *[rank + i for i, n in enumerate(self.blocks) if n != 1]]
        if min(self.blocks, default=1) < 1 or sorted(self.order) != axes:
            raise ShapeError(f"{self} orders no axes of blocks", hint=f"blocks of 1 and more, an order of {axes}")

    def packed(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of an array that is packed so.  ShapeError for another rank."""
        if len(shape) != len(self.blocks):
            raise ShapeError(f"shape {shape} has not the {len(self.blocks)} axes of {self}")
        counts = [-(-n // block) for n, block in zip(shape, self.blocks, strict=True)]
        return tuple([(*counts, *self.blocks)[axis] for axis in self.order])

    def whole(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape with all blocks filled up."""
        return tuple([-(-n // block) * block for n, block in zip(shape, self.blocks, strict=True)])

    def cut(self, x: HostArray) -> HostArray:
        """An array of filled blocks as the packed one sees it: a view."""
        rank, lengths, places = x.ndim, list[int](), dict[int, int]()
        for axis, block in enumerate(self.blocks):
            places[axis] = len(lengths)
            lengths.append(x.shape[axis] // block)
            if block != 1:
                places[rank + axis] = len(lengths)
                lengths.append(block)
        return x.reshape(lengths).transpose([places[axis] for axis in self.order])

    def pack(self, x: HostArray) -> HostArray:
        """The array packed."""
        whole = x
        if x.shape != self.whole(x.shape):
            whole = np.zeros(self.whole(x.shape), x.dtype)
            whole[tuple(map(slice, x.shape))] = x
        return np.array(self.cut(whole), order="C")

    def unpack(self, y: HostArray, shape: tuple[int, ...]) -> HostArray:
        """The array of that shape which `y` was made of."""
        whole = np.empty(self.whole(shape), y.dtype)
        self.cut(whole)[...] = y
        return np.ascontiguousarray(whole[tuple(map(slice, shape))])
