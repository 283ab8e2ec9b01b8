"""The expansions' accuracy, ends and special values, for every function and format; C gives the same bits."""

from __future__ import annotations

import numpy as np
import pytest

from nnc_core.base.dtype import DTYPES
from nnc_core.codegen import expand
from nnc_core.codegen.expansions import EXPANSIONS
from tests.codegen.asked import parameters
from tests.codegen.compiled import Runner, compile_c99, compiler
from tests.codegen.functions import (
    ALL,
    FUNCTIONS,
    NARROW,
    WIDE,
    errors,
    exact,
    instruction_of,
    interpreted,
    nest_of,
    points,
    run,
)
from tests.codegen.nests import agree, elementwise


def needs_extended_precision(dtype: str) -> None:
    if dtype == "float64" and np.finfo(np.longdouble).nmant <= 52:
        pytest.skip("this platform has no format wider than float64 to compare with")


@pytest.fixture(scope="module")
def compiled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Runner:
    if compiler() is None:
        pytest.skip("no C compiler (cc, gcc or clang) on the path")
    cases = [(asked["name"], asked["dtype"]) for asked in parameters(request)]
    nests = {f"{name} {dtype}": nest_of(name, dtype) for name, dtype in cases}
    return compile_c99(nests, tmp_path_factory.mktemp("expansions"))


def test_every_expansion_is_here() -> None:
    assert {instruction_of(name) for name in FUNCTIONS} == set(EXPANSIONS)


@pytest.mark.parametrize(("name", "dtype"), WIDE)
def test_errors_are_small_and_overflow_is_infinite_and_no_earlier(name: str, dtype: str) -> None:
    needs_extended_precision(dtype)
    function = FUNCTIONS[name]
    got, wanted = interpreted(name, dtype), exact(name, *points(name, DTYPES[dtype]))
    distances = errors(got, wanted, function.floor)
    assert distances.size > 30_000
    assert distances.max() <= function.ulp
    with np.errstate(all="ignore"):
        rounded = wanted.astype(got.dtype)
    open_ = np.isinf(rounded) | np.isnan(rounded)
    assert agree(got[open_], rounded[open_]).all()
    assert np.isfinite(got[~open_]).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", NARROW)
def test_narrow_formats_are_rounded_from_float32(name: str, dtype: str) -> None:
    """Every value of the format; two roundings may differ from one where float32 lies near the middle."""
    xs = points(name, DTYPES[dtype])
    got, wanted = interpreted(name, dtype), exact(name, *xs)
    with np.errstate(all="ignore"):
        rounded = wanted.astype(np.float32).astype(got.dtype)
    differ = ~agree(got, rounded)
    assert differ.sum() <= 8
    neighbours = np.abs(got[differ].view(np.int16).astype(int) - rounded[differ].view(np.int16))
    assert (neighbours <= 1).all()


@pytest.mark.parametrize(("name", "dtype"), ALL)
def test_c99_gives_the_same_bits(name: str, dtype: str, compiled: Runner) -> None:
    xs = points(name, DTYPES[dtype])
    got = np.zeros_like(xs[0])
    compiled(f"{name} {dtype}", [*xs, got])
    assert agree(got, interpreted(name, dtype)).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_values(name: str, dtype: str) -> None:
    *xs, wanted = (np.array(column).astype(DTYPES[dtype]) for column in zip(*FUNCTIONS[name].special, strict=True))
    nest = expand(elementwise("special", instruction_of(name), wanted.dtype, xs, wanted.dtype), set(EXPANSIONS))
    assert agree(run(nest, *xs), wanted).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["tanh", "expm1", "log1p", "sinh", "asinh", "atanh", "asin", "atan", "sin", "tan"])
def test_subnormal_numbers_pass(name: str, dtype: str) -> None:
    smallest = np.finfo(dtype).smallest_subnormal
    x = np.array([smallest, -smallest, 5 * smallest], dtype)
    assert agree(run(expand(elementwise("small", name, x.dtype, [x], x.dtype), {name}), x), x).all()
    one = expand(elementwise("one", "exp", x.dtype, [x], x.dtype))
    assert agree(run(one, x), np.ones(3, x.dtype)).all()


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_angles_close_to_multiples_of_a_right_angle(name: str) -> None:
    """Where the most digits cancel: the worst arguments known, and many multiples."""
    needs_extended_precision("float64")
    multiples = np.round(np.random.default_rng(8).uniform(0, 1e7, 5000)) * np.pi / 2
    worst = [6381956970095103 * 2.0**797, 5.319372648326541e255, 1.2154172e37, 16367173 * 2.0**72, 355.0]
    for dtype in (np.float32, np.float64):
        with np.errstate(over="ignore"):
            x = np.concatenate([multiples, worst]).astype(dtype)
        x = x[np.isfinite(x)]
        got = run(expand(elementwise("angles", name, x.dtype, [x], x.dtype), {name}), x)
        assert errors(got, exact(name, x)).max() <= FUNCTIONS[name].ulp


def test_angles_have_the_signs_of_ieee_754() -> None:
    values = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan])
    y, x = (v.ravel().copy() for v in np.meshgrid(values, values))
    for dtype in ("float32", "float64"):
        a, b = y.astype(dtype), x.astype(dtype)
        got = run(expand(elementwise("angles", "atan2", a.dtype, [a, b], a.dtype)), a, b)
        assert agree(got, np.arctan2(a, b), ulp=1).all()


def test_powers_of_the_base_are_exact() -> None:
    whole, count = np.arange(-1074, 1024), np.arange(999.0)
    powers, tens = np.ldexp(1.0, whole), 10.0 ** np.arange(23)
    pairs = {"exp2": (whole.astype(float), powers), "log2": (powers, whole.astype(float)),
             "log10": (tens, np.arange(23.0)), "cbrt": (count**3, count)}
    for name, (x, wanted) in pairs.items():
        assert agree(run(expand(elementwise(name, name, x.dtype, [x], x.dtype)), x), wanted).all(), name
