"""Products of matrices."""

from __future__ import annotations

from nnc_core.base.errors import ShapeError
from nnc_core.dynamic.dispatch import F
from nnc_core.dynamic.functions.face import ArrayLike, as_values, located
from nnc_core.dynamic.tensor import Tensor

__all__ = ["matmul"]


@located
def matmul(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Matrix products of the last two axes, the others broadcast; vectors as NumPy has them."""
    a, b = as_values(x1, x2)
    if a.ndim == 0 or b.ndim == 0:
        raise ShapeError(f"{a.spec} and {b.spec}: a scalar has no matrix product", hint="multiply it")
    left = F.reshape(a, shape=(1, *a.shape)) if a.ndim == 1 else a
    right = F.reshape(b, shape=(*b.shape, 1)) if b.ndim == 1 else b
    y = F.matmul(left, right)
    dropped = [y.ndim - 2] * (a.ndim == 1) + [y.ndim - 1] * (b.ndim == 1)
    return Tensor(F.reshape(y, shape=tuple(d for i, d in enumerate(y.shape) if i not in dropped)) if dropped else y)
