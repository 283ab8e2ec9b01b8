"""Windows of sampled signals, which fall off towards their ends.

They are symmetric, or with `periodic` the first elements of one that is longer by one: one period of a wave.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import pi
from typing import Any

from nnc_core.base.dtype import accumulator, int64, is_float
from nnc_core.base.errors import AttributeValueError, DTypeError
from nnc_core.functions.creation import created_on
from nnc_core.functions.reduction import as_dtype
from nnc_core.type import admit_numpy, default_float, whole
from nnc_core.values.arguments import names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.repetition import by_shapes
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

__all__ = ["bartlett", "blackman", "general_cosine", "hamming", "hanning", "kaiser"]


def _window(length: int, periodic: bool, dtype: Any, device: Any, shape: Callable[[Value], Value]) -> Tensor:
    """`shape` of places from -1 to 1, or up to the place before 1 if `periodic`; of one place it is 1."""
    n = max(whole(length, "length"), 0)
    with created_on(device) as stack:
        wanted = stack.type.admit(default_float() if dtype is None else admit_numpy(dtype))
        if not is_float(wanted):
            raise DTypeError(f"a window has floats, which {wanted} cannot hold", hint="dtype=float32")
        if n < 2:
            return Tensor(F.full(shape=(n,), value=1, dtype=wanted))
        spaces = n if periodic else n - 1
        steps = F.cast(F.arange(size=n, dtype=int64, start=-spaces, step=2), dtype=accumulator(wanted))
        return Tensor(as_dtype(shape(F.divide(steps, spaces)), wanted))


def _cosines(*heights: float) -> Callable[[Value], Value]:
    """heights[0] + heights[1] cos(pi t) + heights[2] cos(2 pi t) ..."""

    def shape(t: Value) -> Value:
        y = F.add(F.multiply(F.cos(F.multiply(t, pi)), heights[1]), heights[0])
        for k, height in enumerate(heights[2:], 2):
            y = F.add(y, F.multiply(F.cos(F.multiply(t, k * pi)), height))
        return y

    return shape


@by_shapes
@names_itself
def hanning(length: int, /, *, periodic: bool = False, dtype: Any = None, device: Any = None) -> Tensor:
    """Half a cosine wave over its lowest point: 0 at both ends."""
    return _window(length, periodic, dtype, device, _cosines(0.5, 0.5))


@by_shapes
@names_itself
def hamming(length: int, /, *, periodic: bool = False, dtype: Any = None, device: Any = None) -> Tensor:
    """A cosine wave with 0.08 at both ends."""
    return _window(length, periodic, dtype, device, _cosines(0.54, 0.46))


@by_shapes
@names_itself
def blackman(length: int, /, *, periodic: bool = False, dtype: Any = None, device: Any = None) -> Tensor:
    """Two cosine waves, with 0 at both ends."""
    return _window(length, periodic, dtype, device, _cosines(0.42, 0.5, 0.08))


@by_shapes
@names_itself
def general_cosine(length: int, coefficients: Sequence[float], /, *, periodic: bool = False, dtype: Any = None,
                   device: Any = None) -> Tensor:
    """The sum of coefficients[k] * cos(k pi t) at places t from -1 to 1: SciPy's, of which the Hann window (0.5, 0.5)
    and those of Hamming, Blackman, Nuttall and Harris are made."""
    heights = [float(c) for c in coefficients]
    if not heights:
        raise AttributeValueError("a window has one coefficient or more")
    return _window(length, periodic, dtype, device, _cosines(*heights, *[0.0] * (2 - len(heights))))


@by_shapes
@names_itself
def bartlett(length: int, /, *, periodic: bool = False, dtype: Any = None, device: Any = None) -> Tensor:
    """A triangle, with 0 at both ends."""
    return _window(length, periodic, dtype, device, lambda t: F.subtract(1, F.abs(t)))


@by_shapes
@names_itself
def kaiser(length: int, beta: float, /, *, periodic: bool = False, dtype: Any = None, device: Any = None) -> Tensor:
    """i0(beta sqrt(1 - t**2)) / i0(beta) at places t from -1 to 1."""
    size = abs(float(beta))

    def shape(t: Value) -> Value:
        """The window, by i0e(x) = exp(-x) i0(x), which does not overflow."""
        inside = F.multiply(F.sqrt(F.subtract(1, F.multiply(t, t))), size)
        grown = F.divide(F.i0e(inside), F.i0e(F.full_like(t, size)))
        return F.multiply(grown, F.exp(F.subtract(inside, size)))

    return _window(length, periodic, dtype, device, shape)
