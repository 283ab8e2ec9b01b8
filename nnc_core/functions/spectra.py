"""Short-time Fourier transforms, and back."""

from __future__ import annotations

from typing import Any, NamedTuple

from nnc_core.base.dtype import complex_of, float32, float64, is_complex, is_float, real_of
from nnc_core.base.errors import AttributeValueError, DTypeError, ShapeError
from nnc_core.functions.constants import beside
from nnc_core.functions.padding import pad
from nnc_core.functions.pieces import cut
from nnc_core.type import DimLike, whole
from nnc_core.values.arguments import ArrayLike, as_value, as_value_beside, count_of, names_itself, stack_of
from nnc_core.values.dispatch import F
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

__all__ = ["istft", "stft"]

LEAST = 1e-11
"""Sums of squared windows below it count as no window at all."""


class _Frames(NamedTuple):
    """Frames of `size` elements each, `hop` apart, and the window that they are multiplied by."""

    size: int
    hop: int
    window: Value

    @property
    def sliding(self) -> dict[str, Any]:
        return {"window": (self.size,), "strides": (self.hop,), "padding": ((0, 0),), "dilation": (1,),
                "layout": "NWC"}


def _frames(v: Value, n_fft: Any, hop_length: Any, win_length: Any, window: ArrayLike | None) -> _Frames:
    size = whole(n_fft, "n_fft", 1)
    hop = whole(hop_length, "hop_length", 1) if hop_length is not None else max(size // 4, 1)
    dtype = real_of(v.dtype)
    if window is None:
        length = size if win_length is None else whole(win_length, "win_length", 1)
        with beside(v):
            w = F.full(shape=(length,), value=1, dtype=dtype)
    else:
        w = as_value_beside(window, v)
        w = w if w.dtype == dtype else F.cast(w, dtype=dtype)
    length = int(w.shape[0]) if w.ndim == 1 else 0
    if w.ndim != 1 or length > size or (win_length is not None and length != win_length):
        raise ShapeError(f"the window {w.spec} should be a vector of {win_length or 'at most'} {size} elements")
    low = (size - length) // 2
    if length < size:
        w = F.pad(w, low=(low,), high=(size - length - low,), interior=(0,))
    return _Frames(size, hop, w)


def _floats(v: Value) -> Value:
    if real_of(v.dtype) not in (float32, float64) or not (is_float(v.dtype) or is_complex(v.dtype)):
        raise DTypeError(f"needs float32, float64 or complex numbers, not {v.dtype}", hint="cast with astype")
    return v


def _rows(v: Value) -> Value:
    """(count, length, 1)"""
    return F.reshape(v, shape=(count_of(v.shape[:-1]), v.shape[-1], 1))


@names_itself
def stft(x: ArrayLike, n_fft: int, /, *, hop_length: int | None = None, win_length: int | None = None,
         window: ArrayLike | None = None, center: bool = True, pad_mode: str = "reflect", normalized: bool = False,
         onesided: bool | None = None) -> Tensor:
    """Fourier transforms (..., frequencies, frames) of frames of `n_fft` elements, `hop_length` apart (a quarter of a
    frame if not given), of signals x (..., length).

    Frames are multiplied by the window (ones if not given), to which zeros are added on both sides if it is shorter.
    With `center`, frame t is around element t * hop_length: x is padded at both ends, as `pad_mode` says.  `normalized`
    divides by the root of n_fft.  `onesided`, which real x has by default, leaves out the negative frequencies.
    """
    v = _floats(as_value(x, stack_of((x, window))))
    if not v.ndim:
        raise ShapeError(f"{v.spec} is no signal")
    how, both = _frames(v, n_fft, hop_length, win_length, window), is_complex(v.dtype)
    if onesided and both:
        raise AttributeValueError("complex signals have negative frequencies", hint="onesided=False")
    parts = [F.real(v), F.imag(v)] if both else [v]
    framed = [_framed(p, how, center, pad_mode) for p in parts]
    norm = "ortho" if normalized else "backward"
    if both or onesided is False:
        wide = F.complex_(*framed) if both else F.cast(framed[0], dtype=complex_of(v.dtype))
        y = F.fft(wide, axes=(2,), norm=norm)
    else:
        y = F.rfft(framed[0], axis=2, norm=norm)
    y = F.permute(y, axes=(0, 2, 1))
    return Tensor(F.reshape(y, shape=(*v.shape[:-1], *y.shape[1:])))


def _framed(v: Value, how: _Frames, center: bool, pad_mode: str) -> Value:
    """(count, frames, elements), times the window."""
    if center:
        v = as_value(pad(Tensor(v), {-1: how.size // 2}, pad_mode))
    length = v.shape[-1]
    if isinstance(length, int) and length < how.size:
        raise ShapeError(f"{v.spec} has no frame of {how.size} elements", hint="pad it, or choose a smaller n_fft")
    return F.multiply(F.unfold(_rows(v), **how.sliding), how.window)


@names_itself
def istft(x: ArrayLike, n_fft: int, /, *, hop_length: int | None = None, win_length: int | None = None,
          window: ArrayLike | None = None, center: bool = True, normalized: bool = False, onesided: bool = True,
          length: int | None = None) -> Tensor:
    """Signals (..., length) of short-time transforms x (..., frequencies, frames), the inverse of `stft` with the same
    arguments: frames are transformed back, multiplied by the window, added where they lie, and divided by the sum of
    squared windows there.

    `length` cuts the result off, or fills it up with zeros.  Without `onesided` the result is complex.
    """
    v = as_value(x, stack_of((x, window)))
    if not is_complex(v.dtype) or v.ndim < 2:
        raise DTypeError(f"needs complex numbers (..., frequencies, frames), not {v.spec}")
    how = _frames(v, n_fft, hop_length, win_length, window)
    wanted = how.size // 2 + 1 if onesided else how.size
    if v.shape[-2] != wanted:
        raise ShapeError(f"{v.spec} should have {wanted} frequencies")
    rows = F.permute(F.reshape(v, shape=(count_of(v.shape[:-2]), *v.shape[-2:])), axes=(0, 2, 1))
    norm = "ortho" if normalized else "backward"
    if onesided:
        y = _added(F.irfft(rows, axis=2, size=how.size, norm=norm), how)
    else:
        whole_frames = F.fft(rows, axes=(2,), inverse=True, norm=norm)
        y = F.complex_(_added(F.real(whole_frames), how), _added(F.imag(whole_frames), how))
    y = F.reshape(y, shape=(*v.shape[:-2], y.shape[1]))
    return Tensor(_ends(y, how.size // 2 if center else 0, length))


def _added(frames: Value, how: _Frames) -> Value:
    """(count, length): frames added where they lie, by the sum of squared windows."""
    count, number, _ = frames.shape
    size: DimLike = (number - 1) * how.hop + how.size
    total = F.fold(F.multiply(frames, how.window), size=(size,), **how.sliding)
    square = F.reshape(F.multiply(how.window, how.window), shape=(1, 1, how.size))
    weight = F.fold(F.broadcast_to(square, shape=(1, number, how.size)), size=(size,), **how.sliding)
    return F.reshape(F.divide(total, F.where(F.greater(weight, LEAST), weight, 1)), shape=(count, size))


def _ends(y: Value, margin: int, length: int | None) -> Value:
    """Without what was padded, as long as is wanted."""
    last = y.ndim - 1
    there: Any = y.shape[last]
    stop = there - margin if length is None else margin + whole(length, "length", 0)
    missing = stop - there if length is not None and isinstance(there, int) else 0
    y = cut(y, last, margin, min(stop, there) if length is not None else stop)
    if missing <= 0:
        return y
    with beside(y):
        nothing = F.full(shape=(*y.shape[:-1], missing), value=0, dtype=real_of(y.dtype))
    return F.concat(y, nothing, axis=last) if y.dtype == nothing.dtype else F.complex_(
        F.concat(F.real(y), nothing, axis=last), F.concat(F.imag(y), nothing, axis=last))

