"""Padding in every mode, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.operator import OPERATORS
from nnc_core.stacks import stack_for
from nnc_core.type import Dim
from tests.tensors.against_numpy import assert_derivatives, assert_same, assert_same_in_every_mode
from tests.tensors.faults import fails

MODES: list[tuple[str, dict[str, Any]]] = [
    ("constant", {}), ("constant", {"constant_values": 3}), ("constant", {"constant_values": (3, 7)}), ("edge", {}),
    ("constant", {"constant_values": ((1, 2), (3, 4))}), ("reflect", {}), ("symmetric", {}), ("wrap", {}),
    ("reflect", {"reflect_type": "odd"}), ("symmetric", {"reflect_type": "odd"}), ("linear_ramp", {}),
    ("linear_ramp", {"end_values": ((5, 2), (0, 9))}), ("maximum", {}), ("minimum", {"stat_length": 2}), ("mean", {}),
    ("mean", {"stat_length": ((1, 3), (9, 2))}), ("median", {}), ("median", {"stat_length": (2, 3)}),
]  # fmt: skip
each_mode = pytest.mark.parametrize(("mode", "options"), MODES, ids=str)
WIDTHS: list[Any] = [1, (2, 1), ((0, 2), (1, 0)), ((5, 7), (11, 3)), 0, {-1: (2, 3)}]


def host(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    return np.asarray(np.random.default_rng(7).integers(0, 20, shape), dtype)


@each_mode
def test_gives_what_numpy_gives(device: str, mode: str, options: dict[str, Any]) -> None:
    x = host((3, 4))
    widths = WIDTHS if device != "opencl:0" else WIDTHS[2:4]
    for width in widths:
        assert_same(nnc.pad(nnc.asarray(x), width, mode, **options), np.pad(x, width, mode, **options))


@each_mode
@pytest.mark.parametrize("dtype", ["float64", "int8", "uint8", "int64"])
def test_other_dtypes(mode: str, options: dict[str, Any], dtype: str) -> None:
    for shape in ((3, 4), (1, 5), (2, 1)):
        x = host(shape, dtype)
        for width in WIDTHS[:4]:
            with np.errstate(all="ignore"):
                wanted = np.pad(x, width, mode, **options)
            assert_same(nnc.pad(nnc.asarray(x), width, mode, **options), wanted)


@each_mode
def test_in_every_mode(mode: str, options: dict[str, Any]) -> None:
    assert_same_in_every_mode(lambda xp, x: xp.pad(x, ((1, 2), (3, 0)), mode, **options), (host((3, 4)),))


@each_mode
def test_derivatives(mode: str, options: dict[str, Any]) -> None:
    x = np.random.default_rng(3).normal(size=(3, 4))
    for width in (((1, 2), (3, 0)), ((5, 0), (0, 7))):
        assert_derivatives(lambda xp, x, width=width: xp.pad(x, width, mode, **options), (x,))


def test_whole_numbers_do_not_overflow_on_a_ramp() -> None:
    ends = np.iinfo(np.int64)
    x = nnc.asarray(np.array([ends.max, 0, ends.min]))
    found = nnc.pad(x, (2, 2), "linear_ramp", end_values=(ends.min, ends.max)).tolist()
    assert found[0] == ends.min and found[-1] == ends.max and abs(found[1]) <= 1 and abs(found[-2]) <= 1
    tall = nnc.pad(nnc.asarray(np.array([2**64 - 1], np.uint64)), (4, 0), "linear_ramp")
    assert tall.tolist() == [0, 2**62 - 1, 2**63 - 1, 3 * 2**62 - 1, 2**64 - 1]


@pytest.mark.parametrize("mode", ["mean", "median", "edge", "wrap"])
def test_booleans(mode: str) -> None:
    x = np.array([[True, False, False, True], [False, False, False, True]])
    found = nnc.pad(nnc.asarray(x), 1, mode)  # type: ignore[arg-type]
    assert found.dtype == nnc.bool
    np.testing.assert_array_equal(found.numpy(), np.pad(x, 1, mode))  # type: ignore[call-overload]


def test_a_median_of_nan_is_nan() -> None:
    x = np.array([1.0, np.nan, 2.0], np.float32)
    assert_same(nnc.pad(nnc.asarray(x), 1, "median"), np.pad(x, 1, "median"))


def test_numbers_become_the_dtype(device: str) -> None:
    assert nnc.pad(nnc.ones(1, dtype="int32"), 1, constant_values=(2.7, -1.2)).tolist() == [2, 1, -1]
    assert nnc.pad(nnc.asarray([True]), 1).tolist() == [False, True, False]
    assert nnc.pad(nnc.asarray([True]), 1, value=True).tolist() == [True, True, True]
    if "bfloat16" in stack_for(device).device.spec.dtypes:
        padded = nnc.pad(nnc.ones(1, dtype="bfloat16"), (0, 1), value=0.1)
        assert padded.astype("float32").tolist() == [1, 0.10009765625]
    assert nnc.pad(nnc.asarray(2.0), 3).tolist() == 2.0


def test_one_number_all_around_is_one_operator() -> None:
    x = nnc.var_arr("x", shape=(2, 3))
    y = nnc.pad(x, ((1, 0), (2, 2)), constant_values=5)
    assert y._value.step is not None and y._value.op is OPERATORS["pad"] and y._value.inputs == (x._value,)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap", "maximum"])
def test_named_dimensions(mode: str) -> None:
    x = nnc.var_arr("x", shape=(Dim("n"), 3))
    y = nnc.pad(x, ((2, 1), (1, 0)), mode)
    compiled = nnc.export(inputs={"x": x}, outputs={"y": y}).compile()
    for rows in (3, 6):
        given = host((rows, 3))
        (found,) = compiled(x=nnc.asarray(given)).values()
        assert_same(found, np.pad(given, ((2, 1), (1, 0)), mode))


@pytest.mark.parametrize(("code", "kind", "said"), [
    (lambda x: nnc.pad(x, 1, "mirror"), ValueError, "mode 'mirror' is none of constant,"),
    (lambda x: nnc.pad(x, -1), ValueError, "pad_width -1 has -1"),
    (lambda x: nnc.pad(x, 1.5), ValueError, "pad_width 1.5 has 1.5"),
    (lambda x: nnc.pad(x, ((1, 2), (3, 4), (5, 6))), ValueError, "a pair for each of 2 axes"),
    (lambda x: nnc.pad(x, 1, "edge", value=3), TypeError, "mode 'edge' has no option value"),
    (lambda x: nnc.pad(x, 1, value=3, constant_values=3), TypeError, "both value and constant_values"),
    (lambda x: nnc.pad(x, 1, "reflect", reflect_type="other"), ValueError, "neither 'even' nor 'odd'"),
    (lambda x: nnc.pad(x, 1, "maximum", stat_length=0), ValueError, "nothing has no maximum"),
    (lambda x: nnc.pad(x > 0, 1, "linear_ramp"), TypeError, "computes with numbers, not booleans"),
    (lambda x: nnc.pad(x > 0, 1, "reflect", reflect_type="odd"), TypeError, "of the odd kind computes with numbers"),
    (lambda x: nnc.pad(x[:0], 1, "wrap"), ValueError, "axis 0 of float32[0,3] is empty"),
    (lambda x: nnc.pad(x, {2: 1}), ValueError, "axis 2 is out of range"),
])  # fmt: skip
def test_errors(x: nnc.Tensor, code: Any, kind: type[BaseException], said: str) -> None:
    with fails(kind, said, operator="pad"):
        code(x)
