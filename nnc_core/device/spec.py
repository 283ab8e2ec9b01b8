"""The description of a device before it computes anything."""

from __future__ import annotations

from dataclasses import dataclass

from nnc_core.base.dtype import REAL_DTYPES

CODEGEN = "codegen"
"""Loop nests become machine code: they go before the host, and operators are fused.  What a spec has that names no
features."""
REPRODUCIBLE = "reproducible"
"""The arithmetic of loop nests is rounded as it stands, nothing contracted or reordered: fused commands have the bits
of their operators, so that there are some under `config.deterministic` as well."""
NO_VIEWS = "no-views"
"""Kernels see whole buffers only: every array has storage of its own."""
NO_VALUES = "no-values"
"""It plans and counts, and computes nothing."""
NOTES = "notes"
"""It takes nests that note what is out of range, and raises that before anything else runs: `OutOfRangeError.noted`."""


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
    features: frozenset[str] = frozenset({CODEGEN})
    """The constants of this module, and words of the device's own."""

    def __str__(self) -> str:
        return self.id
