"""An operator on float64 or complex128 inputs with its derivatives as nodes, and finite differences to hold them to.

The gradient of complex numbers is a conjugate, so that a change of the result is the real part of conj(gradient) times
the change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from nnc_core.base import dtype as dt
from nnc_core.graph import forward, reverse
from nnc_core.operator import OPERATORS, Nodes
from nnc_core.symbol import Node, postorder
from nnc_core.type import TensorSpec, TupleSpec
from nnc_plugins.conformance.cases import CASES, Case
from tests.graph.evaluate import evaluate
from tests.graph.stack import OPTIMISER, new_namespace

Array = np.ndarray[Any, Any]
STEP = 1e-6
DOUBLE = (dt.float64, dt.complex128)


def smooth_cases(name: str) -> list[Case]:
    """Those where finite differences in double precision mean something."""
    found = [replace(c, dtypes=(d,)) for c in CASES[name] if c.smooth for d in DOUBLE if d in c.dtypes]
    return [c for c in found if Derivatives(name, c).is_real()]


class Derivatives:
    """y = op(x...); `w` is a cotangent of y, `v` tangents of the float inputs."""

    def __init__(self, name: str, case: Case, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        op, dtype = OPERATORS[name], dt.float64 if dt.float64 in case.dtypes else dt.complex128
        given = [np.asarray(a) for a in case.inputs(rng, dtype)]
        self.F = new_namespace()
        xs = [self._input(f"x{i}", a) for i, a in enumerate(given)]
        self.at = dict(zip(xs, given, strict=True))
        self.wrt = [x for x in xs if dt.is_inexact(x.dtype)]
        raw = self.F.apply(op, tuple(xs), case.attribute_values(op, dtype))
        (self.y,) = _expanded([_joined(self.F, raw)])
        self.w = self._given("w", rng, self.y)
        self.v = [self._given(f"v{i}", rng, x) for i, x in enumerate(self.wrt)]

    def _input(self, name: str, array: Array) -> Node:
        return self.F.placeholder(name, TensorSpec(array.shape, array.dtype))

    def _given(self, name: str, rng: np.random.Generator, like: Node) -> Node:
        shape = like.spec.static_shape
        values = np.asarray(rng.uniform(0.5, 1.5, shape) * rng.choice([-1, 1], shape))
        if dt.is_complex(like.dtype):
            values = values + np.asarray(rng.uniform(0.5, 1.5, shape)) * 1j
        node = self._input(name, values)
        self.at[node] = values
        return node

    def is_real(self) -> bool:
        """False for a cast to fewer bits, and for the mean of nothing."""
        return self.y.dtype in DOUBLE and bool(np.isfinite(self.values([self.y])[0]).all())

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
            total = self.F.add(total, self.paired(node, v))
        return total

    def paired(self, gradient: Node, change: Node) -> Node:
        """How much a number changes, to first order."""
        product = self.F.multiply(self.F.conjugate(gradient), change)
        total = self.F.sum(product, axis=tuple(range(product.ndim)))
        return self.F.real(total) if dt.is_complex(total.dtype) else total

    def values(self, nodes: Sequence[Node]) -> list[Array]:
        return evaluate(nodes, self.at)

    def differences(self, nodes: Sequence[Node]) -> list[Array]:
        """Central differences of some nodes along v."""
        above, below = (evaluate(nodes, self._moved(h)) for h in (STEP, -STEP))
        return [(a - b) / (2 * STEP) for a, b in zip(above, below, strict=True)]

    def _moved(self, h: float) -> dict[Node, Array]:
        return self.at | {x: self.at[x] + h * self.at[v] for x, v in zip(self.wrt, self.v, strict=True)}


def _joined(F: Nodes, y: Node) -> Node:
    """The floats among several results, of complex numbers both parts, one after the other."""
    if not isinstance(y.spec, TupleSpec):
        return y
    picked = [part for part in F.picks(y) if dt.is_inexact(part.dtype)]
    parts = [p for part in picked for p in ([F.real(part), F.imag(part)] if dt.is_complex(part.dtype) else [part])]
    return F.concat(*[F.reshape(part, shape=(prod(part.spec.static_shape),)) for part in parts], axis=0)


def _expanded(nodes: Sequence[Node]) -> list[Node]:
    """Composites without rules of their own are differentiated through their bodies."""
    return OPTIMISER.expand(nodes, lambda n: n.op.differentiable and not (n.op.vjp or n.op.partials))
