"""Owl's Optimise in NumPy and float64, with derivatives written by hand: the predictions are x @ w + b.

A run has parameters {"bias": b, "weight": w}; losses, regularisations, learning rates, gradient methods and momenta are
told apart by the options that nnc.optim has for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nnc_core.optim.owl import Params, gradient, learning_rate, loss, momentum, newton, regularisation

A = np.ndarray[Any, Any]
Named = dict[str, A]


def loss_and_slope(kind: Any, y: A, p: A) -> tuple[float, A]:
    """A loss and its derivative by the predictions."""
    if isinstance(kind, loss.Hinge):
        margin = 1 - y * p
        return float(np.maximum(margin, 0).sum()), np.where(margin > 0, -y, 0.0)
    if isinstance(kind, loss.L1Norm):
        return float(np.abs(y - p).sum()), np.sign(p - y)
    if isinstance(kind, loss.L2Norm):
        length = np.sqrt(((y - p) ** 2).sum())
        return float(length), (p - y) / length
    if isinstance(kind, loss.Quadratic):
        return float(((y - p) ** 2).sum()), 2 * (p - y)
    if isinstance(kind, loss.CrossEntropy):
        return float(-(y * np.log(p)).sum()), -y / p
    if isinstance(kind, loss.SoftmaxCrossEntropy):
        q = np.exp(p) / np.exp(p).sum(-1, keepdims=True)
        rows = np.arange(len(y))
        return float(-np.log(q[rows, y]).sum()), q - np.eye(p.shape[1])[y]
    cubes = np.abs(p - y) ** 3  # the tests' Custom
    return float(cubes.sum()), 3 * (p - y) * np.abs(p - y)


def penalty(kind: Any, w: A) -> tuple[float, A]:
    """A regularisation of one array and its gradient."""
    length = np.sqrt((w * w).sum())
    square = (float((w * w).sum()), 2 * w) if getattr(kind, "squared", True) else (float(length), w / length)
    if isinstance(kind, regularisation.L1):
        return kind.a * float(np.abs(w).sum()), kind.a * np.sign(w)
    if isinstance(kind, regularisation.L2):
        return kind.a * square[0], kind.a * square[1]
    if isinstance(kind, regularisation.ElasticNet):
        return kind.a * float(np.abs(w).sum()) + kind.b * square[0], kind.a * np.sign(w) + kind.b * square[1]
    return 0.0, np.zeros_like(w)


@dataclass
class Problem:
    """The loss of some rows as a function of the parameters, divided by `share`."""

    params: Params
    x: A
    y: A
    share: float

    def __call__(self, ws: Mapping[str, A]) -> tuple[float, Named]:
        value, slope = loss_and_slope(self.params.loss, self.y, self.x @ ws["weight"] + ws["bias"])
        value, slope = value / self.share, slope / self.share
        found = {"weight": self.x.T @ slope, "bias": slope.sum(0)}
        for name, w in ws.items():
            more, g = penalty(self.params.regularisation, w)
            value, found[name] = value + more, found[name] + g
        return value, {name: found[name] for name in ws}

    def hessian(self, ws: Mapping[str, A]) -> A:
        """By central differences of the gradient, which are exact where the function is quadratic but for |w|, which
        bends nowhere and is left out."""
        kind: Any = self.params.regularisation
        smooth = replace(self, params=replace(self.params, regularisation=replace(kind, a=0.0))) if isinstance(
            kind, (regularisation.L1, regularisation.ElasticNet)) else self
        vector, h = flat(ws), 0.5
        columns = []
        for i in range(vector.size):
            e = np.zeros_like(vector)
            e[i] = h
            up, down = (flat(smooth(unflat(vector + s * e, ws))[1]) for s in (1, -1))
            columns.append((up - down) / (2 * h))
        return np.stack(columns)


def flat(ws: Mapping[str, A]) -> A:
    return np.concatenate([w.ravel() for w in ws.values()])


def unflat(vector: A, ws: Mapping[str, A]) -> Named:
    parts = np.split(vector, np.cumsum([w.size for w in ws.values()])[:-1])
    return {name: part.reshape(w.shape) for part, (name, w) in zip(parts, ws.items(), strict=True)}


class Run:
    """The updates of one configuration, on flat vectors."""

    def __init__(self, params: Params, ws: Mapping[str, A]) -> None:
        self.params, self.like = params, dict(ws)
        self.w = flat(ws)
        self.g = self.d = self.v = self.c = self.m = np.zeros_like(self.w)
        self.i = 0
        self.pairs: list[tuple[A, A]] = []
        self.losses: list[float] = []

    def update(self, problem: Problem) -> None:
        def at(w: A) -> tuple[float, A]:
            value, slope = problem(unflat(w, self.like))
            return value, flat(slope)

        self.i += 1
        value, g = at(self.w)
        self.losses.append(value)
        g = flat(self.clipped(unflat(g, self.like)))
        d = self.direction(g, problem)
        u = self.scaled(d, g, value, at)
        before = self.w
        self.w = self.w + self.moved(u)
        self.g, self.d, self.before = g, d, before

    def clipped(self, g: Named) -> Named:
        kind = type(self.params.clipping).__name__
        limit: Any = self.params.clipping
        if kind == "Norm":
            return {name: x * min(1.0, limit.limit / np.sqrt((x * x).sum())) for name, x in g.items()}
        if kind == "GlobalNorm":
            return {name: x * min(1.0, limit.limit / np.linalg.norm(flat(g))) for name, x in g.items()}
        return {name: np.clip(x, limit.low, limit.high) for name, x in g.items()} if kind == "Value" else g

    def direction(self, g: A, problem: Problem) -> A:
        kind: Any = self.params.gradient
        y = g - self.g
        quotients: dict[type, Callable[[], tuple[float, float]]] = {
            gradient.HestenesStiefel: lambda: (g @ y, self.d @ y),
            gradient.ConjugateDescent: lambda: (g @ g, -self.d @ self.g),
            gradient.FletcherReeves: lambda: (g @ g, self.g @ self.g),
            gradient.DaiYuan: lambda: (g @ g, self.d @ y),
            gradient.PolakRibiere: lambda: (max(g @ y, 0.0) if kind.restart else g @ y, self.g @ self.g),
        }
        if type(kind) in quotients:
            above, below = quotients[type(kind)]()
            return -g + (above / below * self.d if self.i > 1 and below else 0)
        ws = unflat(self.w, self.like)
        if isinstance(kind, newton.Newton):
            return -np.linalg.solve(problem.hessian(ws) + kind.damping * np.eye(g.size), g)
        if isinstance(kind, newton.NewtonCG):
            return truncated(problem.hessian(ws), g, kind.most or g.size)
        if isinstance(kind, newton.LBFGS):
            return self.quasi_newton(g, kind.memory)
        return -g

    def quasi_newton(self, g: A, memory: int) -> A:
        if self.i == 1:
            return -g / max(1.0, np.abs(g).sum())
        s, y = self.w - self.before, g - self.g
        if s @ y > 1e-10 * (y @ y):
            self.pairs = [*self.pairs, (s, y)][-memory:]
        q, alphas = g, []
        for s, y in reversed(self.pairs):
            alphas.append((s @ q) / (s @ y))
            q = q - alphas[-1] * y
        if self.pairs:
            s, y = self.pairs[-1]
            q = q * (s @ y) / (y @ y)
        for (s, y), alpha in zip(self.pairs, reversed(alphas), strict=True):
            q = q + s * (alpha - (y @ q) / (s @ y))
        return -q

    def scaled(self, d: A, g: A, value: float, at: Callable[[A], tuple[float, A]]) -> A:
        kind: Any = self.params.learning_rate
        i = self.i
        if isinstance(kind, (int, float)):
            return d * kind
        if isinstance(kind, learning_rate.Const):
            return d * kind.a
        if isinstance(kind, learning_rate.Decay):
            return d * kind.a / (1 + kind.k * i)
        if isinstance(kind, learning_rate.ExpDecay):
            return d * kind.a * np.exp(-kind.k * i)
        if isinstance(kind, learning_rate.Schedule):
            rates: Any = kind.rates
            return d * rates.rates[(i - 1) % len(rates.rates)]
        if isinstance(kind, learning_rate.Adagrad):
            self.c = self.c + g * g
            return d * kind.a / np.sqrt(self.c + 1e-32)
        if isinstance(kind, learning_rate.RMSprop):
            self.c = kind.k * self.c + (1 - kind.k) * g * g
            return d * kind.a / np.sqrt(self.c + 1e-32)
        if isinstance(kind, learning_rate.Adam):
            self.m = kind.b1 * self.m + (1 - kind.b1) * d
            self.c = kind.b2 * self.c + (1 - kind.b2) * g * g
            return kind.a * np.sqrt(1 - kind.b2**i) / (1 - kind.b1**i) * self.m / (np.sqrt(self.c) + 1e-8)
        return d * searched(kind, self.w, d, value, g @ d, at)

    def moved(self, u: A) -> A:
        kind = self.params.momentum
        if kind is None:
            return u
        self.v = kind.m * self.v + u
        return kind.m * self.v + u if isinstance(kind, momentum.Nesterov) else self.v


def searched(kind: Any, w: A, d: A, value: float, slope: float, at: Callable[[A], tuple[float, A]]) -> float:
    low, high, length = 0.0, np.inf, kind.first
    for _ in range(kind.most):
        if not slope < 0:
            break
        there, g = at(w + length * d)
        if not there <= value + kind.decrease * length * slope:
            high = length
        elif g @ d < kind.curvature * slope:
            low = length
        else:
            return float(length)
        length = (low + high) / 2 if high < np.inf else 2 * low
    return low


def truncated(h: A, g: A, most: int) -> A:
    z, r, d = np.zeros_like(g), g, -g
    enough = min(0.5, np.sqrt(np.linalg.norm(g))) * np.linalg.norm(g)
    for k in range(most):
        curvature = d @ h @ d
        if curvature <= 0:
            return d if k == 0 else z
        alpha = r @ r / curvature
        z, rest = z + alpha * d, r + alpha * (h @ d)
        if np.linalg.norm(rest) < enough:
            return z
        r, d = rest, d * (rest @ rest) / (r @ r) - rest
    return z


def reference(params: Params, x: A, y: A, ws: Mapping[str, A], mean: bool) -> tuple[list[float], Named]:
    """The losses and the last parameters of a run; `mean` as for networks."""
    run, count = Run(params, ws), len(x)
    for k in range(int(params.batch.batches(count) * params.epochs)):
        rows = params.batch.rows(k, count)
        xs, ys = (x, y) if rows is None else (x[rows], y[rows])
        run.update(Problem(params, xs, ys, len(xs) if mean else 1.0))
        if params.stopping is not None and run.losses[-1] < getattr(params.stopping, "a", -np.inf):
            break
    return run.losses, unflat(run.w, ws)
