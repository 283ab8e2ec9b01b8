"""Gradients by the kernels of depthwise convolutions: they are depthwise convolutions themselves.

An element of the kernel is a window on the images, which sees what that element was multiplied by, one pixel for each
window of the convolution; its kernel is the gradient by the result.  So rows are the elements of the kernel, whose sums
stay in registers while images and gradient are gone through once.
"""

from __future__ import annotations

from math import prod

from nnc_core.operator.products.problem import ImageWindows, MatrixProduct, Strided, WindowAxis
from nnc_cpu.products.numbers import SPATIAL


def by_elements(problem: MatrixProduct) -> MatrixProduct:
    """The same problem with elements of the kernel as rows and channels as columns, if it is such a gradient and
    windows have axes enough for the images, too; else as it is."""
    windows = problem.windows
    if windows is None or not _is_of_channels(problem):
        return problem
    images = problem.steps // prod([axis.places for axis in windows.axes])
    axes = tuple([WindowAxis(axis.window, axis.image, axis.step, axis.offset, axis.stride, axis.places, axis.pixel)
                  for axis in windows.axes])
    if images > 1:
        axes = (WindowAxis(image=images, step=1, window=images, pixel=windows.image_step), *axes)
    if len(axes) > SPATIAL:
        return problem
    groups, taps = problem.batch
    a, b = (Strided(x.offset, (0,), row, x.batch[0]) for x, row in ((problem.a, 0), (problem.b, problem.b.row)))
    others = tuple([Strided(x.offset, (0,), x.batch[1], x.batch[0]) for x in problem.others])
    return problem._replace(batch=(1,), rows=taps, columns=groups, a=a, b=b, others=others, segments=problem.steps,
                            b_segment=b.row, windows=ImageWindows(axes, 0), each=True)


def _is_of_channels(problem: MatrixProduct) -> bool:
    """Tell whether channels are the first axis of batches, elements of the kernel the second, and nothing is left."""
    return len(problem.batch) == 2 and problem.batch[0] > 1 and problem.rows == problem.columns == 1
