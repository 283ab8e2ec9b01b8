"""The expanded functions: how far each may be from the truth, where that is, and at which points it is looked at."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np

from nnc_core.base.dtype import DTYPES, bfloat16, float16, float64
from nnc_core.base.loopnest import OPERATIONS, LoopNest
from nnc_core.codegen import expand, interpret
from nnc_core.codegen.expansions import EXPANSIONS, is_expanded
from tests.codegen import wide
from tests.codegen.nests import Values, as_bytes, elementwise

INF, NAN = float("inf"), float("nan")
DENSE, SPREAD = 20_001, 10_001


class Function(NamedTuple):
    """`ulp`: the largest error in units in the last place, or in those of `floor` where the result is smaller.

    `exact` computes in a wider format; in the intervals of `reach` the points lie dense; `special` are arguments with
    their result.
    """

    ulp: float
    exact: Callable[..., Values]
    reach: tuple[tuple[float, float], ...]
    special: tuple[tuple[float, ...], ...]
    floor: float = 0.0
    instruction: str = ""


def _sigmoid(v: Values) -> Values:
    return np.where(v < 0, np.exp(-np.abs(v)), 1) / (1 + np.exp(-np.abs(v)))


def _logit(v: Values) -> Values:
    return np.where(np.abs(v - 0.5) < 0.25, np.log1p((2 * v - 1) / (1 - v)), np.log(v / (1 - v)))


def _power(a: Values, b: Values) -> Values:
    return np.power(a.astype(np.longdouble), b.astype(np.longdouble))


_ZERO = ((0.0, 0.0), (-0.0, -0.0), (NAN, NAN))
_FAR, _NEAR = (-760.0, 760.0), (-2.0, 2.0)
FUNCTIONS: dict[str, Function] = {
    "exp": Function(1, np.exp, (_FAR, _NEAR, (-110, 110)), (
        (INF, INF), (-INF, 0.0), (0.0, 1.0), (-0.0, 1.0), (NAN, NAN), (1e4, INF), (-1e4, 0.0), (1e-30, 1.0))),
    "exp2": Function(1, np.exp2, ((-1100, 1100), _NEAR, (-160, 160)), (
        (INF, INF), (-INF, 0.0), (0.0, 1.0), (NAN, NAN), (3.0, 8.0), (-2.0, 0.25), (1e4, INF), (-1e4, 0.0))),
    "expm1": Function(2, np.expm1, ((-50, 50), _NEAR, (-110, 720)), (
        *_ZERO, (INF, INF), (-INF, -1.0), (-1e4, -1.0), (1e4, INF))),
    "sinh": Function(2.5, np.sinh, (_FAR, _NEAR, (-95, 95)), (*_ZERO, (INF, INF), (-INF, -INF), (-1e4, -INF))),
    "cosh": Function(1.5, np.cosh, (_FAR, _NEAR, (-95, 95)), ((0.0, 1.0), (INF, INF), (-INF, INF), (NAN, NAN))),
    "tanh": Function(2.5, np.tanh, (_FAR, _NEAR, (-25, 25)), (
        (INF, 1.0), (-INF, -1.0), (0.0, 0.0), (-0.0, -0.0), (NAN, NAN), (50.0, 1.0), (-50.0, -1.0))),
    "sigmoid": Function(2.5, _sigmoid, (_FAR, _NEAR, (-110, 110)), (
        (INF, 1.0), (-INF, 0.0), (0.0, 0.5), (-0.0, 0.5), (NAN, NAN), (1e3, 1.0), (-1e3, 0.0))),
    "log": Function(1, np.log, ((0.4, 2.5), (0.999, 1.001), (0, 100)), (
        (INF, INF), (-INF, NAN), (0.0, -INF), (-0.0, -INF), (NAN, NAN), (1.0, 0.0), (-1.0, NAN))),
    "log2": Function(1, np.log2, ((0.4, 2.5), (0.999, 1.001), (0, 100)), (
        (INF, INF), (0.0, -INF), (-0.0, -INF), (NAN, NAN), (1.0, 0.0), (8.0, 3.0), (0.25, -2.0), (-1.0, NAN))),
    "log10": Function(1, np.log10, ((0.4, 2.5), (0.999, 1.001), (0, 100)), (
        (INF, INF), (0.0, -INF), (-0.0, -INF), (NAN, NAN), (1.0, 0.0), (1000.0, 3.0), (-1.0, NAN))),
    "log1p": Function(1, np.log1p, ((-1, 1.5), (-1e-3, 1e-3), (0, 100)), (
        *_ZERO, (INF, INF), (-1.0, -INF), (-2.0, NAN))),
    "asinh": Function(2, np.arcsinh, (_NEAR, (-100, 100)), (*_ZERO, (INF, INF), (-INF, -INF))),
    "acosh": Function(3, np.arccosh, ((1, 3), (1, 1.001), (1, 100)), (
        (1.0, 0.0), (INF, INF), (0.5, NAN), (-INF, NAN), (NAN, NAN))),
    "atanh": Function(2.5, np.arctanh, ((-1, 1), (0.999, 1), (-1e-3, 1e-3)), (
        *_ZERO, (1.0, INF), (-1.0, -INF), (1.5, NAN), (-INF, NAN))),
    "logit": Function(3, _logit, ((0, 1), (0.49, 0.51), (0.999, 1)), (
        (0.0, -INF), (1.0, INF), (0.5, 0.0), (-1.0, NAN), (2.0, NAN), (NAN, NAN))),
    "sin": Function(2, np.sin, ((-10, 10), (-1, 1), (-1e5, 1e5)), (*_ZERO, (INF, NAN), (-INF, NAN))),
    "cos": Function(2, np.cos, ((-10, 10), (-1, 1), (-1e5, 1e5)), (
        (0.0, 1.0), (-0.0, 1.0), (INF, NAN), (NAN, NAN))),
    "tan": Function(3, np.tan, ((-10, 10), (-1, 1), (-1e5, 1e5)), (*_ZERO, (INF, NAN), (-INF, NAN))),
    "asin": Function(2.5, np.arcsin, ((-1, 1), (0.999, 1), (0.49, 0.52)), (*_ZERO, (1.5, NAN), (-INF, NAN))),
    "acos": Function(1.5, np.arccos, ((-1, 1), (0.999, 1), (-0.52, 0.52)), ((1.0, 0.0), (1.5, NAN), (INF, NAN))),
    "atan": Function(2.5, np.arctan, (_NEAR, (-100, 100), (0.4, 0.43)), _ZERO),
    "atan2": Function(2.5, np.arctan2, (_NEAR, (-100, 100)), (
        (0.0, 0.0, 0.0), (-0.0, 0.0, -0.0), (0.0, 1.0, 0.0), (-0.0, INF, -0.0), (NAN, 1.0, NAN), (1.0, NAN, NAN))),
    "cbrt": Function(1, np.cbrt, ((-30, 30), (0.9, 1.1), (7.9, 8.1)), (
        *_ZERO, (INF, INF), (-INF, -INF), (27.0, 3.0), (-8.0, -2.0))),
    "hypot": Function(1.5, np.hypot, (_NEAR, (-100, 100)), (
        (0.0, -0.0, 0.0), (3.0, -4.0, 5.0), (INF, NAN, INF), (NAN, -INF, INF), (NAN, 1.0, NAN))),
    "erf": Function(1.5, wide.erf, ((-3, 3), (-7, 7), (0.9, 1.1)), (*_ZERO, (INF, 1.0), (-INF, -1.0))),
    "erfc": Function(3.5, wide.erfc, ((-3, 3), (-7, 28), (0, 11)), (
        (0.0, 1.0), (INF, 0.0), (-INF, 2.0), (NAN, NAN), (40.0, 0.0), (-40.0, 2.0))),
    "erfcx": Function(4.5, wide.erfcx, ((-3, 3), (-28, 28), (0, 100)), (
        (0.0, 1.0), (INF, 0.0), (-INF, INF), (NAN, NAN))),
    "erfinv": Function(3.5, wide.erfinv, ((-1, 1), (0.99, 1), (0.999999, 1)), (
        *_ZERO, (1.0, INF), (-1.0, -INF), (1.5, NAN), (-INF, NAN))),
    "ndtr": Function(4.5, wide.ndtr, ((-3, 3), (-40, 9), (-15, 0)), (
        (0.0, 0.5), (INF, 1.0), (-INF, 0.0), (NAN, NAN), (-60.0, 0.0), (60.0, 1.0))),
    "log_ndtr": Function(5, wide.log_ndtr, ((-3, 3), (-40, 40), (-1e3, 0)), ((-INF, -INF), (NAN, NAN))),
    "dawsn": Function(5, wide.dawsn, ((-3, 3), (-9, 9), (0, 100)), (*_ZERO, (INF, 0.0), (-INF, -0.0))),
    "lgamma": Function(6, wide.lgamma, ((0, 5), (0.9, 1.1), (1.9, 2.1), (0, 100)), (
        (1.0, 0.0), (2.0, 0.0), (0.0, INF), (-0.0, INF), (-3.0, INF), (INF, INF), (-INF, INF), (NAN, NAN))),
    "lgamma below 0": Function(9, wide.lgamma, ((-5, 0), (-30, 0)), ((-1.0, INF),), 1, "lgamma"),
    "digamma": Function(6, wide.digamma, ((0, 5), (1, 2), (0, 100)), (
        (0.0, -INF), (-0.0, INF), (-3.0, NAN), (INF, INF), (-INF, NAN), (NAN, NAN)), 1 / 16),
    "digamma below 0": Function(3, wide.digamma, ((-5, 0), (-30, 0)), ((-1.0, NAN),), 8, "digamma"),
    "power": Function(1, _power, ((0, 4), (-6, 6), (0.5, 2)), (
        (2.0, 3.0, 8.0), (-2.0, 3.0, -8.0), (-2.0, 2.0, 4.0), (-2.0, 0.5, NAN), (-INF, 0.5, INF), (NAN, 0.0, 1.0),
        (1.0, NAN, 1.0), (NAN, 1.0, NAN), (2.0, NAN, NAN), (-1.0, NAN, NAN), (0.0, 0.0, 1.0), (-0.0, 3.0, -0.0),
        (-0.0, 2.0, 0.0), (0.0, -1.0, INF), (-0.0, -1.0, -INF), (-0.0, -2.0, INF), (-0.0, 0.5, 0.0), (0.0, -0.5, INF),
        (-1.0, INF, 1.0), (-1.0, -INF, 1.0), (0.5, INF, 0.0), (0.5, -INF, INF), (-2.0, INF, INF), (-2.0, -INF, 0.0),
        (INF, 0.5, INF), (INF, -0.5, 0.0), (-INF, 3.0, -INF), (-INF, -3.0, -0.0), (-INF, 2.0, INF), (0.0, INF, 0.0),
        (0.0, -INF, INF), (INF, INF, INF), (-INF, -INF, 0.0), (INF, 0.0, 1.0), (-3.0, 0.0, 1.0))),
    "i0": Function(6, wide.bessel(0, False), ((-12, 12), (-720, 720), (-95, 95)), (
        (0.0, 1.0), (INF, INF), (-INF, INF), (NAN, NAN))),
    "i1": Function(6, wide.bessel(1, False), ((-12, 12), (-720, 720), (-95, 95)), (*_ZERO, (INF, INF), (-INF, -INF))),
    "i0e": Function(4.5, wide.bessel(0, True), ((-12, 12), (-720, 720), (-95, 95)), (
        (0.0, 1.0), (INF, 0.0), (-INF, 0.0), (NAN, NAN))),
    "i1e": Function(6.5, wide.bessel(1, True), ((-12, 12), (-720, 720), (-95, 95)), (*_ZERO, (INF, 0.0), (-INF, -0.0))),
}  # fmt: skip


def instruction_of(name: str) -> str:
    return FUNCTIONS[name].instruction or name


NARROW = ("exp", "log", "tanh", "sigmoid", "erf", "atan2")
"""Looked at in the narrow formats too, which all go the same way."""
WIDE = [(name, dtype) for name in FUNCTIONS for dtype in ("float32", "float64")
        if is_expanded(instruction_of(name), DTYPES[dtype])]
ALL = [*WIDE, *((name, dtype) for name in NARROW for dtype in ("float16", "bfloat16"))]


@lru_cache(maxsize=8)  # made quickly, and a megabyte each
def points(name: str, dtype: Any) -> tuple[Values, ...]:
    """The arguments: dense where the function is interesting, then every magnitude of either sign, then neighbours."""
    count = OPERATIONS[instruction_of(name)]
    rng = np.random.default_rng(5)
    if dtype in (float16, bfloat16):
        every = np.arange(2**16, dtype=np.uint16).view(dtype)
        return (every, *(rng.permutation(every) for _ in range(count - 1)))
    reach = FUNCTIONS[name].reach
    limits = np.finfo(dtype)
    dense = np.concatenate([rng.uniform(low, high, DENSE) for low, high in reach])
    steps = (np.arange(-60, 60) + 0.5) * np.log(2)
    exponents = np.linspace(limits.minexp - limits.nmant, limits.maxexp - 0.01, SPREAD)
    spread = 2.0 ** exponents.clip(-1074, 1023.9)
    ends = [end for interval in reach for end in interval]
    around = np.array([limits.tiny, limits.smallest_subnormal, limits.max, 1, 0.5, *ends], dtype)
    with np.errstate(over="ignore"):
        values = np.concatenate([dense, steps, np.nextafter(steps, 0), spread, -spread]).astype(dtype)
        edges = [np.nextafter(around, dtype.type(end)) for end in (0, 1, INF)]
    x = np.concatenate([values, around, -around, *edges])
    below = " below 0" in name
    if name in ("lgamma", "digamma", "lgamma below 0", "digamma below 0"):  # the two sides are measured otherwise
        x = -np.abs(x) if below else np.abs(x)
    if count == 1:
        return (x,)
    with np.errstate(all="ignore"):
        beside = (x * 2.0 ** rng.uniform(-3, 3, x.size)).astype(dtype)
    return np.concatenate([x, x]), np.concatenate([rng.permutation(x), beside])


def exact(name: str, *xs: Values) -> Values:
    """In a wider format: float64 for the narrow ones, extended precision for float64."""
    with np.errstate(all="ignore"):
        wider = [x.astype(np.longdouble if x.dtype == float64 else np.float64) for x in xs]
        return np.asarray(FUNCTIONS[name].exact(*wider))


def errors(got: Values, wanted: Values, floor: float = 0.0) -> Values:
    """Distances in units in the last place of the result's format, where the exact result is in its range."""
    dtype = got.dtype
    limits = np.finfo(dtype)
    with np.errstate(all="ignore"):
        inside = np.isfinite(wanted) & (np.abs(wanted) <= limits.max)
        size = np.maximum(np.abs(wanted[inside]), floor)
        exponent = np.maximum(np.floor(np.log2(size)), limits.minexp)
        exponent = np.where(np.isfinite(exponent), exponent, limits.minexp)
        unit = np.ldexp(wanted.dtype.type(1), exponent.astype(int) - limits.nmant)
        return np.asarray(np.abs(got[inside].astype(wanted.dtype) - wanted[inside]) / unit)


def nest_of(name: str, dtype: Any) -> LoopNest:
    xs = points(name, DTYPES[str(dtype)])
    instruction = instruction_of(name)
    return expand(elementwise(f"{name} {dtype}", instruction, xs[0].dtype, list(xs), xs[0].dtype), set(EXPANSIONS))


@cache
def interpreted(name: str, dtype: str) -> Values:
    """The expansion at its points."""
    xs = points(name, DTYPES[dtype])
    return run(nest_of(name, dtype), *xs)


def run(nest: LoopNest, *xs: Values) -> Values:
    result = np.zeros_like(xs[0])
    interpret(nest, [*(as_bytes(x) for x in xs), as_bytes(result)])
    return result
