"""Angles, bits, arrays of indices, windows, functions of the user's: what NumPy has besides the Array API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import OutOfRangeError
from tests.tensors.against_numpy import assert_derivatives, assert_same, assert_same_in_every_mode
from tests.tensors.faults import fails

pytestmark = pytest.mark.filterwarnings("ignore:.* has no kernel")
RNG = np.random.default_rng(6)
X = RNG.uniform(-1, 1, (2, 3, 4))
Z = RNG.normal(size=(3, 4)) + 1j * RNG.normal(size=(3, 4))
TURNS = np.cumsum(RNG.uniform(-4, 4, (3, 9)), axis=1) % (2 * np.pi)
EDGES = np.array([0.0, np.pi, 0.0, -np.pi, 0.0, 3 * np.pi, np.nan, 1.0])
BYTES = RNG.integers(0, 256, (3, 5)).astype(np.uint8)
BITS = RNG.integers(0, 3, (3, 11)).astype(np.int32)

CODE: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "angle": (lambda xp, z: [xp.angle(z), xp.angle(z, deg=True)], (Z,)),
    "angle of real numbers": (lambda xp, x: xp.angle(x), (X,)),
    "iscomplex": (lambda xp, z: [xp.iscomplex(z), xp.isreal(z)], (np.array([1j, 2, 0, np.nan]),)),
    "iscomplex of real numbers": (lambda xp, x: [xp.iscomplex(x), xp.isreal(x)], (X,)),
    "unwrap": (lambda xp, x: [xp.unwrap(x), xp.unwrap(x, axis=0), xp.unwrap(x, 4.0), xp.unwrap(x, period=1.5)],
               (TURNS,)),
    "unwrap, edges": (lambda xp, x: [xp.unwrap(x), xp.unwrap(x[:1])], (EDGES,)),
    "unwrap of integers": (lambda xp, x: [xp.unwrap(x, period=4), xp.unwrap(x, period=5), xp.unwrap(x, 3, period=4)],
                           (np.array([0, 1, 2, -1, 0, 5, 3, 1, -2]),)),
    "sort_complex": (lambda xp, z: [xp.sort_complex(z), xp.sort_complex(z.real)], (np.round(Z),)),
    "bitwise_count": (lambda xp, b: xp.bitwise_count(b), (BYTES,)),
    "packbits": (lambda xp, x: [xp.packbits(x), xp.packbits(x, axis=0), xp.packbits(x, 1, bitorder="little")], (BITS,)),
    "packbits of booleans": (lambda xp, x: xp.packbits(x > 0, axis=-1), (BITS,)),
    "unpackbits": (lambda xp, b: [xp.unpackbits(b), xp.unpackbits(b, axis=0), xp.unpackbits(b, 1, bitorder="little"),
                                  xp.unpackbits(b, 1, count=11), xp.unpackbits(b, 1, count=-3),
                                  xp.unpackbits(b, 1, count=50)], (BYTES,)),
    "ravel_multi_index": (lambda xp, i, j: [xp.ravel_multi_index((i, j), (7, 6)),
                                            xp.ravel_multi_index((i, j), (7, 6), order="F"),
                                            xp.ravel_multi_index((i, j), (3, 3), mode=("clip", "wrap")),
                                            xp.ravel_multi_index((-i, j), (3, 3), mode="wrap")],
                          (np.array([[3, 6, 6], [4, 5, 1]]), np.array([4, 5, 1]))),
    "unravel_index": (lambda xp, i: [*xp.unravel_index(i, (7, 6)), *xp.unravel_index(i, (7, 3, 2), order="F"),
                                     *xp.unravel_index(i, 42)], (np.array([[22, 41], [37, 0]]),)),
    "indices of matrices": (lambda xp, x: [*xp.tril_indices_from(x, -1), *xp.triu_indices_from(x, 1),
                                           *xp.diag_indices_from(x[:, :2])], (X[:, :, 0].copy(),)),
    "mask_indices": (lambda xp, x: x[xp.mask_indices(3, xp.triu, 1)], (X[0, :, :3].copy(),)),
    "ix_": (lambda xp, x: [*xp.ix_([1, 0], [2]), x[xp.ix_([1, 0], [2, 0, 1])]], (X[:, :, 0].copy(),)),
    "apply_along_axis": (lambda xp, x: [xp.apply_along_axis(lambda v: v.sum() * 2, a, x) for a in (0, 1, -1)], (X,)),
    "apply_along_axis, vectors": (lambda xp, x: [xp.apply_along_axis(lambda v: v[:2] * v[-1], a, x)
                                                 for a in (0, 1, -1)], (X,)),
    "apply_along_axis, matrices": (lambda xp, x: xp.apply_along_axis(lambda v, k: xp.outer(v, v[:1]) * k, 1, x, 3),
                                   (X,)),
    "apply_over_axes": (lambda xp, x: [xp.apply_over_axes(lambda v, a: xp.sum(v, axis=a), x, (0, -1)),
                                       xp.apply_over_axes(lambda v, a: v * a, x, 2)], (X,)),
    "piecewise": (lambda xp, x: xp.piecewise(x, [x < 0, x > 0.5], [lambda v: -v, lambda v, k=1: v * v * k, 7]), (X,)),
    "piecewise, overlapping": (lambda xp, x: xp.piecewise(x, [x > 0, x > 0.5], [1, 2]), (X,)),
    "piecewise, arguments": (lambda xp, x: xp.piecewise(x, x > 0, [lambda v, k: v * k, lambda v, k: v], 3), (X[0, 0],)),
    "divmod": (lambda xp, x: [*xp.divmod(x, 0.3), *xp.divmod(1.0, x)], (X,)),
    "spacing": (lambda xp, x: xp.spacing(x), (np.array([0.0, -0.0, 1, -1.5, 1e300, -np.inf, np.nan, 5e-324]),)),
    "array_equiv": (lambda xp, x: [xp.array_equiv(x, x[:1]), xp.array_equiv(x, x), xp.array_equiv(x[0] * 0, 0),
                                   xp.array_equiv(x, x[:, :2])], (X,)),
    "windows": (lambda xp, x: [f(m) for f in (xp.hanning, xp.hamming, xp.blackman, xp.bartlett) for m in (0, 1, 2, 9)],
                (X,)),
    "kaiser": (lambda xp, x: [xp.kaiser(m, b) for m in (0, 1, 8, 9) for b in (0, 5, 14.0)], (X,)),
    "fft2": (lambda xp, x: [xp.fft.fft2(x), xp.fft.ifft2(x, s=(5, 3), norm="ortho"), xp.fft.rfft2(x, axes=(0, 2)),
                            xp.fft.irfft2(x + 1j)], (X,)),
}  # fmt: skip


@pytest.mark.parametrize("name", CODE)
def test_as_numpy(device: str, name: str) -> None:
    code, arrays = CODE[name]
    with np.errstate(all="ignore"), nnc.config.using(default_float="float64"):
        assert_same(code(nnc, *map(nnc.asarray, arrays)), code(np, *arrays), 1e-9)


@pytest.mark.parametrize("name", CODE)
def test_in_every_mode(name: str) -> None:
    code, arrays = CODE[name]
    with np.errstate(all="ignore"), nnc.config.using(default_float="float64"):
        assert_same_in_every_mode(code, arrays, 1e-9)


@pytest.mark.parametrize("name", ["angle of real numbers", "unwrap", "apply_along_axis, vectors", "apply_over_axes",
                                  "piecewise"])
def test_derivatives(name: str) -> None:
    code, arrays = CODE[name]
    assert_derivatives(code, arrays)


def test_the_angle_turns_with_its_number() -> None:
    """By a step at right angles to z, as fast as z is near."""
    z = nnc.asarray(Z)
    found = nnc.grad(lambda z: nnc.sum(nnc.angle(z)))(z).numpy()
    np.testing.assert_allclose(found, 1j * Z / np.abs(Z) ** 2, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_bits_of_every_integer(device: str, dtype: str) -> None:
    ends = np.iinfo(dtype)
    x = np.array([0, 1, 2, 3, 85, 127, ends.max, ends.min, ends.max - 1, ends.max // 3], dtype)
    assert_same(nnc.bitwise_count(nnc.asarray(x)), np.bitwise_count(x))
    assert nnc.bitwise_count(nnc.asarray([True, False])).tolist() == [1, 0]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_spacing_of_every_float(dtype: str) -> None:
    x = np.array([0, 1, 3.7, 1000, np.finfo(dtype).max, np.finfo(dtype).tiny], dtype)
    with np.errstate(over="ignore"):
        assert_same(nnc.spacing(nnc.asarray(x)), np.spacing(x), 0)
        assert_same(nnc.spacing(nnc.asarray(-x)), -np.spacing(x), 0)


@pytest.mark.parametrize("x", [[0, 0, 1, 0, 2, 0], [0, 0], [1, 2], [], [0.0, np.nan, 0.0]], ids=str)
def test_trimming(device: str, x: list[float]) -> None:
    host = np.asarray(x, np.float64)
    for trim in ("fb", "f", "b", "BF"):
        assert_same(nnc.trim_zeros(nnc.asarray(host), trim), np.trim_zeros(host, trim))
    with nnc.deferred():
        late = nnc.trim_zeros(nnc.asarray(host)) * 2
    assert_same(late, np.trim_zeros(host) * 2)


def test_masks_count_as_indices() -> None:
    rows, columns = nnc.ix_(nnc.asarray([True, False, True]), nnc.asarray([1]))
    assert rows.tolist() == [[0], [2]] and columns.tolist() == [[1]]
    assert nnc.ix_([])[0].shape == (0,)


def test_windows_have_dtypes_and_devices(device: str) -> None:
    w = nnc.hanning(5, dtype="float64", device=device)
    assert w.dtype == nnc.float64 and w.device.id == device and nnc.kaiser(4, 1.0).dtype == nnc.float32
    with nnc.deferred():
        x = nnc.ones(6)
        y = x * nnc.blackman(6)
    found = nnc.export({"x": x}, {"y": y}).compile(device)(x=np.ones(6, np.float32))["y"]
    np.testing.assert_allclose(found.numpy(), np.blackman(6), atol=1e-6)


def test_a_function_for_each_row_of_nothing() -> None:
    assert nnc.apply_along_axis(lambda v: v.sum(), 1, np.zeros((2, 0))).tolist() == [0, 0]
    assert nnc.packbits(np.zeros((0, 3), bool), axis=1).shape == (0, 1)
    assert nnc.unpackbits(np.zeros(0, np.uint8)).shape == (0,)
    assert nnc.unwrap(np.zeros((3, 0))).shape == (3, 0)


def test_what_is_refused() -> None:
    with fails(ValueError, "the period 0 is not positive", operator="unwrap"):
        nnc.unwrap(X, period=0)
    with fails(TypeError, "angles are real numbers", "angle(z)"):
        nnc.unwrap(Z)
    with fails(TypeError, "has no bits to count"):
        nnc.bitwise_count(X)
    with fails(TypeError, "are no bits"):
        nnc.packbits(X)
    with fails(ValueError, "neither 'big' nor 'little'"):
        nnc.packbits(BITS, bitorder="middle")
    with fails(TypeError, "are no bytes"):
        nnc.unpackbits(BITS)
    with fails(ValueError, "leaves nothing of 40 bits"):
        nnc.unpackbits(BYTES, 1, count=-41)
    with fails(OutOfRangeError, "out of range for length 2", 'mode="clip"', operator="ravel_multi_index"):
        nnc.ravel_multi_index(([1], [2]), (3, 2))
    with fails(OutOfRangeError, "out of range for length 6"):
        nnc.unravel_index([6], (2, 3))
    with fails(ValueError, "mode 'fold' is none of"):
        nnc.ravel_multi_index(([1], [2]), (3, 3), mode="fold")
    with fails(ValueError, "1 indices and 2 modes for 2 axes"):
        nnc.ravel_multi_index(([1],), (3, 3))
    with fails(TypeError, "not integers"):
        nnc.unravel_index(X, (2, 3))
    with fails(ValueError, "is no vector"):
        nnc.ix_(X)
    with fails(ValueError, "should be two or more, of one length"):
        nnc.diag_indices_from(X)
    with fails(ValueError, "neither as many axes nor one fewer"):
        nnc.apply_over_axes(lambda v, a: nnc.sum(v), X, (0,))
    with fails(TypeError, "not booleans"):
        nnc.piecewise(X, [X], [1])
    with fails(ValueError, "3 functions for 1 conditions"):
        nnc.piecewise(X, [X > 0], [1, 2, 3])
    with fails(ValueError, "trim 'x' is none of"):
        nnc.trim_zeros(X[0, 0], "x")
    with fails(ValueError, "length 2.5 is no integer"):
        nnc.hanning(2.5)
