"""What was read from a model is written as that model, with the weights of now."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import nnc_core as nnc
from nnc_core.functions.regions import batched_nms
from nnc_core.io import load_module, load_onnx, save_module, save_onnx, to_onnx
from nnc_core.nn import GRU, LSTM, RNN, BatchNorm, Conv2d, Linear, Module, Sequential
from tests.io.onnx.export.evaluating import by_reference, check
from tests.io.onnx.export.networks import NAMES, NETWORKS
from tests.io.onnx.models import classifier, graph, model, node, value
from tests.support import leaves

X = np.random.default_rng(0).standard_normal((2, 1, 8, 8)).astype(np.float32)


def test_other_weights_in_the_same_model() -> None:
    message = classifier()
    module = load_onnx(message.SerializeToString())
    assert to_onnx(module) == message
    for cell in module.cells().values():
        cell.write(cell.read() * 0.5)
    again = to_onnx(module)
    assert again != message and again.graph.node == message.graph.node
    np.testing.assert_allclose(by_reference(again, {"x": X})[0], np.asarray(module(X)), rtol=1e-4, atol=1e-5)


def test_weights_in_nodes_and_sparse_ones(tmp_path: Path) -> None:
    held = onnx.helper.make_node("Constant", [], ["w"], value=onnx.numpy_helper.from_array(np.float32([1, 2]), "named"))
    message = model([held, node("Mul", "x w", "z"), node("Add", "z s", "y")], [value("x", np.float32, [2])],
                    [value("y", np.float32, [2])])
    message.graph.sparse_initializer.append(onnx.helper.make_sparse_tensor(
        onnx.numpy_helper.from_array(np.float32([5]), "s"), onnx.numpy_helper.from_array(np.int64([1]), "at"), [2]))
    module = load_onnx(message.SerializeToString())
    assert list(module.named_parameters()) == ["w", "s"]
    module.cells()["w"].write(nnc.asarray(np.float32([3, 4])))
    save_module(module, tmp_path / "m.nnc")
    for one in (module, load_module(tmp_path / "m.nnc"), pickle.loads(pickle.dumps(module))):
        again = to_onnx(one)
        assert again.graph.node[0].attribute[0].t.name == "named"
        np.testing.assert_array_equal(by_reference(again, {"x": np.float32([1, 1])})[0], np.float32([3, 9]))


def test_files_with_arrays_beside_them(tmp_path: Path) -> None:
    network = Sequential(Linear(64, 64), Linear(64, 3))
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
    one, two = tmp_path / "one" / "m.onnx", tmp_path / "two" / "m.onnx"
    save_onnx(network, one, inputs=[("batch", 64)], external_data=True)
    save_onnx(load_onnx(one), two, external_data=True)
    for name in ("m.onnx", "m.onnx.data"):
        assert (one.parent / name).read_bytes() == (two.parent / name).read_bytes()
    save_onnx(load_onnx(one), tmp_path / "whole.onnx")
    assert onnx.load(tmp_path / "whole.onnx") == to_onnx(network, inputs=[("batch", 64)])


def test_other_inputs_or_dtypes_are_written_anew() -> None:
    module = load_onnx(classifier().SerializeToString())
    fixed = to_onnx(module, inputs=[(2, 1, 8, 8)])
    check(fixed)
    assert [d.dim_value for d in fixed.graph.input[0].type.tensor_type.shape.dim] == [2, 1, 8, 8]
    np.testing.assert_allclose(by_reference(fixed, {"x": X})[0], np.asarray(module(X)), rtol=1e-4, atol=1e-5)
    twice = load_onnx(model([node("Mul", "x w", "y")], [value("x", np.float32, [2])], [value("y", np.float32, [2])],
                            {"w": np.float32([2, 4])}).SerializeToString())
    twice.cells()["w"].cast(np.dtype(np.float64))
    with pytest.raises(nnc.errors.FileFormatError, match="declared"):
        to_onnx(twice)  # as a call of it


def written_twice(network: Any, inputs: list[Any]) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """The model of a network, and that of the graph that was read from it."""
    first = to_onnx(network, inputs=inputs)
    read = load_onnx(first.SerializeToString())
    return first, to_onnx(read.graph(), parameters=read.named_parameters(), buffers=read.named_buffers())


@pytest.mark.parametrize("name", NAMES)
def test_the_graph_that_was_read_is_written_as_it_was(name: str) -> None:
    nnc.manual_seed(0)
    first, again = written_twice(NETWORKS[name].build(), NETWORKS[name].specs())
    assert again.SerializeToString(deterministic=True) == first.SerializeToString(deterministic=True)


def test_a_bias_of_channels_that_lie_first_is_an_operand_too() -> None:
    made, _ = written_twice(Conv2d(3, 4, 3, layout="NCHW"), [("batch", 3, 8, 8)])
    assert [n.op_type for n in made.graph.node] == ["Conv"] and len(made.graph.initializer) == 2


def test_statistics_of_a_graph_are_buffers() -> None:
    network = Sequential(BatchNorm(4), BatchNorm(4))  # whose statistics are equal
    read = load_onnx(to_onnx(network, inputs=[("batch", 4)]).SerializeToString())
    graph = read.graph()
    assert list(graph.inputs) == ["x", *(x.name for x in to_onnx(read).graph.initializer)]
    values: Any = {"parameters": network.named_parameters(),
                   "buffers": {name: cell.read() for name, cell in read.named_buffers().items()}}
    again = load_onnx(to_onnx(graph, **values).SerializeToString())
    assert again.named_buffers().keys() == network.named_buffers().keys()
    assert again.named_parameters().keys() == network.named_parameters().keys()
    with pytest.raises(nnc.errors.OperandError, match="no input 'mean'"):
        to_onnx(graph, buffers={"mean": np.zeros(4)})
    with pytest.raises(nnc.errors.OperandError, match="as a parameter and as a buffer"):
        to_onnx(graph, parameters={"0.scale": np.ones(4)}, buffers={"0.scale": np.ones(4)})
    with pytest.raises(nnc.errors.OperandError, match="of its own"):
        to_onnx(network, inputs=[("batch", 4)], buffers={})


RECURRENT: dict[str, tuple[tuple[Any, ...], Callable[[], Module]]] = {
    "lstm": (("batch", "time", 3), lambda: LSTM(3, 5)),
    "lstm for so many": ((2, 7, 3), lambda: LSTM(3, 5)),
    "layers of it": (("batch", 7, 3), lambda: LSTM(3, 5, layers=2)),
    "a large one": (("batch", 7, 3), lambda: LSTM(3, 300)),
    "both directions": (("batch", 7, 3), lambda: LSTM(3, 5, bidirectional=True)),
    "gru": (("batch", 7, 3), lambda: GRU(3, 5)),
    "rnn": (("batch", 7, 3), lambda: RNN(3, 5)),
    "rectified": (("batch", 7, 3), lambda: RNN(3, 5, nonlinearity="relu")),
}


@pytest.mark.parametrize("name", RECURRENT)
def test_gates_that_are_brought_back_are_the_weights_themselves(name: str) -> None:
    shape, build = RECURRENT[name]
    nnc.manual_seed(0)
    network = build()
    first, again = written_twice(network, [shape])
    check(first)
    assert again.SerializeToString(deterministic=True) == first.SerializeToString(deterministic=True)
    x = np.random.default_rng(0).standard_normal((2, 7, 3)).astype(np.float32)
    with nnc.evaluating():
        wanted = leaves(network(x))
    read = leaves(load_onnx(first.SerializeToString())(x))
    known = name != "rectified"  # onnx evaluates RNN with tanh only
    found = by_reference(first, {"x": x}) if known else [np.asarray(y) for y in read]
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, np.asarray(b), rtol=1e-4, atol=1e-5)


class Calls(Module):
    """A function as a network."""

    def __init__(self, function: Callable[[nnc.Tensor], Any]) -> None:
        self.function = function

    def forward(self, x: nnc.Tensor) -> Any:
        return self.function(x)


LARGE = np.full(2048, 2, np.float32)
FUNCTIONS: dict[str, tuple[tuple[Any, ...], Callable[[nnc.Tensor], Any]]] = {
    "normalised over two axes": (("batch", 4, 6), lambda x: nnc.layer_norm(x, axis=(-2, -1))),
    "normalised with a large scale": (("batch", 2048), lambda x: nnc.layer_norm(x) * LARGE + 1.0),
    "normalised with a bias": (("batch", 6), lambda x: nnc.layer_norm(x) + np.ones(6, np.float32)),
    "normalised by roots": (("batch", 6), lambda x: nnc.rms_norm(x) * np.arange(6, dtype=np.float32)),
    "halves": (("batch", 4), lambda x: nnc.layer_norm(nnc.astype(x, np.float16))),
    "zeros": (("batch", 64, 64), lambda x: x + nnc.zeros((64, 64))),
    "known positions": (("batch", 50, 100), lambda x: x + nnc.reshape(nnc.sin(nnc.arange(5000.0)), (50, 100))),
    "positions": (("batch", "time"), lambda x: x + nnc.arange(x.shape[1], dtype=np.float32)),
    "a constant read twice": ((3000,), lambda x: (x + SOME) * SOME),
    "causal attention": (("batch", 4, 8), lambda x: nnc.scaled_dot_product_attention(x, x, x, causal=True)),
    "images resized": (("batch", 6, 6, 4), lambda x: nnc.resize(x, (9, 9))),
    "places": (("batch", 6), lambda x: nnc.take(x, np.asarray([0, 2]), axis=1)),
    "a branch": ((5, 4), lambda x: nnc.cond(nnc.sum(x) > 0, lambda y: y * 2, lambda y: y + 1, x)),
    "norms": (("batch", 6), lambda x: nnc.linalg.vector_norm(x, axis=1) + nnc.linalg.vector_norm(x, axis=1, ord=1)),
    "sorted": (("batch", 6), lambda x: nnc.sort(x, axis=1)),
    "the largest": (("batch", 6), lambda x: nnc.top_k(x, 2)[0]),
    "bytes": (("batch", 4), lambda x: nnc.astype(x * 1000, np.uint8)),
    "integers": (("batch", 4), lambda x: nnc.astype(x * 1e30, np.int32)),
    "long integers": (("batch", 4), lambda x: nnc.astype(x * 1e30, np.int64)),
    "integers of halves": (("batch", 4), lambda x: nnc.astype(nnc.astype(x * 1e4, np.float16), np.int16)),
    "a scan": ((5, 4), lambda x: nnc.scan(lambda c, row: (c + row, c * row), nnc.zeros(4), x)[1]),
}
SOME = np.random.default_rng(0).standard_normal(3000).astype(np.float32)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_constant_stays_so(name: str) -> None:
    shape, function = FUNCTIONS[name]
    first, again = written_twice(Calls(function), [shape])
    check(first)
    assert not load_onnx(first.SerializeToString()).cells()
    assert again.SerializeToString(deterministic=True) == first.SerializeToString(deterministic=True)
    x = np.random.default_rng(0).standard_normal([2 if isinstance(n, str) else n for n in shape]).astype(np.float32)
    wanted = function(nnc.asarray(x))
    np.testing.assert_allclose(by_reference(first, {"x": x})[0], np.asarray(wanted), rtol=1e-3, atol=1e-4)


CUT = {
    "clipped": (lambda x: nnc.clip(x, -5.0, 300.0), {"int8": False, "int16": True, "uint16": False, "int64": True}),
    "clipped to the end": (lambda x: nnc.clip(x, 0.0, 2.0**31), {"int32": False, "uint32": True}),
    "replaced above": (lambda x: nnc.where(x >= 128.0, 7.0, nnc.maximum(x, -128.0)), {"int8": True, "uint8": False}),
    "replaced by more": (lambda x: nnc.where(x >= 128.0, 200.0, nnc.maximum(x, -128.0)), {"int8": False}),
    "replaced in another": (lambda x: nnc.where(x * 2 >= 128.0, 7.0, nnc.maximum(x, -128.0)), {"int8": False}),
    "free below": (lambda x: nnc.where(x >= 128.0, 7.0, x), {"int8": False}),
}  # fmt: skip


@pytest.mark.parametrize("name", CUT)
def test_what_was_cut_to_the_ends_is_not_cut_again(name: str) -> None:
    cut, known = CUT[name]
    given = np.array([np.nan, -np.inf, np.inf, -1e9, -129, -5.5, 127.6, 128, 299.9, 2.0**31, 1e30], np.float32)
    for dtype, is_known in known.items():
        made = to_onnx(Calls(lambda x, d=dtype: nnc.astype(cut(nnc.where(x != x, 0.0, x)), d)), inputs=[given.shape])
        check(made)
        assert ([n.op_type for n in made.graph.node].count("IsNaN") == 1) == is_known, (dtype, made.graph)
        wanted = np.asarray(nnc.astype(cut(nnc.where(nnc.isnan(given), 0.0, given)), dtype))
        np.testing.assert_array_equal(by_reference(made, {"x": given})[0], wanted)
    without = to_onnx(Calls(lambda x: nnc.astype(cut(x), "int64")), inputs=[given.shape])
    assert "IsNaN" in [n.op_type for n in without.graph.node], "NaN are still to be replaced"


def test_equal_constants_are_written_once() -> None:
    made = to_onnx(Calls(lambda x: (x + SOME) * SOME), inputs=[(3000,)])
    assert len(made.graph.initializer) == 1
    zeros = to_onnx(Calls(lambda x: x * nnc.full((64, 64), 2.0)), inputs=[(64, 64)])
    assert not [x for x in zeros.graph.initializer if x.dims == [64, 64]]


def suppressed(boxes: nnc.Tensor) -> Any:
    return batched_nms(boxes, boxes[:, 0], nnc.arange(6) // 3, 0.3, padded=True)


def test_functions_of_ours_are_known_again_and_run_elsewhere() -> None:
    first, again = written_twice(Calls(suppressed), [(6, 4)])
    check(first)
    assert [(f.domain, f.name) for f in first.functions] == [("nnc", "nms_order")]
    assert again.SerializeToString(deterministic=True) == first.SerializeToString(deterministic=True)
    low = np.random.default_rng(0).uniform(0, 5, (6, 2))
    x = np.concatenate([low, low + 4], 1).astype(np.float32)
    wanted = np.asarray(suppressed(nnc.asarray(x)))
    assert (wanted == -1).any() and (wanted >= 0).any()
    np.testing.assert_array_equal(by_reference(first, {"x": x})[0], wanted)
    (call,) = [n for n in first.graph.node if n.domain == "nnc"]
    call.op_type = first.functions[0].name = "of_a_later_version"  # which runs as what it is made of
    np.testing.assert_array_equal(np.asarray(load_onnx(first.SerializeToString())(x)), wanted)
    del first.functions[:]
    with pytest.raises(nnc.errors.NotSupportedError, match="of_a_later_version"):
        load_onnx(first.SerializeToString())


def test_branches_that_are_read_stay_inside() -> None:
    """What a branch computes of names around it runs only where it is chosen."""
    then = graph([node("Exp", "x", "t")], [], [value("t", np.float32, [3])])
    otherwise = graph([node("Neg", "x", "e")], [], [value("e", np.float32, [3])])
    message = model([node("ReduceSum", "x", "s", keepdims=0), node("Greater", "s zero", "c"),
                     node("If", "c", "y", then_branch=then, else_branch=otherwise)],
                    [value("x", np.float32, [3])], [value("y", np.float32, [3])], {"zero": np.float32(0)})
    read = load_onnx(message.SerializeToString())
    assert not {"exp", "negative"} & {n.op.name for n in read.graph().nodes}
    again = to_onnx(read.graph())
    assert [n.op_type for n in again.graph.node] == ["ReduceSum", "Greater", "If"]
    for x in (np.float32([1, 2, 3]), np.float32([-1, -2, 3])):
        np.testing.assert_allclose(by_reference(again, {"x": x})[0], np.exp(x) if x.sum() > 0 else -x, rtol=1e-6)
