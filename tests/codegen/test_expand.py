"""The expansions of exp, log, tanh and sigmoid: accuracy, special values and renumbering."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nnc_core.base.dtype import DTYPES, bfloat16, float16, float32, float64, int64
from nnc_core.base.loopnest import LoopNest
from nnc_core.codegen import C99, expand, interpret, render
from tests.codegen.compiled import Runner, compile_c99, compiler
from tests.codegen.nests import Values, Writer, agree, as_bytes, at, elementwise

FUNCTIONS = ("exp", "log", "tanh", "sigmoid")
ULP = {"exp": 1.0, "log": 1.0, "tanh": 2.5, "sigmoid": 2.5}
ALL = [(function, name) for function in FUNCTIONS for name in ("float32", "float64", "float16", "bfloat16")]
WIDE = [(function, name) for function, name in ALL if name in ("float32", "float64")]
INF, NAN = float("inf"), float("nan")


def points(function: str, dtype: np.dtype) -> Values:
    """Dense where the function is interesting, then every magnitude of either sign, then neighbours of steps."""
    rng = np.random.default_rng(5)
    if dtype in (float16, bfloat16):
        return np.arange(2**16, dtype=np.uint16).view(dtype)
    if function == "log":
        dense = np.concatenate([np.linspace(0.4, 2.5, 60001), 1 + rng.uniform(-1e-3, 1e-3, 20001)])
    else:
        reach = 110 if dtype == float32 else 760
        dense = np.concatenate([rng.uniform(-reach, reach, 60001), rng.uniform(-2, 2, 60001)])
        steps = (np.arange(-60, 60) + 0.5) * np.log(2)
        dense = np.concatenate([dense, steps, np.nextafter(steps, 0), np.linspace(-25, 25, 20001)])
    limits = np.finfo(dtype)
    exponents = np.linspace(limits.minexp - limits.nmant, limits.maxexp - 0.01, 20001)
    spread = 2.0 ** exponents.clip(-1074, 1023.9)
    values = np.concatenate([dense, spread, -spread]).astype(dtype)
    around = np.array([limits.tiny, limits.smallest_subnormal, limits.max, 1, 0.5], dtype)
    with np.errstate(over="ignore"):
        edges = [np.nextafter(around, dtype.type(end)) for end in (0, 1, INF)]
    return np.concatenate([values, around, -around, *edges])


def exact(function: str, x: Values) -> Values:
    """In a wider format: float64 for the narrow ones, extended precision for float64."""
    with np.errstate(all="ignore"):  # of signalling NaN
        wide = x.astype(np.longdouble if x.dtype == float64 else np.float64)
    functions: dict[str, Callable[[Any], Any]] = {
        "exp": np.exp, "log": np.log, "tanh": np.tanh,
        "sigmoid": lambda v: np.where(v < 0, np.exp(-np.abs(v)), 1) / (1 + np.exp(-np.abs(v))),
    }  # fmt: skip
    with np.errstate(all="ignore"):
        return np.asarray(functions[function](wide))


def errors(got: Values, wanted: Values) -> Values:
    """Distances in units in the last place of the result's format, where the exact result is in its range."""
    dtype = got.dtype
    limits = np.finfo(dtype)
    with np.errstate(all="ignore"):
        inside = np.isfinite(wanted) & (np.abs(wanted) <= limits.max)
        exponent = np.maximum(np.floor(np.log2(np.abs(wanted[inside]))), limits.minexp)
        exponent = np.where(np.isfinite(exponent), exponent, limits.minexp)
        unit = np.ldexp(wanted.dtype.type(1), exponent.astype(int) - limits.nmant)
        return np.asarray(np.abs(got[inside].astype(wanted.dtype) - wanted[inside]) / unit)


def needs_extended_precision(name: str) -> None:
    if name == "float64" and np.finfo(np.longdouble).nmant <= 52:
        pytest.skip("this platform has no format wider than float64 to compare with")


def nest_of(function: str, dtype: np.dtype, size: int) -> LoopNest:
    return expand(elementwise(f"{function} {dtype}", function, dtype, [np.zeros(size, dtype)], dtype))


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Runner:
    if compiler() is None:
        pytest.skip("no C compiler (cc, gcc or clang) on the path")
    nests = {f"{f} {name}": nest_of(f, DTYPES[name], points(f, DTYPES[name]).size) for f, name in ALL}
    return compile_c99(nests, tmp_path_factory.mktemp("expansions"))


def interpreted(nest: LoopNest, x: Values) -> Values:
    result = np.zeros_like(x)
    interpret(nest, [as_bytes(x), as_bytes(result)])
    return result


def in_c(compiled: Runner, function: str, x: Values) -> Values:
    result = np.zeros_like(x)
    compiled(f"{function} {x.dtype}", [x, result])
    return result


@pytest.mark.parametrize(("function", "name"), WIDE)
def test_accuracy(function: str, name: str) -> None:
    needs_extended_precision(name)
    x = points(function, DTYPES[name])
    got = interpreted(nest_of(function, x.dtype, x.size), x)
    distances = errors(got, exact(function, x))
    assert distances.size > 30_000
    assert distances.max() <= ULP[function]


@pytest.mark.parametrize(("function", "name"), WIDE)
def test_overflow_is_infinite_and_no_earlier(function: str, name: str) -> None:
    needs_extended_precision(name)
    x = points(function, DTYPES[name])
    got, wanted = interpreted(nest_of(function, x.dtype, x.size), x), exact(function, x)
    with np.errstate(all="ignore"):
        rounded = wanted.astype(x.dtype)
    open_ = np.isinf(rounded) | np.isnan(rounded)
    assert agree(got[open_], rounded[open_]).all()
    assert np.isfinite(got[~open_]).all()


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_narrow_formats_are_rounded_from_float32(function: str, name: str) -> None:
    """Every value of the format; two roundings may differ from one where float32 lies near the middle."""
    x = points(function, DTYPES[name])
    got, wanted = interpreted(nest_of(function, x.dtype, x.size), x), exact(function, x)
    with np.errstate(all="ignore"):
        rounded = wanted.astype(np.float32).astype(x.dtype)
    differ = ~agree(got, rounded)
    assert differ.sum() <= 4
    neighbours = np.abs(got[differ].view(np.int16).astype(int) - rounded[differ].view(np.int16))
    assert (neighbours <= 1).all()


@pytest.mark.parametrize(("function", "name"), ALL)
def test_c99_gives_the_same_bits(function: str, name: str, compiled: Runner) -> None:
    x = points(function, DTYPES[name])
    got, wanted = in_c(compiled, function, x), interpreted(nest_of(function, x.dtype, x.size), x)
    assert agree(got, wanted).all()


SPECIAL = {
    "exp": [(INF, INF), (-INF, 0.0), (0.0, 1.0), (-0.0, 1.0), (NAN, NAN), (1e4, INF), (-1e4, 0.0), (1e-30, 1.0)],
    "log": [(INF, INF), (-INF, NAN), (0.0, -INF), (-0.0, -INF), (NAN, NAN), (1.0, 0.0), (-1.0, NAN)],
    "tanh": [(INF, 1.0), (-INF, -1.0), (0.0, 0.0), (-0.0, -0.0), (NAN, NAN), (50.0, 1.0), (-50.0, -1.0)],
    "sigmoid": [(INF, 1.0), (-INF, 0.0), (0.0, 0.5), (-0.0, 0.5), (NAN, NAN), (1e3, 1.0), (-1e3, 0.0)],
}


@pytest.mark.parametrize(("function", "name"), ALL)
def test_special_values(function: str, name: str) -> None:
    dtype = DTYPES[name]
    x, wanted = (np.array(column).astype(dtype) for column in zip(*SPECIAL[function], strict=True))
    assert agree(interpreted(nest_of(function, dtype, x.size), x), wanted).all()


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_subnormal_numbers_pass(name: str) -> None:
    dtype = DTYPES[name]
    smallest = np.finfo(dtype).smallest_subnormal
    x = np.array([smallest, -smallest, 5 * smallest], dtype)
    assert agree(interpreted(nest_of("tanh", dtype, 3), x), x).all()
    assert agree(interpreted(nest_of("exp", dtype, 3), x), np.ones(3, dtype)).all()


def test_nothing_to_expand_is_the_same_nest() -> None:
    nest = elementwise("sine", "sin", float32, [np.zeros(3, np.float32)], float32)
    assert expand(nest) is nest


def test_only_the_functions_asked_for() -> None:
    x = np.zeros(3, np.float32)
    nest = elementwise("exponential", "exp", float32, [x], float32)
    assert expand(nest, {"log"}) is nest
    with pytest.raises(ValueError, match="sin"):
        expand(nest, {"sin"})


def test_no_call_of_the_library_is_left() -> None:
    text = "".join(render(nest_of(f, float64, 4), C99) for f in FUNCTIONS)
    for name in ("exp(", "log(", "tanh(", "expm1(", "pow("):
        assert name not in text


def test_values_are_renumbered_through_stages_and_gathers() -> None:
    """A row softmax of rows taken by index, whose exponentials stand before reductions and later loads."""
    rng = np.random.default_rng(6)
    x, index = rng.standard_normal((5, 7)), np.array([3, 0, 4, 3], np.int64)
    n = Writer("taken softmax", (4,), [(float64, False), (int64, False), (float64, True)])
    n.op("exp", float64, n.constant(1.0, float64))  # used by nobody, moves all later numbers
    taken = n.load(1, at({0: 1}, 1))
    row = at({}, 7, extent=5, checked=True, gather=taken), at({1: 1}, 1)
    n.stage(7)
    n.op("tanh", float64, n.load(0, *row, fill=0))
    total = n.reduce("sum", n.op("exp", float64, n.load(0, *row, fill=0)), float64)
    n.stage(7)
    grown = n.op("exp", float64, n.load(0, *row, fill=0))
    n.store(2, n.op("divide", float64, grown, total), at({0: 7, 1: 1}, 1))
    result = np.zeros((4, 7))
    interpret(expand(n.build()), [as_bytes(a) for a in (x, index, result)])
    wanted = np.exp(x[index])
    np.testing.assert_allclose(result, wanted / wanted.sum(1, keepdims=True), rtol=1e-14)
