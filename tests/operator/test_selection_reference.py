"""References of operators that count, against plain Python."""

from __future__ import annotations

import numpy as np
import pytest

from nnc_core.base import dtype as dt
from nnc_core.base.errors import AttributeValueError, ShapeError
from nnc_core.operator import OPERATORS
from nnc_core.type import Dim, TensorSpec
from tests.operator.host import arguments, call, cases, host

DTYPES = (dt.boolean, dt.int8, dt.int32, dt.uint64, dt.bfloat16, dt.float16, dt.float32, dt.float64)


def groups(x):
    """Lists of positions in the flattened x, one for each distinct value, by rising value; NaN comes last."""
    found: list[tuple[float, list[int]]] = []
    for position, value in enumerate(float(v) for v in x.ravel()):
        mine = next((places for v, places in found if v == value), None)
        if mine is None:
            found.append((value, [position]))
        else:
            mine.append(position)
    return [places for _, places in sorted(found, key=lambda t: (t[0] != t[0], t[0] if t[0] == t[0] else t[1][0]))]


def indices(x, size):
    return np.array([index for index in np.ndindex(*x.shape) if x[index]], np.int64).reshape(-1, x.ndim)


def numbers(x):
    out = np.empty(x.size, np.int64)
    for number, places in enumerate(groups(x)):
        out[places] = number
    return out.reshape(x.shape)


SECOND = {
    "nonzero": indices,
    "unique_index": lambda x, size: np.array([places[0] for places in groups(x)], np.int64),
    "unique_counts": lambda x, size: np.array([len(places) for places in groups(x)], np.int64),
    "unique_inverse": numbers,
}


@pytest.mark.parametrize("name", SECOND)
def test_counting_by_plain_loops(name, rng) -> None:
    for example in cases(name, dtypes=DTYPES):
        (x,), attributes = arguments(example, rng)
        if x.size > 100 and example.dtype != dt.float32:
            continue
        found = call(example.op, x, *attributes.values())
        expected = SECOND[name](x, **attributes)
        assert found.dtype == np.int64 and found.shape == expected.shape, str(example)
        np.testing.assert_array_equal(found, expected, err_msg=str(example))


def test_the_size_of_the_result_may_be_unknown() -> None:
    n = Dim("n")
    x = TensorSpec((3, Dim("m")), dt.float32)
    assert OPERATORS["nonzero"].infer(x, n) == TensorSpec((n, 2), dt.int64)
    assert OPERATORS["unique_counts"].infer(x, n * 1) == TensorSpec((n,), dt.int64)


def test_another_count_than_promised_is_an_error() -> None:
    with pytest.raises(ShapeError, match="2 elements were found where there should be 3"):
        host("nonzero", np.array([1, 0, 1]), size=3)
    with pytest.raises(ShapeError, match="1 elements"):
        host("unique_index", np.array([1, 1]), size=2)


def test_bad_input() -> None:
    with pytest.raises(ShapeError, match="no axis"):
        OPERATORS["nonzero"].infer(TensorSpec((), dt.float32), 1)
    with pytest.raises(AttributeValueError, match="size -1"):
        OPERATORS["unique_index"].infer(TensorSpec((2,), dt.float32), -1)


@pytest.mark.parametrize("name", ["nonzero", "unique_index", "unique_counts"])
def test_the_size_is_an_attribute_of_that_name(name) -> None:
    op = OPERATORS[name]
    assert op.data_dependent and op.host and "size" in op.attributes and not op.differentiable
    assert not OPERATORS["unique_inverse"].data_dependent and OPERATORS["unique_inverse"].host
