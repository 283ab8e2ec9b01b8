"""Embeddings, alone and in bags, against loops; what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import AttributeValueError, OutOfRangeError, ShapeError
from tests.tensors.against_numpy import assert_derivatives

RNG = np.random.default_rng(19)
TABLE = RNG.normal(size=(6, 4))
INDICES = np.array([[0, 3, 3], [5, 1, 0]])
FLAT, OFFSETS = np.array([2, 2, 5, 0, 1, 3, 4]), np.array([0, 3, 3, 6])
WEIGHTS = RNG.normal(size=7)


def table() -> nnc.Tensor:
    return nnc.asarray(TABLE.astype(np.float32))


def test_rows_by_number(device: str) -> None:
    np.testing.assert_allclose(nnc.embedding(table(), INDICES).numpy(), TABLE[INDICES], rtol=1e-6)
    np.testing.assert_allclose(nnc.embedding(table(), nnc.asarray(3, dtype="uint8")).numpy(), TABLE[3], rtol=1e-6)
    found = nnc.jit(nnc.embedding)(table(), nnc.asarray(INDICES)).numpy()
    np.testing.assert_allclose(found, TABLE[INDICES], rtol=1e-6)


def test_a_padding_row_has_no_gradient(device: str) -> None:
    for padding in (3, -3):
        g = nnc.grad(lambda t, p=padding: nnc.sum(nnc.embedding(t, INDICES, padding_index=p) ** 2))(table()).numpy()
        wanted = np.zeros_like(TABLE)
        np.add.at(wanted, INDICES, 2 * TABLE[INDICES])
        wanted[3] = 0
        np.testing.assert_allclose(g, wanted, rtol=1e-5)
    np.testing.assert_allclose(nnc.embedding(table(), INDICES, padding_index=3).numpy(), TABLE[INDICES], rtol=1e-6)


def test_rows_that_are_too_long_are_scaled(device: str) -> None:
    found = nnc.embedding(table(), INDICES, max_norm=1.2, norm_type=1).numpy()
    norms = abs(TABLE).sum(1, keepdims=True)
    wanted = (TABLE * np.minimum(1, 1.2 / norms))[INDICES]
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    g = nnc.grad(lambda t: nnc.sum(nnc.embedding(t, [2], max_norm=0.1)))(table()).numpy()
    np.testing.assert_allclose(g[2], 0.1 / np.linalg.norm(TABLE[2]), rtol=1e-5)


FOLDS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda rows: rows.sum(0), "mean": lambda rows: rows.mean(0) if len(rows) else rows.sum(0),
    "max": lambda rows: rows.max(0) if len(rows) else np.zeros(4),
}  # fmt: skip


@pytest.mark.parametrize("padding", [None, 2])
@pytest.mark.parametrize("mode", FOLDS)
def test_bags(mode: str, padding: int | None, device: str) -> None:
    fold = FOLDS[mode]

    def bag(numbers: Any) -> Any:
        return fold(TABLE[[n for n in numbers if n != padding]])

    of_rows = nnc.embedding_bag(table(), INDICES, mode=mode, padding_index=padding)
    np.testing.assert_allclose(of_rows.numpy(), [bag(row) for row in INDICES], rtol=1e-5, atol=1e-6)
    ends = [*OFFSETS[1:], len(FLAT)]
    wanted = [bag(FLAT[a:b]) for a, b in zip(OFFSETS, ends, strict=True)]
    found = nnc.embedding_bag(table(), FLAT, OFFSETS, mode=mode, padding_index=padding)
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-5, atol=1e-6)
    later = nnc.embedding_bag(table(), FLAT, OFFSETS[1:], mode=mode, padding_index=padding)
    np.testing.assert_allclose(later.numpy(), wanted[1:], rtol=1e-5, atol=1e-6)


def test_weighted_bags(device: str) -> None:
    found = nnc.embedding_bag(table(), FLAT, OFFSETS, mode="sum", weights=WEIGHTS.astype(np.float32)).numpy()
    rows = TABLE[FLAT] * WEIGHTS[:, None]
    wanted = [rows[:3].sum(0), rows[3:3].sum(0), rows[3:6].sum(0), rows[6:].sum(0)]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    assert nnc.embedding_bag(table(), np.zeros((2, 0), np.int64), mode="max").tolist() == [[0] * 4] * 2


@pytest.mark.parametrize("mode", FOLDS)
def test_derivatives(mode: str) -> None:
    assert_derivatives(lambda n, t: nnc.embedding_bag(t, FLAT, OFFSETS, mode=mode), [TABLE])
    assert_derivatives(lambda n, t: nnc.embedding_bag(t, INDICES, mode=mode, padding_index=0), [TABLE])
    assert_derivatives(lambda n, t, w: nnc.embedding_bag(t, FLAT, OFFSETS, mode="sum", weights=w), [TABLE, WEIGHTS])


@pytest.mark.parametrize(("call", "error", "said"), [
    (lambda: nnc.embedding(TABLE[0], [1]), ShapeError, "embedding: the table is float64"),
    (lambda: nnc.embedding(TABLE, [6]), OutOfRangeError, "index 6 is out of range"),
    (lambda: nnc.embedding_bag(TABLE, FLAT), ShapeError, "(?s)indices are int64.*give offsets"),
    (lambda: nnc.embedding_bag(TABLE, INDICES, OFFSETS), ShapeError, "expected two vectors"),
    (lambda: nnc.embedding_bag(TABLE, INDICES, mode="min"), AttributeValueError, "mode 'min'"),
    (lambda: nnc.embedding_bag(TABLE, INDICES, weights=INDICES), AttributeValueError, "go with the mode 'sum'"),
    (lambda: nnc.embedding_bag(TABLE, INDICES, weights=WEIGHTS, mode="sum"), ShapeError, "one for each index"),
])
def test_what_is_refused(call: Callable[[], Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        call()
