"""References of convolution and pooling against loops over every window, and against SciPy."""

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


def nhwc(x, layout):
    return x if layout == "NHWC" else np.moveaxis(x, 1, 3)


def hwio(kernel, layout):
    return kernel if layout == "NHWC" else kernel.transpose(2, 3, 1, 0)


def windows(size, count, window, strides, padding, dilation):
    """((window's row, column), (place within it), (place in the image)) wherever a window sees the image."""
    for at in itertools.product(*map(range, count)):
        for k in itertools.product(*map(range, window)):
            place = tuple(o * s - p[0] + i * d for o, s, p, i, d in zip(at, strides, padding, k, dilation, strict=True))
            if all(0 <= p < n for p, n in zip(place, size, strict=True)):
                yield at, k, place


def trilinear(x, kernel, g, how):
    """Each term of the convolution's form: ((n, i, j, c), (k, l, c', o), (n, h, w, o)) with all channels at once."""
    groups, (n, *size, channels), (*count, outputs) = how["groups"], x.shape, g.shape[1:]
    per, out = channels // groups, outputs // groups
    slide = (how["strides"], how["padding"], how["dilation"])
    for (h, w), (k, m), (i, j) in windows(size, count, kernel.shape[:2], *slide):
        for group in range(groups):
            c, o = slice(group * per, (group + 1) * per), slice(group * out, (group + 1) * out)
            yield (slice(0, n), i, j, c), (k, m, slice(None), o), (slice(0, n), h, w, o)


@pytest.mark.parametrize("name", ["conv2d", "conv2d_input_gradient", "conv2d_kernel_gradient"])
def test_convolutions_by_plain_loops(name, rng) -> None:
    """The three are one form with x, the kernel and g in it, each time with another one to be found."""
    for example in cases(name, dtypes=(dt.float64, dt.bfloat16)):
        if example.case.label.startswith("wide"):
            continue
        (first, second), how = arguments(example, rng)
        layout = how["layout"]
        result = call(example.op, first, second, *how.values())
        zeros = np.zeros(result.shape)
        sides = {"conv2d": (first, second, zeros), "conv2d_input_gradient": (zeros, second, first),
                 "conv2d_kernel_gradient": (first, zeros, second)}[name]  # fmt: skip
        x, kernel, g = (f(v.astype(np.float64), layout) for f, v in zip((nhwc, hwio, nhwc), sides, strict=True))
        for a, b, c in trilinear(x, kernel, g, how):
            if name == "conv2d":
                g[c] += x[a] @ kernel[b]
            elif name == "conv2d_input_gradient":
                x[a] += g[c] @ kernel[b].T
            else:
                kernel[b] += x[a].T @ g[c]
        expected = {"conv2d": g, "conv2d_input_gradient": x, "conv2d_kernel_gradient": kernel}[name]
        back = (3, 2, 0, 1) if name == "conv2d_kernel_gradient" else (0, 3, 1, 2)
        expected = expected if layout == "NHWC" else expected.transpose(back)
        assert_agree(example.op, result, expected.astype(result.dtype), str(example))


def test_conv2d_is_scipys_correlation(rng) -> None:
    x, kernel = rng.standard_normal((9, 11)), rng.standard_normal((3, 4))
    how = {"strides": (1, 1), "dilation": (1, 1), "groups": 1, "layout": "NHWC"}
    valid = host("conv2d", x[None, :, :, None], kernel[:, :, None, None], padding=((0, 0), (0, 0)), **how)
    np.testing.assert_allclose(valid[0, :, :, 0], scipy.signal.correlate2d(x, kernel, "valid"), rtol=1e-12)
    full = host("conv2d", x[None, :, :, None], kernel[:, :, None, None], padding=((2, 2), (3, 3)), **how)
    np.testing.assert_allclose(full[0, :, :, 0], scipy.signal.correlate2d(x, kernel, "full"), rtol=1e-11, atol=1e-12)
    back = host("conv2d_input_gradient", valid, kernel[:, :, None, None], size=(9, 11), padding=((0, 0), (0, 0)), **how)
    convolved = scipy.signal.convolve2d(valid[0, :, :, 0], kernel, "full")
    np.testing.assert_allclose(back[0, :, :, 0], convolved, rtol=1e-11, atol=1e-12)


def test_max_pool_is_scipys_maximum_filter(rng) -> None:
    x = rng.standard_normal((8, 9))
    pooled = host("max_pool2d", x[None, None], window=(3, 3), strides=(1, 1), padding=((1, 1), (1, 1)),
                  dilation=(1, 1), layout="NCHW")  # fmt: skip
    expected = scipy.ndimage.maximum_filter(x, 3, mode="constant", cval=-np.inf)
    np.testing.assert_array_equal(pooled[0, 0], expected)


def pool_by_loops(name, inputs, how):
    """In NHWC; the sum, the maximum with its place, or what a place names, over each window."""
    image = how.pop("size", None) or inputs[0].shape[1:3]
    x, *rest = (x.astype(np.float64) for x in inputs)
    count = rest[0].shape[1:3] if rest else None
    slide = (how["strides"], how["padding"], how["dilation"])
    gradient = name in ("pool2d_put", "sum_pool2d_gradient")
    if gradient:
        count = x.shape[1:3]
    elif count is None:
        axes = zip(image, how["window"], *slide, strict=True)
        count = [(n + sum(p) - (k - 1) * d - 1) // s + 1 for n, k, s, p, d in axes]
    shape = (x.shape[0], *(image if gradient else count), x.shape[3])
    out, best = np.zeros(shape), np.zeros(shape)
    seen = np.zeros(shape, int)
    for at, k, place in windows(image, count, how["window"], *slide):
        position = k[0] * how["window"][1] + k[1]
        to, source = (np.s_[:, *place], np.s_[:, *at]) if gradient else (np.s_[:, *at], np.s_[:, *place])
        value = x[source]
        if rest:
            here = rest[0][np.s_[:, *at]] == position
            out[to] += np.where(here, value, 0)
        elif name.startswith("max"):
            better = (seen[to] == 0) | (value > out[to]) | (np.isnan(value) & ~np.isnan(out[to]))
            out[to] = np.where(better, value, out[to])
            best[to] = np.where(better, position, best[to])
        else:
            out[to] += value
        seen[to] += 1
    return {"max_pool2d_index": best, "avg_pool2d": out / (
        math.prod(how["window"]) if how.get("count_padding") else np.maximum(seen, 1))}.get(name, out)


POOLS = ["max_pool2d", "max_pool2d_index", "pool2d_take", "pool2d_put", "sum_pool2d", "sum_pool2d_gradient",
         "avg_pool2d"]  # fmt: skip


@pytest.mark.parametrize("name", POOLS)
def test_pools_by_plain_loops(name, rng) -> None:
    for example in cases(name, dtypes=(dt.float64, dt.float16, dt.int32)):
        if example.case.label == "lowest":  # beyond what float64 holds
            continue
        inputs, how = arguments(example, rng)
        result = call(example.op, *inputs, *how.values())
        layout = how["layout"]
        expected = pool_by_loops(name, [nhwc(x, layout) for x in inputs], how)
        expected = expected if layout == "NHWC" else np.moveaxis(expected, 3, 1)
        assert_agree(example.op, result, expected.astype(result.dtype), str(example))
