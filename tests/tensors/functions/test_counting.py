"""Factorials, binomials and transformations, against SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special

import nnc_core as nnc
from tests.tensors.faults import fails
from tests.tensors.gradients import check
from tests.tensors.ways import in_mode

INF, NAN = np.inf, np.nan
N, K = np.meshgrid(np.arange(-2, 12), np.arange(-1, 13))
P, Q = np.meshgrid([0.0, 0.5, 1, -1, 2, NAN, INF], [0.0, 0.5, 1, -1, 2, NAN])
X, POWERS = np.meshgrid([0.0, 0.5, 1, 2.5, 1e10, INF], [0.0, 0.5, 1, -1, 2, 1e-9, -1e-9])
Y = np.minimum(X, 3)
SMALL = np.array([0, 1e-9, -1e-9, 0.1, -0.1, 0.124, 0.126, 3, -3])
ENDS = np.array([800, -800, INF, -INF, NAN])

CASES: dict[str, tuple[Any, ...]] = {
    "gamma": (np.array([0.5, 1, 5, -0.5, -1.5, -2, 0, -0.0, 10.3, 33, INF, -INF, NAN]),),
    "gammasgn": (np.array([0.5, 5, -0.5, -1.5, -2, 0, -0.0, INF, -INF, NAN]),),
    "beta": (np.array([0.5, 2, 30, -0.5, -0.5, -3.5, -0.5, -0.0, 0.5]),
             np.array([1.5, 3, 0.1, 1.0, -0.5, 0.25, 30.5, 2.0, INF])),
    "poch": (np.array([0.5, 2, -1.5, 1000, 1000, 1e6, 2, 3, INF, INF, INF]),
             np.array([1.5, 3, 0.25, 2.0, -2.0, 1.5, 0, -1.5, 2, 0, -1])),
    "multigammaln": (np.array([3.0, 5.5]), 4),
    "factorial": (np.arange(-2, 34),),
    "comb": (N, K), "perm": (N, K),
    "binom": (np.array([5.0, 4.5, 60, 0.5, 2.5, -0.5, -2.5, 2, 2, -1, -3, NAN, 5, 0, *[INF] * 7, -INF, 1e6]),
              np.array([2, 1.5, 30, 2.25, 3, 4, 1, 3, -0.5, 1, -1, 1, NAN, 1.5, -INF, -1.5, -1, 0, 1, INF, NAN, 1,
                        -0.5])),
    "exp10": (np.concatenate([SMALL, ENDS]),), "cosm1": (SMALL,), "exprel": (np.concatenate([SMALL, ENDS]),),
    "rel_entr": (P, Q),
    "boxcox": (X, POWERS), "boxcox1p": (X, POWERS),
    **{name: (np.append(Y, [INF, -INF, INF, NAN]), np.append(np.abs(POWERS), [0, 0, 2, 0]))
       for name in ("inv_boxcox", "inv_boxcox1p")},
}  # fmt: skip


def tensors(given: tuple[Any, ...], dtype: str) -> list[Any]:
    return [nnc.asarray(x if x.dtype.kind == "i" else x.astype(dtype)) if isinstance(x, np.ndarray) else x
            for x in given]


@pytest.mark.parametrize("name", CASES)
def test_as_scipy(device: str, name: str) -> None:
    given = CASES[name]
    with np.errstate(all="ignore"):
        wanted = getattr(scipy.special, name)(*given)
    for dtype, tolerance in (("float64", 2e-13), ("float32", 3e-5)):
        with nnc.config.using(default_float=dtype):
            found = getattr(nnc, name)(*tensors(given, dtype))
        assert str(found.dtype) == dtype
        with np.errstate(over="ignore"):
            np.testing.assert_allclose(found.numpy(), np.asarray(wanted).astype(dtype), rtol=tolerance, atol=1e-30)


@pytest.mark.parametrize("name", ["gamma", "factorial", "comb", "rel_entr", "boxcox"])
def test_in_every_mode(device: str, name: str) -> None:
    given = tensors(CASES[name], "float64")
    wanted = getattr(nnc, name)(*given).numpy()
    for mode in ("deferred", "compiled", "exported"):
        np.testing.assert_allclose(in_mode(mode, getattr(nnc, name), *given).numpy(), wanted, rtol=1e-12)


def test_large_factorials_are_right_to_the_last_bit() -> None:
    with nnc.config.using(default_float="float64"):
        found = nnc.factorial(np.arange(175)).numpy()
    assert (found[:23] == [float(scipy.special.factorial(n, exact=True)) for n in range(23)]).all()
    assert (found == [float(scipy.special.factorial(n, exact=True)) if n < 171 else INF for n in range(175)]).all()


def test_choices_and_orders_of_many_things(device: str) -> None:
    """The logarithms of both gamma functions are large where their quotient is not."""
    n, k = np.array([1000, 1e6, 1e10, 7, INF, INF, INF]), np.array([2, 3, 2, 7, 0, 2, INF])
    for name in ("comb", "perm"):
        with np.errstate(all="ignore"):
            wanted = getattr(scipy.special, name)(n, k)
        for dtype, tolerance in (("float64", 1e-12), ("float32", 1e-5)):
            found = getattr(nnc, name)(*tensors((n, k), dtype)).numpy()
            np.testing.assert_allclose(found, wanted.astype(dtype), rtol=tolerance)
    assert nnc.perm(INF, 0.5).item() == nnc.comb(INF, 0.5).item() == nnc.binom(INF, 0.5).item() == INF


def test_beta_of_a_large_and_a_negative_number() -> None:
    """Against the recursion from positive ones: SciPy's has lost six digits there."""
    a = np.array([30.0, 1e7, 1e9])
    wanted = scipy.special.beta(a, 0.5) * (a - 0.5) * (a - 1.5) / 0.75
    np.testing.assert_allclose(nnc.beta(a, -1.5).numpy(), wanted, rtol=1e-13)


def test_repetition() -> None:
    n, k = np.meshgrid(np.arange(6), np.arange(6))
    assert nnc.comb(n, k, repetition=True).tolist() == scipy.special.comb(n, k, repetition=True).tolist()
    assert nnc.comb(5, 2).tolist() == 10 and nnc.comb(5.0, 2.5).item() == pytest.approx(scipy.special.comb(5, 2.5))


SMOOTH = {
    "gamma": (np.array([0.7, 2.5, -0.5, -1.3]),), "beta": (np.array([0.7, 2.5]), np.array([1.2, 3])),
    "poch": (np.array([0.7, 2.5, 2.5, 3, -1.5]), np.array([1.2, 0.3, 0.0, -1.5, 0.3])),
    "binom": (np.array([5.5, 3, -0.5, 0.5]), np.array([1.2, 0.3, 1.7, 3.2])),
    "exprel": (np.array([0.0, 1e-4, 0.1, 0.2, -3]),), "cosm1": (np.array([0.0, 0.1, -2]),),
    "exp10": (np.array([0.1, -1]),), "rel_entr": (np.array([0.5, 2]), np.array([0.2, 3])),
    "boxcox": (np.array([0.5, 2, 3]), np.array([0.0, 1.5, -1e-3])),
    "boxcox1p": (np.array([0.5, 2, 0.1]), np.array([0.0, 1.5, -1e-3])),
    "inv_boxcox": (np.array([0.5, 2, 0.1]), np.array([0.0, 1.5, 1e-3])),
    "inv_boxcox1p": (np.array([0.5, 2, 0.1]), np.array([0.0, 1.5, 1e-3])),
}  # fmt: skip


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives(name: str) -> None:
    check(getattr(nnc, name), *SMOOTH[name])


def test_what_is_refused() -> None:
    with fails(TypeError, "have no factorial", "gamma(n + 1)"):
        nnc.factorial(0.5)
    with fails(ValueError, "the dimension 0 is no integer from 1 on"):
        nnc.multigammaln(3.0, 0)
