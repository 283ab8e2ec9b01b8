"""Gradient methods that look at the curvature: Newton's, by the whole Hessian or by products with it, and L-BFGS.

All see the parameters as one vector, so they have one dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from nnc_core.algodiff.gradients import grad, hessian, jvp
from nnc_core.control.constructs import scan, while_loop
from nnc_core.functions.creation import eye, zeros, zeros_like
from nnc_core.functions.elementwise import abs as abs_
from nnc_core.functions.elementwise import logical_and, logical_or, maximum, minimum, sqrt, where
from nnc_core.functions.joining import concat
from nnc_core.functions.linalg_systems import solve
from nnc_core.functions.reduction import sum as sum_
from nnc_core.optim.owl.gradient import Gradient
from nnc_core.optim.owl.position import Flat, Position, State, zeros_like_all
from nnc_core.optim.settings import COUNT, COUNT_OR_NONE, NON_NEGATIVE, check_all
from nnc_core.values.cell import Cell
from nnc_core.values.tensor import Tensor


@dataclass(frozen=True)
class Newton(Gradient):
    """-(H + damping)⁻¹ g, with the Hessian H of all parameters: n² numbers and n backward passes.

    Where H is singular a positive `damping` helps, and so does a convex function where it is not positive definite.
    """

    damping: float = 0.0
    needs_loss: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_all(self, damping=NON_NEGATIVE)

    def direction(self, at: Position) -> dict[str, Tensor]:
        flat = Flat(at.weights)
        g = flat.vector(at.gradients)
        h = hessian(_of_vector(at, flat))(flat.vector(at.weights))
        if self.damping:
            h = h + eye(flat.size, dtype=h.dtype, device=h.device) * self.damping
        return flat.tensors(-solve(h, g))


@dataclass(frozen=True)
class NewtonCG(Gradient):
    """Newton's direction by conjugate gradients on products with the Hessian, which is never made.

    They end when the residual is below min(1/2, sqrt |g|) * |g|, after `most` products (None: as many as there are
    elements), or where the curvature is not positive; the first direction is then that of steepest descent (Nocedal,
    Wright 2006, algorithm 7.1).
    """

    most: int | None = None
    needs_loss: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_all(self, most=COUNT_OR_NONE)

    def direction(self, at: Position) -> dict[str, Tensor]:
        flat = Flat(at.weights)
        slope, w = grad(_of_vector(at, flat)), flat.vector(at.weights)
        g = flat.vector(at.gradients)
        found = _conjugate_gradients(lambda d: jvp(slope, (w,), (d,))[1], g, self.most or flat.size)
        return flat.tensors(found)


def _of_vector(at: Position, flat: Flat) -> Callable[[Tensor], Tensor]:
    return lambda vector: at.loss(flat.tensors(vector))


def _conjugate_gradients(times: Callable[[Tensor], Tensor], g: Tensor, most: int) -> Tensor:
    """d with times(d) = -g, as far as `NewtonCG` says."""
    first = sum_(g * g)
    length = sqrt(first)
    enough = (minimum(sqrt(length), 0.5) * length) ** 2

    def goes_on(k: Tensor, done: Tensor, z: Tensor, r: Tensor, d: Tensor, rr: Tensor) -> Tensor:
        return logical_and(k < most, done == 0)

    def step(k: Tensor, done: Tensor, z: Tensor, r: Tensor, d: Tensor, rr: Tensor) -> tuple[Tensor, ...]:
        product = times(d)
        curvature = sum_(d * product)
        convex = curvature > 0
        alpha = rr / where(convex, curvature, 1.0)
        moved = where(convex, z + alpha * d, where(k == 0, d, z))
        rest = r + alpha * product
        squares = sum_(rest * rest)
        ends = logical_or(curvature <= 0, squares < enough)
        onwards = d * (squares / where(rr > 0, rr, 1.0)) - rest
        return k + 1, ends.astype("int64"), moved, rest, onwards, squares

    k = zeros((), dtype="int64", device=g.device)
    at_rest = (first == 0).astype("int64")
    found: Tensor = while_loop(goes_on, step, (k, at_rest, zeros_like(g), g, -g, first))[2]
    return found


@dataclass(frozen=True)
class LBFGS(Gradient):
    """Newton's direction by what the last `memory` updates showed of the Hessian (Liu, Nocedal 1989).

    For learning_rate.LineSearch(), and for full batches.  An update along which the gradient did not grow is not
    remembered.  The first direction is -g, shortened to a sum of absolute values of at most 1.
    """

    slots: ClassVar[tuple[str, ...]] = ("gradient", "weights", "history")
    memory: int = 10

    def __post_init__(self) -> None:
        check_all(self, memory=COUNT)

    def state(self, parameters: Mapping[str, Cell]) -> State:
        flat, device = Flat(parameters), next(iter(parameters.values())).device
        empty = {name: zeros((self.memory, flat.size), dtype=flat.dtype, device=device)
                 for name in ("steps", "changes")}
        return {"gradient": zeros_like_all(parameters), "weights": zeros_like_all(parameters), "history": empty}

    def direction(self, at: Position) -> dict[str, Tensor]:
        flat, state = Flat(at.weights), at.state
        w, g = flat.vector(at.weights), flat.vector(at.gradients)
        steps, changes = self._remembered(at, w - flat.vector(state["weights"]), g - flat.vector(state["gradient"]))
        state["history"] = {"steps": steps, "changes": changes}
        state["weights"], state["gradient"] = dict(at.weights), dict(at.gradients)
        first = g / maximum(sum_(abs_(g)), 1.0)
        return flat.tensors(-where(at.step > 0, _two_loops(g, steps, changes), first))

    def _remembered(self, at: Position, step: Tensor, change: Tensor) -> tuple[Tensor, Tensor]:
        """The history with this update at its end, if it counts."""
        grown = sum_(step * change) > 1e-10 * sum_(change * change)
        counts = logical_and(at.step > 0, grown)
        return tuple([where(counts, concat([kept[1:], new.reshape((1, new.shape[0]))]), kept)  # type: ignore[return-value]
                      for kept, new in zip(at.state["history"].values(), (step, change), strict=True)])


def _two_loops(g: Tensor, steps: Tensor, changes: Tensor) -> Tensor:
    """The product of g and the inverse Hessian; rows of zeros, which are not in use yet, change nothing."""
    products = sum_(steps * changes, axis=1)
    used = products > 0
    rho = where(used, 1.0 / where(used, products, 1.0), 0.0)

    def backwards(q: Tensor, row: Any) -> tuple[Tensor, Tensor]:
        step, change, weight = row
        alpha = weight * sum_(step * q)
        return q - change * alpha, alpha

    def forwards(r: Tensor, row: Any) -> tuple[Tensor, None]:
        step, change, weight, alpha = row
        return r + step * (alpha - weight * sum_(change * r)), None

    q, alphas = scan(backwards, g, (steps, changes, rho), reverse=True)
    squares = sum_(changes[-1] * changes[-1])
    scale = where(squares > 0, products[-1] / where(squares > 0, squares, 1.0), 1.0)
    found: Tensor = scan(forwards, q * scale, (steps, changes, rho, alphas))[0]
    return found
