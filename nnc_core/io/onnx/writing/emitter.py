"""Emitting ONNX nodes: names that follow from the graph alone, and equal nodes made once."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np

from nnc_core.io.onnx.writing.records import Array, WrittenGraph, WrittenNode


class Store:
    """Names, and arrays under names, which all graphs of one model share."""

    def __init__(self, taken: Iterable[str]) -> None:
        self.arrays: dict[str, Array] = {}
        self._taken = set(taken)
        self._counts: dict[str, int] = {}
        self._known: dict[Hashable, str] = {}

    def name(self, stem: str) -> str:
        """A name that nothing else has."""
        while True:
            count = self._counts[stem] = self._counts.get(stem, -1) + 1
            found = f"{stem}_{count}"
            if found not in self._taken:
                self._taken.add(found)
                return found

    def constant(self, array: Any) -> str:
        """An array under a name; equal arrays have the same one."""
        array = np.ascontiguousarray(array).reshape(np.shape(array))
        key = (array.dtype.name, array.shape, blake2b(array.tobytes()).digest())
        if key not in self._known:
            self._known[key] = name = self.name("constant")
            self.arrays[name] = array
        return self._known[key]


class NodeEmitter:
    """Emits the nodes of one graph, which sees what the graphs around it have emitted before."""

    def __init__(self, store: Store, outer: NodeEmitter | None = None) -> None:
        self.store, self.outer = store, outer
        self.nodes: list[WrittenNode] = []
        self._made: dict[Hashable, tuple[str, ...]] = {}

    def op(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """The name of an operator's only result."""
        return self.ops(operator, *inputs, count=1, **attributes)[0]

    def ops(self, operator: str, *inputs: str, count: int, **attributes: Any) -> tuple[str, ...]:
        """The names of the first `count` results of an operator."""
        key = (operator, inputs, count, tuple([(k, _key(v)) for k, v in attributes.items()]))
        found = self._found(key)
        if found is None:
            found = self._made[key] = tuple([self.store.name(operator.rpartition(".")[2]) for _ in range(count)])
            self.nodes.append(WrittenNode(operator, list(inputs), list(found), attributes))
        return found

    def _found(self, key: Hashable) -> tuple[str, ...] | None:
        found = self._made.get(key)
        return found if found or self.outer is None else self.outer._found(key)

    def producer(self, name: str) -> WrittenNode | None:
        """The node of this graph that makes a value."""
        return next((node for node in reversed(self.nodes) if name in node.outputs), None)

    def forget(self, node: WrittenNode) -> None:
        """Let no other node stand for this one, whose inputs change."""
        self._made = {key: names for key, names in self._made.items() if names != tuple(node.outputs)}

    def constant(self, value: Any, dtype: Any = None) -> str:
        """A constant array, or number."""
        return self.store.constant(np.asarray(value, dtype))

    def integers(self, values: Sequence[int]) -> str:
        """A row of int64, as ONNX wants shapes and axes."""
        return self.store.constant(np.asarray(list(values), np.int64))


def _key(value: Any) -> Hashable:
    if isinstance(value, WrittenGraph):
        return id(value)
    if isinstance(value, np.ndarray):
        return (value.dtype.name, value.shape, value.tobytes())
    if isinstance(value, float):
        return value.hex()
    return tuple(map(_key, value)) if isinstance(value, (list, tuple)) else value
