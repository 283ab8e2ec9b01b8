"""Fused elementwise commands: several universal functions over a piece that stays in the cache, then the next piece."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from nnc_core.base.command import Command
from nnc_core.base.dtype import is_float
from nnc_core.device import Launch
from nnc_core.operator.fused import FUSED
from nnc_core.operator.program import Input, Pattern, Program, StepResult
from nnc_cpu.memory import Array
from nnc_cpu.routine import Make, Routine, prepared, scratch

PIECE = 1 << 14
"""Elements: five arrays of them fit a core's second-level cache."""

Work = Callable[..., None]
"""(*inputs, output, *temporaries) on one piece."""


def fma(a: Array, b: Array, c: Array, out: Array, product: Array) -> None:
    np.multiply(a, b, out=product)
    np.add(product, c, out=out)


def adagrad(p: Array, g: Array, squares: Array, rate: Array, epsilon: Array, out: Array, t: Array, root: Array) -> None:
    """Each step rounded as the separate operators round it."""
    np.multiply(g, rate, out=t)
    np.sqrt(squares, out=root)
    np.add(root, epsilon, out=root)
    np.true_divide(t, root, out=t)
    np.subtract(p, t, out=out)


def in_pieces(work: Work, temporaries: int) -> Make:
    """Inputs of the output's shape are cut, numbers go to every piece; anything else is one piece as it is."""

    def make(command: Command) -> Routine:
        out = command.output
        whole = out.shape != () and all(x.shape in ((), out.shape) for x in command.inputs)
        size = min(PIECE, out.size) if whole else out.size
        shape = (max(size, 1),) if whole else out.shape

        def bind(*arrays: Array) -> Launch:
            operands, spare = arrays[: -temporaries or None], arrays[len(arrays) - temporaries :]
            if not whole:
                return partial(work, *operands, *spare)
            return partial(_run, work, _pieces(operands, spare, out.size, size))

        return Routine(bind, tuple(scratch(shape, out.dtype) for _ in range(temporaries)))

    return prepared(make)


def _pieces(operands: Sequence[Array], spare: Sequence[Array], total: int, size: int) -> list[list[Array]]:
    flat = [x if x.ndim == 0 else x.reshape(-1) for x in operands]
    cut = []
    for begin in range(0, total, max(size, 1)):
        end = min(begin + size, total)
        cut.append([x if x.ndim == 0 else x[begin:end] for x in flat] + [t[: end - begin] for t in spare])
    return cut


def _run(work: Work, pieces: Sequence[Sequence[Array]]) -> None:
    for arrays in pieces:
        work(*arrays)


MULTIPLY_ADD: Pattern = (("multiply", (Input(0), Input(1))), ("add", (StepResult(0), Input(2))))
"""a * b + c (Owl's FMA), in two roundings."""
ADAGRAD: Pattern = (
    ("multiply", (Input(1), Input(3))),
    ("sqrt", (Input(2),)),
    ("add", (StepResult(1), Input(4))),
    ("divide", (StepResult(0), StepResult(2))),
    ("subtract", (Input(0), StepResult(3))),
)
"""p - g * rate / (sqrt(squares) + epsilon), each step rounded (Owl's Fused_Adagrad)."""


class Loop(NamedTuple):
    """A program's routine, and the inputs whose memory its result may take over."""

    make: Make
    inplace: tuple[int, ...]


LOOPS: dict[Pattern, Loop] = {ADAGRAD: Loop(in_pieces(adagrad, 2), (0, 1)),
                              MULTIPLY_ADD: Loop(in_pieces(fma, 1), (0, 1, 2))}
"""By what they run; larger ones first."""


def loop_of(command: Command) -> Loop | None:
    """The loop for a fused command; None if there is none."""
    program: Program = command.attributes[0]
    floats = all(is_float(x.dtype) for x in (*command.inputs, *command.outputs))
    return LOOPS.get(program.pattern()) if floats else None


def make(command: Command) -> Routine:
    """The routine of a fused command that there is a loop for."""
    loop = loop_of(command)
    assert loop is not None
    return loop.make(command)


MAKERS: dict[str, Make] = {FUSED.name: make}
