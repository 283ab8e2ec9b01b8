"""Operators as earlier versions of ONNX have them, and the edges of what they take, against NumPy.

ONNX' own cases are of the newest version of each operator, and ONNX' reference evaluator knows few of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from nnc_core.io import load_onnx
from tests.io.onnx.models import model, node, value
from tests.io.onnx.running import check_modes

RNG = np.random.default_rng(3)


def drawn(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def ints(*numbers: int) -> Any:
    return np.asarray(numbers, np.int64)


def case(operator: str, opset: int, x: Any, wanted: Any, *others: Any, **attributes: Any) -> Any:
    """A node of these inputs, of which all but the first are initialisers and None one that is left out."""
    return pytest.param(operator, opset, [x, *others], wanted if isinstance(wanted, list) else [wanted], attributes,
                        id=f"{operator}-{opset}-{next(NUMBERS)}")


NUMBERS = iter(range(1000))
X, ROWS, IMAGES = drawn(2, 3, 4), drawn(4, 3), drawn(2, 3, 4, 5)
EMPTY = drawn(0, 3)
FAR, NEAR = 2**63 - 1, 2**31 - 1  # both stand for "to the end"


# ---- softmaxes
def softmax(x: Any, axis: int) -> Any:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def over_rows(x: Any, axis: int) -> Any:
    """Before version 13 all axes from this one on are one."""
    return softmax(x.reshape(int(np.prod(x.shape[:axis])), -1), 1).reshape(x.shape)


SOFTMAXES = [
    case("Softmax", 1, X, over_rows(X, 1)), case("Softmax", 11, X, over_rows(X, 1)),
    case("Softmax", 11, X, softmax(X, 2), axis=-1), case("Softmax", 6, X, over_rows(X, 0), axis=0),
    case("Softmax", 13, X, softmax(X, 2)), case("Softmax", 13, X, softmax(X, 1), axis=1),
    case("LogSoftmax", 1, X, np.log(over_rows(X, 1))), case("LogSoftmax", 13, X, np.log(softmax(X, 2))),
    case("Hardmax", 13, X, np.eye(3, dtype=np.float32)[X.argmax(1)].swapaxes(1, 2), axis=1),
    case("Hardmax", 11, X, np.eye(12, dtype=np.float32)[X.reshape(2, 12).argmax(1)].reshape(X.shape)),
    case("Softmax", 11, EMPTY, EMPTY), case("Softmax", 13, EMPTY, EMPTY),
]

# ---- parts
SLICES = [
    case("Slice", 1, X, X[:, 1:, -3:], starts=[1, -3], ends=[1000, NEAR], axes=[1, 2]),
    case("Slice", 9, X, X[:, :, :-1], starts=[0], ends=[-1], axes=[-1]),
    case("Slice", 9, X, X[:1, 1:2], starts=[0, 1], ends=[1, 2]),
    *(case("Slice", 13, X, wanted, ints(start), ints(end), ints(2), ints(step)) for start, end, step, wanted in [
        (0, 3, 2, X[..., 0:3:2]), (FAR, FAR, 1, X[..., :0]), (NEAR, NEAR, 1, X[..., :0]), (-FAR, FAR, 1, X),
        (0, -FAR, 1, X[..., :0]), (-1, -FAR, -1, X[..., ::-1]), (3, FAR, -1, X[..., :0]), (FAR, 0, -1, X[..., :0:-1]),
        (-100, -200, -1, X[..., :1]), (10, -10, -2, X[..., ::-2]), (-3, -1, 1, X[..., -3:-1])]),
    case("Slice", 13, X, X[::2], ints(0), ints(3), None, ints(2)),
    case("Split", 2, X, [X[..., :2], X[..., 2:]], axis=2),
    case("Split", 11, X, [X[..., :1], X[..., 1:]], axis=-1, split=[1, 3]),
    case("Split", 1, X, [X[:, :1], X[:, 1:]], np.float32([1, 2]), axis=1),
    case("Split", 13, X, [X[..., :1], X[..., 1:]], ints(1, 3), axis=-1),
    case("Split", 18, X, [X[:, :2], X[:, 2:]], axis=1, num_outputs=2),
    case("Gather", 11, X, X[..., [-1, 0]], ints(-1, 0), axis=-1), case("Gather", 11, X, X[:, 2], np.int64(-1), axis=1),
    case("Gather", 11, X, X[:, [[0, 2]]], np.int32([[0, 2]]), axis=1), case("Gather", 11, X, X[:, :0], ints(), axis=1),
    case("Compress", 11, X, X[:, 1:2], np.asarray([False, True]), axis=1),
]

# ---- edges
PADS = [
    case("Pad", 1, X, np.pad(X, [(0, 0), (1, 0), (0, 2)], constant_values=3), paddings=[0, 1, 0, 0, 0, 2], value=3.0),
    case("Pad", 2, X, np.pad(X[:, :-1], [(0, 0), (1, 0), (0, 2)], mode="edge"), pads=[0, 1, 0, 0, -1, 2], mode="edge"),
    case("Pad", 11, X, np.pad(X, [(0, 0), (1, 0), (0, 2)], mode="reflect"), ints(0, 1, 0, 0, 0, 2), mode="reflect"),
    case("Pad", 18, X, np.pad(X, [(0, 0), (0, 0), (1, 2)], constant_values=5), ints(1, 2), np.float32(5), ints(-1)),
    case("Pad", 19, X, np.pad(X, [(0, 0), (0, 0), (1, 2)], mode="wrap"), ints(0, 0, 1, 0, 0, 2), mode="wrap"),
    case("Pad", 13, np.asarray([[True, False]]), np.asarray([[False, True, False, False]]), ints(0, 1, 0, 1)),
]

# ---- shapes
ONE = drawn(1, 3, 1)
SHAPES = [
    case("Squeeze", 1, ONE, ONE[0], axes=[0]), case("Squeeze", 11, ONE, ONE[0, :, 0]),
    case("Squeeze", 11, ONE, ONE[..., 0], axes=[-1]), case("Squeeze", 13, ONE, ONE[..., 0], ints(-1)),
    case("Squeeze", 13, ONE, ONE[0, :, 0]), case("Unsqueeze", 1, X, X[None, ..., None], axes=[0, 4]),
    case("Unsqueeze", 11, X, X[None, ..., None], axes=[-1, 0]),
    case("Unsqueeze", 13, X, X[None, ..., None], ints(-1, 0)), case("Unsqueeze", 13, np.float32(2), X[:1, 0, 0] * 0 + 2,
                                                                    ints(0)),
    case("Reshape", 1, X, X.reshape(2, 12), shape=[0, -1]), case("Reshape", 5, X, X.reshape(2, 12), ints(0, -1)),
    case("Reshape", 14, EMPTY, drawn(3, 0), ints(3, 0), allowzero=1),
    case("Reshape", 14, np.float32([[2]]), np.float32(2), ints()),
    case("Flatten", 1, X, X.reshape(2, 12)), case("Flatten", 11, X, X.reshape(6, 4), axis=-1),
    case("Flatten", 9, X, X.reshape(1, 24), axis=0), case("Flatten", 9, X, X.reshape(24, 1), axis=3),
    case("Tile", 1, X, np.tile(X, (1, 3, 1)), ints(3), ints(1)), case("Tile", 6, X, np.tile(X, (2, 1, 3)),
                                                                     ints(2, 1, 3)),
    case("Concat", 1, X, np.concatenate([X, X], 1), X), case("Expand", 8, ONE, np.broadcast_to(ONE, (2, 1, 3, 4)),
                                                            ints(2, 1, 1, 4)),
    case("Expand", 8, np.float32(2), np.zeros((2, 0), np.float32), ints(2, 0)),
    case("Shape", 1, X, ints(2, 3, 4)), case("Shape", 15, X, ints(3, 4), start=-2, end=10),
    case("Size", 1, X, np.int64(24)), case("EyeLike", 9, np.zeros((3, 4), np.int32), np.eye(3, 4, 1), k=1, dtype=11),
    case("Trilu", 14, X[0] > 0, np.tril(X[0] > 0), upper=0),
]

# ---- reductions
REDUCTIONS = [one for name, function in {"ReduceSum": np.sum, "ReduceMax": np.max, "ReduceMin": np.min,
                                         "ReduceMean": np.mean, "ReduceProd": np.prod}.items() for one in (
    case(name, 1, X, function(X, axis=(0, 1, 2), keepdims=True)),
    case(name, 11, X, function(X, axis=(0, 2)), axes=[-1, 0], keepdims=0),
    case(name, 18, X, function(X, axis=(0, 2)), ints(-1, 0), keepdims=0),
    case(name, 18, X, function(X, axis=(0, 1, 2), keepdims=True)),
    case(name, 18, X, function(X, axis=(0, 1, 2), keepdims=True), ints()),
    case(name, 18, X, X, noop_with_empty_axes=1), case(name, 18, np.float32(3), np.float32(3)))]  # fmt: skip
FIRST, LEAST = np.argsort(-X, axis=-1)[..., :2], np.argsort(X, axis=1)[:, :2]
REDUCTIONS += [
    case("TopK", 1, X, [np.take_along_axis(X, FIRST, -1), FIRST], k=2),
    case("TopK", 10, X, [np.take_along_axis(X, FIRST, -1), FIRST], ints(2)),
    case("TopK", 11, X, [np.take_along_axis(X, LEAST, 1), LEAST], ints(2), axis=1, largest=0),
    case("TopK", 11, X, [X[:, :0], np.zeros((2, 0, 4), np.int64)], ints(0), axis=1),
    case("TopK", 11, np.int32([3, 1, 3, 2]), [np.int32([3, 3]), ints(0, 2)], ints(2)),
    case("ArgMax", 12, np.int32([[1, 3, 3], [2, 2, 1]]), ints(2, 1), axis=-1, select_last_index=1, keepdims=0),
    case("ArgMax", 1, np.int32([[1, 3, 3], [2, 2, 1]]), ints(1, 0, 0)[None]),
    case("CumSum", 11, np.int32([1, 2, 3]), np.int32([5, 3, 0]), np.int32(0), exclusive=1, reverse=1),
]


# ---- normalisation and dropout
def normalised(x: Any, mean: Any, variance: Any, scale: Any, bias: Any) -> Any:
    mean, variance, scale, bias = (v.reshape(-1, *[1] * (x.ndim - 2)) if v.ndim == 1 else v
                                   for v in (mean, variance, scale, bias))
    return ((x - mean) / np.sqrt(variance + 1e-5) * scale + bias).astype(x.dtype)


SCALE, BIAS, MEAN, VARIANCE = drawn(3), drawn(3), drawn(3), drawn(3) ** 2 + 0.5
OF_EACH = drawn(3, 4, 5), drawn(3, 4, 5), drawn(3, 4, 5), drawn(3, 4, 5) ** 2 + 0.5
OWN = IMAGES.mean((0, 2, 3)), IMAGES.var((0, 2, 3))
DOUBLE = X.astype(np.float64)
NORMALISATIONS = [
    *(case("BatchNormalization", opset, x, normalised(x, MEAN, VARIANCE, SCALE, BIAS), SCALE, BIAS, MEAN, VARIANCE,
           **options)
      for x in (IMAGES, ROWS) for opset, options in [(1, {"is_test": 1, "consumed_inputs": [0, 0, 0, 1, 1]}),
                                                     (6, {"is_test": 1}), (7, {}), (9, {}), (14, {}), (15, {})]),
    case("BatchNormalization", 7, IMAGES, normalised(IMAGES, OF_EACH[2], OF_EACH[3], *OF_EACH[:2]), *OF_EACH,
         spatial=0),
    case("BatchNormalization", 14, IMAGES, [normalised(IMAGES, *OWN, SCALE, BIAS), MEAN * 0.8 + OWN[0] * 0.2,
                                            VARIANCE * 0.8 + OWN[1] * 0.2],
         SCALE, BIAS, MEAN, VARIANCE, training_mode=1, momentum=0.8),
    case("BatchNormalization", 15, IMAGES.astype(np.float16), normalised(IMAGES.astype(np.float16), MEAN, VARIANCE,
                                                                         SCALE, BIAS), SCALE, BIAS, MEAN, VARIANCE),
    case("LayerNormalization", 17, X, (X - X.mean((1, 2), keepdims=True)) / X.std((1, 2), keepdims=True),
         np.ones((3, 4), np.float32), axis=1, epsilon=0.0),
    case("LayerNormalization", 17, DOUBLE, [
        (DOUBLE - DOUBLE.mean(-1, keepdims=True)) / np.sqrt(DOUBLE.var(-1, keepdims=True) + 1e-5),
        X.mean(-1, keepdims=True), (1 / np.sqrt(DOUBLE.var(-1, keepdims=True) + 1e-5)).astype(np.float32)], np.ones(4)),
    case("LpNormalization", 1, X, X / np.abs(X).sum(1, keepdims=True), axis=1, p=1),
    case("Dropout", 1, X, X, is_test=1), case("Dropout", 7, X, [X, np.ones_like(X)], ratio=0.3),
    case("Dropout", 10, X, [X, np.ones(X.shape, bool)], ratio=0.3),
    case("Dropout", 13, X, [X, np.ones(X.shape, bool)], np.float32(0.3)),
]


# ---- images
def stretched(x: Any, axis: int) -> Any:
    """Twice as long, linearly, the first pixel where it was."""
    count = x.shape[axis]
    at = np.arange(2 * count) / 2
    low = at.astype(int)
    part = (at - low).astype(np.float32).reshape(-1, *[1] * (x.ndim - axis - 1))
    return x.take(low, axis) * (1 - part) + x.take(np.minimum(low + 1, count - 1), axis) * part


TWICE, LINEAR = IMAGES.repeat(2, 2).repeat(2, 3), stretched(stretched(IMAGES, 2), 3)
SCALES = np.float32([1, 1, 2, 2])
RESIZED = [
    case("Upsample", 1, IMAGES, TWICE, height_scale=2.0, width_scale=2.0),
    case("Upsample", 1, IMAGES, LINEAR, height_scale=2.0, width_scale=2.0, mode="bilinear"),
    case("Upsample", 7, IMAGES, TWICE, scales=[1.0, 1.0, 2.0, 2.0]), case("Upsample", 9, IMAGES, TWICE, SCALES),
    case("Upsample", 9, IMAGES, LINEAR, SCALES, mode="linear"), case("Resize", 10, IMAGES, TWICE, SCALES),
    case("Resize", 10, IMAGES, LINEAR, SCALES, mode="linear"),
    case("Resize", 10, IMAGES, IMAGES[:, :, ::2, ::2][..., :2], np.float32([1, 1, 0.5, 0.5])),
]

# ---- arithmetic
CHANNELS = SCALE.reshape(3, 1, 1)
ARITHMETIC = [
    case("Add", 6, IMAGES, IMAGES + CHANNELS, SCALE, axis=1, broadcast=1),
    case("Add", 6, IMAGES, IMAGES + CHANNELS, SCALE, axis=-3, broadcast=1),
    case("Mul", 1, IMAGES, IMAGES * np.float32([1, 2, 3, 4, 5]), np.float32([1, 2, 3, 4, 5]), broadcast=1),
    case("Gemm", 6, ROWS, ROWS @ np.diag(SCALE) + BIAS, np.diag(SCALE), BIAS, broadcast=1),
    case("Sum", 6, X, X), case("Max", 6, X, X), case("Mean", 8, X, (X + 1) / 2, np.float32(1)),
    case("PRelu", 6, IMAGES, np.where(IMAGES < 0, IMAGES * CHANNELS, IMAGES), SCALE),
    case("PRelu", 9, IMAGES, np.where(IMAGES < 0, IMAGES * CHANNELS, IMAGES), CHANNELS),
    case("Clip", 6, X, X.clip(-0.5, 0.5), min=-0.5, max=0.5), case("Clip", 6, X, X),
    case("Clip", 10, X, X.clip(None, 0.1), max=0.1), case("Clip", 11, X, X.clip(0.1, None), np.float32(0.1)),
    case("Clip", 11, X, X.clip(None, 0.1), None, np.float32(0.1)),
    case("Clip", 12, np.int8([1, 3, 5]), np.int8([2, 3, 4]), np.int8(2), np.int8(4)),
    case("Clip", 13, X, np.full_like(X, -1), np.float32(1), np.float32(-1)),
    case("Div", 14, np.int32([-7, 7, -7, 7]), np.int32([-3, 3, 3, -3]), np.int32([2, 2, -2, -2])),
    case("Div", 14, np.uint8([200, 7]), np.uint8([66, 2]), np.uint8(3)),
    case("Mod", 14, np.int32([-7, 7, -7, 7]), np.int32([1, 1, -1, -1]), np.int32([2, 2, -2, -2])),
    case("Mod", 14, X, np.fmod(X, np.float32(0.7)), np.float32(0.7), fmod=1),
    case("Pow", 13, np.int32([1, 2, 3]), np.int32([1, 5, 15]), np.float32(2.5)),
    case("Pow", 13, np.float32([1, 2, 4]), np.float32([1, 0.25, 0.0625]), np.int64(-2)),
    case("Cast", 1, X, X.astype(np.int32), to="INT32"), case("Cast", 13, X, X.astype(np.float16), to=10),
    case("Einsum", 12, ROWS, ROWS @ np.diag(SCALE), np.diag(SCALE), equation="i j, j K -> iK"),
    case("OneHot", 11, ints(0, -1, 5), np.float32([[5, 2, 2], [2, 2, 2], [2, 5, 2]]), np.int64(3), np.float32([2, 5]),
         axis=0),
    case("ScatterND", 16, X, X, np.zeros((0, 1), np.int64), np.zeros((0, 3, 4), np.float32)),
    case("Scatter", 9, np.zeros((2, 3), np.float32), np.float32([[9, 0, 0], [0, 0, 8]]), np.int64([[0], [-1]]),
         np.float32([[9], [8]]), axis=1),
    case("QuantizeLinear", 10, X, np.clip(np.rint(X / np.float32(0.02)) + 3, 0, 255).astype(np.uint8),
         np.float32(0.02), np.uint8(3)),
    case("QuantizeLinear", 13, X, np.clip(np.rint(X / np.float32(0.02)) + 3, 0, 255).astype(np.uint8),
         np.float32([0.02]), np.uint8([3])),
    case("DequantizeLinear", 13, np.uint8([[1, 5, 255]]), np.float32([[-1, 1, 126]]), np.float32([0.5]), np.uint8([3])),
]


@pytest.mark.parametrize(("operator", "opset", "inputs", "wanted", "attributes"), [
    *SOFTMAXES, *SLICES, *PADS, *SHAPES, *REDUCTIONS, *NORMALISATIONS, *RESIZED, *ARITHMETIC])
def test_operator(operator: str, opset: int, inputs: Sequence[Any], wanted: Sequence[Any],
                  attributes: dict[str, Any]) -> None:
    names = ["_" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    results = [f"y{i}" for i in range(len(wanted))]
    message = model([node(operator, " ".join(names), " ".join(results), **attributes)],
                    [value("x0", inputs[0].dtype, inputs[0].shape)],
                    [value(name, y.dtype, None) for name, y in zip(results, wanted, strict=True)],
                    {name: x for name, x in zip(names[1:], inputs[1:], strict=True) if x is not None}, opset)
    check_modes(message, {"x0": inputs[0]}, wanted, 1e-4, 1e-5)


def test_nonzero_of_a_scalar_has_an_index_without_numbers() -> None:
    message = model([node("NonZero", "x", "y")], [value("x", np.float32, [])], [value("y", np.int64, None)])
    module = load_onnx(message.SerializeToString())
    for x, shape in ((3, (0, 1)), (0, (0, 0))):
        found = module(np.float32(x))
        assert found.shape == shape and found.dtype == np.int64


@pytest.mark.parametrize("frozen", [False, True])
def test_a_graph_has_outputs_in_which_no_input_has_a_part(frozen: bool) -> None:
    message = model([node("Shape", "x", "shape"), node("Identity", "w", "copy"), node("Neg", "x", "y")],
                    [value("x", np.float32, [2])],
                    [value("shape", np.int64, [1]), value("copy", np.float32, [2]), value("y", np.float32, [2])],
                    {"w": np.float32([3, 4])})
    module = load_onnx(message.SerializeToString())
    weights = {} if frozen else {"w": module.named_parameters()["w"].read()}
    found = module.graph(frozen=frozen).compile()(x=np.float32([1, 2]), **weights)
    assert [np.asarray(found[name]).tolist() for name in ("shape", "copy", "y")] == [[2], [3, 4], [-1, -2]]
