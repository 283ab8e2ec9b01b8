"""Random graphs give what ONNX' reference gives: eagerly, hybridized, and as graphs of fixed and of named sizes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from onnx.reference import ReferenceEvaluator

import nnc_core as nnc
from nnc_core.io import load_onnx, to_onnx
from tests.io.onnx.models import graph, model, node, value
from tests.io.onnx.random_graphs import random_models
from tests.io.onnx.running import check_modes


def reference(message: onnx.ModelProto, inputs: Mapping[str, Any]) -> list[Any]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return list(ReferenceEvaluator(message).run(None, dict(inputs)))


@given(random_models())
def test_every_mode(drawn: tuple[onnx.ModelProto, Mapping[str, Any]]) -> None:
    message, inputs = drawn
    wanted = reference(message, inputs)
    check_modes(message, inputs, wanted, 1e-3, 1e-4)
    assert to_onnx(load_onnx(message.SerializeToString())) == message


# ---- what random graphs found
def sizes_of(*nodes: onnx.NodeProto, **initialisers: Any) -> nnc.SymbolicGraph:
    """The frozen graph of a model that reads the sizes of x [n], with the result r."""
    message = model(nodes, [value("x", np.float32, ["n"])], [value("r", np.int64, None)], initialisers)
    return load_onnx(message.SerializeToString()).graph(frozen=True)


@pytest.mark.parametrize(("start", "step"), [(0, 1), (1, 1), (0, 2), (1, 2), (2, 3)])
def test_a_range_up_to_a_size_that_has_a_name(start: int, step: int) -> None:
    made = sizes_of(node("Size", "x", "n"), node("Range", "start n step", "r"), start=np.int64(start),
                    step=np.int64(step))
    down = sizes_of(node("Size", "x", "n"), node("Range", "n start step", "r"), start=np.int64(start),
                    step=np.int64(-step))
    for n in (3, 4, 8):
        x = np.ones(n, np.float32)
        assert np.asarray(made.compile()(x=x)["r"]).tolist() == list(range(start, n, step))
        assert np.asarray(down.compile()(x=x)["r"]).tolist() == list(range(n, start, -step))


def test_host_values_take_shapes_that_have_names() -> None:
    made = sizes_of(node("Shape", "x", "s"), node("Expand", "one s", "r"), one=np.int64(1))
    assert np.asarray(made.compile()(x=np.ones(3, np.float32))["r"]).tolist() == [1, 1, 1]


def test_sizes_are_split_by_python() -> None:
    message = model([node("Shape", "x", "s"), node("Split", "s", "a b", num_outputs=2),
                     node("Concat", "b a", "t", axis=0), node("Reshape", "x t", "y")],
                    [value("x", np.float32, ["n", 3])], [value("y", np.float32, None)])
    module = load_onnx(message.SerializeToString()).hybridize()
    for n in (2, 4, 5):
        assert module(np.ones((n, 3), np.float32)).shape == (3, n)


def test_nothing_of_an_axis_of_any_length() -> None:
    made = sizes_of(node("Slice", "x one zero", "y"), node("Shape", "y", "r"), one=np.int64([1]), zero=np.int64([0]))
    assert np.asarray(made.compile()(x=np.ones(3, np.float32))["r"]).tolist() == [0]


def test_a_loop_takes_its_rounds_from_a_tensor_of_one_element() -> None:
    body = graph([node("Add", "state one", "next"), node("Identity", "going", "still")],
                 [value("i", np.int64, []), value("going", bool, []), value("state", np.int64, [])],
                 [value("still", bool, []), value("next", np.int64, [])], {"one": np.int64(1)})
    message = model([node("Loop", "count _ zero", "r", body=body)], [value("count", np.int64, [1])],
                    [value("r", np.int64, [])], {"zero": np.int64(0)})
    assert int(load_onnx(message.SerializeToString())(np.int64([3]))) == 3


def test_a_function_may_have_the_name_of_an_operator_in_it() -> None:
    inner = onnx.helper.make_function("mine", "MeanVarianceNormalization", ["a"], ["b"],
                                      [node("MeanVarianceNormalization", "a", "b", axes=[0])],
                                      [onnx.helper.make_opsetid("", 21)])
    message = model([onnx.helper.make_node("MeanVarianceNormalization", ["x"], ["y"], domain="mine")],
                    [value("x", np.float32, [3])], [value("y", np.float32, None)])
    message.functions.append(inner)
    message.opset_import.append(onnx.helper.make_opsetid("mine", 1))
    y = load_onnx(message.SerializeToString())(np.float32([1, 2, 3]))
    np.testing.assert_allclose(np.asarray(y), np.float32([-1, 0, 1]) * 1.5**0.5, rtol=1e-5)
