"""Convolutions, their transposes and pools, in one to three dimensions and both layouts, against plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn
from tests.devices import device, parametrise
from tests.tensors.sliding import correlated, in_layout, kernel_in, last, pooled, spread

__all__ = ["device"]
pytest_generate_tests = parametrise
SIZES = {1: (7,), 2: (6, 5), 3: (4, 3, 5)}
LAYOUTS = {1: ("NWC", "NCW"), 2: ("NHWC", "NCHW"), 3: ("NDHWC", "NCDHW")}
CASES = [(rank, layout) for rank in SIZES for layout in LAYOUTS[rank]]


def images(rng: np.random.Generator, rank: int, channels: int = 4) -> Any:
    return rng.normal(size=(2, *SIZES[rank], channels)).astype(np.float32)


def near(actual: nnc.Tensor, expected: Any, layout: str = "NC") -> None:
    found = actual.numpy() if layout == "NC" else last(actual, layout)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def filled(layer: Any, rng: np.random.Generator) -> Any:
    """The kernel of a convolution, (window, I, O); its bias is drawn."""
    if layer.bias is not None:
        layer.bias.write(nnc.asarray(rng.normal(size=layer.bias.spec.shape).astype(np.float32)))
    kernel = layer.state_dict()["kernel"]
    return kernel if layer.layout.endswith("C") else np.moveaxis(kernel, (0, 1), (-1, -2))


CONVOLUTIONS: list[tuple[dict[str, Any], Any]] = [
    ({}, 0),
    ({"groups": 2, "strides": 2, "padding": 1}, 1),
    ({"groups": 4, "dilation": 2, "padding": 2, "bias": False}, 2),
]


@pytest.mark.parametrize("options, padding", CONVOLUTIONS, ids=["plain", "groups, strides", "depthwise, dilated"])
@pytest.mark.parametrize("rank, layout", CASES)
def test_convolution(rank: int, layout: str, options: dict[str, Any], padding: int, rng: np.random.Generator) -> None:
    kind = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[rank - 1]
    layer = kind(4, 8, 2 if rank == 3 else 3, layout=layout, **options)
    kernel, x = filled(layer, rng), images(rng, rank)
    expected = correlated(x, kernel, layer.strides, ((padding, padding),) * rank, layer.dilation, layer.groups)
    near(layer(nnc.asarray(in_layout(x, layout))), expected + layer.state_dict().get("bias", 0), layout)


@pytest.mark.parametrize("options, padding, more", [
    ({}, 0, 0),
    ({"groups": 2, "strides": 2, "padding": 1, "output_padding": 1}, 1, 1),
    ({"groups": 4, "dilation": 2, "bias": False}, 0, 0),
], ids=["plain", "groups, strides", "depthwise, dilated"])
@pytest.mark.parametrize("rank, layout", CASES)
def test_transposed_convolution(rank: int, layout: str, options: dict[str, Any], padding: int, more: int,
                                rng: np.random.Generator) -> None:
    kind = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)[rank - 1]
    layer = kind(4, 8, 2 if rank == 3 else 3, layout=layout, **options)
    kernel, x = filled(layer, rng), images(rng, rank)
    expected = spread(x, kernel, layer.strides, ((padding, padding),) * rank, layer.dilation, (more,) * rank,
                      layer.groups)
    near(layer(nnc.asarray(in_layout(x, layout))), expected + layer.state_dict().get("bias", 0), layout)


def test_a_transpose_undoes_the_size_of_its_convolution(rng: np.random.Generator) -> None:
    down, up = nn.Conv2d(3, 5, 3, 2, "SAME"), nn.ConvTranspose2d(5, 3, 3, 2, 1)
    for size in ((8, 8), (7, 5)):
        y = down(nnc.asarray(rng.normal(size=(1, *size, 3)).astype(np.float32)))
        assert up(y, size).shape == (1, *size, 3)
    same = nn.ConvTranspose2d(5, 3, 3, 2, "SAME")
    assert same(nnc.ones((1, 4, 3, 5))).shape == (1, 8, 6, 3)


def test_kernels_are_shaped_as_said() -> None:
    shapes = {kind: layer.state_dict()["kernel"].shape for kind, layer in {
        "NWC": nn.Conv1d(4, 6, 3, groups=2), "NCW": nn.Conv1d(4, 6, 3, groups=2, layout="NCW"),
        "NDHWC": nn.Conv3d(2, 3, (1, 2, 3)), "NCDHW": nn.Conv3d(2, 3, (1, 2, 3), layout="NCDHW"),
        "transposed": nn.ConvTranspose2d(4, 6, 3, groups=2),
        "transposed NCHW": nn.ConvTranspose2d(4, 6, 3, groups=2, layout="NCHW")}.items()}
    assert shapes == {"NWC": (3, 2, 6), "NCW": (6, 2, 3), "NDHWC": (1, 2, 3, 2, 3), "NCDHW": (3, 2, 1, 2, 3),
                      "transposed": (3, 3, 3, 4), "transposed NCHW": (4, 3, 3, 3)}
    kernel = np.arange(2 * 3 * 5 * 7).reshape(2, 3, 5, 7)
    assert kernel_in(kernel, "NCHW").shape == (7, 5, 2, 3), "the loops mean the same"


POOLINGS: list[tuple[dict[str, Any], int]] = [({}, 0), ({"strides": 1, "padding": 1}, 1), ({"dilation": 2}, 0)]


@pytest.mark.parametrize("options, padding", POOLINGS, ids=["plain", "padded", "dilated"])
@pytest.mark.parametrize("rank, layout", CASES)
def test_pools(rank: int, layout: str, options: dict[str, Any], padding: int, rng: np.random.Generator) -> None:
    x = images(rng, rank)
    given, pads = nnc.asarray(in_layout(x, layout)), ((padding, padding),) * rank
    greatest, mean, norm = ((nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d)[rank - 1],
                            (nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d)[rank - 1],
                            (nn.LPPool1d, nn.LPPool2d, nn.LPPool3d)[rank - 1])
    layer = greatest(2, layout=layout, with_indices=True, **options)
    how = (layer.window, layer.strides, pads, layer.dilation)
    y, places = layer(given)
    values, wanted = pooled("max", x, *how)
    near(y, values, layout)
    np.testing.assert_array_equal(last(places, layout), wanted)
    near(greatest(2, layout=layout, **options)(given), values, layout)
    sums, counts = pooled("sum", x, *how)
    near(mean(2, layout=layout, **options)(given), sums / counts, layout)
    near(mean(2, layout=layout, count_padding=True, **options)(given), sums / 2**rank, layout)
    squares, _ = pooled("squares", x, *how)
    near(norm(2, layout=layout, **options)(given), np.sqrt(squares), layout)


def test_a_last_window_that_is_cut_off(rng: np.random.Generator) -> None:
    x = images(rng, 2)
    how, counts = ((3, 2), (2, 2), ((0, 0), (0, 0)), (1, 1)), (3, 3)
    sums, inside = pooled("sum", x, *how, counts=counts)
    given = nnc.asarray(x)
    near(nn.AvgPool2d((3, 2), 2, ceil_mode=True)(given), sums / inside)
    near(nn.MaxPool2d((3, 2), 2, ceil_mode=True)(given), pooled("max", x, *how, counts=counts)[0])
    near(nn.LPPool2d((3, 2), 2, 2, ceil_mode=True)(given), np.sqrt(pooled("squares", x, *how, counts=counts)[0]))
    assert nn.AvgPool2d((3, 2), 2)(given).shape == (2, 2, 2, 4)


@pytest.mark.filterwarnings("ignore:scatter has no kernel")
@pytest.mark.parametrize("rank, layout", CASES)
def test_max_pooling_undone(rank: int, layout: str, rng: np.random.Generator) -> None:
    x = images(rng, rank)
    pool = (nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d)[rank - 1](2, layout=layout, with_indices=True)
    undo = (nn.MaxUnpool1d, nn.MaxUnpool2d, nn.MaxUnpool3d)[rank - 1](layout)
    back = last(undo(*pool(nnc.asarray(in_layout(x, layout))), SIZES[rank]), layout)
    _, places = pooled("max", x, (2,) * rank, (2,) * rank, ((0, 0),) * rank, (1,) * rank)
    expected = np.zeros((2, int(np.prod(SIZES[rank])), 4))
    flat = np.reshape(x, expected.shape)
    at = places.reshape(2, -1, 4)
    np.put_along_axis(expected, at, np.take_along_axis(flat, at, 1), 1)
    np.testing.assert_allclose(back, expected.reshape(x.shape), rtol=1e-6)


@pytest.mark.parametrize("rank, layout", CASES)
def test_pools_over_everything(rank: int, layout: str, rng: np.random.Generator) -> None:
    x, axes = images(rng, rank), tuple(range(1, rank + 1))
    given = nnc.asarray(in_layout(x, layout))
    mean = (nn.GlobalAvgPool1d, nn.GlobalAvgPool2d, nn.GlobalAvgPool3d)[rank - 1]
    greatest = (nn.GlobalMaxPool1d, nn.GlobalMaxPool2d, nn.GlobalMaxPool3d)[rank - 1]
    near(mean(layout=layout)(given), x.mean(axes))
    near(greatest(layout=layout)(given), x.max(axes))
    near(mean(True, layout)(given), x.mean(axes, keepdims=True), layout)
    near(greatest(True, layout)(given), x.max(axes, keepdims=True), layout)


def even_windows(x: Any, size: tuple[int, ...], reduce: Any) -> Any:
    """Window i of n over a length L from floor(i * L / n) up to ceil((i + 1) * L / n), axis by axis."""
    for axis, n in enumerate(size, 1):
        length = x.shape[axis]
        parts = [np.take(x, range(i * length // n, -(-(i + 1) * length // n)), axis) for i in range(n)]
        x = np.concatenate([reduce(part, axis) for part in parts], axis)
    return x


@pytest.mark.parametrize("rank, layout", CASES)
def test_pools_over_as_many_windows_as_asked_for(rank: int, layout: str, rng: np.random.Generator) -> None:
    x = images(rng, rank)
    given = nnc.asarray(in_layout(x, layout))
    mean = (nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d)[rank - 1]
    greatest = (nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d, nn.AdaptiveMaxPool3d)[rank - 1]
    near(mean(3, layout)(given), even_windows(x, (3,) * rank, lambda p, a: p.mean(a, keepdims=True)), layout)
    near(greatest(2, layout)(given), even_windows(x, (2,) * rank, lambda p, a: p.max(a, keepdims=True)), layout)
    kept = (2, *[None] * (rank - 1))
    wanted = even_windows(x, (2, *SIZES[rank][1:]), lambda p, a: p.max(a, keepdims=True))
    y, places = greatest(kept, layout, with_indices=True)(given)
    near(y, wanted, layout)
    flat = np.reshape(x, (2, -1, 4))
    np.testing.assert_array_equal(np.take_along_axis(flat, last(places, layout).reshape(2, -1, 4), 1).ravel(),
                                  last(y, layout).ravel())
    assert last(mean(None, layout)(given), layout).shape == x.shape
