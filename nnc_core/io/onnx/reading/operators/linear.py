"""Products of matrices."""

from __future__ import annotations

from typing import Any

from nnc_core.functions import linalg_systems
from nnc_core.functions import public as nnc
from nnc_core.io.onnx.reading.registry import operator
from nnc_core.values.tensor import Tensor


@operator("MatMul")
def matmul(a: Tensor, b: Tensor) -> Tensor:
    return nnc.matmul(a, b)


def _gemm(a: Tensor, b: Tensor, c: Tensor | None, alpha: float, beta: float, transpose_a: int,
          transpose_b: int) -> Tensor:
    y = nnc.matmul(nnc.matrix_transpose(a) if transpose_a else a, nnc.matrix_transpose(b) if transpose_b else b)
    if alpha != 1:
        y = nnc.multiply(y, _number(alpha, y))
    if c is None or beta == 0:
        return y
    return nnc.add(y, c if beta == 1 else nnc.multiply(c, _number(beta, c)))


def _number(factor: float, beside: Tensor) -> Any:
    """The factor as a number of the dtype of integers, which take no fractions."""
    return int(factor) if beside.dtype.kind in "iu" else factor


@operator("Gemm")
def gemm_first(a: Tensor, b: Tensor, c: Tensor, *, alpha: float = 1.0, beta: float = 1.0, transA: int = 0,
               transB: int = 0, broadcast: int = 0) -> Tensor:
    return _gemm(a, b, c, alpha, beta, transA, transB)


@operator("Gemm", since=7)
def gemm(a: Tensor, b: Tensor, c: Tensor | None = None, *, alpha: float = 1.0, beta: float = 1.0, transA: int = 0,
         transB: int = 0) -> Tensor:
    return _gemm(a, b, c, alpha, beta, transA, transB)


@operator("Einsum")
def einsum(*xs: Tensor, equation: str) -> Tensor:
    return nnc.einsum(equation, *xs)


@operator("Det")
def det(x: Tensor) -> Tensor:
    return linalg_systems.det(x)
