"""One update of a parameter, as a minimiser's rule is given it, and of the group that it belongs to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

import ml_dtypes

from nnc_core.base.dtype import DType
from nnc_core.base.errors import ShapeError
from nnc_core.functions.elementwise import maximum
from nnc_core.optim.minimisers.groups import Group
from nnc_core.values.tensor import Tensor

Rate: TypeAlias = float | Tensor


class Stepping(Protocol):
    """A minimiser, as far as an update asks it: the settings of all parameters, and how many updates were made."""

    learning_rate: Any

    def live_step(self) -> Tensor: ...


class GroupUpdate:
    """One update of a group: its settings as attributes, its learning rate, and the state that all of it shares."""

    def __init__(self, minimiser: Stepping, group: Group, shared: Mapping[str, Tensor]) -> None:
        self.minimiser, self.group = minimiser, group
        self.shared = dict(shared)
        """State by name; `Minimiser.advance` puts the next values there."""
        self.known: dict[tuple[str, DType], Any] = {}
        """Things that are the same for all parameters of a dtype, by name."""
        self.learning_rate: Rate = self._rate()

    def __getattr__(self, name: str) -> Any:
        options = self.__dict__["group"].options
        return options[name] if name in options else getattr(self.__dict__["minimiser"], name)

    @property
    def step(self) -> Tensor:
        """The number of updates made before, as schedules get it."""
        return self.minimiser.live_step()

    def _rate(self) -> Rate:
        rate = self.group.options.get("learning_rate", self.minimiser.learning_rate)
        if not callable(rate):
            return float(rate)
        rate = rate(self.step)
        if isinstance(rate, Tensor) and rate.shape != ():
            raise ShapeError(f"the schedule gives {rate.spec}, expected one number")
        return rate  # type: ignore[no-any-return]


class ParameterUpdate:
    """One update of one parameter.  Settings are attributes; state is read and, for the next update, set by item."""

    decay: float = 0.0
    """The weight decay of this parameter; it is in `g` already unless the minimiser applies it itself."""

    def __init__(self, group_update: GroupUpdate, name: str, p: Tensor, g: Tensor, held: Mapping[str, Tensor]) -> None:
        self.group_update, self.name, self.p, self.g = group_update, name, p, g
        self.held = dict(held)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["group_update"], name)

    def __getitem__(self, slot: str) -> Tensor:
        return self.held[slot]

    def __setitem__(self, slot: str, value: Tensor) -> None:
        self.held[slot] = value

    @property
    def rate(self) -> Rate:
        """The learning rate, in the dtype of the parameter."""
        return self.fit(self.group_update.learning_rate)

    def fit(self, number: Rate) -> Rate:
        """A number in the dtype of the parameter."""
        return number.astype(self.p.dtype) if isinstance(number, Tensor) else number

    def shared(self, name: str) -> Tensor:
        """State of the whole group, in the dtype in which it is kept."""
        return self.group_update.shared[name]

    def once_for_dtype(self, name: str, make: Callable[[], Any]) -> Any:
        """Something that follows from the group and the parameter's dtype alone: made for the first that asks."""
        known, key = self.group_update.known, (name, self.p.dtype)
        if key not in known:
            known[key] = make()
        return known[key]

    @property
    def floor(self) -> float:
        """`epsilon`, at least the smallest normal number of the parameter's dtype."""
        return representable(self.epsilon, self.p.dtype)

    def fit_floor(self, number: Rate) -> Rate:
        """A number above 0 that stays so in the dtype of the parameter."""
        least = smallest(self.p.dtype)
        if isinstance(number, Tensor):
            return maximum(number, least).astype(self.p.dtype) if number.dtype != self.p.dtype else number
        return max(number, least)


def moved(p: Tensor, direction: Tensor, rate: Rate) -> Tensor:
    """p - direction * rate, in a form of which the engine makes one command."""
    new: Tensor = p + direction * -rate
    return new


def smallest(dtype: DType) -> float:
    return float(ml_dtypes.finfo(dtype).smallest_normal)  # type: ignore[no-untyped-call]


def representable(epsilon: float, dtype: DType) -> float:
    """An epsilon that is not rounded to zero: at least the smallest normal number of the dtype."""
    return max(epsilon, smallest(dtype))
