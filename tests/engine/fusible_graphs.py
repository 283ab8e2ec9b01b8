"""Random graphs of what joins in training: rows that are folded and normalised, dropout whose mask is read again,
gradients that are stored and summed, products between them, values that several commands and the user read."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

from nnc_core.base import dtype as dt
from nnc_core.symbol import Node
from nnc_core.type import TensorSpec
from tests.graph.stack import new_namespace
from tests.graph.strategies import RandomGraph

ROWS, COLUMNS = 5, 4
UNARY = ("tanh", "exp", "negative", "relu", "sigmoid", "abs")
BINARY = ("add", "subtract", "multiply", "maximum", "divide")


class Growth:
    """A graph that grows: whole arrays, values of rows and of columns, masks."""

    def __init__(self, random: Random) -> None:
        self.random, self.F = random, new_namespace()
        self.values: dict[Node, Any] = {}
        self.rng = np.random.default_rng(random.randrange(2**32))
        self.whole = [self.given(ROWS, COLUMNS) for _ in range(2)]
        self.lines = [self.given(ROWS, 1), self.given(1, COLUMNS)]
        self.masks: list[Node] = []
        self.read_by_user: list[Node] = []

    def given(self, *shape: int) -> Node:
        node = self.F.placeholder(f"p{len(self.values)}", TensorSpec(shape, dt.float32))
        self.values[node] = self.rng.normal(size=shape).astype(np.float32)
        return node

    def key(self) -> Node:
        node = self.F.placeholder(f"p{len(self.values)}", TensorSpec((2,), dt.uint64))
        self.values[node] = self.rng.integers(0, 2**63, 2).astype(np.uint64)
        return node

    def any(self, pool: list[Node]) -> Node:
        return self.random.choice(pool[-3:] if self.random.random() < 0.6 else pool)

    # ---- steps
    def pointwise(self) -> None:
        F: Any = self.F
        x = self.any(self.whole)
        self.whole.append(getattr(F, self.random.choice(UNARY))(x) if self.random.random() < 0.4 else
                          getattr(F, self.random.choice(BINARY))(x, self.any(self.whole)))

    def by_lines(self) -> None:
        F: Any = self.F
        self.whole.append(getattr(F, self.random.choice(BINARY))(self.any(self.whole), self.any(self.lines)))

    def fold(self) -> None:
        F: Any = self.F
        axis = self.random.choice([(0,), (1,), (1,), (0, 1)])
        name = self.random.choice(["sum", "sum", "max", "mean", "min"])
        self.lines.append(getattr(F, name)(self.any(self.whole), axis=axis, keepdims=True))

    def line(self) -> None:
        F: Any = self.F
        self.lines.append(getattr(F, self.random.choice(UNARY))(self.any(self.lines)))

    def dropout(self) -> None:
        probability = self.random.choice([0.5, 0.75])
        self.masks.append(self.F.bernoulli(self.key(), shape=(ROWS, COLUMNS), probability=probability))
        self.masked()

    def masked(self) -> None:
        if self.masks:
            self.whole.append(self.F.where(self.any(self.masks), self.any(self.whole), 0.0))

    def moments(self) -> None:
        """Two sums over equal axes."""
        F, axis, x = self.F, self.random.choice([(0,), (1,)]), self.any(self.whole)
        other = F.multiply(x, self.any(self.whole))
        self.lines += [F.sum(x, axis=axis, keepdims=True), F.sum(other, axis=axis, keepdims=True)]

    def biased_product(self) -> None:
        """A layer's gradient: stored for the product, and summed."""
        F = self.F
        dy = F.where(F.greater(self.any(self.whole), 0.0), self.any(self.whole), 0.0)
        self.whole.append(F.matmul(dy, self.given(COLUMNS, COLUMNS)))
        product = F.matmul(self.any(self.whole), dy, transpose_a=True)
        self.read_by_user += [product, F.sum(dy, axis=(0,), keepdims=False)]

    def apart(self) -> None:
        """What goes through loops of its own, and what moves elements."""
        F, x = self.F, self.any(self.whole)
        self.whole.append(self.random.choice([
            lambda: F.cumulative_sum(x, axis=self.random.randint(0, 1)), lambda: F.softmax(x, axis=1),
            lambda: F.permute(F.reshape(x, shape=(COLUMNS, ROWS)), axes=(1, 0)), lambda: F.flip(x, axes=(0,)),
            lambda: F.log_softmax(x, axis=0)])())

    def grown(self, steps: int) -> RandomGraph:
        every = [self.pointwise, self.pointwise, self.by_lines, self.fold, self.fold, self.line, self.dropout,
                 self.masked, self.moments, self.biased_product, self.apart]
        for _ in range(steps):
            self.random.choice(every)()
        pool = [*self.whole, *self.lines, *self.masks, *self.read_by_user]
        used = {x for node in pool for x in node.inputs}
        outputs = [node for node in pool if node not in used and node not in self.values]
        outputs += [node for node in self.random.sample(pool, 3) if node not in self.values]
        return RandomGraph(list(dict.fromkeys(outputs)), list(self.values), self.values)


def grow_fusible(random: Random, steps: int) -> RandomGraph:
    """The outputs are what nothing reads, and some that others read too."""
    return Growth(random).grown(steps)


