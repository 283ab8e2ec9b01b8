"""Comparisons with Python numbers that the dtype of an array cannot hold, as NumPy answers them."""

import operator

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import AttributeValueError

FUNCTIONS = {operator.eq: nnc.equal, operator.ne: nnc.not_equal, operator.lt: nnc.less, operator.le: nnc.less_equal,
             operator.gt: nnc.greater, operator.ge: nnc.greater_equal}  # fmt: skip
NUMBERS = (-(10**30), -(2**63) - 1, -129, -1, 0, 127, 128, 255, 256, 2**63, 2**64, 10**30)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "int64", "uint64"])
@pytest.mark.parametrize("compare", FUNCTIONS, ids=lambda f: f.__name__)
def test_the_result_is_that_of_the_values(compare, dtype):
    limits = np.iinfo(dtype)
    host = np.array([[limits.min, 0, 5, limits.max]], dtype)
    x = nnc.asarray(host)
    for number in NUMBERS:
        for _ in range(2):
            for result, expected in (
                (compare(x, number), compare(host, number)),
                (compare(number, x), compare(number, host)),
                (FUNCTIONS[compare](x, number), compare(host, number)),
                (FUNCTIONS[compare](number, x), compare(number, host)),
            ):
                np.testing.assert_array_equal(np.asarray(result), expected)
                assert result.dtype == nnc.bool


def test_compiled_and_deferred_too():
    host = np.array([0, 5, 255], np.uint8)
    x = nnc.asarray(host)
    np.testing.assert_array_equal(np.asarray(nnc.jit(lambda a: (a >= -1) & (a < 300) & (a != 256))(x)), [True] * 3)
    with nnc.deferred():
        nothing = (x < -1) | (x == 256)
    np.testing.assert_array_equal(np.asarray(nothing), [False] * 3)


def test_arithmetic_with_such_a_number_stays_an_error():
    x = nnc.asarray(np.array([0, 5, 255], np.uint8))
    with pytest.raises(AttributeValueError, match="does not fit"):
        x + 256
