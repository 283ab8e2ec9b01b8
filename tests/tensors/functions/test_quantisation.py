"""Quantised numbers and their products: the formulas of ONNX, in eager and compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.errors import AttributeValueError, DTypeError, ShapeError

WAYS: dict[str, Callable[..., Any]] = {"eager": lambda f: f, "compiled": nnc.jit}


ORDERS = {"NHWC": ((0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 2, 3)), "NCHW": ((0, 3, 1, 2), (3, 2, 0, 1), (0, 2, 3, 1)),
          "CHWN": ((3, 1, 2, 0), (2, 0, 1, 3), (3, 1, 2, 0))}
"""Axes of images and kernels with channels last as other layouts have them, and those of results back."""


def integers(dtype: Any, *shape: int) -> Any:
    ends = np.iinfo(dtype)
    return np.random.default_rng(sum(shape)).integers(ends.min, ends.max, shape, endpoint=True).astype(dtype)


def floats(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("way", WAYS)
def test_quantize_and_back(way: str) -> None:
    x = floats(5, 7) * 50
    f = WAYS[way](lambda x: nnc.quantize_linear(x, 0.25, 3, dtype="uint8"))
    wanted = np.clip(np.rint(x / np.float32(0.25)) + 3, 0, 255).astype(np.uint8)
    np.testing.assert_array_equal(np.asarray(f(nnc.asarray(x))), wanted)
    back = WAYS[way](lambda q: nnc.dequantize_linear(q, 0.25, 3))(nnc.asarray(wanted))
    assert back.dtype == nnc.float32
    np.testing.assert_array_equal(np.asarray(back), (wanted.astype(np.float32) - 3) * np.float32(0.25))


def test_scales_and_zero_points_along_an_axis() -> None:
    x, scale, zero = floats(4, 3, 5), np.array([0.5, 0.125, 2], np.float32), np.array([1, -7, 0], np.int8)
    q = nnc.quantize_linear(nnc.asarray(x), scale, zero, axis=1)
    counts = np.rint(x / scale[:, None]) + zero[:, None]
    assert q.dtype == nnc.int8
    np.testing.assert_array_equal(np.asarray(q), np.clip(counts, -128, 127))
    back = nnc.dequantize_linear(q, scale, zero, axis=-2)
    np.testing.assert_allclose(np.asarray(back), x, atol=1.001)


def test_halves_to_even_ends_and_what_is_no_number() -> None:
    x = nnc.asarray(np.array([0.5, 1.5, -2.5, 1e9, -np.inf, np.nan], np.float32))
    assert np.asarray(nnc.quantize_linear(x, 1.0)).tolist() == [0, 2, -2, 127, -128, 0]
    assert np.asarray(nnc.quantize_linear(x, 1.0, dtype="uint8")).tolist() == [0, 2, 0, 255, 0, 0]


def test_halves_have_whole_zero_points() -> None:
    x = nnc.asarray(np.array([100.0, 250.0], np.float16))
    assert np.asarray(nnc.quantize_linear(x, 0.125, 1, dtype="int16")).tolist() == [801, 2001]


def test_integers_of_32_bits_are_what_they_are_also_beside_a_zero_point() -> None:
    x = nnc.asarray(np.array([2**32 - 1, 5], np.uint32))
    assert nnc.dequantize_linear(x, 0.5).tolist() == [2.0**31, 2.5]
    assert nnc.dequantize_linear(x, 1.0, np.array(7, np.uint32)).tolist() == [2.0**32, -2.0]
    assert nnc.dequantize_linear(np.array([2**31 - 1], np.int32), 1.0, np.array(-1, np.int32)).tolist() == [2.0**31]


@pytest.mark.parametrize("x", [floats(6, 9), floats(6, 9) ** 2, -(floats(4) ** 2), np.zeros(3, np.float32)])
def test_dynamic_ranges_hold_zero(x: Any) -> None:
    q, scale, zero = nnc.dynamic_quantize_linear(nnc.asarray(x))
    back = np.asarray(nnc.dequantize_linear(q, scale, zero))
    assert q.dtype == zero.dtype == nnc.uint8
    np.testing.assert_allclose(back, x, atol=0.51 * scale.item())
    assert np.asarray(nnc.dequantize_linear(zero, scale, zero)) == 0


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("zeros", [(None, None), (5, None), (None, -3), (7, 9), ("rows", "columns")])
def test_matmul_integer_takes_zero_points_away(way: str, zeros: tuple[Any, Any]) -> None:
    a, b = integers(np.uint8, 2, 19, 40), integers(np.int8, 40, 33)
    za, zb = (integers(x.dtype, n) if isinstance(zero, str) else zero
              for x, n, zero in zip((a, b), (19, 33), zeros, strict=True))
    f = WAYS[way](lambda a, b: nnc.matmul_integer(a, b, za, zb))
    left = a.astype(np.int64) - (0 if za is None else np.reshape(za, (-1, 1)))
    wanted = left @ (b.astype(np.int64) - (0 if zb is None else zb))
    found = f(nnc.asarray(a), nnc.asarray(b))
    assert found.dtype == nnc.int32
    np.testing.assert_array_equal(np.asarray(found), wanted)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("layout", ["NHWC", "NCHW", "CHWN"])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("zeros", [(None, None), (200, None), (None, "channels"), (200, "channels")])
def test_conv_integer_pads_with_the_zero_point(way: str, layout: str, groups: int, zeros: tuple[Any, Any]) -> None:
    x, kernel = integers(np.uint8, 2, 8, 7, 4), integers(np.int8, 3, 2, 4 // groups, 6)
    zx, zk = zeros[0], integers(np.int8, 6) if zeros[1] else None
    how = {"padding": ((1, 0), (2, 1)), "strides": (2, 1), "groups": groups}
    wanted = nnc.conv2d(nnc.asarray(x.astype(np.float64) - (zx or 0)),
                        nnc.asarray(kernel.astype(np.float64) - (0 if zk is None else zk)), **how)
    image, filter, back = ORDERS[layout]
    f = WAYS[way](lambda x, kernel: nnc.conv_integer(x, kernel, zx, zk, layout=layout, **how))
    found = np.asarray(f(nnc.asarray(x.transpose(image)), nnc.asarray(kernel.transpose(filter)))).transpose(back)
    np.testing.assert_array_equal(found, np.asarray(wanted))


def test_a_quantised_layer_is_one_command() -> None:
    """Bias, scale, activation and quantisation are applied where the sums are."""
    weight, bias = nnc.asarray(integers(np.int8, 96, 80)), nnc.asarray(integers(np.int16, 80).astype(np.int32))

    def layer(q: nnc.Tensor) -> nnc.Tensor:
        y = nnc.relu(nnc.dequantize_linear(nnc.matmul_integer(q, weight) + bias, 2.0**-10))
        return nnc.quantize_linear(y, 0.5)

    q = nnc.asarray(integers(np.int8, 40, 96))
    compiled = nnc.jit(layer)
    sums = np.asarray(q).astype(np.int64) @ np.asarray(weight).astype(np.int64) + np.asarray(bias)
    wanted = np.clip(np.rint(np.maximum(sums * 2.0**-10, 0) / 0.5), -128, 127)
    np.testing.assert_array_equal(np.asarray(compiled(q)), wanted)
    np.testing.assert_array_equal(np.asarray(layer(q)), wanted)
    text = compiled.explain(q)
    assert "1 commands on" in text


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("dtype", "least", "most"), [("int4", -8, 7), ("uint4", 0, 15), ("int2", -2, 1),
                                                      ("uint2", 0, 3)])
def test_integers_of_few_bits_saturate(way: str, dtype: str, least: int, most: int) -> None:
    x = floats(4, 6) * 9
    q = WAYS[way](lambda x: nnc.quantize_linear(x, 0.5, 1, dtype=dtype))(nnc.asarray(x))
    assert q.dtype == dtype
    wanted = np.clip(np.rint(x / 0.5) + 1, least, most)
    np.testing.assert_array_equal(np.asarray(q).astype(np.float32), wanted)
    back = WAYS[way](lambda q: nnc.dequantize_linear(q, 0.5, 1))(q)
    np.testing.assert_array_equal(np.asarray(back), (wanted - 1) * 0.5)
    assert np.asarray(nnc.quantize_linear(nnc.asarray([np.nan, np.inf]), 1.0, dtype=dtype)).tolist() == [0, most]


@pytest.mark.parametrize("way", WAYS)
def test_floats_of_few_bits(way: str) -> None:
    x = np.array([0.0, 1.0, -3.3, 1e6, -1e6, np.nan], np.float32)
    for dtype, most in (("float8_e4m3fn", 448), ("float8_e5m2", 57344), ("float4_e2m1fn", 6)):
        q = WAYS[way](lambda x, dtype=dtype: nnc.quantize_linear(x, 2.0, dtype=dtype))(nnc.asarray(x))
        wanted = np.clip(x / np.float32(2), -most, most).astype(q.dtype)
        np.testing.assert_array_equal(np.asarray(q).view(np.uint8), wanted.view(np.uint8))
        back = WAYS[way](lambda q: nnc.dequantize_linear(q, np.float16(2), dtype="float32"))(q)
        assert back.dtype == nnc.float32
        np.testing.assert_array_equal(np.asarray(back), wanted.astype(np.float32) * 2)
    plain = nnc.quantize_linear(nnc.asarray(x), 2.0, dtype="float8_e5m2", saturate=False)
    assert np.isinf(np.asarray(plain).astype(np.float32)[3])


@pytest.mark.parametrize("way", WAYS)
def test_scales_of_blocks(way: str) -> None:
    x, scale, zero = floats(3, 7) * 4, np.abs(floats(3, 3)) + 0.1, integers(np.int8, 3, 3) // 16
    spread = [np.repeat(a, 3, axis=1)[:, :7] for a in (scale, zero)]
    q = WAYS[way](lambda x: nnc.quantize_linear(x, scale, zero, axis=1, block_size=3))(nnc.asarray(x))
    np.testing.assert_array_equal(np.asarray(q), np.clip(np.rint(x / spread[0]) + spread[1], -128, 127))
    back = WAYS[way](lambda q: nnc.dequantize_linear(q, scale, zero, axis=-1))(q)
    np.testing.assert_array_equal(np.asarray(back), (np.asarray(q).astype(np.float32) - spread[1]) * spread[0])
    powers = nnc.asarray([[1.0, 2.0, 4.0]] * 3).astype("float8_e8m0fnu")
    wanted = np.asarray(q).astype(np.float32) * np.repeat([1, 2, 4], 3)[:7].astype(np.float32)
    np.testing.assert_array_equal(np.asarray(nnc.dequantize_linear(q, powers, axis=1)), wanted)


def test_mistakes_of_blocks_are_named() -> None:
    x = nnc.asarray(floats(3, 7))
    for scale, how in ((np.ones((3, 3), np.float32), {"axis": 1, "block_size": 2}),
                       (np.ones((2, 3), np.float32), {"axis": 1}),
                       (np.ones((1, 3, 7), np.float32), {"axis": 1}), (np.ones((3, 3), np.float32), {})):
        with pytest.raises(ShapeError, match="scale"):
            nnc.quantize_linear(x, scale, **how)
    with pytest.raises(AttributeValueError, match="zero point 1 of float8_e5m2"):
        nnc.quantize_linear(x, 1.0, 1, dtype="float8_e5m2")
    with pytest.raises(AttributeValueError, match="block_size"):
        nnc.quantize_linear(x, np.ones((3, 3), np.float32), axis=1, block_size=0)
    with pytest.raises(DTypeError, match="no integer one"):
        nnc.quantize_linear(x, 1.0, dtype="float8_e8m0fnu")


def test_mistakes_are_named() -> None:
    x, q = nnc.asarray(floats(3, 3)), nnc.asarray(integers(np.int8, 3, 3))
    for wrong, error, said in (
        (lambda: nnc.quantize_linear(q, 0.5), DTypeError, "int8, not real floating-point"),
        (lambda: nnc.quantize_linear(x, 0.5, dtype="int32"), DTypeError, "at most 16 bits"),
        (lambda: nnc.quantize_linear(x, 0.5, 200), AttributeValueError, "zero point 200 is none of int8"),
        (lambda: nnc.quantize_linear(x, np.ones(3, np.float32)), ShapeError, "scale"),
        (lambda: nnc.dequantize_linear(x, 0.5), DTypeError, "float32, not an integer"),
        (lambda: nnc.dequantize_linear(q, 0.5, np.uint8(3)), DTypeError, "a zero point of uint8 beside int8"),
        (lambda: nnc.matmul_integer(q, x), DTypeError, "needs int8 or uint8, not float32"),
        (lambda: nnc.matmul_integer(q, q, -129), AttributeValueError, "zero point -129"),
        (lambda: nnc.conv_integer(q, q), ShapeError, "should have three, four or five dimensions"),
    ):
        with pytest.raises(error, match=said):
            wrong()
