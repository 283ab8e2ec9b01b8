"""Files that are no models, contradict themselves or ask for what is not there: one clear error each."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import nnc_core as nnc
from nnc_core import nn
from nnc_core.errors import DTypeError, FileFormatError, ModelWarning, NotSupportedError, OperandError, ShapeError
from nnc_core.functions.regions import batched_nms
from nnc_core.io import load_onnx, to_onnx
from tests.io.onnx.models import classifier, graph, model, node, value

Change = Callable[[onnx.ModelProto], None]


def changed(change: Change) -> bytes:
    message = classifier()
    change(message)
    return message.SerializeToString()


def reverse_nodes(m: onnx.ModelProto) -> None:
    nodes = list(m.graph.node)
    del m.graph.node[:]
    m.graph.node.extend(reversed(nodes))


def circle(m: onnx.ModelProto) -> None:
    m.graph.node[0].input[0] = "logits"


def drop_initialiser(m: onnx.ModelProto) -> None:
    del m.graph.initializer[0]


def nameless_initialiser(m: onnx.ModelProto) -> None:
    m.graph.initializer[0].name = ""


def twice(m: onnx.ModelProto) -> None:
    m.graph.node[1].output[0] = "a"


def unknown_attribute(m: onnx.ModelProto) -> None:
    m.graph.node[0].attribute.add(name="colour", type=onnx.AttributeProto.INT, i=1)


def wrong_declaration(m: onnx.ModelProto) -> None:
    m.graph.input.append(value("conv.bias", np.float64, [4]))


def too_few_inputs(m: onnx.ModelProto) -> None:
    del m.graph.node[1].input[2:]


def too_many_inputs(m: onnx.ModelProto) -> None:
    m.graph.node[2].input.extend(["a", "a"])


def later_version(m: onnx.ModelProto) -> None:
    m.opset_import[0].version = 999


def damaged_tensor(m: onnx.ModelProto) -> None:
    m.graph.initializer[0].raw_data = b"abc"


def no_domain(m: onnx.ModelProto) -> None:
    m.graph.node[2].domain = "somebody.else"


@pytest.mark.parametrize(("change", "says"), [
    (reverse_nodes, "order in which they run"), (circle, "without circles"),
    (drop_initialiser, r"nothing in the model makes 'conv.weight', which Conv node 'Conv_a' reads"),
    (nameless_initialiser, "has no name"), (twice, "are called 'a'"),
    (unknown_attribute, "Conv node 'Conv_a': Conv has no attribute 'colour'"),
    (wrong_declaration, "'conv.bias' contradicts"), (too_few_inputs, "needs 5 inputs"),
    (too_many_inputs, "takes 1 inputs"),
    (later_version, "version 999"), (damaged_tensor, "'conv.weight' cannot be read"),
    (no_domain, "the domain 'somebody.else', of which the model imports no version"),
])  # fmt: skip
def test_models_that_contradict_themselves(change: Change, says: str) -> None:
    with pytest.raises(FileFormatError, match=says):
        load_onnx(changed(change))


def test_every_missing_operator_is_said_at_once() -> None:
    message = model([helper.make_node("Mystery", ["x"], ["a"], name="first", domain="them"),
                     node("Relu", "a", "b"), helper.make_node("Mystery", ["b"], ["c"], domain="them"),
                     helper.make_node("Other", ["c"], ["y"], domain="them")],
                    [value("x", np.float32, [2])], [value("y", np.float32, [2])])
    message.opset_import.append(helper.make_opsetid("them", 3))
    with pytest.raises(NotSupportedError, match=r"them\.Mystery, version 3, first in Mystery node 'first'") as raised:
        load_onnx(message.SerializeToString())
    assert "them.Other, version 3" in str(raised.value)


@pytest.mark.parametrize("size", [0, 1, 7, 100, 1000])
def test_files_that_are_cut_off(tmp_path: Path, size: int) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(classifier().SerializeToString()[:size])
    with pytest.raises(FileFormatError, match=r"m\.onnx"):
        load_onnx(path)


def test_no_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(nnc.io.MissingFileError, match="absent"):
        load_onnx(tmp_path / "absent.onnx")
    with pytest.raises(nnc.io.NotAFileError):
        load_onnx(tmp_path)


# ---- calls
def test_calls_that_do_not_fit() -> None:
    module = load_onnx(classifier().SerializeToString())
    x = np.zeros((1, 1, 8, 8), np.float32)
    with pytest.raises(OperandError, match="'x' of the model is missing"):
        module()
    with pytest.raises(OperandError, match="no input 'z'"):
        module(z=x)
    with pytest.raises(OperandError, match="2 were given"):
        module(x, x)
    with pytest.raises(DTypeError, match="the input 'x' is float32, not float64"):
        module(x.astype(np.float64))
    with pytest.raises(ShapeError, match=r"the input 'x' is \[batch, 1, 8, 8\], not \[1, 2, 8, 8\]"):
        module(np.zeros((1, 2, 8, 8), np.float32))


def test_errors_of_nodes_name_the_node_the_file_and_the_users_line() -> None:
    message = model([node("Reshape", "x shape", "y")], [value("x", np.float32, None)],
                    [value("y", np.float32, None)], {"shape": np.int64([2, 3])})
    with pytest.raises(ShapeError) as raised:
        load_onnx(message.SerializeToString())(np.zeros(5, np.float32))
    assert "Reshape node 'Reshape_y' of the model" in str(raised.value)
    assert "test_bad_models.py" in str(raised.value)


def test_an_output_of_another_dtype_than_declared() -> None:
    message = model([node("Relu", "x", "y")], [value("x", np.float32, [2])], [value("y", np.float64, [2])])
    with pytest.raises(FileFormatError, match="'y' of the model is declared as float64"):
        load_onnx(message.SerializeToString())(np.zeros(2, np.float32))


def test_a_value_in_between_of_another_dtype_than_declared() -> None:
    message = classifier()
    message.graph.value_info.append(value("c", np.float16, None))
    with pytest.raises(FileFormatError, match="'c' is declared as float16, but it is float32") as raised:
        load_onnx(message.SerializeToString())(np.zeros((1, 1, 8, 8), np.float32))
    assert "Relu node 'Relu_c' of the model" in str(raised.value)


def test_an_output_of_another_shape_than_declared_is_a_warning() -> None:
    message = model([node("Relu", "x", "y")], [value("x", np.float32, ["n"])], [value("y", np.float32, [1])])
    with pytest.warns(ModelWarning, match=r"'y' of the model is declared as \[1\], but is \[3\]"):
        load_onnx(message.SerializeToString())(np.zeros(3, np.float32))


def test_a_device_is_usable_after_a_model_that_fails() -> None:
    with pytest.raises(nnc.Error):
        load_onnx(changed(circle))
    assert float(nnc.sum(nnc.ones(3))) == 3


# ---- chance
def mutated(data: bytes, rng: random.Random) -> bytes:
    """A few bytes changed, left out, doubled, or the end cut off."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(changed))
        kind = rng.randrange(5)
        if kind < 3:
            changed[at] = rng.randrange(256)
        elif kind == 3:
            del changed[at:at + rng.randint(1, 8)]
        else:
            changed[at:at] = changed[at:at + rng.randint(1, 8)]
    return bytes(changed[:rng.randrange(1, len(changed))] if rng.random() < 0.1 else changed)


def originals() -> list[tuple[bytes, Any]]:
    body = graph([node("Add", "v v", "w"), node("ReduceMax", "w", "m", keepdims=0), node("Less", "m limit", "go")],
                 [value("i", np.int64, []), value("c", bool, []), value("v", np.float32, [3])],
                 [value("go", bool, []), value("w", np.float32, [3])])
    doubling = model([node("Loop", "most yes x", "y", body=body)], [value("x", np.float32, [3])],
                     [value("y", np.float32, [3])],
                     {"limit": np.float32(100), "yes": np.bool_(True), "most": np.int64(20)})
    texts = helper.make_model(helper.make_graph(
        [node("StringConcat", "x x", "y")], "texts", [helper.make_tensor_value_info("x", TensorProto.STRING, [1])],
        [helper.make_tensor_value_info("y", TensorProto.STRING, [1])]), opset_imports=[helper.make_opsetid("", 21)])
    return [(classifier().SerializeToString(), np.ones((2, 1, 8, 8), np.float32)),
            (doubling.SerializeToString(), np.ones(3, np.float32)),
            (texts.SerializeToString(), np.asarray(["a"], object)), *written()]


def written() -> list[tuple[bytes, Any]]:
    """Models of nnc's own, whose metadata say what is state, and with a function that they bring along."""
    network = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.BatchNorm(4), nn.Linear(4, 2))
    boxes = nnc.var_arr("boxes", (4, 4))
    order = batched_nms(boxes, boxes[:, 0], nnc.arange(4) // 2, 0.5, padded=True)
    suppression = nnc.export({"boxes": boxes}, {"order": order}, capture="constant")
    return [(to_onnx(network, inputs=[("batch", 3)]).SerializeToString(), np.ones((2, 3), np.float32)),
            (to_onnx(nn.LSTM(3, 2), inputs=[("batch", 2, 3)]).SerializeToString(), np.ones((1, 2, 3), np.float32)),
            (to_onnx(suppression).SerializeToString(), np.arange(16, dtype=np.float32).reshape(4, 4))]


def run_mutated(count: int, seed: int) -> None:
    rng, given = random.Random(seed), originals()
    for _ in range(count):
        data, x = rng.choice(given)
        damaged = mutated(data, rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                module = load_onnx(damaged)
                module(x)
                to_onnx(module.graph(), parameters=module.named_parameters(), buffers=module.named_buffers())
            except nnc.Error as error:
                assert str(error)


def test_mutated_files_give_errors_or_values(seed: int) -> None:
    run_mutated(200, seed)


@pytest.mark.slow
def test_a_thousand_mutated_files(seed: int) -> None:
    run_mutated(1000, seed + 1)


def test_names_of_dimensions_that_are_no_text() -> None:
    (data, _), *_ = written()
    assert b"batch" in data
    with pytest.raises(FileFormatError, match="the name of a dimension is no UTF-8"):
        load_onnx(data.replace(b"batch", b"b\xc2tch"))


def test_texts_that_are_no_text() -> None:
    message = classifier()
    message.producer_name = "producer"
    message.graph.doc_string = "document"
    for text in (b"producer", b"document"):
        with pytest.raises(FileFormatError, match="UTF-8"):
            load_onnx(message.SerializeToString().replace(text, b"\xa5" + text[1:]))
