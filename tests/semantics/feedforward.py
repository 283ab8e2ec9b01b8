"""Layers without time, each with what it is called with: small arrays, every setting that changes what is computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

import nnc_core as nnc
from nnc_core import nn
from tests.semantics.networks import generator
from tests.support import numbers

Row: TypeAlias = tuple[Callable[[], nn.Module], tuple[Any, ...]]


ROWS, OTHER = numbers(5, 4), numbers(5, 4, seed=1)
SEQUENCES, IMAGES, VOLUMES = numbers(2, 7, 4), numbers(2, 6, 7, 4), numbers(2, 4, 3, 5, 2)
SEQUENCES_FIRST, IMAGES_FIRST, VOLUMES_FIRST = numbers(2, 4, 7), numbers(2, 4, 6, 7), numbers(2, 2, 4, 3, 5)
POOLED, PLACES = numbers(1, 2, 2), np.array([[[0, 3], [2, 2]]])
MASK, WHICH = ROWS > 0, np.array([2, 0, 2])

ACTIVATIONS: dict[str, Row] = {
    **{kind.__name__: (kind, (ROWS,)) for kind in (
        nn.CELU, nn.ELU, nn.GELU, nn.GLU, nn.HardShrink, nn.HardSigmoid, nn.HardSwish, nn.HardTanh, nn.LeakyReLU,
        nn.LogSigmoid, nn.Mish, nn.PReLU, nn.ReLU6, nn.SELU, nn.SiLU, nn.SoftShrink, nn.Softmin, nn.Softplus,
        nn.Softsign, nn.SwiGLU, nn.TanhShrink, nn.ThresholdedReLU)},
    "Activation": (lambda: nn.Activation("leaky_relu", slope=0.2), (ROWS,)),
    "Activation, a function": (lambda: nn.Activation(nnc.sin), (ROWS,)),
    "Activation, none": (lambda: nn.Sequential(nn.Activation(None), nn.Tanh()), (ROWS,)),
    "GELU, tanh": (lambda: nn.GELU("tanh"), (ROWS,)),
    "PReLU, channels": (lambda: nn.PReLU(4, axis=1), (IMAGES_FIRST,)),
    "RReLU": (lambda: nn.RReLU(generator=generator(1)), (ROWS,)),
    "Swish": (nn.Swish, (ROWS,)),
    "Threshold": (lambda: nn.Threshold(0.1, 20.0), (ROWS,)),
}  # fmt: skip

WINDOWS: dict[str, Row] = {
    "AdaptiveAvgPool1d": (lambda: nn.AdaptiveAvgPool1d(3), (SEQUENCES,)),
    "AdaptiveAvgPool2d": (lambda: nn.AdaptiveAvgPool2d((3, None)), (IMAGES,)),
    "AdaptiveAvgPool3d": (lambda: nn.AdaptiveAvgPool3d((2, 1, 3), "NCDHW"), (VOLUMES_FIRST,)),
    "AdaptiveMaxPool1d": (lambda: nn.AdaptiveMaxPool1d(3, with_indices=True), (SEQUENCES,)),
    "AdaptiveMaxPool2d": (lambda: nn.AdaptiveMaxPool2d(2), (IMAGES,)),
    "AdaptiveMaxPool3d": (lambda: nn.AdaptiveMaxPool3d((2, 1, 3), "NCDHW"), (VOLUMES_FIRST,)),
    "AvgPool1d": (lambda: nn.AvgPool1d(3, 2, ceil_mode=True), (SEQUENCES,)),
    "AvgPool3d": (lambda: nn.AvgPool3d(2, padding=1, layout="NCDHW"), (VOLUMES_FIRST,)),
    "Conv1d": (lambda: nn.Conv1d(4, 6, 3, groups=2, generator=generator(1)), (SEQUENCES,)),
    "Conv3d": (lambda: nn.Conv3d(2, 3, 2, layout="NCDHW", generator=generator(1)), (VOLUMES_FIRST,)),
    "ConvTranspose1d": (lambda: nn.ConvTranspose1d(4, 2, 3, 2, layout="NCW", generator=generator(1)),
                        (SEQUENCES_FIRST,)),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(4, 6, 3, 2, 1, 1, groups=2, generator=generator(1)), (IMAGES,)),
    "ConvTranspose3d": (lambda: nn.ConvTranspose3d(2, 3, 2, 2, generator=generator(1)), (VOLUMES,)),
    **{kind.__name__: (kind, (x,)) for kind, x in (
        (nn.GlobalAvgPool1d, SEQUENCES), (nn.GlobalAvgPool2d, IMAGES), (nn.GlobalAvgPool3d, VOLUMES),
        (nn.GlobalMaxPool1d, SEQUENCES), (nn.GlobalMaxPool2d, IMAGES), (nn.GlobalMaxPool3d, VOLUMES))},
    "LPPool1d": (lambda: nn.LPPool1d(2, 3.0), (SEQUENCES,)),
    "LPPool2d": (lambda: nn.LPPool2d(2, layout="NCHW"), (IMAGES_FIRST,)),
    "LPPool3d": (lambda: nn.LPPool3d(2, strides=1), (VOLUMES,)),
    "MaxPool1d": (lambda: nn.MaxPool1d(3, 2, padding=1, with_indices=True), (SEQUENCES,)),
    "MaxPool3d": (lambda: nn.MaxPool3d(2, layout="NCDHW", ceil_mode=True), (VOLUMES_FIRST,)),
    "MaxUnpool1d": (lambda: nn.MaxUnpool1d("NCW"), (POOLED, PLACES, 5)),
    "MaxUnpool2d": (nn.MaxUnpool2d, (POOLED[:, None], PLACES[:, None], 3)),
    "MaxUnpool3d": (nn.MaxUnpool3d, (POOLED[:, None, None], PLACES[:, None, None], 2)),
    "Padding1d": (lambda: nn.Padding1d(((2, 1),), "edge"), (SEQUENCES,)),
    "Padding2d": (lambda: nn.Padding2d(((1, 0), (2, 2)), value=3.0), (IMAGES,)),
    "Padding3d": (lambda: nn.Padding3d(1, "reflect", layout="NCDHW"), (VOLUMES_FIRST,)),
    "UpSampling1d": (lambda: nn.UpSampling1d(1.5, "linear"), (SEQUENCES,)),
    "UpSampling2d": (nn.UpSampling2d, (IMAGES,)),
    "UpSampling3d": (lambda: nn.UpSampling3d(size=(5, 4, 3), layout="NCDHW"), (VOLUMES_FIRST,)),
}  # fmt: skip

STATE: dict[str, Row] = {
    "AlphaDropout": (lambda: nn.AlphaDropout(0.4, generator(2)), (ROWS,)),
    "BatchNorm": (lambda: nn.BatchNorm(4), (IMAGES,)),
    "BatchNorm, channels first, not affine": (lambda: nn.BatchNorm(4, 1, 0.5, affine=False), (IMAGES_FIRST,)),
    "GaussianDropout": (lambda: nn.GaussianDropout(0.4, generator(2)), (ROWS,)),
    "GaussianNoise": (lambda: nn.GaussianNoise(0.4, generator(2)), (ROWS,)),
    "SpatialDropout": (lambda: nn.SpatialDropout(0.4, generator=generator(2)), (IMAGES,)),
}

OTHERS: dict[str, Row] = {
    "Add": (nn.Add, (ROWS, OTHER, ROWS)),
    "ArgMax": (lambda: nn.Sequential(nn.ArgMax(1), nn.Embedding(4, 2, generator=generator(1))), (ROWS,)),
    "ArgMin": (lambda: nn.Sequential(nn.ArgMin(0), nn.Embedding(5, 2, generator=generator(1))), (ROWS,)),
    "Average": (nn.Average, (ROWS, OTHER)),
    "Cast": (lambda: nn.Cast("float16"), (ROWS,)),
    "Chunk": (lambda: nn.Chunk(2), (ROWS,)),
    "Clamp": (lambda: nn.Clamp(high=0.5), (ROWS,)),
    "ComplexMultiply": (nn.ComplexMultiply, (ROWS, OTHER)),
    "Concatenate": (nn.Concatenate, (ROWS, OTHER)),
    "Contiguous": (lambda: nn.Sequential(nn.Contiguous(), nn.Tanh()), (ROWS,)),
    "DepthToSpace": (lambda: nn.DepthToSpace(2), (IMAGES,)),
    "Divide": (nn.Divide, (ROWS, OTHER)),
    "Dot": (lambda: nn.Dot(transpose_first=True), (ROWS, OTHER)),
    "Extract": (lambda: nn.Sequential(nn.Chunk(2), nn.Extract(1), nn.Tanh()), (ROWS,)),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), (IMAGES,)),
    "Identity": (lambda: nn.Sequential(nn.Identity(), nn.Tanh()), (ROWS,)),
    "IndexSelect": (lambda: nn.IndexSelect(1), (ROWS, WHICH)),
    "InstanceNorm": (lambda: nn.InstanceNorm(4, 1), (IMAGES_FIRST,)),
    "LayerNorm": (lambda: nn.LayerNorm((7, 4)), (IMAGES,)),
    "LocalResponseNorm": (lambda: nn.LocalResponseNorm(3), (IMAGES,)),
    "MaskedFill": (lambda: nn.MaskedFill(-3.0), (ROWS, MASK)),
    "Masking": (nn.Masking, (np.maximum(SEQUENCES, 0),)),
    "MatMul": (lambda: nn.MatMul(transpose_second=True), (ROWS, OTHER)),
    "Maximum": (nn.Maximum, (ROWS, OTHER)),
    "Minimum": (nn.Minimum, (ROWS, OTHER)),
    "Multiply": (nn.Multiply, (ROWS, OTHER)),
    "Pad": (lambda: nn.Pad({1: (1, 2)}, "wrap"), (ROWS,)),
    "Permute": (lambda: nn.Permute((0, 3, 1, 2)), (IMAGES,)),
    "RMSNorm": (lambda: nn.RMSNorm(4), (ROWS,)),
    "ReduceMax": (nn.ReduceMax, (ROWS,)),
    "ReduceMean": (lambda: nn.ReduceMean((1, 2)), (IMAGES,)),
    "ReduceMin": (lambda: nn.ReduceMin(0), (ROWS,)),
    "ReduceNorm": (lambda: nn.ReduceNorm(-1, True), (ROWS,)),
    "ReduceSum": (lambda: nn.ReduceSum(1), (ROWS,)),
    "Reshape": (lambda: nn.Reshape((2, -1)), (ROWS,)),
    "Scale": (lambda: nn.Scale(0.3), (ROWS,)),
    "Slice": (lambda: nn.Slice((1, None, 2), 0), (IMAGES,)),
    "SpaceToDepth": (lambda: nn.SpaceToDepth((2, 1)), (IMAGES,)),
    "Sqrt": (nn.Sqrt, (np.abs(ROWS),)),
    "Stack": (nn.Stack, (ROWS, OTHER)),
    "Subtract": (nn.Subtract, (ROWS, OTHER)),
    "Transpose": (nn.Transpose, (IMAGES,)),
    "Unflatten": (lambda: nn.Unflatten(-1, (2, 2)), (ROWS,)),
}

FEEDFORWARD: dict[str, Row] = {**ACTIVATIONS, **WINDOWS, **STATE, **OTHERS}
