"""nnc.linalg of complex matrices, and eigenvalues of general ones: vectors, what is not finite, gradients as
conjugates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import GradientError, LinAlgError
from tests.tensors.linalg_cases import CASES, COMPLEX, adjoint
from tests.tensors.matrices import flat, same
from tests.tensors.ways import in_mode

pytestmark = pytest.mark.filterwarnings("ignore:.* has no kernel")
L, N = nnc.linalg, np.linalg
Array = np.ndarray[Any, Any]


drawn, A, H = COMPLEX.draw, COMPLEX.A[:, :3, :3].copy(), COMPLEX.S[:, :3, :3].copy()
TALL, WIDE = drawn(2, 4, 3), drawn(2, 3, 4)
B, V, Q = drawn(3, 2), drawn(3), drawn(3, 3)
REAL = A.real.copy()
PAIRED = np.array([[1.0, -2.0, 0.3], [1.5, 0.5, 0.0], [0.2, 0.7, -1.0]])
"""Real, with one real eigenvalue and a pair of complex ones."""


def steady(v: Any, by: Any = None) -> Any:
    """Columns whose largest components are real and positive, or turned as those are."""
    by = v if by is None else by
    largest = np.take_along_axis(by, np.argmax(np.abs(by), -2, keepdims=True), -2)
    return v * largest.conj() / np.abs(largest)


def test_vectors(device: str) -> None:
    """Up to the phase, which NumPy leaves to LAPACK."""
    for x in (H, H[:, :1, :1].copy()):
        same(L.eigh(x).eigenvectors, steady(N.eigh(x).eigenvectors), "eigh")
    for x in (TALL, WIDE, A):
        u, _, vh = L.svd(x, full_matrices=False)
        v, _, wh = N.svd(x, full_matrices=False)
        same(u, steady(v), "U")
        same(vh, adjoint(steady(adjoint(wh), v)), "Vh")
        full = L.svd(x)
        k = full.S.shape[-1]
        same((full.U[..., :k] * full.S[..., None, :]) @ full.Vh[..., :k, :], x, "full")
    same(nnc.asarray(steady(L.eig(A).eigenvectors.numpy())), steady(N.eig(A).eigenvectors), "eig")


def test_real_matrices_with_complex_eigenvalues(device: str) -> None:
    for x in (PAIRED, REAL, np.eye(3)):
        w, v = L.eig(x)
        assert (w.dtype, v.dtype) == (nnc.complex128, nnc.complex128) and L.eigvals(x).dtype == nnc.complex128
        same(w, N.eigvals(x).astype(complex), "w")
        same(nnc.asarray(x + 0j) @ v, v.numpy() * w.numpy()[..., None, :], "A V")
    assert L.eigvals(nnc.asarray([[0, -1], [1, 0]])).dtype == nnc.complex64
    assert sorted(L.eigvals([[0, -1], [1, 0]]).tolist(), key=lambda z: z.imag) == [-1j, 1j]


@pytest.mark.parametrize("f", [L.inv, L.det, L.cholesky, L.qr, L.eigh, L.eig, L.eigvals, L.svdvals, L.slogdet, L.expm,
                               L.schur, lambda x: L.svd(x, full_matrices=False)])
def test_empty_matrices(f: Callable[..., Any]) -> None:
    for shape in ((0, 0), (2, 0, 0), (0, 2, 2)):
        for y in flat(f(np.zeros(shape, np.complex64))):
            assert y.size == 0 or shape == (2, 0, 0) or shape == (0, 0)
            assert y.dtype in (nnc.complex64, nnc.float32)


def test_logarithms_of_determinants() -> None:
    assert L.logdet(np.zeros((2, 2), complex)).numpy().real == -np.inf
    np.testing.assert_allclose(L.logdet(np.diag([1j, 1j, 2])).tolist(), np.log(2) + 1j * np.pi, rtol=1e-12)


NOT_FINITE = {"eig": L.eig, "eigvals": L.eigvals, "eigh": L.eigh, "eigvalsh": L.eigvalsh, "svd": L.svd,
              "svdvals": L.svdvals, "pinv": L.pinv, "matrix_rank": L.matrix_rank, "cholesky": L.cholesky,
              "norm": lambda x: L.matrix_norm(x, ord=2), "cond": L.cond, "schur": L.schur, "hessenberg": L.hessenberg,
              "lstsq": lambda x: L.lstsq(x, x)}  # fmt: skip


@pytest.mark.parametrize("kind", [np.float32, np.complex128])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", NOT_FINITE)
def test_what_is_not_finite_has_no_eigenvalues_and_returns(name: str, bad: float, kind: Any) -> None:
    x = np.stack([np.eye(4, dtype=kind)] * 2)
    x[1, 2, 2] = bad
    with pytest.raises(LinAlgError, match=r"matrix 1 of the stack (has no|is not positive definite)") as caught:
        NOT_FINITE[name](x)
    assert "test_linalg_complex.py" in str(caught.value)


@pytest.mark.parametrize("kind", [np.float32, np.complex128])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_goes_through_elimination(bad: float, kind: Any) -> None:
    x = np.eye(4, dtype=kind) + np.ones((4, 4), kind)
    x[1, 2] = bad
    for f in (L.inv, L.det, L.qr, L.lu, lambda x: L.solve(x, x), L.expm):
        assert not all(np.isfinite(y.numpy()).all() for y in flat(f(x)))


# ---- derivatives
def weighted(f: Callable[..., Any]) -> Callable[..., Any]:
    """A real number of all parts of all results, which depends on the phases of vectors too."""

    def total(*xs: Any) -> Any:
        found = nnc.asarray(0.0, dtype=nnc.float64)
        for i, y in enumerate(flat(f(*xs))):
            if y.dtype in (nnc.float64, nnc.complex128):
                weights = np.cos(np.arange(y.size) + i).reshape(y.shape)
                found = found + nnc.sum(nnc.real(y) * weights) + nnc.sum(nnc.real(y * y) * weights**2)
                found = found + nnc.sum(nnc.imag(y) * nnc.real(y) * weights)
        return found

    return total


def along(gradients: Any, directions: Any) -> Any:
    return sum((nnc.sum(nnc.real(nnc.conj(g) * d)) for g, d in zip(gradients, directions, strict=True)),
               nnc.asarray(0.0, dtype=nnc.float64))


THIN = {"svd, thin": (lambda x: L.svd(x, full_matrices=False), (TALL,)),
        "svd, wide": (lambda x: L.svd(x, full_matrices=False), (WIDE,)), "svd, square": (L.svd, (A,)),
        "eigh": (L.eigh, (H,)), "eig": (L.eig, (A,)), "eig of real ones": (L.eig, (PAIRED,)),
        "eigvals of real ones": (L.eigvals, (PAIRED,)), "qr, wide": (L.qr, (WIDE,)), "lu, wide": (L.lu, (WIDE,)),
        "lq, wide": (L.lq, (WIDE,)), "polar, left": (lambda x: L.polar(x, "left"), (WIDE,)),
        "lstsq, wide": (lambda a, b: L.lstsq(a, b).x, (WIDE, V)), "pinv": (L.pinv, (TALL,)),
        "matrix_norm": (lambda x: [L.matrix_norm(x, ord=o) for o in ("fro", "nuc", 1, 2)], (TALL,)),
        "solve, mixed": (L.solve, (REAL, B)), "solve, mixed too": (L.solve, (A, B.real.copy()))}  # fmt: skip
ROUGH = {"matrix_rank", "matrix_rank, tolerances", "matrix_rank of a vector", "norms", "pinv", "schur",
         "schur, complex", "hessenberg", "qr, complete", "matrix_transpose", "eig, values", "eigh, values",
         "svd, values", "lq", "polar, left", "polar, wide"}  # fmt: skip
"""Not differentiable, or differentiated in other cases."""
SMOOTH = {**{name: (f, given) for name, (f, _, given) in CASES["complex"].items() if name not in ROUGH}, **THIN}


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_and_tangents(name: str) -> None:
    f, given = SMOOTH[name]
    total, every = weighted(f), tuple(range(len(given)))
    xs = [nnc.asarray(x) for x in given]
    directions = [drawn(*x.shape) if x.dtype.kind == "c" else drawn(*x.shape).real for x in given]
    gradient = nnc.grad(total, every)
    gradients = gradient(*xs)
    assert [g.dtype for g in gradients] == [x.dtype for x in xs]

    def slope(g: Callable[..., Any]) -> Any:
        ends = [g(*[x + s * 1e-6 * d for x, d in zip(given, directions, strict=True)]).item() for s in (1, -1)]
        return (ends[0] - ends[1]) / 2e-6

    towards = [nnc.asarray(d) for d in directions]
    found, wanted = along(gradients, towards).item(), slope(lambda *xs: total(*map(nnc.asarray, xs)))
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(nnc.jvp(total, tuple(xs), tuple(towards))[1].item(), found, rtol=1e-8, atol=1e-9)

    def pairing(*xs: Any) -> Any:
        return along(gradient(*xs), towards)

    again = along(nnc.grad(pairing, every)(*xs), towards).item()
    wanted = slope(lambda *xs: pairing(*map(nnc.asarray, xs)))
    np.testing.assert_allclose(again, wanted, rtol=1e-5, atol=1e-5 * max(1.0, abs(found)))
    np.testing.assert_allclose(nnc.jvp(pairing, tuple(xs), tuple(towards))[1].item(), again, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", ["svd, thin", "eigh", "eig of real ones", "qr, wide"])
def test_gradients_on_every_device_and_compiled(device: str, name: str) -> None:
    f, given = SMOOTH[name]
    with nnc.use_device("cpu:0"):
        wanted = nnc.grad(weighted(f))(nnc.asarray(given[0])).numpy()
    for mode in ("eager", "compiled"):
        found = in_mode(mode, nnc.grad(weighted(f)), nnc.asarray(given[0]))
        assert found.device.id == device
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-9, atol=1e-9)


def test_what_does_not_depend_on_the_phase_has_the_same_gradient_as_a_formula() -> None:
    """The projector on an eigenvector; and a a⁺, which the singular vectors give."""
    x = nnc.asarray(H[0])

    def projected(x: nnc.Tensor) -> nnc.Tensor:
        w, v = L.eigh(x)
        return nnc.sum(nnc.real((v * w) @ nnc.conj(v).T * Q))

    wanted = (Q.conj() + Q.T) / 2  # of the real part of sum(x * Q), the Hermitian part
    np.testing.assert_allclose(nnc.grad(projected)(x).numpy(), wanted, atol=1e-10)


def test_equal_eigenvalues_have_vectors_without_derivative() -> None:
    x = nnc.asarray(np.diag([1.0, 1.0, 2.0]) + 0j)
    assert not np.isfinite(nnc.grad(lambda x: nnc.sum(nnc.real(L.eigh(x).eigenvectors * Q)))(x).numpy()).all()
    np.testing.assert_allclose(nnc.grad(lambda x: nnc.sum(nnc.real(L.eigvals(x) ** 2)))(x).numpy(), 2 * x.numpy())
    jordan = nnc.asarray(np.array([[1.0, 1], [0, 1]]))
    found = L.eigvals(jordan)
    np.testing.assert_allclose(found.numpy(), [1, 1], atol=1e-7)


def test_forms_have_no_derivative() -> None:
    for f in (L.schur, L.hessenberg):
        with pytest.raises(GradientError, match="no rule to differentiate it in reverse mode") as caught:
            nnc.grad(lambda x, f=f: nnc.sum(f(x)[0]))(nnc.asarray(PAIRED))
        assert "stop_gradient" in caught.value.hint


def test_a_matrix_for_each_example(device: str) -> None:
    x = nnc.asarray(A)
    f = lambda m: (*L.eig(m), *L.schur(m, "complex"), L.eigvals(m), L.inv(m))  # noqa: E731
    for y, z in zip(nnc.vmap(f)(x), f(x), strict=True):
        np.testing.assert_allclose(y.numpy(), z.numpy(), rtol=1e-12, atol=1e-12)


def test_a_stable_system_is_found_downhill() -> None:
    """The largest real part of the eigenvalues of a real matrix falls below zero."""
    x = nnc.asarray(PAIRED)
    step = nnc.jit(lambda x: x - 0.2 * nnc.grad(lambda x: nnc.max(nnc.real(L.eigvals(x))))(x))
    for _ in range(40):
        x = step(x)
    assert N.eigvals(x.numpy()).real.max() < -0.5
