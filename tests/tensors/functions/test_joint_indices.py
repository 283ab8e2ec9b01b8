"""Rows of indices, reversed sequences, suppression over images and classes: against plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import AttributeValueError, DTypeError, OutOfRangeError, ShapeError
from tests.tensors import gradients
from tests.tensors.faults import fails
from tests.tensors.ways import agrees_with_eager

COMBINE = {"set": lambda a, b: b, "add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}


def rows(indices: Any, batch: int) -> Any:
    """(place in the batch and among the indices, key) of each row."""
    for at in np.ndindex(*indices.shape[:-1]):
        yield at, (*at[:batch], *indices[at])


@pytest.mark.parametrize(("shape", "lead", "count", "batch"), [
    ((5, 4), (3,), 2, 0), ((5, 4, 3), (2, 3), 1, 0), ((5, 4, 3), (), 3, 0), ((2, 5, 4, 3), (2, 6), 2, 1),
    ((2, 3, 4), (2, 3, 2), 1, 2), ((2, 3), (2, 4), 0, 1)])
def test_rows_of_indices(rng: np.random.Generator, device: str, shape: Any, lead: Any, count: int, batch: int) -> None:
    x = rng.standard_normal(shape).astype(np.float32)
    sizes = np.array(shape[batch : batch + count], np.int64)
    indices = rng.integers(-sizes, sizes, (*lead, count)) if count else np.zeros((*lead, 0), np.int64)
    expected = np.array([x[key] for _, key in rows(indices, batch)])
    found = nnc.gather_nd(nnc.asarray(x), indices, batch_dims=batch)
    assert found.shape == (*lead, *shape[batch + count :])
    np.testing.assert_array_equal(found.numpy(), expected.reshape(found.shape))
    updates = rng.standard_normal(found.shape).astype(np.float32)
    for mode, f in COMBINE.items():
        wanted = x.copy()
        for at, key in rows(indices, batch):
            wanted[key] = f(wanted[key], updates[at])
        done = nnc.scatter_nd(nnc.asarray(x), indices, updates, mode=mode, batch_dims=batch)
        np.testing.assert_allclose(done.numpy(), wanted, rtol=1e-6, atol=1e-6, err_msg=mode)


@pytest.mark.parametrize(("axis", "batch_axis"), [(0, 1), (1, 0), (2, 0), (-1, -2)])
def test_reversed_sequences(rng: np.random.Generator, device: str, axis: int, batch_axis: int) -> None:
    x = rng.standard_normal((4, 5, 6)).astype(np.float32)
    lengths = rng.integers(0, x.shape[axis] + 1, x.shape[batch_axis])
    moved = np.moveaxis(x, (batch_axis, axis), (0, 1)).copy()
    for row, n in zip(moved, lengths, strict=True):
        row[:n] = row[:n][::-1].copy()
    found = nnc.reverse_sequence(nnc.asarray(x), lengths, axis=axis, batch_axis=batch_axis)
    np.testing.assert_array_equal(found.numpy(), np.moveaxis(moved, (0, 1), (batch_axis, axis)))


INDICES = np.array([[0, 2], [3, -1], [0, 2]])
FUNCTIONS: dict[str, Any] = {
    "gather": lambda x: nnc.gather_nd(x, INDICES),
    "scatter": lambda x: nnc.scatter_nd(x, INDICES, nnc.asarray([1.0, 2.0, 3.0], dtype=x.dtype), mode="add"),
    "reversed": lambda x: nnc.reverse_sequence(x, np.array([1, 4, 0]))}
each = pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)


@each
@pytest.mark.parametrize("mode", ["deferred", "compiled"])
def test_other_ways_to_run(rng: np.random.Generator, f: Any, mode: str) -> None:
    agrees_with_eager(mode, f, rng.standard_normal((4, 3)).astype(np.float32), rtol=0, atol=0)


@each
def test_gradients(rng: np.random.Generator, f: Any) -> None:
    gradients.check(f, rng.standard_normal((4, 3)))


def test_gradients_of_updates(rng: np.random.Generator) -> None:
    x, new = rng.standard_normal((4, 3)), rng.standard_normal(3)
    gradients.check(lambda x, u: nnc.scatter_nd(x, INDICES, u, mode="add"), x, new)
    gradients.check(lambda x, u: nnc.scatter_nd(x, INDICES[:2], u), x, new[:2])


def test_wrong_rows() -> None:
    x = np.zeros((4, 3))
    with fails(ShapeError, "do not name slices", operator="gather_nd"):
        nnc.gather_nd(x, np.zeros((2, 3), np.int64))
    with fails(DTypeError, "not integers", operator="gather_nd"):
        nnc.gather_nd(x, np.zeros((2, 2)))
    with fails(OutOfRangeError, "range", operator="gather_nd"):
        nnc.gather_nd(x, np.array([[0, 3]]))
    with fails(AttributeValueError, "mode", operator="scatter_nd"):
        nnc.scatter_nd(x, INDICES, 1.0, mode="mul")
    with fails(ShapeError, "lengths", operator="reverse_sequence"):
        nnc.reverse_sequence(x, np.array([1, 2]))
    with fails(AttributeValueError, "batches", operator="reverse_sequence"):
        nnc.reverse_sequence(x, np.array([1, 2, 3]), axis=1)


# ---- suppression
def overlap(a: Any, b: Any) -> float:
    wide = [max(min(a[k + 2], b[k + 2]) - max(a[k], b[k]), 0) for k in (0, 1)]
    areas = [(c[2] - c[0]) * (c[3] - c[1]) for c in (a, b)]
    return float(wide[0] * wide[1] / (sum(areas) - wide[0] * wide[1]))


def suppressed(boxes: Any, scores: Any, most: int, iou: float, least: float) -> list[list[int]]:
    """Image by image, class by class, box by box; boxes have their lower corners first."""
    out = []
    for n, c in np.ndindex(*scores.shape[:2]):
        kept: list[int] = []
        for k in sorted(range(scores.shape[2]), key=lambda k: -scores[n, c, k]):
            if scores[n, c, k] > least and len(kept) < most and \
                    all(overlap(boxes[n, k], boxes[n, j]) <= iou for j in kept):
                kept.append(k)
        out += [[n, c, k] for k in kept]
    return out


@pytest.mark.parametrize("mode", ["eager", "deferred", "compiled"])
@pytest.mark.parametrize(("most", "iou", "least"), [(3, 0.3, 0.2), (100, 0.6, -1.0), (0, 0.5, 0.0), (2, 0.0, 0.9)])
def test_suppression_by_image_and_class(rng: np.random.Generator, mode: str, most: int, iou: float,
                                        least: float) -> None:
    low = rng.uniform(0, 3, (2, 12, 2))
    boxes = np.concatenate([low, low + rng.uniform(0.5, 2, low.shape)], 2).astype(np.float32)
    scores = rng.uniform(0, 1, (2, 3, 12)).astype(np.float32)
    wanted = np.array(suppressed(boxes, scores, most, iou, least), np.int64).reshape(-1, 3)
    crossed = boxes[:, :, [2, 1, 0, 3]]
    centred = np.concatenate([(boxes[..., :2] + boxes[..., 2:]) / 2, boxes[..., 2:] - boxes[..., :2]], 2)

    def f(b: Any, s: Any, centers: bool) -> Any:
        return nnc.non_max_suppression(b, s, max_output=most, iou_threshold=iou, score_threshold=least,
                                       centers=centers)

    for given, centers in ((boxes, False), (crossed, False), (centred, True)):
        b, s = nnc.asarray(given), nnc.asarray(scores)
        if mode == "compiled":
            found = nnc.jit(lambda b, s, c=centers: f(b, s, c))(b, s)
        elif mode == "deferred":
            with nnc.deferred():
                found = f(b, s, centers)
        else:
            found = f(b, s, centers)
        assert found.dtype == nnc.int64
        np.testing.assert_array_equal(found.numpy(), wanted)


def test_suppression_without_limits() -> None:
    boxes = np.array([[[0, 0, 1, 1], [0, 0, 1, 1.01], [5, 5, 6, 6]]], np.float32)
    found = nnc.non_max_suppression(boxes, np.array([[[0.1, 0.9, 0.5]]], np.float32))
    np.testing.assert_array_equal(found.numpy(), [[0, 0, 1], [0, 0, 2]])
    with fails(ShapeError, "images", operator="non_max_suppression"):
        nnc.non_max_suppression(boxes[0], np.zeros((1, 1, 3)))
