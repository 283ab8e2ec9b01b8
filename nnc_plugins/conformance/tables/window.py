"""Cases of convolution, pooling and unfolding, in one, two and three dimensions and in both layouts."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import NamedTuple

import numpy as np

from nnc_core.base import dtype as dt
from nnc_core.base.dtype import FLOATS, NUMBERS, DType
from nnc_core.operator import window_reference
from nnc_core.shape.window import LAYOUTS, Filter, Image, Padding, Sizes, window_counts
from nnc_plugins.conformance.case import ALL, Array, Case, arrays, draw, few, fixed, specials

NO_PADDING: Padding = ((0, 0), (0, 0))
Shape = tuple[int, ...]


class WindowCase(NamedTuple):
    """Images (batch, spatial dimensions, channels), a window, and how it slides."""

    label: str
    image: Shape
    window: Sizes
    strides: Sizes = (1, 1)
    padding: Padding = NO_PADDING
    dilation: Sizes = (1, 1)
    groups: int = 1
    outputs: int = 2

    @property
    def size(self) -> Sizes:
        return self.image[1:-1]

    @property
    def channels(self) -> int:
        return self.image[-1]

    @property
    def layouts(self) -> tuple[str, ...]:
        """Those of as many dimensions."""
        return tuple(layout for layout in LAYOUTS if len(layout) == len(self.image))

    def windows(self) -> Sizes:
        """The number of windows in each direction."""
        counts = window_counts(self.size, self.window, self.strides, self.padding, self.dilation)
        return tuple(int(n) for n in counts)

    def shape(self, layout: str, size: Sizes | None = None, channels: int | None = None) -> Shape:
        """The shape of the image, or of one of another size or with other channels."""
        image = Image(self.image[0], size or self.size, channels or self.channels)
        return image.spec(layout, dt.float32).static_shape


SLIDES = (
    WindowCase("plain", (2, 5, 6, 3), (3, 2)),
    WindowCase("one by one", (1, 3, 3, 2), (1, 1)),
    WindowCase("strided", (1, 7, 6, 2), (3, 2), (2, 3)),
    WindowCase("padded", (2, 4, 5, 2), (3, 3), padding=((1, 1), (1, 1))),
    WindowCase("uneven", (1, 5, 4, 2), (3, 4), (2, 1), ((0, 2), (1, 2))),
    WindowCase("dilated", (1, 7, 8, 2), (2, 3), (1, 2), ((1, 0), (2, 1)), (3, 2)),
    WindowCase("with a rest", (1, 6, 7, 1), (2, 2), (3, 3)),
    WindowCase("skipping", (1, 7, 7, 2), (2, 1), (3, 4)),
    WindowCase("the whole image", (3, 4, 3, 2), (4, 3)),
    WindowCase("no images", (0, 4, 4, 2), (2, 2)),
    WindowCase("a line", (2, 7, 3), (3,), (2,), ((1, 0),), (1,)),
    WindowCase("a dilated line", (1, 9, 2), (3,), (2,), ((2, 2),), (3,)),
    WindowCase("a volume", (1, 4, 3, 5, 2), (2, 1, 3), (1, 1, 1), ((0, 0),) * 3, (1, 1, 1)),
    WindowCase("a dilated volume", (1, 3, 5, 4, 2), (2, 2, 2), (1, 2, 3), ((1, 0), (0, 1), (1, 1)), (1, 3, 2)),
)
BIG = WindowCase("large", (1, 129, 131, 4), (3, 2), (2, 1), ((1, 1), (0, 1)), outputs=3)
PLACES = (*[(g, layout) for g in SLIDES for layout in g.layouts], (BIG, "NHWC"))
SPOILT = (SLIDES[3], "NHWC")
"""Cases with NaN and infinities too."""
GROUPED = (
    WindowCase("grouped", (2, 4, 5, 6), (2, 3), padding=((1, 0), (1, 1)), groups=3, outputs=6),
    WindowCase("depthwise", (1, 5, 5, 3), (3, 3), (2, 2), ((1, 1), (1, 1)), groups=3, outputs=6),
    WindowCase("wide", (2, 12, 11, 8), (5, 5), padding=((2, 2), (2, 2)), outputs=16),
    WindowCase("a grouped line", (2, 8, 4), (3,), (1,), ((1, 1),), (2,), groups=2, outputs=2),
    WindowCase("a depthwise volume", (1, 3, 3, 4, 2), (2, 2, 2), (1, 1, 2), ((0, 1),) * 3, (1, 1, 1), groups=2),
)


CONVOLUTIONS = (*PLACES, *[(g, layout) for g in GROUPED for layout in g.layouts])


def kernel_shape(g: WindowCase, layout: str) -> Shape:
    return Filter(g.window, g.channels // g.groups, g.outputs).spec(layout, dt.float32).static_shape


def _for(g: WindowCase, dtypes: tuple[DType, ...]) -> tuple[DType, ...]:
    return few(dtypes) if g is BIG else dtypes


def convolution_attributes(g: WindowCase, layout: str) -> dict[str, Hashable]:
    return {"strides": g.strides, "padding": g.padding, "dilation": g.dilation, "groups": g.groups, "layout": layout}


def _pool(g: WindowCase, layout: str) -> dict[str, Hashable]:
    return {"window": g.window, "strides": g.strides, "padding": g.padding, "dilation": g.dilation, "layout": layout}


def _convolutions(name: str) -> list[Case]:
    cases = []
    for g, layout in CONVOLUTIONS:
        image, kernel = g.shape(layout), kernel_shape(g, layout)
        result, attributes = g.shape(layout, g.windows(), g.outputs), convolution_attributes(g, layout)
        shapes, size = {
            "conv": ((image, kernel), None), "conv_input_gradient": ((result, kernel), g.size),
            "conv_kernel_gradient": ((image, result), g.window)}[name]  # fmt: skip
        if size is not None:
            attributes["size"] = size
        smooth = g.label not in ("wide", BIG.label)
        cases.append(Case(f"{g.label} {layout}", arrays(*shapes), _for(g, FLOATS), attributes, smooth=smooth))
        if (g, layout) == SPOILT:
            cases.append(Case("specials", partial(_spoilt, shapes), FLOATS, attributes))
    return cases


def _spoilt(shapes: Sequence[Shape], rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
    """The shape of the first operand; the others are numbers."""
    return *specials(shapes[0])(rng, dtype), *arrays(*shapes[1:], low=0.5)(rng, dtype)


def _pools(smooth: bool) -> list[Case]:
    return [Case(f"{g.label} {layout}", arrays(g.shape(layout)), _for(g, NUMBERS), _pool(g, layout),
                 smooth=smooth and g is not BIG)
            for g, layout in PLACES]  # fmt: skip


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
    for g, layout in PLACES:
        attributes = _pool(g, layout)
        if name == "pool_put":
            attributes["size"] = g.size
        make = partial(_with_index, g, layout, name == "pool_take", False)
        cases.append(Case(f"{g.label} {layout}", make, _for(g, NUMBERS), attributes, smooth=g is not BIG))
        if (g, layout) == SPOILT:
            spoilt = partial(_with_index, g, layout, name == "pool_take", True)
            cases.append(Case("specials", spoilt, FLOATS, attributes))
    return cases


def _with_index(g: WindowCase, layout: str, of_image: bool, special: bool, rng: np.random.Generator,
                dtype: DType) -> tuple[Array, ...]:
    """An image, or values for its windows, and a position in each window."""
    image = draw(rng, dt.float32, g.shape(layout))
    index = window_reference.max_pool_index(image, g.window, g.strides, g.padding, g.dilation, layout)
    shape = image.shape if of_image else index.shape
    (x,) = (specials if special else arrays)(shape)(rng, dtype)
    return x, index


def _sum_gradients() -> list[Case]:
    return [Case(f"{g.label} {layout}", arrays(g.shape(layout, g.windows())), _for(g, NUMBERS),
                 {"size": g.size, **_pool(g, layout)}, smooth=g is not BIG)
            for g, layout in PLACES]  # fmt: skip


def _averages() -> list[Case]:
    return [Case(f"{g.label} {layout}{' with its padding' * count}", arrays(g.shape(layout)), _for(g, FLOATS),
                 {"count_padding": count, **_pool(g, layout)}, smooth=g is not BIG)
            for g, layout in PLACES for count in (False, True)]  # fmt: skip


def _unfolded() -> list[Case]:
    return [Case(f"{g.label} {layout}", arrays(g.shape(layout)), _for(g, ALL), _pool(g, layout), smooth=g is not BIG)
            for g, layout in PLACES]  # fmt: skip


def _folded() -> list[Case]:
    return [Case(f"{g.label} {layout}", arrays(g.shape(layout, g.windows(), g.channels * prod(g.window))),
                 _for(g, NUMBERS), {"size": g.size, **_pool(g, layout)}, smooth=g is not BIG)
            for g, layout in PLACES]  # fmt: skip


def _over_specials(cases: list[Case]) -> list[Case]:
    """With one of them again, of an image of NaN and infinities."""
    label = " ".join((SPOILT[0].label, SPOILT[1]))
    one = next(case for case in cases if case.label.startswith(label))
    shapes = [x.shape for x in one.inputs(np.random.default_rng(0), dt.float32)]
    return [*cases, replace(one, label="specials", make=specials(*shapes), dtypes=FLOATS, smooth=False)]


def _of_sizes() -> list[Case]:
    return [Case(f"{g.label} {layout}", arrays(g.shape(layout)), ALL, {"size": g.size, "layout": layout}, smooth=True)
            for g in (SLIDES[0], SLIDES[10], SLIDES[12]) for layout in g.layouts]  # fmt: skip


CASES: dict[str, list[Case]] = {
    "of_size": _of_sizes(),
    **{name: _convolutions(name) for name in ("conv", "conv_input_gradient", "conv_kernel_gradient")},
    "max_pool": [*_pools(smooth=True), *_extremal()],
    **{name: [*_pools(smooth=False), *_extremal()] for name in ("max_pool_index", "max_pool_place")},
    **{name: _indexed(name) for name in ("pool_take", "pool_put")},
    "sum_pool": _over_specials(_pools(smooth=True)),
    "sum_pool_gradient": _over_specials(_sum_gradients()),
    "avg_pool": _over_specials(_averages()),
    "unfold": _over_specials(_unfolded()),
    "fold": _over_specials(_folded()),
}
