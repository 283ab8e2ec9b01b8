"""Ways of reading B: where it lies or packed, and along its rows where it is large.

The steps of a panel of a large matrix lie pages apart, where no processor foresees them.  So few steps of many panels
are gone through at a time, and tiles send for those of the next panel (`ahead.py`).
"""

from __future__ import annotations

from math import prod
from sys import maxsize

from nnc_core.operator.products.problem import MatrixProduct
from nnc_cpu.products.kind import STEPS, Right, ends_slowly

FEW_ROWS, SMALL = 64, 1 << 19
"""A gradient of a kernel packs B where it has more rows, and B more bytes, than these."""
MUCH = 1 << 22
"""Bytes of operands and results beside which B is packed where it would be read in place."""
LARGE, LARGE_BESIDE_WINDOWS = 1 << 17, 1 << 22
"""Bytes of B from which on it is gone through along its rows."""
PACKED_ROWS, FAR_ROWS, FAR = 47, 128, 1 << 23
"""More rows than `PACKED_ROWS` have the first tile pack each panel of a large B, so that the first cache has it for all
others; `FAR_ROWS`: the same where B has more than `FAR` bytes, which come so slowly that a tile that packs them waits.
"""
ALONG_STEPS, PACKED_STEPS = ((16, 32), (100, 64), (maxsize, 128)), 128
"""Steps of a block of a large B that is read in place, for no more rows than some, and where it is packed: a panel that
a first cache holds."""


def right_of(problem: MatrixProduct) -> Right:
    """The way that B is read."""
    if problem.panel or (problem.each and not problem.parts):
        return "panels"
    if problem.b.column != 1 and problem.columns > 1:
        return "columns"
    if problem.parts or (problem.segments > 1 and problem.b_segment != problem.length * problem.b.row):
        return "rows"  # steps of different segments do not lie at equal distances
    if problem.wide != problem.dtype:
        return "rows"  # they are converted when they are packed
    if problem.windows is not None:
        of_kernel = problem.left == "columns" and problem.rows > FEW_ROWS and _size(problem) > SMALL
        return "rows" if of_kernel else "panels"
    if _ends_late(problem):
        return "rows" if _passing(problem) > MUCH else "panels"
    far = _size(problem) > FAR and problem.steps > PACKED_STEPS
    return "rows" if problem.rows > (FAR_ROWS if far else PACKED_ROWS) and _size(problem) > LARGE else "panels"


def is_along_rows(problem: MatrixProduct, right: Right) -> bool:
    """Tell whether a large B, which is read in this way, is gone through along its rows."""
    if problem.panel or problem.parts or problem.each or problem.wide != problem.dtype or right == "columns":
        return False
    if problem.windows is None:
        several = problem.steps > PACKED_STEPS and not _ends_late(problem)
        return _size(problem) > LARGE and (right == "panels" or several)
    pooled = problem.ending.pool is not None
    return right == "panels" and problem.left == "rows" and not pooled and _size(problem) > LARGE_BESIDE_WINDOWS


def steps_along(problem: MatrixProduct, right: Right) -> int:
    """Steps of a block of such a B, at most."""
    if right == "rows":
        return PACKED_STEPS
    return next(steps for rows, steps in ALONG_STEPS if problem.rows <= rows)


def _size(problem: MatrixProduct) -> int:
    return problem.steps * problem.columns * problem.dtype.itemsize


def _ends_late(problem: MatrixProduct) -> bool:
    return ends_slowly(problem.ending) and problem.steps <= STEPS


def _passing(problem: MatrixProduct) -> int:
    """Bytes that the ends of all tiles read and write, which take the place of B in caches, as rows of both may lie at
    the same distances."""
    arrays = zip(problem.others, problem.ending.dtypes, strict=True)
    size = sum([dtype.itemsize for x, dtype in arrays if x.row and x.column])
    return prod(problem.batch) * problem.rows * problem.columns * size
