"""References of convolution, pooling and unfolding against loops over every window, and against SciPy."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.ndimage
import scipy.signal

from nnc_core.base import dtype as dt
from nnc_plugins.conformance.agreement import assert_agree
from tests.operator.host import arguments, call, cases, host


def channels_last(x, layout):
    return x if layout.endswith("C") else np.moveaxis(x, 1, -1)


def layout_of(x, layout):
    return x if layout.endswith("C") else np.moveaxis(x, -1, 1)


def window_first(kernel, layout):
    return kernel if layout.endswith("C") else kernel.transpose(*range(2, kernel.ndim), 1, 0)


def windows(size, count, window, strides, padding, dilation):
    """((window's place), (place within it), (place in the image)) wherever a window sees the image."""
    for at in itertools.product(*map(range, count)):
        for k in itertools.product(*map(range, window)):
            place = tuple(o * s - p[0] + i * d for o, s, p, i, d in zip(at, strides, padding, k, dilation, strict=True))
            if all(0 <= p < n for p, n in zip(place, size, strict=True)):
                yield at, k, place


def trilinear(x, kernel, g, how):
    """Each term of the convolution's form, with all channels at once: where it is in x, the kernel and g."""
    groups, (n, *size, channels), (*count, outputs) = how["groups"], x.shape, g.shape[1:]
    per, out = channels // groups, outputs // groups
    slide = (how["strides"], how["padding"], how["dilation"])
    for at, k, place in windows(size, count, kernel.shape[:-2], *slide):
        for group in range(groups):
            c, o = slice(group * per, (group + 1) * per), slice(group * out, (group + 1) * out)
            yield (slice(0, n), *place, c), (*k, slice(None), o), (slice(0, n), *at, o)


@pytest.mark.parametrize("name", ["conv", "conv_input_gradient", "conv_kernel_gradient"])
def test_convolutions_by_plain_loops(name, rng) -> None:
    """The three are one form with x, the kernel and g in it, each time with another one to be found."""
    for example in cases(name, dtypes=(dt.float64, dt.bfloat16), large=False):
        if example.case.label.startswith("wide"):
            continue
        (first, second), how = arguments(example, rng)
        layout = how["layout"]
        result = call(example.op, first, second, *how.values())
        zeros = np.zeros(result.shape)
        sides = {"conv": (first, second, zeros), "conv_input_gradient": (zeros, second, first),
                 "conv_kernel_gradient": (first, zeros, second)}[name]  # fmt: skip
        x, kernel, g = (f(v.astype(np.float64), layout) for f, v in zip(
            (channels_last, window_first, channels_last), sides, strict=True))  # fmt: skip
        for a, b, c in trilinear(x, kernel, g, how):
            if name == "conv":
                g[c] += x[a] @ kernel[b]
            elif name == "conv_input_gradient":
                x[a] += g[c] @ kernel[b].T
            else:
                kernel[b] += x[a].T @ g[c]
        expected = {"conv": g, "conv_input_gradient": x, "conv_kernel_gradient": kernel}[name]
        if name != "conv_kernel_gradient":
            expected = layout_of(expected, layout)
        elif not layout.endswith("C"):
            expected = expected.transpose(-1, -2, *range(expected.ndim - 2))
        assert_agree(example.op, result, expected.astype(result.dtype), str(example))


def test_conv_is_scipys_correlation(rng) -> None:
    x, kernel = rng.standard_normal((9, 11)), rng.standard_normal((3, 4))
    how = {"strides": (1, 1), "dilation": (1, 1), "groups": 1, "layout": "NHWC"}
    valid = host("conv", x[None, :, :, None], kernel[:, :, None, None], padding=((0, 0), (0, 0)), **how)
    np.testing.assert_allclose(valid[0, :, :, 0], scipy.signal.correlate2d(x, kernel, "valid"), rtol=1e-12)
    full = host("conv", x[None, :, :, None], kernel[:, :, None, None], padding=((2, 2), (3, 3)), **how)
    np.testing.assert_allclose(full[0, :, :, 0], scipy.signal.correlate2d(x, kernel, "full"), rtol=1e-11, atol=1e-12)
    back = host("conv_input_gradient", valid, kernel[:, :, None, None], size=(9, 11), padding=((0, 0), (0, 0)), **how)
    convolved = scipy.signal.convolve2d(valid[0, :, :, 0], kernel, "full")
    np.testing.assert_allclose(back[0, :, :, 0], convolved, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize(("shape", "window", "layout"), [((9,), (4,), "NCW"), ((5, 6, 4), (2, 3, 1), "NCDHW")])
def test_conv_in_one_and_three_dimensions_is_scipys(rng, shape, window, layout) -> None:
    x, kernel = rng.standard_normal(shape), rng.standard_normal(window)
    ones = (1,) * len(shape)
    found = host("conv", x[None, None], kernel[None, None], strides=ones, padding=((0, 0),) * len(shape), dilation=ones,
                 groups=1, layout=layout)  # fmt: skip
    np.testing.assert_allclose(found[0, 0], scipy.signal.correlate(x, kernel, "valid"), rtol=1e-12, atol=1e-12)


def test_max_pool_is_scipys_maximum_filter(rng) -> None:
    x = rng.standard_normal((8, 9))
    pooled = host("max_pool", x[None, None], window=(3, 3), strides=(1, 1), padding=((1, 1), (1, 1)),
                  dilation=(1, 1), layout="NCHW")  # fmt: skip
    expected = scipy.ndimage.maximum_filter(x, 3, mode="constant", cval=-np.inf)
    np.testing.assert_array_equal(pooled[0, 0], expected)


def slide_of(how):
    return how["strides"], how["padding"], how["dilation"]


def counts_of(size, how):
    axes = zip(size, how["window"], *slide_of(how), strict=True)
    return [(n + sum(p) - (k - 1) * d - 1) // s + 1 for n, k, s, p, d in axes]


def pool_by_loops(name, inputs, how):
    """With channels last; the sum, the maximum with its place, or what a place names, over each window."""
    image = how.pop("size", None) or inputs[0].shape[1:-1]
    x, *rest = (x.astype(np.float64) for x in inputs)
    gradient = name in ("pool_put", "sum_pool_gradient")
    count = x.shape[1:-1] if gradient else rest[0].shape[1:-1] if rest else counts_of(image, how)
    shape = (x.shape[0], *(image if gradient else count), x.shape[-1])
    out, best = np.zeros(shape), np.zeros(shape)
    seen = np.zeros(shape, int)
    for at, k, place in windows(image, count, how["window"], *slide_of(how)):
        position = np.ravel_multi_index(k, how["window"])
        to, source = (np.s_[:, *place], np.s_[:, *at]) if gradient else (np.s_[:, *at], np.s_[:, *place])
        value = x[source]
        if rest:
            here = rest[0][np.s_[:, *at]] == position
            out[to] = np.where(here, out[to] + value if gradient else value, out[to])
        elif name.startswith("max"):
            better = (seen[to] == 0) | (value > out[to]) | (np.isnan(value) & ~np.isnan(out[to]))
            out[to] = np.where(better, value, out[to])
            best[to] = np.where(better, position, best[to])
        else:
            out[to] += value
        seen[to] += 1
    return {"max_pool_index": best, "avg_pool": out / (
        math.prod(how["window"]) if how.get("count_padding") else np.maximum(seen, 1))}.get(name, out)


POOLS = ["max_pool", "max_pool_index", "pool_take", "pool_put", "sum_pool", "sum_pool_gradient",
         "avg_pool"]  # fmt: skip


@pytest.mark.parametrize("name", POOLS)
def test_pools_by_plain_loops(name, rng) -> None:
    for example in cases(name, dtypes=(dt.float64, dt.float16, dt.int32), large=False):
        if example.case.label == "lowest":  # beyond what float64 holds
            continue
        inputs, how = arguments(example, rng)
        result = call(example.op, *inputs, *how.values())
        layout = how["layout"]
        expected = layout_of(pool_by_loops(name, [channels_last(x, layout) for x in inputs], how), layout)
        assert_agree(example.op, result, expected.astype(result.dtype), str(example))


def channel_of(k, c, channels, how):
    """Where an element of a window is among the channels it becomes."""
    position = int(np.ravel_multi_index(k, how["window"]))
    elements = math.prod(how["window"])
    return position * channels + c if how["layout"].endswith("C") else c * elements + position


@pytest.mark.parametrize("name", ["unfold", "fold"])
def test_windows_as_channels_by_plain_loops(name, rng) -> None:
    for example in cases(name, dtypes=(dt.float64, dt.float16, dt.int32), large=False):
        (given,), how = arguments(example, rng)
        layout = how["layout"]
        result = call(example.op, given, *how.values())
        x = channels_last(given, layout).astype(np.float64)
        size = how.get("size") or x.shape[1:-1]
        count = counts_of(size, how)
        channels = x.shape[-1] if name == "unfold" else x.shape[-1] // math.prod(how["window"])
        whole = (count, channels * math.prod(how["window"])) if name == "unfold" else (size, channels)
        expected = np.zeros((len(x), *whole[0], whole[1]))
        for at, k, place in windows(size, count, how["window"], *slide_of(how)):
            for c in range(channels):
                column, pixel = (slice(None), *at, channel_of(k, c, channels, how)), (slice(None), *place, c)
                if name == "unfold":
                    expected[column] = x[pixel]
                else:
                    expected[pixel] += x[column]
        assert_agree(example.op, result, layout_of(expected, layout).astype(result.dtype), str(example))


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_a_convolution_is_unfolding_and_a_matrix_product(rng, layout) -> None:
    x, kernel = rng.standard_normal((2, 6, 5, 3)), rng.standard_normal((3, 2, 3, 4))
    slide = {"strides": (2, 1), "padding": ((1, 0), (0, 1)), "dilation": (1, 2), "layout": layout}
    given, weights = layout_of(x, layout), kernel if layout == "NHWC" else kernel.transpose(3, 2, 0, 1)
    columns = channels_last(host("unfold", given, window=(3, 2), **slide), layout)
    matrix = weights.reshape(-1, 4) if layout == "NHWC" else weights.reshape(4, -1).T
    whole = channels_last(host("conv", given, weights, groups=1, **slide), layout)
    np.testing.assert_allclose(columns @ matrix, whole, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["resample", "spread"])
def test_weighted_sums_are_a_matrix(name, rng) -> None:
    """The tables as a dense matrix, or its transpose."""
    for example in cases(name, dtypes=(dt.float64, dt.float16), large=False):
        if example.case.label == "specials":
            continue
        (x, indices, weights), how = arguments(example, rng)
        length = how["size"] if name == "spread" else x.shape[how["axis"]]
        matrix = np.zeros((len(indices), length))
        for row, t in np.ndindex(indices.shape):
            if indices[row, t] >= 0:
                matrix[row, indices[row, t]] += weights[row, t]
        matrix = matrix if name == "resample" else matrix.T
        moved = np.moveaxis(x.astype(np.float64), how["axis"], -1) @ matrix.T
        result = call(example.op, x, indices, weights, *how.values())
        assert_agree(example.op, result, np.moveaxis(moved, -1, how["axis"]).astype(x.dtype), str(example))


def test_what_is_not_read_spoils_nothing() -> None:
    """An infinity beside index -1, and one that another row reads, stay where they are."""
    x = np.array([[np.inf], [1.0]])
    indices, weights = np.array([[0, -1], [1, -1], [-1, -1]], np.int32), np.ones((3, 2))
    how = {"axis": 0, "reach": (3, 2, -2, 3)}
    np.testing.assert_array_equal(host("resample", x, indices, weights, **how), [[np.inf], [1], [0]])
    np.testing.assert_array_equal(host("spread", np.array([[1.0], [2.0], [np.nan]]), indices, weights, size=2, **how),
                                  [[1], [2]])
