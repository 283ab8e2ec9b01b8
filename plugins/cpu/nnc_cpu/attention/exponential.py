"""exp on vectors, by fewer instructions than the expansion that loop nests take: a weight needs no more."""

from __future__ import annotations

from math import e, log2

from nnc_core.base.dtype import DType, float64
from nnc_cpu.llvm.ir import FunctionWriter, Register
from nnc_cpu.llvm.logic import constant

POWERS = {
    "float": (1.0, 0.6931472067028326, 0.24022650922288757, 0.05550327226670302, 0.009618056678524639,
              0.0013400428177615929, 0.0001546144469856871),
    "double": (1.0, 0.6931471805599453, 0.2402265069591016, 0.05550410866482165, 0.009618129107587227,
               0.0013333558146400323, 0.00015403530463741635, 1.5252733847384148e-05, 1.3215432534358275e-06,
               1.0178054726343986e-07, 7.074193739193655e-09, 4.4561627069942545e-10),
}  # fmt: skip
"""2**f for f from -1/2 to 1/2, interpolated at Chebyshev's points: right to 3e-9 and 5e-18."""
MAGIC = {"float": 1.5 * 2.0**23 + 127, "double": 1.5 * 2.0**52 + 1023}
"""Added to a number below 2**22, or 2**51, it leaves the nearest integer, with the bias of exponents, in the last
bits."""
LIMITS = {"float": (-88.2, 88.3), "double": (-709.4, 709.7)}
"""Below the first the result is 0, above the second that of the second."""
FRACTION = {"float": 23, "double": 52}


def exponential(f: FunctionWriter, x: Register, dtype: DType, above: bool = False) -> Register:
    """exp(x) to about a unit in the last place, 0 where that would be subnormal, NaN for NaN; `above`: x may be
    positive."""
    type, bits = x.type, "i64" if dtype == float64 else "i32"

    def number(value: float) -> Register:
        return f.spread(constant(value, dtype), x.lanes)

    low, high = LIMITS[type]
    x = _limited(f, "ogt", number(low), x)
    x = _limited(f, "olt", number(high), x) if above else x
    shifted = _fma(f, x, number(log2(e)), number(MAGIC[type]))
    whole = f.let(f"fsub {shifted}, {number(MAGIC[type]).name}", type, x.lanes)
    rest = _fma(f, x, number(log2(e)), f.let(f"fneg {whole}", type, x.lanes))
    *lower, power = map(number, POWERS[type])
    for coefficient in reversed(lower):
        power = _fma(f, power, rest, coefficient)
    exponent = f.let(f"bitcast {shifted} to {Register('', bits, x.lanes).full}", bits, x.lanes)
    shift = f.spread(Register(str(FRACTION[type]), bits), x.lanes)
    raised = f.let(f"shl {exponent}, {shift.name}", bits, x.lanes)
    factor = f.let(f"bitcast {raised} to {x.full}", type, x.lanes)
    return f.let(f"fmul {power}, {factor.name}", type, x.lanes)


def _limited(f: FunctionWriter, order: str, limit: Register, x: Register) -> Register:
    """The limit where it compares so with x; NaN stays."""
    beyond = f.let(f"fcmp {order} {limit}, {x.name}", "i1", x.lanes)
    return f.let(f"select {beyond}, {limit}, {x}", x.type, x.lanes)


def _fma(f: FunctionWriter, a: Register, b: Register, c: Register) -> Register:
    kind = {"float": "f32", "double": "f64"}[a.type]
    return f.call(f"llvm.fma.v{a.lanes}{kind}", a.type, a, b, c, lanes=a.lanes)
