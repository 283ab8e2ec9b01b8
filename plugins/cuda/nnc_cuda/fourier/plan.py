"""Plans of transforms along axes: where their rows lie, and what is packed before the library reads it."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import NamedTuple

from nnc_core.base.command import Command
from nnc_core.base.dtype import complex_of, real_of
from nnc_core.base.layout import Layout
from nnc_core.base.loopnest import LoopNest
from nnc_core.codegen.pairs import Pair
from nnc_core.operator.loops import NestBuilder, elementwise_nest
from nnc_core.operator.steps.arrays import sides
from nnc_core.operator.steps.fourier import AxisTransform, parts_of
from nnc_cuda.fourier.library import FourierLibrary, FourierPlan, RowSteps, Transform
from nnc_cuda.kernel import NestStep

CALLS = 16
"""Calls of the library for one axis, at most; more rows that lie apart are packed."""
ALIGNED = 256
INPUT, OUTPUT, WORKSPACE = 0, 1, 2
"""Numbers of buffers."""


class Spot(NamedTuple):
    """A buffer, and bytes from its beginning."""

    buffer: int
    first: int


class TransformStep(NamedTuple):
    plan: FourierPlan
    x: Spot
    y: Spot


class FourierSteps(NamedTuple):
    """Steps that run one after another.  Packed arrays begin the workspace, the library's own memory follows."""

    steps: tuple[NestStep | TransformStep, ...]
    packed: int
    """Bytes of packed arrays."""
    workspace: int
    """Bytes in all."""


class PlacedRows(NamedTuple):
    """An array, and the buffer that it lies in."""

    layout: Layout
    buffer: int


class Calls(NamedTuple):
    """Transforms of the library, and the elements at which each call begins."""

    transform: Transform
    firsts: list[tuple[int, int]]


class StepsWriter:
    """Writes the steps of a command."""

    def __init__(self, library: FourierLibrary, packs: bool) -> None:
        """`packs`: everything that is read is packed first."""
        self.library, self.packs = library, packs
        self.steps: list[NestStep | TransformStep] = []
        self.packed = 0
        """Bytes of packed arrays."""
        self.own = 0
        """Bytes that the library wants."""

    def add(self, part: AxisTransform, x: PlacedRows) -> None:
        """Transform the array along one axis, to the output."""
        y = PlacedRows(part.y, OUTPUT)
        if part.way == "irfft":
            x = self._without_idle_parts(part, x)
        elif self.packs:
            x = self._copied(part, x)
        calls = calls_of(part, x.layout, y.layout)
        if calls is not None:
            return self._call(calls, x, y)
        x = x if x.buffer == WORKSPACE else self._copied(part, x)
        inner = self._room(part, y.layout)
        calls = calls_of(part, x.layout, inner.layout)
        assert calls is not None, "rows that are packed lie like one axis"
        self._call(calls, x, inner)
        self._nest(copied(inner.layout, y.layout), inner, y)

    def _call(self, calls: Calls, x: PlacedRows, y: PlacedRows) -> None:
        plan = self.library.plan(calls.transform)
        self.own = max(self.own, plan.workspace)
        for first, to in calls.firsts:
            self.steps.append(TransformStep(plan, Spot(x.buffer, x.layout.offset + first * x.layout.dtype.itemsize),
                                            Spot(y.buffer, y.layout.offset + to * y.layout.dtype.itemsize)))

    def _copied(self, part: AxisTransform, x: PlacedRows) -> PlacedRows:
        room = self._room(part, x.layout)
        self._nest(copied(x.layout, room.layout), x, room)
        return room

    def _without_idle_parts(self, part: AxisTransform, x: PlacedRows) -> PlacedRows:
        """A copy in which frequencies that are their own conjugates have no imaginary parts: the library may read
        them, and may write where it reads."""
        room = self._room(part, x.layout)
        assert part.axis is not None
        self._nest(made_hermitian(x.layout, room.layout, part.axis, part.points), x, room)
        return room

    def _room(self, part: AxisTransform, like: Layout) -> PlacedRows:
        """Room for such an array whose rows are packed one after another."""
        axis = part.axis or 0
        shape = (*like.shape[:axis], *like.shape[axis + 1 :], like.shape[axis])
        *steps, one = Layout.packed(shape, like.dtype).strides
        layout = Layout(like.shape, like.dtype, self.packed, (*steps[:axis], one, *steps[axis:]))
        self.packed += -(-layout.nbytes // ALIGNED) * ALIGNED
        return PlacedRows(layout, WORKSPACE)

    def _nest(self, nest: LoopNest, *arrays: PlacedRows) -> None:
        self.steps.append(NestStep(nest, tuple([array.buffer for array in arrays])))

    def scale(self, y: Layout, factor: float) -> None:
        if factor != 1:
            self._nest(scaled(y, factor), PlacedRows(y, OUTPUT), PlacedRows(y, OUTPUT))


def steps_of(command: Command, library: FourierLibrary, packs: bool) -> FourierSteps:
    """The steps of a command; `packs`: everything that is read is packed first."""
    to, factor = StepsWriter(library, packs), 1.0
    for n, part in enumerate(parts_of(command)):
        to.add(part, PlacedRows(part.x, OUTPUT if n else INPUT))
        factor *= part.scale
    to.scale(command.output, factor)
    return FourierSteps(tuple(to.steps), to.packed, to.packed + to.own)


class _BesideAxis(NamedTuple):
    """Rows along one more axis than that of the transform: how many, and elements from one to the next."""

    length: int
    x: int
    y: int


def calls_of(part: AxisTransform, x: Layout, y: Layout) -> Calls | None:
    """The calls that take rows from one array to the other; None where there are too many, or rows that the library
    does not read or write where they are."""
    axis = part.axis
    assert axis is not None
    found = sides({name: (_without(layout, axis), slice(None)) for name, layout in (("x", x), ("y", y))})
    axes = [_BesideAxis(*each) for each in zip(found.lengths, found.steps["x"], found.steps["y"], strict=True)]
    batch = max(axes)
    firsts = _firsts([rows for rows in axes if rows is not batch])
    of_x = RowSteps(x.strides[axis] // x.dtype.itemsize, max(batch.x, 1))
    of_y = RowSteps(y.strides[axis] // y.dtype.itemsize, max(batch.y, 1))
    if not firsts or min(of_x.step, of_y.step) < 1 or (batch.length > 1 and min(batch.x, batch.y) < 1):
        return None
    if not (_aligned(x, [at for at, _ in firsts]) and _aligned(y, [at for _, at in firsts])):
        return None
    dtype = complex_of(real_of(x.dtype))
    return Calls(Transform(part.way, dtype, part.points, batch.length, of_x, of_y, part.inverse), firsts)


def _firsts(axes: list[_BesideAxis]) -> list[tuple[int, int]]:
    """The elements of both arrays at which each call begins; none where there would be too many calls."""
    if prod([rows.length for rows in axes]) > CALLS:
        return []
    places = product(*[range(rows.length) for rows in axes])
    return [(sum([n * rows.x for n, rows in zip(at, axes, strict=True)]),
             sum([n * rows.y for n, rows in zip(at, axes, strict=True)])) for at in places]


def _aligned(layout: Layout, firsts: list[int]) -> bool:
    """True if all calls begin at a multiple of a complex number's size."""
    wide = complex_of(real_of(layout.dtype)).itemsize
    return not any((layout.offset + first * layout.dtype.itemsize) % wide for first in firsts)


def _without(x: Layout, axis: int) -> Layout:
    shape, strides = [(*of[:axis], *of[axis + 1 :]) for of in (x.shape, x.strides)]
    return x._replace(shape=shape, strides=strides)


# ---- nests
def copied(x: Layout, y: Layout) -> LoopNest:
    return elementwise_nest(lambda value: value, Command("rows packed", (), (x,), (y,)))


def scaled(y: Layout, factor: float) -> LoopNest:
    def times(value: Pair) -> Pair:
        return Pair(value.re * factor, value.im * factor) if isinstance(value, Pair) else value * factor

    return elementwise_nest(times, Command("rows scaled", (), (y,), (y,)))


def made_hermitian(x: Layout, y: Layout, axis: int, points: int) -> LoopNest:
    """y = x without the imaginary parts of the first frequency of `points` real numbers and, if these are even, of the
    middle one."""
    nest = NestBuilder(Command("frequencies packed", (), (x,), (y,)))
    at = nest.outer(*y.shape)
    value, k = nest.load(0, *at), nest.position(at[axis])
    alone = k.equal(0) | (k * 2).equal(points)
    nest.store(0, Pair(value.re, alone.select(value.im.constant(0), value.im)), *at)
    return nest.build()
