"""Cases of arrays that are kept as codes and palettes."""

from __future__ import annotations

from math import prod

import numpy as np

from nnc_core.base.dtype import FLOATS, NUMBERS, DType
from nnc_core.shape.palettes import BITS, block_count, code_bytes
from nnc_plugins.conformance.case import LARGE, Array, Case, draw, few, specials


def _drawn(shape: tuple[int, ...], bits: int, block: int, dtypes: tuple[DType, ...] = NUMBERS,
           of_specials: bool = False) -> Case:
    """Any bytes are codes."""
    count = prod(shape)
    rows = (block_count(count, block), 2**bits)

    def make(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
        codes = rng.integers(0, 256, code_bytes(count, bits)).astype(np.uint8)
        return codes, specials(rows)(rng, dtype)[0] if of_specials else draw(rng, dtype, rows)

    label = f"{shape} of {bits} bits, blocks of {block}{', specials' * of_specials}"
    return Case(label, make, dtypes, {"bits": bits, "shape": shape, "block": block}, smooth=count < 100)


CASES: dict[str, list[Case]] = {
    "depalettise": [
        *[_drawn((5, 7), bits, 8) for bits in BITS], *[_drawn((3, 2, 3), bits, 100) for bits in BITS],
        *[_drawn((13,), bits, 1, few(NUMBERS)) for bits in BITS], *[_drawn((6, 4), bits, 11, FLOATS) for bits in BITS],
        *[_drawn((8,), bits, 8, FLOATS) for bits in BITS],
        _drawn((), 5, 1), _drawn((), 8, 4), _drawn((0,), 4, 3), _drawn((3, 0, 2), 7, 1), _drawn((1, 1), 6, 2),
        *[_drawn((4, 5), bits, 6, FLOATS, of_specials=True) for bits in (4, 7)],
        *[_drawn(LARGE, bits, 1000, few(NUMBERS)) for bits in BITS],
    ],
}  # fmt: skip
