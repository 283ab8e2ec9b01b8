"""Gradient methods: which way to go.  Each gives directions by name from a `Position`.

Inner products are over all parameters together.  The first direction is that of steepest descent, and so is every one
whose beta would divide by zero.  Where Owl counts each array alone, and starts from a direction that counts twice,
this is the method as it was published.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from nnc_core.functions.elementwise import logical_and, maximum, where
from nnc_core.optim.owl.position import Position, State, Tensors, inner, zeros_like_all
from nnc_core.optim.settings import FLAG, check_all
from nnc_core.values.cell import Cell
from nnc_core.values.tensor import Tensor


class Gradient:
    """A gradient method."""

    slots: ClassVar[tuple[str, ...]] = ()
    """The names of its state."""
    needs_loss: ClassVar[bool] = False
    """True if it evaluates the function."""

    def state(self, parameters: Mapping[str, Cell]) -> State:
        """The first values of the state that is kept from update to update."""
        return {}

    def direction(self, at: Position) -> dict[str, Tensor]:
        """The direction; the next state goes into at.state."""
        return {name: -g for name, g in at.gradients.items()}


@dataclass(frozen=True)
class GD(Gradient):
    """Steepest descent: -g."""


class ConjugateGradient(Gradient):
    """-g + beta * (the direction before); subclasses give beta as two inner products, of which it is the quotient."""

    slots: ClassVar[tuple[str, ...]] = ("gradient", "direction")

    def state(self, parameters: Mapping[str, Cell]) -> State:
        return {"gradient": zeros_like_all(parameters), "direction": zeros_like_all(parameters)}

    def direction(self, at: Position) -> dict[str, Tensor]:
        g, before, d = at.gradients, at.state["gradient"], at.state["direction"]
        above, below = self.beta(g, before, d)
        usable = logical_and(at.step > 0, below != 0)
        beta = self.accepted(where(usable, above / where(usable, below, 1.0), 0.0))
        new = {name: d[name] * beta.astype(d[name].dtype) - g[name] for name in g}
        at.state["gradient"], at.state["direction"] = dict(g), new
        return new

    def beta(self, g: Tensors, before: Tensors, d: Tensors) -> tuple[Tensor, Tensor]:
        """Numerator and denominator, from the gradient, the one before, and the direction before."""
        raise NotImplementedError(f"{type(self).__name__} has no beta")

    def accepted(self, beta: Tensor) -> Tensor:
        return beta


def _change(g: Tensors, before: Tensors) -> dict[str, Tensor]:
    return {name: x - before[name] for name, x in g.items()}


@dataclass(frozen=True)
class HestenesStiefel(ConjugateGradient):
    """beta = g·y / d·y with the change y of the gradient (Hestenes, Stiefel 1952; Owl's CG)."""

    def beta(self, g: Tensors, before: Tensors, d: Tensors) -> tuple[Tensor, Tensor]:
        y = _change(g, before)
        return inner(g, y), inner(d, y)


@dataclass(frozen=True)
class ConjugateDescent(ConjugateGradient):
    """beta = g·g / -d·(g before) (Fletcher 1987; Owl's CD)."""

    def beta(self, g: Tensors, before: Tensors, d: Tensors) -> tuple[Tensor, Tensor]:
        return inner(g, g), -inner(d, before)


@dataclass(frozen=True)
class FletcherReeves(ConjugateGradient):
    """beta = g·g / (g before)·(g before) (Fletcher, Reeves 1964; Owl's NonlinearCG)."""

    def beta(self, g: Tensors, before: Tensors, d: Tensors) -> tuple[Tensor, Tensor]:
        return inner(g, g), inner(before, before)


@dataclass(frozen=True)
class DaiYuan(ConjugateGradient):
    """beta = g·g / d·y with the change y of the gradient (Dai, Yuan 1999; Owl's DaiYuanCG)."""

    def beta(self, g: Tensors, before: Tensors, d: Tensors) -> tuple[Tensor, Tensor]:
        return inner(g, g), inner(d, _change(g, before))


@dataclass(frozen=True)
class PolakRibiere(ConjugateGradient):
    """beta = g·y / (g before)·(g before) with the change y of the gradient (Polak, Ribière 1969); with `restart` it is
    0 where that is negative, so that the method starts anew by itself."""

    restart: bool = True

    def __post_init__(self) -> None:
        check_all(self, restart=FLAG)

    def beta(self, g: Tensors, before: Tensors, d: Tensors) -> tuple[Tensor, Tensor]:
        return inner(g, _change(g, before)), inner(before, before)

    def accepted(self, beta: Tensor) -> Tensor:
        return maximum(beta, 0.0) if self.restart else beta
