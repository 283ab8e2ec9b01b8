"""Non-maximum suppression over images and classes."""

from __future__ import annotations

from typing import Any

from nnc_core.base.dtype import int64
from nnc_core.base.errors import ShapeError
from nnc_core.functions.constants import beside
from nnc_core.functions.pieces import cut, flat
from nnc_core.functions.selection import places_of
from nnc_core.values.arguments import ArrayLike, as_value_beside, as_values, count_of, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

__all__ = ["non_max_suppression"]


@names_itself
def non_max_suppression(boxes: ArrayLike, scores: ArrayLike, /, *, max_output: Any = None, iou_threshold: float = 0.5,
                        score_threshold: Any = None, centers: bool = False) -> Tensor:
    """int64[k, 3]: image, class and box of what stays, for boxes (images, n, 4) and scores (images, classes, n).

    Boxes of one image and class suppress each other as in `nms`; only scores above `score_threshold` take part, and of
    each class the best `max_output` stay.  Rows are in the order of images, classes and falling scores.  Boxes are any
    two opposite corners, or with `centers` the centre, width and height.  How many rows there are depends on the data.
    """
    v, s = as_values(boxes, scores)
    if v.ndim != 3 or v.shape[2] != 4 or s.ndim != 3 or (s.shape[0], s.shape[2]) != v.shape[:2]:
        raise ShapeError(f"boxes {v.spec} and scores {s.spec} should have shapes (images, n, 4), (images, classes, n)")
    shape: Any = s.shape
    images, classes, n = shape
    places = _candidates(s, score_threshold)
    group = F.floor_divide(places, n)
    box = F.add(F.multiply(F.floor_divide(group, classes), n), F.remainder(places, n))
    corners = F.take(F.reshape(_corners(v, centers), shape=(images * n, 4)), box, axis=0)
    order = F.nms_order(corners, F.take(flat(s), places, axis=0), group, threshold=float(iou_threshold))
    best = F.take(order, places_of(F.greater_equal(order, 0)), axis=0)
    kept = F.take(places, F.take(best, F.argsort(F.take(group, best, axis=0), axis=0), axis=0), axis=0)
    if max_output is not None:
        kept = F.take(kept, places_of(F.less(_rank(F.floor_divide(kept, n)), _number(max_output, kept))), axis=0)
    return Tensor(_rows(kept, classes, n))


def _candidates(scores: Value, threshold: Any) -> Value:
    if threshold is not None:
        return places_of(F.greater(flat(scores), _number(threshold, scores)))
    with beside(scores):
        return F.arange(size=count_of(scores.shape), dtype=int64)


def _number(x: Any, like: Value) -> Any:
    """A number, also where it is an array of one."""
    v = as_value_beside(x, like)
    if v.ndim and count_of(v.shape) != 1:
        raise ShapeError(f"{v.spec} is no number")
    return F.reshape(v, shape=()) if v.ndim else v


def _corners(v: Value, centers: bool) -> Value:
    """Lower corners first."""
    a, b = cut(v, 2, 0, 2), cut(v, 2, 2, 4)
    if centers:
        half = F.multiply(b, 0.5)
        a, b = F.subtract(a, half), F.add(a, half)
    return F.concat(F.minimum(a, b), F.maximum(a, b), axis=2)


def _rank(groups: Value) -> Value:
    """The number of each element within its group; groups are sorted."""
    number = F.subtract(F.cumulative_sum(F.full_like(groups, 1), axis=0), 1)
    return F.subtract(number, F.searchsorted(groups, groups))


def _rows(places: Value, classes: Any, n: Any) -> Value:
    group = F.floor_divide(places, n)
    parts = (F.floor_divide(group, classes), F.remainder(group, classes), F.remainder(places, n))
    return F.concat(*[F.reshape(p, shape=(*p.shape, 1)) for p in parts], axis=1)
