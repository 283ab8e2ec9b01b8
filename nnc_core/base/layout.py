"""The layout of an array in its storage: concrete integers only."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import NamedTuple

from nnc_core.base.dtype import DType


class Layout(NamedTuple):
    """Shape, dtype, byte offset of element zero and byte strides, relative to the start of a storage."""

    shape: tuple[int, ...]
    dtype: DType
    offset: int
    strides: tuple[int, ...]

    @staticmethod
    def packed(shape: tuple[int, ...], dtype: DType, offset: int = 0) -> Layout:
        """C order without gaps."""
        return Layout(shape, dtype, offset, packed_strides(shape, dtype.itemsize))

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the elements themselves, gaps and repeats not counted."""
        return prod(self.shape) * self.dtype.itemsize

    @property
    def contiguous(self) -> bool:
        """True in C order without gaps; strides of axes of length one, and of empty arrays, do not matter."""
        if self.strides == (packed := packed_strides(self.shape, self.dtype.itemsize)) or 0 in self.shape:
            return True
        return all(n == 1 or s == p for n, s, p in zip(self.shape, self.strides, packed, strict=True))

    @property
    def extent(self) -> int:
        """Bytes of storage from its start that the layout may touch."""
        if 0 in self.shape:
            return self.offset
        last = sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True) if s > 0)
        return self.offset + last + self.dtype.itemsize


@lru_cache(maxsize=4096)
def packed_strides(shape: tuple[int, ...], step: int) -> tuple[int, ...]:
    """Strides of C order, in units of `step`."""
    strides = []
    for length in reversed(shape):
        strides.append(step)
        step *= length
    return tuple(reversed(strides))
