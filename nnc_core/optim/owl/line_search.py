"""Line searches: the length of a step by what the function is along the direction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from nnc_core.algodiff.gradients import value_and_grad
from nnc_core.base.errors import AttributeValueError
from nnc_core.control.constructs import while_loop
from nnc_core.functions.creation import full, zeros
from nnc_core.functions.elementwise import less, logical_and, logical_not, logical_or, where
from nnc_core.optim.owl.position import Position, Tensors, inner
from nnc_core.optim.owl.rates import LearningRate
from nnc_core.optim.settings import COUNT, POSITIVE, SHARE, check_all
from nnc_core.values.tensor import Tensor

_BOUNDLESS = 1e30


@dataclass(frozen=True)
class LineSearch(LearningRate):
    """The first length tried that makes the function fall by `decrease` times what its slope promises, and its slope
    rise to `curvature` times what it was (Wolfe's conditions; with curvature=1 the first alone, Armijo's).

    From `first` the length doubles until it is too long, and is then sought by halving (Lewis, Overton 2013).  After
    `most` evaluations it is the longest one that fulfilled the first condition, which is 0 if none did: where the
    direction leads up, or to no number, the weights stay.
    """

    first: float = 1.0
    decrease: float = 1e-4
    curvature: float = 0.9
    most: int = 25
    needs_loss: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_all(self, first=POSITIVE, decrease=SHARE, curvature=SHARE, most=COUNT)
        if not 0 < self.decrease < self.curvature:
            raise AttributeValueError(f"decrease {self.decrease} should be above 0 and below curvature "
                                      f"{self.curvature}", operator="LineSearch")

    def moves(self, at: Position, direction: Tensors) -> dict[str, Tensor]:
        length = self._length(at, direction)
        return {name: d * length.astype(d.dtype) for name, d in direction.items()}

    def _length(self, at: Position, direction: Tensors) -> Tensor:
        start, slope = at.loss(dict(at.weights)), inner(at.gradients, direction)
        start = start.astype(slope.dtype)

        def goes_on(k: Tensor, done: Tensor, low: Tensor, high: Tensor, length: Tensor) -> Tensor:
            return logical_and(k < self.most, done == 0)

        def step(k: Tensor, done: Tensor, low: Tensor, high: Tensor, length: Tensor) -> tuple[Tensor, ...]:
            value, gradients = value_and_grad(at.loss)(at.moved(direction, length))
            # "not at most" rather than "above", so that what is no number is too long
            too_long = logical_not(value.astype(slope.dtype) <= start + length * (slope * self.decrease))
            too_short = logical_and(logical_not(too_long), less(inner(gradients, direction), slope * self.curvature))
            ends = logical_not(logical_or(too_long, too_short))
            low, high = where(too_long, low, length), where(too_long, length, high)
            trial = where(high < _BOUNDLESS, (low + high) / 2, low * 2)
            return k + 1, ends.astype("int64"), low, high, where(ends, length, trial)

        device = slope.device
        k = zeros((), dtype="int64", device=device)
        uphill = logical_not(slope < 0).astype("int64")
        lengths = [full((), x, dtype=slope.dtype, device=device) for x in (0.0, _BOUNDLESS, self.first)]
        return while_loop(goes_on, step, (k, uphill, *lengths))[2]  # type: ignore[no-any-return]
