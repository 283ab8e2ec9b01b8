"""Expansions on NumPy arrays: what functions mean that NumPy does not have.

The same instructions as everywhere, so that each device gives the bits that the reference gives.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from nnc_core.base.dtype import DType, accumulator
from nnc_core.base.loopnest import OPERATIONS, Instruction
from nnc_core.codegen.expansions import EXPANSIONS
from nnc_core.codegen.numpy_scalars import cast, rule
from nnc_core.codegen.scalar import Body

Values = np.ndarray[Any, Any]

PIECE = 1 << 12
"""Elements computed at once: temporary arrays of them stay in the cache."""


class _Step(NamedTuple):
    function: Callable[..., Values]
    operands: tuple[int, ...]
    number: int
    last: tuple[int, ...]
    """Values that nothing reads later."""


class _Program(NamedTuple):
    constants: dict[int, Values]
    steps: tuple[_Step, ...]
    result: int


def evaluate(function: str, *arrays: Any) -> Values:
    """One of EXPANSIONS on arrays of one float dtype that broadcast; halves are computed in float32."""
    dtype = np.asarray(arrays[0]).dtype
    wide = accumulator(dtype)
    program = _program(function, wide)
    operands = np.broadcast_arrays(*(np.asarray(a).astype(wide, copy=False) for a in arrays))
    out = np.empty(operands[0].shape, wide)
    flat, inputs = out.reshape(-1), [a.reshape(-1) for a in operands]
    with np.errstate(all="ignore"):
        for begin in range(0, out.size, PIECE):
            piece = slice(begin, begin + PIECE)
            flat[piece] = _run(program, [a[piece] for a in inputs])
    return out.astype(dtype, copy=False)


def _run(program: _Program, inputs: list[Values]) -> Values:
    values = program.constants | dict(enumerate(inputs))
    for step in program.steps:
        values[step.number] = step.function(*[values[operand] for operand in step.operands])
        for number in step.last:
            del values[number]
    return values[program.result]


@lru_cache(maxsize=256)
def _program(function: str, dtype: DType) -> _Program:
    body = Body(0)
    count = OPERATIONS[function]
    operands = [body.scalar(body.append(Instruction("load", dtype)), dtype) for _ in range(count)]
    result = EXPANSIONS[function](*operands).number
    constants = {n: np.array(i.literal, i.dtype) for n, i in enumerate(body.instructions) if i.operation == "constant"}
    steps: list[_Step] = []
    kept = {result, *constants}
    for number in range(len(body.instructions) - 1, count - 1, -1):
        instruction = body.instructions[number]
        if number in constants:
            continue
        last = tuple(sorted({o for o in instruction.operands if o not in kept}))
        kept.update(instruction.operands)
        steps.append(_Step(_meaning(instruction, body, constants), instruction.operands, number, last))
    return _Program(constants, tuple(reversed(steps)), result)


def _meaning(instruction: Instruction, body: Body, constants: dict[int, Values]) -> Callable[..., Values]:
    """What an instruction does with its operands."""
    operation, dtype = instruction.operation, instruction.dtype
    if operation == "select":
        return np.where
    if operation == "bitcast":
        return lambda x: np.ascontiguousarray(x).view(dtype)
    if operation == "cast":
        return partial(cast, dtype=dtype)
    if operation in _SHIFTS and instruction.operands[1] in constants:  # a count that fits needs no check
        return _SHIFTS[operation]
    return rule(operation, body.instructions[instruction.operands[0]].dtype)


_SHIFTS = {"shift_left": np.left_shift, "shift_right": np.right_shift}
