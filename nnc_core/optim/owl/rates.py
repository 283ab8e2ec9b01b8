"""The base of learning rates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from nnc_core.optim.owl.position import Position, State, Tensors
from nnc_core.values.cell import Cell
from nnc_core.values.tensor import Tensor


class LearningRate:
    """A learning rate: the length of the step along a direction."""

    slots: ClassVar[tuple[str, ...]] = ()
    """The names of its state."""
    needs_loss: ClassVar[bool] = False
    """True if it evaluates the function."""

    def state(self, parameters: Mapping[str, Cell]) -> State:
        """The first values of the state that is kept from update to update."""
        return {}

    def moves(self, at: Position, direction: Tensors) -> dict[str, Tensor]:
        """The changes of the weights; the next state goes into at.state."""
        raise NotImplementedError(f"{type(self).__name__} has no moves")
