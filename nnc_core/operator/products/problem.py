"""A product as numbers: which elements of its arrays are multiplied, and where results go."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Literal, NamedTuple, TypeAlias

from nnc_core.base.dtype import DType, accumulator, int32, is_integer
from nnc_core.base.layout import Layout
from nnc_core.operator.loops import broadcast_layout, coalesce
from nnc_core.operator.products.ending import Ending

Left: TypeAlias = Literal["rows", "columns", "each"]


class Strided(NamedTuple):
    """Places of an array, in elements: the first, and the steps along the axes of batches, along the rows (of B: the
    steps of the sum) and along the columns (of A: the steps of the sum)."""

    offset: int
    batch: tuple[int, ...]
    row: int
    column: int


class WindowAxis(NamedTuple):
    """A spatial axis of images that windows see.

    Element e of window number w sees the pixel w * stride + offset + e * step, if that is one.
    """

    places: int = 1
    """Windows."""
    image: int = 1
    """Pixels of an image."""
    stride: int = 0
    offset: int = 0
    step: int = 0
    window: int = 1
    """Elements of a window."""
    pixel: int = 0
    """Elements of the array from one pixel to the next."""
    tap: int = 0
    """Of a part of a product: elements of B from one element of a window to the next."""
    row: int = 0
    """Of a part of a product: rows of the result from one window to the next."""


class PoolAxis(NamedTuple):
    """The rows of a pooling window along a spatial axis."""

    elements: int = 1
    apart: int = 0
    """Pixels of the image from what one of them sees to what the next one sees."""


class ImageWindows(NamedTuple):
    """Windows of images: those of all images are the rows of A, a segment is what one element of a window sees; or,
    where columns of A are contiguous, the windows are the steps, elements of a window the last axis of batches."""

    axes: tuple[WindowAxis, ...]
    image_step: int
    """Elements from one image to the next."""
    image_rows: int = 0
    """Of a part of a product: rows of the result from one image to the next."""
    pool: tuple[PoolAxis, ...] = ()
    """Where results are pooled: the windows of `axes` are the first of each pooling window, behind which come the
    others of that, in row-major order."""


class MatrixProduct(NamedTuple):
    """C[batch, row, column] = the ending of the sum over steps of A[batch, row, step] B[batch, step, column]."""

    dtype: DType
    batch: tuple[int, ...]
    rows: int
    columns: int
    steps: int
    a: Strided
    b: Strided
    others: tuple[Strided, ...]
    """Operands of the ending, then outputs."""
    ending: Ending
    order: tuple[int, ...]
    """Places of A, B, the operands of the ending and its outputs among the arguments."""
    segments: int = 1
    """Parts of the steps that lie apart, each of as many."""
    b_segment: int = 0
    windows: ImageWindows | None = None
    each: bool = False
    """A has an element for each column."""
    panel: int = 0
    """The columns of the panels that B is packed in; 0 where it lies as it is."""
    word: int = 1
    """The steps of a column whose elements lie side by side in panels; the last word of a segment is filled up with
    zeros."""
    parts: tuple[MatrixProduct, ...] = ()
    """Products that this one consists of, each with some of its rows, which lie apart, and the steps that these need;
    none where it is one by itself."""
    b_dtype: DType | None = None
    """Of the elements of B; None: that of A's."""

    @property
    def wide(self) -> DType:
        """The dtype of sums."""
        return sum_dtype(self.dtype)

    @property
    def work(self) -> int:
        """Multiplications and additions."""
        if self.parts:
            return sum([part.work for part in self.parts])
        return prod(self.batch) * self.rows * self.columns * self.steps

    @property
    def length(self) -> int:
        """Steps of a segment."""
        return self.steps // self.segments

    @property
    def left(self) -> Left:
        """The order of A."""
        if self.each:
            return "each"
        if self.windows is not None:
            return "rows" if self.a.row == 0 else "columns"
        return "rows" if self.a.column == 1 or self.steps == 1 else "columns"


def sum_dtype(dtype: DType) -> DType:
    """The dtype in which products of elements of this one are added; there are none that stay integers of 8 bits."""
    return int32 if is_integer(dtype) else accumulator(dtype)


def product_problem(a: Layout, b: Layout, transposed: tuple[bool, bool], others: Sequence[Layout],
                    ending: Ending, order: tuple[int, ...] = ()) -> MatrixProduct:
    """The problem of a matrix product.

    others: operands of the ending, which may be broadcast, then the outputs, all of one shape; order: see
    `MatrixProduct`.
    """
    shape = others[-1].shape
    left, right = (_turned(x) if t else x for x, t in zip((a, b), transposed, strict=True))
    steps = left.shape[-1]
    seen = [broadcast_layout(x, shape) for x in others]
    batch = shape[:-2]
    a_batch, b_batch = (broadcast_layout(x._replace(shape=x.shape[:-2], strides=x.strides[:-2]), batch).strides
                        for x in (left, right))
    strides = [(*a_batch, left.strides[-2]), (*b_batch, 0), *[x.strides[:-1] for x in seen]]
    lengths, merged = coalesce(shape[:-1], strides)
    if not lengths or merged[1][-1] != 0:  # the last axis is one of batches
        lengths, merged = (*lengths, 1), [(*x, 0) for x in merged]
    arrays = (a, b, *others)
    inner = [left.strides[-1], right.strides[-1], *[x.strides[-1] for x in seen]]
    first, second, *rest = map(_strided, arrays, merged, inner)
    second = second._replace(row=right.strides[-2] // b.dtype.itemsize)
    return MatrixProduct(a.dtype, lengths[:-1], lengths[-1], shape[-1], steps, first, second, tuple(rest), ending,
                         order or tuple(range(len(arrays))))


def _turned(x: Layout) -> Layout:
    """The last two axes exchanged."""
    *shape, n, m = x.shape
    *strides, by_n, by_m = x.strides
    return x._replace(shape=(*shape, m, n), strides=(*strides, by_m, by_n))


def _strided(x: Layout, outer: tuple[int, ...], column: int) -> Strided:
    size = x.dtype.itemsize
    *batch, row = [step // size for step in outer]
    return Strided(x.offset // size, tuple(batch), row, column // size)


def in_panels(problem: MatrixProduct, width: int, word: int = 1) -> MatrixProduct:
    """The problem with B packed in panels of so many columns, all steps of one after the other, the elements of `word`
    steps of a column side by side."""
    b = problem.b._replace(row=width, column=1)
    return problem._replace(b=b, b_segment=-(-problem.length // word) * word * width, panel=width, word=word)
