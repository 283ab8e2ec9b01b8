"""Loop nests around routines: they bring matrices to where routines want them, and results to where they belong.

All take stacks of matrices; in a nest the axes of the stack come first, then rows and columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

from nnc_core.base.command import Command
from nnc_core.base.dtype import int32, int64
from nnc_core.base.layout import Layout
from nnc_core.base.loopnest import LoopNest
from nnc_core.codegen.pairs import Pair, converted
from nnc_core.operator.loops import Index, NestBuilder, broadcast_layout

Part: TypeAlias = Literal["whole", "lower", "upper", "strictly lower", "strictly upper"]
PARTS: dict[Part, Callable[[Any, Any], Any]] = {
    "lower": lambda i, j: i >= j, "upper": lambda i, j: i <= j,
    "strictly lower": lambda i, j: i > j, "strictly upper": lambda i, j: i < j}


def turned(x: Layout) -> Layout:
    """Transposed matrices, where they lie."""
    *batch, m, n = x.shape
    *steps, row, column = x.strides
    return Layout((*batch, n, m), x.dtype, x.offset, (*steps, column, row))


def part_of(x: Layout, rows: int, columns: int) -> Layout:
    """The first rows and columns."""
    return Layout((*x.shape[:-2], rows, columns), x.dtype, x.offset, x.strides)


def copied(x: Layout, y: Layout, part: Part = "whole") -> LoopNest:
    """y = a part of x, zeros elsewhere; axes of a stack are repeated."""
    nest, at = begun("matrices copied", [broadcast_layout(x, y.shape)], [y])
    nest.store(0, _within(nest, part, at, nest.load(0, *at)), *at)
    return nest.build()


def hermitian(x: Layout, y: Layout) -> LoopNest:
    """y = (x + xᴴ) / 2."""
    nest, at = begun("matrices made Hermitian", [x], [y])
    value, other = nest.load(0, *at), nest.load(0, *at[:-2], at[-1], at[-2])
    other = Pair(other.re, -other.im) if isinstance(other, Pair) else other
    nest.store(0, _halved(value + other), *at)
    return nest.build()


def adjoint(x: Layout, y: Layout) -> LoopNest:
    """y = xᴴ."""
    nest, at = begun("adjoint matrices", [x], [y])
    value = nest.load(0, *at[:-2], at[-1], at[-2])
    nest.store(0, Pair(value.re, -value.im) if isinstance(value, Pair) else value, *at)
    return nest.build()


def reflected(w: Layout, factors: Layout, q: Layout, number: int) -> LoopNest:
    """q = (1 - factor v vᴴ) q, of whose columns only those from `number` on change: v is 0 above row `number` of w, 1
    there, and that column of w below."""
    *batch, m, k = q.shape
    below = Layout((*batch, m - number, 1), w.dtype, w.offset + number * sum(w.strides[-2:]), w.strides)
    left = Layout((*batch, m - number, k - number), q.dtype, q.offset + number * sum(q.strides[-2:]), q.strides)
    nest = NestBuilder(Command("reflections", (), (below, factors, left), (left,)))
    *at, j = nest.outer(*batch, k - number)

    def vector(i: Index) -> Any:
        value = nest.load(0, *at, i, 0)
        return value.chosen(nest.position(i) > 0, 1)

    with nest.stage(m - number) as (i,):
        v = vector(i)
        along = (Pair(v.re, -v.im) if isinstance(v, Pair) else v) * nest.load(2, *at, i, j)
        total = nest.fold("sum", along)
    with nest.stage(m - number) as (i,):
        moved = nest.load(1, *at, number) * total
        nest.store(0, nest.load(2, *at, i, j) - vector(i) * moved, *at, i, j)
    return nest.build()


def paired(values: Layout, x: Layout, y: Layout) -> LoopNest:
    """y = complex vectors, of which pairs that belong to conjugate values are two columns of x: the real part, and the
    imaginary one of the first of them."""
    nest, at = begun("pairs of vectors", [values, x], [y])
    *batch, i, j = at
    turn = nest.load(0, *batch, j).im
    first, second = turn > 0, turn < 0
    begin, end = nest.position(j) - second.cast(int64), nest.position(j) + first.cast(int64)
    real, imaginary = (nest.load(1, *batch, i, Index(gather=place)) for place in (begin, end))
    alone = first.select(imaginary, second.select(-imaginary, imaginary.constant(0)))
    nest.store(0, Pair(real, alone), *at)
    return nest.build()


def identity(y: Layout) -> LoopNest:
    nest, at = begun("identities", [], [y])
    one = nest.position(at[-2]).equal(nest.position(at[-1]))
    nest.store(0, converted(one, y.dtype), *at)
    return nest.build()


def marked(x: Layout, marks: Layout, part: Part = "whole", singular: bool = False) -> LoopNest:
    """marks (int32): 1 for matrices a part of which holds NaN or infinities or, if `singular` says so, whose diagonal
    has a zero."""
    command = Command("matrices looked at", (), (x,), (marks,))
    nest = NestBuilder(command)
    at = nest.outer(*marks.shape)
    with nest.stage(*x.shape[-2:]) as (i, j):
        value = _within(nest, part, [i, j], nest.load(0, *at, i, j))
        parts = (value.re, value.im) if isinstance(value, Pair) else (value,)
        wrong = [(one - one).not_equal(0).cast(int32) for one in parts]
        if singular:
            on_diagonal = nest.position(i).equal(nest.position(j))
            wrong.append((on_diagonal & nest.load(0, *at, i, j).equal(0)).cast(int32))
        total = wrong[0]
        for one in wrong[1:]:
            total = total.maximum(one)
        found = nest.fold("maximum", total)
    nest.store(0, found, *at)
    return nest.build()


def settled(u: Layout, x: Layout, y: Layout, rows: bool) -> LoopNest:
    """y = columns of x times the factors that make the largest component of each column of u real, which for x = u
    are its phases settled (`operator/phases.py`); `rows`: rows of x times their conjugates."""
    command = Command("phases settled", (), (u, x), (y,))
    nest, length = NestBuilder(command), u.shape[-2]
    *batch, k = nest.outer(*u.shape[:-2], u.shape[-1])
    with nest.stage(length) as (i,):
        value = nest.load(0, *batch, i, k)
        largest = nest.fold("argmax", value.re * value.re + value.im * value.im)
    anchor = nest.load(0, *batch, Index(gather=largest), k)
    size = (anchor.re * anchor.re + anchor.im * anchor.im).sqrt()
    nothing = size.equal(0)
    safe = nothing.select(size.constant(1), size)
    re, im = nothing.select(size.constant(1), anchor.re / safe), nothing.select(size.constant(0), anchor.im / safe)
    factor = Pair(re, im) if rows else Pair(re, -im)
    with nest.stage(x.shape[-1] if rows else length) as (n,):
        at = (*batch, k, n) if rows else (*batch, n, k)
        found = nest.load(1, *at) * factor
        if not rows:
            real = nest.position(n).equal(largest)
            found = Pair(found.re, real.select(found.im.constant(0), found.im))
        nest.store(0, found, *at)
    return nest.build()


def begun(name: str, inputs: Sequence[Layout], outputs: Sequence[Layout]) -> tuple[NestBuilder, list[Index]]:
    """A nest that goes through the elements of its output."""
    nest = NestBuilder(Command(name, (), tuple(inputs), tuple(outputs)))
    return nest, nest.outer(*outputs[0].shape)


def _within(nest: NestBuilder, part: Part, at: Sequence[Index], value: Any) -> Any:
    """The value in the part, zero elsewhere."""
    if part == "whole":
        return value
    inside = PARTS[part](nest.position(at[-2]), nest.position(at[-1]))
    return value.chosen(inside, 0)


def _halved(value: Any) -> Any:
    return Pair(value.re * 0.5, value.im * 0.5) if isinstance(value, Pair) else value * 0.5
