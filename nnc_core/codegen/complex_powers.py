"""Powers of complex numbers: by multiplications where the exponent is a small integer, else exp(w log z)."""

from __future__ import annotations

from math import nan

from nnc_core.codegen.complex_exponentials import exp
from nnc_core.codegen.complex_logarithms import log
from nnc_core.codegen.formats import nearest_integer
from nnc_core.codegen.parts import Parts, chosen, quotient, times
from nnc_core.codegen.scalar import Scalar

_BITS = 7
_MOST = 100.0
"""Integers below it are multiplied out, as NumPy does."""


def power(x: Scalar, y: Scalar, u: Scalar, v: Scalar) -> Parts:
    """(x + iy) to the power of u + iv: 1 for the exponent 0; of 0 it is 0 if u > 0, else NaN."""
    re, im = exp(*times((u, v), log(x, y)))
    whole = v.equal(0.0) & (abs(u) < _MOST) & u.equal(u.apply("trunc"))
    re, im = chosen(whole, _multiplied(x, y, u), (re, im))
    zero, one = x.constant(0.0), x.constant(1.0)
    at_zero = (u > 0.0).select(zero, nan)
    re, im = chosen(x.equal(0.0) & y.equal(0.0), (at_zero, at_zero), (re, im))
    return chosen(u.equal(0.0) & v.equal(0.0), (one, zero), (re, im))


def _multiplied(x: Scalar, y: Scalar, u: Scalar) -> Parts:
    """The power of a small integer: squares, of which those are multiplied that its digits name."""
    exponent = nearest_integer(abs(u).minimum(_MOST))[1]
    found = x.constant(1.0), x.constant(0.0)
    begun = exponent < 0
    square = x, y
    for bit in range(_BITS):
        taken = ((exponent >> bit) & 1).equal(1)
        found = chosen(taken, chosen(begun, times(found, square), square), found)
        begun, square = begun | taken, times(square, square)
    inverse = quotient((x.constant(1.0), x.constant(0.0)), found)
    return chosen(u < 0.0, inverse, found)
