"""A stack of layers up to the graph, on a device that is only described: nothing here computes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from nnc_core.base.dtype import ALL_DTYPES
from nnc_core.device import DeviceSpec
from nnc_core.graph import Graph
from nnc_core.operator import Nodes, Operator
from nnc_core.optimiser import Optimiser
from nnc_core.shape import Shape
from nnc_core.symbol import Symbol
from nnc_core.type import Type


def make_graph_layer(dtypes: frozenset[str] = frozenset(ALL_DTYPES)) -> Graph:
    device: Any = SimpleNamespace(spec=DeviceSpec("paper:0", "paper", "a device on paper", dtypes=dtypes))
    return Graph(Optimiser(Operator(Symbol(Shape(Type(device))))))


GRAPHS = make_graph_layer()
OPTIMISER = GRAPHS.optimiser


def new_namespace() -> Nodes:
    """Operators over the nodes of a new table."""
    return OPTIMISER.operator.open()
