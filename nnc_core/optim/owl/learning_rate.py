"""Owl's learning rates: how far to go along a direction.  A number or a schedule is one as well.

i counts the updates from 1.  Adagrad, RMSprop and Adam look at the gradient and scale each element; Adam takes the
running mean of the direction, which for GD makes it the method as it was published.  (Owl divides by the gradient
instead, which is no number where that is 0.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from nnc_core.base.errors import ShapeError
from nnc_core.functions.creation import zeros
from nnc_core.functions.elementwise import exp, sqrt
from nnc_core.optim.minimisers.adaptive import towards
from nnc_core.optim.minimisers.parameter_update import representable, smallest
from nnc_core.optim.owl.line_search import LineSearch
from nnc_core.optim.owl.position import Position, State, Tensors, zeros_like_all
from nnc_core.optim.owl.rates import LearningRate
from nnc_core.optim.schedules import Listed
from nnc_core.optim.settings import FRACTION, NON_NEGATIVE, RATE, check, check_all
from nnc_core.type import plain
from nnc_core.values.cell import Cell
from nnc_core.values.tensor import Tensor

__all__ = ["Adagrad", "Adam", "Const", "Decay", "ExpDecay", "LearningRate", "LineSearch", "RMSprop", "Schedule",
           "as_learning_rate"]


class _ByStep(LearningRate):
    """One number for all elements, by the number of the update."""

    def number(self, i: Tensor) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no number")

    def moves(self, at: Position, direction: Tensors) -> dict[str, Tensor]:
        rate = self.number(at.step + 1)
        return {name: d * (rate.astype(d.dtype) if isinstance(rate, Tensor) else rate)
                for name, d in direction.items()}


@dataclass(frozen=True)
class Const(_ByStep):
    """a"""

    a: float = 0.001

    def __post_init__(self) -> None:
        check_all(self, a=NON_NEGATIVE)

    def number(self, i: Tensor) -> float:
        return self.a


@dataclass(frozen=True)
class Decay(_ByStep):
    """a / (1 + k * i)"""

    a: float = 0.1
    k: float = 0.1

    def __post_init__(self) -> None:
        check_all(self, a=NON_NEGATIVE, k=NON_NEGATIVE)

    def number(self, i: Tensor) -> Any:
        return self.a / (1 + self.k * i)


@dataclass(frozen=True)
class ExpDecay(_ByStep):
    """a * exp(-k * i)"""

    a: float = 1.0
    k: float = 0.1

    def __post_init__(self) -> None:
        check_all(self, a=NON_NEGATIVE, k=NON_NEGATIVE)

    def number(self, i: Tensor) -> Any:
        return self.a * exp(i * -self.k)


@dataclass(frozen=True)
class Schedule(_ByStep):
    """The rates of a list in turn, over and over, or what a function of the number of updates before gives."""

    rates: Sequence[float] | Callable[[Tensor], Any] = (0.001,)

    def __post_init__(self) -> None:
        if not callable(self.rates):
            object.__setattr__(self, "rates", Listed(self.rates))

    def number(self, i: Tensor) -> Any:
        rate = self.rates(i - 1)  # type: ignore[operator]
        if isinstance(rate, Tensor) and rate.shape != ():
            raise ShapeError(f"the schedule gives {rate.spec}, expected one number")
        return rate


@dataclass(frozen=True)
class Adagrad(LearningRate):
    """a / sqrt(sum of all g² + 1e-32)"""

    slots: ClassVar[tuple[str, ...]] = ("squares",)
    a: float = 0.01

    def __post_init__(self) -> None:
        check_all(self, a=NON_NEGATIVE)

    def state(self, parameters: Mapping[str, Cell]) -> State:
        return {"squares": zeros_like_all(parameters)}

    def moves(self, at: Position, direction: Tensors) -> dict[str, Tensor]:
        squares = at.state["squares"]
        at.state["squares"] = now = {name: squares[name] + g * g for name, g in at.gradients.items()}
        return {name: d * self.a / _root(now[name]) for name, d in direction.items()}


@dataclass(frozen=True)
class RMSprop(LearningRate):
    """a / sqrt(running mean of g² + 1e-32)"""

    slots: ClassVar[tuple[str, ...]] = ("squares",)
    a: float = 0.001
    k: float = 0.9

    def __post_init__(self) -> None:
        check_all(self, a=NON_NEGATIVE, k=FRACTION)

    def state(self, parameters: Mapping[str, Cell]) -> State:
        return {"squares": zeros_like_all(parameters)}

    def moves(self, at: Position, direction: Tensors) -> dict[str, Tensor]:
        squares = at.state["squares"]
        at.state["squares"] = now = {name: towards(squares[name], g * g, self.k) for name, g in at.gradients.items()}
        return {name: d * self.a / _root(now[name]) for name, d in direction.items()}


@dataclass(frozen=True)
class Adam(LearningRate):
    """a * sqrt(1 - b2**i) / (1 - b1**i) / (sqrt(running mean of g²) + 1e-8), of the running mean of the direction"""

    slots: ClassVar[tuple[str, ...]] = ("mean", "squares", "correction")
    a: float = 0.001
    b1: float = 0.9
    b2: float = 0.999

    def __post_init__(self) -> None:
        check_all(self, a=NON_NEGATIVE, b1=FRACTION, b2=FRACTION)

    def state(self, parameters: Mapping[str, Cell]) -> State:
        device = next(iter(parameters.values())).device
        wide = "float64" if any(p.spec.dtype.itemsize == 8 for p in parameters.values()) else "float32"
        none = {name: zeros((), dtype=wide, device=device) for name in ("first", "second")}
        return {"mean": zeros_like_all(parameters), "squares": zeros_like_all(parameters), "correction": none}

    def moves(self, at: Position, direction: Tensors) -> dict[str, Tensor]:
        state, g = at.state, at.gradients
        state["mean"] = m = {name: towards(state["mean"][name], d, self.b1) for name, d in direction.items()}
        state["squares"] = v = {name: towards(state["squares"][name], g[name] * g[name], self.b2) for name in g}
        # running means of 1: 1 - b**i without the digits that the power loses in float32
        first = towards(state["correction"]["first"], 1.0, self.b1)
        second = towards(state["correction"]["second"], 1.0, self.b2)
        state["correction"] = {"first": first, "second": second}
        rate = self.a * sqrt(second) / first
        return {name: x * rate.astype(x.dtype) / (sqrt(v[name]) + representable(1e-8, x.dtype))
                for name, x in m.items()}


def _root(squares: Tensor) -> Tensor:
    return sqrt(squares + max(1e-32, smallest(squares.dtype)))


def as_learning_rate(rate: Any) -> LearningRate:
    """A learning rate, also of a number or a schedule."""
    if isinstance(rate, LearningRate):
        return rate
    rate = plain(rate)
    check("Descent", "learning_rate", rate, RATE)
    return Schedule(rate) if callable(rate) else Const(rate)
