"""Graphs in the operators that are written: composites and others in parts where ONNX has none like them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nnc_core.base.dtype import DType
from nnc_core.base.errors import NotSupportedError
from nnc_core.graph import SymbolicGraph
from nnc_core.io.onnx.writing.dtypes import ELEMENT_TYPES
from nnc_core.io.onnx.writing.known import as_constant
from nnc_core.io.onnx.writing.table import PHRASES, WRITERS
from nnc_core.operator import CONSTANT, PLACEHOLDER, Operator
from nnc_core.optimiser import REWRITES, Rewriting, rebuild
from nnc_core.optimiser.rewriting import rules_of
from nnc_core.symbol import Node, Table, bodies_in, postorder, show_line
from nnc_core.type import TupleSpec

MOVEMENTS = rules_of(REWRITES[name] for name in (
    "reshape-again", "permute-again", "broadcast-again", "slice-again", "flip-again", "pad-nothing", "concat-one",
    "join-neighbours", "slice-of-concat", "move-filled", "cast-nothing"))
"""Rewrites by which the gates that ONNX has in another order, and readers bring back, are the weights themselves."""
_SHOWN = 3
"""Lines that an error names of each operator."""


class Saying(Rewriting):
    """Makes other nodes in place of those that no rule fits, constants of what is known, and movements that cancel."""

    def __init__(self, operator: Operator, table: Table) -> None:
        super().__init__(operator, table, MOVEMENTS)

    def fresh(self) -> Saying:
        return self.operator.open(Saying)

    def for_bodies(self, like: Node) -> Saying:
        return self.fresh()

    def simplify(self, node: Node) -> Node:
        known = as_constant(self, node)
        if known is not None:
            return known
        shorter = super().simplify(node)
        if shorter is not node or is_written(node):
            return shorter
        phrase = PHRASES.get(node.op.name)
        said = None if phrase is None else phrase(self, *node.inputs, *node.attributes)
        if said is None and node.op.decompose is not None:
            said = node.op.decompose(self, *node.inputs, *node.attributes)
        return node if said is None else said


def is_written(node: Node) -> bool:
    """Tell whether a node is said in ONNX' own operators."""
    rule = WRITERS.get(node.op.name)
    return rule is not None and rule.fits(node)


def prepared(graph: SymbolicGraph, operator: Operator) -> dict[str, Node]:
    """The outputs in operators that are written; NotSupportedError names all others."""
    made = rebuild(list(graph.outputs.values()), operator.open(Saying))
    _check(graph.name, made)
    return dict(zip(graph.outputs, made, strict=True))


def _check(name: str, outputs: Iterable[Node]) -> None:
    lines: dict[str, list[str]] = {}
    for node in _all_nodes(outputs):
        if node.op not in (PLACEHOLDER, CONSTANT) and not is_written(node):
            lines.setdefault(node.op.name, []).append(show_line(node.line))
        for dtype in _unknown_dtypes(node):
            lines.setdefault(f"{node.op.name} of {dtype}", []).append(show_line(node.line))
    if lines:
        said = "; ".join(f"{operator} ({_counted(found)})" for operator, found in sorted(lines.items()))
        raise NotSupportedError(f"ONNX cannot say all of {name!r}: {said}",
                                hint="export the parts of the graph without these operators")


def _counted(lines: list[str]) -> str:
    """Words for how often there is an operator, and in which lines."""
    known = list(dict.fromkeys(line for line in lines if line))
    more = f" and {len(known) - _SHOWN} more lines" if len(known) > _SHOWN else ""
    return f"{len(lines)} times" * (len(lines) > 1) + " " * (len(lines) > 1 and bool(known)) + (
        f"at {', '.join(known[:_SHOWN])}{more}" if known else "") or "once"


def _unknown_dtypes(node: Node) -> list[DType]:
    """Dtypes of a node's results that are not written, as complex numbers."""
    specs = node.spec.parts if isinstance(node.spec, TupleSpec) else (node.spec,)
    return [dtype for dtype in dict.fromkeys([spec.dtype for spec in specs]) if dtype not in ELEMENT_TYPES]


def _all_nodes(outputs: Iterable[Node]) -> Iterator[Node]:
    """Those inside of bodies too."""
    for node in postorder(outputs):
        yield node
        for body in bodies_in(node.attributes) if node.op.bodies else ():
            yield from _all_nodes((*body.inputs, *body.outputs))
