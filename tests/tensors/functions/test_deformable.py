"""Deformable convolution against a plain loop over windows."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import DTypeError, ShapeError
from tests.tensors import gradients
from tests.tensors.faults import fails
from tests.tensors.sliding import in_layout, kernel_in, last


def pixel(plane: Any, y: float, x: float) -> Any:
    """Linear between the four pixels around a place; zero outside."""
    out = np.zeros(plane.shape[-1])
    low = (int(np.floor(y)), int(np.floor(x)))
    for a, b in itertools.product((0, 1), (0, 1)):
        i, j = low[0] + a, low[1] + b
        if 0 <= i < plane.shape[0] and 0 <= j < plane.shape[1]:
            out += plane[i, j] * (1 - abs(y - i)) * (1 - abs(x - j))
    return out


def convolved(x: Any, offset: Any, kernel: Any, mask: Any, strides: Any, padding: Any, dilation: Any,
              groups: int) -> Any:
    """Channels last; window by window, element by element."""
    kh, kw, inner, out = kernel.shape
    y = np.zeros((*offset.shape[:3], out))
    parts = offset.shape[3] // (2 * kh * kw)
    wide = x.shape[3] // parts
    for n, i, j in np.ndindex(*offset.shape[:3]):
        moves = offset[n, i, j].reshape(parts, kh, kw, 2)
        weighs = np.ones((parts, kh, kw)) if mask is None else mask[n, i, j].reshape(parts, kh, kw)
        for a, b, p in np.ndindex(kh, kw, parts):
            down, right = moves[p, a, b]
            place = (i * strides[0] - padding[0][0] + a * dilation[0] + down,
                     j * strides[1] - padding[1][0] + b * dilation[1] + right)
            value = pixel(x[n, :, :, p * wide : (p + 1) * wide], *place) * weighs[p, a, b]
            for c in range(wide):
                channel = p * wide + c
                g = channel // inner
                span = slice(g * (out // groups), (g + 1) * (out // groups))
                y[n, i, j, span] += value[c] * kernel[a, b, channel % inner, span]
    return y


CASES = {"plain": ((1, 1), ((0, 0), (0, 0)), (1, 1), 1, 1, False),
         "masked": ((1, 1), ((1, 1), (0, 2)), (1, 1), 1, 1, True),
         "strides": ((2, 1), ((1, 0), (1, 1)), (1, 2), 1, 2, True),
         "groups": ((1, 2), ((1, 1), (1, 1)), (2, 1), 2, 4, False)}


def arrays(rng: np.random.Generator, name: str, window: Any = (3, 2)) -> tuple[list[Any], dict[str, Any]]:
    strides, padding, dilation, groups, parts, masked = CASES[name]
    x, kernel = rng.standard_normal((2, 6, 5, 4)), rng.standard_normal((*window, 4 // groups, 6))
    size = [(n + sum(p) - (w - 1) * d - 1) // s + 1 for n, w, s, d, p in
            zip(x.shape[1:3], window, strides, dilation, padding, strict=True)]
    count = window[0] * window[1] * parts
    offset = rng.uniform(-2, 2, (2, *size, 2 * count))
    mask = [rng.uniform(0, 1, (2, *size, count))] if masked else []
    return [x, offset, kernel, *mask], {"strides": strides, "padding": padding, "dilation": dilation, "groups": groups}


@pytest.mark.parametrize("layout", ["NHWC", "NCHW", "CHWN"])
@pytest.mark.parametrize("name", CASES)
def test_against_plain_loops(rng: np.random.Generator, device: str, name: str, layout: str) -> None:
    (x, offset, kernel, *mask), how = arrays(rng, name)
    expected = convolved(x, offset, kernel, mask[0] if mask else None, **how)
    given = [in_layout(x, layout), in_layout(offset, layout), kernel_in(kernel, layout),
             *[in_layout(m, layout) for m in mask]]
    ready = [nnc.asarray(np.ascontiguousarray(a).astype(np.float32)) for a in given]
    found = nnc.deform_conv2d(*ready, layout=layout, **how)
    np.testing.assert_allclose(last(found, layout), expected, rtol=1e-4, atol=1e-4)


def test_without_offsets_it_is_a_convolution(rng: np.random.Generator) -> None:
    x, kernel = rng.standard_normal((2, 7, 6, 3)), rng.standard_normal((3, 3, 3, 4))
    plain = nnc.conv2d(x, kernel, padding="SAME", strides=2)
    found = nnc.deform_conv2d(x, np.zeros((*plain.shape[:3], 18)), kernel, padding="SAME", strides=2)
    np.testing.assert_allclose(found.numpy(), plain.numpy(), rtol=1e-9)


@pytest.mark.parametrize("name", ["masked", "groups"])
def test_gradients(rng: np.random.Generator, name: str) -> None:
    """To all four; second derivatives have no kinks where places are not whole."""
    given, how = arrays(rng, name)
    gradients.check(lambda *a: nnc.deform_conv2d(*a, **how), *given, second=False)


@pytest.mark.parametrize("mode", ["compiled", "deferred"])
def test_other_ways_to_run(rng: np.random.Generator, mode: str) -> None:
    given, how = arrays(rng, "strides")
    ready = [nnc.asarray(a.astype(np.float32)) for a in given]
    expected = nnc.deform_conv2d(*ready, **how).numpy()
    if mode == "compiled":
        found = nnc.jit(lambda *a: nnc.deform_conv2d(*a, **how))(*ready)
    else:
        with nnc.deferred():
            found = nnc.deform_conv2d(*ready, **how)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-5)


def test_what_does_not_go_together(rng: np.random.Generator) -> None:
    (x, offset, kernel, mask), how = arrays(rng, "masked")
    with fails(ShapeError, "offsets", operator="deform_conv2d"):
        nnc.deform_conv2d(x, offset[:, 1:], kernel, **how)
    with fails(ShapeError, "offsets", operator="deform_conv2d"):
        nnc.deform_conv2d(x, offset[..., 1:], kernel, **how)
    with fails(ShapeError, "mask", operator="deform_conv2d"):
        nnc.deform_conv2d(x, offset, kernel, mask[..., 1:], **how)
    with fails(ShapeError, "groups", operator="deform_conv2d"):
        nnc.deform_conv2d(x, offset, kernel[:, :, 1:], **how)
    with fails(DTypeError, "floating", operator="deform_conv2d"):
        nnc.deform_conv2d(x.astype(np.int32), offset, kernel, **how)
