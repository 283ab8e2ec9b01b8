"""Rules of matrix products."""

from __future__ import annotations

from nnc_core.base.errors import DTypeError, ShapeError
from nnc_core.shape.elementwise import broadcast, same_dtype
from nnc_core.type import TensorSpec
from nnc_core.type.promotion import kind_rank


def matmul(a: TensorSpec, b: TensorSpec, transpose_a: bool, transpose_b: bool) -> TensorSpec:
    """Stacks of matrices, each of at least two dimensions."""
    if a.ndim < 2 or b.ndim < 2:
        raise ShapeError(f"needs matrices, not {a} and {b}")
    dtype = same_dtype(a, b)
    if kind_rank(dtype) == 0:
        raise DTypeError("needs numbers, not booleans", hint="cast with astype")
    rows, inner = (a.shape[-1], a.shape[-2]) if transpose_a else (a.shape[-2], a.shape[-1])
    other, columns = (b.shape[-1], b.shape[-2]) if transpose_b else (b.shape[-2], b.shape[-1])
    if inner != other:
        raise ShapeError(f"inner dimensions {inner} and {other} differ",
                         hint="as many columns on the left as rows on the right; x.mT swaps the two")
    return TensorSpec((*broadcast(a.shape[:-2], b.shape[:-2]), rows, columns), dtype)
