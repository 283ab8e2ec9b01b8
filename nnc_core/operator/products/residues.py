"""Gradients by the images of windows that lie apart, as products in parts.

With stride 2 every other pixel is seen by every other element of windows.  So pixels whose places leave equal residues
when they are divided by the stride are a product of their own, with the elements that see them: windows of stride 1 in
a dense image, results apart.  No product with zero is computed for what lies between.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import gcd, prod
from typing import NamedTuple

from nnc_core.operator.products.problem import ImageWindows, MatrixProduct, Strided, WindowAxis


class Slide(NamedTuple):
    """Distances along an axis: of two windows, of the first from the image, which it may begin before, of a window's
    elements, and of those of the kernel, in its memory."""

    stride: int
    before: int
    dilation: int
    tap: int


class Residue(NamedTuple):
    """Pixels on an axis with the same residue, and the elements of windows that see them."""

    axis: WindowAxis
    pixel: int
    """The first of them."""
    tap: int
    """The elements of the kernel before the first of theirs."""
    taps: int
    """Their number, which may be 0."""


def in_residues(problem: MatrixProduct, slides: Sequence[Slide]) -> MatrixProduct:
    """The product whose rows are all pixels, in parts, the largest first."""
    assert problem.windows is not None
    places = [axis.places for axis in problem.windows.axes]
    steps = [prod(places[n + 1 :]) for n in range(len(places))]
    residues = [list(_residues(*pair)) for pair in zip(problem.windows.axes, slides, strict=True)]
    parts = [_part(problem, steps, found) for found in product(*residues)]
    return problem._replace(parts=tuple(sorted(parts, key=lambda part: -part.work)))


def _residues(axis: WindowAxis, slide: Slide) -> Iterator[Residue]:
    """Element e of the window w sees pixel p where w * stride = p + before - e * dilation."""
    stride, before, dilation, tap = slide
    common = gcd(stride, dilation)
    apart = stride // common
    for pixel in range(min(stride, axis.places)):
        first = next((e for e in range(apart) if (pixel + before - e * dilation) % stride == 0), axis.window)
        taps = len(range(first, axis.window, apart))
        seen = WindowAxis(-(-(axis.places - pixel) // stride), axis.image, 1,
                          (pixel + before - first * dilation) // stride, -(dilation // common), max(taps, 1),
                          axis.pixel, apart * tap, stride)
        yield Residue(seen, pixel, first * tap if taps else 0, taps)


def _part(problem: MatrixProduct, steps: Sequence[int], residues: Sequence[Residue]) -> MatrixProduct:
    """The product of some pixels; `steps`: rows from one pixel to the next on each axis."""
    assert problem.windows is not None
    axes = tuple([found.axis._replace(row=found.axis.row * step) for found, step in zip(residues, steps, strict=True)])
    pixels = prod([axis.places for axis in problem.windows.axes])
    first = sum([found.pixel * step for found, step in zip(residues, steps, strict=True)])
    taps = prod([found.taps for found in residues])
    b = problem.b._replace(offset=problem.b.offset + sum([found.tap for found in residues]))
    return problem._replace(
        rows=problem.rows // pixels * prod([axis.places for axis in axes]), steps=taps * problem.length, b=b,
        others=tuple([_moved(x, first) for x in problem.others]), segments=max(taps, 1),
        windows=ImageWindows(axes, problem.windows.image_step, pixels))


def _moved(x: Strided, rows: int) -> Strided:
    return x._replace(offset=x.offset + rows * x.row)
