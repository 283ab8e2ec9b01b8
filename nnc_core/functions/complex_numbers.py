"""Functions of complex numbers."""

from __future__ import annotations

from nnc_core.base.dtype import is_complex
from nnc_core.values.arguments import ArrayLike, as_operands, as_value, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.repetition import by_shapes
from nnc_core.values.tensor import Tensor

__all__ = ["complex", "conj", "imag", "iscomplexobj", "isrealobj", "real"]


@by_shapes
@names_itself
def complex(real: ArrayLike, imag: ArrayLike, /) -> Tensor:
    """real + i imag: complex64 of float32, complex128 of float64; infinities and signed zeros stay where they are."""
    return Tensor(F.complex_(*as_operands(real, imag)))


@by_shapes
@names_itself
def real(x: ArrayLike, /) -> Tensor:
    """The real part; real numbers as they are."""
    v = as_value(x)
    return Tensor(F.real(v) if is_complex(v.dtype) else v)


@by_shapes
@names_itself
def imag(x: ArrayLike, /) -> Tensor:
    """The imaginary part; zeros of real numbers."""
    v = as_value(x)
    return Tensor(F.imag(v) if is_complex(v.dtype) else F.zeros_like(v))


@by_shapes
@names_itself
def conj(x: ArrayLike, /) -> Tensor:
    """The complex conjugate; real numbers as they are."""
    return Tensor(F.conjugate(as_value(x)))


@names_itself
def iscomplexobj(x: ArrayLike, /) -> bool:
    """True if the dtype is complex, whatever the values."""
    return is_complex(as_value(x).dtype)


@names_itself
def isrealobj(x: ArrayLike, /) -> bool:
    """True if the dtype is not complex, whatever the values."""
    return not iscomplexobj(x)
