"""Refusal of problems whose arrays the code of products cannot go along."""

from __future__ import annotations

from nnc_core.base.errors import NotSupportedError
from nnc_core.operator.products.problem import MatrixProduct
from nnc_cpu.products.kind import AXES


def checked(problem: MatrixProduct) -> MatrixProduct:
    """The problem, if its code can go along all arrays."""
    if len(problem.batch) > AXES:
        raise NotSupportedError(f"more than {AXES} axes of batches that lie apart")
    a, b, columns = problem.a, problem.b, problem.columns
    if problem.windows is not None and (a.row or a.column) != 1:
        raise NotSupportedError("channels of images are not contiguous")
    if problem.left == "columns" and a.row != 1 and problem.rows > 1:
        raise NotSupportedError("neither the rows nor the columns of the first matrix are contiguous")
    if columns > 1 and b.column != 1 and b.row != 1 and problem.steps > 1:
        raise NotSupportedError("neither the rows nor the columns of the second matrix are contiguous")
    operands = problem.ending.operands
    for n, x in enumerate(problem.others):
        if columns > 1 and x.column != (operands[n].along if n < len(operands) else 1):
            raise NotSupportedError("rows of the result, or of what is joined to it, are not contiguous")
    return problem
