"""Discrete Fourier transforms: the Array API's extension, with gradients of any order.

They run on the host; a device without kernels of its own says so once for each.
"""

from __future__ import annotations

from nnc_core.functions import fft as functions
from nnc_core.functions import fft_planes
from nnc_core.functions.fft import *
from nnc_core.functions.fft_planes import *

__all__ = [*functions.__all__, *fft_planes.__all__]
