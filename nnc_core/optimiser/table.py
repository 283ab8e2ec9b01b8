"""The table of all rewrites, by name, in the order in which rules of one operator are tried."""

from __future__ import annotations

from nnc_core.optimiser import (
    casts,
    complex,
    convolutions,
    fold,
    identities,
    integers,
    logic,
    movement,
    pools,
    reductions,
    slices,
    stabilise,
)
from nnc_core.optimiser.rewrite import Rewrite

_ALL = (
    *casts.REWRITES, *logic.REWRITES, *convolutions.REWRITES, *fold.REWRITES, *identities.REWRITES,
    *integers.REWRITES, *movement.REWRITES, *complex.REWRITES, *slices.REWRITES, *reductions.REWRITES,
    *stabilise.REWRITES, *pools.REWRITES,
)  # fmt: skip

REWRITES: dict[str, Rewrite] = {entry.name: entry for entry in _ALL}
assert len(REWRITES) == len(_ALL), "two rewrites have one name"
