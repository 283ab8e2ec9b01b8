"""Polynomials as vectors of coefficients, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from tests.tensors.against_numpy import Array, assert_derivatives, assert_same, assert_same_in_every_mode
from tests.tensors.faults import fails

pytestmark = pytest.mark.filterwarnings("ignore:.* has no kernel")
RNG = np.random.default_rng(4)
P, Q, R = RNG.uniform(1, 2, 5), RNG.uniform(1, 2, 3), RNG.uniform(1, 2, 1)
X = RNG.uniform(-1, 1, (2, 3))
Z = P + 1j * RNG.uniform(-1, 1, 5)

CODE: dict[str, Any] = {
    "polyval": (lambda xp, p, x: xp.polyval(p, x), (P, X)),
    "polyval of matrices as numbers": (lambda xp, p, x: xp.polyval(p, x), (R, X)),
    "polyadd": (lambda xp, p, q: [xp.polyadd(p, q), xp.polyadd(q, p)], (P, Q)),
    "polysub": (lambda xp, p, q: [xp.polysub(p, q), xp.polysub(q, p)], (P, Q)),
    "sums of one length": (lambda xp, p, q: [xp.polyadd(p, q), xp.polysub(p, q)], (P, P[::-1].copy())),
    "polymul": (lambda xp, p, q: xp.polymul(p, q), (P, Q)),
    "polydiv": (lambda xp, p, q: xp.polydiv(p, q), (P, Q)),
    "polydiv by a number": (lambda xp, p, q: xp.polydiv(p, q)[0], (P, R)),
    "polyder": (lambda xp, p: [xp.polyder(p), xp.polyder(p, 3), xp.polyder(p, 0), xp.polyder(p, 4)], (P,)),
    "polyint": (lambda xp, p: [xp.polyint(p), xp.polyint(p, 2), xp.polyint(p, 2, k=3.0)], (P,)),
    "polyint, constants": (lambda xp, p, k: xp.polyint(p, 3, k=k), (P, Q)),
    "poly of a matrix": (lambda xp, a: xp.poly(a), (RNG.uniform(-1, 1, (4, 4)),)),
    "poly of roots": (lambda xp, r: xp.poly(r), (P,)),
    "polyfit": (lambda xp, x, y: xp.polyfit(x, y, 2), (np.linspace(-1, 2, 7), RNG.uniform(-1, 1, 7))),
    "polyfit of columns": (lambda xp, x, y: xp.polyfit(x, y, 3), (np.linspace(-1, 2, 7), RNG.uniform(-1, 1, (7, 2)))),
    "polyfit, weights": (lambda xp, x, y, w: xp.polyfit(x, y, 1, w=w), (np.arange(4.0), P[:4], Q[[0, 1, 2, 0]])),
}  # fmt: skip


@pytest.mark.parametrize("name", CODE)
def test_as_numpy(device: str, name: str) -> None:
    code, arrays = CODE[name]
    assert_same(code(nnc, *map(nnc.asarray, arrays)), code(np, *arrays), 1e-9)


@pytest.mark.parametrize("name", CODE)
def test_in_every_mode_and_differentiated(name: str) -> None:
    code, arrays = CODE[name]
    assert_same_in_every_mode(code, arrays, 1e-9)
    assert_derivatives(code, arrays)


def test_complex_coefficients() -> None:
    for code in (lambda xp, z: xp.polyval(z, z), lambda xp, z: xp.polymul(z, z), lambda xp, z: xp.polyint(z, 2),
                 lambda xp, z: xp.polydiv(z, z[:2]), lambda xp, z: xp.poly(z), lambda xp, z: xp.polyder(z)):
        assert_same_in_every_mode(code, (Z,), 1e-9)


def test_integers_as_numpy_has_them() -> None:
    p = np.array([1, -3, 2])
    assert_same([nnc.polyval(p, 5), nnc.polyadd(p, p), nnc.polymul(p, p)],
                [np.polyval(p, 5), np.polyadd(p, p), np.polymul(p, p)])
    assert nnc.polyder([1, 0, 0]).tolist() == [2, 0] and nnc.polyint([2.0, 0]).tolist() == [1, 0, 0]


@pytest.mark.filterwarnings("ignore:invalid value")
def test_sums_have_numpys_zeros_and_nan() -> None:
    given = np.array([-0.0, np.nan, -0.0, np.inf]), np.array([-0.0, np.inf]), np.zeros(0), np.array(-0.0)
    for p in given:
        for q in given:
            for name in ("polyadd", "polysub"):
                found, wanted = getattr(nnc, name)(p, q).numpy(), getattr(np, name)(p, q)
                np.testing.assert_array_equal(found, wanted)
                np.testing.assert_array_equal(np.signbit(found[found == 0]), np.signbit(wanted[found == 0]))


def matched(found: Array, wanted: Array) -> Array:
    """The found numbers in the order of those that are wanted."""
    return found[np.argmin(np.abs(found[:, None] - wanted), axis=0)]


@pytest.mark.parametrize("p", [P, Z, np.array([1.0, -6, 11, -6]), np.array([2.0, 3]), np.array([1.0, 0, 1])], ids=str)
def test_roots(device: str, p: Array) -> None:
    found, wanted = nnc.roots(p).numpy(), np.roots(p)
    assert found.dtype == np.complex128 and found.shape == wanted.shape
    np.testing.assert_allclose(matched(found, wanted), wanted, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(nnc.jit(nnc.roots)(nnc.asarray(p)).numpy(), found, rtol=1e-12, atol=1e-12)


def test_roots_move_with_their_coefficients() -> None:
    """By the implicit function: dr = -r**k / p'(r) for the coefficient of x**k."""
    p = np.array([1.0, -6, 11, -6])

    def largest(c: nnc.Tensor) -> nnc.Tensor:
        return nnc.max(nnc.real(nnc.roots(c)))

    wanted = -(3.0 ** np.array([3, 2, 1, 0])) / np.polyval(np.polyder(p), 3.0)
    np.testing.assert_allclose(nnc.grad(largest)(nnc.asarray(p)).numpy(), wanted, rtol=1e-9)


def test_no_coefficients_and_no_roots() -> None:
    assert nnc.roots([5.0]).shape == (0,) and nnc.poly(np.zeros(0)).tolist() == [1]
    assert nnc.polyval(np.zeros(0), X).tolist() == np.zeros((2, 3)).tolist()
    assert nnc.polyder(P, 7).shape == (0,) and nnc.polydiv(R, P).quotient.tolist() == [0]
    assert nnc.polydiv(R, P).remainder.tolist() == R.tolist()
    assert nnc.poly(nnc.asarray([1j, -1j])).dtype == nnc.complex64


def test_what_is_refused() -> None:
    with fails(ValueError, "are no coefficients"):
        nnc.polyval(X, X)
    with fails(ValueError, "the order -1 is no integer from 0 on"):
        nnc.polyder(P, -1)
    with fails(ValueError, "for 2 integrals"):
        nnc.polyint(P, 2, k=P)
    with fails(ValueError, "nothing to divide by"):
        nnc.polydiv(P, np.zeros(0))
    with fails(ValueError, "as many values"):
        nnc.polyfit(P, Q, 1)
    with fails(ValueError, "do not go with places"):
        nnc.polyfit(P, P, 1, w=Q)
    with fails(ValueError, "neither a vector of roots nor a matrix"):
        nnc.poly(np.zeros((1, 2, 2)))
    with fails(np.linalg.LinAlgError, "holds NaN or infinities"):
        nnc.roots(nnc.asarray([0.0, 1.0, 2.0]))
