"""Transforms of a few elements, held in registers."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from nnc_core.operator.steps.fourier import roots_of
from nnc_cpu.fourier.complexes import Complex, ComplexWriter

HALF_ROOT = sqrt(0.5)


def transformed(w: ComplexWriter, a: Sequence[Complex]) -> list[Complex]:
    """The transform of as many elements as there are: 1, 2, 4, 8, 16 or an odd number."""
    known = {1: lambda w, a: list(a), 2: _two, 4: _four, 8: _eight, 16: _sixteen}
    return known.get(len(a), _odd)(w, a)


def _two(w: ComplexWriter, a: Sequence[Complex]) -> list[Complex]:
    return [w.plus(a[0], a[1]), w.minus(a[0], a[1])]


def _four(w: ComplexWriter, a: Sequence[Complex]) -> list[Complex]:
    even, odd = _two(w, (a[0], a[2])), _two(w, (a[1], a[3]))
    return [w.plus(even[0], odd[0]), w.minus_turned(even[1], odd[1]),
            w.minus(even[0], odd[0]), w.plus_turned(even[1], odd[1])]


def _eight(w: ComplexWriter, a: Sequence[Complex]) -> list[Complex]:
    """Fours of the even and the odd elements; what an eighth of a turn takes is two sums and a factor."""
    even, odd = _four(w, a[::2]), _four(w, a[1::2])
    first = Complex(w.real("fadd", odd[1].re, odd[1].im), w.real("fsub", odd[1].im, odd[1].re))
    third = Complex(w.real("fsub", odd[3].im, odd[3].re), w.negated(w.real("fadd", odd[3].re, odd[3].im)))
    return [w.plus(even[0], odd[0]), w.plus_scaled(even[1], first, HALF_ROOT),
            w.minus_turned(even[2], odd[2]), w.plus_scaled(even[3], third, HALF_ROOT),
            w.minus(even[0], odd[0]), w.plus_scaled(even[1], first, -HALF_ROOT),
            w.plus_turned(even[2], odd[2]), w.plus_scaled(even[3], third, -HALF_ROOT)]


def _sixteen(w: ComplexWriter, a: Sequence[Complex]) -> list[Complex]:
    """Fours of fours."""
    roots = roots_of(16, False)
    columns = [_four(w, a[n::4]) for n in range(4)]
    for n in range(1, 4):
        columns[n] = [value if k == 0 else w.times_number(value, complex(roots[n * k]))
                      for k, value in enumerate(columns[n])]
    rows = [_four(w, [column[k] for column in columns]) for k in range(4)]
    return [rows[k % 4][k // 4] for k in range(16)]


def _odd(w: ComplexWriter, a: Sequence[Complex]) -> list[Complex]:
    """Sums and differences of the elements that have conjugate roots, times the parts of these."""
    count, half = len(a), len(a) // 2
    roots = [complex(root) for root in roots_of(count, False)]
    sums = [w.plus(a[n], a[count - n]) for n in range(1, half + 1)]
    differences = [w.minus(a[n], a[count - n]) for n in range(1, half + 1)]
    total = a[0]
    for value in sums:
        total = w.plus(total, value)
    found = [total] * count
    for k in range(1, half + 1):
        even, odd = a[0], w.scaled(differences[0], w.number(-roots[k].imag))
        for n in range(1, half + 1):
            even = w.plus_scaled(even, sums[n - 1], roots[n * k % count].real)
            if n > 1:
                odd = w.plus_scaled(odd, differences[n - 1], -roots[n * k % count].imag)
        found[k], found[count - k] = w.minus_turned(even, odd), w.plus_turned(even, odd)
    return found
