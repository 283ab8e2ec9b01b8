"""Convolution and pooling against loops over every element, written from the definitions."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from nnc_core.base import dtype as dt
from nnc_cpu.device import CpuDevice
from tests.cpu.geometries import CONVOLUTIONS, Draw
from tests.cpu.geometries import convolutions as convolution_cases
from tests.cpu.geometries import pools as pool_cases

Array = np.ndarray[Any, Any]
EAGER = CpuDevice().eager


def nhwc(x: Array, layout: str) -> Array:
    return x if layout == "NHWC" else x.transpose(0, 2, 3, 1)


def hwio(kernel: Array, layout: str) -> Array:
    return kernel if layout == "NHWC" else kernel.transpose(2, 3, 1, 0)


def places(how: dict[str, Any], count: Any) -> Any:
    """(window, position in it, place in the image) for all that lie inside the image."""
    (kh, kw), (sh, sw), (dh, dw), ((top, _), (left, _)) = how["window"], how["strides"], how["dilation"], how["padding"]
    for h, w, k, j in product(range(count[0]), range(count[1]), range(kh), range(kw)):
        row, column = h * sh + k * dh - top, w * sw + j * dw - left
        if 0 <= row < how["size"][0] and 0 <= column < how["size"][1]:
            yield (h, w), (k, j), (row, column)


def trilinear(how: dict[str, Any], x: Array, kernel: Array, g: Array) -> Any:
    """Every triple of elements that a convolution multiplies: indices into image, kernel and result."""
    per_group_in, per_group_out = kernel.shape[2], kernel.shape[3] // how["groups"]
    for (h, w), (k, j), (row, column) in places(how, g.shape[1:3]):
        for n, group, i, o in product(range(len(x)), range(how["groups"]), range(per_group_in), range(per_group_out)):
            out = group * per_group_out + o
            yield (n, row, column, group * per_group_in + i), (k, j, i, out), (n, h, w, out)


@pytest.mark.parametrize("which", ["conv2d", "conv2d_input_gradient", "conv2d_kernel_gradient"])
def test_convolutions_are_sums_over_products(which: str) -> None:
    cases = list(CONVOLUTIONS[which](Draw(dt.float64)))
    for case, (x, kernel, g, how) in zip(cases, convolution_cases(Draw(dt.float64)), strict=True):
        order = how["layout"]
        image, weights, result = nhwc(x, order), hwio(kernel, order), nhwc(g, order)
        wanted = np.zeros_like({"conv2d": result, "conv2d_input_gradient": image}.get(which, weights))
        for at_image, at_kernel, at_result in trilinear(how, image, weights, result):
            if which == "conv2d":
                wanted[at_result] += image[at_image] * weights[at_kernel]
            elif which == "conv2d_input_gradient":
                wanted[at_image] += result[at_result] * weights[at_kernel]
            else:
                wanted[at_kernel] += image[at_image] * result[at_result]
        actual = EAGER[which](*case.arrays, *case.attributes)
        actual = hwio(actual, order) if which == "conv2d_kernel_gradient" else nhwc(actual, order)
        np.testing.assert_allclose(actual, wanted, rtol=1e-12, atol=1e-10)


def attributes(how: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(how[name] for name in ("window", "strides", "padding", "dilation", "layout"))


def test_pools_look_at_every_element_of_a_window() -> None:
    for x, g, _, how in pool_cases(Draw(dt.float64)):
        image, count = nhwc(x, how["layout"]), nhwc(g, how["layout"]).shape
        total, largest = np.zeros(count), np.full(count, -np.inf)
        first = np.full(count, -1)
        for (h, w), (k, j), (row, column) in places(how, count[1:3]):
            seen = image[:, row, column]
            total[:, h, w] += seen
            better = seen > largest[:, h, w]
            first[:, h, w][better] = k * how["window"][1] + j
            largest[:, h, w][better] = seen[better]
        order = how["layout"]
        np.testing.assert_allclose(nhwc(EAGER["sum_pool2d"](x, *attributes(how)), order), total, rtol=1e-13, atol=1e-12)
        np.testing.assert_array_equal(nhwc(EAGER["max_pool2d"](x, *attributes(how)), order), largest)
        np.testing.assert_array_equal(nhwc(EAGER["max_pool2d_index"](x, *attributes(how)), order), first)


def test_what_is_put_is_what_is_taken_transposed() -> None:
    for x, g, index, how in pool_cases(Draw(dt.float64)):
        order = how["layout"]
        given, named = nhwc(g, order), nhwc(index, order)
        image = nhwc(x, order)
        put, spread, taken = np.zeros(image.shape), np.zeros(image.shape), np.zeros(given.shape)
        for (h, w), (k, j), (row, column) in places(how, given.shape[1:3]):
            hit = named[:, h, w] == k * how["window"][1] + j
            put[:, row, column] += np.where(hit, given[:, h, w], 0)
            spread[:, row, column] += given[:, h, w]
            taken[:, h, w] += np.where(hit, image[:, row, column], 0)
        for name, arguments, wanted in (("pool2d_put", (g, index, how["size"]), put),
                                        ("sum_pool2d_gradient", (g, how["size"]), spread),
                                        ("pool2d_take", (x, index), taken)):
            actual = EAGER[name](*arguments, *attributes(how))
            np.testing.assert_allclose(nhwc(actual, order), wanted, rtol=1e-13, atol=1e-12)


def test_infinite_gradients_stay_where_they_are_put() -> None:
    g, index = np.array([np.inf, np.nan]).reshape(1, 1, 2, 1), np.array([3, 0], np.int32).reshape(1, 1, 2, 1)
    out = EAGER["pool2d_put"](g, index, (2, 4), (2, 2), (2, 2), ((0, 0), (0, 0)), (1, 1), "NHWC")
    np.testing.assert_array_equal(out[0, :, :, 0], [[0, 0, np.nan, 0], [0, np.inf, 0, 0]])


def test_a_window_of_more_than_255_elements_has_its_index() -> None:
    x = np.zeros((1, 20, 20, 1), np.float32)
    x[0, 19, 3] = 1
    assert EAGER["max_pool2d_index"](x, (20, 20), (1, 1), ((0, 0), (0, 0)), (1, 1), "NHWC").item() == 383
