"""Cases of regions of images, and of boxes that suppress each other."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import Any

import numpy as np

from nnc_core.base.dtype import FLOATS, NUMBERS, DType, accumulator, float32, is_float
from nnc_plugins.conformance.case import SPECIAL, Array, Case, draw, few, fixed

LAYOUTS = ("NHWC", "NCHW")
SHAPES: dict[str, tuple[tuple[int, ...], tuple[int, int], int]] = {
    "plain": ((2, 5, 6, 3), (2, 3), 4), "one pixel": ((1, 1, 1, 2), (1, 2), 2), "no regions": ((2, 3, 4, 1), (2, 2), 0),
    "many channels": ((3, 4, 4, 9), (1, 1), 5),
}  # fmt: skip
"""Images NHWC, the size of the results, how many regions."""


def _in(layout: str, x: Array) -> Array:
    return x if layout == "NHWC" else np.ascontiguousarray(x.transpose(0, 3, 1, 2))


def _products(transposed: bool) -> list[Case]:
    cases = []
    for label, (shape, size, count) in SHAPES.items():
        for layout in LAYOUTS:
            make = partial(_weighted, shape, size, count, layout, transposed)
            attributes: dict[str, Hashable] = {"layout": layout, **({"count": shape[0]} if transposed else {})}
            cases.append(Case(f"{label} {layout}", make, FLOATS, attributes, smooth=True))
    some: dict[str, Hashable] = {"layout": "NHWC", **({"count": 2} if transposed else {})}
    large = partial(_weighted, (2, 9, 8, 65), (7, 7), 23, "NHWC", transposed)
    cases += [Case("specials", partial(_spoilt, transposed), FLOATS, some), Case("large", large, few(FLOATS), some)]
    return cases


def _spoilt(transposed: bool, rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
    """Weights are 0 for every other row of pixels, which then may be anything."""
    x, rows, columns, images = _weighted((2, 5, 6, 3), (2, 3), 4, "NHWC", transposed, rng, dtype)
    rows[:, :, ::2] = 0
    return np.resize(np.array(SPECIAL), x.shape).astype(dtype), rows, columns, images


def _weighted(shape: tuple[int, ...], size: tuple[int, int], count: int, layout: str, transposed: bool,
              rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
    n, height, width, channels = shape
    wide = accumulator(dtype)
    rows, columns = draw(rng, wide, (count, size[0], height)), draw(rng, wide, (count, size[1], width))
    x = draw(rng, dtype, (count, *size, channels) if transposed else shape)
    return _in(layout, x), rows, columns, rng.integers(-n, n, count).astype(np.int32)


BOXES = ((0.6, 1.1, 4.3, 3.8), (-1.3, 0.4, 2.2, 6.9), (2.1, 2.2, 2.3, 2.4), (-9.2, -8.1, -5.3, -4.2))
"""Inside, over the border, within one pixel, and outside, in an image of 5 x 6."""


def _box_dtype(dtype: DType) -> DType:
    return accumulator(dtype) if is_float(dtype) else float32


def _regions(x: Array, boxes: Any, layout: str, rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
    given = np.asarray(boxes, np.float64).reshape(-1, 4).astype(_box_dtype(dtype))
    return _in(layout, draw(rng, dtype, x.shape)), given, (np.arange(len(given)) % len(x)).astype(np.int64)


def _aligned() -> list[Case]:
    cases = []
    image = np.empty((2, 5, 6, 2))
    for layout in LAYOUTS:
        for ratio, aligned, outside in ((2, True, True), (0, False, True), (0, True, False), (3, False, False)):
            label = f"{ratio or 'as many'} samples{' aligned' * aligned}{' inside' * (not outside)} {layout}"
            how = {"size": (2, 3), "scale": 1.0, "sampling_ratio": ratio, "aligned": aligned,
                   "count_outside": outside, "layout": layout}  # fmt: skip
            cases.append(Case(label, partial(_regions, image, BOXES, layout), FLOATS, how, smooth=True))
    how = {"size": (1, 2), "scale": 0.5, "sampling_ratio": 0, "aligned": True, "count_outside": True, "layout": "NHWC"}
    cases.append(Case("scaled", partial(_regions, image, ((1.3, 2.2, 9.1, 7.7),), "NHWC"), FLOATS, how, smooth=True))
    cases.append(Case("no boxes", partial(_regions, image, (), "NHWC"), FLOATS, how, smooth=True))
    large = np.empty((2, 33, 19, 53))
    many = ((0.6, 1.1, 14.3, 23.8), (-1.3, 0.4, 18.2, 30.9), (2.1, 2.2, 12.3, 32.4))
    cases.append(Case("large", partial(_regions, large, many, "NHWC"), few(FLOATS), how))
    spoilt = partial(_given, np.resize(np.array(SPECIAL), (1, 5, 6, 2)), BOXES)
    cases.append(Case("specials", spoilt, FLOATS, {**how, "sampling_ratio": 2}))
    turned = ((4.2, 3.9, 1.1, 0.7), (2.5, 1.5, 2.5, 3.5))
    for ratio in (0, 2):
        cases.append(Case(f"without area, {ratio} samples", partial(_regions, image, turned, "NHWC"), FLOATS,
                          {**how, "scale": 1.0, "sampling_ratio": ratio}))
    return cases


def _pooled(smooth: bool) -> list[Case]:
    image = np.empty((2, 5, 6, 2))
    cases = []
    for layout in LAYOUTS:
        how = {"size": (2, 3), "scale": 1.0, "layout": layout}
        cases.append(Case(f"plain {layout}", partial(_regions, image, BOXES, layout), NUMBERS, how, smooth=smooth))
        cases.append(Case(f"scaled {layout}", partial(_regions, image, ((2.2, 1.2, 11.2, 8.6),), layout), NUMBERS,
                          {**how, "size": (3, 2), "scale": 0.5}, smooth=smooth))
    how = {"size": (2, 2), "scale": 1.0, "layout": "NHWC"}
    cases.append(Case("no boxes", partial(_regions, image, (), "NHWC"), NUMBERS, how, smooth=smooth))
    large = np.empty((2, 33, 19, 53))
    cases.append(Case("large", partial(_regions, large, ((0.6, 1.1, 14.3, 23.8),), "NHWC"), few(NUMBERS), how))
    nan, inf = np.nan, np.inf
    pixels = np.array([[1, nan, 2, 2], [inf, 1, 2, 2], [-inf, -inf, 0, -0.0], [-inf, -inf, 3, nan]])[None, :, :, None]
    cases.append(Case("specials", partial(_given, pixels, ((0, 0, 3, 3),)), FLOATS, how))
    cases.append(Case("no finite box", partial(_given, pixels, ((nan, 0, inf, 3), (-inf, -1, inf, 9))), FLOATS, how))
    return cases


def _given(x: Array, boxes: Any, rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
    return x.astype(dtype), np.asarray(boxes, _box_dtype(dtype)), np.zeros(len(boxes), np.int32)


_CORNERS = np.array([[0, 0, 4, 4], [1, 1, 5, 5], [10, 10, 14, 12], [0, 0, 4, 4], [10, 10, 14, 13], [2, 2, 2, 2],
                     [2, 2, 2, 2]])  # fmt: skip
_SCORES = np.array([0.5, 0.875, 0.25, 0.75, 0.625, 0.375, 0.125])


def _suppressed() -> list[Case]:
    def case(label: str, boxes: Any, scores: Any, groups: Any, threshold: float) -> Case:
        def make(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
            return (*fixed(boxes, scores)(rng, dtype), np.asarray(groups, np.int64))

        return Case(label, make, FLOATS, {"threshold": threshold})

    count = len(_SCORES)
    return [
        case("one group", _CORNERS, _SCORES, [0] * count, 0.5),
        case("two groups", _CORNERS, _SCORES, [0, 1, 0, 0, 0, 1, 1], 0.25),
        case("all that touch", _CORNERS, _SCORES, [0] * count, 0.0),
        case("none", _CORNERS, _SCORES, [0] * count, 1.0),
        case("equal scores", _CORNERS, [0.5] * count, [0] * count, 0.25),
        case("no boxes", np.empty((0, 4)), [], [], 0.5),
        case("scores without order", _CORNERS, [np.nan, 1, np.inf, -np.inf, np.nan, 0.0, -0.0], [0] * count, 0.25),
    ]


CASES: dict[str, list[Case]] = {
    "region_product": _products(False), "region_product_gradient": _products(True), "roi_align": _aligned(),
    "roi_pool_index": _pooled(smooth=False), "roi_pool": _pooled(smooth=True), "nms_order": _suppressed(),
}  # fmt: skip
