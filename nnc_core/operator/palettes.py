"""Arrays that are kept as codes of a few bits, each a number of the palette of its block."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from nnc_core.base import dtype as dt
from nnc_core.base.command import Command
from nnc_core.base.loopnest import LoopNest
from nnc_core.base.packed import unpacked
from nnc_core.codegen.scalar import Scalar
from nnc_core.operator.declare import Base, V, op
from nnc_core.operator.loops import Index, NestBuilder, open_nest
from nnc_core.shape import palettes as rule
from nnc_core.type import Dims

if TYPE_CHECKING:
    from nnc_core.operator import Namespace


def _depalettise(codes: Any, palette: Any, bits: int, shape: tuple[int, ...], block: int) -> Any:
    palette, count = np.asarray(palette), prod(shape)
    places = unpacked(codes, bits, count).astype(np.intp)
    if len(palette) > 1:
        places += (np.arange(count) // block) << bits
    return palette.reshape(-1)[places].reshape(shape)


def _depalettise_nest(command: Command) -> LoopNest:
    bits, _, block = command.attributes
    assert isinstance(bits, int) and isinstance(block, int)
    nest = open_nest(command)
    at = nest.outer(*command.output.shape)
    position = _position(nest, at, command.output.shape)
    code = _code(nest, position, bits)
    row: Any = 0 if command.inputs[1].shape[0] == 1 else Index(gather=position.apply("floor_divide", block))
    nest.store(0, nest.load(1, row, Index(gather=code)), *at)
    return nest.build()


def _position(nest: NestBuilder, at: list[Index], shape: tuple[int, ...]) -> Scalar:
    """The place of an element in row-major order."""
    place = Index()
    for index, n in zip(at, shape, strict=True):
        place = place * n + index
    return nest.position(place)


def _code(nest: NestBuilder, position: Scalar, bits: int) -> Scalar:
    """int64: the code that begins at bit position * bits, in one byte or in two."""
    if bits == 8:
        return nest.load(0, Index(gather=position)).cast(dt.int64)  # type: ignore[no-any-return]
    first = position * bits
    byte = first >> 3
    found = nest.load(0, Index(gather=byte)).cast(dt.int64)
    if 8 % bits:
        found = found | (nest.load(0, Index(gather=byte + 1, inside=False)).cast(dt.int64) << 8)
    return (found >> (first & 7)) & (2**bits - 1)  # type: ignore[no-any-return]


def _from_palette(F: Namespace[V], g: V, y: V, codes: V, palette: V, bits: int, shape: Dims,
                  block: int) -> tuple[V | None, ...]:
    """Each element adds to the number that it shows, whose place a palette of places tells."""
    numbers = F.reshape(palette, shape=(palette.shape[0] * 2**bits,))
    places = F.reshape(F.arange(size=numbers.shape[0], dtype=dt.int64), shape=palette.shape)
    shown = F.depalettise(codes, places, bits=bits, shape=shape, block=block)
    flat = (prod([int(n) for n in shape]),)
    total = F.scatter(F.zeros_like(numbers), F.reshape(shown, shape=flat), F.reshape(g, shape=flat), axis=0, mode="add",
                      batch=0)
    return None, F.reshape(total, shape=palette.shape)


class Palettes(Base[V], Generic[V]):
    """The arrays that codes and palettes stand for: linear in the palette."""

    @op(infer=rule.depalettise, reference=_depalettise, nest=_depalettise_nest, exact=True, vjp=_from_palette,
        jvp=lambda F, t, y, codes, palette, bits, shape, block: F.depalettise(codes, t[1], bits=bits, shape=shape,
                                                                              block=block))
    def depalettise(self, codes: V, palette: V, *, bits: int, shape: Dims, block: int) -> V:
        """The array of that shape whose elements, in row-major order, are palette[i // block, code i].

        `codes` (bytes,) uint8 holds a number of `bits` bits, 4 to 8, for each element, one behind the other, in each
        byte the lowest bits first; `palette` (blocks, 2**bits) has a row for each `block` elements, the last of which
        may be fewer.
        """
        ...
