"""References of products of 8-bit integers against products of whole numbers."""

from __future__ import annotations

import numpy as np
import pytest

from nnc_core.base import dtype as dt
from nnc_core.base.errors import DTypeError
from nnc_core.operator import OPERATORS
from nnc_core.type import TensorSpec
from tests.operator.host import arguments, call, cases, host


def test_matmul_integer_by_whole_numbers(rng) -> None:
    for example in cases("matmul_integer"):
        (a, b), how = arguments(example, rng)
        x, y = (np.swapaxes(z, -1, -2) if turned else z for z, turned in zip((a, b), how.values(), strict=True))
        wanted = np.matmul(x.astype(np.int64), y.astype(np.int64))
        np.testing.assert_array_equal(call(example.op, a, b, *how.values()), wanted, err_msg=example.case.label)


def test_conv_integer_is_a_convolution_of_float64(rng) -> None:
    for example in cases("conv_integer", large=False):
        (x, kernel), how = arguments(example, rng)
        wanted = host("conv", x.astype(np.float64), kernel.astype(np.float64), **how)
        found = call(example.op, x, kernel, *how.values())
        assert found.dtype == np.int32
        np.testing.assert_array_equal(found, wanted, err_msg=example.case.label)


def test_sums_wrap_around() -> None:
    ones = np.full((1, 40_000), 255, np.uint8)
    assert host("matmul_integer", ones, ones, transpose_a=False, transpose_b=True) == 255 * 255 * 40_000 - 2**32


@pytest.mark.parametrize("name", ["matmul_integer", "conv_integer"])
def test_only_integers_of_8_bits(name) -> None:
    slide = (1, 1), ((0, 0), (0, 0)), (1, 1), 1, "NHWC"
    shape, how = ((2, 2), (False, False)) if name == "matmul_integer" else ((1, 1, 1, 1), slide)
    with pytest.raises(DTypeError, match="needs int8 or uint8, not int16"):
        OPERATORS[name].infer(TensorSpec(shape, dt.int8), TensorSpec(shape, dt.int16), *how)
