"""Nodes that are no more than an array, which some exporters write instead of initialisers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import onnx

STANDARD = ("", "ai.onnx")
"""Names of the domain of ONNX' own operators."""


def is_constant(node: onnx.NodeProto) -> bool:
    """True for a node that is an array, and not one that follows from an attribute of the function around it."""
    return bool(node.op_type == "Constant" and node.domain in STANDARD and len(node.attribute) == 1
                and node.attribute[0].name == "value" and not node.attribute[0].ref_attr_name and node.output)


def constants_of(nodes: Iterable[onnx.NodeProto]) -> Iterator[tuple[str, onnx.TensorProto]]:
    """The arrays of such nodes, with the names of their outputs."""
    return ((node.output[0], node.attribute[0].t) for node in nodes if is_constant(node))
