"""Pools in one to three dimensions, global and adaptive ones, and max pooling undone: against plain loops."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from tests.tensors import gradients
from tests.tensors.faults import fails
from tests.tensors.sliding import LAYOUTS, in_layout, last, pooled

MAX = {1: nnc.max_pool1d, 2: nnc.max_pool2d, 3: nnc.max_pool3d}
AVG = {1: nnc.avg_pool1d, 2: nnc.avg_pool2d, 3: nnc.avg_pool3d}
IMAGES: dict[int, tuple[int, ...]] = {1: (2, 9, 3), 2: (2, 7, 8, 3), 3: (1, 5, 6, 4, 2)}
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {}, "strided": {"strides": 1}, "padded": {"padding": 1}, "dilated": {"dilation": 2, "strides": 1},
    "ceil": {"ceil_mode": True, "strides": 3}, "ceil and padded": {"ceil_mode": True, "padding": 1},
}  # fmt: skip
every_rank = pytest.mark.parametrize("rank", [1, 2, 3])
every_option = pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)


def spelled(rank: int, size: Any, options: dict[str, Any]) -> tuple[Any, ...]:
    """Window, strides, padding, dilation and counts for each axis, by PyTorch's rule for `ceil_mode`."""
    pad, step, wide = options.get("padding", 0), options.get("strides", 2), options.get("dilation", 1)
    counts = []
    for n in size:
        room = n + 2 * pad - wide - 1
        count = (math.ceil if options.get("ceil_mode") else math.floor)(room / step) + 1
        counts.append(count - (options.get("ceil_mode", False) and (count - 1) * step >= n + pad))
    return (2,) * rank, (step,) * rank, ((pad, pad),) * rank, (wide,) * rank, counts


@every_rank
@every_option
def test_maxima_and_their_places(rng: np.random.Generator, rank: int, options: dict[str, Any]) -> None:
    x = rng.standard_normal(IMAGES[rank]).astype(np.float32)
    values, places = pooled("max", x, *spelled(rank, x.shape[1:-1], options))
    for layout in LAYOUTS[rank]:
        given = in_layout(x, layout)
        y, indices = MAX[rank](given, 2, with_indices=True, layout=layout, **options)
        np.testing.assert_array_equal(last(y, layout), values)
        np.testing.assert_array_equal(last(indices, layout), places)
        assert indices.dtype == nnc.int64
        np.testing.assert_array_equal(MAX[rank](given, 2, layout=layout, **options).numpy(), y.numpy())


@every_rank
@every_option
@pytest.mark.parametrize("count_padding", [False, True])
def test_means(rng: np.random.Generator, rank: int, options: dict[str, Any], count_padding: bool) -> None:
    x = rng.standard_normal(IMAGES[rank])
    how = spelled(rank, x.shape[1:-1], options)
    total, count = pooled("avg", x, *how)
    if count_padding:  # what lies in the padding counts, what lies beyond it does not
        pad = options.get("padding", 0)
        wider = np.pad(np.ones_like(x), ((0, 0), *((pad, pad),) * rank, (0, 0)))
        count = pooled("avg", wider, how[0], how[1], ((0, 0),) * rank, how[3], how[4])[1]
    for layout in LAYOUTS[rank]:
        y = AVG[rank](in_layout(x, layout), 2, count_padding=count_padding, layout=layout, **options)
        np.testing.assert_allclose(last(y, layout), total / count, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("layout", ["NWC", "NCHW", "NDHWC"])
def test_on_every_device(rng: np.random.Generator, device: str, layout: str) -> None:
    rank = len(layout) - 2
    x = rng.standard_normal(IMAGES[rank]).astype(np.float32)
    options = {"padding": 1, "ceil_mode": True}
    how = spelled(rank, x.shape[1:-1], options)
    given = nnc.asarray(in_layout(x, layout))
    y, indices = MAX[rank](given, 2, with_indices=True, layout=layout, **options)
    values, places = pooled("max", x, *how)
    np.testing.assert_array_equal(last(y, layout), values)
    np.testing.assert_array_equal(last(indices, layout), places)
    total, count = pooled("avg", x, *how)
    mean = AVG[rank](given, 2, layout=layout, **options)
    np.testing.assert_allclose(last(mean, layout), total / count, rtol=1e-5, atol=1e-5)
    back = nnc.max_unpool(y, indices, x.shape[1:-1], layout=layout)
    expected = np.where(np.isin(np.arange(x.size).reshape(x.shape), flat(places, x.shape)), x, 0)
    np.testing.assert_array_equal(last(back, layout), expected)


def flat(places: Any, shape: tuple[int, ...]) -> Any:
    """Numbers of elements among all, from places in flattened images."""
    n, c = np.arange(shape[0]).reshape(-1, *(1,) * (places.ndim - 1)), np.arange(shape[-1])
    return (n * math.prod(shape[1:-1]) + places) * shape[-1] + c


def test_places_where_everything_is_minus_infinity() -> None:
    """Padding ties with the elements there, and is never named."""
    x = np.full((1, 4, 4, 1), -np.inf)
    y, places = nnc.max_pool2d(x, 3, strides=2, padding=1, with_indices=True)
    assert y.numpy().ravel().tolist() == [-np.inf] * 4 and places.numpy().ravel().tolist() == [0, 1, 4, 5]
    _, dilated = nnc.max_pool1d(np.full((1, 4, 1), -np.inf), 2, strides=1, padding=2, dilation=3, with_indices=True)
    assert dilated.numpy().ravel().tolist() == [1, 2, 0, 1, 2]


def test_unpooling_undoes_pooling_but_for_what_was_smaller(rng: np.random.Generator) -> None:
    x = rng.uniform(1, 2, (2, 4, 6, 3))
    y, places = nnc.max_pool2d(x, 2, with_indices=True)
    back = nnc.max_unpool(y, places, (4, 6))
    again, same = nnc.max_pool2d(back, 2, with_indices=True)
    np.testing.assert_array_equal(again.numpy(), y.numpy())
    np.testing.assert_array_equal(same.numpy(), places.numpy())
    assert np.count_nonzero(back.numpy()) == y.size


@pytest.mark.parametrize("p", [1, 2, 3.5, math.inf])
def test_norms_of_windows(rng: np.random.Generator, p: float) -> None:
    x = rng.standard_normal((1, 5, 6, 2))
    parts = np.lib.stride_tricks.sliding_window_view(x, (2, 3), (1, 2))[:, ::2, ::3]
    expected = np.linalg.norm(parts.reshape(*parts.shape[:4], -1), p, axis=-1)
    np.testing.assert_allclose(nnc.lp_pool(x, (2, 3), p=p).numpy(), expected, rtol=1e-10)


def test_a_window_of_zeros_has_no_slope() -> None:
    g = nnc.grad(lambda x: nnc.sum(nnc.lp_pool(x, 2)))(nnc.asarray([[[0.0], [0.0], [3.0], [4.0]]]))
    np.testing.assert_allclose(g.numpy().ravel(), [0, 0, 0.6, 0.8], rtol=1e-6)


# ---- global and adaptive
@pytest.mark.parametrize("layout", ["NWC", "NCHW", "CHWN", "NCDHW"])
def test_global_pools(rng: np.random.Generator, device: str, layout: str) -> None:
    rank = len(layout) - 2
    x = rng.standard_normal(IMAGES[rank]).astype(np.float32)
    given, axes = nnc.asarray(in_layout(x, layout)), tuple(range(1, rank + 1))
    for f, expected in ((nnc.global_avg_pool, x.mean(axes)), (nnc.global_max_pool, x.max(axes))):
        whole = f(given, keepdims=True, layout=layout)
        assert whole.ndim == x.ndim
        np.testing.assert_allclose(last(whole, layout).reshape(expected.shape), expected, rtol=1e-5, atol=1e-6)
        flat = f(given, layout=layout).numpy()
        np.testing.assert_allclose(flat.T if layout.endswith("N") else flat, expected, rtol=1e-5, atol=1e-6)


def adaptive(x: Any, size: Any, largest: bool) -> tuple[Any, Any]:
    """PyTorch's definition, window by window."""
    lengths = x.shape[1:-1]
    out, places = np.zeros((len(x), *size, x.shape[-1])), np.zeros((len(x), *size, x.shape[-1]), np.int64)
    numbers = np.broadcast_to(np.arange(math.prod(lengths)).reshape(1, *lengths, 1), x.shape)
    for at in np.ndindex(*size):
        cut = tuple(slice(i * n // s, math.ceil((i + 1) * n / s)) for i, n, s in zip(at, lengths, size, strict=True))
        part = x[(slice(None), *cut)].reshape(len(x), -1, x.shape[-1])
        named = numbers[(slice(None), *cut)].reshape(part.shape)
        out[(slice(None), *at)] = part.max(1) if largest else part.mean(1)
        places[(slice(None), *at)] = np.take_along_axis(named, part.argmax(1)[:, None], 1)[:, 0]
    return out, places


@pytest.mark.parametrize(("layout", "size"), [
    ("NHWC", (3, 5)), ("NCHW", (7, 2)), ("NHWC", (1, 1)), ("CHWN", (9, 3)), ("NWC", (4,)), ("NCDHW", (2, 4, 3)),
    ("NWC", (3,))])  # fmt: skip
def test_adaptive_pools(rng: np.random.Generator, layout: str, size: Any) -> None:
    x = rng.standard_normal(IMAGES[len(size)])
    given = in_layout(x, layout)
    mean = nnc.adaptive_avg_pool(given, size, layout=layout)
    np.testing.assert_allclose(last(mean, layout), adaptive(x, size, False)[0], rtol=1e-10, atol=1e-12)
    values, places = nnc.adaptive_max_pool(given, size, with_indices=True, layout=layout)
    expected = adaptive(x, size, True)
    np.testing.assert_array_equal(last(values, layout), expected[0])
    np.testing.assert_array_equal(last(places, layout), expected[1])
    np.testing.assert_array_equal(nnc.adaptive_max_pool(given, size, layout=layout).numpy(), values.numpy())


def test_adaptive_pools_on_every_device(rng: np.random.Generator, device: str) -> None:
    x = rng.standard_normal((2, 5, 6, 2)).astype(np.float32)
    given = nnc.asarray(x)
    for size in ((3, 4), (5, 2)):
        mean, largest = nnc.adaptive_avg_pool(given, size), nnc.adaptive_max_pool(given, size)
        np.testing.assert_allclose(mean.numpy(), adaptive(x, size, False)[0], rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(largest.numpy(), adaptive(x, size, True)[0])
    assert nnc.adaptive_avg_pool(given, (None, 2)).shape == (2, 5, 2, 2)


def test_the_first_of_equals_has_the_gradient() -> None:
    x = nnc.asarray([[[1.0], [2.0], [2.0], [2.0], [0.0]]])
    for f in (lambda v: nnc.max_pool1d(v, 3, strides=2), lambda v: nnc.adaptive_max_pool(v, 2)):
        assert nnc.grad(lambda v, f=f: nnc.sum(f(v)))(x).numpy().ravel().tolist() == [0, 1, 1, 0, 0]


def test_gradients(rng: np.random.Generator) -> None:
    line, plane = rng.standard_normal((2, 7, 2)), rng.standard_normal((1, 5, 6, 2))
    volume = rng.standard_normal((1, 4, 3, 4, 1))
    gradients.check(lambda x: nnc.max_pool1d(x, 3, strides=2, padding=1), line)
    gradients.check(lambda x: nnc.max_pool3d(x, 2, dilation=2, padding=1, strides=1), volume)
    gradients.check(lambda x: nnc.avg_pool2d(x, 2, ceil_mode=True, count_padding=True, padding=1, strides=2), plane)
    gradients.check(lambda x: nnc.lp_pool(x, 2, p=3), plane)
    gradients.check(lambda x: nnc.adaptive_avg_pool(x, (3, 4)), plane)
    gradients.check(lambda x: nnc.adaptive_max_pool(x, (3, 4)), plane)
    places = nnc.max_pool2d(plane, 2, with_indices=True)[1]
    gradients.check(lambda y: nnc.max_unpool(y, places, (5, 6)), rng.standard_normal(places.shape))


@pytest.mark.parametrize("f", [nnc.adaptive_avg_pool, nnc.adaptive_max_pool, lambda x, n: nnc.max_unpool(
    *nnc.max_pool2d(x, n, with_indices=True), (4, 4))], ids=["mean", "maximum", "unpooled"])  # fmt: skip
def test_what_was_recorded_for_one_size_is_not_used_for_another(f: Any) -> None:
    """Windows, and places, come from the size of the images."""
    x = nnc.asarray(np.ones((2, 4, 4, 1), np.float32))
    with nnc.deferred():
        y = f(x, 2)
    with fails(ValueError, "recorded for", "height"):
        nnc.export({"x": x}, {"y": y}, capture="constant", named_dims={"x": (None, "height", None, None)})


@pytest.mark.parametrize("f", [
    lambda x: nnc.max_pool2d(x, 2, ceil_mode=True), lambda x: nnc.avg_pool2d(x, 2, padding="SAME"),
    lambda x: nnc.conv2d(x, np.ones((2, 2, 1, 1), np.float32), padding="SAME", strides=2)])  # fmt: skip
def test_padding_that_came_out_as_none_for_this_size(f: Any) -> None:
    x = nnc.asarray(np.ones((2, 4, 4, 1), np.float32))
    with nnc.deferred():
        y = f(x)
    with fails(ValueError, "size=(4, 4) was recorded for", "height=4"):
        nnc.export({"x": x}, {"y": y}, capture="constant", named_dims={"x": (None, "height", None, None)})
    graph = nnc.export({"x": x}, {"y": y}, capture="constant", named_dims={"x": ("batch", None, None, None)})
    assert graph.compile()(x=np.ones((3, 4, 4, 1), np.float32))["y"].shape == (3, 2, 2, 1)


def test_an_adaptive_mean_of_any_number_of_images(rng: np.random.Generator) -> None:
    x = nnc.asarray(np.ones((2, 5, 4, 1), np.float32))
    with nnc.deferred():
        y = nnc.adaptive_avg_pool(x, 2)
    graph = nnc.export({"x": x}, {"y": y}, capture="constant", named_dims={"x": ("batch", None, None, None)})
    images = rng.standard_normal((3, 5, 4, 1)).astype(np.float32)
    found = graph.compile()(x=images)["y"].numpy()
    np.testing.assert_allclose(found, adaptive(images, (2, 2), False)[0], rtol=1e-5, atol=1e-6)


ERRORS = {
    "integers": (lambda x: nnc.avg_pool2d(x.astype(nnc.int32), 2), TypeError, ("not int32",), "avg_pool2d"),
    "only padding": (lambda x: nnc.max_pool2d(x, 1, padding=1), ValueError, ("see nothing of length 4",), "max_pool2d"),
    "size": (lambda x: nnc.adaptive_avg_pool(x, (1, 2, 3)), ValueError, ("size (1, 2, 3)", "2 of them"),
             "adaptive_avg_pool"),
    "no size": (lambda x: nnc.adaptive_max_pool(x, 0), ValueError, ("size 0", "at least 1"), "adaptive_max_pool"),
    "p": (lambda x: nnc.lp_pool(x, 2, p=0), ValueError, ("p 0", "greater than 0"), "lp_pool"),
    "dimensions": (lambda x: nnc.global_avg_pool(x[0, 0]), ValueError, ("float32[4,1]", "three, four or five"),
                   "global_avg_pool"),
    "indices": (lambda x: nnc.max_unpool(x, x, (8, 8)), TypeError, ("indices are float32",), "max_unpool"),
    "indices of another shape": (lambda x: nnc.max_unpool(x, nnc.zeros((1, 2, 2, 1), dtype=nnc.int64), 8), ValueError,
                                 ("should have one shape",), "max_unpool"),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS.values(), ids=ERRORS)
def test_one_clear_error(case: Any) -> None:
    f, kind, said, operator = case
    with fails(kind, *said, operator=operator):
        f(nnc.ones((1, 4, 4, 1)))
