"""Numbers of at most 8 bits in loop nests, held to ml_dtypes: every bit pattern, and floats of any bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nnc_core.base import dtype as dt
from nnc_core.base.command import Command
from nnc_core.base.dtype import STORAGE, STORED_FLOATS, STORED_INTEGERS, bits_of
from nnc_core.base.layout import Layout
from nnc_core.codegen.interpret import interpret
from nnc_core.operator import OPERATORS
from nnc_core.operator.loops import elementwise_nest

CAST = OPERATORS["cast"]


def cast_by_nest(x: Any, dtype: Any) -> Any:
    command = Command("cast", (dtype,), (Layout.packed(x.shape, x.dtype),), (Layout.packed(x.shape, dtype),))
    nest = elementwise_nest(CAST.scalar, command)
    assert all(d not in STORAGE for argument in nest.arguments for d in [argument.dtype]), "renderers see bytes"
    out = np.zeros(x.shape, dtype)
    interpret(nest, [x.copy().view(np.uint8), out.view(np.uint8)])
    return out


def all_of(dtype: Any) -> Any:
    return np.arange(2 ** bits_of(dtype), dtype=np.uint8).view(dtype)


def floats() -> Any:
    """Any bits; sizes that matter; half way from one number of a storage dtype to the next."""
    rng = np.random.default_rng(0)
    anything = rng.integers(0, 2**32, 40_000, np.uint32).view(np.float32)
    usual = rng.standard_normal(20_000).astype(np.float32) * np.exp2(rng.integers(-20, 20, 20_000)).astype(np.float32)
    special = np.array([0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1e-45, 5.9e-39, 2.0**-127, 1e38], np.float32)
    found = [anything, usual, special]
    for dtype in STORED_FLOATS:
        numbers = np.unique(all_of(dtype).astype(np.float32))
        with np.errstate(over="ignore"):
            halves = (numbers[:-1] + numbers[1:]) / np.float32(2)
        found += [numbers, halves, np.nextafter(halves, np.float32(np.inf)), np.nextafter(halves, np.float32(-np.inf))]
    return np.concatenate(found)


@pytest.mark.parametrize("dtype", STORED_FLOATS, ids=str)
def test_floats_are_rounded_as_ml_dtypes_does(dtype: Any) -> None:
    with np.errstate(all="ignore"):
        for source in (np.float32, np.float64, np.float16, dt.bfloat16):
            x = floats().astype(source)
            wanted = x.astype(dtype).view(np.uint8)
            np.testing.assert_array_equal(cast_by_nest(x, dtype).view(np.uint8), wanted, str(source))
            np.testing.assert_array_equal(CAST.reference(x, dtype).view(np.uint8), wanted, str(source))


@pytest.mark.parametrize("dtype", STORED_FLOATS, ids=str)
def test_integers_and_booleans_become_floats_by_way_of_float32(dtype: Any) -> None:
    for x in (np.arange(-600, 600), np.arange(256, dtype=np.uint8), np.array([False, True]),
              np.array([2**63, 2**64 - 1], np.uint64)):
        with np.errstate(all="ignore"):
            wanted = x.astype(np.float32).astype(dtype).view(np.uint8)
        np.testing.assert_array_equal(cast_by_nest(x, dtype).view(np.uint8), wanted)


@pytest.mark.parametrize("dtype", STORAGE, ids=str)
def test_every_bit_pattern_is_read_as_ml_dtypes_does(dtype: Any) -> None:
    x = all_of(dtype)
    for target in (np.dtype(np.float32), np.dtype(np.float64), dt.float16, dt.bfloat16, dt.boolean):
        with np.errstate(all="ignore"):
            wanted = x.astype(np.float32) != 0 if target == dt.boolean else x.astype(np.float32).astype(target)
        found = cast_by_nest(x, target)
        assert found.dtype == target
        np.testing.assert_array_equal(np.signbit(found.astype(np.float64)), np.signbit(wanted.astype(np.float64)))
        np.testing.assert_array_equal(found.astype(np.float64), wanted.astype(np.float64))


@pytest.mark.parametrize("dtype", STORED_INTEGERS, ids=str)
def test_integers_of_few_bits_are_the_low_bits(dtype: Any) -> None:
    whole = np.arange(-40, 40)
    kept = whole.astype(np.uint8) & (2 ** bits_of(dtype) - 1)
    for x in (whole, whole.astype(np.int8), whole.astype(np.float32), whole + np.sign(whole) * 0.75):
        np.testing.assert_array_equal(cast_by_nest(x, dtype).view(np.uint8), kept)
        np.testing.assert_array_equal(CAST.reference(x, dtype).view(np.uint8), kept)
    np.testing.assert_array_equal(cast_by_nest(all_of(dtype), dt.int64), all_of(dtype).astype(np.int64))


@pytest.mark.parametrize("source", STORAGE, ids=str)
def test_from_each_to_each(source: Any) -> None:
    x = all_of(source)
    for target in STORAGE:
        with np.errstate(all="ignore"):
            wanted = CAST.reference(x, target)
        np.testing.assert_array_equal(cast_by_nest(x, target).view(np.uint8), wanted.view(np.uint8), str(target))
