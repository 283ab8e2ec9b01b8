"""Convolutions of images with their channels first: run with channels last, and transposed no more than is needed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn
from tests.support import to_the_bit

Case = tuple[Callable[..., nnc.Tensor], tuple[int, ...], tuple[int, ...], dict[str, Any]]
CASES: dict[str, Case] = {
    "one dimension": (nnc.conv1d, (8, 16, 50), (32, 16, 5), {"padding": "SAME", "layout": "NCW"}),
    "strides": (nnc.conv2d, (4, 16, 17, 15), (24, 16, 3, 3), {"strides": 2, "padding": (1, 1), "layout": "NCHW"}),
    "groups, dilation": (nnc.conv2d, (4, 16, 17, 15), (24, 8, 3, 3), {"dilation": 2, "groups": 2, "layout": "NCHW"}),
    "depthwise": (nnc.conv2d, (4, 32, 23, 24), (32, 1, 5, 5), {"groups": 32, "padding": "SAME", "layout": "NCHW"}),
    "few channels": (nnc.conv2d, (4, 3, 23, 24), (24, 3, 5, 5), {"padding": "SAME", "layout": "NCHW"}),
    "pointwise": (nnc.conv2d, (4, 32, 13, 14), (48, 32, 1, 1), {"layout": "NCHW"}),
    "one pixel": (nnc.conv2d, (1, 24, 1, 1), (6, 24, 1, 1), {"layout": "NCHW"}),
    "small": (nnc.conv2d, (1, 4, 5, 6), (3, 4, 3, 3), {"layout": "NCHW"}),
    "small, one output": (nnc.conv1d, (1, 16, 3), (1, 16, 1), {"layout": "NCW"}),
    "three dimensions": (nnc.conv3d, (2, 8, 6, 7, 8), (16, 8, 3, 3, 3), {"padding": "SAME", "layout": "NCDHW"}),
}  # fmt: skip


def random(*shape: int) -> nnc.Tensor:
    return nnc.asarray(np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32))


def with_gradients(case: Case) -> Callable[[nnc.Tensor, nnc.Tensor], Any]:
    """The result and both gradients of its square."""
    conv, _, _, how = case

    def both(x: nnc.Tensor, kernel: nnc.Tensor) -> Any:
        gradients = nnc.grad(lambda x, kernel: nnc.sum(conv(x, kernel, **how) ** 2), (0, 1))(x, kernel)
        return conv(x, kernel, **how), *gradients

    return both


@pytest.mark.parametrize("name", CASES)
def test_results_and_gradients_are_those_of_eager_code(name: str) -> None:
    case = CASES[name]
    x, kernel = random(*case[1]), random(*case[2])
    both = with_gradients(case)
    compiled = nnc.jit(both)
    for ours, theirs in zip(compiled(x, kernel), both(x, kernel), strict=True):
        expected = np.asarray(theirs)
        np.testing.assert_allclose(np.asarray(ours), expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())
    assert "[numpy" not in compiled.explain(x, kernel)


@pytest.mark.parametrize("name", ["strides", "pointwise"])
@to_the_bit
def test_the_bits_are_those_of_eager_code_where_that_is_promised(name: str) -> None:
    case = CASES[name]
    x, kernel = random(*case[1]), random(*case[2])
    both = with_gradients(case)
    for ours, theirs in zip(nnc.jit(both)(x, kernel), both(x, kernel), strict=True):
        np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))


class Network(nn.Module):
    """Two convolutions of images with what stands between and behind them in networks."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(8, 32, 3, padding=1, layout="NCHW"), nn.BatchNorm(32, axis=1)
        self.second = nn.Conv2d(32, 32, 3, padding=1, layout="NCHW")
        self.head = nn.Linear(64, 5)

    def forward(self, x: nnc.Tensor) -> nnc.Tensor:
        y = nnc.max_pool2d(nnc.relu(self.norm(self.first(x))), 3, strides=2, padding=1, layout="NCHW")
        mean = nnc.avg_pool2d(y, 3, strides=1, padding=1, layout="NCHW")
        y = nnc.concat([nnc.relu(self.second(y)) + y, mean], axis=1)
        return self.head(nnc.mean(y, axis=(2, 3)))  # type: ignore[no-any-return]


def test_transpositions_between_layers_cancel() -> None:
    network, x = Network(), random(4, 8, 16, 16)
    gradients = nn.value_and_grad(network, lambda x: nnc.sum(network(x) ** 2))
    compiled = nnc.jit(gradients)
    text = compiled.explain(x)
    images = [line for line in text.splitlines() if re.search(r"\bpack\b.*\[4, ", line)]
    assert len(images) == 1, "the input alone is transposed"
    loss, found = compiled(x)
    expected_loss, expected = gradients(x)
    np.testing.assert_allclose(loss.item(), expected_loss.item(), rtol=1e-4)
    for name, gradient in expected.items():
        np.testing.assert_allclose(np.asarray(found[name]), np.asarray(gradient), rtol=1e-3, atol=1e-4, err_msg=name)


def test_what_is_reduced_reshaped_or_mixed_with_other_images_is_right() -> None:
    x, kernel, other = random(4, 8, 12, 13), random(32, 8, 3, 3), random(4, 32, 10, 11)

    def f(x: nnc.Tensor, kernel: nnc.Tensor, other: nnc.Tensor) -> Any:
        y = nnc.conv2d(x, kernel, layout="NCHW")
        return {
            "mixed": y * other + other[:, :1], "rows": nnc.sum(y, axis=2),
            "columns": nnc.max(y, axis=(0, 3), keepdims=True),
            "flat": nnc.reshape(y + 1.0, (4, -1)), "turned": nnc.permute_dims(nnc.exp(-y * y), (3, 0, 2, 1)),
            "last": nnc.permute_dims(y, (0, 2, 3, 1)) * 2.0, "wider": nnc.reshape(nnc.arange(2.0), (2, 1, 1, 1, 1)) * y,
            "by channel": y * nnc.arange(32.0)[:, None, None], "indices": nnc.argmax(y, axis=1),
            "all": nnc.sum(y), "joined": nnc.concat([y, other], axis=1), "twice": nnc.concat([y, y * 2.0], axis=2)}

    found, expected = nnc.jit(f)(x, kernel, other), f(x, kernel, other)
    for name, value in expected.items():
        np.testing.assert_allclose(np.asarray(found[name]), np.asarray(value), rtol=1e-3, atol=1e-3, err_msg=name)


def resized(x: nnc.Tensor, first: nnc.Tensor, second: nnc.Tensor) -> nnc.Tensor:
    """What pyramids do between convolutions."""
    y = nnc.relu(nnc.conv2d(x, first, layout="NCHW"))
    large = nnc.resize(y[:, ::2], (20, 25), layout="NCHW") + nnc.upsample(y, 2, layout="NCHW")[:, 16:, :, 1:]
    return nnc.conv2d(nnc.pad(large, ((0, 0), (0, 0), (2, 1), (0, 3)), value=0.5), second, layout="NCHW")


@to_the_bit
def test_images_are_resized_padded_and_cut_as_they_lie() -> None:
    x, first, second = random(2, 8, 12, 15), random(32, 8, 3, 3), random(24, 16, 3, 3)
    compiled, expected = nnc.jit(resized), resized(x, first, second).numpy()
    np.testing.assert_array_equal(compiled(x, first, second).numpy(), expected)
    commands = compiled.explain(x, first, second)
    assert len(re.findall(r"\bpack\b", commands)) == 3, "the input and the kernels alone are transposed"


def test_gradients_of_what_is_resized() -> None:
    arrays = random(2, 8, 12, 15), random(32, 8, 3, 3), random(24, 16, 3, 3)
    gradients = nnc.grad(lambda *arrays: nnc.sum(resized(*arrays) ** 2), (0, 1, 2))
    for found, expected in zip(nnc.jit(gradients)(*arrays), gradients(*arrays), strict=True):
        wanted = expected.numpy()
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-4, atol=1e-5 * np.abs(wanted).max())
