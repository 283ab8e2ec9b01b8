"""Sizes that a model computes, from named ones and from elements of tensors, in graphs too."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import nnc_core as nnc
from nnc_core.io import load_onnx
from tests.io.onnx.models import model, node, value

X = np.random.default_rng(0).standard_normal((1, 2, 5, 7)).astype(np.float32)
FOUR = {"two": np.int64([2]), "four": np.int64([4]), "zero": np.int64([0])}


def resized_like_another(**options: Any) -> onnx.ModelProto:
    """Images in the size of others."""
    return model([node("Shape", "x", "xs"), node("Shape", "other", "s"), node("Slice", "s two four", "hw"),
                  node("Slice", "xs zero two", "nc"), node("Concat", "nc hw", "sizes", axis=0),
                  node("Resize", "x region _ sizes", "y", **options)],
                 [value("x", np.float32, [1, 2, "h", "w"]), value("other", np.float32, [1, 2, "rows", "columns"])],
                 [value("y", np.float32, [1, 2, "rows", "columns"])],
                 {**FOUR, "region": np.float32([0, 0, 0.2, 0.1, 1, 1, 0.9, 1.2])})


@pytest.mark.parametrize("options", [
    {"mode": "nearest"}, {"mode": "linear"}, {"mode": "cubic"}, {"mode": "linear", "antialias": 1},
    {"mode": "cubic", "antialias": 1, "exclude_outside": 1},
    {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 3.0}], ids=str)
def test_images_in_named_sizes(options: dict[str, Any]) -> None:
    module = load_onnx(resized_like_another(**options).SerializeToString())
    graph = module.graph()
    assert str(graph.outputs["y"].spec) == "float32[1,2,rows,columns]"
    run = graph.compile()
    for size in ((9, 8), (3, 14)):
        other = np.ones((1, 2, *size), np.float32)
        np.testing.assert_allclose(run(x=X, other=other)["y"].numpy(), module(X, other).numpy(), rtol=1e-5, atol=1e-5)


CONSTANTS = {"two": np.int64([2]), "far": np.int64([2**63 - 1]), "near": np.int64([-(2**63)]), "none": np.int64([0]),
             "one_axis": np.int64([1]), "down": np.int64([-1]), "both": np.int64([0, 1]), "ends": np.int64([5, 3]),
             "pairs": np.int64([2, 3]), "filling": np.float32(7)}


def by_elements(*nodes: onnx.NodeProto, inputs: Any = (), shape: Any) -> onnx.ModelProto:
    """A model whose sizes are the largest element of an input `r`, `k` as a row."""
    start = [node("ReduceMax", "r", "largest", keepdims=0), node("Cast", "largest", "number", to=7),
             node("Unsqueeze", "number zero", "k")]
    return model([*start, *nodes], [value("r", np.float32, [4]), *inputs], [value("y", np.float32, shape)],
                 {"zero": np.int64([0]), "first": np.int64(0), "one": np.int64(1), "ones": np.int64([1, 2]),
                  **CONSTANTS}, opset=19)


RESIZED = by_elements(
    node("Concat", "ones k k", "sizes", axis=0), node("Resize", "x _ _ sizes", "y", mode="linear"),
    inputs=[value("x", np.float32, [1, 2, 5, 7])], shape=[1, 2, None, None])
FILLED = by_elements(
    node("ConstantOfShape", "k", "zeros"), node("Range", "first number one", "counted"),
    node("Cast", "counted", "floats", to=1), node("Expand", "x k", "same"), node("Sum", "zeros floats same", "y"),
    inputs=[value("x", np.float32, [1])], shape=[None])


@pytest.mark.parametrize(("message", "x"), [(RESIZED, X), (FILLED, X[0, 0, 0, :1])])
def test_sizes_that_are_elements(message: onnx.ModelProto, x: Any) -> None:
    """A graph counts them when it runs; all sizes by one number are known to be the same."""
    module = load_onnx(message.SerializeToString())
    run = module.graph().compile()
    traced = nnc.jit(lambda r, x: module(r, x))
    for largest in (9, 3, 12):
        r = np.float32([1, largest, 2, 3])
        wanted = module(r, x).numpy()
        assert wanted.shape[-1] == largest
        for found in (run(r=r, x=x)["y"], traced(nnc.asarray(r), nnc.asarray(x))):
            np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-5, atol=1e-5)


ROWS = [value("x", np.float32, [5, 4])]
BY_ELEMENTS: dict[str, tuple[onnx.ModelProto, tuple[int, ...]]] = {  # with the largest elements that are tried
    "a shape": (by_elements(node("Concat", "k two", "shape", axis=0), node("Reshape", "x shape", "y"), inputs=ROWS,
                            shape=[None, 2]), (10, -1)),
    "a shape that keeps a size": (by_elements(
        node("Concat", "k ones two", "shape", axis=0), node("Reshape", "x shape", "y"), inputs=ROWS,
        shape=[None, 1, 2, 2]), (0, 5)),
    "a start": (by_elements(node("Slice", "x k far", "y"), inputs=ROWS, shape=[None, 4]), (2, 0, -2, 9, -9)),
    "an end": (by_elements(node("Slice", "x none k one_axis", "y"), inputs=ROWS, shape=[5, None]), (2, 0, -2, 9, -9)),
    "bounds downwards": (by_elements(node("Slice", "x k near none down", "y"), inputs=ROWS, shape=[None, 4]),
                         (2, 0, -2, 9)),
    "every second": (by_elements(node("Concat", "k none", "from", axis=0), node("Slice", "x from ends both pairs", "y"),
                                 inputs=ROWS, shape=[None, 1]), (1, 0, -4)),
    "repetitions": (by_elements(node("Concat", "k two", "times", axis=0), node("Tile", "x times", "y"), inputs=ROWS,
                                shape=[None, 8]), (3, 1, 0)),
    **{f"pads by {mode}": (by_elements(
        node("Concat", "k none two none", "pads", axis=0),
        node("Pad", f"x pads{' filling' * (mode == 'constant')}", "y", mode=mode), inputs=ROWS, shape=[None, 4]),
        (3, 0, -2)) for mode in ("constant", "edge", "reflect", "wrap")},
}


@pytest.mark.parametrize("name", BY_ELEMENTS)
def test_shapes_bounds_and_widths_that_are_elements(name: str) -> None:
    """A graph computes what eager code does, whose sizes are numbers."""
    message, tried = BY_ELEMENTS[name]
    module = load_onnx(message.SerializeToString())
    run = module.graph().compile()
    traced = nnc.jit(lambda r, x: module(r, x))
    x = np.arange(20, dtype=np.float32).reshape(5, 4)
    for largest in tried:
        r = np.float32([largest - 3, largest, largest - 1, -20])
        wanted = module(r, x).numpy()
        for found in (run(r=r, x=x)["y"], traced(nnc.asarray(r), nnc.asarray(x))):
            np.testing.assert_array_equal(found.numpy(), wanted)


def test_a_shape_that_does_not_fit_is_an_error_when_it_runs() -> None:
    message, _ = BY_ELEMENTS["a shape"]
    run = load_onnx(message.SerializeToString()).graph().compile()
    with pytest.raises(nnc.errors.Error):
        run(r=np.float32([1, 3, 2, 1]), x=np.zeros((5, 4), np.float32))


def test_what_cannot_be_counted_is_refused() -> None:
    """Of two sizes that are elements, none follows from the other."""
    message = by_elements(node("Concat", "k k", "shape", axis=0), node("Reshape", "r shape", "y"), shape=[None, None])
    module = load_onnx(message.SerializeToString())
    with pytest.raises(nnc.errors.NotSupportedError, match="only a call computes"):
        module.graph()
    assert module(np.float32([1, 2, 2, 0])).shape == (2, 2)
    known = module.graph(r=np.float32([1, 2, 2, 0]))
    assert known.compile()()["y"].shape == (2, 2)
