"""Cases of convolution and pooling, in both layouts."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import NamedTuple

import numpy as np

from nnc_core.base import dtype as dt
from nnc_core.base.dtype import FLOATS, NUMBERS, DType
from nnc_core.operator import window_reference
from nnc_core.shape.window import LAYOUTS, Filter, Image, Padding, Pair, window_count
from nnc_plugins.conformance.case import Array, Case, arrays, draw, fixed

NO_PADDING: Padding = ((0, 0), (0, 0))
Shape = tuple[int, ...]


class Geometry(NamedTuple):
    """An image NHWC, a window (height, width), and how it slides."""

    label: str
    image: tuple[int, int, int, int]
    window: Pair
    strides: Pair = (1, 1)
    padding: Padding = NO_PADDING
    dilation: Pair = (1, 1)
    groups: int = 1
    outputs: int = 2

    @property
    def size(self) -> Pair:
        return self.image[1:3]

    def windows(self) -> Pair:
        """How many there are in each direction."""
        down, across = (int(window_count(*each)) for each in zip(
            self.size, self.window, self.strides, self.padding, self.dilation, strict=True))  # fmt: skip
        return down, across


SLIDES = (
    Geometry("plain", (2, 5, 6, 3), (3, 2)),
    Geometry("one by one", (1, 3, 3, 2), (1, 1)),
    Geometry("strided", (1, 7, 6, 2), (3, 2), (2, 3)),
    Geometry("padded", (2, 4, 5, 2), (3, 3), padding=((1, 1), (1, 1))),
    Geometry("uneven", (1, 5, 4, 2), (3, 4), (2, 1), ((0, 2), (1, 2))),
    Geometry("dilated", (1, 7, 8, 2), (2, 3), (1, 2), ((1, 0), (2, 1)), (3, 2)),
    Geometry("with a rest", (1, 6, 7, 1), (2, 2), (3, 3)),
    Geometry("skipping", (1, 7, 7, 2), (2, 1), (3, 4)),
    Geometry("the whole image", (3, 4, 3, 2), (4, 3)),
    Geometry("no images", (0, 4, 4, 2), (2, 2)),
)
GROUPED = (
    Geometry("grouped", (2, 4, 5, 6), (2, 3), padding=((1, 0), (1, 1)), groups=3, outputs=6),
    Geometry("depthwise", (1, 5, 5, 3), (3, 3), (2, 2), ((1, 1), (1, 1)), groups=3, outputs=6),
    Geometry("wide", (2, 12, 11, 8), (5, 5), padding=((2, 2), (2, 2)), outputs=16),
)


def _image(geometry: Geometry, layout: str) -> Shape:
    return Image(*geometry.image).spec(layout, dt.float32).static_shape


def _kernel(g: Geometry, layout: str) -> Shape:
    return Filter(*g.window, g.image[3] // g.groups, g.outputs).spec(layout, dt.float32).static_shape


def _result(g: Geometry, channels: int, layout: str) -> Shape:
    return Image(g.image[0], *g.windows(), channels).spec(layout, dt.float32).static_shape


def _convolution(g: Geometry, layout: str) -> dict[str, Hashable]:
    return {"strides": g.strides, "padding": g.padding, "dilation": g.dilation, "groups": g.groups,
            "layout": layout}


def _pool(g: Geometry, layout: str) -> dict[str, Hashable]:
    return {"window": g.window, "strides": g.strides, "padding": g.padding, "dilation": g.dilation,
            "layout": layout}


def _convolutions(name: str) -> list[Case]:
    cases = []
    for layout in LAYOUTS:
        for g in (*SLIDES, *GROUPED):
            image, kernel = _image(g, layout), _kernel(g, layout)
            result, attributes = _result(g, g.outputs, layout), _convolution(g, layout)
            shapes, size = {
                "conv2d": ((image, kernel), None), "conv2d_input_gradient": ((result, kernel), g.size),
                "conv2d_kernel_gradient": ((image, result), g.window)}[name]  # fmt: skip
            if size is not None:
                attributes["size"] = size
            smooth = g.label != "wide"
            cases.append(Case(f"{g.label} {layout}", arrays(*shapes), FLOATS, attributes, smooth=smooth))
    return cases


def _pools(smooth: bool) -> list[Case]:
    return [Case(f"{g.label} {layout}", arrays(_image(g, layout)), NUMBERS, _pool(g, layout), smooth=smooth)
            for layout in LAYOUTS for g in SLIDES]  # fmt: skip


def _extremal() -> list[Case]:
    """Ties, infinities and NaN; the last window is all -inf."""
    nan, inf = np.nan, np.inf
    rows = np.array([[1, nan, 2, 2], [inf, 1, 2, 2], [-inf, 0, -inf, -inf], [-0.0, -inf, -inf, -inf]])
    named = {"window": (2, 2), "strides": (2, 2), "padding": NO_PADDING, "dilation": (1, 1), "layout": "NHWC"}
    return [
        Case("specials", fixed(rows[None, :, :, None]), FLOATS, named),
        Case("ties", arrays((2, 4, 4, 3), low=0, high=1), NUMBERS, named),
        Case("ties at the edge", arrays((1, 3, 3, 2), low=-1, high=0), NUMBERS,
             {**named, "padding": ((1, 0), (0, 1))}),
        Case("lowest", lambda rng, dtype: (np.full((1, 3, 3, 1), np.iinfo(dtype).min, dtype),), dt.INTEGERS,
             {**named, "padding": ((1, 1), (1, 1))}),
    ]  # fmt: skip


def _indexed(name: str) -> list[Case]:
    """The indices are those of maxima, and so never in the padding."""
    cases = []
    for layout in LAYOUTS:
        for g in SLIDES:
            attributes = _pool(g, layout)

            if name == "pool2d_put":
                attributes["size"] = g.size
            make = partial(_with_index, g, layout, name == "pool2d_take")
            cases.append(Case(f"{g.label} {layout}", make, NUMBERS, attributes, smooth=True))
    return cases


def _with_index(g: Geometry, layout: str, of_image: bool, rng: np.random.Generator,
                dtype: DType) -> tuple[Array, ...]:
    """An image, or values for its windows, and a position in each window."""
    image = draw(rng, dt.float32, _image(g, layout))
    index = window_reference.max_pool2d_index(image, g.window, g.strides, g.padding, g.dilation, layout)
    return draw(rng, dtype, image.shape if of_image else index.shape), index


def _sum_gradients() -> list[Case]:
    return [Case(f"{g.label} {layout}", arrays(_result(g, g.image[3], layout)), NUMBERS,
                 {"size": g.size, **_pool(g, layout)},
                 smooth=True) for layout in LAYOUTS for g in SLIDES]  # fmt: skip


def _averages() -> list[Case]:
    return [Case(f"{g.label} {layout}{' with its padding' * count}", arrays(_image(g, layout)), FLOATS,
                 {"count_padding": count, **_pool(g, layout)}, smooth=True)
            for layout in LAYOUTS for g in SLIDES for count in (False, True)]  # fmt: skip


CASES: dict[str, list[Case]] = {
    **{name: _convolutions(name) for name in ("conv2d", "conv2d_input_gradient", "conv2d_kernel_gradient")},
    "max_pool2d": [*_pools(smooth=True), *_extremal()],
    "max_pool2d_index": [*_pools(smooth=False), *_extremal()],
    **{name: _indexed(name) for name in ("pool2d_take", "pool2d_put")},
    "sum_pool2d": _pools(smooth=True),
    "sum_pool2d_gradient": _sum_gradients(),
    "avg_pool2d": _averages(),
}
