"""Networks in evaluation: valid models with our values, names and named sizes, read back as they were."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import nnc_core as nnc
from nnc_core.base.errors import NotSupportedError, OperandError
from nnc_core.io import load_module, load_onnx, save_module, save_onnx, to_onnx
from nnc_core.nn import BatchNorm, Conv2d, Linear, Module, ReLU, Sequential, zoo
from tests.io.onnx.export.evaluating import HAS_RUNTIME, by_reference, by_runtime, check
from tests.io.onnx.export.networks import NAMES, NETWORKS
from tests.support import leaves


def near(found: Any, wanted: Any, bound: float = 2e-5) -> None:
    """Arrays differ by at most so much of the largest number."""
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        assert np.abs(a.astype(np.float64) - b).max(initial=0) <= bound * np.abs(b).max(initial=1e-30)


def predicted(network: Module, inputs: list[Any]) -> list[Any]:
    with nnc.evaluating(), nnc.no_grad():
        return leaves(network(*map(nnc.asarray, inputs)))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("evaluator", ["reference", pytest.param("runtime", marks=pytest.mark.skipif(
    not HAS_RUNTIME, reason="onnxruntime is not installed"))])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # onnx' sigmoid overflows
def test_zoo(name: str, evaluator: str) -> None:
    nnc.manual_seed(0)
    case = NETWORKS[name]
    network = case.build()
    model = to_onnx(network, inputs=case.specs())
    check(model)
    evaluate = by_reference if evaluator == "reference" else by_runtime
    for rows in (1, 3):
        inputs = case.inputs(rows)
        found = evaluate(model, dict(zip([x.name for x in model.graph.input], inputs, strict=True)))
        near(found, predicted(network, inputs))


@pytest.mark.parametrize("name", NAMES)
def test_zoo_read_back(name: str) -> None:
    nnc.manual_seed(0)
    case = NETWORKS[name]
    network = case.build()
    data = to_onnx(network, inputs=case.specs()).SerializeToString(deterministic=True)
    assert data == to_onnx(network, inputs=case.specs()).SerializeToString(deterministic=True)
    again = load_onnx(data)
    assert to_onnx(again).SerializeToString(deterministic=True) == data
    inputs = case.inputs(2)
    near(predicted(again, inputs), predicted(network, inputs))
    mine, theirs = network.named_parameters(), again.named_parameters()
    read = {n: p for n, p in mine.items() if n in theirs}
    assert theirs.keys() <= mine.keys() and again.named_buffers().keys() <= network.named_buffers().keys()
    assert len(read) >= len(mine) - 2  # what inference does not read
    for n, parameter in theirs.items():
        assert np.array_equal(parameter.read().numpy(), mine[n].read().numpy())


def test_transpositions_are_left_at_the_ends_only() -> None:
    network = zoo.resnet18(classes=10, width=8)
    model = to_onnx(network, inputs=[("batch", 64, 64, 3)])
    operators = Counter(node.op_type for node in model.graph.node)
    assert operators["Transpose"] == 1 and operators["Conv"] == 20
    first = to_onnx(zoo.resnet18(classes=10, width=8, layout="NCHW"), inputs=[("batch", 3, 64, 64)]).graph.node[0]
    assert first.op_type == "Conv"


def test_bias_and_weights_are_operands_of_convolutions() -> None:
    model = to_onnx(Sequential(Conv2d(3, 4, 3), ReLU()), inputs=[(1, 8, 8, 3)])
    (conv,) = [node for node in model.graph.node if node.op_type == "Conv"]
    assert list(conv.input)[1:] == ["0.kernel", "0.bias"]
    kernel = next(x for x in model.graph.initializer if x.name == "0.kernel")
    assert list(kernel.dims) == [4, 3, 3, 3]


def test_sizes_have_names() -> None:
    model = to_onnx(Linear(3, 4), inputs={"x": ("batch", "time", 3)})
    (x,), (y,) = model.graph.input, model.graph.output
    assert [d.dim_param or d.dim_value for d in x.type.tensor_type.shape.dim] == ["batch", "time", 3]
    assert [d.dim_param or d.dim_value for d in y.type.tensor_type.shape.dim] == ["batch", "time", 4]


def test_statistics_are_those_of_evaluation() -> None:
    network = BatchNorm(4)
    network(nnc.asarray(np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32)))
    model = to_onnx(network, inputs=[("batch", 4)])
    x = np.ones((2, 4), np.float32)
    near(by_reference(model, {"x": x}), predicted(network, [x]))
    assert network.training


@pytest.mark.parametrize("kind", ["lenet5", "lstm_classifier"])
def test_after_training(kind: str) -> None:
    nnc.manual_seed(0)
    case = NETWORKS[kind]
    network = case.build()
    inputs = case.inputs(4)
    labels = nnc.asarray(np.arange(4) % 2)
    minimiser = nnc.optim.Adam(network.named_parameters(), 0.01)
    for _ in range(2):
        network.requires_grad_()
        nnc.cross_entropy(network(*map(nnc.asarray, inputs)), labels).backward()
        minimiser.update(network.gradients())
        network.zero_grad()
    model = to_onnx(network, inputs=case.specs())
    check(model)
    assert to_onnx(load_onnx(model.SerializeToString())) == model
    given = dict(zip([x.name for x in model.graph.input], inputs, strict=True))
    wanted = predicted(network, inputs)
    near(by_reference(model, given), wanted)
    if HAS_RUNTIME:
        near(by_runtime(model, given), wanted)


def test_modules_of_models_are_files_again(tmp_path: Path) -> None:
    network = Sequential(Conv2d(3, 4, 3), ReLU())
    read = load_onnx(to_onnx(network, inputs=[(1, 8, 8, 3)]).SerializeToString())
    save_module(read, tmp_path / "read.nnc")
    x = np.ones((1, 8, 8, 3), np.float32)
    near(predicted(load_module(tmp_path / "read.nnc"), [x]), predicted(network, [x]))


def test_files(tmp_path: Path) -> None:
    network = Linear(64, 64)
    inside, beside = tmp_path / "inside.onnx", tmp_path / "beside.onnx"
    save_onnx(network, inside, inputs=[(2, 64)])
    save_onnx(network, beside, inputs=[(2, 64)], external_data=True)
    assert (tmp_path / "beside.onnx.data").stat().st_size == 64 * 64 * 4 and beside.stat().st_size < 4096
    onnx.checker.check_model(beside, full_check=True)
    x = np.ones((2, 64), np.float32)
    for path in (inside, beside):
        near(predicted(load_onnx(path), [x]), predicted(network, [x]))
        near(by_reference(onnx.load(path), {"x": x}), predicted(network, [x]))


class Drawing(Module):
    """Draws random numbers in evaluation."""

    def __init__(self) -> None:
        self.generator = nnc.Generator(0)

    def forward(self, x: nnc.Tensor) -> nnc.Tensor:
        return x + self.generator.normal((2, 3))


def test_clear_errors() -> None:
    with pytest.raises(NotSupportedError, match="state"):
        to_onnx(Drawing(), inputs=[(2, 3)])
    with pytest.raises(OperandError, match="neither a graph nor a network"):
        to_onnx(3)  # type: ignore[arg-type]
    with pytest.raises(OperandError, match="parameters of its own"):
        to_onnx(Linear(2, 2), inputs=[(1, 2)], parameters={})
