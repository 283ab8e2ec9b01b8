"""Boxes and regions of images: against plain loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from tests.operator import region_loops as loops
from tests.tensors import gradients
from tests.tensors.faults import fails
from tests.tensors.sliding import in_layout, last


def boxes_of(rng: np.random.Generator, n: int, low: float = 0, high: float = 8) -> Any:
    corners = rng.uniform(low, high, (n, 2))
    return np.concatenate([corners, corners + rng.uniform(1, 6, (n, 2))], 1).astype(np.float32)


def test_overlap(rng: np.random.Generator, device: str) -> None:
    a, b = boxes_of(rng, 5), boxes_of(rng, 4)
    expected = [[loops.iou(p, q) for q in b] for p in a]
    np.testing.assert_allclose(nnc.box_iou(nnc.asarray(a), nnc.asarray(b)).numpy(), expected, rtol=1e-5)
    both = nnc.box_iou(np.stack([a, 2 * a]), np.stack([b, 2 * b]))
    np.testing.assert_allclose(both.numpy(), [expected, expected], rtol=1e-5)
    point = np.array([[2.0, 2.0, 2.0, 2.0]])
    assert np.isnan(nnc.box_iou(point, point).item())


def test_suppression(rng: np.random.Generator, device: str) -> None:
    boxes, scores = boxes_of(rng, 30), rng.standard_normal(30).astype(np.float32)
    groups = rng.integers(0, 3, 30)
    given = nnc.asarray(boxes), nnc.asarray(scores)
    kept = loops.nms(boxes, scores, np.zeros(30), 0.3)
    assert 0 < len(kept) < 30 and nnc.nms(*given, 0.3).tolist() == kept
    assert nnc.nms(*given, 0.3, padded=True).tolist() == kept + [-1] * (30 - len(kept))
    grouped = loops.nms(boxes, scores, groups, 0.3)
    assert nnc.batched_nms(*given, nnc.asarray(groups), 0.3).tolist() == grouped != kept
    assert nnc.nms(np.zeros((0, 4)), np.zeros(0), 0.3).tolist() == []


def test_nncs_suppression_is_a_case_of_it(rng: np.random.Generator) -> None:
    """It has rows (score, x, y, width, height), keeps the number of rows, and suppresses at the threshold too."""
    boxes, scores = boxes_of(rng, 12), rng.standard_normal(12).astype(np.float32)
    rows = np.concatenate([scores[:, None], boxes[:, :2], boxes[:, 2:] - boxes[:, :2]], 1)
    kept = loops.nms(boxes, scores, np.zeros(12), float(np.nextafter(0.5, 0)))
    corners = np.concatenate([rows[:, 1:3], rows[:, 1:3] + rows[:, 3:]], 1)
    order = nnc.nms(corners, rows[:, 0], np.nextafter(0.5, 0), padded=True)
    assert order.tolist() == kept + [-1] * (12 - len(kept))
    stays = nnc.reshape(order >= 0, (12, 1))
    found = nnc.where(stays, nnc.take(nnc.asarray(rows), nnc.maximum(order, 0), axis=0), 0)
    np.testing.assert_array_equal(found.numpy()[: len(kept)], rows[kept])


@pytest.mark.parametrize("mode", ["deferred", "jit", "export"])
def test_how_many_stay_depends_on_the_data(rng: np.random.Generator, mode: str) -> None:
    def f(b: Any, s: Any) -> Any:
        return nnc.take(b, nnc.nms(b, s, 0.3), axis=0)

    run: Any = f
    if mode == "jit":
        run = nnc.jit(f)
    elif mode == "export":
        b, s = nnc.var_arr("b", (30, 4)), nnc.var_arr("s", (30,))
        graph = nnc.export({"b": b, "s": s}, {"kept": f(b, s)}).compile()
        run = lambda b, s: graph(b=b, s=s)["kept"]  # noqa: E731
    for seed in range(3):
        more = np.random.default_rng(seed)
        boxes, scores = boxes_of(more, 30), more.standard_normal(30).astype(np.float32)
        if mode == "deferred":
            with nnc.deferred():
                found = f(nnc.asarray(boxes), nnc.asarray(scores))
        else:
            found = run(nnc.asarray(boxes), nnc.asarray(scores))
        np.testing.assert_array_equal(found.numpy(), boxes[loops.nms(boxes, scores, np.zeros(30), 0.3)])


# ---- regions
IMAGE = (2, 7, 9, 3)
BOXES = np.array([[0.6, 1.1, 4.3, 3.8], [-2.3, 0.4, 5.2, 11.9], [4.1, 2.2, 4.3, 2.4], [3.3, 3.9, 8.6, 6.2]], np.float32)
NUMBERS = np.array([0, 1, 1, 0])


@pytest.mark.parametrize("layout", ["NHWC", "NCHW", "CHWN"])
def test_aligned_regions(rng: np.random.Generator, device: str, layout: str) -> None:
    x = rng.standard_normal(IMAGE).astype(np.float32)
    given = nnc.asarray(in_layout(x, layout))
    for options in ({"sampling_ratio": 2}, {"aligned": True, "scale": 0.75}, {"count_outside": False, "aligned": True}):
        how = {"scale": 1.0, "sampling_ratio": 0, "aligned": False, "count_outside": True, **options}
        found = nnc.roi_align(given, nnc.asarray(BOXES), (2, 3), images=nnc.asarray(NUMBERS), layout=layout, **options)
        expected = loops.roi_align(x, BOXES, NUMBERS, (2, 3), **how)
        np.testing.assert_allclose(last(found, layout), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_pooled_regions(rng: np.random.Generator, device: str, layout: str) -> None:
    x = rng.standard_normal(IMAGE).astype(np.float32)
    found = nnc.roi_pool(nnc.asarray(in_layout(x, layout)), nnc.asarray(BOXES), 2, images=nnc.asarray(NUMBERS),
                         scale=1.3, layout=layout)  # fmt: skip
    np.testing.assert_array_equal(last(found, layout), loops.roi_pool(x, BOXES, NUMBERS, (2, 2), 1.3)[0])
    counted = (x * 10).astype(np.int32)
    found = nnc.roi_pool(nnc.asarray(in_layout(counted, layout)), BOXES, 2, images=NUMBERS, layout=layout)
    assert found.dtype == nnc.int32
    np.testing.assert_array_equal(last(found, layout), loops.roi_pool(counted, BOXES, NUMBERS, (2, 2), 1)[0])


def largest_term(plane: Any, box: Any, size: Any, ratio: int, aligned: bool) -> Any:
    """(*size, c): the largest pixel times its weight, over all samples of a part, pixel by pixel."""
    box = box - 0.5 * aligned
    extent = [max(box[k + 2] - box[k], 0 if aligned else 1) for k in (0, 1)]
    out = np.full((*size, plane.shape[-1]), -np.inf)
    for p, q, i, j in np.ndindex(*size, ratio, ratio):
        y = box[1] + (p + (i + 0.5) / ratio) * extent[1] / size[0]
        x = box[0] + (q + (j + 0.5) / ratio) * extent[0] / size[1]
        terms = [np.zeros(plane.shape[-1])]
        if -1 <= y <= plane.shape[0] and -1 <= x <= plane.shape[1]:
            y, x = min(max(y, 0), plane.shape[0] - 1), min(max(x, 0), plane.shape[1] - 1)
            a, b = int(y), int(x)
            terms = [plane[min(a + u, plane.shape[0] - 1), min(b + w, plane.shape[1] - 1)] *
                     (y - a if u else 1 - y + a) * (x - b if w else 1 - x + b) for u in (0, 1) for w in (0, 1)]
        out[p, q] = np.maximum(out[p, q], np.max(terms, 0))
    return out


@pytest.mark.parametrize("layout", ["NHWC", "NCHW", "CHWN"])
@pytest.mark.parametrize("aligned", [False, True])
def test_regions_by_maxima(rng: np.random.Generator, device: str, layout: str, aligned: bool) -> None:
    x, boxes = rng.standard_normal((2, 7, 9, 3)).astype(np.float32), boxes_of(rng, 5, -3, 6)
    images = np.array([0, 1, -1, 0, 1])
    expected = np.stack([largest_term(x[n], b * 0.8, (2, 3), 2, aligned)
                         for b, n in zip(boxes, images, strict=True)])
    found = nnc.roi_align(nnc.asarray(in_layout(x, layout)), boxes, (2, 3), images=images, scale=0.8, sampling_ratio=2,
                          aligned=aligned, mode="max", layout=layout)
    np.testing.assert_allclose(last(found, layout), expected, rtol=1e-4, atol=1e-5)


def test_maxima_have_gradients(rng: np.random.Generator) -> None:
    x, boxes = rng.standard_normal((1, 6, 6, 2)), boxes_of(rng, 2, 0, 3).astype(np.float64)

    def f(x: Any, boxes: Any) -> Any:
        return nnc.roi_align(x, boxes, 2, sampling_ratio=1, mode="max")

    gradients.check(f, x, boxes, second=False)
    np.testing.assert_allclose(nnc.jit(f)(x, boxes).numpy(), f(x, boxes).numpy(), rtol=1e-10)
    for words, options in (("mode", {"mode": "sum"}), ("samples", {"mode": "max"})):
        with fails(nnc.errors.AttributeValueError, words, operator="roi_align"):
            nnc.roi_align(x, boxes, 2, **options)


def test_ways_to_give_boxes(rng: np.random.Generator) -> None:
    x = nnc.asarray(rng.standard_normal(IMAGE).astype(np.float32))
    expected = nnc.roi_align(x, BOXES, 2, images=NUMBERS).numpy()
    numbered = np.concatenate([NUMBERS[:, None].astype(np.float32), BOXES], 1)
    np.testing.assert_array_equal(nnc.roi_align(x, numbered, 2).numpy(), expected)
    order = [0, 3, 1, 2]
    listed = nnc.roi_align(x, [BOXES[[0, 3]], BOXES[[1, 2]]], 2).numpy()
    np.testing.assert_array_equal(listed, expected[order])
    alone = nnc.roi_align(x[:1], BOXES[:1], 2).numpy()
    np.testing.assert_array_equal(alone, expected[:1])


def test_what_is_outside_a_region_is_not_read() -> None:
    x = np.zeros((1, 6, 6, 1), np.float32)
    x[0, 5, 5], x[0, 0, 5] = np.inf, np.nan
    assert np.isfinite(nnc.roi_align(x, [[0.0, 0.0, 3.0, 3.0]], 2).numpy()).all()
    assert np.isinf(nnc.roi_align(x, [[3.0, 3.0, 6.0, 6.0]], 2).numpy()).any()


def test_gradients_of_regions(rng: np.random.Generator) -> None:
    x, boxes = rng.standard_normal((2, 5, 6, 1)), BOXES[:2].astype(np.float64)
    numbers = NUMBERS[:2]
    for ratio in (0, 2):
        gradients.check(lambda v, b, r=ratio: nnc.roi_align(v, b, (2, 3), images=numbers, sampling_ratio=r), x, boxes)
    gradients.check(lambda v: nnc.roi_pool(v, boxes, 2, images=numbers, layout="NHWC"), x)
    gradients.check(lambda b: nnc.box_iou(b, boxes[:1] + 0.3), boxes)


def test_gradients_of_regions_elsewhere(rng: np.random.Generator, device: str) -> None:
    x = rng.standard_normal((1, 4, 4, 1)).astype(np.float32)
    found = nnc.grad(lambda v: nnc.sum(nnc.roi_align(v, [[0.0, 0.0, 4.0, 4.0]], 4, sampling_ratio=1, aligned=True)))(
        nnc.asarray(x))  # fmt: skip
    np.testing.assert_allclose(found.numpy(), np.ones((1, 4, 4, 1)), rtol=1e-5, atol=1e-6)


X = np.ones((2, 4, 4, 1), np.float32)
ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], tuple[str, ...], str]] = {
    "boxes": (lambda: nnc.box_iou(np.ones(4), np.ones((1, 4))), ValueError, ("float64[4]", "(..., n, 4)"), "box_iou"),
    "scores": (lambda: nnc.nms(np.ones((3, 4)), np.ones(2), 0.5), ValueError, ("scores float64[2]", "float64[3,4]"),
               "nms"),
    "threshold": (lambda: nnc.nms(np.ones((3, 4)), np.ones(3), 1.5), ValueError, ("threshold 1.5",), "nms"),
    "groups": (lambda: nnc.batched_nms(np.ones((3, 4)), np.ones(3), np.ones(3), 0.5), TypeError,
               ("groups are float64",), "batched_nms"),
    "which image": (lambda: nnc.roi_align(X, BOXES, 2), ValueError, ("float32[4,4]", "float32[2,4,4,1]", "images="),
                    "roi_align"),
    "numbers twice": (lambda: nnc.roi_align(X, np.ones((3, 5)), 2, images=NUMBERS), ValueError, ("leave out images",),
                      "roi_align"),
    "numbers": (lambda: nnc.roi_pool(X, BOXES, 2, images=NUMBERS[:3]), ValueError, ("one for each of 4 regions",),
                "roi_pool"),
    "size": (lambda: nnc.roi_align(X, BOXES, (1, 2, 3), images=NUMBERS), ValueError, ("size (1, 2, 3)",), "roi_align"),
    "ratio": (lambda: nnc.roi_align(X, BOXES, 2, images=NUMBERS, sampling_ratio=-1), ValueError, ("sampling_ratio -1",),
              "roi_align"),
    "arrays": (lambda: nnc.roi_align(X, [BOXES], 2), ValueError, ("1 arrays of boxes", "one array for each image"),
               "roi_align"),
    "maxima inside": (lambda: nnc.roi_align(X, BOXES, 2, images=NUMBERS, sampling_ratio=1, mode="max",
                                            count_outside=False), ValueError, ("mode 'max'", "mode 'avg'"),
                      "roi_align"),
    "layout": (lambda: nnc.roi_align(X, BOXES, 2, images=NUMBERS, layout="NWC"), ValueError, ("'NWC'",), "roi_align"),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS.values(), ids=ERRORS)
def test_one_clear_error(case: Any) -> None:
    f, kind, said, operator = case
    with fails(kind, *said, operator=operator):
        f()
