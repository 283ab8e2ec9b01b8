"""Which dtype an operator computes in."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnc_core.base import dtype as dt
from nnc_core.base.config import config
from nnc_core.base.dtype import COMPLEX, DTYPES, FLOATS, INTEGERS, SIGNED, UNSIGNED
from nnc_core.base.errors import DTypeError, OperandError
from nnc_core.type import admit_numpy, default_for, promote, promote_number
from tests.operator.host import HOST, HostValue

ALL = tuple(DTYPES.values())
dtypes = st.sampled_from(ALL)

# The Array API's tables (2024.12, type promotion rules), row by column; "-" is not defined there.
SIGNED_BY_UNSIGNED = """
        uint8   uint16  uint32  uint64
int8    int16   int32   int64   -
int16   int16   int32   int64   -
int32   int32   int32   int64   -
int64   int64   int64   int64   -
"""
FLOAT_BY_FLOAT = """
          bfloat16  float16   float32   float64
bfloat16  bfloat16  float32   float32   float64
float16   float32   float16   float32   float64
float32   float32   float32   float32   float64
float64   float64   float64   float64   float64
"""
FLOAT_BY_COMPLEX = """
            complex64   complex128
bfloat16    complex64   complex128
float16     complex64   complex128
float32     complex64   complex128
float64     complex128  complex128
complex64   complex64   complex128
complex128  complex128  complex128
"""


def rows(table):
    head, *lines = table.strip("\n").splitlines()
    for line in lines:
        row, *results = line.split()
        for column, result in zip(head.split(), results, strict=True):
            yield row, column, result


@pytest.mark.parametrize(("a", "b", "expected"), [*rows(SIGNED_BY_UNSIGNED), *rows(FLOAT_BY_FLOAT),
                                                  *rows(FLOAT_BY_COMPLEX)])
def test_within_a_kind(a, b, expected) -> None:
    for pair in ((DTYPES[a], DTYPES[b]), (DTYPES[b], DTYPES[a])):
        if expected == "-":
            with pytest.raises(DTypeError, match="have no common integer dtype"):
                promote(*pair)
        else:
            assert promote(*pair) == DTYPES[expected]


@pytest.mark.parametrize("family", [SIGNED, UNSIGNED], ids=["signed", "unsigned"])
def test_within_a_family_the_wider_wins(family) -> None:
    for a, b in itertools.product(family, family):
        assert promote(a, b) == max(a, b, key=lambda d: d.itemsize)


def test_between_kinds_the_higher_kind_decides() -> None:
    for number in (*INTEGERS, *FLOATS):
        assert promote(dt.boolean, number) == promote(number, dt.boolean) == number
    for integer, real in itertools.product(INTEGERS, FLOATS):
        assert promote(integer, real) == promote(real, integer) == real
    for number, complex_ in itertools.product((dt.boolean, *INTEGERS), COMPLEX):
        assert promote(number, complex_) == promote(complex_, number) == complex_


@given(dtypes, dtypes)
def test_promotion_is_commutative_and_idempotent(a, b) -> None:
    assert promote(a, a) == a
    try:
        common = promote(a, b)
    except DTypeError:
        assert dt.uint64 in (a, b)
        return
    assert promote(b, a) == common
    assert promote(common, a) == promote(common, b) == common


@given(dtypes, dtypes, dtypes)
def test_promotion_is_associative_but_for_the_undefined(a, b, c) -> None:
    if dt.uint64 not in (a, b, c):
        assert promote(promote(a, b), c) == promote(a, promote(b, c))


def test_python_numbers_are_weak() -> None:
    for dtype in ALL:
        assert promote_number(dtype, True) == dtype
        assert promote_number(dtype, 3) == (dt.int64 if dtype == dt.boolean else dtype)
        assert promote_number(dtype, 2.5) == (dtype if dtype in FLOATS + COMPLEX else dt.float32)
        wide = dtype in (dt.float64, dt.complex128)
        assert promote_number(dtype, 2.5j) == (dt.complex128 if wide else dt.complex64)


def test_the_default_float_is_a_setting() -> None:
    with config.using(default_float="float64"):
        assert default_for(1.0) == promote_number(dt.int8, 1.0) == dt.float64
        assert promote_number(dt.float16, 1.0) == dt.float16
        assert HOST.exp(HostValue(np.arange(3))).dtype == dt.float64
    assert HOST.exp(HostValue(np.arange(3))).dtype == dt.float32


def test_numpy_scalars_are_as_strong_as_arrays() -> None:
    assert promote_number(dt.float32, np.float64(1)) == dt.float64
    assert promote_number(dt.int8, np.int32(1)) == dt.int32
    assert promote_number(dt.float16, ml_dtypes.bfloat16(1)) == dt.float32
    assert promote_number(dt.float32, np.complex128(1)) == dt.complex128
    assert promote_number(dt.float64, np.complex64(1)) == dt.complex128
    with pytest.raises(DTypeError, match=r"longdouble|float128"):
        promote_number(dt.float32, np.longdouble(1))


def test_numbers_on_their_own() -> None:
    assert (default_for(True), default_for(1), default_for(1.0)) == (dt.boolean, dt.int64, dt.float32)
    assert default_for(1j) == dt.complex64
    for wrong in ("1", None, [1]):
        with pytest.raises(OperandError, match="no array and no number"):
            default_for(wrong)


@pytest.mark.parametrize(("given_", "expected"), [
    (np.float32, dt.float32), ("float16", dt.float16), ("bfloat16", dt.bfloat16), (ml_dtypes.bfloat16, dt.bfloat16),
    (bool, dt.boolean), (int, dt.int64), (float, dt.float64), (np.dtype(">i4"), dt.int32), ("u1", dt.uint8),
])  # fmt: skip
def test_dtypes_as_users_write_them(given_, expected) -> None:
    assert admit_numpy(given_) == expected
    assert admit_numpy(given_).isnative


@pytest.mark.parametrize("wrong", ["no such", np.clongdouble, np.dtype("S3"), object, "datetime64[s]", np.longdouble])
def test_dtypes_that_are_none_of_ours(wrong) -> None:
    with pytest.raises(DTypeError, match=r"one of bool, int8"):
        admit_numpy(wrong)


def test_operators_promote_their_inputs() -> None:
    small, wide = HostValue(np.arange(3, dtype=np.int8)), HostValue(np.arange(3, dtype=np.float64))
    assert HOST.add(small, wide).dtype == dt.float64
    assert HOST.add(small, 300).dtype == dt.int8
    assert HOST.divide(small, small).dtype == dt.float32
    assert HOST.less(small, wide).dtype == dt.boolean
    assert HOST.where(HOST.less(small, 1), small, 0.5).dtype == dt.float32
    assert HOST.concat(small, wide, axis=0).dtype == dt.float64
    assert HOST.matmul(HostValue(np.eye(2, dtype=np.uint8)), HostValue(np.eye(2, dtype=np.int8))).dtype == dt.int16
