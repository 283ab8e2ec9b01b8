"""The plainest way to run a graph: composites expanded, then every operator by its NumPy reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nnc_core.operator import CONSTANT
from nnc_core.operator.control import LOOP, PICK
from nnc_core.optimiser import Optimiser
from nnc_core.symbol import Node, postorder
from nnc_core.type import TensorSpec
from nnc_plugins.conformance.host import HOST, HostValue
from nnc_plugins.conformance.host_loops import looped
from tests.graph.stack import OPTIMISER

Array = np.ndarray[Any, Any]


class Watch:
    """Sees, and may change, what operators take and give."""

    def before(self, node: Node, inputs: Sequence[Any]) -> Sequence[Any]:
        return inputs

    def after(self, node: Node, inputs: Sequence[Any], result: Any) -> Any:
        return result


def evaluate(
    outputs: Sequence[Node], values: Mapping[Node, Any], optimiser: Optimiser = OPTIMISER, watch: Watch | None = None,
) -> list[Array]:
    """Arrays of the outputs, for arrays of the placeholders.  Each result must have the inferred spec.

    Results are copied into C order, so that a value depends on the values before it and not on their strides.
    """
    expanded = optimiser.expand(outputs, lambda node: True)
    assert [n.spec for n in expanded] == [n.spec for n in outputs], "a composite's body has another spec"
    known: dict[Node, Any] = {node: np.ascontiguousarray(a).reshape(np.shape(a)) for node, a in values.items()}
    for node in postorder(expanded, {id(n) for n in known}):
        if node not in known:
            inputs: Sequence[Any] = [known[x] for x in node.inputs]
            inputs = inputs if watch is None else watch.before(node, inputs)
            made = _run(node, inputs)
            known[node] = made if watch is None else watch.after(node, inputs, made)
        _check(node, known[node])
    return [known[node] for node in expanded]


def _run(node: Node, inputs: Sequence[Any]) -> Any:
    """An array, or a tuple of results."""
    if node.op is PICK:
        return inputs[0][node.attributes[0]]
    if node.op is CONSTANT:
        return np.asarray(node.attributes[0].array)
    if node.op is LOOP:
        return looped(HOST, [HostValue(x) for x in inputs], node.attributes)
    assert node.op.reference is not None, f"{node} has neither a value nor a reference"
    if node.op.elementwise:  # NumPy's functions have other code, with other values, for scalars and repeated operands
        inputs = [np.array(np.broadcast_to(x, node.spec.static_shape or (1,))) for x in inputs]
    with np.errstate(all="ignore"):
        result = node.op.reference(*inputs, *node.attributes)
    if isinstance(result, tuple):
        return tuple([np.array(x, order="C") for x in result])
    out = np.array(result, order="C")
    return out.reshape(node.spec.static_shape) if node.op.elementwise else out


def _check(node: Node, array: Any) -> None:
    if isinstance(array, tuple):
        assert [TensorSpec(x.shape, x.dtype) for x in array] == list(node.spec.parts), f"{node} has other results"
        return
    assert array.shape == node.spec.static_shape, f"{node} gave shape {array.shape}"
    assert array.dtype == node.dtype, f"{node} gave dtype {array.dtype}"


def same_bits(a: Array, b: Array) -> bool:
    """Whether all elements are equal to the bit; every NaN equals every other."""
    if (a.shape, a.dtype) != (b.shape, b.dtype):
        return False
    if a.dtype.kind == "b" or np.issubdtype(a.dtype, np.integer):
        return bool(np.array_equal(a, b))
    nan = np.isnan(a)
    bits = np.dtype(f"u{a.dtype.itemsize}")
    return bool(np.array_equal(nan, np.isnan(b)) and np.array_equal(a.view(bits)[~nan], b.view(bits)[~nan]))
