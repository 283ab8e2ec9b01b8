"""Discrete Fourier transforms: the Array API's extension.

`norm` says which way is scaled by the number of elements: "backward" (or None) the inverse one, "forward" the other,
"ortho" both by its root.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nnc_core.base.dtype import complex_of, float32, float64, is_complex, is_float
from nnc_core.base.errors import AttributeValueError, DTypeError, ShapeError
from nnc_core.functions.creation import asarray
from nnc_core.functions.pieces import cut
from nnc_core.operator.fft import OTHER
from nnc_core.shape.axes import normalise_axes, normalise_axis
from nnc_core.shape.fft import NORMS, half
from nnc_core.type import Dim, DimLike, admit_numpy, default_float, whole
from nnc_core.values.argument_checks import mismatch_error
from nnc_core.values.arguments import ArrayLike, as_value, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.repetition import by_shapes
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn", "rfft",
    "rfftfreq", "rfftn",
]  # fmt: skip

Sizes = Sequence[DimLike] | None


# ---- operands
def _complex(x: ArrayLike) -> Value:
    v = as_value(x)
    if is_complex(v.dtype):
        return v
    v = _floats(v)
    return F.cast(v, dtype=complex_of(v.dtype))


def _real(x: ArrayLike) -> Value:
    return _floats(as_value(x))


def _floats(v: Value) -> Value:
    """float32 or float64; integers become the default float dtype."""
    if is_complex(v.dtype) or (is_float(v.dtype) and v.dtype not in (float32, float64)):
        raise DTypeError(f"needs float32 or float64, not {v.dtype}",
                         hint="fft takes complex numbers" if is_complex(v.dtype) else "cast with astype")
    return v if is_float(v.dtype) else F.cast(v, dtype=default_float())


def _scaled(norm: str | None) -> str:
    return "backward" if norm is None else norm


def _other(norm: str | None) -> str:
    norm = _scaled(norm)
    if norm not in OTHER:
        raise AttributeValueError(f"norm {norm!r} is none of {', '.join(map(repr, NORMS))}")
    return OTHER[norm]


def _sized(v: Value, axis: int, size: DimLike | None) -> Value:
    """Cut off, or filled up with zeros."""
    there = v.shape[axis]
    if size is None or size == there:
        return v
    size = size if isinstance(size, Dim) else whole(size, "n")
    if not (isinstance(size, int) and isinstance(there, int)):
        raise AttributeValueError(f"axis {axis} of {v.spec} is not brought to length {size}: one of them is a name",
                                  hint="pad it first")
    if size < 1:
        raise AttributeValueError(f"size {size} is not positive")
    if size < there:
        return cut(v, axis, 0, size)
    high = tuple([size - there if a == axis else 0 for a in range(v.ndim)])
    return F.pad(v, low=(0,) * v.ndim, high=high, interior=(0,) * v.ndim)


def _over(v: Value, s: Sizes, axes: Sequence[int] | None) -> tuple[list[int], list[DimLike | None]]:
    """Axes in canonical form, in their order, and the length of each; without axes the last ones, or all."""
    if s is not None and not isinstance(s, (tuple, list)):
        raise mismatch_error("s", s, "a sequence of lengths")
    if axes is None:
        axes = range(v.ndim) if s is None else range(v.ndim - len(s), v.ndim)
    elif not isinstance(axes, (tuple, list, range)):
        raise mismatch_error("axes", axes, "a sequence of axes")
    found = [normalise_axis(a, v.ndim) for a in axes]
    if len(set(found)) != len(found):
        raise AttributeValueError(f"axes {tuple(axes)} name an axis twice")
    sizes: list[DimLike | None] = [None] * len(found) if s is None else list(s)
    if len(sizes) != len(found):
        raise AttributeValueError(f"{len(sizes)} sizes for {len(found)} axes", hint="give one for each axis")
    return found, sizes


def _over_some(v: Value, s: Sizes, axes: Sequence[int] | None) -> tuple[list[int], list[DimLike | None]]:
    """The same, where the last axis is another than the rest."""
    found, sizes = _over(v, s, axes)
    if not found:
        raise ShapeError(f"there is no axis to transform of {v.spec}", hint="one axis or more")
    return found, sizes


def _transformed(v: Value, axes: list[int], sizes: list[DimLike | None], inverse: bool, norm: str | None) -> Value:
    for axis, size in zip(axes, sizes, strict=True):
        v = _sized(v, axis, size)
    return F.fft(v, axes=tuple(sorted(axes)), inverse=inverse, norm=_scaled(norm)) if axes else v


# ---- of complex numbers
@by_shapes
@names_itself
def fft(x: ArrayLike, /, *, n: DimLike | None = None, axis: int = -1, norm: str | None = "backward") -> Tensor:
    """The transform along an axis, cut off or filled up with zeros to n elements first; complex numbers."""
    return _along("fft", x, n, axis, norm)


@by_shapes
@names_itself
def ifft(x: ArrayLike, /, *, n: DimLike | None = None, axis: int = -1, norm: str | None = "backward") -> Tensor:
    """The inverse of fft."""
    return _along("ifft", x, n, axis, norm)


def _along(name: str, x: ArrayLike, n: DimLike | None, axis: int, norm: str | None) -> Tensor:
    v = _complex(x)
    return Tensor(_transformed(v, [normalise_axis(axis, v.ndim)], [n], name == "ifft", norm))


@by_shapes
@names_itself
def fftn(x: ArrayLike, /, *, s: Sizes = None, axes: Sequence[int] | None = None,
         norm: str | None = "backward") -> Tensor:
    """The transform along several axes, all without `axes`, each brought to its length in `s` first."""
    v = _complex(x)
    return Tensor(_transformed(v, *_over(v, s, axes), False, norm))


@by_shapes
@names_itself
def ifftn(x: ArrayLike, /, *, s: Sizes = None, axes: Sequence[int] | None = None,
          norm: str | None = "backward") -> Tensor:
    """The inverse of fftn."""
    v = _complex(x)
    return Tensor(_transformed(v, *_over(v, s, axes), True, norm))


# ---- of real numbers
@by_shapes
@names_itself
def rfft(x: ArrayLike, /, *, n: DimLike | None = None, axis: int = -1, norm: str | None = "backward") -> Tensor:
    """The n // 2 + 1 non-negative frequencies of real numbers along an axis, brought to n elements first."""
    v = _real(x)
    at = normalise_axis(axis, v.ndim)
    return Tensor(F.rfft(_sized(v, at, n), axis=at, norm=_scaled(norm)))


def _signal(v: Value, axis: int, size: DimLike | None, norm: str | None) -> Value:
    if size is None:
        size = 2 * (v.shape[axis] - 1)
    elif not isinstance(size, Dim):
        size = whole(size, "n", 1)
    return F.irfft(_sized(v, axis, half(size)), axis=axis, size=size, norm=_scaled(norm))


@by_shapes
@names_itself
def irfft(x: ArrayLike, /, *, n: DimLike | None = None, axis: int = -1, norm: str | None = "backward") -> Tensor:
    """The inverse of rfft: n real numbers, without n twice as many as there are steps between the frequencies."""
    v = _complex(x)
    return Tensor(_signal(v, normalise_axis(axis, v.ndim), n, norm))


@by_shapes
@names_itself
def rfftn(x: ArrayLike, /, *, s: Sizes = None, axes: Sequence[int] | None = None,
          norm: str | None = "backward") -> Tensor:
    """rfft along the last axis, fft along the others."""
    v = _real(x)
    found, sizes = _over_some(v, s, axes)
    last = F.rfft(_sized(v, found[-1], sizes[-1]), axis=found[-1], norm=_scaled(norm))
    return Tensor(_transformed(last, found[:-1], sizes[:-1], False, norm))


@by_shapes
@names_itself
def irfftn(x: ArrayLike, /, *, s: Sizes = None, axes: Sequence[int] | None = None,
           norm: str | None = "backward") -> Tensor:
    """The inverse of rfftn."""
    v = _complex(x)
    found, sizes = _over_some(v, s, axes)
    return Tensor(_signal(_transformed(v, found[:-1], sizes[:-1], True, norm), found[-1], sizes[-1], norm))


# ---- of what has real frequencies
@by_shapes
@names_itself
def hfft(x: ArrayLike, /, *, n: DimLike | None = None, axis: int = -1, norm: str | None = "backward") -> Tensor:
    """The n real frequencies of a signal of which one half is given, the other being its conjugate."""
    v = F.conj(_complex(x))
    return Tensor(_signal(v, normalise_axis(axis, v.ndim), n, _other(norm)))


@by_shapes
@names_itself
def ihfft(x: ArrayLike, /, *, n: DimLike | None = None, axis: int = -1, norm: str | None = "backward") -> Tensor:
    """The inverse of hfft."""
    v = _real(x)
    at = normalise_axis(axis, v.ndim)
    return Tensor(F.conj(F.rfft(_sized(v, at, n), axis=at, norm=_other(norm))))


# ---- frequencies, and their order
def _frequencies(k: Any, n: int, d: float, dtype: Any, device: Any) -> Tensor:
    wanted = default_float() if dtype is None else admit_numpy(dtype)
    return asarray((k / (n * d)).astype(wanted), device=device)


@by_shapes
@names_itself
def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of fft in cycles per unit, of n samples `d` units apart: the positive ones, then the negative."""
    count = whole(n, "the number of samples", 1)
    k = np.arange(count)
    return _frequencies(np.where(k < (count + 1) // 2, k, k - count), count, d, dtype, device)


@by_shapes
@names_itself
def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of rfft in cycles per unit, of n samples `d` units apart."""
    count = whole(n, "the number of samples", 1)
    return _frequencies(np.arange(count // 2 + 1), count, d, dtype, device)


def _rolled(x: ArrayLike, axes: int | Sequence[int] | None, back: bool) -> Tensor:
    v = as_value(x)
    for axis in normalise_axes(axes, v.ndim):
        length = v.shape[axis]
        first = length // 2 if back else length - length // 2
        v = F.concat(cut(v, axis, first, length), cut(v, axis, 0, first), axis=axis)
    return Tensor(v)


@by_shapes
@names_itself
def fftshift(x: ArrayLike, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """Frequency zero moved to the middle of axes, of all without `axes`."""
    return _rolled(x, axes, False)


@by_shapes
@names_itself
def ifftshift(x: ArrayLike, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """The inverse of fftshift."""
    return _rolled(x, axes, True)
