"""Cases of products of 8-bit integers, each factor of either dtype."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nnc_core.base.dtype import DType, int8, uint8
from nnc_plugins.conformance.case import Array, Case, Maker, draw
from nnc_plugins.conformance.tables.window import BIG, CONVOLUTIONS, convolution_attributes, kernel_shape

BYTES = (int8, uint8)
Shape = tuple[int, ...]


def _with_ends(rng: np.random.Generator, shape: Shape, dtype: DType) -> Array:
    if dtype not in BYTES:  # which is refused
        return draw(rng, dtype, shape)
    ends = np.iinfo(dtype)
    found = draw(rng, dtype, shape, ends.min, ends.max)
    found.reshape(-1)[:2], found.reshape(-1)[2:5] = ends.min, ends.max
    return found


def _drawn(a: Shape, b: Shape, second: DType) -> Maker:
    """Numbers of the whole range, the ends among them."""
    def make(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
        return _with_ends(rng, a, dtype), _with_ends(rng, b, second)

    return make


def _matrices() -> Iterator[Case]:
    shapes: tuple[tuple[Shape, Shape, bool, bool], ...] = (
        ((3, 4), (4, 5), False, False), ((4, 3), (4, 5), True, False), ((3, 6), (5, 6), False, True),
        ((7, 3), (5, 7), True, True), ((2, 3, 4), (4, 2), False, False), ((2, 1, 3, 5), (4, 5, 2), False, False),
        ((3, 0), (0, 2), False, False), ((0, 3), (3, 2), False, False), ((1, 9), (9, 1), False, False),
        ((65, 71), (71, 33), False, False), ((71, 65), (33, 71), True, True), ((40, 1030), (1030, 70), False, False))
    for a, b, ta, tb in shapes:
        for second in BYTES:
            yield Case(f"{a}{'T' * ta} {second} {b}{'T' * tb}", _drawn(a, b, second), BYTES,
                       {"transpose_a": ta, "transpose_b": tb})


def _convolutions() -> Iterator[Case]:
    for g, layout in CONVOLUTIONS:
        for second in BYTES if g.label != BIG.label else BYTES[:1]:
            make = _drawn(g.shape(layout), kernel_shape(g, layout), second)
            yield Case(f"{g.label} {layout} by {second}", make, BYTES, convolution_attributes(g, layout))


CASES: dict[str, list[Case]] = {"matmul_integer": [*_matrices()], "conv_integer": [*_convolutions()]}
