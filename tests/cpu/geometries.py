"""Geometries of convolution and pooling, fast paths and awkward ones, for what is tested against plain loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import numpy as np

from nnc_core.base import dtype as dt
from nnc_core.base.dtype import DType
from nnc_core.operator import OPERATORS
from tests.cpu.cases import Case

Array = np.ndarray[Any, Any]


class Draw:
    """Arrays of one dtype."""

    def __init__(self, dtype: DType, seed: int = 0) -> None:
        self.dtype, self.rng = dtype, np.random.default_rng(seed)

    def any(self, *shape: int) -> Array:
        """Numbers of both signs (if there are), most of them distinct."""
        if self.dtype == dt.boolean:
            return self.rng.random(shape) < 0.5
        low = 0 if self.dtype.kind == "u" else -5
        whole = self.rng.integers(low, 10, shape)
        return (whole if dt.is_integer(self.dtype) else whole + self.rng.random(shape)).astype(self.dtype)


def case(arrays: tuple[Array, ...], operator: str, **attributes: Any) -> Case:
    return Case(arrays, tuple(attributes[name] for name in OPERATORS[operator].attributes))


WINDOWS: list[tuple[tuple[int, ...], Any, Any, Any, Any]] = [
    # image's size, window, strides, padding, dilation
    ((6, 6), (2, 2), (2, 2), ((0, 0), (0, 0)), (1, 1)),
    ((5, 6), (3, 2), (1, 1), ((1, 1), (1, 0)), (1, 1)),
    ((7, 8), (2, 3), (2, 3), ((1, 0), (1, 2)), (2, 1)),
    ((7, 6), (3, 3), (3, 2), ((0, 0), (2, 1)), (1, 2)),
    ((4, 5), (1, 1), (1, 1), ((0, 0), (0, 0)), (1, 1)),
    ((5, 5), (1, 1), (2, 2), ((0, 0), (0, 0)), (1, 1)),
    ((5, 9), (2, 2), (4, 3), ((0, 0), (0, 0)), (1, 1)),
    ((9,), (3,), (2,), ((1, 0),), (2,)),
    ((8,), (2,), (1,), ((0, 0),), (1,)),
    ((4, 3, 5), (2, 1, 3), (1, 2, 2), ((1, 0), (0, 0), (1, 1)), (2, 1, 1)),
    ((3, 4, 4), (3, 2, 2), (1, 1, 1), ((0, 0), (0, 1), (0, 0)), (1, 1, 1)),
]
LAYOUTS = {1: ("NWC", "NCW"), 2: ("NHWC", "NCHW"), 3: ("NDHWC", "NCDHW")}


def layouts() -> Iterator[tuple[int, str]]:
    """Each geometry in each of its layouts."""
    return ((at, layout) for at, (size, *_) in enumerate(WINDOWS) for layout in LAYOUTS[len(size)])


def image(d: Draw, layout: str, n: int, *size_and_channels: int) -> Array:
    *size, c = size_and_channels
    return d.any(n, *size, c) if layout.endswith("C") else d.any(n, c, *size)


def counts(size: Any, window: Any, strides: Any, padding: Any, dilation: Any) -> list[int]:
    return [(n + sum(p) - (k - 1) * q - 1) // s + 1
            for n, k, s, p, q in zip(size, window, strides, padding, dilation, strict=True)]


def convolutions(d: Draw) -> Iterator[tuple[Array, Array, Array, dict[str, Any]]]:
    """Image, kernel, an array of the result's shape, and geometry."""
    channels = [(2, 1, 1, 3), (2, 6, 1, 2), (2, 2, 2, 3), (1, 17, 1, 2), (2, 6, 1, 2), (0, 1, 2, 1), (2, 5, 2, 2),
                (2, 6, 2, 2), (1, 3, 1, 2), (2, 2, 3, 1), (1, 7, 1, 3)]  # fmt: skip
    for at, layout in layouts():
        size, window, strides, padding, dilation = WINDOWS[at]
        n, i, groups, o = channels[at % len(channels)]
        x = image(d, layout, n, *size, i * groups)
        kernel = d.any(*window, i, groups * o) if layout.endswith("C") else d.any(groups * o, i, *window)
        g = image(d, layout, n, *counts(size, window, strides, padding, dilation), groups * o)
        yield x, kernel, g, {"strides": strides, "padding": padding, "dilation": dilation, "groups": groups,
                             "layout": layout, "size": size, "window": window}


def conv(d: Draw) -> Iterator[Case]:
    for x, kernel, _, how in convolutions(d):
        yield case((x, kernel), "conv", **how)


def conv_input_gradient(d: Draw) -> Iterator[Case]:
    for _, kernel, g, how in convolutions(d):
        yield case((g, kernel), "conv_input_gradient", **how)


def conv_kernel_gradient(d: Draw) -> Iterator[Case]:
    for x, _, g, how in convolutions(d):
        yield case((x, g), "conv_kernel_gradient", **{**how, "size": how["window"]})


def pools(d: Draw) -> Iterator[tuple[Array, Array, Array, dict[str, Any]]]:
    """Image, an array of the result's shape, positions within windows, and geometry."""
    for at, layout in layouts():
        size, window, strides, padding, dilation = WINDOWS[at]
        how = {"window": window, "strides": strides, "padding": padding, "dilation": dilation, "layout": layout,
               "size": size}
        g = image(d, layout, 2, *counts(size, window, strides, padding, dilation), 3)
        index = d.rng.integers(0, prod(window), g.shape).astype(np.int32)
        yield image(d, layout, 2, *size, 3), g, index, how


CONVOLUTIONS: dict[str, Callable[[Draw], Iterator[Case]]] = {
    "conv": conv, "conv_input_gradient": conv_input_gradient, "conv_kernel_gradient": conv_kernel_gradient,
}  # fmt: skip
