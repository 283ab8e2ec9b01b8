"""nnc.palettise and nnc.depalettise."""

from __future__ import annotations

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import AttributeValueError, ConcretizationError, DTypeError, NonfiniteError, ShapeError
from nnc_core.functions.palette_fit import centres, nearest

BITS = (4, 5, 6, 7, 8)
DTYPES = (nnc.float16, nnc.bfloat16, nnc.float32, nnc.float64)


def drawn(*shape: int, seed: int = 0, dtype: type = np.float32) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def few_numbers(shape: tuple[int, ...], count: int, dtype: np.dtype) -> np.ndarray:
    """So many different ones in each row, others in the next row."""
    rng = np.random.default_rng(count)
    numbers = np.arange(count) * 0.5 - 7
    return np.stack([rng.choice(numbers + row, shape[1]) for row in range(shape[0])]).astype(dtype)


# ---- there and back
@pytest.mark.parametrize("bits", BITS)
def test_few_numbers_are_kept_exactly(device: str, bits: int) -> None:
    for dtype in DTYPES:
        x = few_numbers((3, 301), 2**bits, dtype)
        held = nnc.palettise(nnc.asarray(x), bits, block_size=301)
        assert held.codes.shape == (-(-903 * bits // 8),) and held.codes.dtype == nnc.uint8
        assert held.palette.shape == (3, 2**bits) and held.palette.dtype == dtype
        assert held.codes.device.id == held.palette.device.id == device
        assert (held.bits, held.block_size, held.shape) == (bits, 301, (3, 301))
        assert held.nbytes == held.codes.shape[0] + 3 * 2**bits * dtype.itemsize
        back = held.depalettise()
        assert back.dtype == dtype and np.array_equal(back.numpy(), x)
        again = nnc.depalettise(held.codes, held.palette, bits=bits, shape=(3, 301), block_size=301)
        assert np.array_equal(again.numpy(), x)


def test_a_short_last_block_and_no_blocks(device: str) -> None:
    x = drawn(2, 11)
    held = nnc.palettise(x, 5, block_size=8)
    assert held.palette.shape == (3, 32) and np.array_equal(held.depalettise().numpy(), x)
    for shape in ((), (0,), (3, 0)):
        empty = nnc.palettise(np.zeros(shape, np.float32), 6)
        assert empty.depalettise().shape == shape and empty.palette.shape == (int(shape == ()), 64)


def test_neighbours_extremes_and_zeros_are_exact() -> None:
    """Middles between such numbers round to one of them, or are infinite."""
    for first in (1.0, 0.0, -1e-310, 5e-324):
        x = np.array([first, np.nextafter(first, 9), np.nextafter(np.nextafter(first, 9), 9)])
        assert np.array_equal(nnc.palettise(x, 4).depalettise().numpy(), x)
    top = np.finfo(np.float64).max
    x = np.array([-top, top, 0.0, -0.0, 1.0])
    back = nnc.palettise(x, 4).depalettise().numpy()
    assert np.array_equal(back, x) and not np.signbit(back[3])


# ---- the fit
@pytest.mark.parametrize("bits", [4, 5, 6, 7, 8])
def test_normal_numbers_lose_no_more_than_by_the_best_of_many_levels(bits: int) -> None:
    """sqrt(3) pi / (2 n^2) is the mean square that the best of n levels leave of the normal distribution, for large n
    (Panter and Dite, 1951), and for fewer levels a little more than that."""
    x = drawn(60_000, dtype=np.float64)
    error = np.mean((nnc.palettise(x, bits).depalettise().numpy() - x) ** 2)
    assert error < np.sqrt(3) * np.pi / 2 / 4**bits


def best_by_trying(x: np.ndarray, groups: int) -> float:
    """Least sum of squares of all groupings of sorted numbers, by dynamic programming."""
    x = np.sort(x)
    cost = np.array([[np.var(x[i:j]) * (j - i) if j > i else 0.0 for j in range(len(x) + 1)] for i in range(len(x))])
    best = cost[0].copy()
    for _ in range(groups - 1):
        best = np.array([min([best[i] + (cost[i, j] if i < j else 0.0) for i in range(j)] or [0.0])
                         for j in range(len(x) + 1)])
    return float(best[-1])


def test_groups_are_nearly_the_best_and_never_worse_than_equal_ones() -> None:
    for seed in range(3):
        x = np.sort(np.random.default_rng(seed).gamma(0.7, size=60))
        entries = centres(x, np.ones(60, int), 16)
        assert len(entries) == 16 and (np.diff(entries) > 0).all()
        error = ((x - entries[nearest(x, entries)]) ** 2).sum()
        equal = np.linspace(x[0], x[-1], 33)[1::2]
        least = best_by_trying(x, 16)
        assert least * 0.999 <= error <= 2 * least and error < ((x - equal[nearest(x, equal)]) ** 2).sum()


def test_numbers_that_are_far_apart_and_huge() -> None:
    x = np.concatenate([np.arange(40.0) * 1e300, -np.arange(40.0) * 1e-300, [1e308, -1e308]])
    back = nnc.palettise(x, 4).depalettise().numpy()
    assert np.isfinite(back).all() and np.max(np.abs(back - x)) < 5e300
    assert {1e308, -1e308} < set(back)


def test_the_same_for_the_same_numbers(device: str) -> None:
    a, b = (nnc.palettise(drawn(500), 4, block_size=77) for _ in range(2))
    assert np.array_equal(a.codes.numpy(), b.codes.numpy()) and np.array_equal(a.palette.numpy(), b.palette.numpy())


def test_the_dtype_of_the_palette(device: str) -> None:
    x = drawn(400)
    held = nnc.palettise(x, 4, dtype=nnc.float16)
    assert held.palette.dtype == nnc.float16 and held.depalettise().dtype == nnc.float16
    codes = nnc.depalettise(held.codes, np.arange(16, dtype=np.float32)[None], bits=4, shape=400).numpy().astype(int)
    entries = held.palette.numpy()[0].astype(np.float64)
    distances = np.abs(x[:, None] - entries)
    assert np.array_equal(distances[np.arange(400), codes], distances.min(1))


# ---- gradients and modes
def test_gradients_by_the_palette(device: str) -> None:
    x = drawn(3, 7)
    held = nnc.palettise(x, 4, block_size=10)
    weights = nnc.asarray(drawn(3, 7, seed=1))

    def read(palette: nnc.Tensor) -> nnc.Tensor:
        return nnc.depalettise(held.codes, palette, bits=4, shape=(3, 7), block_size=10)

    places = np.arange(48, dtype=np.float32).reshape(3, 16)
    shown = read(nnc.asarray(places)).numpy().astype(int)
    expected = np.zeros(48, np.float32)
    np.add.at(expected, shown.ravel(), weights.numpy().ravel())
    found = nnc.grad(lambda p: (read(p) * weights).sum())(held.palette)
    np.testing.assert_allclose(found.numpy().ravel(), expected, rtol=1e-6)
    tangent = nnc.asarray(drawn(3, 16, seed=2))
    y, dy = nnc.jvp(read, (held.palette,), (tangent,))
    assert np.array_equal(y.numpy(), read(held.palette).numpy())
    assert np.array_equal(dy.numpy(), tangent.numpy().ravel()[shown])
    second = nnc.grad(lambda p: (nnc.grad(lambda q: (read(q) ** 3).sum())(p) * tangent).sum())(held.palette)
    counts = np.bincount(shown.ravel(), minlength=48).reshape(3, 16)
    np.testing.assert_allclose(second.numpy(), 6 * held.palette.numpy() * tangent.numpy() * counts, rtol=1e-5)


def test_deferred_compiled_and_mapped(device: str) -> None:
    held = nnc.palettise(drawn(5, 9), 7, block_size=9)
    wanted = held.depalettise().numpy()
    with nnc.deferred():
        late = nnc.depalettise(held.codes, held.palette, bits=7, shape=(5, 9), block_size=9) * 2
    assert np.array_equal(late.numpy(), wanted * 2)
    read = nnc.jit(lambda c, p: nnc.depalettise(c, p, bits=7, shape=(5, 9), block_size=9))
    assert np.array_equal(read(held.codes, held.palette).numpy(), wanted)
    several = nnc.stack([held.palette, held.palette * 3])
    found = nnc.vmap(lambda p: nnc.depalettise(held.codes, p, bits=7, shape=(5, 9), block_size=9))(several)
    np.testing.assert_allclose(found.numpy(), np.stack([wanted, wanted * 3]), rtol=1e-6)


# ---- errors
def test_errors_of_palettise(device: str) -> None:
    x = drawn(4)
    with pytest.raises(AttributeValueError, match="bits 9 is none of 4, 5, 6, 7, 8"):
        nnc.palettise(x, 9)
    with pytest.raises(AttributeValueError, match="block 0 should be"):
        nnc.palettise(x, 4, block_size=0)
    with pytest.raises(DTypeError, match="x is int64, not real"):
        nnc.palettise(np.arange(3))
    with pytest.raises(DTypeError, match="x is complex64"):
        nnc.palettise(x.astype(np.complex64))
    with pytest.raises(DTypeError, match="the palette is int8"):
        nnc.palettise(x, dtype=nnc.int8)
    with pytest.raises(AttributeValueError, match="-100000 is beyond the range of a palette of float16"):
        nnc.palettise([0.0, -1e5], dtype=nnc.float16)
    for bad in (np.nan, np.inf, -np.inf):
        with pytest.raises(NonfiniteError, match=r"x\[1, 0\] is -?(nan|inf), one of 2 numbers") as caught:
            nnc.palettise([[1.0, 2.0], [bad, bad]])
        assert caught.value.operator == "palettise" and "test_palettes.py" in str(caught.value)


def test_values_are_needed() -> None:
    with pytest.raises(ConcretizationError, match="palettise: the value of a symbol"):
        nnc.jit(lambda x: nnc.palettise(x, 4).depalettise())(nnc.ones(3))


def test_errors_of_depalettise_name_the_line(device: str) -> None:
    with pytest.raises(ShapeError, match=r"expected shape \(1, 16\)") as caught:
        nnc.depalettise(nnc.zeros(2, dtype=nnc.uint8), nnc.zeros((2, 16)), bits=4, shape=4)
    assert caught.value.operator == "depalettise" and "test_palettes.py" in str(caught.value)
