"""Folding of what follows from constants alone: it is computed before it is written, as readers of a model do."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnc_core.operator import OPERATORS, Nodes
from nnc_core.optimiser.fold import folded
from nnc_core.symbol import Literal, Node

WRITTEN_OUT = 2**20
"""Elements that a constant may have which is computed; a larger one is made where the graph runs."""
_PROGRESSION = OPERATORS["progression"]


def as_constant(F: Nodes, node: Node) -> Node | None:
    """The constant that a node is; None if it depends on inputs, or is too large."""
    if node.op is not _PROGRESSION:
        return folded(F, node, WRITTEN_OUT)
    size = node.attributes[2]
    if not isinstance(size, int) or size > WRITTEN_OUT:
        return None
    reference: Any = _PROGRESSION.reference
    with np.errstate(all="ignore"):  # what is beyond a dtype's range is infinite
        return F.constant(Literal(np.asarray(reference(*node.attributes))), node.spec)
