"""The numbers that the code of a product is given: sizes, and where the elements of its arrays lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nnc_core.operator.products.problem import PoolAxis, WindowAxis
from nnc_cpu.products.kind import AXES, Kind

SIZES = ("rows", "columns", "panels", "blocks", "block_rows", *[f"batch{n}" for n in range(1, AXES)],
         "segments", "length", "group", "part", "strip", "ahead_shift")
"""`blocks` of `block_rows` rows each; the lengths of the axes of batches but for the first; `segments` of `length`
steps each are the steps of a sum, gone through `group` segments, or a `part` of one, at a time; `strip`: panels of a
task, but of the last in a row; `ahead_shift` is of `ahead.py`."""
LEFT, RIGHT = ("a_step",), ("b_segment", "b_step", "b_column", "b_panel")
"""Elements from one row of A, or one column, to the next; from one segment, step, column and panel of B to the next."""
SPATIAL = 3
"""Spatial axes."""
WINDOWS = (*[f"{name}{n}" for name in WindowAxis._fields for n in range(SPATIAL)], "image_step", "image_rows")
"""See `WindowAxis` and `ImageWindows`."""
POOL = tuple([f"pool_{name}{n}" for name in PoolAxis._fields for n in range(SPATIAL)])
"""See `PoolAxis`."""
STREAM = ("stream_first", "stream_row", "stream_share", "stream_blocks")
"""See `stream.py`."""


def operand_names(kind: Kind) -> list[str]:
    """The arrays: A, B, then operands and outputs of the ending."""
    return ["a", "b", *[f"x{n}" for n in range(len(kind.ending.operands) + len(kind.ending.outputs))]]


def names_of(kind: Kind) -> list[str]:
    """All numbers, in order."""
    operands = operand_names(kind)
    names = [*SIZES, *LEFT, *RIGHT]
    for name in operands:
        names += [f"{name}_offset", *[f"{name}_batch{n}" for n in range(AXES)]]
    names += [f"{name}_row" for name in operands[2:]]
    windows = (*(WINDOWS if kind.windows else ()), *(() if kind.ending.pool is None else POOL))
    return [*names, *windows, *(STREAM if kind.streams else ())]


def numbers_of(kind: Kind, given: Mapping[str, int]) -> Sequence[int]:
    """The numbers in order; those that are not given are 0."""
    names = names_of(kind)
    assert set(given) <= set(names), set(given) - set(names)
    return [given.get(name, 0) for name in names]
