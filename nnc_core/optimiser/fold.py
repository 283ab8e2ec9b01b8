"""Constant folding: what is known at compile time is computed then, by the operators' references."""

from __future__ import annotations

from math import prod
from typing import Any, TypeAlias

import numpy as np

from nnc_core.base.config import config
from nnc_core.base.dtype import DType, is_complex, is_float, is_integer
from nnc_core.operator import OPERATORS, PLACEHOLDER, Nodes
from nnc_core.optimiser.inspect import FILLED, host_array
from nnc_core.optimiser.rewrite import rewrite
from nnc_core.symbol import Literal, Node, Number
from nnc_core.type import Op, TupleSpec, is_static

Array: TypeAlias = np.ndarray[Any, Any]

CAST = OPERATORS["cast"]
LIMIT = 4096
"""Elements: larger constants cost more memory than their computing costs time."""



def _is_foldable(op: Op) -> bool:
    return bool(op.reference and op.inputs and not (op.random or op.host))


FOLDABLE = tuple(o.name for o in OPERATORS.values() if _is_foldable(o))


@rewrite("fold-constants", *FOLDABLE, tag="fold")
def fold_constants(F: Nodes, node: Node) -> Node | None:
    """f(1, 2) -> 3; under `config.deterministic` only what every kernel computes to the same bits."""
    if config.deterministic and (not node.op.exact or any(is_complex(x.dtype) for x in node.inputs)):
        return None
    return folded(F, node)


def folded(F: Nodes, node: Node, limit: int = LIMIT) -> Node | None:
    """The constant that a node is; None if it is none, or one of more elements."""
    if not node.inputs or any([x.inputs or x.op is PLACEHOLDER for x in node.inputs]):
        return None
    if isinstance(node.spec, TupleSpec) or not _is_foldable(node.op) or not _small(node, limit):
        return None
    if node.op.elementwise and all(x.op is FILLED for x in node.inputs):
        return _fold_filled(F, node)
    arrays = [host_array(x) for x in node.inputs]
    if any(a is None for a in arrays):
        return None
    if node.op.elementwise:  # NumPy has other code for scalars, with other values: (-inf) ** 0.5
        arrays = [np.array(np.broadcast_to(a, node.spec.static_shape or (1,))) for a in arrays]
    value = _evaluate(node, arrays)
    return None if value is None else _constant(F, node, value)


def _small(node: Node, limit: int) -> bool:
    if node.op.elementwise and all(x.op is FILLED for x in node.inputs):
        return True
    return all(is_static(x.shape) and prod(x.spec.static_shape) <= limit for x in (node, *node.inputs))


def _fold_filled(F: Nodes, node: Node) -> Node | None:
    """One number everywhere: computed once."""
    numbers = [x.attributes[1] for x in node.inputs]
    value = _evaluate(node, [np.full(1, n.value) for n in numbers])
    return None if value is None else F.filled(shape=node.shape, number=Number(value[0], node.dtype))


def _evaluate(node: Node, arrays: list[Any]) -> Array | None:
    """None where there is no one right value: devices may differ, or refuse when it is asked for."""
    assert node.op.reference is not None
    if node.op is CAST and _overflows(arrays[0], node.dtype):
        return None
    try:
        with np.errstate(all="ignore"):
            return np.asarray(node.op.reference(*arrays, *node.attributes), node.dtype)
    except (ValueError, IndexError):  # an index out of range
        return None


def _overflows(x: Any, dtype: DType) -> bool:
    """True if a float among them has no place in an integer dtype: hardware gives any integer for it."""
    if not (is_float(x.dtype) and is_integer(dtype)):
        return False
    limits, whole = np.iinfo(dtype), np.trunc(np.asarray(x, np.float64))
    return not bool(np.all((whole >= float(limits.min)) & (whole < float(limits.max) + 1)))


def _constant(F: Nodes, node: Node, array: Array) -> Node:
    if array.size and (array.tobytes() == array.reshape(-1)[:1].tobytes() * array.size):
        return F.filled(shape=node.shape, number=Number(array.reshape(-1)[0], node.dtype))
    packed = np.ascontiguousarray(array).reshape(node.spec.static_shape)  # what devices upload; no view of an input
    return F.constant(Literal(packed), node.spec)


REWRITES = (fold_constants,)
