"""Transforms of lengths with large prime factors, as convolutions (Bluestein, IEEE Trans. Audio Electroacoust. 1970).

As 2 j k = j j + k k - (j - k)(j - k), a transform of n elements is a product with a chirp, exp(-pi i k k / n), its
convolution with the conjugate of that, and the product again.  The convolution goes by transforms of a length that is
at least twice as long and has small factors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from nnc_core.base.command import Command
from nnc_core.operator.along import part_along

MULTIPLES = (1, 3, 5, 9, 15)
"""Lengths are powers of two times one of these."""
Array = np.ndarray[Any, Any]


def by_chirps(F: Any, inputs: Sequence[Any], command: Command, suits: Callable[[int], bool]) -> Any:
    """A transform by others of lengths that suit the code, as those do that have no prime factors above 5; None where
    its own do."""
    [x] = inputs
    match command.name:
        case "fft":
            axes, inverse, norm = command.attributes
            large = [axis for axis in axes if not suits(x.shape[axis])]
            return _of_axes(F, x, axes, large, inverse, norm) if large else None
        case "rfft":
            axis, norm = command.attributes
            if suits(x.shape[axis]):
                return None
            whole = _transform(F, F.complex_(x, F.zeros_like(x)), axis, False, norm)
            return part_along(F, whole, axis, 0, x.shape[axis] // 2 + 1)
    axis, size, norm = command.attributes
    return None if suits(size) else F.real(_transform(F, _whole(F, x, axis, size), axis, True, norm))


def _of_axes(F: Any, x: Any, axes: Sequence[int], large: Sequence[int], inverse: bool, norm: str) -> Any:
    """Along axes, those with large factors one after another."""
    for axis in large:
        x = _transform(F, x, axis, inverse, norm)
    rest = tuple([axis for axis in axes if axis not in large])
    return F.fft(x, axes=rest, inverse=inverse, norm=norm) if rest else x


def _transform(F: Any, x: Any, axis: int, inverse: bool, norm: str) -> Any:
    points = x.shape[axis]
    length = padded_length(points)
    before, between, after = (_along(F, chirp, axis, x) for chirp in chirps(points, inverse, norm))
    low, high = [0] * len(x.shape), [0] * len(x.shape)
    high[axis] = length - points
    x = F.pad(F.multiply(x, before), low=tuple(low), high=tuple(high), interior=tuple(low))
    x = F.multiply(F.fft(x, axes=(axis,), inverse=False, norm="backward"), between)
    x = F.fft(x, axes=(axis,), inverse=True, norm="backward")
    return F.multiply(part_along(F, x, axis, 0, points), after)


def _along(F: Any, host: Array, axis: int, like: Any) -> Any:
    """A constant along an axis of an array."""
    return F.constant_of(host.astype(like.dtype).reshape(-1, *(1,) * (len(like.shape) - 1 - axis)))


def _whole(F: Any, x: Any, axis: int, size: int) -> Any:
    """All frequencies of so many real numbers; of those that are their own conjugates the imaginary parts are not
    read."""
    middle = (size + 1) // 2
    inside = part_along(F, x, axis, 1, middle)
    ends = [part_along(F, x, axis, n, n + 1) for n in ((0, middle) if size % 2 == 0 else (0,))]
    first, *last = [F.complex_(F.real(end), F.zeros_like(F.real(end))) for end in ends]
    return F.concat(first, inside, *last, F.flip(F.conj(inside), axes=(axis,)), axis=axis)


def scale_of(points: int, inverse: bool, norm: str) -> float:
    """The factor of a transform's result: none where the other way has it."""
    if norm == "ortho":
        return float(points**-0.5)
    return 1 / points if inverse == (norm == "backward") else 1.0


def chirps(points: int, inverse: bool, norm: str) -> tuple[Array, Array, Array]:
    """The factors before, those between the transforms, and those behind, which have the scale too."""
    length = padded_length(points)
    squares = np.arange(points, dtype=np.int64) ** 2 % (2 * points)  # a chirp turns once in 2 n
    angles = squares * (4 * np.arctan(np.longdouble(1)) / points)
    chirp = np.cos(angles) + (1j if inverse else -1j) * np.sin(angles)
    wave = np.zeros(length, np.clongdouble)
    wave[:points] = chirp.conj()
    wave[length - points + 1 :] = chirp[:0:-1].conj()
    return tuple([x.astype(np.complex128) for x in (chirp, np.fft.fft(wave), chirp * scale_of(points, inverse, norm))])  # type: ignore[return-value]


@lru_cache(maxsize=1024)
def padded_length(points: int) -> int:
    """The length of the transforms."""
    least = 2 * points - 1
    return min([m << max(0, (-(-least // m) - 1).bit_length()) for m in MULTIPLES])
