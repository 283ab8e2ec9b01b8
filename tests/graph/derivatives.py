"""An operator on float64 inputs with its derivatives as nodes, and finite differences to hold them to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nnc_core.base import dtype as dt
from nnc_core.graph import forward, reverse
from nnc_core.operator import OPERATORS
from nnc_core.symbol import Node, postorder
from nnc_core.type import TensorSpec
from nnc_plugins.conformance.cases import CASES, Case
from tests.graph.evaluate import evaluate
from tests.graph.stack import OPTIMISER, new_namespace

Array = np.ndarray[Any, Any]
STEP = 1e-6


def smooth_cases(name: str) -> list[Case]:
    """Those where finite differences in float64 mean something."""
    found = [c for c in CASES[name] if c.smooth and dt.float64 in c.dtypes]
    return [c for c in found if Derivatives(name, c).is_real()]


class Derivatives:
    """y = op(x...); `w` is a cotangent of y, `v` tangents of the float inputs."""

    def __init__(self, name: str, case: Case, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        op = OPERATORS[name]
        given = [np.asarray(a) for a in case.inputs(rng, dt.float64)]
        self.F = new_namespace()
        xs = [self._input(f"x{i}", a) for i, a in enumerate(given)]
        self.at = dict(zip(xs, given, strict=True))
        self.wrt = [x for x in xs if dt.is_float(x.dtype)]
        raw = self.F._apply(op, tuple(xs), case.attribute_values(op, dt.float64))
        (self.y,) = _expanded([raw])
        self.w = self._given("w", rng, self.y)
        self.v = [self._given(f"v{i}", rng, x) for i, x in enumerate(self.wrt)]

    def _input(self, name: str, array: Array) -> Node:
        return self.F.placeholder(name, TensorSpec(array.shape, array.dtype))

    def _given(self, name: str, rng: np.random.Generator, like: Node) -> Node:
        values = rng.uniform(0.5, 1.5, like.spec.static_shape) * rng.choice([-1, 1], like.spec.static_shape)
        node = self._input(name, np.asarray(values))
        self.at[node] = np.asarray(values)
        return node

    def is_real(self) -> bool:
        """False for a cast to fewer bits, and for the mean of nothing."""
        return self.y.dtype == dt.float64 and bool(np.isfinite(self.values([self.y])[0]).all())

    def reverse(self) -> list[Node]:
        """The cotangents of `wrt`."""
        found = reverse(self.F, postorder([self.y]), {id(self.y): self.w}, self.wrt)
        return _expanded([self.F.zeros_like(x) if g is None else g for g, x in zip(found, self.wrt, strict=True)])

    def forward(self, outputs: Sequence[Node]) -> list[Node]:
        """Tangents of some nodes along v."""
        tangents = {id(x): v for x, v in zip(self.wrt, self.v, strict=True)}
        found = forward(self.F, postorder(outputs), tangents, outputs)
        return _expanded([self.F.zeros_like(o) if t is None else t for t, o in zip(found, outputs, strict=True)])

    def along(self, nodes: Sequence[Node]) -> Node:
        """The sum over the inputs of <node, v>."""
        total = self.F.full(shape=(), value=0, dtype=dt.float64)
        for node, v in zip(nodes, self.v, strict=True):
            total = self.F.add(total, self.F.sum(self.F.multiply(node, v), axis=tuple(range(v.ndim))))
        return total

    def values(self, nodes: Sequence[Node]) -> list[Array]:
        return evaluate(nodes, self.at)

    def differences(self, nodes: Sequence[Node]) -> list[Array]:
        """Central differences of some nodes along v."""
        above, below = (evaluate(nodes, self._moved(h)) for h in (STEP, -STEP))
        return [(a - b) / (2 * STEP) for a, b in zip(above, below, strict=True)]

    def _moved(self, h: float) -> dict[Node, Array]:
        return self.at | {x: self.at[x] + h * self.at[v] for x, v in zip(self.wrt, self.v, strict=True)}


def _expanded(nodes: Sequence[Node]) -> list[Node]:
    """Composites without rules of their own are differentiated through their bodies."""
    return OPTIMISER.expand(nodes, lambda n: n.op.differentiable and not (n.op.vjp or n.op.partials))
