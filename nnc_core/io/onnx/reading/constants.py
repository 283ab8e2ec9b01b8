"""Tensors of a model's constants, each made once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nnc_core.io.onnx.reading.graph import OnnxGraph
from nnc_core.io.onnx.reading.lanes import Host, to_tensor
from nnc_core.values.tensor import Tensor


class ModelConstants:
    """Tensors of the arrays that lie in a graph and its sub-graphs.

    Arrays that a call computes are none of them: kept, they would grow with every call.
    """

    def __init__(self, graph: OnnxGraph) -> None:
        self._graph = graph
        self._known: dict[int, tuple[Host, Tensor | None]] = {}  # by the id of an array, which is held so that it stays
        self.add(graph)

    def __reduce__(self) -> Any:
        return ModelConstants, (self._graph,)  # ids are of one process and one copy

    def add(self, graph: OnnxGraph) -> None:
        """Know the arrays of another graph too."""
        self._known.update((id(array), (array, None)) for array in _arrays(graph))

    def tensor(self, value: Host, device: Any) -> Tensor:
        """The host value on the device."""
        array, made = self._known.get(id(value), (None, None))
        if made is None or made.device != device:
            made = to_tensor(value, device)
            if array is not None:
                self._known[id(value)] = (array, made)
        return made


def _arrays(graph: OnnxGraph) -> Iterator[Host]:
    yield from graph.initialisers.values()
    for step in graph.steps:
        for inner in step.subgraphs:
            yield from _arrays(inner)
