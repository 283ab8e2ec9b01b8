"""Counts of operations for declarations: of matrices, sorting and sampling, for which there is no loop nest."""

from __future__ import annotations

from collections.abc import Callable
from math import log2, prod

from nnc_core.base.command import Command
from nnc_core.base.dtype import is_complex

Flops = Callable[[Command], float]


def moving(command: Command) -> float:
    """None: where elements come from is computed, and they are not."""
    return 0


def cubic(factor: float) -> Flops:
    """The factor times n³ for each square matrix of the first input; complex numbers count four times."""
    return lambda command: factor * command.inputs[0].shape[-1] ** 3 * _matrices(command)


def rectangular(factor: float) -> Flops:
    """The factor times m n min(m, n) for each matrix of the first input."""

    def count(command: Command) -> float:
        *_, m, n = command.inputs[0].shape
        return factor * m * n * min(m, n) * _matrices(command)

    return count


def solving(factor: float, each: float) -> Flops:
    """The factor times n³ for each matrix, and `each` times n² for each column of the result."""

    def count(command: Command) -> float:
        n = command.inputs[0].shape[-1]
        columns = prod(command.output.shape) / max(n, 1)
        scale = 4 if is_complex(command.inputs[0].dtype) else 1
        return factor * n**3 * _matrices(command) + each * n**2 * columns * scale

    return count


def _matrices(command: Command) -> float:
    first = command.inputs[0]
    return prod(first.shape[:-2]) * (4 if is_complex(first.dtype) else 1)


def per_input(factor: float) -> Flops:
    """The factor for each element of the inputs."""
    return lambda command: factor * sum(prod(x.shape) for x in command.inputs)


def per_output(factor: float) -> Flops:
    """The factor for each element of the results."""
    return lambda command: factor * sum(prod(x.shape) for x in command.outputs)


def sorting(command: Command) -> float:
    """n log2 n comparisons for n elements: of the first input, or of the result where there is more of it."""
    n = max(prod(command.inputs[0].shape), *(prod(x.shape) for x in command.outputs))
    return n * log2(max(n, 2))


def sorting_along(command: Command) -> float:
    """log2 n comparisons for each element, n the length of the axis that the first attribute names."""
    shape = command.inputs[0].shape
    return prod(shape) * log2(max(shape[command.attributes[0]], 2))


def two_sided(command: Command) -> float:
    """Equations with a square matrix on either side, which are brought to triangular form: 25 n³ each."""
    a, b, _ = command.inputs
    sides = a.shape[-1] ** 3 + b.shape[-1] ** 3
    return 25 * sides * prod(command.output.shape[:-2]) * (4 if is_complex(a.dtype) else 1)


def pairs(factor: float) -> Flops:
    """The factor for each pair of rows of the first input."""
    return lambda command: factor * command.inputs[0].shape[0] ** 2


def products_with(*weights: int) -> Flops:
    """The products of a sequence (length, batch, features) with these inputs, at each step."""

    def count(command: Command) -> float:
        steps, batch, _ = command.inputs[0].shape
        return 2 * steps * batch * sum(prod(command.inputs[place].shape) for place in weights)

    return count
