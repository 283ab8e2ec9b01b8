"""Images read at the places of a grid: against plain loops."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.ndimage

import nnc_core as nnc
from tests.tensors import gradients
from tests.tensors.cubic import keys
from tests.tensors.faults import fails
from tests.tensors.sliding import in_layout, last


def pixel(plane: Any, place: Any, padding: str, align: bool) -> Any:
    """An element by whole numbers, inside or not."""
    place = list(place)
    for axis, n in enumerate(plane.shape[:-1]):
        if padding == "border":
            place[axis] = min(max(place[axis], 0), n - 1)
        elif padding == "reflection":
            place[axis] = int(mirrored(place[axis], n, align))
        if not 0 <= place[axis] < n:
            return np.zeros(plane.shape[-1])
    return plane[tuple(place)]


def mirrored(p: float, n: int, align: bool) -> float:
    low, high = (0, n - 1) if align else (-0.5, n - 0.5)
    if low == high:
        return 0
    while not low <= p <= high:
        p = 2 * low - p if p < low else 2 * high - p
    return min(max(p, 0), n - 1)


def sampled(x: Any, grid: Any, method: str, padding: str, align: bool) -> Any:
    """PyTorch's definition, sample by sample, with channels last."""
    rank = x.ndim - 2
    out = np.zeros((*grid.shape[:-1], x.shape[-1]))
    for at in np.ndindex(*grid.shape[:-1]):
        plane, place = x[at[0]], []
        for axis, n in enumerate(x.shape[1:-1]):
            g = grid[at][rank - 1 - axis]
            p = (g + 1) / 2 * (n - 1) if align else ((g + 1) * n - 1) / 2
            if method != "cubic" and padding == "border":
                p = min(max(p, 0), n - 1)
            elif method != "cubic" and padding == "reflection":
                p = mirrored(p, n, align)
            place.append(p)
        if method == "nearest":
            out[at] = pixel(plane, [round(p) for p in place], "zeros", align)
            continue
        offsets = range(2) if method == "linear" else range(-1, 3)
        for k in itertools.product(offsets, repeat=rank):
            low = [math.floor(p) for p in place]
            weight = math.prod((1 - abs(p - a - b)) if method == "linear" else keys(p - a - b, -0.75)
                               for p, a, b in zip(place, low, k, strict=True))
            beside = "zeros" if method == "linear" else padding
            out[at] += weight * pixel(plane, [a + b for a, b in zip(low, k, strict=True)], beside, align)
    return out


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("method", ["nearest", "linear", "cubic"])
def test_images_read_at_a_grid(rng: np.random.Generator, method: str, padding: str, align: bool) -> None:
    for layout, shape, size in (("NHWC", (2, 4, 5, 2), (3, 4)), ("NCHW", (1, 3, 4, 2), (5, 2)),
                                ("NCW", (2, 6, 1), (7,))):
        x, grid = rng.standard_normal(shape), rng.uniform(-1.9, 1.9, (shape[0], *size, len(size)))
        found = nnc.grid_sample(in_layout(x, layout), grid, method=method, padding_mode=padding, align_corners=align,
                                layout=layout)  # fmt: skip
        np.testing.assert_allclose(last(found, layout), sampled(x, grid, method, padding, align), rtol=1e-9, atol=1e-11)


def test_volumes_on_every_device(rng: np.random.Generator, device: str) -> None:
    x, grid = rng.standard_normal((1, 3, 4, 2, 2)), rng.uniform(-1.3, 1.3, (1, 2, 3, 2, 3))
    narrow = [nnc.asarray(a.astype(np.float32)) for a in (x, grid)]
    found = nnc.grid_sample(*narrow, padding_mode="border")
    np.testing.assert_allclose(found.numpy(), sampled(x, grid, "linear", "border", False), rtol=1e-4, atol=1e-4)


def test_pytorchs_words(rng: np.random.Generator) -> None:
    x, grid = rng.standard_normal((1, 3, 4, 2)), rng.uniform(-1.3, 1.3, (1, 2, 3, 2))
    for mode, method in (("bilinear", "linear"), ("bicubic", "cubic"), ("nearest", "nearest")):
        found = nnc.grid_sample(x, grid, mode=mode, padding_mode="reflection")
        assert (found == nnc.grid_sample(x, grid, method=method, padding="reflection")).all()


def test_a_grid_is_scipys_map_coordinates(rng: np.random.Generator) -> None:
    x, places = rng.standard_normal((6, 8)), rng.uniform(0, 5, (2, 10))
    grid = np.stack([places[1] / 7 * 2 - 1, places[0] / 5 * 2 - 1], -1)[None, None]
    found = nnc.grid_sample(x[None, :, :, None], grid, align_corners=True).numpy().ravel()
    np.testing.assert_allclose(found, scipy.ndimage.map_coordinates(x, places, order=1), rtol=1e-10)


def test_halves_go_to_even_pixels_and_nan_to_nowhere() -> None:
    x = np.arange(5.0).reshape(1, 5, 1)
    grid = (np.array([0.5, 1.5, 2.5, 3.5, np.nan]) / 2 - 1).reshape(1, 5, 1)
    found = nnc.grid_sample(x, grid, method="nearest", align_corners=True).numpy().ravel()
    np.testing.assert_array_equal(found, [0, 2, 2, 4, 0])
    assert np.isnan(nnc.grid_sample(x, grid, align_corners=True).numpy().ravel()[4])


def test_gradients_of_sampling(rng: np.random.Generator) -> None:
    x, grid = rng.standard_normal((1, 4, 5, 1)), rng.uniform(-1.2, 1.2, (1, 2, 3, 2))
    for padding in ("zeros", "border", "reflection"):
        f = partial(nnc.grid_sample, padding_mode=padding)
        gradients.check(f, x, grid, second=padding == "border")
    gradients.check(lambda v, g: nnc.grid_sample(v, g, method="cubic"), x, grid)
    gradients.check(lambda v: nnc.grid_sample(v, nnc.asarray(grid), method="nearest"), x, second=False)
    theta = rng.standard_normal((1, 2, 3))
    gradients.check(lambda t: nnc.grid_sample(nnc.asarray(x), nnc.affine_grid(t, (3, 2))), theta)


@pytest.mark.parametrize("align", [False, True])
def test_affine_grids(rng: np.random.Generator, align: bool) -> None:
    theta = rng.standard_normal((2, 3, 4))
    found = nnc.affine_grid(theta, (2, 3, 1), align_corners=align).numpy()
    assert found.shape == (2, 2, 3, 1, 3)
    for n, d, h, w in np.ndindex(2, 2, 3, 1):
        corners = [(i / (k - 1) * 2 - 1 if k > 1 else 0) if align else (2 * i + 1) / k - 1
                   for i, k in ((w, 1), (h, 3), (d, 2))]  # fmt: skip
        np.testing.assert_allclose(found[n, d, h, w], theta[n] @ [*corners, 1], rtol=1e-10, atol=1e-12)


def test_the_affine_grid_of_the_identity_reads_the_image_itself(rng: np.random.Generator, device: str) -> None:
    x = rng.standard_normal((2, 4, 5, 3)).astype(np.float32)
    theta = nnc.asarray(np.broadcast_to(np.eye(2, 3, dtype=np.float32), (2, 2, 3)))
    for align in (False, True):
        found = nnc.grid_sample(nnc.asarray(x), nnc.affine_grid(theta, (4, 5), align_corners=align),
                                align_corners=align)  # fmt: skip
        np.testing.assert_allclose(found.numpy(), x, rtol=1e-4, atol=1e-5)


X = np.ones((1, 4, 4, 2), np.float32)
ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], tuple[str, ...], str]] = {
    "grid": (lambda: nnc.grid_sample(X, np.ones((1, 2, 2, 3), np.float32)), ValueError,
             ("float32[1,2,2,3]", "(1, size, size, 2)"), "grid_sample"),
    "padding": (lambda: nnc.grid_sample(X, X, padding_mode="wrap"), ValueError, ("'wrap'", "'border'"), "grid_sample"),
    "theta": (lambda: nnc.affine_grid(np.eye(3), 4), ValueError, ("float64[3,3]", "(batch, d, d + 1)"), "affine_grid"),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS.values(), ids=ERRORS)
def test_one_clear_error(case: Any) -> None:
    f, kind, said, operator = case
    with fails(kind, *said, operator=operator):
        f()
