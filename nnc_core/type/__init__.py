"""Floor 2: dtypes, dimensions and specs; the record of an operator; what a device admits."""

from __future__ import annotations

from nnc_core.base.dtype import ALL_DTYPES, DType
from nnc_core.base.errors import DTypeError
from nnc_core.device import Device
from nnc_core.type.dim import (
    Dim,
    DimLike,
    Dims,
    SymbolicSize,
    any_data_dependent,
    is_data_dependent,
    is_static,
    names_of,
    renamed,
    resolved,
    specialised,
    substitute,
    symbolic_size,
)
from nnc_core.type.index_range import NO_INDEX, IndexRange
from nnc_core.type.numbers import plain, whole
from nnc_core.type.op import Attributes, Op
from nnc_core.type.promotion import admit_numpy, default_float, default_for, not_computed, promote, promote_number
from nnc_core.type.spec import HoldsSpec, Specified, TensorSpec, TupleSpec, map_dims

__all__ = [
    "NO_INDEX", "Attributes", "Dim", "DimLike", "Dims", "HoldsSpec", "IndexRange", "Op", "Specified", "SymbolicSize",
    "TensorSpec", "TupleSpec", "Type", "admit_numpy", "any_data_dependent", "default_float", "default_for",
    "is_data_dependent", "is_static", "map_dims", "names_of", "not_computed", "plain", "promote", "promote_number",
    "renamed", "resolved", "specialised", "substitute", "symbolic_size", "whole",
]  # fmt: skip


class Type:
    """Layer 2: which dtypes the device has."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.dtypes = frozenset(ALL_DTYPES[name] for name in device.spec.dtypes if name in ALL_DTYPES)

    def admit(self, dtype: DType) -> DType:
        """The dtype itself; DTypeError if the device lacks it."""
        if dtype not in self.dtypes:
            there = ", ".join(sorted(self.device.spec.dtypes))
            raise DTypeError(f"device has no {dtype}", device=self.device.spec.id, hint=f"cast to one of {there}")
        return dtype
