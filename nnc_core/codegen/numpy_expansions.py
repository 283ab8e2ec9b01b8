"""Expansions on NumPy arrays: what functions mean that NumPy does not have.

The same instructions as everywhere, so that each device gives the bits that the reference gives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, TypeAlias

import numpy as np

from nnc_core.base.dtype import DType, accumulator, float32
from nnc_core.base.loopnest import OPERATIONS, Instruction
from nnc_core.codegen.exact_fma import rounding_twice_matters
from nnc_core.codegen.expansions import EXPANSIONS
from nnc_core.codegen.numpy_scalars import cast, rule
from nnc_core.codegen.scalar import BodyBuilder, Scalar

Values = np.ndarray[Any, Any]
Evaluation: TypeAlias = Callable[..., Values]

PIECE = 1 << 12
"""Elements computed at once: temporary arrays of them stay in the cache."""


def evaluate(function: str, *arrays: Any) -> Values:
    """One of EXPANSIONS on arrays of one float dtype that broadcast; halves are computed in float32."""
    given = [np.asarray(a) for a in arrays]
    dtype = given[0].dtype
    wide = accumulator(dtype)
    run = _program(function, wide)
    operands = [a.astype(wide, copy=False) for a in given]
    if len(operands) > 1:
        operands = list(np.broadcast_arrays(*operands))
    shape, inputs = operands[0].shape, [a.reshape(-1) for a in operands]
    with np.errstate(all="ignore"):
        out = run(*inputs) if 0 < inputs[0].size <= PIECE else _in_pieces(run, inputs, wide)
        return out.reshape(shape).astype(dtype, copy=False)


def _in_pieces(run: Evaluation, inputs: list[Values], dtype: DType) -> Values:
    out = np.empty(inputs[0].size, dtype)
    for begin in range(0, out.size, PIECE):
        piece = slice(begin, begin + PIECE)
        out[piece] = run(*[a[piece] for a in inputs])
    return out


@lru_cache(maxsize=256)
def _program(function: str, dtype: DType) -> Evaluation:
    body = BodyBuilder(0)
    operands = [Scalar(body, body.append(Instruction("load", dtype)), dtype) for _ in range(OPERATIONS[function])]
    result = EXPANSIONS[function](*operands).number
    fused = sum([i.operation == "fma" and i.dtype == float32 for i in body.instructions])
    exact = _compiled(body, len(operands), result, quickly=False)
    return _quickly(_compiled(body, len(operands), result, quickly=True), exact, fused) if fused else exact


def _quickly(run: Evaluation, exact: Evaluation, fused: int) -> Evaluation:
    """Evaluate with sums rounded to float64 before they are float32, and exactly where one of them was in the middle;
    that is looked for once, in all of them together."""

    def evaluation(*inputs: Values) -> Values:
        sums = np.empty((fused, inputs[0].size))
        out = run(sums, *inputs)
        wrong = rounding_twice_matters(sums)
        if wrong.any():
            places = wrong.any(0)
            out[places] = exact(*[x[places] for x in inputs])
        return out

    return evaluation


def _quick_fma(a: Values, b: Values, c: Values, room: Values) -> Values:
    """A fused multiply-add of float32, rounded once unless what is left in `room` says otherwise."""
    np.multiply(a, b, room, dtype=np.float64)
    np.add(room, c, room)
    return room.astype(np.float32)


def _compiled(body: BodyBuilder, count: int, result: int, quickly: bool) -> Evaluation:
    """The instructions as Python code, a line for each: on few elements, what takes time is to call NumPy."""
    constants = {n: np.array(i.literal, i.dtype) for n, i in enumerate(body.instructions) if i.operation == "constant"}
    steps = [n for n in range(count, len(body.instructions)) if n not in constants]
    fused = [n for n in steps if quickly and body.instructions[n].operation == "fma"]
    scope: dict[str, Any] = {f"f{n}": _meaning(body.instructions[n], body, constants) for n in steps}
    scope |= {f"f{n}": _quick_fma for n in fused} | {f"c{n}": constant for n, constant in constants.items()}
    names = {n: f"x{n}" for n in range(count)} | {n: f"c{n}" for n in constants}
    lines = _lines(body, steps, names, result, {n: f", sums[{place}]" for place, n in enumerate(fused)})
    known = [f"{name}={name}" for name in scope]  # as defaults they are found fastest
    parameters = ", ".join([*(["sums"] if quickly else []), *[f"x{n}" for n in range(count)], *known])
    source = "\n    ".join([f"def run({parameters}):", *lines, f"return {names[result]}"])
    exec(compile(source, __file__, "exec"), scope)
    return scope["run"]  # type: ignore[no-any-return]


def _lines(body: BodyBuilder, steps: list[int], names: dict[int, str], result: int, more: Mapping[int, str]
           ) -> list[str]:
    """One assignment for each instruction, some with more arguments; names of values that nothing reads later are used
    again, which frees their memory."""
    last = {operand: n for n in steps for operand in body.instructions[n].operands}
    free: list[str] = []
    lines: list[str] = []
    for n in steps:
        operands = body.instructions[n].operands
        arguments = ", ".join([names[o] for o in operands])
        free += [names[o] for o in sorted(set(operands)) if last[o] == n and o != result and names[o][0] == "t"]
        names[n] = free.pop() if free else f"t{n}"
        lines.append(f"{names[n]} = f{n}({arguments}{more.get(n, '')})")
    return lines


def _meaning(instruction: Instruction, body: BodyBuilder, constants: dict[int, Values]) -> Callable[..., Values]:
    """The function of arrays that an instruction applies to its operands."""
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
