"""Gradients of a function of arrays, of both modes and both orders, held to finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import nnc_core as nnc

STEP = 1e-6


def check(f: Callable[..., Any], *arrays: Any, wrt: Sequence[int] | None = None, second: bool = True,
          rtol: float = 2e-5, atol: float = 2e-6) -> None:
    """f takes tensors; the sum of its result times fixed numbers is differentiated in float64."""
    chosen = tuple(range(len(arrays))) if wrt is None else tuple(wrt)
    xs = [nnc.asarray(np.asarray(a, np.float64)) if i in chosen else nnc.asarray(a) for i, a in enumerate(arrays)]
    rng = np.random.default_rng(5)
    weights = nnc.asarray(rng.uniform(0.5, 1.5, f(*xs).shape))
    directions = {i: rng.standard_normal(xs[i].shape) for i in chosen}

    def total(*given: Any) -> Any:
        return nnc.sum(nnc.sin(f(*given)) * weights)

    def gradients(*given: Any) -> list[Any]:
        return list(nnc.grad(total, chosen)(*given))

    def along(given: Sequence[Any]) -> Any:
        parts = [nnc.sum(g * nnc.asarray(directions[i])) for g, i in zip(gradients(*given), chosen, strict=True)]
        return sum(parts[1:], parts[0])

    def moved(h: float) -> list[Any]:
        return [x + nnc.asarray(h * directions[i]) if i in directions else x for i, x in enumerate(xs)]

    slope = (total(*moved(STEP)).item() - total(*moved(-STEP)).item()) / (2 * STEP)
    np.testing.assert_allclose(along(xs).item(), slope, rtol=rtol, atol=atol)
    tangents = [nnc.asarray(directions[i]) for i in chosen]
    fixed = dict(enumerate(xs))

    def of_chosen(*given: Any) -> Any:
        return total(*[given[chosen.index(i)] if i in chosen else fixed[i] for i in range(len(xs))])

    _, forward = nnc.jvp(of_chosen, [xs[i] for i in chosen], tangents)
    np.testing.assert_allclose(forward.item(), slope, rtol=rtol, atol=atol)
    if second:
        curvature = (along(moved(STEP)).item() - along(moved(-STEP)).item()) / (2 * STEP)
        again = nnc.grad(lambda *given: along(given), chosen)(*xs)
        found = sum(float((g.numpy() * directions[i]).sum()) for g, i in zip(again, chosen, strict=True))
        np.testing.assert_allclose(found, curvature, rtol=rtol * 5, atol=atol * 5)
