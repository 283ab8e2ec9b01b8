"""Discrete Fourier transforms of two axes, NumPy's names for the n-dimensional ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nnc_core.functions.fft import Sizes, fftn, ifftn, irfftn, rfftn
from nnc_core.values.arguments import ArrayLike, names_itself
from nnc_core.values.tensor import Tensor

__all__ = ["fft2", "ifft2", "irfft2", "rfft2"]


def _plane(transform: Callable[..., Tensor], name: str) -> Callable[..., Tensor]:
    def function(x: ArrayLike, /, *, s: Sizes = None, axes: Sequence[int] = (-2, -1),
                 norm: str | None = "backward") -> Tensor:
        return transform(x, s=s, axes=axes, norm=norm)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{transform.__name__} over two axes, the last ones if not given."
    return names_itself(function)


fft2, ifft2 = _plane(fftn, "fft2"), _plane(ifftn, "ifft2")
rfft2, irfft2 = _plane(rfftn, "rfft2"), _plane(irfftn, "irfft2")
