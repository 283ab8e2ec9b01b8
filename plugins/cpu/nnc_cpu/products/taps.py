"""Gradients by kernels of few channels: several elements of windows as the rows of one tile.

What an element of a window is multiplied by makes as many rows as there are channels (and elements beside it that lie
side by side): in a network's first layer a tile is too low to be worth its loads, and there are as many tasks as
elements, each of which goes through the whole gradient.  With all of them as rows the gradient is gone through once.
"""

from __future__ import annotations

from nnc_core.operator.products.problem import MatrixProduct
from nnc_cpu.products.kind import STEPS, TABLE
from nnc_cpu.products.tables import ROW_LANES

NOTES = STEPS + ROW_LANES
"""Addresses of one element of windows in a table: of the steps of a block, and what is written behind the last."""
FREE = 4
"""Registers of 32 that are left to a vector of B and to what is loaded; half as many of 16."""


def taps_of(problem: MatrixProduct, wide: bool) -> int:
    """The elements of windows that can be rows of one tile of one vector, all that there are; 1: they cannot.

    `wide`: there are 32 registers, else 16."""
    taps = problem.batch[-1] if problem.batch else 1
    if problem.windows is None or problem.left != "columns" or problem.wide != problem.dtype or problem.parts:
        return 1
    most = 32 - FREE if wide else 16 - FREE // 2
    fits = problem.rows * taps <= most and taps * NOTES <= TABLE
    return taps if fits and all([x.batch[-1] == problem.rows * x.row for x in problem.others]) else 1


def with_taps_as_rows(problem: MatrixProduct) -> MatrixProduct:
    """The problem with its last axis of batches among the rows."""
    return problem._replace(batch=(*problem.batch[:-1], 1), rows=problem.rows * problem.batch[-1])
