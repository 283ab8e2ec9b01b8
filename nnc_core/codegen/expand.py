"""Replace the transcendental instructions of a nest by the polynomial expansions."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from nnc_core.base.dtype import DType, accumulator
from nnc_core.base.loopnest import Access, LoopNest, Stage
from nnc_core.codegen.polynomials import EXPANSIONS
from nnc_core.codegen.scalar import Body

Numbering = Mapping[int, int]


def expand(nest: LoopNest, functions: Collection[str] = frozenset(EXPANSIONS)) -> LoopNest:
    """The nest with `functions` (of exp, log, tanh, sigmoid) written out in scalar instructions.

    float16 and bfloat16 are computed in float32 between casts.  Values are renumbered.  A nest without such
    instructions is returned as it is.
    """
    if unknown := set(functions) - set(EXPANSIONS):
        raise ValueError(f"no expansion of {sorted(unknown)}; there are {sorted(EXPANSIONS)}")
    if not any(i.operation in functions for stage in nest.stages for i in stage.body):
        return nest
    renumbered: dict[int, int] = {}
    stages: list[Stage] = []
    first = 0
    for stage in nest.stages:
        stages.append(_expand_stage(stage, first, renumbered, functions))
        first += len(stages[-1].body) + len(stage.reductions)
    return LoopNest(nest.name, nest.arguments, nest.axes, tuple(stages))


def _expand_stage(stage: Stage, first: int, renumbered: dict[int, int], functions: Collection[str]) -> Stage:
    """Expand one stage; `renumbered` holds the new numbers of all values before it and gets this stage's."""
    body = Body(first)
    for instruction in stage.body:
        operands = tuple(renumbered[operand] for operand in instruction.operands)
        if instruction.operation in functions:
            number = _expansion(body, instruction.operation, operands[0], instruction.dtype)
        else:
            access = _renumber_access(instruction.access, renumbered)
            number = body.append(instruction._replace(operands=operands, access=access))
        renumbered[len(renumbered)] = number
    reductions = tuple(r._replace(value=renumbered[r.value]) for r in stage.reductions)
    for place in range(len(reductions)):
        renumbered[len(renumbered)] = body.next + place
    return Stage(stage.axes, tuple(body.instructions), reductions)


def _expansion(body: Body, function: str, operand: int, dtype: DType) -> int:
    x, wide = body.scalar(operand, dtype), accumulator(dtype)
    if wide == dtype:
        return EXPANSIONS[function](x).number
    return EXPANSIONS[function](x.cast(wide)).cast(dtype).number


def _renumber_access(access: Access | None, renumbered: Numbering) -> Access | None:
    if access is None or all(s.gather is None for s in access.subscripts):
        return access
    subscripts = tuple(s if s.gather is None else s._replace(gather=renumbered[s.gather]) for s in access.subscripts)
    return access._replace(subscripts=subscripts)
