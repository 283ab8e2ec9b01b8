"""Fused elementwise commands: several universal functions over a piece that stays in the cache, then the next piece."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from nnc_core.base.command import Command
from nnc_core.device import Launch
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


MAKERS: dict[str, Make] = {"fma": in_pieces(fma, 1), "adagrad_update": in_pieces(adagrad, 2)}
INPLACE: dict[str, tuple[int, ...]] = {"fma": (0, 1, 2), "adagrad_update": (0, 1)}
