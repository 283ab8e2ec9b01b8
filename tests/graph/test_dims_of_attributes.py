"""Dimensions in attributes are changed where they stand: in tuples, named tuples and specs."""

from __future__ import annotations

from typing import NamedTuple

from nnc_core.base import dtype as dt
from nnc_core.type import Dim, TensorSpec, map_dims


class Named(NamedTuple):
    size: object
    axis: int


def test_dimensions_become_numbers_and_all_else_stays() -> None:
    n = Dim("n")
    spec = TensorSpec((n, 2), dt.float32)
    assert map_dims(((n, 1), spec, "n"), lambda d: 5) == ((5, 1), TensorSpec((5, 2), dt.float32), "n")


def test_named_tuples_keep_their_kind() -> None:
    changed = map_dims((Named(Dim("n"), 1),), lambda d: 3)
    assert isinstance(changed[0], Named) and changed[0] == Named(3, 1)
