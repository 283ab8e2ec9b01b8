"""Loops on NumPy arrays, step by step: what composites that are loops are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nnc_core.operator.control import LoopAttributes
from nnc_core.symbol import Body
from nnc_core.type import Attributes
from nnc_plugins.conformance.case import Array


def looped(F: Any, values: Sequence[Any], attributes: Attributes) -> tuple[Array, ...]:
    """The results of a loop along an axis; F runs operators on values that have an `array`."""
    cond, body, length, n, m, reverse = LoopAttributes._make(attributes)
    assert cond is None, "loops under a condition have tests of their own"
    carried, rows, captured = list(values[:n]), values[n : n + m], values[n + m :]
    stacks: list[list[Array]] = [[] for _ in body.outputs[n:]]
    for t in range(length)[:: -1 if reverse else 1]:
        given = [F.take(r, F.full(shape=(), value=t, dtype=np.dtype(np.int64)), axis=0) for r in rows]
        results = _run(F, body, [*carried, *given, *captured])
        carried = results[:n]
        for stack, y in zip(stacks, results[n:], strict=True):
            stack.append(y.array)
    stacked = [_stacked(stack[:: -1 if reverse else 1], y) for stack, y in zip(stacks, body.outputs[n:], strict=True)]
    return (*[c.array for c in carried], *stacked)


def _stacked(arrays: Sequence[Array], like: Any) -> Array:
    empty = np.empty((0, *like.spec.static_shape), like.spec.dtype)
    return np.stack(arrays) if arrays else empty


def _run(F: Any, body: Body, values: Sequence[Any]) -> list[Any]:
    known = dict(zip(body.inputs, values, strict=True))
    for node in body.nodes:
        if node not in known:
            known[node] = F.apply(node.op, tuple([known[x] for x in node.inputs]), node.attributes)
    return [known[y] for y in body.outputs]
