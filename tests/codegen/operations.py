"""Every operation on every dtype that it makes sense for, over pairs of awkward values.

What is expected comes from NumPy's and ml_dtypes' own arithmetic of the dtype, or from Python's integers and
fractions; never from the interpreter's tables.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from fractions import Fraction

import ml_dtypes
import numpy as np

from nnc_core.base.dtype import DTYPES, NUMBERS, boolean, float32, is_float, is_integer, uint32
from nnc_core.base.loopnest import OPERATIONS
from tests.codegen import wide
from tests.codegen.nests import Case, Values, Writer, at

bfloat16 = np.dtype(ml_dtypes.bfloat16)
COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
REAL = (boolean, *NUMBERS)
"""What scalars of nests are: a complex one is two of them."""
LIBRARY = ("exp", "log", "tanh", "sin", "cos", "tan", "sinh", "cosh", "exp2", "expm1", "log1p", "log2", "log10", "cbrt")
BITWISE = ("bitwise_and", "bitwise_or", "bitwise_xor")


def awkward(dtype: np.dtype) -> Values:
    """Zeros, ones, extremes, halves, NaN, infinities, subnormals and a few others."""
    if dtype == boolean:
        return np.array([False, True])
    if is_integer(dtype):
        limits = np.iinfo(dtype)
        values = {0, 1, 2, 3, 5, 7, 8, 15, 31, 63, 100, limits.max, limits.max - 1, limits.min, limits.min + 1}
        values |= {-1, -2, -3, -7, -100} if limits.min < 0 else {limits.max // 2 + 1}
        return np.array(sorted(v for v in values if limits.min <= v <= limits.max)).astype(dtype)
    limits = ml_dtypes.finfo(dtype)
    values = [0.0, 0.5, 1.0, 1.5, 2.5, 3.0, 0.3, 7.75, 100.0, 1e-3, np.inf, np.nan, float(limits.smallest_subnormal),
              float(limits.tiny), float(limits.max), 3 * float(limits.smallest_subnormal)]  # fmt: skip
    return np.array([*values, *(-v for v in values)]).astype(dtype)


def pairs(dtype: np.dtype) -> tuple[Values, Values]:
    values = awkward(dtype)
    a, b = np.meshgrid(values, values)
    return a.ravel().copy(), b.ravel().copy()


def operation_cases() -> Iterator[Case]:
    with np.errstate(all="ignore"):
        for dtype in REAL:
            yield case(f"binary {dtype}", dtype, pairs(dtype), binary(dtype))
            yield case(f"unary {dtype}", dtype, (awkward(dtype),), unary(dtype))
            yield casts(dtype)
        yield from (fma_case(DTYPES[name]) for name in ("float32", "float64"))
        yield from (library_case(DTYPES[name]) for name in ("float16", "bfloat16", "float32", "float64"))
        yield select_case()
        yield from (bitcast_case(DTYPES[a], DTYPES[b]) for a, b in BITCASTS)


Table = dict[str, tuple[np.dtype, Callable[..., Values]]]


def case(name: str, dtype: np.dtype, inputs: tuple[Values, ...], table: Table) -> Case:
    """One nest with a store for each operation of the table."""
    size, count = inputs[0].size, len(inputs)
    arguments = [(dtype, False)] * count + [(result, True) for result, _ in table.values()]
    n = Writer(name, (size,), arguments)
    loaded = [n.load(place, at({0: 1}, 1)) for place in range(count)]
    expected, labels = {}, {}
    for place, (operation, (result, function)) in enumerate(table.items(), count):
        n.store(place, n.op(operation, result, *loaded), at({0: 1}, 1))
        expected[place] = np.asarray(function(*inputs)).astype(result)
        labels[place] = f"{operation} {dtype}"
    arrays = [*inputs, *(np.zeros(size, result) for result, _ in table.values())]
    # NumPy leaves the sign of a smallest zero open; ml_dtypes' sign of -0 is -0, NumPy's is 0.
    open_sign = {"minimum", "maximum"} | ({"sign"} if dtype == bfloat16 else set())
    loose = frozenset(place for place, label in labels.items() if label.split()[0] in open_sign)
    return Case(n.build(), arrays, expected, labels, loose_sign=loose)


def binary(dtype: np.dtype) -> Table:
    table: Table = {name: (boolean, getattr(np, name)) for name in COMPARISONS}
    table |= {name: (dtype, getattr(np, name)) for name in ("minimum", "maximum")}
    if dtype == boolean:
        table |= {name: (dtype, getattr(np, name)) for name in BITWISE}
    else:
        table |= {name: (dtype, getattr(np, name)) for name in ("add", "subtract", "multiply")}
    if is_float(dtype):
        table |= {"divide": (dtype, np.divide)}
        table |= {name: (dtype, in_float32(getattr(np, name), dtype)) for name in ("floor_divide", "remainder", "fmod")}
    if is_integer(dtype):
        functions = {"floor_divide": operator.floordiv, "remainder": operator.mod, "power": power}
        functions |= {"fmod": lambda a, b: int(math.copysign(1, a)) * (abs(a) % abs(b)), "gcd": math.gcd}
        functions |= {"shift_left": shift_left(dtype), "shift_right": shift_right(dtype)}
        functions |= dict(zip(BITWISE, (operator.and_, operator.or_, operator.xor), strict=True))
        table |= {name: (dtype, by_integers(f, dtype)) for name, f in functions.items()}
    if dtype == uint32:
        table["multiply_high"] = dtype, by_integers(lambda a, b: a * b >> 32, dtype)
    return table


def unary(dtype: np.dtype) -> Table:
    if dtype == boolean:
        return {"bitwise_invert": (dtype, np.logical_not)}
    table: Table = {name: (dtype, getattr(np, name)) for name in ("negative", "abs", "sign")}
    rounding = {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "round": np.rint}
    if is_float(dtype):
        return table | {name: (dtype, f) for name, f in (rounding | {"sqrt": np.sqrt}).items()}
    table |= {name: (dtype, np.copy) for name in rounding}
    return table | {"bitwise_invert": (dtype, np.invert)}


def in_float32(function: Callable[..., Values], dtype: np.dtype) -> Callable[..., Values]:
    """bfloat16 has no remainder of its own that one could trust."""
    if dtype != bfloat16:
        return function
    return lambda a, b: function(a.astype(float32), b.astype(float32)).astype(dtype)


def by_integers(function: Callable[[int, int], int], dtype: np.dtype) -> Callable[..., Values]:
    """Python's integers, wrapped; a division by zero gives 0."""
    bits = dtype.itemsize * 8

    def one(a: int, b: int) -> int:
        try:
            wrapped = function(a, b) % 2**bits
        except ZeroDivisionError:
            return 0
        return wrapped - 2**bits if wrapped > np.iinfo(dtype).max else wrapped

    return lambda a, b: np.array([one(int(x), int(y)) for x, y in zip(a, b, strict=True)], dtype)


def power(base: int, exponent: int) -> int:
    if exponent < 0:
        return base ** (exponent % 2) if abs(base) == 1 else 0  # 1 / base**-exponent, rounded towards zero
    return pow(base, exponent, 2**64)


def shift_left(dtype: np.dtype) -> Callable[[int, int], int]:
    return lambda a, count: a << count if 0 <= count < dtype.itemsize * 8 else 0


def shift_right(dtype: np.dtype) -> Callable[[int, int], int]:
    return lambda a, count: a >> count if 0 <= count < dtype.itemsize * 8 else -(a < 0)


def casts(source: np.dtype) -> Case:
    """To every dtype, from awkward values and some near the limits of integers."""
    x = awkward(source)
    if is_float(source):
        near = [126.9, 127.5, 128, 255.5, 256, 32767.5, 65504, 65519.9, 65520, 2.0**31, 2.0**63, 2.0**64, 2049, 2051]
        odd = [1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-11, 1 + 2**-11 + 2**-40, 1 + 2**-8 + 2**-40, 2.0**-25, 3 * 2.0**-26]
        x = np.concatenate([x, np.array([*near, *odd, *(-v for v in near + odd)]).astype(source)])
    targets = {f"cast to {target}": target for target in REAL}
    n = Writer(f"casts of {source}", (x.size,), [(source, False), *((t, True) for t in targets.values())])
    value = n.load(0, at({0: 1}, 1))
    for place, target in enumerate(targets.values(), 1):
        n.store(place, n.op("cast", target, value), at({0: 1}, 1))
    expected = {place: converted(x, target) for place, target in enumerate(targets.values(), 1)}
    arrays = [x, *(np.zeros(x.size, target) for target in targets.values())]
    return Case(n.build(), arrays, expected, dict(enumerate((f"{source} {t}" for t in targets), 1)))


def converted(x: Values, target: np.dtype) -> Values:
    if not (is_float(x.dtype) and is_integer(target)):
        return x.astype(target)
    limits = np.iinfo(target)
    return np.array([saturated(float(v), int(limits.min), int(limits.max)) for v in x], target)


def saturated(value: float, low: int, high: int) -> int:
    if value != value:
        return 0
    return low if value == -np.inf else high if value == np.inf else min(max(int(value), low), high)


def fma_case(dtype: np.dtype) -> Case:
    """Random values of which many nearly cancel, and extremes; rounded once by fractions."""
    rng = np.random.default_rng(3)
    size = 3000
    scale = 2.0 ** rng.integers(-8, 8, size)
    a, b = (rng.standard_normal(size).astype(dtype) for _ in range(2))
    c = np.where(rng.random(size) < 0.5, -(a * b), scale * rng.standard_normal(size)).astype(dtype)
    values = awkward(dtype)
    a[:1000], b[:1000], c[:1000] = (rng.choice(values, 1000) for _ in range(3))
    a[-200:] *= dtype.type(2.0 ** (-70 if dtype == float32 else -530))
    b[-200:] *= dtype.type(2.0 ** (-70 if dtype == float32 else -530))
    c[-200:] *= dtype.type(2.0 ** (-140 if dtype == float32 else -1060))
    expected = np.array([fused(*terms, dtype) for terms in zip(a, b, c, strict=True)], dtype)
    n = Writer(f"fma {dtype}", (size,), [(dtype, False)] * 3 + [(dtype, True)])
    n.store(3, n.op("fma", dtype, *(n.load(p, at({0: 1}, 1)) for p in range(3))), at({0: 1}, 1))
    return Case(n.build(), [a, b, c, np.zeros(size, dtype)], {3: expected})


def fused(a: np.floating, b: np.floating, c: np.floating, dtype: np.dtype) -> np.floating:
    plain = dtype.type(a * b + c)
    if not (np.isfinite(a) and np.isfinite(b)):
        return plain
    if not np.isfinite(c):
        return c
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    if exact == 0:
        return plain if a * b == 0 and (a == 0 or b == 0) else dtype.type(0)
    return nearest(exact, dtype)


def nearest(exact: Fraction, dtype: np.dtype) -> np.floating:
    """The value of `dtype` closest to a fraction; halves to even."""
    limit = Fraction(float(np.finfo(dtype).max)) * (1 + Fraction(1, 2 ** (np.finfo(dtype).nmant + 2)))
    if abs(exact) >= limit:
        return dtype.type(np.inf if exact > 0 else -np.inf)
    with np.errstate(all="ignore"):
        guess = np.clip(dtype.type(float(exact)), np.finfo(dtype).min, np.finfo(dtype).max)
    near = [guess, *(np.nextafter(guess, dtype.type(end)) for end in (-np.inf, np.inf))]
    unsigned = np.dtype(f"u{dtype.itemsize}")
    finite = [v for v in near if np.isfinite(v)]
    best = min(finite, key=lambda v: (abs(Fraction(float(v)) - exact), int(np.array(v).view(unsigned)) & 1))
    return np.copysign(best, dtype.type(1 if exact > 0 else -1)) if best == 0 else best


def in_extended(function: Callable[[Values], Values]) -> Callable[[Values], Values]:
    """SciPy's are off by ten units here and there."""
    return lambda v: function(v.astype(np.longdouble))


def library_case(dtype: np.dtype) -> Case:
    """Functions that are left to the language: within a few units of NumPy's in a wider format."""
    rng = np.random.default_rng(4)
    x = np.concatenate([rng.uniform(0.01, 9, 200), [0.0, 1.0, np.inf, np.nan]]).astype(dtype)
    y = np.concatenate([rng.uniform(-5, 5, 200), [2.0, np.nan, -1.0, 0.0]]).astype(dtype)
    table: dict[str, Callable[..., Values]] = {name: getattr(np, name) for name in LIBRARY}
    table |= {"sigmoid": lambda v: 1 / (1 + np.exp(-v)), "power": np.power, "atan2": np.arctan2, "hypot": np.hypot}
    table |= {name: getattr(np, f"arc{name[1:]}") for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh")}
    table |= {name: in_extended(getattr(wide, name)) for name in ("erf", "erfc", "lgamma")}
    n = Writer(f"library {dtype}", (x.size,), [(dtype, False)] * 2 + [(dtype, True)] * len(table))
    loaded = [n.load(place, at({0: 1}, 1)) for place in range(2)]
    expected, labels = {}, {}
    for place, (operation, function) in enumerate(table.items(), 2):
        operands = OPERATIONS[operation]
        n.store(place, n.op(operation, dtype, *loaded[:operands]), at({0: 1}, 1))
        expected[place] = function(*(v.astype(np.float64) for v in (x, y)[:operands])).astype(dtype)
        labels[place] = f"{operation} {dtype}"
    arrays = [x, y, *(np.zeros_like(x) for _ in table)]
    return Case(n.build(), arrays, expected, labels, ulp=4)


def select_case() -> Case:
    condition, a = np.array([True, False] * 16), awkward(float32)
    b = a[::-1].copy()
    n = Writer("select", (32,), [(boolean, False), (float32, False), (float32, False), (float32, True)])
    n.store(3, n.op("select", float32, *(n.load(p, at({0: 1}, 1)) for p in range(3))), at({0: 1}, 1))
    return Case(n.build(), [condition, a, b, np.zeros(32, np.float32)], {3: np.where(condition, a, b)})


BITCASTS = [
    ("float32", "int32"), ("uint32", "float32"), ("float64", "uint64"), ("int64", "float64"), ("uint16", "float16"),
    ("float16", "int16"), ("bfloat16", "uint16"), ("int16", "bfloat16"), ("int8", "uint8"), ("float32", "uint32"),
    ("float16", "bfloat16"),
]  # fmt: skip


def bitcast_case(source: np.dtype, target: np.dtype) -> Case:
    x = awkward(source)
    n = Writer(f"bitcast {source} {target}", (x.size,), [(source, False), (target, True)])
    n.store(1, n.op("bitcast", target, n.load(0, at({0: 1}, 1))), at({0: 1}, 1))
    return Case(n.build(), [x, np.zeros(x.size, target)], {1: x.view(target)})
