"""Determinants from triangular factors: loop nests.

A nest folds no products of complex numbers, so theirs are multiplied in halves: the second half of a row by the first,
until one is left.  As NumPy's, a complex determinant is its sign times the exponential of its logarithm, for products
of pivots may leave the range that the determinant is in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nnc_core.base.command import Command
from nnc_core.base.dtype import int32
from nnc_core.base.layout import Layout
from nnc_core.base.loopnest import LoopNest
from nnc_core.codegen.pairs import Pair
from nnc_core.operator.loops import Index, NestBuilder
from nnc_cuda.matrices.nests import begun


def determinants(w: Layout, exchanges: Layout, out: Layout) -> LoopNest:
    """out = products of the diagonals of factors w, negative after an odd number of exchanges of rows, which count from
    1."""
    command = Command("determinants", (), (w, exchanges), (out,))
    nest = NestBuilder(command)
    at = nest.outer(*out.shape)
    with nest.stage(w.shape[-1]) as (i,):
        value = nest.fold("product", _pivot(nest, at, i))
    nest.store(0, value, *at)
    return nest.build()


def log_determinants(w: Layout, exchanges: Layout, signs: Layout, logs: Layout) -> LoopNest:
    """The same as signs and logarithms of magnitudes."""
    command = Command("logarithms of determinants", (), (w, exchanges), (signs, logs))
    nest = NestBuilder(command)
    at = nest.outer(*signs.shape)
    with nest.stage(w.shape[-1]) as (i,):
        value = _pivot(nest, at, i)
        below = (value < 0).select(value.constant(-1), value.constant(1))
        size = abs(value).apply("log")
        sign, log = nest.fold("product", below), nest.fold("sum", size)
    nest.store(0, sign, *at)
    nest.store(1, log, *at)
    return nest.build()


def _pivot(nest: NestBuilder, at: Sequence[Index], i: Index) -> Any:
    """An element of the diagonal, negative where its row was exchanged."""
    value, other = nest.load(0, *at, i, i), nest.load(1, *at, i)
    moved = (nest.position(i).cast(int32) + 1).not_equal(other)
    return moved.select(-value, value)


# ---- complex numbers
def complex_pivots(w: Layout, exchanges: Layout, signs: Layout, logs: Layout) -> LoopNest:
    """Elements of the diagonal, negative where their row was exchanged, as numbers of magnitude 1 and logarithms of
    magnitudes."""
    nest = NestBuilder(Command("pivots", (), (w, exchanges), (signs, logs)))
    *at, i = nest.outer(*signs.shape)
    value, other = nest.load(0, *at, i, i), nest.load(1, *at, i)
    largest = abs(value.re).maximum(abs(value.im))
    re, im = value.re / largest, value.im / largest
    square = re * re + im * im
    size = square.sqrt()
    moved = (nest.position(i).cast(int32) + 1).not_equal(other)
    re, im = re / size, im / size
    nest.store(0, Pair(moved.select(-re, re), moved.select(-im, im)), *at, i)
    nest.store(1, largest.apply("log") + square.apply("log") * 0.5, *at, i)
    return nest.build()


def halves_multiplied(x: Layout) -> list[LoopNest]:
    """Rows of x in which the first element becomes the product of all."""
    nests, left = list[LoopNest](), x.shape[-1]
    while left > 1:
        rest = left - left // 2
        first = Layout((*x.shape[:-1], left // 2), x.dtype, x.offset, x.strides)
        second = first._replace(offset=x.offset + rest * x.strides[-1])
        nest, at = begun("halves multiplied", [first, second], [first])
        nest.store(0, nest.load(0, *at) * nest.load(1, *at), *at)
        nests.append(nest.build())
        left = rest
    return nests


def rows_added(x: Layout, y: Layout) -> LoopNest:
    """y = sums of rows of x."""
    nest = NestBuilder(Command("rows added", (), (x,), (y,)))
    at = nest.outer(*y.shape)
    with nest.stage(x.shape[-1]) as (i,):
        total = nest.fold("sum", nest.load(0, *at, i))
    nest.store(0, total, *at)
    return nest.build()


def first_of_rows(x: Layout) -> Layout:
    """The first elements of rows, where they lie."""
    return Layout(x.shape[:-1], x.dtype, x.offset, x.strides[:-1])


def elements_copied(x: Layout, y: Layout) -> LoopNest:
    """y = x."""
    nest, at = begun("numbers copied", [x], [y])
    nest.store(0, nest.load(0, *at), *at)
    return nest.build()


def whole_determinants(signs: Layout, logs: Layout, out: Layout) -> LoopNest:
    """out = signs times exponentials."""
    nest, at = begun("complex determinants", [signs, logs], [out])
    sign, size = nest.load(0, *at), nest.load(1, *at).apply("exp")
    nest.store(0, Pair(sign.re * size, sign.im * size), *at)
    return nest.build()
