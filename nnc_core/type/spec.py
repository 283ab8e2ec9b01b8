"""Shape and dtype of a value; no device, so that the same node compiles for any."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, Self

import numpy as np

from nnc_core.base.dtype import DType
from nnc_core.base.layout import Layout
from nnc_core.type.dim import Dim, Dims


class TensorSpec:
    """Immutable; compared by content."""

    __slots__ = ("_hash", "_packed", "dtype", "shape", "static")
    shape: Dims
    dtype: DType
    static: bool
    """True if every dimension is a number of Python's."""
    _packed: Layout | None

    def __init__(self, shape: Dims, dtype: DType) -> None:
        self.shape, self.dtype, self._packed = shape, dtype, None
        self.static = all([d.__class__ is int for d in shape])
        self._hash = hash((shape, dtype))

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, TensorSpec) and self.shape == other.shape and self.dtype == other.dtype
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def static_shape(self) -> tuple[int, ...]:
        """The shape as numbers; SymbolicDimensionError if a dimension has none."""
        return self.layout().shape

    @property
    def nbytes(self) -> int:
        return prod(self.static_shape) * self.dtype.itemsize

    def layout(self) -> Layout:
        """Packed in C order; SymbolicDimensionError if a dimension has no number."""
        packed = self._packed
        if packed is None:
            if self.static:
                packed = self._packed = Layout.packed(self.shape, self.dtype)  # type: ignore[arg-type]
            else:  # what dimensions with names answer is watched
                packed = Layout.packed(tuple([d.__index__() for d in self.shape]), self.dtype)
        return packed


class TupleSpec(TensorSpec):
    """The specs of an operator that has several results, in order; `pick` gives one of them.

    It is the spec of no array: its shape is () and its dtype is one that no array has, so that no rule about either
    applies to a tuple by accident.
    """

    __slots__ = ("parts",)

    def __init__(self, parts: tuple[TensorSpec, ...]) -> None:
        super().__init__((), _NO_DTYPE)
        self.parts, self.static = parts, all([part.static for part in parts])
        self._hash = hash(parts)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, TupleSpec) and self.parts == other.parts)

    __hash__ = TensorSpec.__hash__

    def __repr__(self) -> str:
        return f"({', '.join(map(repr, self.parts))})"


_NO_DTYPE: DType = np.dtype("V")


class HoldsSpec:
    """An attribute of a kind of its own that has a spec, whose dimensions are changed as those of others are."""

    spec: Any

    def with_spec(self, spec: Any) -> Self:
        raise NotImplementedError


def map_dims(value: Any, change: Callable[[Dim], Any], other: Callable[[Any], Any] = lambda value: value) -> Any:
    """An attribute with its dimensions changed, in tuples and specs too; `other` is asked about everything else."""
    if isinstance(value, Dim):
        return change(value)
    if isinstance(value, tuple):
        parts = [map_dims(v, change, other) for v in value]
        return value._make(parts) if hasattr(value, "_make") else tuple(parts)
    if isinstance(value, TupleSpec):
        return TupleSpec(map_dims(value.parts, change, other))
    if isinstance(value, TensorSpec):
        return TensorSpec(map_dims(value.shape, change, other), value.dtype)
    if isinstance(value, HoldsSpec):
        return value.with_spec(map_dims(value.spec, change, other))
    return other(value)


class Specified:
    """Gives whatever has a spec its shape, dtype and number of dimensions too."""

    __slots__ = ()

    spec: Any

    @property
    def shape(self) -> Dims:
        shape: Dims = self.spec.shape
        return shape

    @property
    def dtype(self) -> DType:
        dtype: DType = self.spec.dtype
        return dtype

    @property
    def ndim(self) -> int:
        return len(self.spec.shape)
