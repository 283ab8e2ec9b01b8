"""Layers that merge, take parts, rearrange, pad, resize and reduce, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.ndimage import zoom

import nnc_core as nnc
from nnc_core import nn
from nnc_core.base.errors import AxisError, OperandError, ShapeError
from tests.devices import device, parametrise

__all__ = ["device"]
pytest_generate_tests = parametrise
Host = np.ndarray[Any, Any]
rng = np.random.default_rng(0)
A, B, ROW = (rng.normal(size=shape).astype(np.float32) for shape in ((3, 4), (3, 4), (4,)))
IMAGES = rng.normal(size=(2, 4, 6, 8)).astype(np.float32)
MASK = A > 0


def interleaved(x: Host, y: Host) -> Host:
    z = (x[..., ::2] + 1j * x[..., 1::2]) * (y[..., ::2] + 1j * y[..., 1::2])
    return np.stack([z.real, z.imag], -1).reshape(x.shape)


EXPECTED: list[tuple[Callable[[], nn.Module], tuple[Any, ...], Callable[..., Any]]] = [
    # ---- merging
    (nn.Add, (A, B, ROW), lambda a, b, c: a + b + c),
    (nn.Add, (A,), lambda a: a),
    (nn.Multiply, (A, B, ROW), lambda a, b, c: a * b * c),
    (nn.Maximum, (A, B, ROW), lambda a, b, c: np.maximum(np.maximum(a, b), c)),
    (nn.Minimum, (A, B), np.minimum),
    (nn.Average, (A, B, ROW), lambda a, b, c: (a + b + c) / 3),
    (nn.Subtract, (A, ROW), lambda a, b: a - b),
    (nn.Divide, (A, ROW), lambda a, b: a / b),
    (nn.ComplexMultiply, (A, B), interleaved),
    (nn.Dot, (A, B.T.copy()), lambda a, b: a @ b),
    (lambda: nn.Dot(True), (A, B), lambda a, b: a.T @ b),
    (lambda: nn.MatMul(transpose_second=True), (IMAGES, IMAGES), lambda a, b: a @ np.swapaxes(b, -1, -2)),
    (nn.Concatenate, (A, B, A), lambda *xs: np.concatenate(xs, -1)),
    (lambda: nn.Concatenate(0), (A, B), lambda *xs: np.concatenate(xs, 0)),
    (lambda: nn.Stack(1), (A, B), lambda *xs: np.stack(xs, 1)),
    # ---- parts
    (lambda: nn.Slice((1, 3), slice(None, None, 2), -1), (IMAGES,), lambda x: x[:, 1:3, ::2, -1]),
    (lambda: nn.Slice(1, batch=False), (IMAGES,), lambda x: x[1]),
    (lambda: nn.Sequential(nn.Chunk(2), nn.Extract(1)), (A,), lambda a: a[:, 2:]),
    (lambda: nn.Extract(1), (A, B), lambda a, b: b),
    (lambda: nn.IndexSelect(1), (A, np.array([3, 0])), lambda a, i: a[:, i]),
    (lambda: nn.MaskedFill(-2.0), (A, MASK), lambda a, m: np.where(m, -2, a)),
    (nn.Masking, (np.array([[[0, 0], [0, 1]], [[2, 0], [0, 0]]], np.float32),), lambda x: x),
    (lambda: nn.Masking(1.0), (np.array([[[1, 1], [0, 1]]], np.float32),), lambda x: x * [[[0], [1]]]),
    # ---- shapes
    (nn.Identity, (A,), lambda a: a),
    (nn.Contiguous, (A,), lambda a: a),
    (lambda: nn.Cast("float16"), (A,), lambda a: a.astype(np.float16)),
    (lambda: nn.Reshape((2, -1)), (IMAGES,), lambda x: x.reshape(2, 2, -1)),
    (lambda: nn.Reshape((4, 3), batch=False), (A,), lambda a: a.reshape(4, 3)),
    (lambda: nn.Flatten(1, 2), (IMAGES,), lambda x: x.reshape(2, 24, 8)),
    (lambda: nn.Unflatten(-1, (2, -1)), (IMAGES,), lambda x: x.reshape(2, 4, 6, 2, 4)),
    (lambda: nn.Permute((0, 3, 1, 2)), (IMAGES,), lambda x: x.transpose(0, 3, 1, 2)),
    (nn.Transpose, (IMAGES,), lambda x: np.swapaxes(x, -1, -2)),
    (lambda: nn.Transpose(1, 3), (IMAGES,), lambda x: np.swapaxes(x, 1, 3)),
    # ---- sizes
    (lambda: nn.Pad(((0, 0), (1, 2)), value=3.0), (A,), lambda a: np.pad(a, ((0, 0), (1, 2)), constant_values=3)),
    (lambda: nn.Pad({1: 2}, "wrap"), (A,), lambda a: np.pad(a, ((0, 0), (2, 2)), "wrap")),
    (lambda: nn.Padding1d(2), (A[None],), lambda x: np.pad(x, ((0, 0), (2, 2), (0, 0)))),
    (lambda: nn.Padding2d(((1, 0), (2, 2)), "reflect"), (IMAGES,),
     lambda x: np.pad(x, ((0, 0), (1, 0), (2, 2), (0, 0)), "reflect")),
    (lambda: nn.Padding2d((1, 2), value=-1.0, layout="NCHW"), (IMAGES,),
     lambda x: np.pad(x, ((0, 0), (0, 0), (1, 1), (2, 2)), constant_values=-1)),
    (lambda: nn.Padding3d(1, "edge"), (IMAGES[:, None],), lambda x: np.pad(x, ((0, 0), *[(1, 1)] * 3, (0, 0)), "edge")),
    (nn.UpSampling2d, (IMAGES,), lambda x: x.repeat(2, 1).repeat(2, 2)),
    (lambda: nn.UpSampling1d(3, layout="NCW"), (A[None],), lambda x: x.repeat(3, 2)),
    (lambda: nn.UpSampling3d((2, 1, 3)), (IMAGES[:, None],), lambda x: x.repeat(2, 1).repeat(3, 3)),
    (lambda: nn.UpSampling2d(method="linear", align_corners=True, size=(7, 11)), (IMAGES,),
     lambda x: zoom(x, (1, 7 / 4, 11 / 6, 1), order=1)),
    (lambda: nn.DepthToSpace(2), (IMAGES,),
     lambda x: x.reshape(2, 4, 6, 2, 2, 2).transpose(0, 1, 3, 2, 4, 5).reshape(2, 8, 12, 2)),
    (lambda: nn.Sequential(nn.SpaceToDepth(2, "CRD"), nn.DepthToSpace(2, "CRD")), (IMAGES,), lambda x: x),
    # ---- arithmetic
    (lambda: nn.Scale(0.5), (A,), lambda a: a * 0.5),
    (nn.Sqrt, (abs(A),), np.sqrt),
    (lambda: nn.Clamp(-0.5, 0.5), (A,), lambda a: np.clip(a, -0.5, 0.5)),
    (lambda: nn.Clamp(0.0), (A,), lambda a: np.maximum(a, 0)),
    (lambda: nn.ReduceSum((1, 2)), (IMAGES,), lambda x: x.sum((1, 2))),
    (lambda: nn.ReduceMean(0, True), (A,), lambda a: a.mean(0, keepdims=True)),
    (nn.ReduceMax, (A,), lambda a: a.max()),
    (lambda: nn.ReduceMin(-1), (A,), lambda a: a.min(-1)),
    (lambda: nn.ReduceNorm(1), (A,), lambda a: np.sqrt((a**2).sum(1))),
    (lambda: nn.ArgMax(1), (A,), lambda a: a.argmax(1)),
    (nn.ArgMin, (A,), lambda a: a.argmin()),
]


def test_values() -> None:
    for make, inputs, expected in EXPECTED:
        layer, wanted = make(), np.asarray(expected(*inputs))
        y = layer(*map(nnc.asarray, inputs))
        assert y.shape == wanted.shape, layer
        np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-5, atol=1e-5, err_msg=repr(layer))
        assert y.dtype == (nnc.float16 if "Cast" in repr(layer) else nnc.int64 if "Arg" in repr(layer) else nnc.float32)


def test_masks_of_padding() -> None:
    x = nnc.asarray(np.array([[[0, 0], [0, 1]], [[2, 0], [0, 0]]], np.float32))
    assert nn.Masking().mask(x).tolist() == [[False, True], [True, False]]


def test_extraction_by_name() -> None:
    assert nn.Extract("b")({"a": 1, "b": 2}) == 2


@pytest.mark.parametrize("make, shapes, error, words", [
    (nn.Add, [], OperandError, r"Add\(\): no inputs, expected one or more"),
    (nn.Concatenate, [], OperandError, r"Concatenate\(\): no inputs"),
    (nn.Add, [(2, 3), (4, 3)], ShapeError, r"add: (.|\n)*\[2,3\](.|\n)*\[4,3\]"),
    (nn.Dot, [(2, 3), (2, 3)], ShapeError, r"Dot\(\): float32\[2,3\] and float32\[2,3\] .* 3 columns and 2 rows"),
    (nn.ComplexMultiply, [(2, 3), (2, 3)], ShapeError, r"ComplexMultiply\(\): .*float32\[2,3\]"),
    (lambda: nn.Slice(0, 0), [(2, 3)], ShapeError, r"Slice\(0, 0\): .*expected at least 3 dimensions"),
    (lambda: nn.Extract(2), [(1,), (2,)], ShapeError, r"Extract\(2\): the input is tuple of 2, which has no 2"),
    (lambda: nn.Reshape((4, -1)), [(2, 6)], ShapeError, r"Reshape\(\(4, -1\)\): .* each example of which has 6 elem"),
    (lambda: nn.Reshape((5,)), [(2, 6)], ShapeError, "do not fit shape"),
    (lambda: nn.Reshape((1,)), [()], ShapeError, "which has no batch"),
    (lambda: nn.Unflatten(1, (4, -1)), [(2, 6)], ShapeError, r"does not part into \(4, -1\)"),
    (lambda: nn.Unflatten(2, (4, -1)), [(2, 6)], AxisError, "no axis 2 to part"),
    (lambda: nn.Flatten(2, 1), [(2, 6, 3)], AxisError, "no axis 1 from 2 on"),
    (lambda: nn.Permute((1, 0)), [(2, 6, 3)], ShapeError, r"Permute\(\(1, 0\)\): .*expected 2 dimensions"),
    (lambda: nn.Padding2d(1), [(2, 6, 3)], ShapeError, r"Padding2d\(.*\): .*expected four dimensions, NHWC"),
    (lambda: nn.UpSampling1d(), [(2, 6)], ShapeError, r"UpSampling1d\(\): .*expected three dimensions, NWC"),
    (lambda: nn.Chunk(4), [(2, 6)], ShapeError, "split: axis 1"),
])
def test_inputs_that_do_not_fit(make: Any, shapes: list[tuple[int, ...]], error: type[Exception], words: str) -> None:
    layer = make()
    with pytest.raises(error, match=words):
        layer(*map(nnc.ones, shapes))
