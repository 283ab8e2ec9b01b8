"""Constructors: what they refuse, how layers show themselves, dtypes, and what survives a copy."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn
from nnc_core.base.errors import AttributeValueError, DTypeError, ShapeError
from tests.semantics.feedforward import FEEDFORWARD


@pytest.mark.parametrize("make, words", [
    (lambda: nn.Conv1d(0, 2, 3), "Conv1d: in_channels is 0, expected an integer of at least 1"),
    (lambda: nn.Conv2d(1, 2, 3.0), "Conv2d: kernel_size is 3.0, expected an integer or 2 of them"),
    (lambda: nn.Conv2d(1, 2, (3, 0)), r"Conv2d: kernel_size\[1\] is 0"),
    (lambda: nn.Conv1d(1, 2, 0), "Conv1d: kernel_size is 0"),
    (lambda: nn.Conv2d(1, 2, 3, strides=0), r"strides\[0\] is 0"),
    (lambda: nn.Conv2d(1, 2, 3, padding="half"), "Conv2d: padding is 'half', expected 'SAME', 'VALID'"),
    (lambda: nn.Conv2d(1, 2, 3, padding=(1, 2, 3)), r"padding is \(1, 2, 3\)"),
    (lambda: nn.Conv2d(1, 2, 3, padding=None), "padding is None"),
    (lambda: nn.Conv3d(1, 2, 3, layout="NHWC"), "Conv3d: layout 'NHWC' is none of NDHWC, NCDHW"),
    (lambda: nn.Conv2d(4, 6, 3, groups=4), "4 and 6 channels do not divide into 4 groups"),
    (lambda: nn.ConvTranspose2d(4, 6, 3, 2, output_padding=2), "output_padding 2 should be less than 2"),
    (lambda: nn.ConvTranspose2d(4, 6, 3, 2, output_padding=-1), r"output_padding\[0\] is -1"),
    (lambda: nn.MaxPool2d((2, 2, 2)), "MaxPool2d: window is"),
    (lambda: nn.AvgPool1d(2, padding="FULL"), "AvgPool1d: padding is 'FULL'"),
    (lambda: nn.LPPool2d(2, 0), "LPPool2d: p is 0"),
    (lambda: nn.AdaptiveAvgPool2d((0, None)), r"AdaptiveAvgPool2d: size\[0\] is 0"),
    (lambda: nn.AdaptiveMaxPool2d((1, 2, 3)), "AdaptiveMaxPool2d: size is"),
    (lambda: nn.BatchNorm(0), "BatchNorm: channels is 0"),
    (lambda: nn.BatchNorm(3, momentum=1.5), "BatchNorm: momentum is 1.5"),
    (lambda: nn.BatchNorm(3, epsilon=-1), "BatchNorm: epsilon is -1"),
    (lambda: nn.LayerNorm(()), "LayerNorm: shape is empty"),
    (lambda: nn.GroupNorm(4, 6), "GroupNorm: 6 channels do not divide into 4 groups"),
    (lambda: nn.LocalResponseNorm(0), "LocalResponseNorm: size is 0"),
    (lambda: nn.GaussianNoise(-1.0), "GaussianNoise: deviation is -1.0"),
    (lambda: nn.Embedding(3, 2, 3), "Embedding: padding_index 3 is none of 3 rows"),
    (lambda: nn.Reshape((-1, -1)), "Reshape: shape is"),
    (lambda: nn.Unflatten(1, ()), "Unflatten: shape is"),
    (lambda: nn.Permute((0, 0)), "Permute: axes"),
    (lambda: nn.Slice("a"), "Slice: 'a' is no index"),
    (lambda: nn.Chunk(0), "Chunk: count is 0"),
    (lambda: nn.Pad(1, "mirror"), "Pad: mode 'mirror' is none of constant"),
    (lambda: nn.Padding2d(-1), "Padding2d: width is -1"),
    (lambda: nn.Padding2d("SAME"), "Padding2d: width is 'SAME'"),
    (lambda: nn.Padding1d(1, "edge", 2.0), "Padding1d: value 2.0 goes with the mode 'constant'"),
    (lambda: nn.UpSampling2d(0), "UpSampling2d: scale is 0"),
    (lambda: nn.UpSampling2d(method="bilinear"), "method 'bilinear' is none of nearest"),
    (lambda: nn.DepthToSpace(2, "RDC"), "DepthToSpace: mode 'RDC'"),
    (lambda: nn.Clamp(2, 1), "Clamp: from 2 to 1"),
])
def test_settings_that_mean_nothing(make: Any, words: str) -> None:
    with pytest.raises(AttributeValueError, match=words):
        make()


@pytest.mark.parametrize("make", [nn.BatchNorm, nn.LayerNorm, nn.PReLU])
def test_weights_are_floats(make: Any) -> None:
    with pytest.raises(DTypeError, match="weights of dtype int32, expected floats"):
        make(3, dtype="int32")


@pytest.mark.parametrize("make, shape, words", [
    (lambda: nn.Conv1d(3, 2, 3, layout="NCW"), (2, 5, 7), r"Conv1d\(3, 2, \(3,\), layout='NCW'\): the input is "
     r"float32\[2,5,7\], its channels \(axis 1\) should be 3, not 5"),
    (lambda: nn.ConvTranspose2d(3, 2, 3), (2, 4, 4, 5), r"ConvTranspose2d\(3, 2, \(3, 3\)\): .* should be 3, not 5"),
    (lambda: nn.Conv3d(3, 2, 3), (2, 4, 4, 3), r"Conv3d\(.*\): .*expected five dimensions, NDHWC"),
    (lambda: nn.MaxPool1d(2), (2, 4, 4, 3), r"MaxPool1d\(\(2,\)\): .*expected three dimensions, NWC"),
    (lambda: nn.GlobalAvgPool2d(), (2, 4), "expected four dimensions, NHWC"),
    (lambda: nn.AdaptiveAvgPool2d(1), (2, 4, 4), "expected four dimensions, NHWC"),
    (lambda: nn.BatchNorm(3), (2, 5), r"BatchNorm\(3\): the input is float32\[2,5\], its channels \(axis 1\) should"),
    (lambda: nn.BatchNorm(3, 1), (3,), r"BatchNorm\(3, axis=1\): .*which has no axis 1 for the channels"),
    (lambda: nn.LayerNorm((4, 3)), (2, 5, 3), r"LayerNorm\(\(4, 3\)\): .*its length \(axis 1\) should be 4, not 5"),
    (lambda: nn.RMSNorm(3), (4,), r"RMSNorm\(\(3,\)\): .*should be 3, not 4"),
    (lambda: nn.GroupNorm(2, 4), (2, 5), r"GroupNorm\(2, 4\): .*should be 4, not 5"),
    (lambda: nn.InstanceNorm(4), (2, 3, 5), r"InstanceNorm\(4\): .*should be 4, not 5"),
    (lambda: nn.PReLU(4), (2, 5), r"PReLU\(channels=4\): .*should be 4, not 5"),
])
def test_inputs_that_do_not_fit(make: Any, shape: tuple[int, ...], words: str) -> None:
    with pytest.raises(ShapeError, match=words) as caught:
        make()(nnc.ones(shape))
    assert "test_layers_settings.py" in str(caught.value), "the user's line"


@pytest.mark.parametrize("layer, text", [
    (nn.Conv2d(4, 8, 3, 2, "SAME", groups=4, bias=False, layout="NCHW"),
     "Conv2d(4, 8, (3, 3), strides=(2, 2), padding='SAME', groups=4, bias=False, layout='NCHW')"),
    (nn.Conv1d(4, 8, 3), "Conv1d(4, 8, (3,))"),
    (nn.ConvTranspose3d(4, 8, 3, 2, output_padding=1),
     "ConvTranspose3d(4, 8, (3, 3, 3), strides=(2, 2, 2), output_padding=(1, 1, 1))"),
    (nn.MaxPool2d(2), "MaxPool2d((2, 2))"),
    (nn.MaxPool2d(3, 2, 1, ceil_mode=True), "MaxPool2d((3, 3), strides=(2, 2), padding=1, ceil_mode=True)"),
    (nn.AvgPool1d(2, count_padding=True), "AvgPool1d((2,), count_padding=True)"),
    (nn.AdaptiveAvgPool2d((1, None)), "AdaptiveAvgPool2d((1, None))"),
    (nn.GlobalAvgPool2d(True, "NCHW"), "GlobalAvgPool2d(keepdims=True, layout='NCHW')"),
    (nn.BatchNorm(8, 1, 0.99, affine=False), "BatchNorm(8, axis=1, momentum=0.99, affine=False)"),
    (nn.LayerNorm(8), "LayerNorm((8,))"),
    (nn.Dropout(0.5), "Dropout(0.5)"),
    (nn.SpatialDropout(0.5, 1), "SpatialDropout(0.5, axis=1)"),
    (nn.LeakyReLU(), "LeakyReLU()"),
    (nn.LeakyReLU(0.2), "LeakyReLU(slope=0.2)"),
    (nn.Activation("elu", alpha=0.5), "Activation('elu', alpha=0.5)"),
    (nn.Activation(nnc.sin), "Activation(sin)"),
    (nn.Activation(None), "Activation(None)"),
    (nn.Embedding(5, 3, 0), "Embedding(5, 3, padding_index=0)"),
    (nn.Reshape((2, -1)), "Reshape((2, -1))"),
    (nn.Slice((1, 3), 0), "Slice((1, 3, None), 0)"),
    (nn.Padding2d(1, "reflect"), "Padding2d(((1, 1), (1, 1)), mode='reflect')"),
    (nn.UpSampling2d(), "UpSampling2d()"),
    (nn.UpSampling2d(3, "linear"), "UpSampling2d(scale=(3, 3), method='linear')"),
    (nn.Concatenate(1), "Concatenate(axis=1)"),
    (nn.Cast("float16"), "Cast(float16)"),
    (nn.ReduceMean((1, 2)), "ReduceMean(axis=(1, 2))"),
    (nn.Swish(), "SiLU()"),
], ids=lambda x: type(x).__name__ if isinstance(x, nn.Module) else "")
def test_repr(layer: nn.Module, text: str) -> None:
    assert repr(layer) == text


def test_summary_counts_statistics_as_buffers() -> None:
    text = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm(4)).summary()
    assert "kernel float32[3,3,3,4], bias float32[4]" in text and "scale float32[4], bias float32[4]" in text
    assert text.splitlines()[-1] == f"{27 * 4 + 4 + 8} trained numbers, 8 in buffers"
    assert list(nn.BatchNorm(4).cells()) == ["scale", "bias", "running_mean", "running_variance"]


def test_dtypes_of_weights() -> None:
    for layer in (nn.Conv1d(2, 2, 3, dtype="float64"), nn.ConvTranspose2d(2, 2, 3, dtype="float64"),
                  nn.BatchNorm(2, dtype="float64"), nn.LayerNorm(2, dtype="float64"), nn.PReLU(2, dtype="float64"),
                  nn.Embedding(2, 2, 0, dtype="float64"), nn.GroupNorm(1, 2, dtype="float64")):
        assert {c.spec.dtype for c in layer.cells().values()} == {np.dtype(np.float64)}, layer


@pytest.mark.filterwarnings("ignore:scatter has no kernel")
@pytest.mark.parametrize("name", FEEDFORWARD)
def test_a_copy_computes_the_same(name: str) -> None:
    make, args = FEEDFORWARD[name]
    layer, given = make().eval(), [nnc.asarray(a) if isinstance(a, np.ndarray) else a for a in args]
    wanted = layer(*given)
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert repr(twin) == repr(layer) and not twin.training
        found = twin(*given)
        for a, b in zip(*[y if isinstance(y, tuple) else (y,) for y in (found, wanted)], strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_the_row_of_padding() -> None:
    layer = nn.Embedding(4, 3, padding_index=1)
    assert layer.state_dict()["weight"][1].tolist() == [0, 0, 0]
    weights = layer.state_dict()["weight"]
    indices = nnc.asarray([1, 2, 1])
    np.testing.assert_array_equal(layer(indices).numpy(), weights[[1, 2, 1]])
    _, gradients = nn.value_and_grad(layer, lambda: layer(indices).sum())()
    assert gradients["weight"].tolist() == [[0] * 3, [0] * 3, [1] * 3, [0] * 3]
