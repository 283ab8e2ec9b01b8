"""The phase of complex vectors: the largest component of each, the first of several, is real and positive.

A factor of magnitude 1 is free in eigenvectors and singular vectors.  The references choose it so for all of them, so
that every function of the vectors has one value, whatever LAPACK computes them, and a derivative.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nnc_core.base import dtype as dt
from nnc_core.operator.declare import V
from nnc_core.operator.matrices import imaginary

if TYPE_CHECKING:
    from nnc_core.operator import Namespace


def phases(v: Any) -> Any:
    """Factors (..., 1, k) that give columns (..., m, k) this phase."""
    if v.shape[-2] == 0:
        return np.ones((*v.shape[:-2], 1, v.shape[-1]), v.dtype)
    found = np.take_along_axis(v, _largest(v), -2)
    size = np.sqrt(_squares(found))
    found[size == 0], size[size == 0] = 1, 1
    found.real, found.imag = found.real / size, -found.imag / size
    return found


def turned(v: Any, by: Any) -> Any:
    """Vectors times factors.  Each operation is rounded by itself, as those are that devices write, which NumPy's
    products of complex numbers are not everywhere."""
    out = np.empty(np.broadcast_shapes(v.shape, by.shape), v.dtype)
    out.real = v.real * by.real - v.imag * by.imag
    out.imag = v.real * by.imag + v.imag * by.real
    return out


def settled(v: Any) -> Any:
    """Columns times those factors, the largest components real to the last bit."""
    if v.shape[-2] == 0:
        return v
    out = turned(v, phases(v))
    np.put_along_axis(out.imag, _largest(v), 0, -2)
    return out


def _squares(v: Any) -> Any:
    return v.real * v.real + v.imag * v.imag


def _largest(v: Any) -> Any:
    return np.argmax(_squares(v), axis=-2, keepdims=True)


# ---- derivatives
def _anchors(F: Namespace[V], v: V) -> tuple[V, V]:
    """Marks of the components that are real, and their values (..., 1, k)."""
    sizes = F.where(F.equal(F.imag(v), 0), F.abs(F.real(v)), -1)
    row = F.argmax(sizes, axis=v.ndim - 2, keepdims=True)
    rows = F.reshape(F.arange(size=v.shape[-2], dtype=dt.int64), shape=(v.shape[-2], 1))
    places = F.equal(rows, row)
    return places, F.sum(F.where(places, F.real(v), 0), axis=(v.ndim - 2,), keepdims=True)


def turning(F: Namespace[V], v: V, dv: V) -> V:
    """The rate (..., 1, k), in radians, at which columns that move along dv have to turn to keep their phase."""
    if v.shape[-2] == 0:
        return F.sum(F.imag(dv), axis=(v.ndim - 2,), keepdims=True)
    places, sizes = _anchors(F, v)
    drift = F.sum(F.where(places, F.imag(dv), 0), axis=(v.ndim - 2,), keepdims=True)
    return F.negative(F.divide(drift, sizes))


def turning_back(F: Namespace[V], v: V, g: V) -> V:
    """The cotangent of dv, from that of `turning`."""
    if v.shape[-2] == 0:
        return F.zeros_like(v)
    places, sizes = _anchors(F, v)
    return F.where(places, imaginary(F, F.negative(F.divide(g, sizes))), 0)


def overlaps(F: Namespace[V], a: V, b: V) -> V:
    """(..., 1, k): the inner products of columns of a, conjugated, with those of b."""
    return F.sum(F.multiply(F.conjugate(a), b), axis=(a.ndim - 2,), keepdims=True)
