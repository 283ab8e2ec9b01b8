"""Momentum: what is left of former updates in the next.  The velocity is v = m * v + u, with the update u."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from nnc_core.optim.owl.position import Position, State, Tensors, zeros_like_all
from nnc_core.optim.settings import NON_NEGATIVE, check_all
from nnc_core.values.cell import Cell
from nnc_core.values.tensor import Tensor


@dataclass(frozen=True)
class Momentum:
    """The common part of both kinds."""

    slots: ClassVar[tuple[str, ...]] = ("velocity",)
    m: float = 0.9

    def __post_init__(self) -> None:
        check_all(self, m=NON_NEGATIVE)

    def state(self, parameters: Mapping[str, Cell]) -> State:
        return {"velocity": zeros_like_all(parameters)}

    def moves(self, at: Position, updates: Tensors) -> dict[str, Tensor]:
        """The changes of the weights; the next velocity goes into at.state."""
        velocity = at.state["velocity"]
        at.state["velocity"] = v = {name: velocity[name] * self.m + u for name, u in updates.items()}
        return self.applied(v, updates)

    def applied(self, v: dict[str, Tensor], updates: Tensors) -> dict[str, Tensor]:
        raise NotImplementedError(f"{type(self).__name__} does not say what is applied")


@dataclass(frozen=True)
class Standard(Momentum):
    """The velocity itself (Polyak 1964)."""

    def applied(self, v: dict[str, Tensor], updates: Tensors) -> dict[str, Tensor]:
        return v


@dataclass(frozen=True)
class Nesterov(Momentum):
    """m * v + u (Nesterov 1983).  (Owl keeps this sum in the velocity's place.)"""

    def applied(self, v: dict[str, Tensor], updates: Tensors) -> dict[str, Tensor]:
        return {name: v[name] * self.m + u for name, u in updates.items()}
