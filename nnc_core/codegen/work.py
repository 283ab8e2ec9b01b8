"""Counting what a loop nest does: arithmetic operations, and the elements that it may touch."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from math import prod

from nnc_core.base.dtype import float32
from nnc_core.base.loopnest import OPERATIONS, Instruction, LoopNest
from nnc_core.codegen.expansions import BY_DEFAULT, EXPANSIONS
from nnc_core.codegen.scalar import BodyBuilder, Scalar

SELECTION = frozenset({"valid", "cast", "bitcast", "select"})
"""Instructions that take as long as an addition and compute nothing."""
MOVEMENT = frozenset({"constant", "axis", "load", "store", "note"}) | SELECTION
"""Instructions that compute nothing."""
_COUNTS = {"fma": 2, "sin": 20, "cos": 20, "tan": 30, "power": 60}
"""Operations of instructions that are more than one; others that have an expansion count as many as that has."""
_FOLDED = {"dot": 2, "recurrence": 2}


def flops(nest: LoopNest) -> int:
    """Arithmetic operations of all points, integers' and comparisons among them, checks of subscripts not."""
    return nest.points * flops_of_point(nest)


def flops_of_point(nest: LoopNest) -> int:
    """Arithmetic operations of one point."""
    total = 0
    for stage in nest.stages:
        folded = sum(_of_fold(reduction.kind) for reduction in stage.reductions)
        total += prod(stage.axes) * (_flops_of(stage.instructions) + folded)
    return total


def weight_of_point(nest: LoopNest) -> int:
    """About how many additions one point takes as long as: its arithmetic, and what is converted and selected."""
    return flops_of_point(nest) + sum([prod(stage.axes) * sum([i.operation in SELECTION for i in stage.instructions])
                                       for stage in nest.stages])


def _flops_of(instructions: Iterable[Instruction]) -> int:
    return sum(_of_operation(instruction.operation) for instruction in instructions)


def touched(nest: LoopNest) -> dict[int, int]:
    """The number of loads and stores of each argument, by argument."""
    counts = dict.fromkeys(range(len(nest.arguments)), 0)
    for stage in nest.stages:
        for instruction in stage.instructions:
            if instruction.access is not None and instruction.operation not in ("valid", "note"):
                counts[instruction.access.argument] += nest.points * prod(stage.axes)
    return counts


def _of_fold(kind: str) -> int:
    return _FOLDED.get(kind, _of_operation("exp") + _of_operation("log1p") if kind == "logsumexp" else 1)


@cache
def _of_operation(operation: str) -> int:
    if operation in MOVEMENT:
        return 0
    if operation in _COUNTS or operation not in BY_DEFAULT:
        return _COUNTS.get(operation, 1)
    body = BodyBuilder(0)
    operands = [Scalar(body, body.append(Instruction("load", float32)), float32) for _ in range(OPERATIONS[operation])]
    EXPANSIONS[operation](*operands)
    return sum(i.operation not in MOVEMENT for i in body.instructions)
