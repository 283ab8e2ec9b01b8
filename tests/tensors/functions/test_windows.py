"""Convolution in one to three dimensions, its transpose, and windows as channels: against plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn
from tests.tensors import gradients
from tests.tensors.faults import fails
from tests.tensors.sliding import LAYOUTS, correlated, counted, in_layout, kernel_in, last, spread, windows
from tests.tensors.ways import agrees_with_eager

CONV = {1: nnc.conv1d, 2: nnc.conv2d, 3: nnc.conv3d}
TRANSPOSED = {1: nnc.conv_transpose1d, 2: nnc.conv_transpose2d, 3: nnc.conv_transpose3d}
IMAGES: dict[int, tuple[int, ...]] = {1: (2, 9, 4), 2: (2, 6, 7, 4), 3: (1, 4, 5, 3, 4)}
WINDOW: dict[int, tuple[int, ...]] = {1: (3,), 2: (3, 2), 3: (2, 3, 1)}
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {}, "strided": {"strides": 2}, "padded": {"padding": 1}, "dilated": {"dilation": 2, "padding": 2},
    "grouped": {"groups": 2, "padding": 1}, "depthwise": {"groups": 4, "strides": 2, "padding": 1},
}  # fmt: skip
every_rank = pytest.mark.parametrize("rank", [1, 2, 3])


def arrays(rng: np.random.Generator, rank: int, groups: int, dtype: Any = np.float32) -> tuple[Any, Any]:
    x, kernel = rng.standard_normal(IMAGES[rank]), rng.standard_normal((*WINDOW[rank], 4 // groups, 4))
    return x.astype(dtype), kernel.astype(dtype)


def spelled(rank: int, options: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Strides, padding and dilation for each axis."""
    pad = options.get("padding", 0)
    return (options.get("strides", 1),) * rank, ((pad, pad),) * rank, (options.get("dilation", 1),) * rank


@every_rank
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_convolutions_in_every_layout(rng: np.random.Generator, rank: int, options: dict[str, Any]) -> None:
    x, kernel = arrays(rng, rank, options.get("groups", 1))
    expected = correlated(x, kernel, *spelled(rank, options), options.get("groups", 1))
    for layout in LAYOUTS[rank]:
        y = CONV[rank](in_layout(x, layout), kernel_in(kernel, layout), layout=layout, **options)
        assert y.dtype == nnc.float32
        np.testing.assert_allclose(last(y, layout), expected, rtol=1e-4, atol=1e-4)


@every_rank
def test_convolutions_on_every_device(rng: np.random.Generator, device: str, rank: int) -> None:
    x, kernel = arrays(rng, rank, 2)
    layout = LAYOUTS[rank][1]
    options = {"strides": 2, "padding": 1, "groups": 2}
    given = nnc.asarray(in_layout(x, layout)), nnc.asarray(kernel_in(kernel, layout))
    y = CONV[rank](*given, layout=layout, **options)
    np.testing.assert_allclose(last(y, layout), correlated(x, kernel, *spelled(rank, options), 2), rtol=1e-4, atol=1e-4)
    z = TRANSPOSED[rank](y, given[1], layout=layout, size=x.shape[1:-1], **options)
    expected = spread(last(y, layout), kernel, *spelled(rank, options), tuple(
        (n + 2 - k) % 2 for n, k in zip(x.shape[1:-1], kernel.shape, strict=False)), 2)  # fmt: skip
    np.testing.assert_allclose(last(z, layout), expected, rtol=1e-4, atol=1e-4)


def test_the_same_padding_has_its_odd_element_after(rng: np.random.Generator) -> None:
    """As NNC and TensorFlow have it: as many results as there are strides."""
    x, kernel = rng.standard_normal((1, 7, 6, 1)), rng.standard_normal((4, 3, 1, 1))
    found = nnc.conv2d(x, kernel, strides=(2, 3), padding="SAME").numpy()
    expected = correlated(x, kernel, (2, 3), ((1, 2), (0, 0)), (1, 1))
    assert found.shape == (1, 4, 2, 1)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    padded = nnc.conv2d(x, kernel, strides=(2, 3), padding=((1, 2), 0)).numpy()
    np.testing.assert_array_equal(padded, found)


def test_names_of_paddings_are_taken_in_small_letters(rng: np.random.Generator) -> None:
    """As PyTorch writes them."""
    x, kernel = rng.standard_normal((1, 7, 6, 2)), rng.standard_normal((3, 3, 2, 1))
    for small in ("same", "valid"):
        for f in (lambda padding: nnc.conv2d(x, kernel, padding=padding),
                  lambda padding: nnc.conv_transpose2d(x, kernel.swapaxes(2, 3), strides=2, padding=padding),
                  lambda padding: nnc.max_pool2d(x, 3, strides=2, padding=padding)):
            np.testing.assert_array_equal(f(small).numpy(), f(small.upper()).numpy())
        layer = nn.Conv2d(2, 1, 3, padding=small, layout="NHWC")
        assert layer(nnc.asarray(x)).shape == nnc.conv2d(x, kernel, padding=small).shape
    with pytest.raises(nnc.errors.AttributeValueError, match="'half' is neither 'SAME' nor 'VALID'"):
        nnc.conv2d(x, kernel, padding="half")


@every_rank
@pytest.mark.parametrize("options", [
    {}, {"strides": 3}, {"strides": 2, "padding": 1, "output_padding": 1}, {"dilation": 2, "padding": 1},
    {"dilation": 3, "strides": 1, "output_padding": 2},
    {"dilation": 3, "strides": 2, "padding": 1, "output_padding": 2},
    {"groups": 2, "strides": 2}, {"groups": 4, "padding": 1},
], ids=str)  # fmt: skip
def test_transposed_convolutions(rng: np.random.Generator, rank: int, options: dict[str, Any]) -> None:
    groups, more = options.get("groups", 1), options.get("output_padding", 0)
    x, kernel = arrays(rng, rank, groups)
    expected = spread(x, kernel, *spelled(rank, options), (more,) * rank, groups)
    for layout in LAYOUTS[rank]:
        y = TRANSPOSED[rank](in_layout(x, layout), kernel_in(kernel, layout), layout=layout, **options)
        np.testing.assert_allclose(last(y, layout), expected, rtol=1e-4, atol=1e-4)


def test_output_padding_beyond_what_the_kernel_reaches(rng: np.random.Generator) -> None:
    """A dilation larger than the stride: the last elements are zeros that no window of the convolution would have."""
    x, kernel = rng.standard_normal((1, 3, 1)), rng.standard_normal((2, 1, 1))
    y = nnc.conv_transpose1d(x, kernel, dilation=4, output_padding=3)
    assert y.shape == (1, 2 + 4 + 1 + 3, 1) and y.numpy()[0, -3:, 0].tolist() == [0, 0, 0]
    np.testing.assert_allclose(y.numpy(), spread(x, kernel, (1,), ((0, 0),), (4,), (3,)), rtol=1e-12)


@pytest.mark.parametrize(("strides", "window"), [(2, 3), (2, 2), (3, 2), (2, 5)])
def test_transposed_same_padding_multiplies_the_size(rng: np.random.Generator, strides: int, window: int) -> None:
    x, kernel = rng.standard_normal((1, 4, 3)), rng.standard_normal((window, 2, 3))
    y = nnc.conv_transpose1d(x, kernel, strides=strides, padding="SAME")
    assert y.shape == (1, 4 * strides, 2)
    whole = np.zeros((1, max(4 * strides, 3 * strides + window), 2))
    reach = spread(x, kernel, (strides,), ((0, 0),), (1,), (0,))
    whole[:, : reach.shape[1]] = reach
    before = max(window - strides, 0) // 2
    np.testing.assert_allclose(y.numpy(), whole[:, before : before + 4 * strides], rtol=1e-10)


@every_rank
def test_a_transposed_convolution_is_the_transpose(rng: np.random.Generator, rank: int) -> None:
    x, kernel = arrays(rng, rank, 2, np.float64)
    options: dict[str, Any] = {"strides": 2, "padding": 1, "groups": 2}
    y = CONV[rank](x, kernel, **options)
    g = rng.standard_normal(y.shape)
    back = TRANSPOSED[rank](g, kernel, size=x.shape[1:-1], **options)
    assert back.shape == x.shape
    np.testing.assert_allclose((back.numpy() * x).sum(), (y.numpy() * g).sum(), rtol=1e-9)
    grads = nnc.grad(lambda v: nnc.sum(CONV[rank](v, nnc.asarray(kernel), **options) * nnc.asarray(g)))(nnc.asarray(x))
    np.testing.assert_allclose(grads.numpy(), back.numpy(), rtol=1e-9, atol=1e-12)


def test_asked_sizes_of_a_transposed_convolution(rng: np.random.Generator) -> None:
    x, kernel = nnc.ones((1, 3, 3, 1)), nnc.ones((3, 3, 1, 1))
    for size in ((7, 8), (8, 7)):
        assert nnc.conv_transpose2d(x, kernel, strides=2, size=size).shape == (1, *size, 1)
    with fails(ValueError, "size 9 is none that a convolution takes to 3", "from 7 to 8", operator="conv_transpose2d"):
        nnc.conv_transpose2d(x, kernel, strides=2, size=(7, 9))


@every_rank
def test_gradients_of_convolutions(rng: np.random.Generator, rank: int) -> None:
    x, kernel = rng.standard_normal(IMAGES[rank])[..., :2], rng.standard_normal((*WINDOW[rank], 1, 2))
    options: dict[str, Any] = {"strides": 2, "padding": 1, "groups": 2}
    gradients.check(lambda a, b: CONV[rank](a, b, **options), x, kernel)
    gradients.check(lambda a, b: TRANSPOSED[rank](a, b, output_padding=1, **options), x, kernel)


APART = [(groups, strides, dilation) for groups in (1, 20) for strides, dilation in (
    ((2, 1), (2, 1)), ((2, 3), (2, 3)), ((3, 2), (1, 1)), ((2, 2), (1, 2)))]  # fmt: skip
"""Groups of twenty channels, strides and dilations; some pixels no element of a window sees."""


@pytest.mark.parametrize("mode", ["eager", "compiled", "deterministic"])
@pytest.mark.parametrize(("groups", "strides", "dilation"), APART)
def test_gradients_where_windows_lie_apart(rng: np.random.Generator, device: str, groups: int, mode: str,
                                           strides: tuple[int, int], dilation: tuple[int, int]) -> None:
    """Large enough for library code: by the images and by the kernel, as the adjoint of a convolution in float64."""
    how: Any = {"strides": strides, "dilation": dilation, "padding": ((1, 2), (0, 1)), "groups": groups}
    x = rng.standard_normal((6, 13, 14, 20)).astype(np.float32)
    kernel = rng.standard_normal((2, 3, 20 // groups, 20)).astype(np.float32)

    def loss(x: Any, kernel: Any, g: Any) -> Any:
        return nnc.sum(nnc.conv2d(x, kernel, **how) * g)

    shape = nnc.conv2d(nnc.zeros(x.shape), nnc.zeros(kernel.shape), **how).shape
    given = [x, kernel, rng.standard_normal(shape).astype(np.float32)]
    by_image, by_kernel = adjoints(*[a.astype(np.float64) for a in given], **how)
    f = nnc.grad(loss, argnums=(0, 1))
    with nnc.config.using(deterministic=mode == "deterministic"):
        found = (f if mode == "eager" else nnc.jit(f))(*map(nnc.asarray, given))
    np.testing.assert_allclose(found[0].numpy(), by_image, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found[1].numpy(), by_kernel, rtol=1e-4, atol=1e-3)


def adjoints(x: Any, kernel: Any, g: Any, strides: tuple[int, int], dilation: tuple[int, int],
             padding: tuple[tuple[int, int], ...], groups: int) -> tuple[Any, Any]:
    """What pixels, and elements of the kernel, have to do with the results, one element of windows at a time."""
    wide = np.pad(x, ((0, 0), *padding, (0, 0)))
    by_image, by_kernel = np.zeros(wide.shape), np.zeros(kernel.shape)
    inputs, outputs = (np.split(np.arange(a.shape[-1]), groups) for a in (x, g))
    for e in np.ndindex(*kernel.shape[:2]):
        seen = (slice(None), *[slice(k * d, k * d + (n - 1) * s + 1, s) for k, d, n, s in
                               zip(e, dilation, g.shape[1:3], strides, strict=True)])
        for c, o in zip(inputs, outputs, strict=True):
            by_image[(*seen, slice(c[0], c[-1] + 1))] += g[..., o] @ kernel[e][:, o].T
            by_kernel[e][:, o] += np.einsum("nijc,nijo->co", wide[seen][..., c], g[..., o])
    (top, _), (left, _) = padding
    return by_image[:, top : top + x.shape[1], left : left + x.shape[2]], by_kernel


def test_float16_is_summed_wide(rng: np.random.Generator) -> None:
    x, kernel = np.full((1, 4096, 1), 0.1, np.float16), np.ones((4096, 1, 1), np.float16)
    assert nnc.conv1d(x, kernel).item() == np.float16(np.float16(0.1).astype(np.float32) * 4096)


@pytest.mark.parametrize("mode", ["deferred", "compiled", "vmap"])
def test_other_ways_to_run(rng: np.random.Generator, mode: str) -> None:
    x, kernel = rng.standard_normal((2, 9, 2)).astype(np.float32), rng.standard_normal((3, 2, 3)).astype(np.float32)

    def f(v: Any) -> Any:
        return nnc.conv_transpose1d(nnc.conv1d(v, kernel, padding="SAME"), kernel, layout="NWC")

    agrees_with_eager(mode, f, x, rtol=1e-5, atol=1e-5)


# ---- windows as channels
@pytest.mark.parametrize("layout", ["NWC", "NCHW", "NDHWC", "CHWN"])
def test_unfolded_windows(rng: np.random.Generator, device: str, layout: str) -> None:
    rank = len(layout) - 2
    x, window = rng.standard_normal(IMAGES[rank]).astype(np.float32), WINDOW[rank]
    how = (2,) * rank, ((1, 0),) * rank, (1,) * rank
    y = nnc.unfold(nnc.asarray(in_layout(x, layout)), window, strides=2, padding=how[1], layout=layout)
    counts = counted(x.shape[1:-1], window, *how)
    expected = np.zeros((len(x), *counts, *window, 4))
    for at, k, place in windows(x.shape[1:-1], counts, window, *how):
        expected[(slice(None), *at, *k)] = x[(slice(None), *place)]
    flat = expected if not layout.startswith("NC") else np.moveaxis(expected, -1, rank + 1)
    np.testing.assert_array_equal(last(y, layout), flat.reshape(len(x), *counts, -1))
    folded = nnc.fold(y, x.shape[1:-1], window, strides=2, padding=how[1], layout=layout)
    back = np.zeros(x.shape)
    for at, k, place in windows(x.shape[1:-1], counts, window, *how):
        back[(slice(None), *place)] += expected[(slice(None), *at, *k)]
    np.testing.assert_allclose(last(folded, layout), back, rtol=1e-5, atol=1e-5)


def test_gradients_of_unfolding(rng: np.random.Generator) -> None:
    gradients.check(lambda x: nnc.unfold(x, (2, 3), dilation=2, padding=1), rng.standard_normal((1, 5, 6, 2)))
    gradients.check(lambda y: nnc.fold(y, (5, 4), 2), rng.standard_normal((1, 4, 3, 8)))


ERRORS = {
    "layout of another rank": (lambda x: nnc.conv1d(x, x, layout="NHWC"), ValueError, ("'NHWC'", "'NWC'"), "conv1d"),
    "dimensions": (lambda x: nnc.conv3d(x, x), ValueError, ("float32[1,4,4,1]", "five dimensions NDHWC"), "conv3d"),
    "kernel": (lambda x: nnc.conv2d(x, nnc.ones(3)), ValueError, ("kernel float32[3]", "four dimensions"), "conv2d"),
    "strides": (lambda x: nnc.conv2d(x, x, strides=(1, 2, 3)), ValueError, ("strides (1, 2, 3)", "2 of them"),
                "conv2d"),
    "padding": (lambda x: nnc.conv2d(x, x, padding=(1, (1, 2), 3)), ValueError, ("sequence of 2",), "conv2d"),
    "too large a window": (lambda x: nnc.conv2d(x, nnc.ones((5, 1, 1, 1))), ValueError, ("does not fit in length 4",),
                           "conv2d"),
    "output padding": (lambda x: nnc.conv_transpose2d(x, x, output_padding=1), ValueError,
                       ("output_padding 1", "less than 1"), "conv_transpose2d"),
    "output padding beside SAME": (lambda x: nnc.conv_transpose2d(x, x, padding="SAME", strides=2, output_padding=1),
                                   ValueError, ("output_padding (1, 1)", "'SAME'"), "conv_transpose2d"),
    "fold": (lambda x: nnc.fold(x, (5, 5), 2), ValueError, ("1 channels are no multiple of the 4",), "fold"),
    "fold of another size": (lambda x: nnc.fold(x, (9, 9), 1), ValueError, ("does not fold",), "fold"),
    "integers": (lambda x: nnc.conv2d(nnc.ones((1, 2, 2, 1), dtype=nnc.int32), nnc.ones((1, 1, 1, 1), dtype=nnc.int32)),
                 TypeError, ("floating-point numbers, not int32",), "conv2d"),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS.values(), ids=ERRORS)
def test_one_clear_error(case: Any) -> None:
    f, kind, said, operator = case
    with fails(kind, *said, operator=operator):
        f(nnc.ones((1, 4, 4, 1)))
