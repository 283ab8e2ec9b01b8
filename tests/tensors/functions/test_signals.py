"""Convolution, correlation and interpolation of vectors, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from tests.tensors.against_numpy import Array, assert_derivatives, assert_same, assert_same_in_every_mode
from tests.tensors.faults import fails

RNG = np.random.default_rng(8)
MODES = ("full", "same", "valid")
LENGTHS = [(7, 3), (3, 7), (4, 4), (5, 2), (2, 6), (1, 1), (6, 1)]


def numbers(count: int, dtype: Any = np.float32) -> Array:
    host = np.asarray(RNG.integers(-9, 9, count)).astype(dtype)
    return (host + 1j * RNG.integers(-3, 3, count)).astype(dtype) if host.dtype.kind == "c" else host


@pytest.mark.parametrize("name", ["convolve", "correlate"])
def test_gives_what_numpy_gives(device: str, name: str) -> None:
    for n, m in LENGTHS:
        for mode in MODES:
            a, b = numbers(n), numbers(m)
            assert_same(getattr(nnc, name)(nnc.asarray(a), nnc.asarray(b), mode), getattr(np, name)(a, b, mode))


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint16", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("name", ["convolve", "correlate"])
def test_other_dtypes(name: str, dtype: str) -> None:
    for n, m in LENGTHS[:4]:
        for mode in MODES:
            a, b = numbers(n, dtype), numbers(m, dtype)
            assert_same(getattr(nnc, name)(nnc.asarray(a), nnc.asarray(b), mode), getattr(np, name)(a, b, mode))


@pytest.mark.parametrize("mode", MODES)
def test_in_every_mode_and_differentiated(mode: str) -> None:
    for n, m in ((6, 3), (2, 5)):
        def both(xp: Any, a: Any, b: Any) -> Any:
            return [xp.convolve(a, b, mode), xp.correlate(a, b, mode)]

        assert_same_in_every_mode(both, (numbers(n), numbers(m)))
        assert_derivatives(both, (numbers(n), numbers(m)))


def test_scalars_and_mixed_dtypes() -> None:
    assert nnc.convolve(nnc.asarray([1.0, 2.0]), 3.0).tolist() == [3.0, 6.0]
    found = nnc.convolve(nnc.asarray([1, 2]), nnc.asarray([0.5, 1.0]))
    assert found.dtype == nnc.float32 and found.tolist() == [0.5, 2.0, 2.0]


# ---- interpolation
PLACES, HEIGHTS = np.array([0.0, 1.0, 2.5, 4.0], np.float32), np.array([1.0, -1.0, 3.0, 2.0], np.float32)
AT = np.array([[-1.0, 0.0, 0.5], [1.0, 2.0, 2.5], [3.0, 4.0, 5.0], [np.nan, np.inf, -np.inf]], np.float32)


def test_interp_gives_what_numpy_gives(device: str) -> None:
    x, xp, fp = (nnc.asarray(a) for a in (AT, PLACES, HEIGHTS))
    for options in ({}, {"left": -9.0, "right": 9.0}):
        assert_same(nnc.interp(x, xp, fp, **options), np.interp(AT, PLACES, HEIGHTS, **options).astype(np.float32))
    assert_same(nnc.interp(x[:3], xp[:1], fp[:1]), np.interp(AT[:3], PLACES[:1], HEIGHTS[:1]).astype(np.float32))
    assert_same(nnc.interp(1.75, xp, fp), np.float32(1.0))


def test_interp_round_a_period(device: str) -> None:
    at, places, heights = np.linspace(-10, 10, 9), np.array([3.0, 1.0, 0.5]), np.array([1.0, 2.0, 3.0])
    wanted = np.interp(at, places, heights, period=4).astype(np.float32)
    given = [nnc.asarray(a.astype(np.float32)) for a in (at, places, heights)]
    assert_same(nnc.interp(*given, period=4), wanted)
    assert_same(nnc.interp(*given, period=-4), wanted)


def test_infinite_heights_reach_as_far_as_they_have_to() -> None:
    heights = np.array([1.0, np.inf, np.inf, 2.0])
    at = np.array([0.0, 0.5, 1.0, 2.0, 2.5, 3.0, 4.0])
    found = nnc.interp(*[nnc.asarray(a) for a in (at, PLACES.astype(np.float64), heights)])
    assert_same(found, np.interp(at, PLACES, heights))


def test_complex_and_whole_heights() -> None:
    heights = HEIGHTS + 1j * HEIGHTS[::-1]
    assert_same(nnc.interp(nnc.asarray(AT[:3]), nnc.asarray(PLACES), nnc.asarray(heights.astype(np.complex64))),
                np.interp(AT[:3], PLACES, heights).astype(np.complex64))
    whole = nnc.interp(nnc.asarray([1, 2]), nnc.asarray([0, 4]), nnc.asarray([0, 8]))
    assert whole.dtype == nnc.float32 and whole.tolist() == [2.0, 4.0]


def test_interp_in_every_mode_and_differentiated() -> None:
    at = np.array([0.3, 1.7, 2.9, -1.0, 4.5], np.float32)
    assert_same_in_every_mode(lambda xp, x, p, f: xp.interp(x, p, f).astype("float32"), (at, PLACES, HEIGHTS))
    assert_derivatives(lambda xp, x, p, f: nnc.interp(x, p, f), (at, PLACES, HEIGHTS))


@pytest.mark.parametrize(("code", "kind", "said"), [
    (lambda x: nnc.convolve(x, x[0]), ValueError, "float32[2,3] is no vector"),
    (lambda x: nnc.convolve(x[0, :0], x[0]), ValueError, "float32[0] is no vector of one element or more"),
    (lambda x: nnc.correlate(x[0], x[0], "wide"), ValueError, "mode 'wide' is none of full, same, valid"),
    (lambda x: nnc.interp(x, x[0], x[1, :2]), ValueError, "vectors of one length"),
    (lambda x: nnc.interp(x, x[0, :0], x[0, :0]), ValueError, "no places"),
    (lambda x: nnc.interp(x, x[0], x[1], period=0), ValueError, "period of 0"),
    (lambda x: nnc.interp(nnc.asarray([1j], device="cpu:0"), [0.0], [1.0]), TypeError, "places are real"),
])  # fmt: skip
def test_errors_name_the_function_and_the_line(x: nnc.Tensor, code: Any, kind: type[BaseException], said: str) -> None:
    with fails(kind, said):
        code(x)


def test_interpolating_at_one_place_has_gradients() -> None:
    x, place, value = nnc.asarray([0.5, 1, 2]), nnc.asarray([1.0]), nnc.asarray([3.0])
    np.testing.assert_array_equal(nnc.interp(x, place, value).numpy(), [3, 3, 3])
    slopes = nnc.grad(lambda x, v: nnc.sum(nnc.interp(x, place, v)), argnums=(0, 1))(x, value)
    np.testing.assert_array_equal(slopes[0].numpy(), [0, 0, 0])
    np.testing.assert_array_equal(slopes[1].numpy(), [3])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_few_and_many_are_interpolated_to_the_same_bits(dtype: str) -> None:
    rng = np.random.default_rng(2)
    places, values = np.sort(rng.standard_normal(50)).astype(dtype), rng.standard_normal(50).astype(dtype)
    x = np.concatenate([places, 2 * rng.standard_normal(20_000), [np.nan, np.inf, -np.inf]]).astype(dtype)
    places[3], values[7] = places[2], np.inf
    many = nnc.interp(*map(nnc.asarray, (x, places, values))).numpy()
    few = np.concatenate([nnc.interp(*map(nnc.asarray, (part, places, values))).numpy()
                          for part in np.array_split(x, 33)])
    np.testing.assert_array_equal(few.view(np.uint8), many.view(np.uint8))
