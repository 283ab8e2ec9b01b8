"""Ensembles of trees give what other software gives, in every mode."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from scipy.special import ndtri

import nnc_core as nnc
from nnc_core.io import load_onnx
from tests.io.onnx.export.evaluating import HAS_RUNTIME, by_reference, by_runtime
from tests.io.onnx.models import model, node, value
from tests.io.onnx.running import check_modes

ML = "ai.onnx.ml"
ENGINES = [by_reference, pytest.param(by_runtime, marks=pytest.mark.skipif(
    not HAS_RUNTIME, reason="onnxruntime is not installed"))]
MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
X = np.round(np.random.default_rng(5).standard_normal((40, 4)), 1).astype(np.float32)
X[3, 1] = X[7, 0] = np.nan


def drawn(trees: int, modes: tuple[str, ...], seed: int = 0) -> tuple[dict[str, Any], list[tuple[int, int]]]:
    """The attributes of random trees, and the names of their leaves."""
    rng = np.random.default_rng(seed)
    nodes: dict[str, list[Any]] = {f"nodes_{name}": [] for name in (
        "treeids", "nodeids", "modes", "featureids", "values", "truenodeids", "falsenodeids",
        "missing_value_tracks_true")}
    leaves = []
    for tree in range(trees):
        branches = 2 if tree == 0 else int(rng.integers(1, 8))
        for number in range(2 * branches + 1):  # each branch leads to the two nodes that are free next
            branch = number < branches
            row = (tree, number, str(rng.choice(modes)) if branch else "LEAF", int(rng.integers(4)) if branch else 0,
                   float(np.float32(np.round(rng.standard_normal(), 1))) if branch else 0.0,
                   2 * number + 1 if branch else 0, 2 * number + 2 if branch else 0, int(rng.integers(2)))
            for column, entry in zip(nodes.values(), row, strict=True):
                column.append(entry)
            leaves += [(tree, number)] * (not branch)
    return nodes, leaves


def made(operator: str, outputs: list[Any], **attributes: Any) -> onnx.ModelProto:
    names = " ".join(x.name for x in outputs)
    made = model([node(operator, "x", names, domain=ML, **attributes)], [value("x", np.float32, ["rows", 4])], outputs)
    made.opset_import.append(helper.make_opsetid(ML, 3))
    made.ir_version = 10
    return made


def weights_of(leaves: list[tuple[int, int]], ids: list[int], values: Any, kind: str) -> dict[str, Any]:
    trees, nodes = zip(*leaves, strict=True)
    return {f"{kind}_treeids": trees, f"{kind}_nodeids": nodes, f"{kind}_ids": ids,
            f"{kind}_weights": np.asarray(values, np.float64).tolist()}


@pytest.mark.parametrize("evaluate", ENGINES)
@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_regressors(aggregate: str, evaluate: Any) -> None:
    modes = MODES[:1] if aggregate == "SUM" else MODES[:5]
    nodes, leaves = drawn(6, modes)
    targets = [k % 2 for k in range(len(leaves))]
    values = np.random.default_rng(1).standard_normal(len(leaves))
    message = made("TreeEnsembleRegressor", [value("y", np.float32, ["rows", 2])], n_targets=2,
                   aggregate_function=aggregate, **nodes, **weights_of(leaves, targets, values, "target"))
    found = evaluate(message, {"x": X})
    said = [np.where(np.abs(y) > 1e30, 0, y) for y in found]  # where no tree says anything
    check_modes(message, {"x": X}, said)


@pytest.mark.parametrize("evaluate", ENGINES)
@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("classes", [2, 3])
def test_classifiers(classes: int, transform: str, evaluate: Any) -> None:
    nodes, leaves = drawn(5, MODES[:2])
    rng = np.random.default_rng(2)
    values = rng.uniform(0.01, 0.2, (len(leaves), classes))
    ids = list(range(classes)) * len(leaves)
    message = made("TreeEnsembleClassifier", [value("label", np.int64, ["rows"]),
                                              value("scores", np.float32, ["rows", classes])],
                   classlabels_int64s=list(range(10, 10 + classes)), post_transform=transform, **nodes,
                   **weights_of([x for x in leaves for _ in range(classes)], ids, values.ravel(), "class"))
    label, scores = evaluate(message, {"x": X})
    if evaluate is by_reference:
        check_modes(message, {"x": X}, [label, scores])
    else:  # which has rules of its own for what is not a probability
        check_modes(message, {"x": X}, [np.argmax(scores, axis=1) + 10, scores])


@pytest.mark.parametrize("evaluate", ENGINES)
@pytest.mark.parametrize(("transform", "shift"), [("NONE", 0.0), ("LOGISTIC", -0.15)])
def test_one_number_for_two_classes(transform: str, shift: float, evaluate: Any) -> None:
    nodes, leaves = drawn(4, MODES[:1])
    values = np.random.default_rng(3).uniform(0, 0.25, len(leaves)) + shift
    message = made("TreeEnsembleClassifier", [value("label", np.int64, ["rows"]),
                                              value("scores", np.float32, ["rows", 2])],
                   classlabels_int64s=[0, 1], post_transform=transform, base_values=[0.125], **nodes,
                   **weights_of(leaves, [0] * len(leaves), values, "class"))
    check_modes(message, {"x": X}, evaluate(message, {"x": X}))


def test_names_of_classes() -> None:
    nodes, leaves = drawn(3, MODES[:1])
    message = made("TreeEnsembleClassifier", [value("label", object, ["rows"]), value("s", np.float32, ["rows", 2])],
                   classlabels_strings=["no", "yes"], **nodes,
                   **weights_of(leaves, [k % 2 for k in range(len(leaves))], np.ones(len(leaves)), "class"))
    label, scores = load_onnx(message.SerializeToString())(X)
    assert label.tolist() == [("no", "yes")[k] for k in np.argmax(np.asarray(scores), axis=1)]


def test_trees_that_have_no_end_or_lead_nowhere() -> None:
    nodes, leaves = drawn(1, MODES[:1])
    for number, match in ((0, "circle"), (9, "not there")):
        wrong = {**nodes, "nodes_truenodeids": [number, *nodes["nodes_truenodeids"][1:]]}
        message = made("TreeEnsembleRegressor", [value("y", np.float32, ["rows", 1])], n_targets=1, **wrong,
                       **weights_of(leaves, [0] * len(leaves), np.ones(len(leaves)), "target"))
        with pytest.raises(nnc.errors.AttributeValueError, match=match):
            load_onnx(message.SerializeToString())(X)


def of_one_branch(**changed: Any) -> bytes:
    """A tree of version 5 that gives 0.2 or 0.7."""
    attributes: dict[str, Any] = {
        "nodes_splits": np.array([0.5], np.float32), "nodes_modes": np.array([0], np.uint8), "nodes_featureids": [1],
        "nodes_truenodeids": [0], "nodes_trueleafs": [1], "nodes_falsenodeids": [1], "nodes_falseleafs": [1],
        "tree_roots": [0], "leaf_targetids": [0, 0], "leaf_weights": np.array([0.2, 0.7], np.float32), "n_targets": 1,
        "aggregate_function": 1, "post_transform": 0} | changed
    written = {name: numpy_helper.from_array(x) if isinstance(x, np.ndarray) else x for name, x in attributes.items()}
    message = made("TreeEnsemble", [value("y", np.float32, ["rows", 1])], **written)
    message.opset_import[-1].version = 5
    return bytes(message.SerializeToString())


def test_probits() -> None:
    found = load_onnx(of_one_branch(post_transform=4))(X)
    weights = np.where(X[:, 1:2] <= 0.5, np.float32(0.2), np.float32(0.7))
    np.testing.assert_allclose(found.numpy(), ndtri(weights), rtol=1e-5)


@pytest.mark.parametrize(("changed", "said"), [
    ({"aggregate_function": -1}, "aggregate_function -1"), ({"post_transform": 5}, "post_transform 5"),
    ({"nodes_modes": np.array([7], np.uint8)}, "modes 7"), ({"leaf_targetids": [0, -1]}, "targets -1 to 0"),
    ({"leaf_targetids": [0, 1]}, "targets 0 to 1"), ({"leaf_targetids": [0]}, "2 weights for 2 leaves and 1 targets"),
    ({"nodes_missing_value_tracks_true": [1, 1]}, "2 branches say where NaN goes, of 1"),
    ({"nodes_featureids": [4]}, "feature 4 of 4"),
])  # fmt: skip
def test_numbers_that_stand_for_nothing(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(nnc.errors.AttributeValueError, match=said):
        load_onnx(of_one_branch(**changed))(X)


def test_gradients_of_parts_of_a_model() -> None:
    gradient = helper.make_node("Gradient", ["h", "w"], ["dh", "dw"], domain="ai.onnx.preview.training", xs=["h"],
                                zs=["w"], y="y")
    gradient.input[0] = "at"  # at another place than where the model is
    gradient.output.pop()
    message = model([node("Mul", "x x", "h"), node("Mul", "h w", "z"), node("Sin", "z", "y"), gradient,
                     node("Mul", "dh k", "g")],
                    [value("x", np.float32, [3]), value("at", np.float32, [3])],
                    [value("y", np.float32, [3]), value("g", np.float32, [3])],
                    {"w": np.float32([1, 2, 3]), "k": np.float32([1, 1, 2])}, opset=12)
    message.opset_import.append(helper.make_opsetid("ai.onnx.preview.training", 1))
    x, at, w = np.float32([0.1, 0.2, 0.3]), np.float32([1, -1, 0.5]), np.float32([1, 2, 3])
    check_modes(message, {"x": x, "at": at}, [np.sin(x * x * w), np.cos(at * w) * w * np.float32([1, 1, 2])])


def test_gradients_of_gradients() -> None:
    first = helper.make_node("Gradient", ["x"], ["dx"], domain="ai.onnx.preview.training", xs=["x"], y="y")
    second = helper.make_node("Gradient", ["x"], ["ddx"], domain="ai.onnx.preview.training", xs=["x"], y="dx")
    message = model([node("Mul", "x x", "s"), node("Mul", "s x", "y"), first, second],
                    [value("x", np.float32, [2])], [value("ddx", np.float32, [2])], opset=12)
    message.opset_import.append(helper.make_opsetid("ai.onnx.preview.training", 1))
    check_modes(message, {"x": np.float32([1, -2])}, [np.float32([6, -12])])
