"""Cases of weighted sums along an axis and their transpose, with tables of every kind."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from nnc_core.base.dtype import FLOATS, DType, accumulator
from nnc_plugins.conformance.case import Array, Case, draw

Rows = tuple[tuple[int, ...], ...]
Reach = tuple[int, int, int, int]

TABLES: dict[str, tuple[int, Rows, Reach]] = {
    "twice as long": (3, ((0, -1), (0, 1), (0, 1), (1, 2), (1, 2), (2, -1)), (6, 3, -3, 4)),
    "half as long": (4, ((0, 1), (2, 3)), (2, 4, 0, 1)),
    "one for all": (3, ((0, 1, 2),), (1, 3, 0, 1)),
    "in any order": (4, ((3, 0), (1, 1), (-1, 2)), (0, 1, 0, 3)),
    "repeated": (2, ((1,), (1,), (1,)), (0, 1, 0, 3)),
    "nothing read": (2, ((-1, -1), (-1, -1)), (1, 1, 0, 1)),
    "no rows": (3, (), (0, 1, 0, 0)),
}
"""The length of the axis, the indices, the reach."""


def _indices(rows: Rows) -> Array:
    return np.array(rows, np.int32).reshape(len(rows), len(rows[0]) if rows else 2)


def _make(shape: tuple[int, ...], rows: Rows, special: bool) -> object:
    def make(rng: np.random.Generator, dtype: DType) -> tuple[Array, ...]:
        indices, wide = _indices(rows), accumulator(dtype)
        x = draw(rng, dtype, shape)
        if special:
            x.reshape(-1)[:3] = np.array([np.inf, -np.inf, np.nan], x.dtype)
        return x, indices, draw(rng, wide, indices.shape)

    return make


def _cases(transposed: bool) -> list[Case]:
    cases = []
    for label, (length, rows, reach) in TABLES.items():
        for axis, beside in ((0, (2,)), (1, (2, 3)), (2, (1, 2)), (0, ())):
            along = len(rows) if transposed else length
            shape = (*beside[:axis], along, *beside[axis:])
            attributes: dict[str, Hashable] = {"axis": axis, "reach": reach}
            if transposed:
                attributes["size"] = length
            name = f"{label} along axis {axis} of {len(shape)}"
            cases.append(Case(name, _make(shape, rows, False), FLOATS, attributes, smooth=True))  # type: ignore[arg-type]
    length, rows, reach = TABLES["twice as long"]
    many = {"axis": 1, "reach": reach, **({"size": length} if transposed else {})}
    large = _make((151, len(rows) if transposed else length, 149), rows, False)
    cases.append(Case("large", large, FLOATS, many))  # type: ignore[arg-type]
    special = {"axis": 1, "reach": reach, **({"size": length} if transposed else {})}
    shape = (2, len(rows) if transposed else length, 2)
    cases.append(Case("specials", _make(shape, rows, True), FLOATS, special))  # type: ignore[arg-type]
    return cases


CASES: dict[str, list[Case]] = {"resample": _cases(False), "spread": _cases(True)}
