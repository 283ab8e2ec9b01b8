"""Packing arrays for library code that wants their elements in another order, and reading what is packed.

The engine makes these operators (`engine/layout.py`): no user calls them, and no rule differentiates them.  `pack` is a
command like any other; `unpack` stands in programs alone, for code that reads the packed array in place of its input.
"""

from __future__ import annotations

from typing import Any

from nnc_core.base.command import Command
from nnc_core.base.loopnest import LoopNest
from nnc_core.base.tiling import Tiling
from nnc_core.operator.loops import open_nest
from nnc_core.type import Op, TensorSpec


def _packed(x: TensorSpec, tiling: Tiling) -> TensorSpec:
    return TensorSpec(tiling.packed(x.static_shape), x.dtype)


def _pack_nest(command: Command) -> LoopNest:
    """Each element of the result is read where its block and its place within say; past the end there are zeros."""
    tiling: Tiling = command.attributes[0]
    shape = command.inputs[0].shape
    rank, filled = len(shape), tiling.whole(shape) != shape
    nest = open_nest(command)
    at = nest.outer(*command.output.shape)
    axes = dict(zip(tiling.order, at, strict=True))
    places = [axes[i] * block + axes.get(rank + i, 0) for i, block in enumerate(tiling.blocks)]
    value = nest.load(0, *[place.guarded() if filled else place for place in places])
    nest.store(0, value, *at)
    return nest.build()


def _read(y: Any, tiling: Tiling, shape: tuple[int, ...]) -> Any:
    return tiling.unpack(y, shape)


PACK = Op("pack", ("x",), ("tiling",), _packed, lambda x, tiling: tiling.pack(x),
          "The elements as a tiling orders them, the last blocks filled up with zeros.", nest=_pack_nest, exact=True,
          storage=True)
UNPACK = Op("unpack", ("x",), ("tiling", "shape"), lambda x, tiling, shape: TensorSpec(shape, x.dtype), _read,
            "The array of a shape that was packed.", exact=True, storage=True)
