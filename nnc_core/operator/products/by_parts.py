"""Products of complex matrices as real ones.

With real parts R and imaginary ones I, a b is one product of rows of twice as many elements, (Ra Ia), and

    (  Rb  Ib )
    ( -Ib  Rb ),

which gives the parts of the result side by side: four multiply-adds for each complex one, as any code has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nnc_core.base.command import Command
from nnc_core.base.dtype import is_complex
from nnc_core.operator.along import part_along


def steps_of(command: Command) -> int:
    """The elements of a row that a product of matrices multiplies by a column."""
    return command.inputs[0].shape[-2 if command.attributes[0] else -1]


def complex_work(command: Command) -> int:
    """The multiply-adds of a product of matrices, counted as complex ones."""
    return int(command.output.size) * steps_of(command)


def product_by_parts(F: Any, inputs: Sequence[Any], command: Command) -> Any:
    """A product of matrices by one of their parts; None of real ones."""
    if not is_complex(command.output.dtype):
        return None
    transpose_a, transpose_b = command.attributes
    a, b = inputs
    rows, columns = len(a.shape) - 2, len(a.shape) - 1
    left = F.concat(F.real(a), F.imag(a), axis=rows if transpose_a else columns)
    right = _beside_turned(F, b, transpose_b)
    both = F.matmul(left, right, transpose_a=transpose_a, transpose_b=transpose_b)
    last, whole = len(both.shape) - 1, both.shape[-1]
    return F.complex_(part_along(F, both, last, 0, whole // 2), part_along(F, both, last, whole // 2, whole))


def _beside_turned(F: Any, b: Any, transposed: bool) -> Any:
    """b and i b, one below the other, with their parts side by side; transposed if b is."""
    real, imaginary = F.real(b), F.imag(b)
    down, across = len(b.shape) - 2, len(b.shape) - 1
    if transposed:
        down, across = across, down
    return F.concat(F.concat(real, imaginary, axis=across), F.concat(F.negative(imaginary), real, axis=across),
                    axis=down)
