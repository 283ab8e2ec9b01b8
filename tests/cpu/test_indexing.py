"""Scatters in parts: long rows, many short ones, shared axes; against NumPy's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nnc_core.operator.scattering import COMBINE, scatter_into
from nnc_cpu import indexing

SHAPES = {
    "short rows": ((40, 3), (500,), 0, 0), "long rows": ((5, 5000), (7,), 0, 0), "numbers": ((50,), (30, 10), 0, 0),
    "shared axes": ((6, 20, 3), (6, 50), 1, 1), "an axis between": ((3, 4, 20), (3, 9), 2, 1),
    "rows that lie apart": ((4, 30), (100,), 1, 0), "no width": ((4, 0), (3,), 0, 0),
}  # fmt: skip


@pytest.mark.parametrize("mode", COMBINE)
@pytest.mark.parametrize("shape", SHAPES)
def test_parts_make_no_difference(shape: str, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    of_x, of_indices, axis, batch = SHAPES[shape]
    x = rng.uniform(0.5, 1.5, of_x)
    indices = rng.integers(-of_x[axis], of_x[axis], of_indices)
    updates = rng.uniform(0.5, 1.5, (*of_x[:axis], *of_indices[batch:], *of_x[axis + 1 :]))
    wanted, found = x.copy(), x.copy()
    scatter_into(wanted, indices, updates, axis, mode, batch)
    monkeypatch.setattr(indexing, "CHUNK", 64)
    indexing.combine(found, indices, updates, axis, mode, batch)
    assert found.tobytes() == wanted.tobytes()


def test_results_are_written_where_they_lie() -> None:
    """Also where the array has gaps between its elements."""
    room: Any = np.zeros((8, 6))
    indexing.combine(room[::2, ::2], np.array([1, -1, 1]), np.ones((3, 3)), 0, "add", 0)
    assert room[2, ::2].tolist() == [2, 2, 2] and room[6, ::2].tolist() == [1, 1, 1] and room.sum() == 9
