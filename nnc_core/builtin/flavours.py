"""Differences of devices from the host: one flavour of `strict` for each, so that tests meet all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nnc_core.base.dtype import ALL_DTYPES
from nnc_core.device import CODEGEN, NO_VIEWS, REPRODUCIBLE, DeviceSpec

_MIB = 1 << 20
_GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Flavour:
    """The limits and habits of a strict device; the defaults are `strict:0`.  Sizes in bytes."""

    suffix: str = ""
    description: str = "NumPy inside, opaque outside; checks every use"
    lacks: frozenset[str] = frozenset()
    alignment: int = 64
    memory: int = 8 * _GIB
    max_allocation: int | None = None
    views: bool = True
    poisons: bool = False
    queues: bool = False

    @property
    def id(self) -> str:
        return f"strict{'-' * bool(self.suffix)}{self.suffix}:0"

    def spec(self) -> DeviceSpec:
        return DeviceSpec(
            self.id, "strict", self.description, vendor="nnc", driver=f"NumPy {np.__version__}",
            memory=self.memory, max_allocation=self.max_allocation, alignment=self.alignment,
            dtypes=frozenset(ALL_DTYPES) - self.lacks,
            features=frozenset({CODEGEN, REPRODUCIBLE}) | (frozenset() if self.views else frozenset({NO_VIEWS})),
        )  # fmt: skip


FLAVOURS = (
    Flavour(),
    Flavour("nofloat64", "has no float64", lacks=frozenset({"float64", "complex128"})),
    Flavour("noviews", "has packed arrays in whole buffers only", views=False),
    Flavour("align128", "views begin at multiples of 128 bytes", alignment=128),
    Flavour("small", "64 MiB, in allocations of at most 1 MiB", memory=64 * _MIB, max_allocation=_MIB),
    Flavour("async", "works later, on threads of its own", queues=True),
    Flavour("poison", "fills fresh and freed memory with NaN", poisons=True),
)
"""`strict:0` first."""
