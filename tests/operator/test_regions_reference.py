"""Operators on regions and boxes against plain loops (tests/operator/region_loops.py)."""

from __future__ import annotations

import numpy as np
import pytest

from nnc_core.base import dtype as dt
from nnc_core.base.errors import OutOfRangeError
from nnc_plugins.conformance.agreement import assert_agree
from tests.operator import region_loops as loops
from tests.operator.host import arguments, call, cases, host


def nhwc(x, layout):
    return x if layout == "NHWC" else x.transpose(0, 2, 3, 1)


def in_layout(x, layout):
    return x if layout == "NHWC" else x.transpose(0, 3, 1, 2)


@pytest.mark.parametrize("name", ["region_product", "region_product_gradient"])
def test_products_by_plain_loops(name, rng) -> None:
    for example in cases(name, dtypes=(dt.float64, dt.float16), large=False):
        (x, rows, columns, images), how = arguments(example, rng)
        given = nhwc(x, how["layout"]).astype(np.float64)
        result = call(example.op, x, rows, columns, images, *how.values())
        expected = np.zeros(nhwc(result, how["layout"]).shape)
        for k, n in enumerate(images):
            for p, q, h, w in np.ndindex(rows.shape[1], columns.shape[1], rows.shape[2], columns.shape[2]):
                weight = float(rows[k, p, h]) * float(columns[k, q, w])
                if not weight:
                    continue  # whatever lies there
                if name == "region_product":
                    expected[k, p, q] += weight * given[n, h, w]
                else:
                    expected[n, h, w] += weight * given[k, p, q]
        assert_agree(example.op, result, in_layout(expected, how["layout"]).astype(result.dtype), str(example))


def test_roi_align_by_plain_loops(rng) -> None:
    for example in cases("roi_align", dtypes=(dt.float64, dt.bfloat16), large=False):
        (x, boxes, images), how = arguments(example, rng)
        layout = how.pop("layout")
        result = call(example.op, x, boxes, images, *how.values(), layout)
        expected = loops.roi_align(nhwc(x, layout).astype(np.float64), boxes, images, *how.values())
        assert_agree(example.op, result, in_layout(expected, layout).astype(result.dtype), str(example))


@pytest.mark.parametrize("ratio", [0, 1, 3])
@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("outside", [False, True])
def test_roi_align_of_many_boxes(rng, ratio, aligned, outside) -> None:
    """Of all sizes, half of them over the border."""
    x, images = rng.standard_normal((2, 7, 9, 2)), rng.integers(0, 2, 40)
    corners = rng.uniform(-6, 14, (40, 2))
    boxes = np.concatenate([corners, corners + rng.uniform(0, 12, (40, 2))], 1)
    how = (0.75, ratio, aligned, outside)
    found = call_roi_align(x, boxes, images, (3, 2), *how)
    np.testing.assert_allclose(found, loops.roi_align(x, boxes, images, (3, 2), *how), rtol=1e-9, atol=1e-11)


def call_roi_align(x, boxes, images, size, scale, ratio, aligned, outside):
    return host("roi_align", x, boxes, images, size=size, scale=scale, sampling_ratio=ratio, aligned=aligned,
                count_outside=outside, layout="NHWC")  # fmt: skip


def test_nncs_roi_align_is_a_case_of_it(rng) -> None:
    """Boxes there are relative, one for each image, and what is outside does not count."""
    x = rng.standard_normal((3, 8, 6, 2))
    boxes = np.array([[0.13, 0.22, 0.5, 0.61], [-0.31, 0.6, 0.7, 0.72], [0.9, -0.83, 0.37, 1.91]])
    scale = np.array([6, 8, 6, 8])
    corners = np.concatenate([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], 1) * scale
    found = call_roi_align(x, corners, np.arange(3), (2, 3), 1.0, 0, True, False)
    np.testing.assert_allclose(found, loops.nnc_roi_align(x, boxes, (2, 3)), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["roi_pool", "roi_pool_index"])
def test_roi_pool_by_plain_loops(name, rng) -> None:
    for example in cases(name, dtypes=(dt.float64, dt.float16, dt.int16), large=False):
        if example.case.label in ("specials", "no finite box"):
            continue
        (x, boxes, images), how = arguments(example, rng)
        layout = how["layout"]
        result = call(example.op, x, boxes, images, *how.values())
        values, places = loops.roi_pool(nhwc(x, layout).astype(np.float64), boxes, images, how["size"], how["scale"])
        expected = in_layout(values if name == "roi_pool" else places, layout)
        assert_agree(example.op, result, expected.astype(result.dtype), str(example))


def test_roi_pool_where_numbers_are_none() -> None:
    """NaN wins, -inf is a maximum like any other, and a corner that is NaN is 0."""
    nan, inf = np.nan, np.inf
    x = np.array([[1, nan, 2, 2], [inf, 1, 2, 2], [-inf, -inf, 0, -0.0], [-inf, -inf, 3, nan]])[None, :, :, None]
    how = {"size": (2, 2), "scale": 1.0, "layout": "NHWC"}
    places = host("roi_pool_index", x, np.array([[0, 0, 3, 3.0]]), np.array([0]), **how)
    assert places[0, :, :, 0].tolist() == [[1, 2], [8, 15]]
    places = host("roi_pool_index", x, np.array([[nan, 0, 1, 1.0], [-inf, 0, -inf, 3]]), np.array([0, 0]), **how)
    assert places[:, :, :, 0].tolist() == [[[0, 1], [4, 5]], [[-1, -1], [-1, -1]]]


def test_suppression_by_picking_the_best(rng) -> None:
    for example in cases("nms_order", dtypes=(dt.float64, dt.bfloat16)):
        (boxes, scores, groups), how = arguments(example, rng)
        result = call(example.op, boxes, scores, groups, how["threshold"])
        if example.case.label == "scores without order":
            assert result.tolist() == [2, 1, 5, 6, -1, -1, -1]  # NaN comes last
            continue
        kept = loops.nms(boxes.astype(float), scores.astype(float), groups, how["threshold"])
        assert result.tolist() == kept + [-1] * (len(scores) - len(kept)), str(example)


def test_suppression_of_many_boxes(rng) -> None:
    corners = rng.uniform(0, 6, (60, 2))
    boxes = np.concatenate([corners, corners + rng.uniform(2, 9, (60, 2))], 1)
    scores, groups = rng.standard_normal(60), rng.integers(0, 3, 60)
    for threshold in (0.05, 0.2, 0.5):
        kept = loops.nms(boxes, scores, groups, threshold)
        found = host("nms_order", boxes, scores, groups, threshold=threshold)
        assert 0 < len(kept) < 60 and found[: len(kept)].tolist() == kept and (found[len(kept) :] == -1).all()


def test_an_image_that_is_not_there() -> None:
    x, rows, columns = np.ones((2, 3, 3, 1)), np.ones((1, 2, 3)), np.ones((1, 2, 3))
    with pytest.raises(OutOfRangeError, match="index 2 is out of range for an axis of length 2"):
        host("region_product", x, rows, columns, np.array([2]), layout="NHWC")
