"""Transforms that one code goes through: the rows of an array along an axis, by lanes or one after another."""

from __future__ import annotations

from math import prod
from typing import Literal, NamedTuple, TypeAlias

from nnc_core.base.dtype import DType, is_complex, real_of
from nnc_core.base.errors import NotSupportedError
from nnc_core.base.layout import Layout
from nnc_core.operator.steps.arrays import sides
from nnc_core.operator.steps.fourier import AxisTransform
from nnc_core.operator.steps.fourier_text import Way
from nnc_cpu.fourier.factors import LEAST, Factors, factors_of

Lying: TypeAlias = Literal["columns", "rows", "apart"]
"""How the elements of an array lie: those of neighbouring rows side by side, those of a row, or neither."""
LONG = 1 << 12
"""Elements of a row from which on rows go one after another, however they lie: all lanes at once fill the caches."""
ALONE = 1 << 8
"""Elements of a row from which on it goes by itself, if its elements lie side by side."""


class RowAxis(NamedTuple):
    """Rows: how many, and numbers from one to the next in both arrays."""

    length: int
    x: int
    y: int


class FourierKind(NamedTuple):
    """All that the code of a transform depends on; where its arrays lie are numbers that it is given."""

    way: Way
    dtype: DType
    """Of real numbers."""
    points: int
    """Elements of a row, as the operator counts them."""
    inverse: bool
    scaled: bool
    by_rows: bool
    """Rows go one after another, else one in each lane."""
    shared: bool
    """All threads share each of these rows."""
    lanes: int
    masked: bool
    """There may be fewer rows than lanes, where those lie side by side."""
    x: Lying
    y: Lying
    axes: int
    """Axes of rows besides the one that lanes lie along."""

    @property
    def length(self) -> int:
        """Elements that are transformed, as complex numbers."""
        return complex_length(self.way, self.points)

    @property
    def in_pairs(self) -> bool:
        """Real numbers are transformed as half as many complex ones; odd ones as many that have no imaginary parts."""
        return self.length < self.points

    @property
    def factors(self) -> Factors:
        found = factors_of(self.length)
        assert found is not None
        return found


class FourierProblem(NamedTuple):
    """A kind, and the places of one transform: numbers of real ones from one element to the next, and of bytes before
    the first."""

    kind: FourierKind
    rows: RowAxis
    others: tuple[RowAxis, ...]
    steps: tuple[int, int]
    offsets: tuple[int, int]
    scale: float
    threads: int
    """The threads that may come at most."""

    @property
    def outer(self) -> int:
        """The times that there are so many rows."""
        return prod([axis.length for axis in self.others])


def complex_length(way: Way, points: int) -> int:
    """The complex numbers as which so many elements are transformed: of real ones half, if they are even."""
    return points if way == "fft" or points % 2 else points // 2


def length_of(part: AxisTransform) -> int:
    """The elements that are transformed, as complex numbers; NotSupportedError where there is no code for so many."""
    if part.axis is None:
        raise NotSupportedError("there is no axis")
    length = complex_length(part.way, part.points)
    if factors_of(length) is None:
        raise NotSupportedError(f"{length} has a prime factor that there is no butterfly for")
    return length


def problem_of(part: AxisTransform, lanes: int, threads: int = 1) -> FourierProblem:
    """The problem of a transform, on a host whose vectors have so many elements, for so many threads at most;
    NotSupportedError as `length_of`."""
    length = length_of(part)
    factors = factors_of(length)
    assert factors is not None
    axes = _rows(part)
    rows = max(axes, key=lambda axis: (_lie_beside(axis, part), axis.length))
    others = tuple([axis for axis in axes if axis is not rows])
    steps = (_step(part, part.x), _step(part, part.y))
    x, y = _lying(part.x, rows.x, steps[0]), _lying(part.y, rows.y, steps[1])
    by_rows = bool(factors.rows) and _goes_by_rows(length, rows.length, (x, y))
    if by_rows:
        x, y = (_lying(array, 0, step) for array, step in zip((part.x, part.y), steps, strict=True))
    lanes = _lanes_along(factors, lanes) if by_rows else min(lanes, max(LEAST, 1 << (rows.length - 1).bit_length()))
    shared = by_rows and factors.by_products and prod([axis.length for axis in axes]) < threads
    kind = FourierKind(part.way, real_of(part.x.dtype), part.points, part.inverse, part.scale != 1, by_rows, shared,
                       lanes, not by_rows and rows.length % lanes != 0, x, y, len(others))
    return FourierProblem(kind, rows, others, steps, (part.x.offset, part.y.offset), part.scale, threads)


def is_aligned(x: Layout) -> bool:
    """Tell whether elements lie whole elements apart."""
    return not any([step % x.dtype.itemsize for step in x.strides]) and not x.offset % real_of(x.dtype).itemsize


def _goes_by_rows(length: int, rows: int, lie: tuple[Lying, Lying]) -> bool:
    """Tell whether rows with a matrix go one after another."""
    if length >= LONG or rows == 1:
        return True
    return lie == ("rows", "rows") and length >= ALONE


def _lanes_along(factors: Factors, most: int) -> int:
    """Lanes that go well into rows and columns."""
    choices = [lanes for lanes in (16, 8, 4, 2) if LEAST // 2 <= lanes <= most]
    return min(choices, key=lambda lanes: -(-factors.height // lanes) + -(-factors.width // lanes))


def _rows(part: AxisTransform) -> list[RowAxis]:
    """The axes of rows, as few as there can be."""
    axis = part.axis
    assert axis is not None
    rest = [x._replace(shape=(*x.shape[:axis], *x.shape[axis + 1 :]),
                       strides=(*x.strides[:axis], *x.strides[axis + 1 :])) for x in (part.x, part.y)]
    found = sides({name: (x, slice(None)) for name, x in zip("xy", rest, strict=True)})
    words = [_words(x) for x in (part.x, part.y)]
    return [RowAxis(count, x * words[0], y * words[1]) for count, x, y in
            zip(found.lengths, found.steps["x"], found.steps["y"], strict=True)]


def _words(x: Layout) -> int:
    """Real numbers of an element."""
    return 2 if is_complex(x.dtype) else 1


def _step(part: AxisTransform, x: Layout) -> int:
    """Numbers from one element of a row to the next; where there is but one element, any."""
    assert part.axis is not None
    return x.strides[part.axis] // real_of(x.dtype).itemsize if x.shape[part.axis] > 1 else _words(x)


def _lie_beside(axis: RowAxis, part: AxisTransform) -> int:
    """The number of arrays whose rows lie side by side along an axis."""
    return int(axis.x == _words(part.x)) + int(axis.y == _words(part.y)) if axis.length > 1 else 0


def _lying(x: Layout, row: int, step: int) -> Lying:
    if row == _words(x):
        return "columns"
    return "rows" if step == _words(x) else "apart"
