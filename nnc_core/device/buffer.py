"""Memory of a device, opaque to everything above the device."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

from nnc_core.base.dtype import DType
from nnc_core.base.layout import Layout


class Buffer(Protocol):
    """A stretch of device memory; it is freed when nothing refers to it any more."""

    @property
    def nbytes(self) -> int: ...


class StridedArray:
    """A buffer and how an array lies in it: the array of every device that has no array type of its own."""

    __slots__ = ("__weakref__", "buffer", "layout")

    def __init__(self, buffer: Buffer, layout: Layout) -> None:
        self.buffer, self.layout = buffer, layout

    @property
    def shape(self) -> tuple[int, ...]:
        return self.layout.shape

    @property
    def dtype(self) -> DType:
        return self.layout.dtype


Array: TypeAlias = Any
"""An array of a device: opaque to core but for `shape` and `dtype`; its device tells buffer and layout."""
