"""Functions that cpu:0 computes as a whole, and kernels that go another way for large arrays, give the bits of what
operators make up: the same calls with the fast path closed."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.dtype import FLOATS, INTEGERS, bfloat16
from nnc_core.base.fast_path import closed
from nnc_core.codegen.numpy_scalars import cast
from nnc_core.operator import OPERATORS
from nnc_cpu import casts, eager, whole
from nnc_cpu.casts import converted
from nnc_cpu.eager import EAGER, MADE_OF

RNG = np.random.default_rng(3)
SPECIAL = np.array([0.0, -0.0, np.nan, 1, -1, np.inf, -np.inf, np.nan, -0.0, 0.0], np.float32)
MATRIX = RNG.standard_normal((6, 9)).astype(np.float32)
ARRAYS = [
    *[RNG.standard_normal(n).astype(d) for n in (1, 2, 5, 1000) for d in ("float32", "float64", "float16")],
    *[RNG.integers(-5, 20, n).astype(d) for n in (1, 7, 1000) for d in ("int8", "int32", "int64", "uint8")],
    *[RNG.integers(0, 2, n).astype(bool) for n in (1, 7, 1000)],
    SPECIAL, SPECIAL[3:7], -SPECIAL, SPECIAL[2:3].repeat(3), SPECIAL[:2], SPECIAL[[1, 0, 0]],
    SPECIAL.astype(np.complex64), SPECIAL.astype(bfloat16),
    np.zeros(0, np.float32), np.zeros(0, np.int64), MATRIX, MATRIX.T, MATRIX[:, ::2],
    *[RNG.standard_normal((20, 1000)).astype(d) for d in ("float32", "float16", bfloat16)],
    np.resize(SPECIAL.astype(np.float16), 5000), np.abs(RNG.standard_normal(9000)).astype(np.float16),
    RNG.standard_normal(20_000).astype(np.float32), RNG.integers(0, 300, 20_000),
]  # fmt: skip
CALLS: dict[str, Callable[[Any], Any]] = {
    "unique": nnc.unique, "unique with all": lambda x: nnc.unique(x, True, True, True),
    "unique_inverse": nnc.unique_inverse, "unique_counts": nnc.unique_counts, "unique_all": nnc.unique_all,
    "unique_values": nnc.unique_values, "unique, NaN apart": lambda x: nnc.unique(x, equal_nan=False),
    "median": nnc.median, "median along": lambda x: nnc.median(x, axis=0, keepdims=True), "nanmedian": nnc.nanmedian,
    "percentile": lambda x: nnc.percentile(x, 30, axis=-1), "ends": lambda x: nnc.quantile(x, [0.0, 1.0]),
    "quantile": lambda x: nnc.quantile(x, [[0.1, 0.5], [0.9, 0.1]]), "nanquantile": lambda x: nnc.nanquantile(x, 0.3),
    "lower": lambda x: nnc.quantile(x, 0.4, method="lower"),
    "midpoint": lambda x: nnc.quantile(x, 0.4, axis=0, method="midpoint"),
    "sort_complex": nnc.sort_complex, "sort of complex numbers": lambda x: nnc.sort_complex(x * (1 - 2j)),
    "sort of few of them": lambda x: nnc.sort_complex(nnc.round(x * (1 - 2j)) + 50 + 50j),
    "sort": nnc.sort, "descending": lambda x: nnc.sort(x, descending=True), "sort first": lambda x: nnc.sort(x, axis=0),
    "count_nonzero": nnc.count_nonzero, "count_nonzero along": lambda x: nnc.count_nonzero(x, axis=0, keepdims=True),
    "nanmax": nnc.nanmax, "nanmin": lambda x: nnc.nanmin(x, axis=0), "kept": lambda x: nnc.nanmax(x, keepdims=True),
    "nanargmax": nnc.nanargmax, "packbits": nnc.packbits, "bitwise_count": nnc.bitwise_count,
    "packbits along": lambda x: nnc.packbits(x, axis=0, bitorder="little"), "unpackbits": nnc.unpackbits,
    "unpackbits along": lambda x: nnc.unpackbits(x, axis=-1, count=3, bitorder="little"),
    "wrong order of bits": lambda x: nnc.unpackbits(x, bitorder="odd"),
    "isin": lambda x: nnc.isin(x, x[1:2]), "isin numbers": lambda x: nnc.isin(x, nnc.asarray(SPECIAL)),
    "bincount": nnc.bincount, "bincount at least": lambda x: nnc.bincount(x, minlength=30),
    "histogram": nnc.histogram, "histogram within": lambda x: nnc.histogram(x, bins=7, range=(-1, 1.3)),
    "density": lambda x: nnc.histogram(x, density=True),
    "edges": lambda x: nnc.histogram(x, bins=[-1.0, 0.0, 0.5, 2.0]),
    "union1d": lambda x: nnc.union1d(x, x[:1]), "setdiff1d": lambda x: nnc.setdiff1d(x, x[:2]),
    "intersect1d": lambda x: nnc.intersect1d(x, x[::2], return_indices=True),
    "setxor1d": lambda x: nnc.setxor1d(x, x[:2]),
    "repeat": lambda x: nnc.repeat(x, 3), "repeat along": lambda x: nnc.repeat(x, 2, axis=-1),
    "tile": lambda x: nnc.tile(x, (2, 3)), "delete": lambda x: nnc.delete(x, 0),
    "delete two": lambda x: nnc.delete(x, [0, -1, 0]), "delete all": lambda x: nnc.delete(x, slice(None), axis=0),
    "insert": lambda x: nnc.insert(x, 1, 5), "insert two": lambda x: nnc.insert(x, -1, [7, 8]),
    "insert here and there": lambda x: nnc.insert(x, [0, 1, 1], [1, 2, 3]),
    "insert along": lambda x: nnc.insert(x, 1, 5, axis=0), "diag": lambda x: nnc.diag(x[:40]),
    "diag above": lambda x: nnc.diag(x[:7], 1), "diag below": lambda x: nnc.diagflat(x[:3], -2),
    "max": nnc.max, "min along": lambda x: nnc.min(x, axis=0), "max kept": lambda x: nnc.max(x, axis=-1, keepdims=True),
    "where": lambda x: nnc.where(x == x, x, nnc.max(x)), "where first": lambda x: nnc.where(x == x, nnc.min(x), x),
    "tril": lambda x: nnc.tril(nnc.reshape(x, (-1, 2))), "triu": lambda x: nnc.triu(nnc.reshape(x, (2, -1)), k=1),
    "eye": lambda x: nnc.eye(x.shape[0] % 9, 5, k=x.shape[0] % 7 - 3),
    "round": nnc.round, "round 2": lambda x: nnc.round(x, 2), "tens": lambda x: nnc.round(x * 99, -1),
    "round beyond": lambda x: nnc.round(x * 1e30, 12), "floor": nnc.floor, "ceil": nnc.ceil, "trunc": nnc.trunc,
    "trace": lambda x: nnc.trace(nnc.reshape(x, (-1, 5))), "trace of a vector": nnc.trace,
    "trace below": lambda x: nnc.trace(nnc.reshape(x, (5, 2, -1)), -3, 2, 0),
    "trace as": lambda x: nnc.trace(nnc.reshape(x, (5, -1)), dtype="float64"),
    "digitize": lambda x: nnc.digitize(x, x[:1] * nnc.asarray([-1, 0, 0, 3], dtype=x.dtype)),
    "digitize right": lambda x: nnc.digitize(x, x[:1] * nnc.asarray([-1, 0, 0, 3], dtype=x.dtype), right=True),
    "digitize numbers": lambda x: nnc.digitize(x, nnc.asarray(SPECIAL[3:4])),
    "falling": lambda x: nnc.digitize(x, [2, 0, -1]),
    "diagonal": lambda x: nnc.diagonal(nnc.reshape(x, (-1, 5)), 1), "unstack": nnc.unstack,
    "unstack along": lambda x: nnc.unstack(nnc.reshape(x, (5, -1)), axis=1),
    "toeplitz": lambda x: nnc.linalg.toeplitz(x[:70]), "two": lambda x: nnc.linalg.toeplitz(x[:9:2], x[5:8] * 1.5),
    "circulant": lambda x: nnc.linalg.circulant(x[:70]), "hankel": lambda x: nnc.linalg.hankel(x[:70]),
    "hankel with": lambda x: nnc.linalg.hankel(x[:5], x[3:50] != 0),
    "companion": lambda x: nnc.linalg.companion(x[:70]),
    "clip": lambda x: nnc.clip(x, -0.5, 0.7), "arange": lambda x: nnc.arange(len(x), dtype=x.dtype),
    "int8": lambda x: (x * 100).astype("int8"), "uint64": lambda x: (x * 1e19).astype("uint64"),
}  # fmt: skip


def outcome(call: Callable[[Any], Any], x: nnc.Tensor) -> Any:
    try:
        found = call(x)
    except nnc.Error as error:
        return type(error), str(error).split("\n")[0]
    parts = found if isinstance(found, tuple) else (found,)
    return [(p.dtype, p.shape, sha256(np.ascontiguousarray(p.numpy())).digest()) for p in parts]


@pytest.mark.parametrize("name", CALLS)
def test_a_function_gives_the_bits_of_its_operators(name: str) -> None:
    for host in ARRAYS:
        x = nnc.asarray(host)
        found = [outcome(CALLS[name], x) for _ in range(2)]  # the second one by kernels that the first made known
        with closed():
            assert found == [outcome(CALLS[name], x)] * 2, (host.dtype, host.shape, host.reshape(-1)[:8])


def test_functions_are_named_unlike_operators_and_stand_for_some() -> None:
    assert not whole.WHOLE.keys() & OPERATORS.keys()
    for name in whole.WHOLE:
        assert name in EAGER and set(MADE_OF[name]) <= OPERATORS.keys()


def test_digits_bins_and_traces_are_computed_as_a_whole() -> None:
    x, edges = ARRAYS[3], np.array([-1.0, 0.5], np.float32)
    for name, given in (("rounded", (x, 100.0, True)), ("digitized", (x, edges, False)),
                        ("digitized", (x, edges[::-1], True)), ("trace", (MATRIX, 1, 0, 1)),
                        ("pieces", (x, x, len(x) + 1, -1)), ("above_ones", (x,))):
        assert EAGER[name](*given) is not NotImplemented
    assert EAGER["rounded"](x + 99, 1e38, True) is NotImplemented  # infinite on the way: operators keep what it was


def test_rounding_of_floats_goes_without_a_routine(monkeypatch: Any) -> None:
    monkeypatch.setattr(eager, "_ROUTINES", {})
    for name, f in eager.ROUNDING.items():
        np.testing.assert_array_equal(EAGER[name](MATRIX.T), f(MATRIX.T))


def test_gradients_go_the_way_of_operators() -> None:
    v = nnc.variable(np.array([3.0, 1.0, 2.0], np.float32))
    (nnc.median(v) + nnc.nanmax(v)).backward()
    assert v.grad is not None
    np.testing.assert_array_equal(v.grad.numpy(), [1, 0, 1])


EXTREMES = [0.5, -0.5, -0.0, 127.5, 128, -128.5, -129, 255.9, 256, 65535.9, 2147483520, 2147483647, 2147483648,
            -2147483648, 4294967296, 9.223372036854775e18, 1.8446744073709552e19, np.inf, -np.inf, np.nan]  # fmt: skip


@pytest.mark.parametrize("scale", [1, 1e5, 1e19])
@pytest.mark.parametrize("extremes", [[], [np.nan], EXTREMES])
@pytest.mark.parametrize("source", FLOATS)
def test_casts_in_pieces_are_casts(source: Any, extremes: list[float], scale: float, monkeypatch: Any) -> None:
    monkeypatch.setattr(casts, "PIECE", 256)
    with np.errstate(all="ignore"):
        x = (RNG.standard_normal(1000) * scale).astype(source)
        x[300 : 300 + len(extremes)] = np.array(extremes).astype(source)
        for target in (*INTEGERS, *FLOATS):
            for given in (x, x[::3], x.reshape(10, 100).T, x[:0], x[:1].reshape(())):
                found = converted(given, target)
                assert found.dtype == target and found.tobytes() == cast(given, target).tobytes()


@pytest.mark.parametrize("host", [x for x in ARRAYS if x.dtype.kind not in "cV" and x.ndim == 1 and x.size > 5],
                         ids=lambda x: f"{x.dtype}{list(x.shape)}")
def test_partitions_have_their_element_in_place_and_the_others_on_their_sides(host: Any) -> None:
    x = nnc.asarray(host)
    for kth in (0, len(host) // 2, -1, (1, 3)):
        places = kth if isinstance(kth, tuple) else (kth,)
        order, parted, at = nnc.sort(x).numpy(), nnc.partition(x, kth).numpy(), nnc.argpartition(x, kth).numpy()
        np.testing.assert_array_equal(np.sort(parted), order)
        np.testing.assert_array_equal(np.sort(at), np.arange(len(host)))
        for k in places:
            np.testing.assert_array_equal([parted[k], host[at[k]]], [order[k]] * 2)
            for found in (parted, host[at]):
                k %= len(host)
                np.testing.assert_array_equal(np.sort(found[:k]), order[:k])
    with nnc.config.using(deterministic=True):
        np.testing.assert_array_equal(nnc.partition(x, 2).numpy(), nnc.sort(x).numpy())


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "complex64", "float16"])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolutions_as_a_whole_are_those_of_operators(mode: Any, dtype: str) -> None:
    for n, m in ((1, 1), (9, 4), (9, 5), (3, 8), (3000, 30)):
        a, b = (RNG.integers(-4, 5, k).astype(dtype) for k in (n, m))
        for ours, numpys in ((nnc.convolve, np.convolve), (nnc.correlate, np.correlate)):
            found = ours(nnc.asarray(a), nnc.asarray(b), mode=mode)
            with closed():
                assert found.tolist() == ours(nnc.asarray(a), nnc.asarray(b), mode=mode).tolist()
            assert found.tolist() == numpys(a, b, mode).tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_norms_of_many_and_of_rows(dtype: str) -> None:
    for shape in ((1,), (1023,), (1024,), (5000,), (3, 4), (40, 3000), (3, 0), (0,)):
        host = RNG.standard_normal(shape).astype(dtype)
        for axis in (None, -1):
            for keepdims in (False, True):
                found = nnc.linalg.vector_norm(nnc.asarray(host), axis=axis, keepdims=keepdims)
                axes = tuple(range(host.ndim)) if axis is None else axis
                wanted = np.sqrt(np.sum(host.astype(np.longdouble) ** 2, axis=axes, keepdims=keepdims))
                assert found.shape == wanted.shape and str(found.dtype) == dtype
                np.testing.assert_allclose(found.numpy(), wanted.astype(dtype), rtol=1e-6)
