"""Random programs of loops and branches: plain data, which `run` carries out with the library's control flow.

They compute with products of numbers within [-1, 1], means, choices and movement only, which every device rounds alike:
whatever runs them, the bits are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from hypothesis import strategies as st

import nnc_core as nnc

SHAPES = ((16,), (4, 4), (32,), (3,), (4, 4), (1,), (0,))
"""Rows of 64 bytes and of 128 can be windows of a whole, the others cannot; (4, 4) can be transposed."""
DEEPEST = 3


@dataclass(frozen=True)
class Do:
    """One operation on two of the values that there are, counted from the last."""

    name: str
    a: int
    b: int


@dataclass(frozen=True)
class While:
    """`limit` rounds, or fewer: while the first element of value `watched` is below `bound`, if that is given."""

    limit: int
    by_counter: bool
    """The limit is the counter of the loop around, if there is one, and `limit` where it is more."""
    bound: float | None
    watched: int
    carried: tuple[int, ...]
    body: Block
    after: tuple[int, ...]


@dataclass(frozen=True)
class Scan:
    """Along rows stacked from values; what is stacked up is folded into values that can be used again."""

    rows: tuple[int, ...]
    reverse: bool
    carried: tuple[int, ...]
    body: Block
    after: tuple[int, ...]
    stacked: tuple[int, ...]
    again: bool
    """The stacked values are gone over by another loop, not read by themselves."""


@dataclass(frozen=True)
class Choose:
    """One of the branches, by a counter or by data; there may be a replacement for when none is chosen."""

    by_counter: bool
    index: tuple[int, int]
    operands: tuple[int, ...]
    branches: tuple[Block, ...]
    results: tuple[tuple[int, ...], ...]
    replaced: bool


Statement: TypeAlias = Do | While | Scan | Choose
Block: TypeAlias = tuple[Statement, ...]


@dataclass(frozen=True)
class Program:
    shape: tuple[int, ...]
    inputs: int
    block: Block
    outputs: tuple[int, ...]

    def arguments(self, seed: int = 0) -> list[np.ndarray[Any, Any]]:
        rng = np.random.default_rng(seed)
        return [rng.uniform(-1, 1, self.shape).astype(np.float32) for _ in range(self.inputs)]

    def __call__(self, *inputs: nnc.Tensor) -> list[nnc.Tensor]:
        found = _Run(self.shape, list(inputs), []).block(self.block)
        return [_at(found, i) for i in self.outputs]


def _at(values: Sequence[Any], i: int) -> Any:
    return values[-1 - i % len(values)]


OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "mean": lambda a, b: (a + b) * 0.5,
    "product": lambda a, b: a * b,
    "less": lambda a, b: nnc.minimum(a, b),
    "opposite": lambda a, b: -a,
    "flipped": lambda a, b: nnc.flip(a),
    "turned": lambda a, b: a.T,
    "spread": lambda a, b: nnc.broadcast_to(a[:1], a.shape),
    "chosen": lambda a, b: nnc.where(a > b, a * 0.75, b),
    "number": lambda a, b: nnc.full(a.shape, 0.25),
    "front": lambda a, b: nnc.concat([b[:1], a[1:]]),
}


class _Run:
    """Values and counters that are seen at some place of a program."""

    def __init__(self, shape: tuple[int, ...], values: list[Any], counters: list[Any]) -> None:
        self.shape, self.values, self.counters = shape, values, counters

    def inside(self, more: Sequence[Any], counters: Sequence[Any] = ()) -> _Run:
        return _Run(self.shape, [*self.values, *more], [*self.counters, *counters])

    def block(self, block: Block) -> list[Any]:
        for statement in block:
            self.values += self.results(statement)
        return self.values

    def results(self, statement: Statement) -> list[Any]:
        match statement:
            case Do(name, a, b):
                return [OPERATIONS[name](_at(self.values, a), _at(self.values, b))]
            case While():
                return self.repeated(statement)
            case Scan():
                return self.rolled(statement)
            case Choose():
                return self.chosen(statement)

    def repeated(self, loop: While) -> list[Any]:
        limit: Any = loop.limit
        if loop.by_counter and self.counters:
            limit = nnc.minimum(self.counters[-1], loop.limit)

        def test(i: Any, *carried: Any) -> Any:
            if loop.bound is None or not self.shape[0]:
                return i < limit
            watched = _at(self.inside(carried).values, loop.watched).reshape(-1)[0]
            return (i < limit) & (watched < loop.bound)

        def body(i: Any, *carried: Any) -> Any:
            found = self.inside(carried, [i]).block(loop.body)
            return i + 1, *[_at(found, k) for k in loop.after[: len(carried)]]

        first = [_at(self.values, k) for k in loop.carried]
        return list(nnc.while_loop(test, body, (nnc.asarray(0, device=self.values[0].device), *first)))[1:]

    def rolled(self, loop: Scan) -> list[Any]:
        def body(carried: Any, row: Any) -> Any:
            found = self.inside([*carried, row]).block(loop.body)
            return tuple([_at(found, k) for k in loop.after[: len(carried)]]), [_at(found, k) for k in loop.stacked]

        rows = nnc.stack([_at(self.values, k) for k in loop.rows])
        first = tuple([_at(self.values, k) for k in loop.carried])
        last, wholes = nnc.scan(body, first, rows, reverse=loop.reverse)
        if loop.again:
            total, _ = nnc.scan(lambda c, ys: (self.folded(c, ys), None), _at(self.values, 0), tuple(wholes))
            return [*last, total]
        return [*last, *[y[k % len(loop.rows)] for k, y in enumerate(wholes)]]

    @staticmethod
    def folded(total: Any, ys: Sequence[Any]) -> Any:
        for y in ys:
            total = (total - y) * 0.5
        return total

    def chosen(self, choice: Choose) -> list[Any]:
        count = len(choice.branches) + 2 * choice.replaced
        a, b = (_at(self.values, k) for k in choice.index)
        by_data = nnc.sum((a > b).astype(nnc.int64))
        index = (self.counters[-1] if choice.by_counter and self.counters else by_data) % count

        def branch(k: int) -> Callable[..., tuple[Any, ...]]:
            def run(*operands: Any) -> tuple[Any, ...]:
                found = self.inside(operands).block(choice.branches[k])
                return tuple([_at(found, i) for i in choice.results[k]])

            return run

        operands = tuple([_at(self.values, k) for k in choice.operands])
        replacement = [_at([*self.values, *operands], k) for k in choice.results[0]] if choice.replaced else None
        return list(nnc.case_of(index, [branch(k) for k in range(len(choice.branches))], operands, replacement))


# ---- strategies
_numbers = st.integers(0, 6)


def _some(least: int, most: int) -> st.SearchStrategy[tuple[int, ...]]:
    return st.lists(_numbers, min_size=least, max_size=most).map(tuple)


_operations = st.builds(Do, st.sampled_from([*OPERATIONS]), _numbers, _numbers)


def blocks(depth: int, shape: tuple[int, ...]) -> st.SearchStrategy[Block]:
    """Up to four statements; loops and branches in up to `depth` others."""
    statements = _operations
    if len(shape) != 2:
        statements = statements.filter(lambda s: s.name != "turned")
    one: st.SearchStrategy[Statement] = statements
    if depth:
        one = st.one_of(statements, statements, _loops(depth, shape), _scans(depth, shape), _choices(depth, shape))
    return st.lists(one, max_size=4).map(tuple)


def _loops(depth: int, shape: tuple[int, ...]) -> st.SearchStrategy[Statement]:
    bounds = st.one_of(st.none(), st.sampled_from([-0.5, 0.0, 0.4]))
    return st.builds(While, st.integers(0, 5), st.booleans(), bounds, _numbers, _some(0, 4), blocks(depth - 1, shape),
                     _some(4, 4))


def _scans(depth: int, shape: tuple[int, ...]) -> st.SearchStrategy[Statement]:
    return st.builds(Scan, _some(1, 5), st.booleans(), _some(0, 3), blocks(depth - 1, shape), _some(3, 3),
                     _some(1, 2), st.booleans())


@st.composite
def _choices(draw: st.DrawFn, depth: int, shape: tuple[int, ...]) -> Statement:
    branches = tuple(draw(st.lists(blocks(depth - 1, shape), min_size=1, max_size=3)))
    n = draw(st.integers(1, 3))
    return Choose(draw(st.booleans()), draw(st.tuples(_numbers, _numbers)), draw(_some(0, 2)), branches,
                  tuple([draw(_some(n, n)) for _ in branches]), draw(st.booleans()))


@st.composite
def programs(draw: st.DrawFn, depth: int = DEEPEST) -> Program:
    shape = draw(st.sampled_from(SHAPES))
    flow = st.one_of(_loops(depth, shape), _scans(depth, shape), _choices(depth, shape))
    block = (*draw(blocks(0, shape)), draw(flow), *draw(blocks(depth, shape)))
    return Program(shape, draw(st.integers(1, 3)), block, draw(_some(1, 3)))
