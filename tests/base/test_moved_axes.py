"""Axes move as NumPy moves them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from nnc_core.base.moved_axes import moved

X = np.zeros((2, 3, 4, 5))


@pytest.mark.parametrize(("source", "target"), [*product(range(-4, 4), repeat=2)])
def test_one_axis(source: int, target: int) -> None:
    assert moved(X, source, target).strides == np.moveaxis(X, source, target).strides


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_neighbours(count: int) -> None:
    for source, target in product(range(5 - count), repeat=2):
        rows, places = range(source, source + count), range(target, target + count)
        assert moved(X, source, target, count).strides == np.moveaxis(X, rows, places).strides


def test_what_stays_is_the_array_itself() -> None:
    assert moved(X, 3, -1) is X
    scalar = np.zeros(())
    assert moved(scalar, 0, 0, 0) is scalar
