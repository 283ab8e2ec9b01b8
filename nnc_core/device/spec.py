"""The description of a device before it computes anything."""

from __future__ import annotations

from dataclasses import dataclass, field

from nnc_core.base.dtype import REAL_DTYPES


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """`id` is kind and number, as in "opencl:0".  Sizes are bytes; None means that the device does not say."""

    id: str
    kind: str
    name: str
    vendor: str = ""
    driver: str = ""
    memory: int | None = None
    max_allocation: int | None = None
    alignment: int = 64  # of the offset of every view into a buffer
    dtypes: frozenset[str] = REAL_DTYPES
    features: frozenset[str] = field(default_factory=frozenset)
