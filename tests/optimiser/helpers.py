"""Graphs before and after a rewrite, compared as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from nnc_core.base.dtype import DTYPES
from nnc_core.graph import SymbolicGraph
from nnc_core.operator import Nodes
from nnc_core.optimiser import REWRITES, Optimiser, Rewrite
from nnc_core.symbol import Node
from nnc_core.type import TensorSpec
from tests.graph.stack import OPTIMISER, new_namespace

Build = Callable[..., Node]
"""(F, *placeholders) -> output"""


class Only(Optimiser):
    """An optimiser with some of the rewrites."""

    def __init__(self, *names: str) -> None:
        super().__init__(OPTIMISER.operator)
        self.names = names

    def rewrites(self) -> Iterable[Rewrite]:
        return [REWRITES[name] for name in self.names]


def spec(text: str) -> TensorSpec:
    """ "float32 2 3" -> float32[2,3] """
    dtype, *shape = text.split()
    return TensorSpec(tuple(map(int, shape)), DTYPES[dtype])


def placeholders(specs: Sequence[str]) -> tuple[Nodes, list[Node]]:
    F = new_namespace()
    return F, [F.placeholder(f"x{i}", spec(text)) for i, text in enumerate(specs)]


def text_of(inputs: Sequence[Node], *outputs: Node) -> str:
    """The graph as text, without source lines."""
    graph = SymbolicGraph({f"x{i}": x for i, x in enumerate(inputs)}, {f"y{i}": y for i, y in enumerate(outputs)})
    return "\n".join(line.partition("  #")[0] for line in str(graph).splitlines())


def optimised(optimiser: Optimiser, specs: Sequence[str], build: Build) -> tuple[str, Any]:
    """(text after optimising, the placeholders)"""
    F, xs = placeholders(specs)
    return text_of(xs, *optimiser.run([build(F, *xs)])), xs
