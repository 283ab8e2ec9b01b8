"""Inputs of a model that say sizes or settings, so that Python must know them before anything runs."""

from __future__ import annotations

from collections.abc import Iterable

from nnc_core.io.onnx.reading.graph import OnnxGraph, OnnxNode

KNOWN = frozenset(("Host", "Sizes", "Numbers", "Known"))
"""Lanes of what Python is to know where it can."""
ASK_SIZES_ONLY = frozenset(("Shape", "Size"))
"""Their results are known to Python whatever their inputs are."""


def static_names(graph: OnnxGraph, wanted: Iterable[str] = ()) -> frozenset[str]:
    """Names of inputs, initialisers and outer values that a graph needs as host values; `wanted` are the outputs
    of which that is asked."""
    static = set(wanted)
    for step in reversed(graph.steps):
        static |= _needed(step, static)
    return frozenset(static) - {name for step in graph.steps for name in step.outputs}


def _needed(step: OnnxNode, static: set[str]) -> set[str]:
    needed = {name for i, name in enumerate(step.inputs) if name and step.operator.lane(i) in KNOWN}
    asked = [i for i, name in enumerate(step.outputs) if name in static]
    for inner in step.subgraphs:
        asked_inside = [inner.outputs[i].name for i in asked if i < len(inner.outputs)]
        needed |= static_names(inner, asked_inside).intersection(inner.free)
    body = step.attributes.get("body")
    if isinstance(body, OnnxGraph) and not body.free:  # a function: its inputs are the step's
        inside = static_names(body, [body.outputs[i].name for i in asked if i < len(body.outputs)])
        needed |= {name for name, x in zip(step.inputs, body.inputs, strict=False) if name and x.name in inside}
    if asked and step.operator.keeps_host and step.operator.name not in ASK_SIZES_ONLY:
        needed |= {name for name in step.inputs if name}
    return needed


def statistics(graph: OnnxGraph) -> frozenset[str]:
    """Names that are read as statistics, in sub-graphs too."""
    read = {name for step in graph.steps for i, name in enumerate(step.inputs)
            if name and step.operator.lane(i) == "Statistic"}
    return frozenset(read).union(*(statistics(inner) for step in graph.steps for inner in step.subgraphs))
