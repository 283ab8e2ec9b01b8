"""Depalettising against the bits of one long number."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nnc_core.base import dtype as dt
from nnc_core.base.errors import AttributeValueError, DTypeError, Error, ShapeError
from nnc_core.operator import OPERATORS
from nnc_core.type import Dim, TensorSpec
from tests.operator.host import arguments, call, cases, host

U8, F32 = dt.uint8, dt.float32


def test_depalettise_by_the_bits_of_one_number(rng) -> None:
    for example in cases("depalettise", dtypes=(dt.int32, dt.bfloat16, dt.float16, dt.float64)):
        (codes, palette), how = arguments(example, rng)
        bits, shape, block = how["bits"], how["shape"], how["block"]
        found = call(example.op, codes, palette, *how.values())
        assert found.shape == shape and found.dtype == palette.dtype
        if found.size > 1000:
            continue
        stream = int.from_bytes(codes.tobytes(), "little")
        expected = [palette[i // block, (stream >> (i * bits)) % 2**bits] for i in range(math.prod(shape))]
        assert np.array(expected, palette.dtype).tobytes() == found.tobytes(), str(example)


def test_five_bits_across_bytes_by_hand() -> None:
    """1, 2 and 31 are 00001, 00010 and 11111: from the lowest bit on 10000 01000 11111."""
    codes = np.array([0b01000001, 0b01111100], np.uint8)
    palette = np.arange(32, dtype=np.float32)[None] * 10
    assert host("depalettise", codes, palette, bits=5, shape=(3,), block=9).tolist() == [10, 20, 310]


WRONG = {
    "bits": (U8, (2,), F32, (1, 8), 3, (4,), 4, AttributeValueError, "bits 3 is none of 4, 5, 6, 7, 8"),
    "true bits": (U8, (2,), F32, (1, 2), True, (4,), 4, AttributeValueError, "bits True"),
    "block": (U8, (2,), F32, (1, 16), 4, (4,), 0, AttributeValueError, "block 0"),
    "codes of another dtype": (dt.int8, (2,), F32, (1, 16), 4, (4,), 4, DTypeError, "not uint8"),
    "booleans": (U8, (2,), dt.boolean, (1, 16), 4, (4,), 4, DTypeError, "not of real numbers"),
    "complex": (U8, (2,), dt.complex64, (1, 16), 4, (4,), 4, DTypeError, "not of real numbers"),
    "too many codes": (U8, (3,), F32, (1, 16), 4, (4,), 4, ShapeError, r"expected shape \(2,\) for 4 elements of 4"),
    "codes with axes": (U8, (1, 2), F32, (1, 16), 4, (4,), 4, ShapeError, "expected shape"),
    "too few rows": (U8, (3,), F32, (1, 16), 4, (5,), 4, ShapeError, r"expected shape \(2, 16\)"),
    "too few entries": (U8, (5,), F32, (1, 128), 8, (5,), 5, ShapeError, r"expected shape \(1, 256\)"),
    "a negative size": (U8, (2,), F32, (1, 16), 4, (-1,), 4, AttributeValueError, "-1"),
    "an unknown size": (U8, (2,), F32, (1, 16), 4, (Dim("n"),), 4, AttributeValueError, "sizes should be known"),
}  # fmt: skip


@pytest.mark.parametrize("label", WRONG)
def test_errors(label: str) -> None:
    codes, held, palette, rows, bits, shape, block, kind, text = WRONG[label]
    op = OPERATORS["depalettise"]
    with pytest.raises(kind, match=text) as caught:
        op.infer(TensorSpec(held, codes), TensorSpec(rows, palette), bits, shape, block)
    assert isinstance(caught.value, Error)
