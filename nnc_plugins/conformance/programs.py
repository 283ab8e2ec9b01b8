"""Random graphs of a few dozen nodes: chains, sharing, views, reductions, products, several outputs.

Magnitudes stay small, so that most values are finite; what is compared is compared bit for bit anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from nnc_core.base.dtype import boolean, float32, int32, is_float
from nnc_core.base.errors import Error
from nnc_core.graph import SymbolicGraph
from nnc_core.operator import Nodes
from nnc_core.stacks import Stack
from nnc_core.symbol import Literal, Node
from nnc_core.type import TensorSpec
from nnc_plugins.conformance.case import Array, draw

MOST = 256  # elements
SHAPES = ((), (3,), (4, 4), (2, 3), (3, 4), (2, 1, 4), (0, 3), (16,))
UNARY = ("negative", "abs", "tanh", "sigmoid", "relu", "sin", "sign", "stop_gradient", "identity", "copy")
BINARY = ("add", "add", "subtract", "multiply", "maximum", "minimum")


class RandomProgram(NamedTuple):
    graph: SymbolicGraph
    given: dict[str, Array]


class _Growth:
    """A pool of nodes, to which steps add."""

    def __init__(self, F: Nodes, rng: np.random.Generator) -> None:
        self.F, self.rng = F, rng
        self.pool: list[Node] = []

    def any(self) -> Node:
        """Mostly a recent one."""
        recent = self.pool[-4:] if self.rng.random() < 0.7 else self.pool
        return recent[self.rng.integers(len(recent))]

    def numeric(self) -> Node:
        found = [x for x in self.pool if x.dtype != boolean]
        return found[self.rng.integers(len(found))]

    def floating(self) -> Node:
        found = [x for x in self.pool if is_float(x.dtype)]
        return found[self.rng.integers(len(found))]

    def one_of(self, names: tuple[str, ...]) -> str:
        return names[self.rng.integers(len(names))]

    def axes(self, x: Node) -> tuple[int, ...]:
        return tuple(i for i in range(x.ndim) if self.rng.random() < 0.5)


def _unary(g: _Growth) -> Node:
    name = g.one_of(UNARY)
    x = g.floating() if name in ("tanh", "sigmoid", "sin") else g.numeric()
    node: Node = getattr(g.F, name)(x)
    return node


def _binary(g: _Growth) -> Node:
    a, b = (g.floating(), g.floating()) if g.rng.random() < 0.7 else (g.numeric(), g.numeric())
    node: Node = getattr(g.F, g.one_of(BINARY))(a, b)
    return node


def _with_number(g: _Growth) -> Node:
    x = g.floating()
    return g.F.multiply(x, float(g.rng.uniform(-1, 1))) if g.rng.random() < 0.5 else g.F.add(x, 0.5)


def _choice(g: _Growth) -> Node:
    x, y = g.floating(), g.floating()
    return g.F.where(g.F.greater(x, 0), x, y)


def _cast(g: _Growth) -> Node:
    return g.F.cast(g.F.tanh(g.floating()), dtype=int32) if g.rng.random() < 0.3 else g.F.cast(g.any(), dtype=float32)


def _reduce(g: _Growth) -> Node:
    x = g.floating()
    method = getattr(g.F, g.one_of(("sum", "mean", "max", "min")))
    node: Node = method(x, axis=g.axes(x), keepdims=bool(g.rng.integers(2)))
    return node


def _permute(g: _Growth) -> Node:
    x = g.any()
    return g.F.permute(x, axes=tuple(int(i) for i in g.rng.permutation(x.ndim)))


def _reshape(g: _Growth) -> Node:
    x = g.any()
    n = x.spec.layout().size
    halves = [(n // 2, 2), (2, n // 2)] if n % 2 == 0 else [(1, n)]
    options = [(n,), (n, 1), *halves]
    return g.F.reshape(x, shape=options[g.rng.integers(len(options))])


def _slice(g: _Growth) -> Node:
    x = g.any()
    ends = [sorted(int(k) for k in g.rng.integers(0, n + 1, 2)) for n in x.spec.static_shape]
    return g.F.slice(x, start=tuple(a for a, _ in ends), stop=tuple(b for _, b in ends),
                     step=tuple(int(k) for k in g.rng.integers(1, 3, x.ndim)))


def _pad(g: _Growth) -> Node:
    x = g.numeric()
    low, high = (tuple(int(k) for k in g.rng.integers(0, 2, x.ndim)) for _ in range(2))
    return g.F.pad(x, low=low, high=high, interior=(0,) * x.ndim)


def _flip(g: _Growth) -> Node:
    x = g.any()
    return g.F.flip(x, axes=g.axes(x))


def _broadcast(g: _Growth) -> Node:
    x = g.any()
    return g.F.broadcast_to(x, shape=(2, *x.shape))


def _concat(g: _Growth) -> Node:
    x = g.any()
    alike = [y for y in g.pool if y.spec == x.spec]
    return g.F.concat(x, alike[g.rng.integers(len(alike))], axis=int(g.rng.integers(max(x.ndim, 1))))


def _matmul(g: _Growth) -> Node:
    x = g.floating()
    return g.F.multiply(g.F.matmul(x, x, transpose_b=True), 0.125)


def _update(g: _Growth) -> Node:
    x = g.numeric()
    start = tuple(int(g.rng.integers(0, n + 1)) for n in x.spec.static_shape)
    part = g.F.slice(x, start=start, stop=x.shape, step=(1,) * x.ndim)
    return g.F.update_slice(x, g.F.negative(part), start=start, step=(1,) * x.ndim)


def _softmax(g: _Growth) -> Node | None:
    x = g.floating()
    return g.F.softmax(x, axis=x.ndim - 1) if x.ndim and x.shape[-1] != 0 else None


STEPS: tuple[Callable[[_Growth], Node | None], ...] = (
    _unary, _unary, _binary, _binary, _binary, _with_number, _choice, _cast, _reduce, _permute, _reshape, _slice, _pad,
    _flip, _broadcast, _concat, _matmul, _update, _softmax,
)  # fmt: skip


def random_program(stack: Stack, rng: np.random.Generator, steps: int = 25) -> RandomProgram:
    """The outputs are what nothing uses, one more node, and one of the inputs."""
    F = stack.operator.open()
    growth = _Growth(F, rng)
    given: dict[str, Array] = {}
    for k in range(3):
        spec = TensorSpec(SHAPES[rng.integers(len(SHAPES))], float32)
        given[f"x{k}"] = draw(rng, float32, spec.static_shape, -2, 2)
        growth.pool.append(F.placeholder(f"x{k}", spec))
    inputs = list(growth.pool)
    constant = draw(rng, float32, (3, 4))
    growth.pool.append(F.constant(Literal(constant), TensorSpec((3, 4), float32)))
    while len(growth.pool) < steps:
        node = _grown(growth)
        if node is not None and node.spec.layout().size <= MOST:
            growth.pool.append(node)
    used = {x for node in growth.pool for x in node.inputs}
    ends = dict.fromkeys([*(node for node in growth.pool if node not in used), growth.any(), inputs[0]])
    return RandomProgram(SymbolicGraph(dict(zip(given, inputs, strict=True)),
                                       {f"y{k}": node for k, node in enumerate(ends)}, (), "random"), given)


def _grown(growth: _Growth) -> Node | None:
    """Nothing where the operands that were chosen do not fit."""
    try:
        return STEPS[growth.rng.integers(len(STEPS))](growth)
    except Error:
        return None
