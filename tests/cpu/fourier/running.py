"""Transforms by machine code between guard bytes, for hosts of several widths, and sums in higher precision."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from nnc_core.base.dtype import complex_of, real_of
from nnc_core.base.layout import Layout
from nnc_core.operator.steps.fourier import AxisTransform
from nnc_core.operator.steps.fourier_text import Way
from nnc_cpu.fourier.kernel import FourierCompiler, scratch_of
from nnc_cpu.fourier.problem import FourierProblem
from nnc_cpu.fourier.problem import problem_of as arranged
from nnc_cpu.kinds import FunctionCode
from tests.cpu.machine_code.running import HOSTS, run

Values = np.ndarray[Any, Any]
WAYS: tuple[Way, ...] = ("fft", "rfft", "irfft")
PLACES = ("packed", "turned", "with gaps")
MOST_SUMMED = 1 << 11
"""Elements of the longest row for which all roots of unity are made: as many squared, of 32 bytes each."""
_KEPT = set[FunctionCode]()
"""Code that other tests use again; it goes with its last kernel otherwise."""


@cache
def compiler(host: str) -> FourierCompiler:
    return FourierCompiler(HOSTS[host])


def placed(x: Values, how: str) -> tuple[Values, Values]:
    """Memory, and in it an array like x: packed, the last axis first, or with gaps between all elements."""
    if how == "turned":
        room = np.empty(x.shape[::-1], x.dtype)
        return room, room.transpose()
    room = np.empty(tuple([2 * n for n in x.shape]) if how == "with gaps" else x.shape, x.dtype)
    return room, room[tuple([slice(None, None, 2)] * x.ndim)] if how == "with gaps" else room


def drawn(way: Way, shape: tuple[int, ...], axis: int, real: str) -> Values:
    """An operand of which `shape` is the signal's: for real ones half of the frequencies, with idle imaginary parts."""
    if way == "irfft":
        shape = (*shape[:axis], shape[axis] // 2 + 1, *shape[axis + 1 :])
    x, y = np.random.default_rng(sum(shape)).standard_normal((2, *shape))
    return np.asarray(x if way == "rfft" else x + 1j * y).astype(real if way == "rfft" else complex_of(np.dtype(real)))


def result_like(way: Way, x: Values, axis: int, points: int) -> Values:
    length = points // 2 + 1 if way == "rfft" else points
    shape = (*x.shape[:axis], length, *x.shape[axis + 1 :])
    return np.full(shape, 7, real_of(x.dtype) if way == "irfft" else complex_of(real_of(x.dtype)))


def transformed(way: Way, x: Values, axis: int, points: int, inverse: bool = False, norm: str = "backward",
                host: str = "here", places: tuple[str, str] = ("packed", "packed")) -> Values:
    """The result of machine code."""
    (x_room, x_there), (y_room, y_there) = placed(x, places[0]), placed(result_like(way, x, axis, points), places[1])
    x_room[...] = 3
    x_there[...], y_room[...] = x, 7
    problem = problem_of(host, way, x_there, y_there, axis, inverse or way == "irfft", norm)
    kernel = compiler(host).kernel([problem])
    _KEPT.add(kernel.code)  # type: ignore[attr-defined]
    scratch = np.zeros(scratch_of(problem).nbytes, np.uint8)
    run(kernel, [x_room, y_room, scratch])
    if places[1] == "with gaps":
        between = np.ones(y_room.shape, bool)
        between[tuple([slice(None, None, 2)] * y_room.ndim)] = False
        assert (y_room[between] == 7).all(), "memory between elements was written"
    return y_there.copy()


def problem_of(host: str, way: Way, x: Values, y: Values, axis: int, inverse: bool, norm: str,
               threads: int = 1) -> FourierProblem:
    layouts = [Layout(a.shape, a.dtype, 0, a.strides) for a in (x, y)]
    lanes = 4 * HOSTS[host].lanes // real_of(x.dtype).itemsize
    return arranged(AxisTransform(way, *layouts, axis, inverse, norm), lanes, threads)


def summed(way: Way, x: Values, axis: int, points: int, inverse: bool = False, norm: str = "backward") -> Values:
    """The same by sums over all elements, in longer floats where the machine has them; by NumPy's transforms in these
    where all roots of unity would be too many."""
    wide = np.moveaxis(x.astype(np.clongdouble), axis, -1)
    if way == "irfft":
        inverse, wide = True, whole_spectrum(wide, points)
    if points <= MOST_SUMMED:
        found = wide @ roots(points, inverse)
    else:
        found = np.fft.ifft(wide, norm="forward") if inverse else np.fft.fft(wide)
    y = np.moveaxis(found, -1, axis) * scale_of(points, inverse, norm)
    if way == "irfft":
        return np.asarray(y.real)
    return np.take(y, range(points // 2 + 1), axis) if way == "rfft" else y


def roots(points: int, inverse: bool) -> Values:
    """Roots of unity, the matrix of a transform."""
    turns = np.outer(np.arange(points), np.arange(points)) % points / np.longdouble(points)
    matrix: Values = np.exp((2j if inverse else -2j) * 4 * np.arctan(np.longdouble(1)) * turns)
    return matrix


def scale_of(points: int, inverse: bool, norm: str) -> Any:
    if norm == "ortho":
        return 1 / np.sqrt(np.longdouble(points))
    return 1 / np.longdouble(points) if inverse == (norm == "backward") else 1


def whole_spectrum(half: Values, points: int) -> Values:
    """All frequencies of real numbers, along the last axis; those that are their own conjugates are real."""
    half = half.copy()
    half[..., 0] = half[..., 0].real
    if points % 2 == 0:
        half[..., -1] = half[..., -1].real
    return np.concatenate([half, half[..., 1 : (points + 1) // 2][..., ::-1].conj()], -1)


def error_of(found: Values, wanted: Values) -> float:
    """The root of the mean square of errors, in units of the dtype's precision and of that of the elements."""
    if not found.size:
        return 0.0
    size = np.sqrt(np.mean(np.abs(wanted) ** 2))
    error = np.sqrt(np.mean(np.abs(found - wanted) ** 2))
    return float(error / size / np.finfo(found.dtype).eps)
