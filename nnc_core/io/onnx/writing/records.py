"""ONNX graphs as plain records, until they become protocol buffers: building them needs no onnx package."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from nnc_core.type import DimLike, TensorSpec

Array: TypeAlias = np.ndarray[Any, Any]


@dataclass(slots=True, eq=False)
class WrittenNode:
    """An ONNX operator on named values; an input that is left out is ""."""

    operator: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any]
    """Numbers, texts, their sequences, arrays, graphs, and in functions attributes of the call."""


@dataclass(frozen=True, slots=True)
class CallAttribute:
    """The attribute of that name, a float, of the node that calls a function."""

    name: str


@dataclass(slots=True, eq=False)
class WrittenGraph:
    """A graph, or a sub-graph, which sees the names around it."""

    name: str
    inputs: Sequence[tuple[str, TensorSpec]]
    outputs: Sequence[tuple[str, TensorSpec]]
    nodes: list[WrittenNode]


@dataclass(slots=True, eq=False)
class WrittenFunction:
    """Nodes that run where a node with the function's name is; `name` has the domain before a dot."""

    name: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    attributes: Sequence[str]
    nodes: list[WrittenNode]


@dataclass(slots=True, eq=False)
class WrittenModel:
    """A graph with its arrays, the functions that it calls and what it says of itself."""

    graph: WrittenGraph
    arrays: dict[str, Array]
    """Initializers by name."""
    opset: int
    metadata: dict[str, str]
    text_of: Callable[[DimLike], str | int]
    """Dimensions as texts, or numbers."""
    functions: Sequence[WrittenFunction]


def all_nodes_in(graph: WrittenGraph) -> Iterator[WrittenNode]:
    """The nodes of a graph and of those inside of it."""
    for node in graph.nodes:
        yield node
        for value in node.attributes.values():
            if isinstance(value, WrittenGraph):
                yield from all_nodes_in(value)
