"""Cases of discrete Fourier transforms."""

from __future__ import annotations

from collections.abc import Hashable

from nnc_core.base.dtype import COMPLEX, DType, float32, float64
from nnc_core.shape.fft import NORMS
from nnc_plugins.conformance.case import Case, arrays

REAL = (float32, float64)


def _case(shape: tuple[int, ...], dtypes: tuple[DType, ...], smooth: bool = True, **attributes: Hashable) -> Case:
    shown = " ".join(f"{name} {value}" for name, value in attributes.items())
    return Case(f"{shape} {shown}", arrays(shape), dtypes, attributes, smooth=smooth)


def _complex() -> list[Case]:
    places = [((5,), (0,)), ((3, 4), (1,)), ((2, 3, 4), (0, 2)), ((1,), (0,)), ((2, 3), ())]
    large = [((0, 3), (1,)), ((7, 128), (1,)), ((12, 3, 35), (0, 1, 2))]
    return [*(_case(s, COMPLEX, axes=a, inverse=i, norm=n) for s, a in places for i in (False, True) for n in NORMS),
            *(_case(s, COMPLEX, False, axes=a, inverse=i, norm="backward") for s, a in large for i in (False, True))]


def _real() -> list[Case]:
    places = [((6,), 0), ((3, 5), 1), ((4, 2), 0), ((1,), 0), ((2, 3), 1)]
    return [*(_case(s, REAL, axis=a, norm=n) for s, a in places for n in NORMS),
            *(_case(s, REAL, False, axis=1, norm="backward") for s in ((0, 3), (7, 128), (3, 35)))]


def _inverse() -> list[Case]:
    places = [((4,), 0, 6), ((3, 3), 1, 5), ((3, 2), 0, 4), ((1,), 0, 1), ((2, 2), 1, 2)]
    return [*(_case(s, COMPLEX, axis=a, size=k, norm=n) for s, a, k in places for n in NORMS),
            *(_case(s, COMPLEX, False, axis=1, size=k, norm="backward") for s, k in
              (((0, 2), 3), ((7, 65), 128), ((3, 18), 35)))]


CASES: dict[str, list[Case]] = {"fft": _complex(), "rfft": _real(), "irfft": _inverse()}
