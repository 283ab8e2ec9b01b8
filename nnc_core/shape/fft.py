"""Rules of discrete Fourier transforms."""

from __future__ import annotations

from nnc_core.base import dtype as dt
from nnc_core.base.errors import AttributeValueError, DTypeError, ShapeError
from nnc_core.shape.axes import check_axes
from nnc_core.type import DimLike, TensorSpec

NORMS = ("backward", "ortho", "forward")
"""Directions scaled by the number of elements: the inverse one, both by its root, the forward one."""


def _checked(x: TensorSpec, axes: tuple[int, ...], norm: str) -> None:
    check_axes(axes, x.ndim)
    if norm not in NORMS:
        raise AttributeValueError(f"norm {norm!r} is none of {', '.join(map(repr, NORMS))}")
    for axis in axes:
        if x.shape[axis] == 0:
            raise ShapeError(f"axis {axis} of {x} is empty: there is nothing to transform")


def _complex(x: TensorSpec) -> None:
    if not dt.is_complex(x.dtype):
        raise DTypeError(f"needs complex numbers, not {x.dtype}", hint="cast with astype, or take rfft")


def fft(x: TensorSpec, axes: tuple[int, ...], inverse: bool, norm: str) -> TensorSpec:
    """Complex numbers in, the same out."""
    _complex(x)
    if len(set(axes)) != len(axes):
        raise AttributeValueError(f"axes {axes} name an axis twice")
    _checked(x, axes, norm)
    return x


def half(size: DimLike) -> DimLike:
    """The number of frequencies of a real signal of that length that are not conjugates of others."""
    return size // 2 + 1


def rfft(x: TensorSpec, axis: int, norm: str) -> TensorSpec:
    """float32 or float64 in, complex numbers out: the non-negative frequencies."""
    if x.dtype not in (dt.float32, dt.float64):
        raise DTypeError(f"needs float32 or float64, not {x.dtype}",
                         hint="take fft of complex numbers" if dt.is_complex(x.dtype) else "cast with astype")
    _checked(x, (axis,), norm)
    return TensorSpec((*x.shape[:axis], half(x.shape[axis]), *x.shape[axis + 1 :]), dt.complex_of(x.dtype))


def irfft(x: TensorSpec, axis: int, size: DimLike, norm: str) -> TensorSpec:
    """The non-negative frequencies of a real signal of `size` elements in, the signal out."""
    _complex(x)
    _checked(x, (axis,), norm)
    if isinstance(size, int) and size < 1:
        raise AttributeValueError(f"size {size} is not positive")
    if x.shape[axis] != half(size):
        raise ShapeError(f"a signal of {size} elements has {half(size)} frequencies, axis {axis} of {x} has "
                         f"{x.shape[axis]}")
    return TensorSpec((*x.shape[:axis], size, *x.shape[axis + 1 :]), dt.real_of(x.dtype))
