"""Complex numbers: their parts.  Arithmetic and functions are the elementwise operators, on complex dtypes.

Gradients are conjugates, as in PyTorch: the gradient g of a real loss at z is dL/d(re z) + i dL/d(im z), so that
z - rate * g goes downhill.  Cotangents are multiplied by conjugated derivatives, tangents by derivatives.
"""

from __future__ import annotations

from typing import Any, Generic

import numpy as np

from nnc_core.base.dtype import is_complex
from nnc_core.codegen.pairs import Pair
from nnc_core.operator.declare import Base, V, op
from nnc_core.shape import elementwise as rule


def _complex(real: Any, imag: Any) -> Any:
    out = np.empty(np.broadcast(real, imag).shape, np.result_type(real, np.complex64))
    out.real, out.imag = real, imag
    return out


class Complex(Base[V], Generic[V]):
    @op(infer=rule.part, reference=lambda z: np.array(z.real), exact=True, scalar=lambda z: z.re, linear="jointly",
        vjp=lambda F, g, y, z: (F.complex_(g, F.zeros_like(g)),))
    def real(self, z: V) -> V:
        """The real part of complex numbers."""
        ...

    @op(infer=rule.part, reference=lambda z: np.array(z.imag), exact=True, scalar=lambda z: z.im, linear="jointly",
        vjp=lambda F, g, y, z: (F.complex_(F.zeros_like(g), g),))
    def imag(self, z: V) -> V:
        """The imaginary part of complex numbers."""
        ...

    @op(infer=rule.conjugate, reference=np.conjugate, exact=True, scalar=lambda z: Pair(z.re, -z.im), inplace=(0,),
        linear="jointly", vjp=lambda F, g, y, z: (F.conj(g),))
    def conj(self, z: V) -> V:
        """The imaginary part negated."""
        ...

    @op(infer=rule.from_parts, reference=_complex, promote=(0, 1), to_float=True, exact=True, scalar=Pair,
        linear="jointly", vjp=(lambda F, g, y, a, b: F.sum_to(F.real(g), a.shape),
                               lambda F, g, y, a, b: F.sum_to(F.imag(g), b.shape)))
    def complex_(self, real: V | float, imag: V | float) -> V:
        """real + i imag, without arithmetic: infinities and signed zeros stay where they are."""
        ...

    def conjugate(self, x: V) -> V:
        """The conjugate of complex numbers, real ones as they are: what rules of derivatives need."""
        F: Any = self
        return F.conj(x) if is_complex(x.dtype) else x
