"""Transforms by machine code against sums in higher precision, and the same bits wherever arrays lie."""

from __future__ import annotations

from math import log2

import numpy as np
import pytest

from nnc_core.base.command import Command
from nnc_core.base.config import config
from nnc_core.base.errors import NotSupportedError
from nnc_core.base.layout import Layout
from nnc_core.operator.steps.fourier import AxisTransform
from nnc_core.operator.steps.fourier_text import Way
from nnc_cpu.fourier import FOURIER
from nnc_cpu.fourier.driver import HEAD
from nnc_cpu.fourier.factors import factors_of, largest_prime, radices_of
from nnc_cpu.fourier.kernel import scratch_of
from tests.cpu.fourier.running import (
    PLACES,
    WAYS,
    compiler,
    drawn,
    error_of,
    problem_of,
    result_like,
    summed,
    transformed,
)
from tests.cpu.machine_code.running import HOSTS, run

SMOOTH = [n for n in range(1, 301) if largest_prime(n) <= 31 and largest_prime(-(-n // 2)) <= 31]
LONG = [1 << 10, 1 << 13, 1 << 15, 3 * 5**2 * 7**3, 3 * 5 * 7 * 11 * 13, 6000, 6561]
SHAPES = [((5,), 0), ((16,), 0), ((3, 12), 1), ((12, 3), 0), ((19, 30), 1), ((18, 21), 0), ((2, 9, 5), 1),
          ((2, 64, 17), 1), ((3, 256), 1), ((256, 2, 2), 0), ((4, 315), 1), ((1 << 15, 2), 0)]


def bound(points: int) -> float:
    """Errors that a transform may have, root mean square: rounding grows with the root of the number of passes."""
    return 0.6 + 0.4 * log2(max(points, 2)) ** 0.5


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("points", SMOOTH)
def test_every_length(points: int, way: Way) -> None:
    for real in ("float32", "float64"):
        x = drawn(way, (3, points), 1, real)
        assert error_of(transformed(way, x, 1, points), summed(way, x, 1, points)) < bound(points), real


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("points", LONG)
def test_long_rows(points: int, way: Way) -> None:
    """NumPy's transforms of float64 are near enough to hold those of float32 to."""
    reference = {"fft": np.fft.fft, "rfft": np.fft.rfft, "irfft": lambda x: np.fft.irfft(x, points)}[way]
    x = drawn(way, (2, points), 1, "float32")
    wanted = reference(x.astype(np.float64 if way == "rfft" else np.complex128))
    assert error_of(transformed(way, x, 1, points), wanted) < bound(points)
    wide = drawn(way, (2, points), 1, "float64")
    assert error_of(transformed(way, wide, 1, points), reference(wide)) < 2 * bound(points)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize("host", HOSTS)
def test_bits_depend_on_the_elements_alone(host: str, shape: tuple[int, ...], axis: int, way: Way) -> None:
    """Whatever the width of vectors, where arrays lie, and which rows are beside."""
    points = shape[axis]
    for real in ("float32", "float64"):
        x = drawn(way, shape, axis, real)
        wanted = transformed(way, x, axis, points)
        if host == "here":
            assert error_of(wanted, summed(way, x, axis, points)) < bound(points)
        places = [(a, b) for a in PLACES for b in PLACES] if host == "here" else [("turned", "packed")]
        for there in places:
            found = transformed(way, x, axis, points, host=host, places=there)
            assert found.tobytes() == wanted.tobytes(), (real, there)
        row = np.moveaxis(x, axis, -1).reshape(-1, x.shape[axis])[:1].copy()
        alone = transformed(way, row, 1, points, host=host)
        assert alone.tobytes() == np.moveaxis(wanted, axis, -1).reshape(-1, wanted.shape[axis])[0].tobytes()


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("inverse", [False, True])
def test_norms_and_inverses(inverse: bool, norm: str) -> None:
    for points in (1, 12, 64):
        for shape, axis in (((3, points), 1), ((points, 20), 0), ((points,), 0)):
            x = drawn("fft", shape, axis, "float64")
            found = transformed("fft", x, axis, points, inverse, norm)
            assert error_of(found, summed("fft", x, axis, points, inverse, norm)) < bound(points)
            for way in WAYS[1:]:
                x = drawn(way, shape, axis, "float32")
                found = transformed(way, x, axis, points, norm=norm)
                assert error_of(found, summed(way, x, axis, points, norm=norm)) < bound(points)


@pytest.mark.parametrize("points", [7, 8, 90, 512])
def test_real_signals_have_real_ends(points: int) -> None:
    """The first frequency, and of an even number the last, are real to the bit."""
    for shape, axis in (((20, points), 1), ((points, 20), 0), ((points,), 0)):
        found = np.moveaxis(transformed("rfft", drawn("rfft", shape, axis, "float32"), axis, points), axis, -1)
        assert (found[..., 0].imag == 0).all()
        assert points % 2 or (found[..., -1].imag == 0).all()


def test_what_is_not_finite_stays_in_its_row() -> None:
    x = drawn("fft", (5, 128), 1, "float32")
    wanted = transformed("fft", x, 1, 128)
    x[2, 3] = np.nan
    x[3, 4] = np.inf
    found = transformed("fft", x, 1, 128)
    assert not np.isfinite(found[2:4]).any()
    assert found[[0, 1, 4]].tobytes() == wanted[[0, 1, 4]].tobytes()


def test_factors() -> None:
    for points in range(1, 3000):
        factors = factors_of(points)
        assert (factors is None) == (largest_prime(points) > 31)
        if factors is not None:
            assert factors.height * factors.width == points
            assert all(largest_prime(radix) <= 31 for radix in (*factors.columns, *factors.rows))
    assert radices_of(1 << 10) == (16, 8, 8) and radices_of(1 << 11) == (8, 8, 8, 4)


def test_large_prime_factors_are_left_to_numpy() -> None:
    """Of real numbers it is half of an even length that counts."""

    def refused(way: Way, points: int) -> bool:
        x = drawn(way, (points,), 0, "float32")
        try:
            problem_of("here", way, x, x.astype(np.complex64), 0, False, "backward")
        except NotSupportedError as error:
            return "prime" in error.message
        return False

    assert [refused("fft", n) for n in (31, 37, 74)] == [False, True, True]
    assert [refused("rfft", n) for n in (62, 37, 74)] == [False, True, True]
    with pytest.raises(NotSupportedError, match="axis"):
        layout = Layout.packed((3,), np.dtype(np.complex64))
        compiler("here").problem(AxisTransform("fft", layout, layout, None, False, "backward"))


@pytest.mark.parametrize("points", [6, 64, 256, 4200])
def test_views_of_every_kind(points: int) -> None:
    """Reversed, repeated and every second element or row."""
    whole = drawn("fft", (6, points), 1, "float32")
    views = [whole[::-1], whole[:, ::-1], whole[::2], np.broadcast_to(whole[:1], whole.shape),
             np.broadcast_to(whole[:, :1], whole.shape)]
    for view in views:
        wanted = transformed("fft", np.ascontiguousarray(view), 1, points)
        y = np.empty(view.shape, view.dtype)
        start = view.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
        source = Layout(view.shape, view.dtype, start, view.strides)
        problem = compiler("here").problem(AxisTransform("fft", source, Layout.packed(y.shape, y.dtype), 1, False,
                                                         "backward"))
        run(compiler("here").kernel([problem]), [whole, y, np.zeros(scratch_of(problem).nbytes, np.uint8)])
        assert y.tobytes() == wanted.tobytes(), view.strides


def test_elements_that_are_not_aligned_are_left_to_numpy() -> None:
    y = Layout.packed((4, 8), np.dtype(np.complex64))
    for x in (y._replace(strides=(68, 8)), y._replace(offset=2)):
        reason = FOURIER["fft"].refuse(Command("fft", ((1,), False, "backward"), (x,), (y,)))
        assert reason == "elements are not aligned"
    assert FOURIER["fft"].refuse(Command("fft", ((1,), False, "backward"), (y,), (y,))) is None


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("points", [1 << 16, 3**10])
def test_rows_that_threads_share(points: int, way: Way) -> None:
    """The next row waits for the one before; the count of tasks that are done is zero again behind the last."""
    x = drawn(way, (2, points, 2), 1, "float32")
    wanted = transformed(way, x, 1, points)
    y = result_like(way, x, 1, points)
    part = problem_of("here", way, x, y, 1, way == "irfft", "backward", threads=64)
    assert part.kind.shared and not problem_of("here", way, x, y, 1, way == "irfft", "backward", threads=4).kind.shared
    kernel, scratch = compiler("here").kernel([part]), np.zeros(scratch_of(part).nbytes, np.uint8)
    for threads in (1, 2, 1):
        with config.using(threads=threads):
            run(kernel, [x, y, scratch])
        assert y.tobytes() == wanted.tobytes()
        assert not scratch[:HEAD].any()
        y[...] = 0
