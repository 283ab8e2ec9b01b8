"""What learning rates have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from nnc_core.optim.owl.position import Position, State, Tensors
from nnc_core.values.cell import Cell
from nnc_core.values.tensor import Tensor


class LearningRate:
    """How far to go along a direction."""

    slots: ClassVar[tuple[str, ...]] = ()
    """What of its state is called."""
    needs_loss: ClassVar[bool] = False
    """Whether it evaluates the function."""

    def state(self, parameters: Mapping[str, Cell]) -> State:
        """What it keeps from update to update, as it is first."""
        return {}

    def moves(self, at: Position, direction: Tensors) -> dict[str, Tensor]:
        """What is to be added to the weights; the next state goes into at.state."""
        raise NotImplementedError(f"{type(self).__name__} has no moves")
