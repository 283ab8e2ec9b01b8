"""Rules of operators on regions of images (boxes) and on the boxes themselves.

Boxes are (x1, y1, x2, y2), one a row; `images` says which image of the batch each belongs to.
"""

from __future__ import annotations

from nnc_core.base import dtype as dt
from nnc_core.base.dtype import accumulator
from nnc_core.base.errors import AttributeValueError, DTypeError, ShapeError
from nnc_core.shape.elementwise import floating, ordered, same_dtype
from nnc_core.shape.window import Image
from nnc_core.type import DimLike, TensorSpec

Pair = tuple[int, int]


def _plane(x: TensorSpec, layout: str) -> Image:
    if layout not in ("NHWC", "NCHW"):
        raise AttributeValueError(f"layout {layout!r} is neither 'NHWC' nor 'NCHW'")
    return Image.of(x, layout)


def _check_images(images: TensorSpec, count: DimLike) -> None:
    if not dt.is_integer(images.dtype):
        raise DTypeError(f"the numbers of images are {images.dtype}, not integers")
    if images.shape != (count,):
        raise ShapeError(f"the numbers of images {images} should have one for each of {count} regions")


def _check_weights(rows: TensorSpec, columns: TensorSpec, images: TensorSpec, like: TensorSpec) -> None:
    wide = accumulator(floating(like).dtype)
    if same_dtype(rows, columns) != wide:
        raise DTypeError(f"the weights of {like.dtype} are {rows.dtype}, not {wide}")
    if rows.ndim != 3 or columns.ndim != 3 or rows.shape[0] != columns.shape[0]:
        raise ShapeError(f"the weights {rows} and {columns} should have shapes (regions, results, length)")
    _check_images(images, rows.shape[0])


def region_product(x: TensorSpec, rows: TensorSpec, columns: TensorSpec, images: TensorSpec,
                   layout: str) -> TensorSpec:
    """One small image for each region."""
    image = _plane(x, layout)
    _check_weights(rows, columns, images, x)
    if (rows.shape[2], columns.shape[2]) != image.size:
        raise ShapeError(f"the weights {rows} and {columns} do not fit the height and width of {x}")
    return Image(rows.shape[0], (rows.shape[1], columns.shape[1]), image.c).spec(layout, x.dtype)


def region_product_gradient(g: TensorSpec, rows: TensorSpec, columns: TensorSpec, images: TensorSpec, count: DimLike,
                            layout: str) -> TensorSpec:
    """`count`: the number of images."""
    image = _plane(g, layout)
    _check_weights(rows, columns, images, g)
    if (rows.shape[0], rows.shape[1], columns.shape[1]) != (image.n, *image.size):
        raise ShapeError(f"the weights {rows} and {columns} do not fit the regions, height and width of {g}")
    return Image(count, (rows.shape[2], columns.shape[2]), image.c).spec(layout, g.dtype)


def _pooled(x: TensorSpec, boxes: TensorSpec, images: TensorSpec, size: Pair, layout: str) -> Image:
    image = _plane(x, layout)
    if not dt.is_float(boxes.dtype):
        raise DTypeError(f"the boxes are {boxes.dtype}, not floating-point numbers", hint="cast with astype")
    check_boxes(boxes)
    _check_images(images, boxes.shape[0])
    if len(size) != 2 or min(size) < 1:
        raise AttributeValueError(f"size {size} should be two numbers of at least 1")
    return Image(boxes.shape[0], size, image.c)


def check_boxes(boxes: TensorSpec) -> None:
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise ShapeError(f"the boxes {boxes} should have shape (n, 4): x1, y1, x2, y2")


def roi_align(x: TensorSpec, boxes: TensorSpec, images: TensorSpec, size: Pair, scale: float, sampling_ratio: int,
              aligned: bool, count_outside: bool, layout: str) -> TensorSpec:
    """One small image for each box."""
    floating(x)
    if sampling_ratio < 0:
        raise AttributeValueError(f"sampling_ratio {sampling_ratio} should be at least 0")
    return _pooled(x, boxes, images, size, layout).spec(layout, x.dtype)


def roi_pool(x: TensorSpec, boxes: TensorSpec, images: TensorSpec, size: Pair, scale: float, layout: str) -> TensorSpec:
    """One small image for each box."""
    if ordered(x).dtype == dt.boolean:
        raise DTypeError("needs numbers, not booleans", hint="cast with astype")
    return _pooled(x, boxes, images, size, layout).spec(layout, x.dtype)


def roi_pool_index(x: TensorSpec, boxes: TensorSpec, images: TensorSpec, size: Pair, scale: float,
                   layout: str) -> TensorSpec:
    """The int64 place of each maximum in its image."""
    return TensorSpec(roi_pool(x, boxes, images, size, scale, layout).shape, dt.int64)


def nms_order(boxes: TensorSpec, scores: TensorSpec, groups: TensorSpec, threshold: float) -> TensorSpec:
    """One int64 for each box."""
    check_boxes(boxes)
    if not dt.is_float(same_dtype(boxes, scores)):
        raise DTypeError(f"needs floating-point numbers, not {boxes.dtype}", hint="cast with astype")
    if not dt.is_integer(groups.dtype):
        raise DTypeError(f"the groups are {groups.dtype}, not integers")
    if scores.shape != (boxes.shape[0],) or groups.shape != scores.shape:
        raise ShapeError(f"scores {scores} and groups {groups} should have one element for each of the boxes {boxes}")
    if not 0 <= threshold <= 1:
        raise AttributeValueError(f"threshold {threshold} is not between 0 and 1")
    return TensorSpec(scores.shape, dt.int64)
