"""astype to what is only stored, by ONNX's tables; bitcast; what storage dtypes can do, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.dtype import ALL_DTYPES, STORAGE, STORED_FLOATS, STORED_INTEGERS, bits_of
from nnc_core.errors import AttributeValueError, DTypeError, ExchangeError, GradientError

WAYS: dict[str, Callable[..., Any]] = {"eager": lambda f: f, "compiled": nnc.jit}
DEVICES = ("cpu:0", "strict:0", "strict-noviews:0")
inf, nan = np.inf, np.nan


def all_of(dtype: Any) -> Any:
    return np.arange(2 ** bits_of(dtype), dtype=np.uint8).view(dtype)


def numbers(x: Any) -> list[float]:
    return np.asarray(x).astype(np.float64).tolist()  # type: ignore[no-any-return]


@pytest.fixture(params=DEVICES)
def place(request: pytest.FixtureRequest) -> Any:
    with nnc.use_device(request.param):
        yield request.param


# ---- casts
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("name", "largest", "beyond"), [
    ("float8_e4m3fn", 448, nan), ("float8_e4m3fnuz", 240, nan), ("float8_e5m2", 57344, inf),
    ("float8_e5m2fnuz", 57344, nan), ("float4_e2m1fn", 6, 6),
])
def test_what_is_beyond_a_float_of_8_bits(way: str, name: str, largest: float, beyond: float) -> None:
    x = nnc.asarray([0.0, 1e9, -1e9, inf, -inf, nan, 1.0, largest, -largest])
    plain = WAYS[way](lambda x: nnc.astype(x, name))(x)
    saturated = WAYS[way](lambda x: x.astype(name, saturate=True))(x)
    not_a_number = -0.0 if name == "float4_e2m1fn" else nan
    np.testing.assert_array_equal(numbers(plain), [0, beyond, -beyond, beyond, -beyond, not_a_number, 1, largest,
                                                   -largest])
    np.testing.assert_array_equal(numbers(saturated), [0, largest, -largest, largest, -largest, not_a_number, 1,
                                                       largest, -largest])


@pytest.mark.parametrize("name", ["float8_e4m3fnuz", "float8_e5m2fnuz"])
def test_formats_with_one_zero(name: str) -> None:
    assert np.asarray(nnc.asarray([-0.0, -1e-9, nan]).astype(name)).view(np.uint8).tolist() == [0, 0, 128]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int32", "float8_e5m2", "int4"])
def test_saturation_of_any_dtype(dtype: str) -> None:
    x = nnc.asarray([7.0, -3.0]).astype(dtype)
    assert numbers(x.astype("float4_e2m1fn", saturate=True)) == [6, -3]
    assert numbers(nnc.asarray([1000, -1000]).astype("float8_e4m3fnuz", saturate=True)) == [240, -240]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_powers_of_two_are_rounded_as_asked(way: str, dtype: str) -> None:
    x = nnc.asarray([1.0, 1.25, 1.5, 3.0, 3.9, 0.1, 8.0]).astype(dtype)
    for mode, wanted in (("nearest", [1, 1, 2, 4, 4, 0.125, 8]), ("up", [1, 2, 2, 4, 4, 0.125, 8]),
                         ("down", [1, 1, 1, 2, 2, 0.0625, 8])):
        y = WAYS[way](lambda x, mode=mode: nnc.astype(x, "float8_e8m0fnu", round_mode=mode))(x)
        assert numbers(y) == wanted


def test_powers_of_two_at_the_ends() -> None:
    x = nnc.asarray([0.0, -0.0, nan, inf, -1.0, 3e38, 1e-45])
    least, most = 2.0**-127, 2.0**127
    np.testing.assert_array_equal(numbers(x.astype("float8_e8m0fnu")), [nan, nan, nan, nan, nan, nan, least])
    for mode in ("nearest", "up", "down"):
        y = nnc.astype(x, "float8_e8m0fnu", saturate=True, round_mode=mode)
        np.testing.assert_array_equal(numbers(y), [least, least, nan, most, nan, most, least], mode)


def test_integers_of_few_bits_wrap() -> None:
    x = nnc.asarray([-9.0, -8.0, 7.5, 8.0, 15.0, nan])
    assert numbers(x.astype("int4")) == [7, -8, 7, -8, -1, 0]
    assert numbers(nnc.asarray([-3, -2, 1, 2, 3]).astype("uint2")) == [1, 2, 1, 2, 3]


def test_an_unknown_round_mode_is_named() -> None:
    with pytest.raises(AttributeValueError, match="round_mode 'zero' is none of nearest, up, down"):
        nnc.astype(nnc.asarray([1.0]), "float8_e8m0fnu", round_mode="zero")


# ---- bits
@pytest.mark.parametrize("way", WAYS)
def test_bitcast(place: str, way: str) -> None:
    for source, target in (("float32", "int32"), ("float64", "uint64"), ("float16", "int16"), ("bfloat16", "uint16"),
                           ("bool", "uint8"), ("float8_e4m3fn", "int8"), ("uint8", "float8_e5m2"), ("int4", "uint4"),
                           ("float4_e2m1fn", "int4"), ("int2", "uint2"), ("complex64", "float64"),
                           ("int64", "complex64")):
        bits = np.random.default_rng(0).integers(0, 2 if source == "bool" else 250, (3, 8 * 8), np.uint8)
        if bits_of(ALL_DTYPES[source]) < 8:
            bits &= 2 ** bits_of(ALL_DTYPES[source]) - 1
        x = bits.view(ALL_DTYPES[source])
        y = WAYS[way](lambda x, target=target: nnc.bitcast(x, target))(nnc.asarray(x))
        assert y.dtype == ALL_DTYPES[target]
        assert np.asarray(y).tobytes() == x.tobytes(), (source, target)


@pytest.mark.parametrize("way", WAYS)
def test_bits_in_the_middle_of_a_graph(place: str, way: str) -> None:
    """NaN of 16 bits that would become another one where it is computed with."""
    x = nnc.asarray(np.array([[0x7C01, 0x3C00], [0xFE02, 1]], np.uint16))
    y = WAYS[way](lambda x: nnc.bitcast(nnc.bitcast(x.T, "float16")[::-1], "uint16") | 1)(x)
    assert np.asarray(y).tolist() == [[0x3C01, 1], [0x7C01, 0xFE03]]
    z = nnc.asarray(np.array([1.5, -2.0], np.float32))
    doubled = WAYS[way](lambda z: nnc.bitcast(nnc.bitcast(z * 1.0, "int32") + (1 << 23), "float32") * 1.0)(z)
    assert np.asarray(doubled).tolist() == [3.0, -4.0]


def test_bytes_as_booleans() -> None:
    x = nnc.asarray(np.array([0, 1, 2, 255], np.uint8))
    assert np.asarray(nnc.bitcast(x, "bool")).view(np.uint8).tolist() == [0, 1, 1, 1]


def test_bitcast_between_different_sizes_is_refused() -> None:
    for source, target in (("float32", "int64"), ("int8", "int4"), ("int4", "int2"), ("complex128", "float64")):
        with pytest.raises(DTypeError, match="bits and"):
            nnc.bitcast(nnc.zeros(3, dtype=source), target)


def test_bitcast_has_no_gradient() -> None:
    f = lambda x: nnc.sum(nnc.bitcast(nnc.bitcast(x, "int32"), "float32") + 2 * x)  # noqa: E731
    assert np.asarray(nnc.grad(f)(nnc.asarray([1.0, 2.0]))).tolist() == [2, 2]


def test_bitcast_of_examples() -> None:
    x = nnc.asarray(np.arange(6, dtype=np.float32).reshape(2, 3))
    y = nnc.vmap(lambda row: nnc.bitcast(row, "int32"))(x)
    np.testing.assert_array_equal(np.asarray(y), np.arange(6, dtype=np.float32).reshape(2, 3).view(np.int32))


# ---- what can be done
MOVES: dict[str, Callable[..., Any]] = {
    "items": lambda xp, x: x[1:3, ::-1], "reshape": lambda xp, x: xp.reshape(x, (2, 8)),
    "transposed": lambda xp, x: x.T, "concat": lambda xp, x: xp.concat([x, x[:1]]),
    "stack": lambda xp, x: xp.stack([x, x]), "flip": lambda xp, x: xp.flip(x, axis=0),
    "roll": lambda xp, x: xp.roll(x, 1),
    "tile": lambda xp, x: xp.tile(x, (1, 2)), "repeat": lambda xp, x: xp.repeat(x, 2, axis=0),
    "take": lambda xp, x: xp.take(x, np.array([3, 0]), axis=0), "equal": lambda xp, x: x == x.T,
    "where": lambda xp, x: xp.where(x == x[:1], x, x[::-1]), "broadcast": lambda xp, x: xp.broadcast_to(x, (2, 4, 4)),
    "advanced items": lambda xp, x: x[np.array([0, 2]), np.array([1, 3])],
}  # fmt: skip


@pytest.mark.parametrize("dtype", STORAGE, ids=str)
def test_elements_are_moved(place: str, dtype: Any) -> None:
    host = np.random.default_rng(1).permutation(np.resize(all_of(dtype), 256))[:16].reshape(4, 4)
    for name, move in MOVES.items():
        wanted = move(np, host)
        for way in WAYS.values():
            y = way(lambda x, move=move: move(nnc, x))(nnc.asarray(host))
            assert y.dtype == wanted.dtype and y.shape == wanted.shape, name
            np.testing.assert_array_equal(np.asarray(y).view(np.uint8), wanted.view(np.uint8), name)


@pytest.mark.parametrize("dtype", STORAGE, ids=str)
def test_items_are_written(place: str, dtype: Any) -> None:
    host = all_of(dtype)[:4].copy()
    x = nnc.asarray(host)
    x[1:3] = x[::3][::-1]
    host[1:3] = host[::3][::-1].copy()
    np.testing.assert_array_equal(np.asarray(x).view(np.uint8), host.view(np.uint8))
    padded = nnc.pad(nnc.asarray(host), 1)
    np.testing.assert_array_equal(np.asarray(padded).view(np.uint8), np.pad(host, 1).view(np.uint8))


@pytest.mark.parametrize("dtype", STORAGE, ids=str)
def test_constants_and_conversions(dtype: Any) -> None:
    assert getattr(nnc, dtype.name) == dtype == nnc.asarray([1], dtype=dtype.name).dtype
    assert numbers(nnc.ones(2, dtype=dtype)) == numbers(nnc.full((2,), 1, dtype=dtype)) == [1, 1]
    assert nnc.zeros_like(nnc.ones(3, dtype=dtype)).dtype == dtype and float(nnc.ones((), dtype=dtype)) == 1
    assert dtype.name in repr(nnc.ones(3, dtype=dtype))
    assert np.asarray(nnc.asarray(all_of(dtype))).tobytes() == all_of(dtype).tobytes()
    with pytest.raises(ExchangeError):
        nnc.ones(3, dtype=dtype).__dlpack__()


@pytest.mark.parametrize("dtype", STORED_FLOATS, ids=str)
def test_limits_of_floats(dtype: Any) -> None:
    limits, known = nnc.finfo(dtype), ml_dtypes.finfo(dtype)
    assert (limits.dtype, limits.bits) == (dtype, bits_of(dtype))
    for name in ("eps", "max", "min", "smallest_normal", "smallest_subnormal"):
        assert getattr(limits, name) == float(getattr(known, name))


@pytest.mark.parametrize("dtype", STORED_INTEGERS, ids=str)
def test_limits_of_integers(dtype: Any) -> None:
    limits = nnc.iinfo(dtype)
    assert (limits.min, limits.max) == (int(all_of(dtype).min()), int(all_of(dtype).max()))
    assert limits.bits == bits_of(dtype)
    for wrong in ([limits.max + 1], [limits.min - 1]):
        with pytest.raises(AttributeValueError, match=f"{limits.min}"):
            nnc.asarray(wrong, dtype=dtype)
        with pytest.raises(AttributeValueError, match="does not fit"):
            nnc.full((2,), wrong[0], dtype=dtype)


# ---- what cannot
COMPUTING: dict[str, Callable[[Any], Any]] = {
    "add": lambda x: x + x, "negative": lambda x: -x, "exp": nnc.exp, "matmul": lambda x: x @ x, "sum": nnc.sum,
    "mean": nnc.mean, "var": nnc.var, "max": nnc.max, "cumulative_sum": nnc.cumulative_sum, "sort": nnc.sort,
    "argmax": nnc.argmax, "less": lambda x: x < x, "relu": nnc.relu, "unique_values": nnc.unique_values,
    "nonzero": nnc.nonzero, "any": nnc.any, "clip": lambda x: nnc.clip(x, x, x), "isin": lambda x: nnc.isin(x, x),
    "trace": lambda x: nnc.trace(nnc.reshape(x, (2, -1))), "count_nonzero": nnc.count_nonzero,
}  # fmt: skip


@pytest.mark.parametrize("dtype", STORAGE, ids=str)
@pytest.mark.parametrize("name", COMPUTING)
def test_computing_is_refused_by_name(name: str, dtype: Any) -> None:
    x = nnc.asarray(all_of(dtype))
    for way in WAYS.values():
        with pytest.raises(DTypeError, match=f"{dtype} is a storage dtype") as caught:
            way(COMPUTING[name])(x)
        assert caught.value.operator is not None and "astype(" in str(caught.value)


def test_promotion_is_refused() -> None:
    x = nnc.ones(2, dtype="float8_e4m3fn")
    for wrong in (lambda: x + 1.0, lambda: x + nnc.ones(2), lambda: nnc.concat([x, nnc.ones(2)]), lambda: x == 1,
                  lambda: nnc.where(x == x, x, 0), lambda: nnc.result_type(x, "float32"), lambda: nnc.result_type(x, 1),
                  lambda: nnc.asarray([x, 1.0])):
        with pytest.raises(DTypeError, match="do not promote"):
            wrong()
    assert nnc.result_type(x, x) == nnc.float8_e4m3fn and nnc.can_cast(x, nnc.float8_e4m3fn)
    assert not nnc.can_cast(x, nnc.float32) and not nnc.can_cast(nnc.int4, nnc.int8)
    assert not any(nnc.isdtype(nnc.int4, kind) for kind in ("bool", "integral", "numeric", "real floating"))


def test_gradients_stop_where_numbers_are_stored() -> None:
    with pytest.raises(GradientError):
        nnc.variable(nnc.ones(3, dtype="float8_e5m2"))
    f = lambda x: nnc.sum(x.astype("float8_e5m2").astype("float32") + x)  # noqa: E731
    g = lambda x: nnc.sum(x.astype("int8").astype("float32") + x)  # noqa: E731
    x = nnc.asarray([1.0, 2.0])
    assert np.asarray(nnc.grad(f)(x)).tolist() == np.asarray(nnc.grad(g)(x)).tolist()
