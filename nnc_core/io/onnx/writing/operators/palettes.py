"""Arrays that are kept as codes of a few bits and palettes."""

from __future__ import annotations

from math import prod
from typing import Any

from nnc_core.base.dtype import int64
from nnc_core.io.onnx.writing.table import says
from nnc_core.type import Dims, is_static


@says("depalettise")
def _depalettise(F: Any, codes: Any, palette: Any, bits: int, shape: Dims, block: int) -> Any:
    """The code of an element begins in one byte and may end in the next; it is a place in the palette of its block."""
    if not is_static(shape):
        return None
    count = prod([int(n) for n in shape])
    place = F.arange(size=count, dtype=int64)
    code = F.cast(codes, dtype=int64) if bits == 8 else _code(F, codes, place, bits)
    if palette.shape[0] != 1:
        code = F.add(code, F.multiply(F.floor_divide(place, block), 2**bits))
    row = F.reshape(palette, shape=(palette.shape[0] * palette.shape[1],))
    return F.reshape(F.take(row, code, axis=0), shape=shape)


def _code(F: Any, codes: Any, place: Any, bits: int) -> Any:
    first = F.multiply(place, bits)
    byte, shift = F.floor_divide(first, 8), F.remainder(first, 8)
    found = F.cast(F.take(codes, byte, axis=0), dtype=int64)
    if 8 % bits:
        following = F.minimum(F.add(byte, 1), codes.shape[0] - 1)
        found = F.add(found, F.multiply(F.cast(F.take(codes, following, axis=0), dtype=int64), 256))
    return F.remainder(F.floor_divide(found, F.power(2, shift)), 2**bits)
