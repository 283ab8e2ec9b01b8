"""Boxes and regions of images: overlap, non-maximum suppression, regions aligned or pooled to one size.

Boxes are x1, y1, x2, y2.
"""

from __future__ import annotations

from typing import Any

from nnc_core.base import dtype as dt
from nnc_core.base.errors import AttributeValueError, ShapeError
from nnc_core.functions.constants import beside
from nnc_core.functions.region_maxima import region_maxima
from nnc_core.functions.sampling import back_in_layout, channels_last
from nnc_core.functions.selection import places_of
from nnc_core.functions.window_options import arranged, per_axis, restored
from nnc_core.type import Dims
from nnc_core.values.arguments import ArrayLike, as_value, as_value_beside, as_values, names_itself, stack_of
from nnc_core.values.dispatch import F
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

__all__ = ["batched_nms", "box_iou", "nms", "roi_align", "roi_pool"]


@names_itself
def box_iou(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """Intersection over union of all boxes a (..., n, 4) with all boxes b (..., m, 4): (..., n, m).

    Axes before the last two broadcast; NaN between two boxes without area.
    """
    first, second = as_values(a, b)
    for v in (first, second):
        if v.ndim < 2 or v.shape[-1] != 4:
            raise ShapeError(f"the boxes {v.spec} should have shape (..., n, 4): x1, y1, x2, y2")
    rows, columns = _sides(first, after=True), _sides(second, after=False)
    wide = [F.subtract(F.minimum(rows[k + 2], columns[k + 2]), F.maximum(rows[k], columns[k])) for k in range(2)]
    common = F.multiply(*[F.maximum(w, 0) for w in wide])
    return Tensor(F.divide(common, F.subtract(F.add(_area(rows), _area(columns)), common)))


def _sides(v: Value, after: bool) -> list[Value]:
    """x1, y1, x2, y2, each with an axis of length 1 for the other boxes."""
    lead = v.shape[:-1]
    shape = (*lead, 1) if after else (*lead[:-1], 1, lead[-1])
    return [F.reshape(_column(v, k), shape=shape) for k in range(4)]


def _column(v: Value, k: int) -> Value:
    start, ones = (0,) * (v.ndim - 1), (1,) * v.ndim
    return F.slice(v, start=(*start, k), stop=(*v.shape[:-1], k + 1), step=ones)


def _area(sides: list[Value]) -> Value:
    return F.multiply(F.subtract(sides[2], sides[0]), F.subtract(sides[3], sides[1]))


@names_itself
def nms(boxes: ArrayLike, scores: ArrayLike, iou_threshold: float, /, *, padded: bool = False) -> Tensor:
    """int64[k]: the numbers of the boxes (n, 4) that stay, best score (n,) first.

    A box goes if its intersection over union with a better one that stays is greater than the threshold; of equal
    scores the first is better.  How many stay depends on the data; `padded` gives int64[n] with -1 for each that goes.
    """
    v, s = as_values(boxes, scores)
    return _suppressed(v, s, None, iou_threshold, padded)


@names_itself
def batched_nms(boxes: ArrayLike, scores: ArrayLike, groups: ArrayLike, iou_threshold: float, /, *,
                padded: bool = False) -> Tensor:
    """`nms` where only boxes of one group (n,) suppress each other: groups are classes, images, or both in one."""
    v, s, g = as_values(boxes, scores, groups)
    return _suppressed(v, s, g, iou_threshold, padded)


def _suppressed(boxes: Value, scores: Value, groups: Value | None, threshold: float, padded: bool) -> Tensor:
    if groups is None:
        with beside(scores):
            groups = F.full(shape=scores.shape, value=0, dtype=dt.int64)
    order = F.nms_order(boxes, scores, groups, threshold=float(threshold))
    if padded:
        return Tensor(order)
    return Tensor(F.take(order, places_of(F.greater_equal(order, 0)), axis=0))


@names_itself
def roi_align(x: ArrayLike, boxes: Any, /, size: Any, *, images: Any = None, scale: float = 1.0,
              sampling_ratio: int = 0, aligned: bool = False, count_outside: bool = True, mode: str = "avg",
              layout: str = "NHWC") -> Tensor:
    """Regions of images x as small images of one size (a number, or height and width), read at samples in between.

    `boxes` are (n, 4) with the number of each one's image in `images` (not needed for a single image), or (n, 5) with
    that number first, or a sequence with the boxes (n, 4) of each image.  Times `scale` they are in pixels; `aligned`
    puts the centre of a pixel half a pixel further, otherwise regions have at least one pixel.  Each of the parts is
    the mean of `sampling_ratio` squared samples, or of as many as it has pixels, rounded up (0).  Samples outside the
    image count as zeros, unless `count_outside` is False.  Gradients go to x and to the boxes.

    mode "max", which needs a `sampling_ratio` and counts what is outside, is ONNX's: not the mean of sums of weighted
    pixels, but the largest of all these pixels times their weights.
    """
    if mode not in ("avg", "max"):
        raise AttributeValueError(f"mode {mode!r} is neither 'avg' nor 'max'")
    v, order = arranged(as_value(x, stack_of([boxes])), layout, 2)
    where, numbers = _boxes(v, boxes, images)
    if mode == "max":
        if not count_outside:
            raise AttributeValueError("mode 'max' has no count_outside=False: samples outside of the image are zeros",
                                      hint="leave it out, or take mode 'avg'")
        return Tensor(_largest(v, order, layout, where, numbers, size, scale, sampling_ratio, aligned))
    y = F.roi_align(v, where, numbers, size=_size(size), scale=float(scale), sampling_ratio=int(sampling_ratio),
                    aligned=bool(aligned), count_outside=bool(count_outside), layout=order)
    return Tensor(restored(y, layout))


def _largest(v: Value, order: str, layout: str, boxes: Value, numbers: Value, size: Any, scale: float,
             sampling_ratio: int, aligned: bool) -> Value:
    ratio = int(sampling_ratio)
    if ratio < 1:
        raise AttributeValueError("mode 'max' needs to know the number of samples", hint="give sampling_ratio")
    y = region_maxima(channels_last(v, order), boxes, numbers, _size(size), float(scale), ratio, bool(aligned))
    return back_in_layout(y, layout)


@names_itself
def roi_pool(x: ArrayLike, boxes: Any, /, size: Any, *, images: Any = None, scale: float = 1.0,
             layout: str = "NHWC") -> Tensor:
    """Maxima in the parts of regions of images x, whose corners are rounded to pixels; 0 for a part without pixels.

    `boxes`, `images`, `size` and `scale` are as in `roi_align`; both corners belong to a region.
    """
    v, order = arranged(as_value(x, stack_of([boxes])), layout, 2)
    where, numbers = _boxes(v, boxes, images)
    return Tensor(restored(F.roi_pool(v, where, numbers, size=_size(size), scale=float(scale), layout=order), layout))


def _size(size: Any) -> tuple[int, int]:
    height, width = per_axis(size, 2, "size")
    return height, width


def _boxes(x: Value, boxes: Any, images: Any) -> tuple[Value, Value]:
    """Boxes (n, 4) and the number of the image of each."""
    if isinstance(boxes, (list, tuple)) and len(boxes) and all(_is_array(b) for b in boxes):
        return _boxes_by_image(x, boxes, images)
    v = as_value_beside(boxes, x)
    if v.ndim != 2 or v.shape[1] not in (4, 5):
        raise ShapeError(f"the boxes {v.spec} should have shape (n, 4) or (n, 5)")
    if v.shape[1] == 5:
        if images is not None:
            raise AttributeValueError(f"the boxes {v.spec} have the numbers of their images; leave out images=")
        number = F.cast(F.reshape(_column(v, 0), shape=v.shape[:1]), dtype=dt.int64)
        return F.slice(v, start=(0, 1), stop=v.shape, step=(1, 1)), number
    if images is not None:
        return v, as_value_beside(images, x)
    if x.shape[0] != 1:
        raise ShapeError(f"boxes {v.spec} do not say which of the images {x.spec} they belong to",
                         hint="give images=, or boxes (n, 5) with the number of the image first")
    return v, _constant(x, v.shape[:1], 0)


def _is_array(b: Any) -> bool:
    return hasattr(b, "ndim") and b.ndim == 2


def _boxes_by_image(x: Value, boxes: Any, images: Any) -> tuple[Value, Value]:
    values = [as_value_beside(b, x) for b in boxes]
    if images is not None or len(values) != x.shape[0]:
        raise ShapeError(f"{len(values)} arrays of boxes do not go with the images {x.spec}",
                         hint="one array for each image, and no images=")
    numbers = [_constant(x, v.shape[:1], k) for k, v in enumerate(values)]
    if len(values) == 1:
        return values[0], numbers[0]
    return F.concat(*values, axis=0), F.concat(*numbers, axis=0)


def _constant(x: Value, shape: Dims, number: int) -> Value:
    with beside(x):
        return F.full(shape=shape, value=number, dtype=dt.int64)
