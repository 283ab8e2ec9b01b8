"""A model's graph parsed: steps whose operators are known, with all that does not depend on a call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from nnc_core.io.onnx.reading.lanes import Host
from nnc_core.io.onnx.reading.registry import OnnxOperator


@dataclass(frozen=True, eq=False)
class OnnxNode:
    """One node.  Empty names are inputs that are left out, or outputs that nobody wants."""

    operator: OnnxOperator
    version: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]  # sub-graphs as subgraphs
    where: str  # for errors

    @property
    def subgraphs(self) -> Iterator[OnnxGraph]:
        """The sub-graphs."""
        return (x for x in self.attributes.values() if isinstance(x, OnnxGraph))


class ValueInfo(NamedTuple):
    """Declaration of an input or output; None where it says nothing."""

    name: str
    dtype: Any
    shape: tuple[int | str | None, ...] | None
    kind: str  # "tensor", "sequence", "optional", "map" or ""


@dataclass(frozen=True, eq=False)
class OnnxGraph:
    """A graph, or the body of a function, in the order in which it runs."""

    name: str
    inputs: tuple[ValueInfo, ...]
    outputs: tuple[ValueInfo, ...]
    initialisers: Mapping[str, Host]
    steps: tuple[OnnxNode, ...]
    ends: tuple[tuple[str, ...], ...]  # after each step, the names that nothing reads any more
    free: tuple[str, ...]  # names of outer graphs that it reads, in the order in which it does
    dtypes: Mapping[str, Any]  # what it declares of values in between

    @property
    def result_names(self) -> tuple[str, ...]:
        return tuple(output.name for output in self.outputs)

    def reads(self, name: str) -> bool:
        """Tell whether a step reads a value of this name, or it is a result."""
        return name in self.result_names or any(name in reads_of(step) for step in self.steps)


def reads_of(step: OnnxNode) -> dict[str, None]:
    """All names that a step reads in their order, those that its sub-graphs take from around them included."""
    return dict.fromkeys((*filter(None, step.inputs), *(name for graph in step.subgraphs for name in graph.free)))


def last_readers(steps: tuple[OnnxNode, ...], kept: set[str]) -> tuple[tuple[str, ...], ...]:
    """For each step the names whose last reader it is, or that nobody reads after it has made them."""
    seen = set(kept)
    ends: list[tuple[str, ...]] = []
    for step in reversed(steps):
        over = {*reads_of(step), *filter(None, step.outputs)} - seen
        seen |= over
        ends.append(tuple(sorted(over)))
    return tuple(reversed(ends))


def free_names(inputs: tuple[ValueInfo, ...], initialisers: Mapping[str, Host], steps: tuple[OnnxNode, ...],
               outputs: tuple[str, ...]) -> tuple[str, ...]:
    """The names that are read before the graph itself has given them a value."""
    own = {x.name for x in inputs} | initialisers.keys()
    free: dict[str, None] = {}
    for step in steps:
        free |= {name: None for name in reads_of(step) if name not in own}
        own |= set(step.outputs)
    return tuple(free | {name: None for name in outputs if name not in own})
