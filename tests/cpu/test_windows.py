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
    return x if layout.endswith("C") else np.moveaxis(x, 1, -1)


def hwio(kernel: Array, layout: str) -> Array:
    return kernel if layout.endswith("C") else np.moveaxis(kernel, (0, 1), (-1, -2))


def places(how: dict[str, Any], count: Any) -> Any:
    """(window, position in it, place in the image) for all that lie inside the image."""
    axes = how["strides"], how["dilation"], how["padding"]
    for at, k in product(product(*map(range, count)), product(*map(range, how["window"]))):
        place = tuple(a * s + e * d - p for a, e, s, d, (p, _) in zip(at, k, *axes, strict=True))
        if all(0 <= p < n for p, n in zip(place, how["size"], strict=True)):
            yield at, k, place


def trilinear(how: dict[str, Any], x: Array, kernel: Array, g: Array) -> Any:
    """Every triple of elements that a convolution multiplies: indices into image, kernel and result."""
    per_group_in, per_group_out = kernel.shape[-2], kernel.shape[-1] // how["groups"]
    for at, k, place in places(how, g.shape[1:-1]):
        for n, group, i, o in product(range(len(x)), range(how["groups"]), range(per_group_in), range(per_group_out)):
            out = group * per_group_out + o
            yield (n, *place, group * per_group_in + i), (*k, i, out), (n, *at, out)


@pytest.mark.parametrize("which", ["conv", "conv_input_gradient", "conv_kernel_gradient"])
def test_convolutions_are_sums_over_products(which: str) -> None:
    cases = list(CONVOLUTIONS[which](Draw(dt.float64)))
    for case, (x, kernel, g, how) in zip(cases, convolution_cases(Draw(dt.float64)), strict=True):
        order = how["layout"]
        image, weights, result = nhwc(x, order), hwio(kernel, order), nhwc(g, order)
        wanted = np.zeros_like({"conv": result, "conv_input_gradient": image}.get(which, weights))
        for at_image, at_kernel, at_result in trilinear(how, image, weights, result):
            if which == "conv":
                wanted[at_result] += image[at_image] * weights[at_kernel]
            elif which == "conv_input_gradient":
                wanted[at_image] += result[at_result] * weights[at_kernel]
            else:
                wanted[at_kernel] += image[at_image] * result[at_result]
        actual = EAGER[which](*case.arrays, *case.attributes)
        actual = hwio(actual, order) if which == "conv_kernel_gradient" else nhwc(actual, order)
        np.testing.assert_allclose(actual, wanted, rtol=1e-12, atol=1e-10)


def attributes(how: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(how[name] for name in ("window", "strides", "padding", "dilation", "layout"))


def test_pools_look_at_every_element_of_a_window() -> None:
    for x, g, _, how in pool_cases(Draw(dt.float64)):
        image, count = nhwc(x, how["layout"]), nhwc(g, how["layout"]).shape
        total, largest = np.zeros(count), np.full(count, -np.inf)
        first = np.full(count, -1)
        for at, k, place in places(how, count[1:-1]):
            seen, here = image[(slice(None), *place)], (slice(None), *at)
            total[here] += seen
            better = seen > largest[here]
            first[here][better] = np.ravel_multi_index(k, how["window"])
            largest[here][better] = seen[better]
        order = how["layout"]
        np.testing.assert_allclose(nhwc(EAGER["sum_pool"](x, *attributes(how)), order), total, rtol=1e-13, atol=1e-12)
        np.testing.assert_array_equal(nhwc(EAGER["max_pool"](x, *attributes(how)), order), largest)
        np.testing.assert_array_equal(nhwc(EAGER["max_pool_index"](x, *attributes(how)), order), first)


def test_what_is_put_is_what_is_taken_transposed() -> None:
    for x, g, index, how in pool_cases(Draw(dt.float64)):
        order = how["layout"]
        given, named = nhwc(g, order), nhwc(index, order)
        image = nhwc(x, order)
        put, spread, taken = np.zeros(image.shape), np.zeros(image.shape), np.zeros(given.shape)
        for at, k, place in places(how, given.shape[1:-1]):
            here, there = (slice(None), *at), (slice(None), *place)
            hit = named[here] == np.ravel_multi_index(k, how["window"])
            put[there] += np.where(hit, given[here], 0)
            spread[there] += given[here]
            taken[here] += np.where(hit, image[there], 0)
        for name, arguments, wanted in (("pool_put", (g, index, how["size"]), put),
                                        ("sum_pool_gradient", (g, how["size"]), spread),
                                        ("pool_take", (x, index), taken)):
            actual = EAGER[name](*arguments, *attributes(how))
            np.testing.assert_allclose(nhwc(actual, order), wanted, rtol=1e-13, atol=1e-12)


def test_infinite_gradients_stay_where_they_are_put() -> None:
    g, index = np.array([np.inf, np.nan]).reshape(1, 1, 2, 1), np.array([3, 0], np.int32).reshape(1, 1, 2, 1)
    out = EAGER["pool_put"](g, index, (2, 4), (2, 2), (2, 2), ((0, 0), (0, 0)), (1, 1), "NHWC")
    np.testing.assert_array_equal(out[0, :, :, 0], [[0, 0, np.nan, 0], [0, np.inf, 0, 0]])


def test_a_window_of_more_than_255_elements_has_its_index() -> None:
    x = np.zeros((1, 20, 20, 1), np.float32)
    x[0, 19, 3] = 1
    assert EAGER["max_pool_index"](x, (20, 20), (1, 1), ((0, 0), (0, 0)), (1, 1), "NHWC").item() == 383
