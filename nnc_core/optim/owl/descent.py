"""Owl's minimiser: a gradient method, a learning rate and a momentum, put together at will."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

from nnc_core.base.errors import NotSupportedError, StateError
from nnc_core.optim.minimisers.minimiser import Common, Loss, Minimiser, Parameters, Schedule, Updates
from nnc_core.optim.owl import newton
from nnc_core.optim.owl.gradient import GD, Gradient
from nnc_core.optim.owl.learning_rate import LearningRate, as_learning_rate
from nnc_core.optim.owl.line_search import LineSearch
from nnc_core.optim.owl.momentum import Momentum
from nnc_core.optim.owl.position import Position, State
from nnc_core.optim.settings import RATE, Check, Settings, instance_of
from nnc_core.values.cell import Cell
from nnc_core.values.tensor import Tensor


class Descent(Minimiser):
    """p + u with u = momentum(learning_rate(direction(g))): `gradient.GD()`, `learning_rate.Const(0.001)` and so on.

    Gradient methods and learning rates that evaluate the function (`needs_loss`: Newton's methods, line searches) are
    for `descend`.  All parameters are one group.
    """

    settings: ClassVar[Settings] = {
        **{name: rule for name, rule in Minimiser.settings.items() if name not in ("weight_decay", "decays")},
        "learning_rate": Check(lambda x: isinstance(x, LearningRate) or RATE.holds(x),
                               "a number of at least 0, a schedule or one of optim.owl.learning_rate"),
        "gradient": instance_of(Gradient, what="a method of optim.owl.gradient or optim.owl.newton"),
        "momentum": instance_of(Momentum, type(None), what="one of optim.owl.momentum, or None"),
    }

    gradient: Gradient
    momentum: Momentum | None

    def __init__(self, parameters: Parameters, learning_rate: float | Schedule | LearningRate = 0.001,
                 gradient: Gradient | None = None, momentum: Momentum | None = None,
                 **common: Unpack[Common]) -> None:
        rate: Any = learning_rate
        super().__init__(parameters, rate, gradient=GD() if gradient is None else gradient, momentum=momentum, **common)
        if len(self.groups) > 1 or self.groups[0].options:
            raise NotSupportedError("a descent counts all parameters together and has no groups", operator="Descent",
                                    hint="a minimiser for each group, or one of those with a rule, such as optim.SGD")
        for part in self._parts():
            for slot, tensors in part.state(self.parameters).items():
                self.slots[slot] = {name: Cell(x, f"{slot}.{name}") for name, x in tensors.items()}

    @property
    def needs_loss(self) -> bool:
        """True if it evaluates the function, so that gradients alone are not enough."""
        return any(getattr(part, "needs_loss", False) for part in self._parts())

    def _parts(self) -> list[Any]:
        parts = [self.gradient, as_learning_rate(self.learning_rate), self.momentum]
        return [part for part in parts if part is not None]

    def changes(self, gradients: Mapping[str, Tensor]) -> Updates:
        return self.changes_by(gradients, None)

    def changes_by(self, gradients: Mapping[str, Tensor], loss: Loss | None) -> Updates:
        if len(self.active()) < len(self.parameters):
            raise NotSupportedError("a descent counts all parameters together, and some are frozen",
                                    operator="Descent", hint="make a new one with module.named_parameters()")
        weights = {name: p.read() for name, p in self.parameters.items()}
        at = Position(weights, gradients, loss, self._held(), self.live_step())
        moves = as_learning_rate(self.learning_rate).moves(at, self.gradient.direction(at))
        if self.momentum is not None:
            moves = self.momentum.moves(at, moves)
        updates = [(self.slots[slot][name], x) for slot, xs in at.state.items() for name, x in xs.items()]
        return updates + [(p, weights[name] + moves[name]) for name, p in self.parameters.items()]

    def _held(self) -> State:
        missing = {slot for part in self._parts() for slot in part.slots} - self.slots.keys()
        if missing:
            raise StateError(f"this Descent was made without {', '.join(sorted(missing))}, which its settings ask for "
                             f"now", hint="make a new one with these settings")
        return {slot: {name: cell.read() for name, cell in cells.items()} for slot, cells in self.slots.items()}


class LBFGS(Descent):
    """A descent by gradient.LBFGS with a line search, for full batches: `minimiser.descend(loss)`."""

    def __init__(self, parameters: Parameters, learning_rate: float | Schedule | LearningRate | None = None,
                 memory: int = 10, **common: Unpack[Common]) -> None:
        super().__init__(parameters, LineSearch() if learning_rate is None else learning_rate,
                         newton.LBFGS(memory), **common)
