"""The part of a graph that a node of `Gradient` names: from independent values to the one that is derived by them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from nnc_core.io.onnx.reading.graph import OnnxGraph, OnnxNode, ValueInfo, free_names, last_readers, reads_of


def with_parts(steps: Iterable[OnnxNode]) -> tuple[OnnxNode, ...]:
    """The steps of a graph, of which each `Gradient` has its part of those before it as the attribute `body`."""
    found: list[OnnxNode] = []
    for step in steps:
        if step.operator.name == "Gradient":
            given = (*step.attributes["xs"], *step.attributes.get("zs", ()))
            body = _part(found, given, step.attributes["y"])
            step = replace(step, attributes={**step.attributes, "body": body})
        found.append(step)
    return tuple(found)


def _part(steps: Sequence[OnnxNode], given: tuple[str, ...], wanted: str) -> OnnxGraph:
    """The graph of the steps that lead from some names to another; what else they read stays outside."""
    inputs, outputs = ([ValueInfo(name, None, None, "") for name in names] for names in (given, (wanted,)))
    part = _leading_to(_following(steps, set(given)), wanted)
    return OnnxGraph(f"up to {wanted}", tuple(inputs), tuple(outputs), {}, part,
                     last_readers(part, {wanted, *given}), free_names(tuple(inputs), {}, part, (wanted,)), {})


def _following(steps: Sequence[OnnxNode], names: set[str]) -> list[OnnxNode]:
    """The steps that read some of the names, or what follows from them."""
    given, found = frozenset(names), []
    for step in steps:
        if not names.isdisjoint(reads_of(step)) and not given.intersection(step.outputs):
            found.append(step)
            names = names.union(step.outputs)
    return found


def _leading_to(steps: Sequence[OnnxNode], wanted: str) -> tuple[OnnxNode, ...]:
    names, found = {wanted}, []
    for step in reversed(steps):
        if names.intersection(step.outputs):
            found.append(step)
            names.update(reads_of(step))
    return tuple(reversed(found))
