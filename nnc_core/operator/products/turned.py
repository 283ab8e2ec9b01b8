"""Products of a matrix that stays the same and a vector: by the transposed matrix, so that neighbouring results are
made of what lies side by side.

Sums of a row lie along memory, which code that adds in order cannot share among lanes.  A constant is transposed when
a graph is compiled, and what a loop reads in all of its rounds before the first one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nnc_core.base.command import Command
from nnc_core.base.tiling import Tiling
from nnc_core.operator.packing import PACK

FEW = 16
"""Rows that are too few for lanes to lie along them."""


def with_turned_matrix(F: Any, inputs: Sequence[Any], command: Command) -> Any:
    """The same sums with the matrix transposed; None where it changes, or would not be read more quickly."""
    (matrix, vector), shape = command.inputs, command.output.shape
    transposed = command.attributes[0]
    if transposed or len(matrix.shape) != 2 or len(vector.shape) != 2 or shape[1] != 1 or shape[0] < FEW:
        return None
    if matrix.shape[1] == 1 or not F.stays(inputs[0]):
        return None
    turned = F.apply(PACK, (inputs[0],), (Tiling((1, 1), (1, 0)),))
    row = F.reshape(inputs[1], shape=(1, matrix.shape[1]))
    return F.reshape(F.matmul(row, turned, transpose_a=False, transpose_b=False), shape=shape)
