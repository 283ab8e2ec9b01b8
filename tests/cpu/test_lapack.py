"""LAPACK's factors and solutions are those of the references, within roundings; where it is not found these compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nnc_core.base.errors import LinAlgError
from nnc_core.operator import linalg_reference as reference
from nnc_cpu import lapack

DTYPES = ("float32", "float64", "complex64", "complex128")
SHAPES = ((1, 1), (5, 5), (3, 7, 4), (2, 1, 4, 9), (70, 70), (0, 3), (2, 0, 0))


def random(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)


@pytest.fixture(params=["lapack", "reference"], autouse=True)
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "reference":
        monkeypatch.setattr(lapack, "routine", lambda name, dtype: None)


def test_numpys_lapack_is_found() -> None:
    assert lapack.routine.__name__ == "<lambda>" or lapack.routine("getrf", "float32") is not None


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_factors(shape: tuple[int, ...], dtype: str) -> None:
    a = random(shape, dtype)
    before = a.copy()
    (factors, order), (wanted, wanted_order) = lapack.lu(a), reference.lu(a)
    assert (factors.dtype, factors.shape, order.dtype) == (a.dtype, a.shape, np.int64)
    np.testing.assert_array_equal(order, wanted_order)
    np.testing.assert_array_equal(a, before)
    np.testing.assert_allclose(factors, wanted, atol=2e3 * np.finfo(dtype).eps)


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("unit_diagonal", [False, True])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("a", "b"), [((3, 3), (3, 2)), ((2, 70, 70), (70, 1)), ((4, 4), (3, 4, 2)), ((0, 0), (0, 2))])
def test_solutions(a: tuple[int, ...], b: tuple[int, ...], dtype: str, lower: bool, unit_diagonal: bool) -> None:
    x = random(a, dtype) / max(a[-1], 1) + np.eye(a[-1], dtype=dtype)
    y = random(b, dtype, 1)
    found, wanted = (f.solve_triangular(x, y, lower, unit_diagonal) for f in (lapack, reference))
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_allclose(found, wanted, atol=1e3 * np.finfo(dtype).eps)


def test_the_other_triangle_is_not_read() -> None:
    x, y = np.array([[2.0, 9.0], [1.0, 4.0]]), np.ones((2, 1))
    np.testing.assert_array_equal(lapack.solve_triangular(x, y, True, False), [[0.5], [0.125]])
    np.testing.assert_array_equal(lapack.solve_triangular(x, y, True, True), [[1.0], [0.0]])


def test_what_has_no_solution_is_said() -> None:
    x = np.stack([np.eye(3), np.diag([1.0, 0.0, 1.0])])
    with pytest.raises(LinAlgError, match="matrix 1 of the stack is singular: it has a zero on its diagonal"):
        lapack.solve_triangular(x, np.ones((3, 1)), True, False)
    assert lapack.solve_triangular(x, np.ones((3, 1)), True, True).shape == (2, 3, 1)


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_goes_through_elimination(odd: float) -> None:
    x = np.array([[2.0, 1.0, 0.0], [1.0, odd, 3.0], [4.0, 1.0, 1.0]])
    with np.errstate(all="ignore"):
        for found, wanted in zip(lapack.lu(x), reference.lu(x), strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_singular_matrices_have_factors() -> None:
    x = np.array([[1.0, 2.0], [2.0, 4.0]])
    factors, order = lapack.lu(x)
    np.testing.assert_array_equal(factors, [[2.0, 4.0], [0.5, 0.0]])
    assert order.tolist() == [1, 0]
