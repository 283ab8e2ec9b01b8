"""Constant folding: what is known at compile time is computed then, by the operators' references."""

from __future__ import annotations

from math import prod

import numpy as np

from nnc_core.base.config import config
from nnc_core.operator import OPERATORS, Nodes
from nnc_core.optimiser.inspect import FILLED, host_array
from nnc_core.optimiser.registry import rewrite
from nnc_core.symbol import Literal, Node, Number
from nnc_core.type import is_static

LIMIT = 4096
"""Elements: larger constants cost more memory than their computing costs time."""

FOLDABLE = tuple(o.name for o in OPERATORS.values() if o.reference and o.inputs and not (o.random or o.host))


@rewrite("fold-constants", *FOLDABLE, tag="fold")
def fold_constants(F: Nodes, node: Node) -> Node | None:
    """Under `config.deterministic` only what every kernel computes to the same bits."""
    if not node.inputs or any(x.inputs for x in node.inputs) or not _small(node):
        return None
    if config.deterministic and not node.op.exact:
        return None
    if node.op.elementwise and all(x.op is FILLED for x in node.inputs):
        return _fold_filled(F, node)
    arrays = [host_array(x) for x in node.inputs]
    return None if any(a is None for a in arrays) else _constant(F, node, _evaluate(node, arrays))


def _small(node: Node) -> bool:
    if node.op.elementwise and all(x.op is FILLED for x in node.inputs):
        return True
    return all(is_static(x.shape) and prod(x.spec.static_shape) <= LIMIT for x in (node, *node.inputs))


def _fold_filled(F: Nodes, node: Node) -> Node:
    """One number everywhere: computed once."""
    numbers = [x.attributes[1] for x in node.inputs]
    value = _evaluate(node, [n.value for n in numbers])  # type: ignore[attr-defined]
    return F.filled(shape=node.shape, number=Number(value, node.dtype))


def _evaluate(node: Node, arrays: list[object]) -> np.ndarray:  # type: ignore[type-arg]
    assert node.op.reference is not None
    with np.errstate(all="ignore"):
        return np.asarray(node.op.reference(*arrays, *node.attributes), node.dtype)


def _constant(F: Nodes, node: Node, array: np.ndarray) -> Node:  # type: ignore[type-arg]
    if array.size and (array.tobytes() == array.reshape(-1)[:1].tobytes() * array.size):
        return F.filled(shape=node.shape, number=Number(array.reshape(-1)[0], node.dtype))
    return F.constant(Literal(array), node.spec)
