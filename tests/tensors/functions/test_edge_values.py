"""Values at the edges: NaN, infinities, weights and indices that are none."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import numpy as np
import pytest
import scipy.special

import nnc_core as nnc
from nnc_core.base.errors import AttributeValueError, DTypeError, ShapeError


@pytest.mark.parametrize("value", [0.0, 7.0])
def test_threshold_keeps_nan(value: float, device: str) -> None:
    found = nnc.threshold(nnc.asarray([nan, -inf, 0.5, 1.0, inf]), 0.5, value)
    np.testing.assert_array_equal(found.numpy(), [nan, value, value, 1, inf])


TAKE_NAN = [name for name in nnc.functions.activation.__all__ if name not in ("prelu", "threshold")]


@pytest.mark.parametrize("name", TAKE_NAN)
def test_activations_keep_nan(name: str) -> None:
    assert np.isnan(getattr(nnc, name)(nnc.asarray([nan, nan])).numpy()).all()


@pytest.mark.parametrize("beta", [0.0, 5.0, 92.0, 300.0, -300.0])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_kaiser_does_not_overflow(beta: float, dtype: str, device: str) -> None:
    tolerance = {"float16": 1e-3, "float32": 3e-5, "float64": 1e-12}[dtype]
    np.testing.assert_allclose(nnc.kaiser(9, beta, dtype=dtype).numpy(), np.kaiser(9, abs(beta)), tolerance, tolerance)


def test_kaiser_beyond_what_i0_can_hold() -> None:
    np.testing.assert_allclose(nnc.kaiser(3, 2000.0).numpy(), [0, 1, 0], atol=1e-30)


@pytest.mark.parametrize("dtype", [nnc.int32, nnc.bool, nnc.complex64])
@pytest.mark.parametrize("name", ["hanning", "hamming", "blackman", "bartlett"])
def test_windows_have_floats(name: str, dtype: Any) -> None:
    with pytest.raises(DTypeError, match=f"{name}: a window has floats, which {dtype} cannot hold"):
        getattr(nnc, name)(5, dtype=dtype)


def test_zeta_below_one(device: str) -> None:
    """Zeros at even numbers, signs that change between them, and what floats no longer hold."""
    s = np.array([0.5, 0, -0.0, -1e-20, -0.25, -0.3, -1, -2, -3.5, -4, -20, -20.5, -62.5, -200, -1e30, -inf, nan])
    with np.errstate(all="ignore"):
        wanted = scipy.special.zeta(s)
    for dtype, tolerance in (("float64", 1e-13), ("float32", 3e-5)):
        found = nnc.zeta(nnc.asarray(s.astype(dtype))).numpy()
        np.testing.assert_allclose(found, wanted.astype(dtype), rtol=tolerance)
    assert [nnc.zeta(x).item() for x in (-251.0, -301.0)] == [inf, -inf]  # of float32
    slopes = nnc.grad(lambda s: nnc.sum(nnc.zeta(s)))(nnc.asarray(np.array([-2.0, -4.0, 0.0])))
    np.testing.assert_allclose(slopes.numpy(), [-0.030448457058393, 0.0079838114502686, -0.918938533204673], rtol=1e-11)


def test_zeta_at_infinity(device: str) -> None:
    s = nnc.asarray([2.0, 1.5, 1.0, 0.5, nan, inf])
    np.testing.assert_array_equal(nnc.zeta(s, nnc.full(6, inf)).numpy(), [0, 0, inf, -inf, nan, 0])
    slopes = nnc.grad(lambda s: nnc.sum(nnc.zeta(s, nnc.full(2, inf))))(nnc.asarray([2.0, 3.0]))
    assert slopes.tolist() == [0, 0]


EXPM1 = [
    (complex(inf, 0.0), complex(inf, 0.0)), (complex(inf, -0.0), complex(inf, -0.0)),
    (complex(inf, 1), complex(inf, inf)),
    (complex(inf, inf), complex(inf, nan)), (complex(inf, -inf), complex(inf, nan)),
    (complex(inf, nan), complex(inf, nan)),
    (complex(-inf, 1), complex(-1, 0)), (complex(-inf, inf), complex(-1, 0)), (complex(-inf, nan), complex(-1, 0)),
    (complex(-inf, -0.0), complex(-1, -0.0)), (complex(nan, 0.0), complex(nan, 0)),
    (complex(nan, -0.0), complex(nan, -0.0)),
    (complex(nan, 1), complex(nan, nan)), (complex(nan, nan), complex(nan, nan)), (complex(1, inf), complex(nan, nan)),
    (complex(1, nan), complex(nan, nan)), (complex(-0.0, 0.0), complex(-0.0, 0.0)),
]  # fmt: skip
"""As the Array API has it."""


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.filterwarnings("ignore:expm1 has no kernel")
def test_complex_expm1_at_the_ends(dtype: Any, step: int, device: str) -> None:
    z = nnc.asarray(np.array([z for z, _ in EXPM1], dtype))[::step]
    wanted = np.array([y for _, y in EXPM1], dtype)[::step]
    for found in (nnc.expm1(z).numpy(), nnc.jit(nnc.expm1)(z).numpy()):
        for part in (np.real, np.imag):
            np.testing.assert_array_equal(part(found), part(wanted))
            there = ~np.isnan(part(wanted))
            np.testing.assert_array_equal(np.signbit(part(found))[there], np.signbit(part(wanted))[there])


def test_both_parts_of_complex_numbers_become_numbers(device: str) -> None:
    z = np.array([complex(nan, 1), complex(inf, nan), complex(-2, -inf)], np.complex64)
    found = nnc.nan_to_num(nnc.asarray(z), nan=5.0, posinf=8.0).numpy()
    np.testing.assert_array_equal(found, np.nan_to_num(z, nan=5.0, posinf=8.0))


def test_covariances_of_no_variables_and_of_no_observations() -> None:
    for f in (nnc.cov, nnc.corrcoef, nnc.jit(nnc.cov)):
        assert f(nnc.zeros((0, 3))).shape == (0, 0)
        assert np.isnan(f(nnc.zeros((2, 0))).numpy()).all()


# ---- what NumPy refuses
@pytest.mark.parametrize("name", ["fweights", "aweights"])
@pytest.mark.parametrize("wrap", [list, np.array, nnc.asarray])
def test_negative_weights_of_covariances(name: str, wrap: Any) -> None:
    with pytest.raises(AttributeValueError, match=f"cov: {name} has negative weights, the first of them -2"):
        nnc.cov([1.0, 2.0, 4.0], **{name: wrap([1, -2, 3])})


def test_take_along_no_axis_takes_a_vector() -> None:
    x = nnc.reshape(nnc.arange(6), (2, 3))
    assert nnc.take_along_axis(x, nnc.asarray([5, 0]), axis=None).tolist() == [5, 0]
    with pytest.raises(ShapeError, match="take_along_axis: indices int64\\[2,2\\] of the flattened"):
        nnc.take_along_axis(x, nnc.asarray([[5, 0], [1, 2]]), axis=None)


# ---- nothing, and far away
def test_norms_of_empty_matrices() -> None:
    for shape in ((0, 3), (3, 0), (0, 0), (2, 0, 3)):
        for order in ("fro", "nuc", 1, 2, inf):
            found = nnc.linalg.matrix_norm(nnc.zeros(shape), ord=order)
            assert found.shape == shape[:-2] and not found.numpy().any(), (shape, order)


def test_rank_of_an_empty_matrix() -> None:
    assert nnc.linalg.matrix_rank(nnc.zeros((0, 3)), rtol=nnc.asarray(0.1)).item() == 0
    assert nnc.linalg.matrix_rank(nnc.zeros((2, 3, 0)), rtol=nnc.asarray([0.1, 0.2])).tolist() == [0, 0]


@pytest.mark.parametrize("k", [10**20, -(10**20), 2**63, 3])
def test_diagonals_beyond_the_matrix(k: int) -> None:
    assert not nnc.eye(3, k=k).numpy().any()


def test_places_of_a_number() -> None:
    assert nnc.argwhere(5.0).shape == (1, 0) and nnc.argwhere(nnc.asarray(0)).shape == (0, 0)


@pytest.mark.parametrize("axes", [(0,), (0, 1, 1), (), [1]])
def test_a_turn_has_two_axes(axes: Any) -> None:
    with pytest.raises((AttributeValueError, ShapeError), match="rot90: ax"):
        nnc.rot90(nnc.ones((2, 2)), axes=axes)
