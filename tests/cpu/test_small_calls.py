"""Small eager calls that take a shorter way give what the longer one gives."""

from __future__ import annotations

from itertools import product
from math import inf, nan
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.dtype import INTEGERS, DType
from nnc_core.base.errors import AttributeValueError
from nnc_core.base.fast_path import closed
from nnc_cpu import casts

ODD = (0.0, -0.0, 0.6, -0.6, 127.5, 128.0, -128.9, -129.0, 255.9, 256.0, 2.0**31, -(2.0**31), 2.0**32, 2.0**63,
       -(2.0**63), 2.0**64, 1e30, inf, -inf, nan)  # fmt: skip


@pytest.mark.parametrize("source", ["float32", "float64"])
@pytest.mark.parametrize("target", INTEGERS, ids=str)
def test_few_floats_become_the_integers_that_many_do(source: str, target: DType) -> None:
    pairs = np.array([*product(ODD, ODD)], source)
    wanted = casts.converted(pairs, target)
    for row, expected in zip(pairs, wanted, strict=True):
        np.testing.assert_array_equal(casts.converted(row, target), expected)
        np.testing.assert_array_equal(nnc.asarray(row).astype(target).numpy(), expected)


def test_few_floats_keep_their_shape_and_lie_packed() -> None:
    few = np.arange(6.0).reshape(2, 3)
    for x in (few, few.T, few[:, ::2], few[0, 0], few[:0]):
        found = casts.converted(np.asarray(x), np.dtype(np.int32))
        assert found.flags.c_contiguous and found.shape == x.shape
        np.testing.assert_array_equal(found, x)


ROWS: list[tuple[Any, ...]] = [(5,), (0,), (-3,), (2, 9), (9, 2), (9, 2, -3), (1, 10, 4), (-5, 5, 7), (3, 3), (True,),
                               (2, 7, True)]


@pytest.mark.parametrize("given", ROWS, ids=str)
def test_whole_numbers_in_a_row(given: tuple[Any, ...]) -> None:
    for _ in range(3):
        found = nnc.arange(*given)
        with closed():
            slow = nnc.arange(*given)
        assert found.dtype == slow.dtype == "int64"
        np.testing.assert_array_equal(found.numpy(), np.arange(*map(int, given)))
        np.testing.assert_array_equal(slow.numpy(), found.numpy())
    found[...] = 7
    np.testing.assert_array_equal(nnc.arange(*given).numpy(), np.arange(*map(int, given)))


def test_rows_that_cannot_be() -> None:
    with pytest.raises(AttributeValueError, match="step 0"):
        nnc.arange(1, 5, 0)
    with pytest.raises(AttributeValueError, match="does not fit"):
        nnc.arange(2**64, 2**64 + 3)
    assert nnc.arange(2**62, 2**62 + 2).numpy().tolist() == [2**62, 2**62 + 1]


def test_sums_that_change_nothing_are_in_memory_of_their_own() -> None:
    a, b = nnc.ones((3, 4)), nnc.ones((4, 5))
    for _ in range(5):
        np.testing.assert_array_equal(nnc.einsum("ij,jk->ik", a, b).numpy(), np.full((3, 5), 4.0))
    for _ in range(5):
        same = nnc.einsum("ij->ij", a)
        same[0, 0] = 5
    assert a[0, 0] == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("exponent", [2, 2.0])
def test_squares_are_rounded_once(dtype: Any, exponent: float) -> None:
    host = np.array([0.0, -0.0, 1.1, -3.3, 1e-30, 1e30, np.inf, -np.inf, np.nan], dtype)
    found = (nnc.asarray(host) ** exponent).numpy()
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(found, host * host)
    assert found.dtype == dtype
