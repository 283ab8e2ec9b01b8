"""Each layer against NumPy, SciPy or loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.signal import correlate2d
from scipy.special import expit, log_softmax, softmax

import nnc_core as nnc
from nnc_core import nn
from nnc_core.base.errors import AttributeValueError, AxisError, DTypeError, ShapeError
from tests.support import near


def normal(rng: np.random.Generator, *shape: int) -> np.ndarray[Any, Any]:
    return rng.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4)])
def test_linear(rng: np.random.Generator, shape: tuple[int, ...], bias: bool) -> None:
    layer = nn.Linear(4, 5, bias)
    if layer.bias is not None:
        layer.bias.write(nnc.asarray(normal(rng, 5)))
    x, state = normal(rng, *shape), layer.state_dict()
    near(layer(nnc.asarray(x)), np.einsum("...i,ij->...j", x, state["weight"]) + state.get("bias", np.float32(0)))


def convolved(x: Any, kernel: Any, strides: Any, dilation: Any, groups: int, padding: Any) -> Any:
    """NHWC by SciPy's correlate2d, channel by channel."""
    height, width, taken, out = kernel.shape
    spread = np.zeros(((height - 1) * dilation[0] + 1, (width - 1) * dilation[1] + 1, taken, out))
    spread[:: dilation[0], :: dilation[1]] = kernel
    padded = np.pad(x, ((0, 0), *padding, (0, 0)))
    each = [[sum(correlate2d(image[..., o * groups // out * taken + i], spread[..., i, o], "valid")
                 for i in range(taken)) for o in range(out)] for image in padded]
    return np.moveaxis(np.array(each), 1, -1)[:, :: strides[0], :: strides[1]]


@pytest.mark.parametrize("options, padding", [
    ({}, ((0, 0), (0, 0))),
    ({"padding": "SAME"}, ((1, 1), (0, 1))),
    ({"padding": "SAME", "strides": 2}, ((1, 1), (0, 0))),
    ({"padding": 1, "strides": (1, 2)}, ((1, 1), (1, 1))),
    ({"padding": ((2, 0), (0, 1)), "dilation": (2, 1)}, ((2, 0), (0, 1))),
    ({"groups": 2, "bias": False}, ((0, 0), (0, 0))),
])
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_conv2d(rng: np.random.Generator, layout: str, options: dict[str, Any], padding: Any) -> None:
    layer = nn.Conv2d(4, 6, (3, 2), layout=layout, **options)
    if layer.bias is not None:
        layer.bias.write(nnc.asarray(normal(rng, 6)))
    state, x = layer.state_dict(), normal(rng, 2, 7, 6, 4)
    kernel = state["kernel"] if layout == "NHWC" else state["kernel"].transpose(2, 3, 1, 0)
    expected = convolved(x, kernel, layer.strides, layer.dilation, layer.groups, padding) + state.get("bias", 0)
    if layout == "NHWC":
        near(layer(nnc.asarray(x)), expected)
    else:
        near(layer(nnc.asarray(x.transpose(0, 3, 1, 2))), expected.transpose(0, 3, 1, 2))


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_pools(rng: np.random.Generator, layout: str) -> None:
    x = normal(rng, 2, 5, 6, 3)
    given = nnc.asarray(x if layout == "NHWC" else x.transpose(0, 3, 1, 2))
    windows = x[:, :4].reshape(2, 2, 2, 3, 2, 3)
    back = (0, 1, 2, 3) if layout == "NHWC" else (0, 3, 1, 2)
    near(nn.MaxPool2d(2, layout=layout)(given), windows.max((2, 4)).transpose(back))
    near(nn.AvgPool2d(2, layout=layout)(given), windows.mean((2, 4)).transpose(back))
    overlapping = np.lib.stride_tricks.sliding_window_view(x, (3, 2), (1, 2))[:, ::2]
    near(nn.MaxPool2d((3, 2), strides=(2, 1), layout=layout)(given), overlapping.max((-2, -1)).transpose(back))


def test_avg_pool_counts_padding_only_if_asked() -> None:
    x = nnc.ones((1, 2, 2, 1))
    near(nn.AvgPool2d(2, strides=1, padding=1)(x)[:, 0, 0, 0], [1.0])
    near(nn.AvgPool2d(2, strides=1, padding=1, count_padding=True)(x)[:, 0, 0, 0], [0.25])


def test_layers_without_weights(rng: np.random.Generator) -> None:
    x = normal(rng, 3, 4, 2)
    given = nnc.asarray(x)
    near(nn.ReLU()(given), np.where(x > 0, x, 0))
    near(nn.Tanh()(given), np.tanh(x))
    near(nn.Sigmoid()(given), expit(x))
    near(nn.Softmax(axis=1)(given), softmax(x, axis=1))
    near(nn.LogSoftmax()(given), log_softmax(x, axis=-1))
    near(nn.Flatten()(given), x.reshape(3, 8))
    near(nn.Flatten(0)(given), x.reshape(24))
    near(nn.Lambda(lambda a, b: a - b)(given, given), np.zeros_like(x))


def test_embedding(rng: np.random.Generator) -> None:
    layer = nn.Embedding(7, 3)
    indices = rng.integers(0, 7, (2, 4))
    near(layer(nnc.asarray(indices)), layer.state_dict()["weight"][indices])


def test_lstm_cell(rng: np.random.Generator) -> None:
    """Against the published equations, one gate after another, in PyTorch's order i f g o."""
    cell = nn.LSTMCell(3, 2)
    s = cell.state_dict()
    weight, bias = np.concatenate([s["input_weight"], s["hidden_weight"]]), s["input_bias"] + s["hidden_bias"]
    xs, state = normal(rng, 3, 4, 3), cell.initial_state(4)
    h = c = np.zeros((4, 2), np.float32)
    for x in xs:
        state = cell(nnc.asarray(x), state)
        i, f, g, o = (x @ weight[:3, k : k + 2] + h @ weight[3:, k : k + 2] + bias[k : k + 2] for k in (0, 2, 4, 6))
        c = expit(f) * c + expit(i) * np.tanh(g)
        h = expit(o) * np.tanh(c)
        near(state[0], h)
        near(state[1], c)


def test_sequential_goes_through_its_layers() -> None:
    model = nn.Sequential(lambda x: x + 1, nn.ReLU())
    model.append(lambda x: x * 2)
    near(model(nnc.asarray([-3.0, 1.0])), [0.0, 4.0])
    assert len(model) == 3
    assert model[-1] is list(model)[2]
    with pytest.raises(IndexError, match="module 3 of 3"):
        model[3]


@pytest.mark.parametrize("make, x, error, words", [
    (lambda: nn.Linear(3, 2), (4, 5), ShapeError, r"Linear\(3, 2\): the input is float32\[4,5\], .* should be 3"),
    (lambda: nn.Linear(3, 2), (), ShapeError, r"Linear\(3, 2\)"),
    (lambda: nn.Conv2d(3, 2, 3), (1, 5, 5, 4), ShapeError,
     r"Conv2d\(3, 2, \(3, 3\)\): the input is float32\[1,5,5,4\], its channels \(axis 3\) should be 3, not 4"),
    (lambda: nn.Conv2d(3, 2, 3), (5, 5, 3), ShapeError, "four dimensions"),
    (lambda: nn.Conv2d(3, 2, 7), (1, 5, 5, 3), ShapeError, "does not fit"),
    (lambda: nn.Flatten(2), (3, 4), AxisError, r"Flatten\(start=2\)"),
    (lambda: nn.Embedding(3, 2), (4,), DTypeError, "not integers"),
    (lambda: nn.Softmax(3), (4,), AxisError, "softmax"),
])
def test_wrong_input_is_one_clear_error(make: Any, x: tuple[int, ...], error: type[Exception], words: str) -> None:
    layer = make()
    with pytest.raises(error, match=words):
        layer(nnc.ones(x))


def test_lstm_wants_one_batch() -> None:
    cell = nn.LSTMCell(3, 2)
    with pytest.raises(ShapeError, match=r"LSTMCell\(3, 2\): h is float32\[5,2\]"):
        cell(nnc.ones((4, 3)), cell.initial_state(5))


@pytest.mark.parametrize("make, words", [
    (lambda: nn.Linear(0, 2), "in_features is 0"),
    (lambda: nn.Linear(2, True), "out_features is True"),
    (lambda: nn.Conv2d(3, 4, 3, groups=2), "do not divide into 2 groups"),
    (lambda: nn.Conv2d(3, 4, (3, 3, 3)), "kernel_size"),
    (lambda: nn.Conv2d(3, 4, 3, layout="CHWN"), "layout 'CHWN'"),
    (lambda: nn.MaxPool2d(0), "window"),
    (lambda: nn.Dropout(1.0), "rate is 1.0"),
])
def test_wrong_sizes_are_refused_at_once(make: Any, words: str) -> None:
    with pytest.raises(AttributeValueError, match=words):
        make()
