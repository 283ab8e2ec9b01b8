"""Numbers multiplied and added with one rounding: what a dot does at each point."""

from __future__ import annotations

import numpy as np

from nnc_core.base.dtype import accumulator, is_integer
from tests.codegen.operations import fused


def multiplied_and_added(a: np.generic, b: np.generic, c: np.generic) -> np.generic:
    """a * b + c rounded once to the dtype of all three; halves through float32, integers wrap."""
    dtype = c.dtype
    with np.errstate(all="ignore"):
        if is_integer(dtype):
            return (a * b + c).astype(dtype)
        wide = accumulator(dtype)
        return fused(*(x.astype(wide) for x in (a, b, c)), wide).astype(dtype)
