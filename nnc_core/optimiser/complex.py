"""Complex numbers and their parts."""

from __future__ import annotations

from nnc_core.operator import Nodes
from nnc_core.optimiser.inspect import like
from nnc_core.optimiser.rewrite import rewrite
from nnc_core.symbol import Node


@rewrite("part-of-complex", "real", "imag", tag="simplify")
def part_of_complex(F: Nodes, node: Node) -> Node | None:
    """real(a + bi) -> a, imag(a + bi) -> b; real(conj z) -> real z, imag(conj z) -> -imag z."""
    (z,) = node.inputs
    if z.op.name == "complex":
        return like(F, z.inputs[node.op.name == "imag"], node)
    if z.op.name == "conj":
        return F.real(z.inputs[0]) if node.op.name == "real" else F.negative(F.imag(z.inputs[0]))
    return None


@rewrite("complex-of-parts", "complex", tag="simplify")
def complex_of_parts(F: Nodes, node: Node) -> Node | None:
    """real z + i imag z -> z."""
    a, b = node.inputs
    same = a.op.name == "real" and b.op.name == "imag" and a.inputs[0] is b.inputs[0]
    return like(F, a.inputs[0], node) if same else None


@rewrite("conjugate-again", "conj", tag="simplify")
def conjugate_again(F: Nodes, node: Node) -> Node | None:
    """conj(conj z) -> z."""
    (z,) = node.inputs
    return z.inputs[0] if z.op is node.op else None


REWRITES = (part_of_complex, complex_of_parts, conjugate_again)
