"""The dtype of a result, which is the same in every mode: the Array API's rules, with weak Python numbers."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.dtype import DTYPES, INTEGERS
from nnc_core.stacks import stack_for
from tests.tensors.faults import fails

OPERATORS = {"+": operator.add, "*": operator.mul, "/": operator.truediv, "<": operator.lt, "==": operator.eq,
             "maximum": nnc.maximum}  # fmt: skip
NUMBERS = (True, 2, -1, 0.5)


def outcome(f: Callable[[], nnc.Tensor]) -> Any:
    """What is left of a call: the spec and the elements, or the kind of the error."""
    try:
        y = f()
    except nnc.Error as error:
        return type(error)
    spec = y.spec
    host = y.numpy()
    assert (host.shape, host.dtype) == (spec.shape, spec.dtype), "the spec is that of the elements"
    return spec, host.tobytes()


def deferred(f: Callable[[], nnc.Tensor]) -> nnc.Tensor:
    with nnc.deferred():
        return f()


@pytest.mark.parametrize("a", DTYPES)
@pytest.mark.parametrize("name", OPERATORS)
def test_eager_and_deferred_agree_for_every_pair_of_dtypes(device: str, name: str, a: str) -> None:
    f, known = OPERATORS[name], stack_for(device).device.spec.dtypes
    for b in DTYPES:
        if a in known and b in known:
            x = nnc.asarray(np.array([0, 1, 1]).astype(DTYPES[a]))
            y = nnc.asarray(np.array([1, 1, 0]).astype(DTYPES[b]))
            with np.errstate(all="ignore"):
                wanted = outcome(lambda: f(x, y))  # noqa: B023
                assert outcome(lambda: deferred(lambda: f(x, y))) == wanted, f"{a} {name} {b}"  # noqa: B023
                compiled = outcome(lambda: nnc.jit(f)(x, y))  # noqa: B023
            assert compiled == wanted, f"{a} {name} {b}, compiled"


@pytest.mark.parametrize("name", OPERATORS)
def test_eager_and_deferred_agree_for_every_dtype_and_number(device: str, name: str) -> None:
    f, known = OPERATORS[name], stack_for(device).device.spec.dtypes
    for a in DTYPES:
        for number in NUMBERS:
            if a in known:
                x = nnc.asarray(np.array([0, 1, 1]).astype(DTYPES[a]))
                for g in (lambda: f(x, number), lambda: f(number, x)):  # noqa: B023
                    wanted = outcome(g)
                    assert outcome(lambda: deferred(g)) == wanted, f"{a} {name} {number}"  # noqa: B023


@pytest.mark.parametrize(("a", "b", "wanted"), [
    ("int8", "int16", "int16"), ("uint8", "int8", "int16"), ("uint32", "int64", "int64"), ("int32", "uint32", "int64"),
    ("float16", "float32", "float32"), ("float32", "float64", "float64"), ("bfloat16", "float16", "float32"),
    ("bfloat16", "float32", "float32"), ("int64", "float32", "float32"), ("int64", "bfloat16", "bfloat16"),
    ("bool", "int8", "int8"), ("bool", "float16", "float16"), ("uint64", "float32", "float32"),
])  # fmt: skip
def test_pairs(a: str, b: str, wanted: str) -> None:
    with nnc.use_device("strict:0"):
        for first, second in ((a, b), (b, a)):
            x, y = nnc.ones(2, dtype=first), nnc.ones(2, dtype=second)
            assert (x + y).dtype == DTYPES[wanted] and nnc.concat([x, y]).dtype == DTYPES[wanted]
            assert nnc.where(x > 0, x, y).dtype == DTYPES[wanted]


@pytest.mark.parametrize(("dtype", "number", "wanted"), [
    ("float32", 2, "float32"), ("float16", 2.5, "float16"), ("bfloat16", 0.1, "bfloat16"), ("int8", 2, "int8"),
    ("int8", 2.5, "float32"), ("int64", 0.5, "float32"), ("uint8", True, "uint8"), ("bool", 2, "int64"),
    ("bool", 1.5, "float32"), ("float64", 1, "float64"),
])  # fmt: skip
def test_numbers_are_weak_but_their_kind_is_not(dtype: str, number: Any, wanted: str) -> None:
    with nnc.use_device("strict:0"):
        x = nnc.ones(2, dtype=dtype)
        for y in (x + number, number + x, x * number, nnc.maximum(x, number), nnc.where(x > 0, x, number)):
            assert y.dtype == DTYPES[wanted]


def test_numpys_numbers_are_strong(device: str) -> None:
    x = nnc.ones(2, dtype="float16")
    assert (x + np.float32(1)).dtype == nnc.float32 and (x + np.int64(1)).dtype == nnc.float16


def test_there_is_no_common_dtype_of_signed_and_unsigned_64_bits(device: str) -> None:
    a, b = nnc.ones(2, dtype="int64"), nnc.ones(2, dtype="uint64")
    with fails(TypeError, "int64", "uint64", operator="add"):
        a + b
    with nnc.deferred(), fails(TypeError, "uint64", operator="add"):
        a + b


@pytest.mark.parametrize(("dtype", "number"), [("int8", 200), ("uint8", -1), ("int64", 2**63), ("int32", 2**40)])
def test_an_integer_that_does_not_fit_is_an_error(device: str, dtype: str, number: int) -> None:
    x = nnc.ones(2, dtype=dtype)
    for f in (lambda: x + number, lambda: number * x, lambda: nnc.full((2,), number, dtype=dtype)):
        with fails(ValueError, str(number), dtype, line=False):
            f()
        with nnc.deferred(), fails(ValueError, str(number), line=False):
            f()


def test_division_of_integers_is_in_the_default_float(device: str) -> None:
    x = nnc.asarray(np.array([1, 2]))
    assert (x / 2).tolist() == [0.5, 1.0] and (x / 2).dtype == nnc.float32 and nnc.exp(x).dtype == nnc.float32
    if "float64" in stack_for(device).device.spec.dtypes:
        with nnc.config.using(default_float="float64"):
            assert (x / 2).dtype == nnc.float64 and nnc.asarray([1.0]).dtype == nnc.float64


def test_numpy_arrays_and_lists_beside_tensors(device: str) -> None:
    x = nnc.asarray([1.0, 2.0])
    host = np.array([10, 20], np.float32)
    listed: Any = [10.0, 20.0]
    for y in (x + host, host + x, x + listed, listed + x, nnc.add(x, host), nnc.add(host, x)):
        assert isinstance(y, nnc.Tensor) and y.tolist() == [11, 22] and y.device.id == device
    with pytest.raises(TypeError):
        x + "a"  # type: ignore[operator]
    with pytest.raises(TypeError):
        x + None  # type: ignore[operator]


@pytest.mark.parametrize("dtype", [d.name for d in INTEGERS])
def test_sums_of_small_integers_are_wide(dtype: str) -> None:
    with nnc.use_device("strict:0"):
        total = nnc.sum(nnc.full((300,), 100, dtype=dtype))
    assert total.item() == 30_000 and total.dtype == (nnc.uint64 if dtype.startswith("u") else nnc.int64)


def test_comparisons_give_booleans_and_numbers_are_true_unless_zero(device: str) -> None:
    x = nnc.asarray([1.0, -1.0])
    assert (x > 0).dtype == nnc.bool and ((x > 0) & (x < 2)).tolist() == [True, False]
    assert (~(x > 0)).tolist() == [False, True] and ((x > 0) ^ True).tolist() == [False, True]
    with fails(TypeError, "float32", operator="bitwise_and"):
        x & x
    numbers = nnc.asarray([0.0, 2.0])
    assert nnc.logical_and(x, numbers).tolist() == [False, True] and nnc.logical_not(numbers).tolist() == [True, False]
    assert nnc.logical_or(nnc.asarray([0, 1]), numbers).tolist() == [False, True]
