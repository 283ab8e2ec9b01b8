"""Runs of windows: elements on the last axis that are neighbours in memory, and are read as one."""

from __future__ import annotations

from nnc_core.operator.products.problem import MatrixProduct


def is_run(problem: MatrixProduct) -> bool:
    """True where elements of a window on the last axis are neighbours, in images, in kernels and in results."""
    windows = problem.windows
    if windows is None or problem.parts:
        return False
    axis, (a, b, out) = windows.axes[-1], (problem.a, problem.b, problem.others[-1])
    if axis.step != 1 or axis.window == 1:
        return False
    if a.row == 0:
        return a.column == 1 and axis.pixel == problem.length and problem.b_segment == problem.length * b.row
    same = [x.batch[-1] == problem.rows * x.row for x in problem.others]
    return a.row == 1 and axis.pixel == problem.rows and all(same) and out.row != 0 and problem.batch[0] == 1


def with_runs(problem: MatrixProduct) -> MatrixProduct:
    """The problem whose windows have one long element on the last axis in place of several."""
    windows = problem.windows
    assert windows is not None
    *others, axis = windows.axes
    count = axis.window
    windows = windows._replace(axes=(*others, axis._replace(window=1)))
    if problem.a.row == 0:
        return problem._replace(segments=problem.segments // count, b_segment=problem.b_segment * count,
                                windows=windows)
    groups, taps = problem.batch
    outputs = tuple([x._replace(batch=(x.batch[0], x.batch[1] * count)) for x in problem.others])
    return problem._replace(batch=(groups, taps // count), rows=problem.rows * count, others=outputs, windows=windows)
