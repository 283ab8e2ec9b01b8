"""Transforms of signals."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnc_core.functions import fft
from nnc_core.functions import public as nnc
from nnc_core.io.onnx.reading.lanes import Host
from nnc_core.io.onnx.reading.registry import operator
from nnc_core.io.onnx.reading.run import NodeCall
from nnc_core.io.onnx.reading.types import FLOAT, dtype_of
from nnc_core.values.tensor import Tensor


@operator("DFT", since=20)
def dft(x: Tensor, length: Host | None = None, axis: Host | None = None, *, inverse: int = 0,
        onesided: int = 0) -> Tensor:
    """Real numbers (..., 1) or complex ones (..., 2) along an axis that counts without the last."""
    return _dft(x, length, -2 if axis is None else int(axis.reshape(())), inverse, onesided)


@operator("DFT", since=17)
def dft_first(x: Tensor, length: Host | None = None, *, axis: int = 1, inverse: int = 0, onesided: int = 0) -> Tensor:
    return _dft(x, length, axis, inverse, onesided)


def _dft(x: Tensor, length: Host | None, axis: int, inverse: int, onesided: int) -> Tensor:
    axis = axis % x.ndim
    size = None if length is None else int(length.reshape(()))
    if inverse and onesided:
        halves = nnc.complex(x[..., 0], x[..., 1])
        return nnc.astype(nnc.expand_dims(fft.irfft(halves, n=size, axis=axis), -1), x.dtype)
    if onesided:
        return _pairs(fft.rfft(x[..., 0], n=size, axis=axis), x.dtype)
    numbers = nnc.complex(x[..., 0], x[..., 1] if x.shape[-1] == 2 else nnc.zeros_like(x[..., 0]))
    return _pairs((fft.ifft if inverse else fft.fft)(numbers, n=size, axis=axis), x.dtype)


def _pairs(z: Tensor, dtype: Any) -> Tensor:
    return nnc.astype(nnc.stack([nnc.real(z), nnc.imag(z)], axis=-1), dtype)


@operator("STFT", since=17)
def stft(x: Tensor, step: Host, window: Tensor | None = None, length: Host | None = None, *,
         onesided: int = 1) -> Tensor:
    """Spectra (batch, frames, frequencies, 2) of frames of a signal (batch, length[, 1 or 2])."""
    hop = int(step.reshape(()))
    size = int(length.reshape(())) if length is not None else int(window.shape[0]) if window is not None else 0
    x = nnc.expand_dims(x, -1) if x.ndim == 2 else x
    count = (int(x.shape[1]) - size) // hop + 1
    places = np.arange(count)[:, None] * hop + np.arange(size)
    frames = nnc.take(x, nnc.asarray(places, device=x.device), axis=1)
    if window is not None:
        frames = nnc.multiply(frames, nnc.reshape(window, (-1, 1)))
    return _dft(frames, None, 2, 0, onesided)


@operator("MelWeightMatrix", since=17)
def mel_weight_matrix(bins: Host, length: Host, rate: Host, lower: Host, upper: Host, *, output_datatype: int = FLOAT,
                      call: NodeCall) -> Host:
    """Triangles on the mel scale (HTK's) over the bins of a spectrum, as the specification samples them."""
    count, size, hertz = int(bins), int(length), int(rate)
    ends = _mel(np.asarray([float(lower), float(upper)]))
    points = np.arange(count + 2) * ((ends[1] - ends[0]) / (count + 2)) + ends[0]
    edges = np.floor((size + 1) * _hertz(points) / hertz).astype(np.int64)
    weights = np.zeros((size // 2 + 1, count))
    for i in range(count):
        low, middle, high = edges[i: i + 3]
        if low == middle:
            weights[middle, i] = 1
        else:
            weights[low: middle + 1, i] = np.arange(middle - low + 1) / (middle - low)
        weights[middle:high, i] = np.arange(high - middle, 0, -1) / max(high - middle, 1)
    return weights.astype(dtype_of(output_datatype))


def _mel(hertz: Any) -> Any:
    return 2595 * np.log10(1 + hertz / 700)


def _hertz(mel: Any) -> Any:
    return 700 * (10 ** (mel / 2595) - 1)
