"""Convolution, transposed convolution, and windows as channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nnc_core.base.errors import AttributeValueError, ShapeError
from nnc_core.functions.window_options import (
    Int,
    along,
    arranged,
    arranged_kernel,
    bound_to_size,
    is_same,
    per_axis,
    restored,
    size_of,
    sizes_of,
    sliding,
)
from nnc_core.shape.window import Filter
from nnc_core.type import DimLike, Dims
from nnc_core.values.arguments import ArrayLike, as_value, as_values, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

__all__ = ["conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "fold", "unfold"]


@names_itself
def conv1d(x: ArrayLike, kernel: ArrayLike, /, *, strides: Int = 1, padding: Any = "VALID", dilation: Int = 1,
           groups: int = 1, layout: str = "NWC") -> Tensor:
    """Cross-correlation of sequences x with a kernel; see `conv2d`.

    layout "NWC" takes kernels WIO, "NCW" OIW, "CWN" IWO.
    """
    return _conv(1, x, kernel, strides, padding, dilation, groups, layout)


@names_itself
def conv2d(x: ArrayLike, kernel: ArrayLike, /, *, strides: Int = 1, padding: Any = "VALID", dilation: Int = 1,
           groups: int = 1, layout: str = "NHWC") -> Tensor:
    """Cross-correlation of images x with a kernel.

    layout "NHWC" takes kernels HWIO, "NCHW" OIHW, "CHWN" IHWO; I counts the input channels of one group, so that a
    depthwise convolution has as many groups as channels and I = 1.  `padding` is "SAME" (as many results as there are
    strides, an odd element of padding after), "VALID" (none), a number, or a number or pair (before, after) for each
    spatial dimension.  ShapeError where channels, groups or sizes do not fit.
    """
    return _conv(2, x, kernel, strides, padding, dilation, groups, layout)


@names_itself
def conv3d(x: ArrayLike, kernel: ArrayLike, /, *, strides: Int = 1, padding: Any = "VALID", dilation: Int = 1,
           groups: int = 1, layout: str = "NDHWC") -> Tensor:
    """Cross-correlation of volumes x with a kernel; see `conv2d`.

    layout "NDHWC" takes kernels DHWIO, "NCDHW" OIDHW, "CDHWN" IDHWO.
    """
    return _conv(3, x, kernel, strides, padding, dilation, groups, layout)


def _conv(rank: int, x: ArrayLike, kernel: ArrayLike, strides: Any, padding: Any, dilation: Any, groups: int,
          layout: str) -> Tensor:
    v, k = as_values(x, kernel)
    v, order = arranged(v, layout, rank)
    k = arranged_kernel(k, layout)
    how = sliding(sizes_of(v, order), Filter.of(k.spec, order).size, strides, padding, dilation)
    v = bound_to_size(v, order, how) if is_same(padding) else v
    return Tensor(restored(F.conv(v, k, groups=groups, layout=order, **how), layout))


@names_itself
def conv_transpose1d(x: ArrayLike, kernel: ArrayLike, /, *, strides: Int = 1, padding: Any = "VALID",
                     output_padding: Int = 0, dilation: Int = 1, groups: int = 1, size: Any = None,
                     layout: str = "NWC") -> Tensor:
    """The transpose of `conv1d` in its input; see `conv_transpose2d`."""
    return _conv_transpose(1, x, kernel, strides, padding, output_padding, dilation, groups, size, layout)


@names_itself
def conv_transpose2d(x: ArrayLike, kernel: ArrayLike, /, *, strides: Int = 1, padding: Any = "VALID",
                     output_padding: Int = 0, dilation: Int = 1, groups: int = 1, size: Any = None,
                     layout: str = "NHWC") -> Tensor:
    """The transpose of `conv2d` in its input: each element of x adds its multiple of the kernel to the result.

    The kernel is that of the convolution which is transposed: HWIO, where O are the channels of x and I * groups those
    of the result, OIHW for "NCHW" (as PyTorch has it), IHWO for "CHWN".  The result has (n - 1) * stride +
    (window - 1) * dilation + 1 - padding + output_padding elements along each axis, or n * stride with padding "SAME";
    `size` asks for one of the sizes that the convolution takes to that of x, in place of `output_padding`.
    """
    return _conv_transpose(2, x, kernel, strides, padding, output_padding, dilation, groups, size, layout)


@names_itself
def conv_transpose3d(x: ArrayLike, kernel: ArrayLike, /, *, strides: Int = 1, padding: Any = "VALID",
                     output_padding: Int = 0, dilation: Int = 1, groups: int = 1, size: Any = None,
                     layout: str = "NDHWC") -> Tensor:
    """The transpose of `conv3d` in its input; see `conv_transpose2d`."""
    return _conv_transpose(3, x, kernel, strides, padding, output_padding, dilation, groups, size, layout)


def _conv_transpose(rank: int, x: ArrayLike, kernel: ArrayLike, strides: Any, padding: Any, output_padding: Any,
                    dilation: Any, groups: int, size: Any, layout: str) -> Tensor:
    v, k = as_values(x, kernel)
    v, order = arranged(v, layout, rank)
    k = arranged_kernel(k, layout)
    counts, window = sizes_of(v, order), Filter.of(k.spec, order).size
    more = per_axis(output_padding, rank, "output_padding")
    sizes = None if size is None else size_of(size, rank)
    how = _transposed(counts, window, strides, padding, more, dilation, sizes)
    wanted, beyond = how.pop("size"), how.pop("beyond")
    y = F.conv_input_gradient(v, k, size=wanted, groups=groups, layout=order, **how)
    return Tensor(restored(_extended(y, order, beyond), layout))


def _transposed(counts: Dims, window: Dims, strides: Any, padding: Any, more: Sequence[int], dilation: Any,
                sizes: Dims | None) -> dict[str, Any]:
    """The geometry of the convolution that is transposed; `beyond` are zeros after what it reaches."""
    rank = len(counts)
    steps, spread = per_axis(strides, rank, "strides"), per_axis(dilation, rank, "dilation")
    if min(steps) < 1 or min(spread) < 1:
        raise AttributeValueError(f"strides {steps} and dilation {spread} should be at least 1")
    if is_same(padding):
        if any(more):
            raise AttributeValueError(f"output_padding {tuple(more)} does not go with padding 'SAME', which fixes "
                                      "the size", hint="give size, or the padding in numbers")
        own = tuple([n * s for n, s in zip(counts, steps, strict=True)])
        how = sliding(own if sizes is None else sizes, window, steps, padding, spread)
        return {**how, "size": own if sizes is None else sizes, "beyond": (0,) * rank}
    how = sliding(counts, window, steps, padding, spread)
    axes = [_transposed_axis(*axis) for axis in zip(
        counts, window, steps, how["padding"], more, spread, sizes or (None,) * rank, strict=True)]  # fmt: skip
    size, pads, beyond = zip(*axes, strict=True)
    return {**how, "size": size, "padding": pads, "beyond": beyond}


def _transposed_axis(count: DimLike, window: DimLike, stride: int, padding: tuple[int, int], more: int, dilation: int,
                     size: DimLike | None) -> tuple[DimLike, tuple[int, int], int]:
    """Size of the result without zeros beyond, padding, zeros beyond.

    What is added at the end is first taken from the padding, where the kernel reaches; only then it is zeros.
    """
    before, after = padding
    reach = (count - 1) * stride + (window - 1) * dilation + 1
    if size is not None:
        more = size - (reach - before - after)
    limit = max(stride, dilation)
    if not isinstance(more, int) or not 0 <= more < limit:
        least = reach - before - after
        raise ShapeError(f"output_padding {more} should be at least 0 and less than {limit}, the larger of stride and "
                         f"dilation" if size is None else f"size {size} is none that a convolution takes to {count}: "
                         f"it should be from {least} to {least + limit - 1}")
    visible = min(more, after)
    rest = more - visible
    inside = min(rest, stride - 1)
    return reach - before - (after - visible) + inside, (before, after - visible), rest - inside


def _extended(y: Value, order: str, beyond: Sequence[int]) -> Value:
    if not any(beyond):
        return y
    none = (0,) * y.ndim
    return F.pad(y, low=none, high=along(order, 0, beyond, 0), interior=none)


@names_itself
def unfold(x: ArrayLike, /, window: Int, *, strides: Int = 1, padding: Any = "VALID", dilation: Int = 1,
           layout: str | None = None) -> Tensor:
    """The elements of each window as the channels of one pixel (im2col), with zeros for padding.

    x has one, two or three spatial dimensions; channels are last unless `layout` says otherwise.  Channels of the
    result are in the order of a kernel (HWI, or IHW where channels are first), so that a convolution is this times the
    kernel as a matrix.
    """
    v, order = arranged(as_value(x), layout)
    size = per_axis(window, len(order) - 2, "window")
    how = sliding(sizes_of(v, order), size, strides, padding, dilation)
    v = bound_to_size(v, order, how) if is_same(padding) else v
    return Tensor(restored(F.unfold(v, window=size, layout=order, **how), layout))


@names_itself
def fold(y: ArrayLike, /, size: Any, window: Int, *, strides: Int = 1, padding: Any = "VALID", dilation: Int = 1,
         layout: str | None = None) -> Tensor:
    """The transpose of `unfold` (col2im): windows added where they came from, in images of `size`."""
    v, order = arranged(as_value(y), layout)
    rank = len(order) - 2
    whole, elements = size_of(size, rank), per_axis(window, rank, "window")
    how = sliding(whole, elements, strides, padding, dilation)
    return Tensor(restored(F.fold(v, size=whole, window=elements, layout=order, **how), layout))
