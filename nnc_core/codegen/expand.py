"""Replace the transcendental instructions of a nest by the polynomial expansions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from nnc_core.base.dtype import DType, accumulator
from nnc_core.base.loopnest import Access, Instruction, LoopNest, Reduction, Stage
from nnc_core.codegen.expansions import BY_DEFAULT, EXPANSIONS, is_expanded
from nnc_core.codegen.general import AnyNest, GeneralNest
from nnc_core.codegen.scalar import BodyBuilder, Scalar

Numbering = Mapping[int, int]


AnyKind = TypeVar("AnyKind", LoopNest, GeneralNest, AnyNest)


def expand(nest: AnyKind, functions: Collection[str] = BY_DEFAULT, direct: Collection[str] = ()) -> AnyKind:
    """The nest with `functions` (of EXPANSIONS; all but sin, cos and tan) written out in scalar instructions.

    float16 and bfloat16 are computed in float32 between casts.  Values are renumbered.  A nest without such
    instructions is returned as it is.  direct: instructions that not every target has and this one does; there is one,
    `scale`, which takes the place of several and gives the same bits.
    """
    if unknown := set(functions) - set(EXPANSIONS):
        raise ValueError(f"no expansion of {sorted(unknown)}; there are {sorted(EXPANSIONS)}")
    if isinstance(nest, GeneralNest):
        return replace(nest, nest=expand(nest.nest, functions, direct))
    if not any(_is_written_out(i, functions) for stage in nest.stages for i in stage.instructions):
        return nest
    renumbered: dict[int, int] = {}
    stages: list[Stage] = []
    first = 0
    for stage in nest.stages:
        stages.append(_expand_stage(stage, BodyBuilder(first, direct), renumbered, functions))
        first += stages[-1].values
    return LoopNest(nest.name, nest.arguments, nest.axes, tuple(stages))


def _is_written_out(instruction: Instruction, functions: Collection[str]) -> bool:
    return instruction.operation in functions and is_expanded(instruction.operation, instruction.dtype)


def _expand_stage(stage: Stage, body: BodyBuilder, renumbered: dict[int, int], functions: Collection[str]) -> Stage:
    """Expand one stage into an empty body; `renumbered` holds the new numbers of all values before it and gets this
    stage's."""
    _expand_body(stage.body, body, renumbered, functions)
    reductions = tuple(_renumber_reduction(r, renumbered) for r in stage.reductions)
    for place in range(len(reductions)):
        renumbered[len(renumbered)] = body.next + place
    running = BodyBuilder(body.next + len(reductions), body.direct)
    _expand_body(stage.running, running, renumbered, functions)
    return Stage(stage.axes, tuple(body.instructions), reductions, tuple(running.instructions))


def _expand_body(instructions: Sequence[Instruction], body: BodyBuilder, renumbered: dict[int, int],
                 functions: Collection[str]) -> None:
    for instruction in instructions:
        operands = tuple(renumbered[operand] for operand in instruction.operands)
        if _is_written_out(instruction, functions):
            number = _expansion(body, instruction.operation, operands, instruction.dtype)
        else:
            access = _renumber_access(instruction.access, renumbered)
            number = body.append(instruction._replace(operands=operands, access=access))
        renumbered[len(renumbered)] = number


def _renumber_reduction(reduction: Reduction, renumbered: Numbering) -> Reduction:
    factor = None if reduction.factor is None else renumbered[reduction.factor]
    return reduction._replace(value=renumbered[reduction.value], factor=factor)


def _expansion(body: BodyBuilder, function: str, operands: Sequence[int], dtype: DType) -> int:
    operands_wide = [Scalar(body, operand, dtype).cast(accumulator(dtype)) for operand in operands]
    result: Scalar = EXPANSIONS[function](*operands_wide).cast(dtype)
    return result.number


def _renumber_access(access: Access | None, renumbered: Numbering) -> Access | None:
    if access is None or all(s.gather is None for s in access.subscripts):
        return access
    subscripts = tuple(s if s.gather is None else s._replace(gather=renumbered[s.gather]) for s in access.subscripts)
    return access._replace(subscripts=subscripts)
