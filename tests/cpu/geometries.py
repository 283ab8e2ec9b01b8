"""Geometries of convolution and pooling, fast paths and awkward ones, for what is tested against plain loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
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


WINDOWS: list[tuple[tuple[int, int], Any, Any, Any, Any]] = [
    # image's size, window, strides, padding, dilation
    ((6, 6), (2, 2), (2, 2), ((0, 0), (0, 0)), (1, 1)),
    ((5, 6), (3, 2), (1, 1), ((1, 1), (1, 0)), (1, 1)),
    ((7, 8), (2, 3), (2, 3), ((1, 0), (1, 2)), (2, 1)),
    ((7, 6), (3, 3), (3, 2), ((0, 0), (2, 1)), (1, 2)),
    ((4, 5), (1, 1), (1, 1), ((0, 0), (0, 0)), (1, 1)),
    ((5, 5), (1, 1), (2, 2), ((0, 0), (0, 0)), (1, 1)),
    ((5, 9), (2, 2), (4, 3), ((0, 0), (0, 0)), (1, 1)),
]
LAYOUTS = ("NHWC", "NCHW")


def image(d: Draw, layout: str, n: int, h: int, w: int, c: int) -> Array:
    return d.any(n, h, w, c) if layout == "NHWC" else d.any(n, c, h, w)


def counts(size: Any, window: Any, strides: Any, padding: Any, dilation: Any) -> list[int]:
    return [(n + sum(p) - (k - 1) * q - 1) // s + 1
            for n, k, s, p, q in zip(size, window, strides, padding, dilation, strict=True)]


def convolutions(d: Draw) -> Iterator[tuple[Array, Array, Array, dict[str, Any]]]:
    """Image, kernel, an array of the result's shape, and geometry."""
    channels = [(2, 1, 1, 3), (2, 6, 1, 2), (2, 2, 2, 3), (1, 17, 1, 2), (2, 6, 1, 2), (0, 1, 2, 1), (2, 5, 2, 2)]
    for at, layout in product(range(len(WINDOWS)), LAYOUTS):
        size, window, strides, padding, dilation = WINDOWS[at]
        n, i, groups, o = channels[at % len(channels)]
        x = image(d, layout, n, *size, i * groups)
        kernel = d.any(*window, i, groups * o) if layout == "NHWC" else d.any(groups * o, i, *window)
        g = image(d, layout, n, *counts(size, window, strides, padding, dilation), groups * o)
        yield x, kernel, g, {"strides": strides, "padding": padding, "dilation": dilation, "groups": groups,
                             "layout": layout, "size": size, "window": window}


def conv2d(d: Draw) -> Iterator[Case]:
    for x, kernel, _, how in convolutions(d):
        yield case((x, kernel), "conv2d", **how)


def conv2d_input_gradient(d: Draw) -> Iterator[Case]:
    for _, kernel, g, how in convolutions(d):
        yield case((g, kernel), "conv2d_input_gradient", **how)


def conv2d_kernel_gradient(d: Draw) -> Iterator[Case]:
    for x, _, g, how in convolutions(d):
        yield case((x, g), "conv2d_kernel_gradient", **{**how, "size": how["window"]})


def pools(d: Draw) -> Iterator[tuple[Array, Array, Array, dict[str, Any]]]:
    """Image, an array of the result's shape, positions within windows, and geometry."""
    for (size, window, strides, padding, dilation), layout in product(WINDOWS, LAYOUTS):
        how = {"window": window, "strides": strides, "padding": padding, "dilation": dilation, "layout": layout,
               "size": size}
        g = image(d, layout, 2, *counts(size, window, strides, padding, dilation), 3)
        index = d.rng.integers(0, window[0] * window[1], g.shape).astype(np.int32)
        yield image(d, layout, 2, *size, 3), g, index, how


CONVOLUTIONS: dict[str, Callable[[Draw], Iterator[Case]]] = {
    "conv2d": conv2d, "conv2d_input_gradient": conv2d_input_gradient, "conv2d_kernel_gradient": conv2d_kernel_gradient,
}  # fmt: skip
