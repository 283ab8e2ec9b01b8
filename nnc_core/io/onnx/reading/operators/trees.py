"""Ensembles of decision trees, of the domain ai.onnx.ml."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from nnc_core.base.dtype import is_inexact
from nnc_core.base.errors import AttributeValueError
from nnc_core.functions import public as nnc
from nnc_core.io.onnx.reading.forest import MEMBER, Forest, by_tree, forest
from nnc_core.io.onnx.reading.graph import OnnxNode
from nnc_core.io.onnx.reading.lanes import Host, Lane, to_host
from nnc_core.io.onnx.reading.operators.texts import texts
from nnc_core.io.onnx.reading.registry import ML, operator
from nnc_core.io.onnx.reading.run import NodeCall
from nnc_core.values.tensor import Tensor

Numbers = tuple[int, ...] | None
Words = tuple[str, ...] | None
COMPARED: tuple[Callable[[Any, Any], Tensor], ...] = (
    nnc.less_equal, nnc.less, nnc.greater_equal, nnc.greater, nnc.equal, nnc.not_equal)
NOT_EQUAL = 5
AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
NEUTRAL: Mapping[str, float] = {"AVERAGE": 0.0, "SUM": 0.0, "MIN": np.inf, "MAX": -np.inf}
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Trees, and what their leaves give."""

    trees: Forest
    weights: Host  # float[leaves, targets], what changes nothing where a leaf gives nothing
    base: Host  # float[targets], or of one element or none
    aggregate: str


_made: WeakKeyDictionary[OnnxNode, Ensemble] = WeakKeyDictionary()
"""Of each node its tables, which no call changes."""


def _ensemble(call: NodeCall, make: Callable[[], Ensemble]) -> Ensemble:
    if call.step not in _made:
        _made[call.step] = make()
    return _made[call.step]


# ---- from the features to the leaves, and what these give
def _leaves(trees: Forest, x: Tensor, call: NodeCall) -> Tensor:
    """int64[rows, trees]: the leaves that rows of features come to."""
    if not isinstance(x.shape[1], int) or trees.features.max(initial=-1) >= x.shape[1]:
        raise AttributeValueError(f"the trees look at feature {trees.features.max(initial=-1)} of {x.shape[1]}")
    children = call.tensor(trees.children)
    at = nnc.broadcast_to(call.tensor(trees.roots), (x.shape[0], len(trees.roots)))
    for _ in range(trees.depth):
        here = nnc.minimum(at, trees.branches - 1)  # who is there stays there, whatever is compared
        value = nnc.take_along_axis(x, nnc.take(call.tensor(trees.features), here), axis=1)
        goes = nnc.astype(_goes(trees, value, here, call), np.int64)
        at = nnc.take(nnc.reshape(children, (-1,)), at * 2 + goes)
    return at - trees.branches


def _goes(trees: Forest, value: Tensor, here: Tensor, call: NodeCall) -> Tensor:
    """Test whether values go the way of what is true at the branches where they are."""
    modes = np.unique(trees.modes).tolist()
    mode = nnc.take(call.tensor(trees.modes), here) if len(modes) > 1 else None
    split = nnc.take(call.tensor(trees.splits.astype(value.dtype)), here)
    found: Tensor | None = None
    for number in modes:
        if number == MEMBER:
            assert trees.members is not None
            sets = nnc.take(call.tensor(trees.members.astype(value.dtype)), here, axis=0)
            one = nnc.any(nnc.equal(nnc.expand_dims(value, -1), sets), axis=-1)
        else:
            one = COMPARED[number](value, split)
        found = one if mode is None or found is None else nnc.where(nnc.equal(mode, number), one, found)
    if trees.missing.any() or NOT_EQUAL in modes:
        found = nnc.where(nnc.isnan(value), nnc.take(call.tensor(trees.missing), here), found)
    assert found is not None  # there is a branch, or nothing to be asked
    return found


def _aggregated(made: Ensemble, x: Tensor, call: NodeCall) -> Tensor:
    """float[rows, targets]: what the trees say of rows together, in the dtype of x; float32 of integers."""
    x = x if is_inexact(x.dtype) else nnc.astype(x, np.float32)
    x = x if x.ndim == 2 else nnc.reshape(x, (1, -1))
    given = nnc.take(call.tensor(made.weights.astype(x.dtype)), _leaves(made.trees, x, call), axis=0)
    if made.aggregate in ("SUM", "AVERAGE"):
        y = nnc.sum(given, axis=1)
        y = y / len(made.trees.roots) if made.aggregate == "AVERAGE" else y
    else:
        y = (nnc.min if made.aggregate == "MIN" else nnc.max)(given, axis=1)
        y = nnc.where(nnc.equal(y, NEUTRAL[made.aggregate]), 0.0, y)  # where no tree says anything
    return y + call.tensor(made.base.astype(x.dtype)) if made.base.size else y


def _transformed(y: Tensor, transform: str) -> Tensor:
    if transform == "SOFTMAX":
        return nnc.softmax(y, axis=-1)
    if transform == "LOGISTIC":
        return nnc.sigmoid(y)
    if transform == "SOFTMAX_ZERO":
        return _softmax_zero(y)
    if transform == "PROBIT":
        return sqrt(2) * nnc.erfinv(2 * y - 1)
    if transform != "NONE":
        raise AttributeValueError(f"post_transform {transform!r} is none of {', '.join(TRANSFORMS)}")
    return y


def _softmax_zero(y: Tensor) -> Tensor:
    """As softmax, but that zeros stay zeros; halves where there is nothing else."""
    parts = nnc.where(nnc.abs(y) > 1e-7, nnc.exp(y - nnc.max(y, axis=-1, keepdims=True)), 0.0)
    total = nnc.sum(parts, axis=-1, keepdims=True)
    return nnc.where(nnc.equal(total, 0.0), 0.5, parts / nnc.where(nnc.equal(total, 0.0), 1.0, total))


def _weights(rows: Any, targets: Any, weights: Any, shape: tuple[int, int], aggregate: str) -> Host:
    """The table of what leaves give to targets; what is said twice is aggregated too."""
    if aggregate not in AGGREGATES:
        raise AttributeValueError(f"aggregate_function {aggregate!r} is none of {', '.join(AGGREGATES)}")
    listed: Host = np.asarray(weights)
    if len({len(rows), len(targets), len(listed)}) > 1:
        raise AttributeValueError(f"{len(listed)} weights for {len(rows)} leaves and {len(targets)} targets")
    if not all(0 <= target < shape[1] for target in targets):
        raise AttributeValueError(f"targets {min(targets)} to {max(targets)}, but there are {shape[1]}")
    table: Host = np.full(shape, NEUTRAL[aggregate], listed.dtype)
    join = {"MIN": np.minimum, "MAX": np.maximum}.get(aggregate, np.add)
    join.at(table, (np.asarray(rows, np.int64), np.asarray(targets, np.int64)), listed)
    return table


def _word(words: Sequence[str], number: int, name: str) -> str:
    """The word that an attribute's number stands for."""
    if not 0 <= number < len(words):
        raise AttributeValueError(f"{name} {number} is no number of {', '.join(words)}")
    return words[number]


def _listed(numbers: Any, tensor: Host | None) -> Host:
    """An attribute that may be given as a tensor, for the sake of its dtype."""
    found: Host = np.asarray(() if numbers is None else numbers, np.float32) if tensor is None else tensor
    return found.reshape(-1)


# ---- operators
@operator("TreeEnsemble", domain=ML, since=5)
def tree_ensemble(
    x: Tensor, *, leaf_targetids: tuple[int, ...], leaf_weights: Host, nodes_falseleafs: tuple[int, ...],
    nodes_falsenodeids: tuple[int, ...], nodes_featureids: tuple[int, ...], nodes_modes: Host, nodes_splits: Host,
    nodes_trueleafs: tuple[int, ...], nodes_truenodeids: tuple[int, ...], tree_roots: tuple[int, ...],
    aggregate_function: int = 1, membership_values: Host | None = None, n_targets: int = 1,
    nodes_hitrates: Host | None = None, nodes_missing_value_tracks_true: Numbers = None, post_transform: int = 0,
    call: NodeCall,
) -> Tensor:
    def make() -> Ensemble:
        def led(to: Any, is_leaf: Any) -> Host:
            numbers: Host = np.asarray(to) + len(nodes_modes) * np.asarray(is_leaf)
            return numbers

        trees = forest(
            features=nodes_featureids, modes=nodes_modes, splits=nodes_splits, missing=nodes_missing_value_tracks_true,
            false=led(nodes_falsenodeids, nodes_falseleafs), true=led(nodes_truenodeids, nodes_trueleafs),
            roots=tree_roots, leaves=len(leaf_weights), members=membership_values)
        aggregate = _word(AGGREGATES, aggregate_function, "aggregate_function")
        weights = _weights(range(len(leaf_weights)), leaf_targetids, leaf_weights, (len(leaf_weights), n_targets),
                           aggregate)
        return Ensemble(trees, weights, np.zeros(0), aggregate)

    transform = _word(TRANSFORMS, post_transform, "post_transform")
    return _transformed(_aggregated(_ensemble(call, make), x, call), transform)


@operator("TreeEnsembleRegressor", domain=ML)
def tree_ensemble_regressor(
    x: Tensor, *, nodes_falsenodeids: tuple[int, ...], nodes_featureids: tuple[int, ...], nodes_modes: tuple[str, ...],
    nodes_nodeids: tuple[int, ...], nodes_treeids: tuple[int, ...], nodes_truenodeids: tuple[int, ...],
    target_ids: tuple[int, ...], target_nodeids: tuple[int, ...], target_treeids: tuple[int, ...],
    aggregate_function: str = "SUM", base_values: Any = None, base_values_as_tensor: Host | None = None,
    n_targets: int = 1, nodes_hitrates: Any = None, nodes_hitrates_as_tensor: Host | None = None,
    nodes_missing_value_tracks_true: Numbers = None, nodes_values: Any = None,
    nodes_values_as_tensor: Host | None = None, post_transform: str = "NONE", target_weights: Any = None,
    target_weights_as_tensor: Host | None = None, call: NodeCall,
) -> Tensor:
    def make() -> Ensemble:
        trees, numbering = by_tree(
            trees=nodes_treeids, nodes=nodes_nodeids, modes=nodes_modes, features=nodes_featureids,
            splits=_listed(nodes_values, nodes_values_as_tensor), missing=nodes_missing_value_tracks_true,
            false=nodes_falsenodeids, true=nodes_truenodeids)
        rows = list(map(numbering.leaf, target_treeids, target_nodeids))
        weights = _weights(rows, target_ids, _listed(target_weights, target_weights_as_tensor),
                           (numbering.leaves, n_targets), aggregate_function)
        return Ensemble(trees, weights, _listed(base_values, base_values_as_tensor), aggregate_function)

    y = _transformed(_aggregated(_ensemble(call, make), x, call), post_transform)
    return nnc.astype(y, np.float32, copy=False)


@operator("TreeEnsembleClassifier", domain=ML)
def tree_ensemble_classifier(
    x: Tensor, *, nodes_falsenodeids: tuple[int, ...], nodes_featureids: tuple[int, ...], nodes_modes: tuple[str, ...],
    nodes_nodeids: tuple[int, ...], nodes_treeids: tuple[int, ...], nodes_truenodeids: tuple[int, ...],
    class_ids: tuple[int, ...], class_nodeids: tuple[int, ...], class_treeids: tuple[int, ...],
    base_values: Any = None, base_values_as_tensor: Host | None = None, class_weights: Any = None,
    class_weights_as_tensor: Host | None = None, classlabels_int64s: Numbers = None, classlabels_strings: Words = None,
    nodes_hitrates: Any = None, nodes_hitrates_as_tensor: Host | None = None,
    nodes_missing_value_tracks_true: Numbers = None, nodes_values: Any = None,
    nodes_values_as_tensor: Host | None = None, post_transform: str = "NONE", call: NodeCall,
) -> tuple[Lane, Tensor]:
    labels = classlabels_int64s or classlabels_strings or ()
    given = _listed(class_weights, class_weights_as_tensor)
    alone = len(labels) <= 2 and len(set(class_ids)) == 1  # one number decides between two classes

    def make() -> Ensemble:
        trees, numbering = by_tree(
            trees=nodes_treeids, nodes=nodes_nodeids, modes=nodes_modes, features=nodes_featureids,
            splits=_listed(nodes_values, nodes_values_as_tensor), missing=nodes_missing_value_tracks_true,
            false=nodes_falsenodeids, true=nodes_truenodeids)
        rows = list(map(numbering.leaf, class_treeids, class_nodeids))
        targets = [0] * len(class_ids) if alone else class_ids
        base = _listed(base_values, base_values_as_tensor)
        return Ensemble(trees, _weights(rows, targets, given, (numbering.leaves, 1 if alone else len(labels)), "SUM"),
                        base[-1:] if alone else base, "SUM")

    y = _aggregated(_ensemble(call, make), x, call)
    y = _two_classes(y, post_transform, bool((given >= 0).all())) if alone else _transformed(y, post_transform)
    label = _labelled(nnc.argmax(y, axis=1), classlabels_int64s, classlabels_strings, call) if call.wants(0) else None
    return label, nnc.astype(y, np.float32, copy=False)


def _two_classes(y: Tensor, transform: str, likely: bool) -> Tensor:
    """The scores of both classes from that of the second one, which is `likely` to be a share already."""
    if transform == "LOGISTIC":
        return nnc.sigmoid(nnc.concat([-y, y], axis=1))
    first = 1 - y if likely and transform in ("NONE", "PROBIT") else -y
    return _transformed(nnc.concat([first, y], axis=1), transform)


def _labelled(classes: Tensor, numbers: Numbers, words: Words, call: NodeCall) -> Lane:
    if words:
        found = to_host(classes)
        return texts([words[i] for i in found.tolist()], found.shape)
    return nnc.take(call.tensor(np.asarray(numbers, np.int64)), classes)
