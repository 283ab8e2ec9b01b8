"""The numbers of a product that kernels written as text are given, by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from nnc_core.operator.products.problem import ImageWindows, MatrixProduct, Strided, WindowAxis

AXES = 3
"""Axes of batches."""

AlongRow: TypeAlias = Literal["one", "dense", "apart"]
"""The way that elements of a row lie: one for all columns, side by side, or apart."""


def along_row(x: Strided, columns: int) -> AlongRow:
    """Tell how elements of a row of so many columns lie."""
    if x.column == 0:
        return "one"
    return "dense" if x.column == 1 or columns == 1 else "apart"


def array_names(others: int) -> list[str]:
    """A, B, then so many operands and outputs of the ending."""
    return ["a", "b", *[f"x{n}" for n in range(others)]]


def place_names(arrays: Sequence[str], axes: int) -> list[str]:
    """Names of the numbers that say where elements of arrays lie, and what windows of so many spatial axes see."""
    names: list[str] = []
    for name in arrays:
        names += [f"{name}_first", f"{name}_row", f"{name}_column", *[f"{name}_batch{n}" for n in range(AXES)]]
    if axes:
        names += [f"{field}{n}" for field in WindowAxis._fields for n in range(axes)]
        names += ["image_step", "image_rows"]
    return names


def numbers_of(problem: MatrixProduct) -> dict[str, int]:
    """The sizes of a product that is one by itself, and where elements lie."""
    numbers = {"rows": problem.rows, "columns": problem.columns, "steps": problem.steps, "length": problem.length,
               "channels": _channels(problem)}
    lengths = (*(1,) * (AXES - len(problem.batch)), *problem.batch)
    numbers |= {f"batch{n}": length for n, length in enumerate(lengths)}
    for name, x in zip(array_names(len(problem.others)), (problem.a, problem.b, *problem.others), strict=True):
        numbers |= _places(name, x)
    return numbers if problem.windows is None else numbers | _windows(problem, problem.windows)


def _channels(problem: MatrixProduct) -> int:
    """Neighbours in memory that one pixel has."""
    if problem.windows is None:
        return 1
    return problem.windows.axes[-1].pixel if problem.windows.axes[-1].step == 1 else problem.length


def _places(name: str, x: Strided) -> dict[str, int]:
    steps = (*(0,) * (AXES - len(x.batch)), *x.batch)
    return {f"{name}_first": x.offset, f"{name}_row": x.row, f"{name}_column": x.column,
            **{f"{name}_batch{n}": step for n, step in enumerate(steps)}}


def _windows(problem: MatrixProduct, windows: ImageWindows) -> dict[str, int]:
    axes: list[WindowAxis] = list(windows.axes)
    if problem.segments > 1 and not any([axis.tap for axis in axes]):
        tap = problem.b_segment
        for n in reversed(range(len(axes))):
            axes[n] = axes[n]._replace(tap=tap)
            tap *= axes[n].window
    numbers = {f"{name}{n}": value for n, axis in enumerate(axes) for name, value in axis._asdict().items()}
    return numbers | {"image_step": windows.image_step, "image_rows": windows.image_rows}
