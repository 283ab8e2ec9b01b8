"""A model as a module: its parts by name, its modes, sizes that follow, training, files."""

from __future__ import annotations

import copy
import gc
import pickle
import tracemalloc
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import nnc_core as nnc
from nnc_core import io, nn, optim
from nnc_core.io import load_onnx
from tests.io.onnx.models import classifier, graph, model, node, value

RNG = np.random.default_rng(7)


def images(count: int) -> Any:
    return RNG.standard_normal((count, 1, 8, 8)).astype(np.float32)


def wanted(message: onnx.ModelProto, **given: Any) -> Any:
    return ReferenceEvaluator(message).run(None, given)[0]


def test_initialisers_are_parameters_buffers_and_constants() -> None:
    module = load_onnx(classifier().SerializeToString())
    assert list(module.named_parameters()) == ["conv.weight", "conv.bias", "norm.weight", "norm.bias", "fc.weight",
                                               "fc.bias"]
    assert list(module.named_buffers()) == ["norm.mean", "norm.var"]
    assert module.input_names == ("x",) and module.output_names == ("logits",)
    assert module.dimension_names == ("batch",) and module.static_names == ()


def test_every_mode_gives_the_reference_s_values() -> None:
    message = classifier()
    module = load_onnx(message.SerializeToString())
    x = images(5)
    expected = wanted(message, x=x)
    np.testing.assert_allclose(np.asarray(module(x)), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(np.asarray(nnc.jit(module)(nnc.asarray(x))), expected, rtol=1e-4, atol=1e-5)
    with nnc.deferred():
        y = module(nnc.asarray(x))
    np.testing.assert_allclose(np.asarray(y), expected, rtol=1e-4, atol=1e-5)
    module.hybridize()
    np.testing.assert_allclose(np.asarray(module(x=x)), expected, rtol=1e-4, atol=1e-5)


def test_one_trace_serves_all_batches() -> None:
    message = classifier()
    module = load_onnx(message.SerializeToString()).hybridize()
    for batch in range(1, 9):
        x = images(batch)
        np.testing.assert_allclose(np.asarray(module(x)), wanted(message, x=x), rtol=1e-4, atol=1e-5)
    assert module._compiled.traces == 2  # the first for its own size, the second for a size that has a name


def test_the_graph_keeps_names_and_dimensions() -> None:
    message = classifier()
    module = load_onnx(message.SerializeToString())
    made = module.graph()
    assert list(made.inputs) == ["x", *module.cells()] and list(made.outputs) == ["logits"]
    assert made.inputs["x"].spec.shape == (nnc.Dim("batch"), 1, 8, 8)
    weights = {name: cell.read() for name, cell in module.cells().items()}
    compiled, frozen = made.compile(), module.graph(frozen=True).compile()
    fixed = module.graph(sizes={"batch": 2}, frozen=True)
    assert fixed.inputs["x"].spec.shape == (2, 1, 8, 8)
    for batch in (1, 4):
        x = images(batch)
        expected = wanted(message, x=x)
        np.testing.assert_allclose(np.asarray(compiled(x=x, **weights)["logits"]), expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(np.asarray(frozen(x=x)["logits"]), expected, rtol=1e-4, atol=1e-5)


def loss_of(module: Any, x: Any, labels: Any) -> Any:
    return nnc.cross_entropy(module(x), labels)


def test_twenty_steps_of_fine_tuning_lower_the_loss_eagerly_and_compiled_alike() -> None:
    x, labels = images(12), RNG.integers(0, 3, 12)
    histories, weights = [], []
    for compiled in (False, True):
        module = load_onnx(classifier().SerializeToString())
        module.freeze("conv.*")
        first = module.state_dict()

        gradients = nn.value_and_grad(module, partial(loss_of, module))
        step = optim.make_step(gradients, optim.Adagrad(module.named_parameters(), 0.05))
        run = nnc.jit(step) if compiled else step
        histories.append([float(run(nnc.asarray(x), nnc.asarray(labels))) for _ in range(20)])
        last = module.state_dict()
        weights.append(last)
        assert all(np.array_equal(first[name], last[name]) == name.startswith(("conv.", "norm.mean", "norm.var"))
                   for name in first)
    assert histories[0][-1] < 0.7 * histories[0][0]
    for name, array in weights[0].items():
        np.testing.assert_allclose(weights[1][name], array, rtol=1e-3, atol=1e-5)


def test_an_input_that_says_a_size_is_compiled_for_its_value() -> None:
    message = model([node("Reshape", "x shape", "y")],
                    [value("x", np.float32, ["n"]), value("shape", np.int64, [2])],
                    [value("y", np.float32, None)])
    module = load_onnx(message.SerializeToString()).hybridize()
    assert module.static_names == ("shape",)
    x = np.arange(6, dtype=np.float32)
    for shape in ((2, 3), (3, 2), (-1, 6), (2, 3)):
        np.testing.assert_array_equal(np.asarray(module(x, np.asarray(shape))), x.reshape(shape))
    assert module.graph(shape=np.asarray((3, -1)), sizes={"n": 6}).outputs["y"].spec.shape == (3, 2)


def test_branches_and_loops_that_only_a_call_decides() -> None:
    then = graph([node("Mul", "x two", "t")], [], [value("t", np.float32, [3])])
    otherwise = graph([node("Neg", "x", "e")], [], [value("e", np.float32, [3])])
    message = model([node("ReduceSum", "x", "s", keepdims=0), node("Greater", "s zero", "c"),
                     node("If", "c", "y", then_branch=then, else_branch=otherwise)],
                    [value("x", np.float32, [3])], [value("y", np.float32, [3])],
                    {"two": np.float32(2), "zero": np.float32(0)})
    body = graph([node("Add", "v v", "w"), node("ReduceMax", "w", "m", keepdims=0), node("Less", "m limit", "go")],
                 [value("i", np.int64, []), value("c", bool, []), value("v", np.float32, [3])],
                 [value("go", bool, []), value("w", np.float32, [3])])
    doubling = model([node("Loop", "_ yes x", "y", body=body)], [value("x", np.float32, [3])],
                     [value("y", np.float32, [3])], {"limit": np.float32(100), "yes": np.bool_(True)})
    for made in (message, doubling):
        eager, compiled = (load_onnx(made.SerializeToString()) for _ in range(2))
        compiled.hybridize()
        for x in (np.float32([1, 2, 3]), np.float32([0.5, -2, 1])):
            expected = wanted(made, x=x)
            np.testing.assert_array_equal(np.asarray(eager(x)), expected)
            np.testing.assert_array_equal(np.asarray(compiled(x)), expected)


def test_a_long_loop_is_one_loop_in_compiled_code() -> None:
    body = graph([node("Identity", "c", "go"), node("Mul", "v half", "w"), node("Add", "w one", "u")],
                 [value("i", np.int64, []), value("c", bool, []), value("v", np.float32, [2])],
                 [value("go", bool, []), value("u", np.float32, [2]), value("w", np.float32, [2])])
    message = model([node("Loop", "trips yes x", "y rows", body=body)], [value("x", np.float32, [2])],
                    [value("y", np.float32, [2]), value("rows", np.float32, [50, 2])],
                    {"trips": np.int64(50), "yes": np.bool_(True), "half": np.float32(0.5), "one": np.float32(1)})
    module = load_onnx(message.SerializeToString())
    expected = ReferenceEvaluator(message).run(None, {"x": np.float32([3, -4])})
    for found, value_ in zip(module.hybridize()(np.float32([3, -4])), expected, strict=True):
        np.testing.assert_allclose(np.asarray(found), value_, rtol=1e-6)
    assert len(module.graph().nodes) < 10


def test_a_loop_of_as_many_rounds_as_a_size_that_has_a_name() -> None:
    body = graph([node("Identity", "c", "go"), node("Gather", "x i", "row"), node("Add", "v row", "w")],
                 [value("i", np.int64, []), value("c", bool, []), value("v", np.float32, [2])],
                 [value("go", bool, []), value("w", np.float32, [2]), value("row", np.float32, [2])])
    ending = graph([node("ReduceMax", "w", "m", keepdims=0), node("Less", "m limit", "go"), node("Add", "v one", "w")],
                   [value("i", np.int64, []), value("c", bool, []), value("v", np.float32, [2])],
                   [value("go", bool, []), value("w", np.float32, [2])])
    ending.node.insert(0, ending.node.pop(2))
    message = model([node("Shape", "x", "s", end=1), node("Squeeze", "s", "n"),
                     node("Loop", "n yes zeros", "y rows", body=body), node("Loop", "n yes zeros", "z", body=ending)],
                    [value("x", np.float32, ["n", 2])],
                    [value("y", np.float32, [2]), value("rows", np.float32, ["n", 2]), value("z", np.float32, [2])],
                    {"yes": np.bool_(True), "zeros": np.float32([0, 0]), "one": np.float32(1), "limit": np.float32(4)})
    module = load_onnx(message.SerializeToString())
    made = module.graph(frozen=True).compile()
    module.hybridize()
    for n in (1, 3, 6, 12):
        x = RNG.standard_normal((n, 2)).astype(np.float32)
        expected = ReferenceEvaluator(message).run(None, {"x": x})
        for results in (module(x), list(made(x=x).values())):
            for found, other in zip(results, expected, strict=True):
                np.testing.assert_allclose(np.asarray(found), other, rtol=1e-5, atol=1e-6)


# ---- files
def test_a_module_file_holds_the_weights_once(tmp_path: Path) -> None:
    message = classifier()
    module = load_onnx(message.SerializeToString())
    module.freeze("fc.*")
    x = images(2)
    io.save_module(module, tmp_path / "m.nnc")
    again = io.load_module(tmp_path / "m.nnc")
    np.testing.assert_array_equal(np.asarray(again(x)), np.asarray(module(x)))
    assert list(again.named_parameters()) == list(module.named_parameters())
    for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert list(other.named_parameters()) == list(module.named_parameters())
        np.testing.assert_array_equal(np.asarray(other(x)), np.asarray(module(x)))


def test_copies_keep_the_constants_of_the_model() -> None:
    message = model([node("Mul", "x two", "y")], [value("x", np.float32, [2])], [value("y", np.float32, [2])],
                    {"two": np.float32(2)})
    module = load_onnx(message.SerializeToString())
    for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        np.testing.assert_array_equal(np.asarray(other(np.float32([1, 3]))), [2, 6])


def test_a_model_that_gives_texts_is_not_compiled_and_says_so() -> None:
    texts = helper.make_model(helper.make_graph(
        [node("StringConcat", "x x", "y")], "texts", [helper.make_tensor_value_info("x", onnx.TensorProto.STRING, [1])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.STRING, [1])]),
        opset_imports=[helper.make_opsetid("", 21)])
    module = load_onnx(texts.SerializeToString())
    with pytest.warns(nnc.errors.FallbackWarning, match=r"gives texts \(y\)"):
        module.hybridize()
    assert list(module(np.asarray(["a"], object))) == ["aa"]


def test_sizes_given_as_results_are_of_the_dtype_that_is_declared() -> None:
    message = model([node("Shape", "x", "s"), node("Cast", "s", "y", to=onnx.TensorProto.INT32)],
                    [value("x", np.float32, ["n", 2])], [value("y", np.int32, [2])])
    module = load_onnx(message.SerializeToString()).hybridize()
    graph = module.graph().compile()
    for n in (2, 3, 4):
        x = np.zeros((n, 2), np.float32)
        for found in (module(x), graph(x=x)["y"]):
            assert found.dtype == np.int32 and found.tolist() == [n, 2]


def test_sizes_keep_the_dtype_that_they_are_cast_to() -> None:
    nodes = [node("Shape", "x", "s"), node("Cast", "s", "narrow", to=onnx.TensorProto.INT32),
             node("Gather", "narrow zero", "n"), node("Mul", "n two", "twice"), node("Add", "twice a", "sum"),
             node("CastLike", "s a", "alike"), node("Concat", "alike alike", "pair", axis=0),
             node("Range", "none n one", "count"), node("Mul", "count a", "counted"),
             node("Where", "yes pair pair", "chosen"), node("Add", "chosen a", "y")]
    message = model(nodes, [value("x", np.float32, ["n", 2]), value("a", np.int32, [1])],
                    [value("sum", np.int32, [1]), value("counted", np.int32, ["n"]), value("y", np.int32, [4])],
                    {"zero": np.int64(0), "two": np.int32(2), "one": np.int32(1), "none": np.int32(0),
                     "yes": np.bool_(True)})
    message.graph.value_info.extend(value(name, np.int32, shape) for name, shape in
                                    {"narrow": [2], "n": [], "twice": [], "pair": [4], "chosen": [4]}.items())
    onnx.checker.check_model(message, full_check=True)
    module = load_onnx(message.SerializeToString()).hybridize()
    graph = module.graph().compile()
    for n in (2, 3, 4):
        given = {"x": np.zeros((n, 2), np.float32), "a": np.int32([7])}
        expected = ReferenceEvaluator(message).run(None, given)
        for found in (module(**given), graph(**given).values()):
            for one, other in zip(found, expected, strict=True):
                assert one.dtype == other.dtype and np.array_equal(np.asarray(one), other)


def test_weights_are_in_memory_once() -> None:
    module = load_onnx(classifier().SerializeToString())
    held = pickle.dumps({name: x for name, x in module.__getstate__().items() if name not in module.cells()})
    assert np.asarray(module.state_dict()["fc.weight"]).tobytes() not in held
    assert not module.cells().keys() & module._graph.initialisers.keys()


def test_weights_beside_the_model_are_mapped(tmp_path: Path) -> None:
    message = classifier()
    onnx.save_model(message, tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=16)
    module, x = load_onnx(tmp_path / "m.onnx"), images(2)
    np.testing.assert_allclose(np.asarray(module(x)), wanted(classifier(), x=x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("location", ["../m.data", "/etc/passwd", "", "folder/../../m.data", "missing.data"])
def test_weights_outside_of_the_folder_are_refused(tmp_path: Path, location: str) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "m.data").write_bytes(bytes(4096))
    message = classifier()
    tensor = message.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    (inside / "m.onnx").write_bytes(message.SerializeToString())
    with pytest.raises((io.MissingFileError, nnc.errors.FileFormatError), match=r"conv\.weight"):
        load_onnx(inside / "m.onnx")


def test_functions_of_the_model() -> None:
    function = helper.make_function(
        "mine", "Scaled", ["a"], ["b"], [helper.make_node("Constant", [], ["k"]), node("Mul", "a k", "b")],
        [helper.make_opsetid("", 21)], ["factor"])
    function.node[0].attribute.add(name="value_float", type=onnx.AttributeProto.FLOAT, ref_attr_name="factor")
    message = model([helper.make_node("Scaled", ["x"], ["y"], domain="mine", factor=3.0)],
                    [value("x", np.float32, [2])], [value("y", np.float32, [2])])
    message.functions.append(function)
    message.opset_import.append(helper.make_opsetid("mine", 1))
    module = load_onnx(message.SerializeToString())
    np.testing.assert_array_equal(np.asarray(module(np.float32([1, 2]))), np.float32([3, 6]))


def test_an_initialiser_that_is_an_input_too_is_a_default() -> None:
    message = model([node("Add", "x w", "s"), node("Mul", "s k", "p"), node("Reshape", "p shape", "y")],
                    [value("x", np.float32, [2]), value("w", np.float32, [2]), value("k", np.float32, []),
                     value("shape", np.int64, [2])],
                    [value("y", np.float32, None)],
                    {"w": np.float32([1, 2]), "k": np.float32(2), "shape": np.int64([1, 2])})
    module = load_onnx(message.SerializeToString())
    assert module.input_names == ("x",) and list(module.named_parameters()) == ["w"]
    assert module.default_names == ("w", "k", "shape")
    x = np.float32([1, 1])
    for run in (module, load_onnx(message.SerializeToString()).hybridize(), pickle.loads(pickle.dumps(module))):
        for others in ({}, {"w": np.float32([5, 6])}, {"k": np.float32(-1)}, {"shape": np.int64([2, 1])},
                       {"w": np.float32([0, 1]), "shape": np.int64([2, -1])}, {}):
            np.testing.assert_array_equal(np.asarray(run(x, **others)), wanted(message, x=x, **others))
    assert module.graph(shape=np.int64([2, 1])).outputs["y"].spec.shape == (2, 1)
    with pytest.raises(nnc.errors.ShapeError, match="'w'"):
        module(x, w=np.float32([1, 2, 3]))


def test_sparse_initialisers_are_written_out() -> None:
    message = model([node("Add", "x w", "y")], [value("x", np.float32, [4])], [value("y", np.float32, [4])])
    values = numpy_helper.from_array(np.float32([5, 7]), "w")
    message.graph.sparse_initializer.append(helper.make_sparse_tensor(
        values, numpy_helper.from_array(np.int64([1, 3]), "at"), [4]))
    np.testing.assert_array_equal(np.asarray(load_onnx(message.SerializeToString())(np.zeros(4, np.float32))),
                                  [0, 5, 0, 7])


def test_a_model_that_was_read_is_written_with_its_names(tmp_path: Path) -> None:
    module = load_onnx(classifier().SerializeToString())
    io.save_onnx(module, tmp_path / "again.onnx")
    again = load_onnx(tmp_path / "again.onnx")
    assert again.input_names == module.input_names and again.output_names == module.output_names
    assert again.inputs == module.inputs and list(again.named_parameters()) == list(module.named_parameters())
    for batch in (1, 3):
        x = images(batch)
        np.testing.assert_allclose(np.asarray(again(x)), np.asarray(module(x)), rtol=1e-5, atol=1e-6)


def test_arrays_that_a_call_computes_go_with_it() -> None:
    message = model([node("Shape", "x", "s"), node("Cast", "s", "f", to=1), node("Mul", "f two", "g"),
                     node("Mul", "x g", "y")], [value("x", np.float32, ["n"])], [value("y", np.float32, None)],
                    {"two": np.float32(2)})
    module = load_onnx(message.SerializeToString())
    x = nnc.ones((3,), dtype=np.float32)
    module(x)
    gc.collect()
    tracemalloc.start()
    try:
        for _ in range(50):
            module(x)
        gc.collect()
        left = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, "*/io/onnx/reading/*")])
        assert sum(part.count for part in left.statistics("filename")) < 50
    finally:
        tracemalloc.stop()


def test_a_result_that_is_a_constant_is_the_caller_s() -> None:
    message = model([node("Identity", "two", "y")], [value("x", np.float32, ["n"])], [value("y", np.float32, [])],
                    {"two": np.float32(2)})
    module = load_onnx(message.SerializeToString())
    copied = copy.deepcopy(module)
    for one in (module, copied, module):
        y = one(np.ones(1, np.float32))
        y += 1
        assert float(y) == 3


@pytest.mark.parametrize("operator", ["ReduceL1", "ReduceL2"])
def test_gradients_of_norms_at_zero_are_zero(operator: str) -> None:
    message = model([node(operator, "x axes", "y", keepdims=0)], [value("x", np.float32, [2, 3])],
                    [value("y", np.float32, [2])], {"axes": np.int64([1])})
    module = load_onnx(message.SerializeToString())
    x = np.float32([[3, 0, 4], [0, 0, 0]])
    found = nnc.grad(lambda v: nnc.sum(module(v)))(nnc.asarray(x))
    expected = np.sign(x) if operator == "ReduceL1" else x / np.float32([[5], [1]])
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-6)
