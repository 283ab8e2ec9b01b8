"""The table of expansions: functions written out in scalar instructions, for float32 and, but for powers, float64.

Each is correct at NaN, infinities, zeros of either sign, subnormal numbers and where it overflows.  Bounds of the error
over the tests' points, in units in the last place:

- 1: exp, exp2, log, log2, log10, log1p, cbrt, power;
- 1.5: cosh, acos, hypot, erf;  2: expm1, asinh, sin, cos;
- 2.5: sinh, tanh, sigmoid, atanh, asin, atan, atan2;  3: tan, acosh, logit;  3.5: erfc, erfinv;
- 4.5: erfcx, ndtr, i0e;  5: log_ndtr, dawsn;  6: lgamma, digamma, i0, i1;  6.5: i1e.

Where lgamma and digamma pass through zero, but for lgamma's zeros at 1 and 2, that is no measure: below 0 lgamma errs
by 9 units of 1 there, and digamma by 3 units of 8; the error of digamma above 0 is relative to at least 1/16.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nnc_core.base.dtype import DType, accumulator, float32, is_float
from nnc_core.codegen import (
    bessel,
    circular,
    dawson,
    error_functions,
    exponentials,
    gamma,
    logarithms,
    powers,
    roots,
    trigonometry,
)
from nnc_core.codegen.scalar import Scalar

EXPANSIONS: Mapping[str, Callable[..., Scalar]] = {
    "exp": exponentials.exp, "exp2": exponentials.exp2, "expm1": exponentials.expm1, "sinh": exponentials.sinh,
    "cosh": exponentials.cosh, "tanh": exponentials.tanh, "sigmoid": exponentials.sigmoid,
    "log": logarithms.log, "log2": logarithms.log2, "log10": logarithms.log10, "log1p": logarithms.log1p,
    "asinh": logarithms.asinh, "acosh": logarithms.acosh, "atanh": logarithms.atanh, "logit": logarithms.logit,
    "sin": circular.sin, "cos": circular.cos, "tan": circular.tan,
    "asin": trigonometry.asin, "acos": trigonometry.acos, "atan": trigonometry.atan, "atan2": trigonometry.atan2,
    "cbrt": roots.cbrt, "hypot": roots.hypot,
    "erf": error_functions.erf, "erfc": error_functions.erfc, "erfcx": error_functions.erfcx,
    "erfinv": error_functions.erfinv, "ndtr": error_functions.ndtr, "log_ndtr": error_functions.log_ndtr,
    "dawsn": dawson.dawsn, "lgamma": gamma.lgamma, "digamma": gamma.digamma,
    "power": powers.power, "i0": bessel.i0, "i1": bessel.i1, "i0e": bessel.i0e, "i1e": bessel.i1e,
}  # fmt: skip
"""Functions by the name of their instruction."""


def is_expanded(operation: str, dtype: DType) -> bool:
    """Tell whether an instruction that gives a dtype is among them."""
    return operation in EXPANSIONS and (operation != "power" or (is_float(dtype) and accumulator(dtype) == float32))


BY_DEFAULT = frozenset(EXPANSIONS) - {"sin", "cos", "tan", "power"}
"""Functions expanded unless a device says otherwise; libraries' sin, cos, tan and powers are as accurate, and quicker
where arguments are small, or float64 slow."""
LIBRARY_FUNCTIONS = frozenset(EXPANSIONS) - BY_DEFAULT
"""Functions that stay calls of a compiler's library then."""
