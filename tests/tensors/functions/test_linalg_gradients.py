"""Gradients of nnc.linalg: finite differences, forward mode, second order; and where there are none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import GradientError, LinAlgError

pytestmark = pytest.mark.filterwarnings("ignore:.* has no kernel")
L = nnc.linalg
RNG = np.random.default_rng(1)
A = RNG.uniform(-1, 1, (2, 3, 3)) + np.diag([1.0, 2.0, 3.5])
S = A @ A.swapaxes(-1, -2)
TALL, WIDE = (RNG.uniform(-1, 1, s) + np.eye(*s[1:]) * 2 for s in ((2, 4, 3), (2, 3, 4)))
B, V, Q = RNG.uniform(-1, 1, (3, 2)), RNG.uniform(-1, 1, 3), RNG.uniform(-1, 1, (3, 3))
STEP = 1e-6
Arrays = tuple[np.ndarray[Any, Any], ...]

FUNCTIONS: dict[str, tuple[Callable[..., Any], Arrays]] = {
    "cholesky": (L.cholesky, (S,)),
    "cholesky, upper": (lambda x: L.cholesky(x, upper=True), (S,)),
    "cholesky_solve": (lambda x, b: L.cholesky_solve(L.cholesky(x), b), (S, B)),
    "cond": (lambda x: [L.cond(x, p) for p in (None, -2, 1, "fro")], (A,)),
    "cross": (L.cross, (A, Q)),
    "det": (L.det, (A,)),
    "eigh": (L.eigh, (S,)),
    "eigvalsh": (L.eigvalsh, (S,)),
    "expm": (L.expm, (A * 3,)),
    "inv": (L.inv, (A,)),
    "logdet": (L.logdet, (S,)),
    "lq": (L.lq, (WIDE,)),
    "lstsq, tall": (L.lstsq, (TALL, RNG.uniform(-1, 1, (4, 2)))),
    "lstsq, wide": (lambda a, b: L.lstsq(a, b).x, (WIDE, V)),
    "lu": (L.lu, (A,)),
    "lu, tall": (L.lu, (TALL,)),
    "lu, wide": (L.lu, (WIDE,)),
    "lu_solve": (lambda x, b: L.lu_solve(L.lu_factor(x), b), (A, B)),
    "matrix_norm": (lambda x: [L.matrix_norm(x, ord=o) for o in ("fro", "nuc", 1, -1, 2, -2, np.inf)], (TALL,)),
    "matrix_power": (lambda x: [L.matrix_power(x, n) for n in (-2, 1, 3)], (A,)),
    "norm": (lambda x: L.norm(x, 3, -1), (A,)),
    "circulant": (L.circulant, (V,)),
    "companion": (L.companion, (V,)),
    "block_diag": (L.block_diag, (B, V)),
    "toeplitz": (L.toeplitz, (V, Q[0])),
    "hankel": (L.hankel, (V, Q[0])),
    "polar": (L.polar, (TALL,)),
    "pinv": (L.pinv, (TALL,)),
    "pinv, wide": (L.pinv, (WIDE,)),
    "qr": (L.qr, (A,)),
    "qr, tall": (L.qr, (TALL,)),
    "qr, wide": (L.qr, (WIDE,)),
    "slogdet": (L.slogdet, (A,)),
    "solve": (L.solve, (A, B)),
    "solve, a vector": (L.solve, (A, V)),
    "solve_triangular": (lambda a, b: L.solve_triangular(a, b, lower=True), (A, B)),
    "solve_sylvester": (L.solve_sylvester, (A, S, Q)),
    "solve_continuous_lyapunov": (L.solve_continuous_lyapunov, (A, Q)),
    "solve_discrete_lyapunov": (L.solve_discrete_lyapunov, (A / 8, Q)),
    "solve_continuous_are": (L.solve_continuous_are, (A, B, S, S[0, :2, :2])),
    "solve_discrete_are": (L.solve_discrete_are, (A / 4, B, S, S[0, :2, :2])),
    "svd": (L.svd, (A,)),
    "svd, tall": (lambda x: L.svd(x, full_matrices=False), (TALL,)),
    "svd, wide": (lambda x: L.svd(x, full_matrices=False), (WIDE,)),
    "svdvals": (L.svdvals, (TALL,)),
    "tensorinv": (lambda x: L.tensorinv(x, 1), (A[0],)),
    "trace": (lambda x: L.trace(x, offset=1), (A,)),
    "vector_norm": (lambda x: [L.vector_norm(x, ord=o, axis=-1) for o in (1, 2, 3, np.inf)], (A,)),
}  # fmt: skip


def floats(tree: Any) -> list[nnc.Tensor]:
    found = [y for x in tree for y in floats(x)] if isinstance(tree, (list, tuple)) else [tree]
    return [y for y in found if y.dtype == nnc.float64]


def scalar(f: Callable[..., Any]) -> Callable[..., nnc.Tensor]:
    """A smooth number that depends on every element of every result."""

    def g(*xs: nnc.Tensor) -> nnc.Tensor:
        total = nnc.asarray(0.0, dtype=nnc.float64)
        for y in floats(f(*xs)):
            weights = np.cos(np.arange(y.size) + 0.5).reshape(y.shape)
            total = total + nnc.sum(y * weights) + nnc.sum(y * y)
        return total

    return g


def drawn(given: Arrays) -> tuple[list[nnc.Tensor], list[nnc.Tensor]]:
    """The operands, and directions."""
    rng = np.random.default_rng(2)
    return [nnc.asarray(x) for x in given], [nnc.asarray(rng.uniform(-1, 1, x.shape)) for x in given]


def along(gradients: Any, directions: list[nnc.Tensor]) -> nnc.Tensor:
    total = nnc.asarray(0.0, dtype=nnc.float64)
    for g, d in zip(gradients, directions, strict=True):
        total = total + nnc.sum(g * d)
    return total


def slope(f: Callable[..., Any], xs: list[nnc.Tensor], directions: list[nnc.Tensor]) -> Any:
    """Central differences of an array, or of a list of them."""
    above, below = (f(*[x + h * d for x, d in zip(xs, directions, strict=True)]) for h in (STEP, -STEP))
    pairs = zip(above, below, strict=True) if isinstance(above, (list, tuple)) else [(above, below)]
    return [(a.numpy() - b.numpy()) / (2 * STEP) for a, b in pairs]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_first_order(name: str) -> None:
    f, given = FUNCTIONS[name]
    (xs, directions), g = drawn(given), scalar(f)
    gradients = nnc.grad(g, tuple(range(len(xs))))(*xs)
    _, tangent = nnc.jvp(g, tuple(xs), tuple(directions))
    (wanted,) = slope(g, xs, directions)
    np.testing.assert_allclose(along(gradients, directions).item(), wanted, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(tangent.item(), along(gradients, directions).item(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_second_order(name: str) -> None:
    """Differences of the gradient, forward over reverse, and the gradient of its product with a direction."""
    f, given = FUNCTIONS[name]
    xs, directions = drawn(given)
    every = tuple(range(len(xs)))
    gradient = nnc.grad(scalar(f), every)
    wanted = slope(gradient, xs, directions)
    forward = nnc.jvp(gradient, tuple(xs), tuple(directions))[1]
    reverse = nnc.grad(lambda *xs: along(gradient(*xs), directions), every)(*xs)
    for a, b, c in zip(forward, reverse, wanted, strict=True):
        scale = max(1.0, float(np.abs(c).max()))
        np.testing.assert_allclose(a.numpy(), c, rtol=1e-5, atol=1e-6 * scale)
        np.testing.assert_allclose(b.numpy(), a.numpy(), rtol=1e-8, atol=1e-9 * scale)


SAMPLE = ("cholesky", "eigh", "expm", "qr, wide", "solve_continuous_are", "svd, tall")


@pytest.mark.parametrize("name", SAMPLE)
def test_on_every_device_and_compiled(device: str, name: str) -> None:
    f, given = FUNCTIONS[name]
    xs = [nnc.asarray(x) for x in given]
    both = nnc.value_and_grad(scalar(f), tuple(range(len(xs))))
    (y, gradients), (z, others) = both(*xs), nnc.jit(both)(*xs)
    np.testing.assert_allclose(z.item(), y.item(), rtol=1e-12)
    with nnc.use_device("cpu:0"):
        wanted = nnc.grad(scalar(f), tuple(range(len(xs))))(*[nnc.asarray(x) for x in given])
    for a, b, c in zip(gradients, others, wanted, strict=True):
        assert a.device.id == b.device.id == device
        scale = float(np.abs(c.numpy()).max())
        np.testing.assert_allclose(a.numpy(), c.numpy(), rtol=1e-9, atol=1e-9 * scale)
        np.testing.assert_allclose(b.numpy(), c.numpy(), rtol=1e-9, atol=1e-9 * scale)


def test_backward_again_and_again() -> None:
    """The third pass over the same structure is compiled where it can be."""
    wanted = nnc.grad(scalar(L.svd))(nnc.asarray(A)).numpy()
    for _ in range(5):
        v = nnc.variable(A)
        scalar(L.svd)(v).backward()
        np.testing.assert_allclose(v.grad.numpy(), wanted, rtol=1e-12, atol=1e-12)


def test_single_precision(device: str) -> None:
    x = nnc.asarray(A.astype(np.float32))
    wanted = nnc.grad(lambda x: nnc.sum(L.inv(x)))(nnc.asarray(A)).numpy()
    found = nnc.grad(lambda x: nnc.sum(L.inv(x)))(x)
    assert found.dtype == nnc.float32
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-4, atol=1e-4)


# ---- conventions
@pytest.mark.parametrize("f", [lambda x: nnc.sum(L.cholesky(x)), lambda x: nnc.sum(L.eigh(x).eigenvectors),
                               lambda x: nnc.sum(L.eigvalsh(x) ** 3)], ids=["cholesky", "eigh", "eigvalsh"])
def test_gradients_by_symmetric_matrices_are_symmetric(f: Callable[..., nnc.Tensor]) -> None:
    g = nnc.grad(f)(nnc.asarray(S)).numpy()
    np.testing.assert_allclose(g, g.swapaxes(-1, -2), atol=1e-12)


def test_a_matrix_that_is_not_symmetric_counts_as_its_symmetric_part() -> None:
    skew = np.array([[0.0, 1, -2], [-1, 0, 3], [2, -3, 0]])
    for f in (L.cholesky, L.eigvalsh):
        np.testing.assert_allclose(f(S + skew).numpy(), f(S).numpy(), rtol=1e-12)


# ---- where there is no derivative, or only part of one
def test_the_determinant_of_a_singular_matrix_has_a_gradient() -> None:
    x = nnc.asarray(np.array([[1.0, 2, 3], [2, 4, 6], [0, 1, 1]]))
    found = nnc.grad(L.det)(x).numpy()
    (wanted,) = slope(L.det, [x], [d := nnc.asarray(Q)])
    np.testing.assert_allclose((found * d.numpy()).sum(), wanted, atol=1e-8)
    with pytest.raises(LinAlgError, match="inv: the matrix is singular"):
        nnc.hessian(L.det)(x)
    with pytest.raises(LinAlgError, match="inv: the matrix is singular"):
        nnc.grad(L.logdet)(x)


def test_vectors_of_equal_eigenvalues_have_none() -> None:
    """Eigenvalues, and what does not depend on the choice of vectors by them, have."""
    x = nnc.asarray(np.diag([1.0, 1.0, 2.0]))
    assert not np.isfinite(nnc.grad(lambda x: nnc.sum(L.eigh(x).eigenvectors * Q))(x).numpy()).all()
    np.testing.assert_allclose(nnc.grad(lambda x: nnc.sum(L.eigh(x).eigenvalues ** 2))(x).numpy(), 2 * x.numpy())
    np.testing.assert_allclose(nnc.grad(lambda x: nnc.sum(L.eigvalsh(x) ** 2))(x).numpy(), 2 * x.numpy())
    assert not np.isfinite(nnc.grad(lambda x: nnc.sum(L.svd(x).U * Q))(x).numpy()).all()
    np.testing.assert_allclose(nnc.grad(lambda x: nnc.sum(L.svdvals(x) ** 2))(x).numpy(), 2 * x.numpy())


def test_vectors_that_fill_up_a_basis_have_none() -> None:
    x = nnc.asarray(TALL)
    for f, hint in ((lambda x: L.svd(x).U, "full_matrices=False"), (lambda x: L.qr(x, mode="complete").Q, "reduced")):
        with pytest.raises(GradientError, match="fill up a basis") as caught:
            nnc.grad(lambda x, f=f: nnc.sum(f(x)))(x)
        assert hint in caught.value.hint
        with pytest.raises(GradientError, match="fill up a basis"):
            nnc.jvp(f, (x,), (x,))
    wanted = nnc.grad(lambda x: nnc.sum(L.svdvals(x) ** 3))(x).numpy()
    np.testing.assert_allclose(nnc.grad(lambda x: nnc.sum(L.svd(x).S ** 3))(x).numpy(), wanted, rtol=1e-12)
    square = nnc.asarray(A)
    np.testing.assert_allclose(nnc.grad(lambda x: nnc.sum(L.qr(x, mode="complete").Q * A))(square).numpy(),
                               nnc.grad(lambda x: nnc.sum(L.qr(x).Q * A))(square).numpy(), rtol=1e-12)


def test_dependent_columns_have_a_decomposition_and_no_derivative() -> None:
    x = nnc.asarray(np.array([[1.0, 0], [2, 0], [3, 0]]))
    for f in (lambda x: nnc.sum(L.qr(x).Q), lambda x: nnc.sum(L.lu(x[:2]).U)):
        assert np.isfinite(f(x).item())
        with pytest.raises(LinAlgError, match="solve_triangular: the matrix is singular"):
            nnc.grad(f)(x)


def test_the_norm_of_nothing_grows_at_no_rate() -> None:
    zeros = nnc.asarray(np.zeros((2, 3)))
    for f in (L.vector_norm, L.norm, L.matrix_norm, lambda x: L.vector_norm(x, ord=1)):
        assert nnc.grad(f)(zeros).tolist() == [[0, 0, 0], [0, 0, 0]]


def test_what_counts_has_no_gradient() -> None:
    assert not L.matrix_rank(nnc.variable(A))._value.tracked
    gradient = nnc.grad(lambda x: nnc.sum(L.slogdet(x).sign) + nnc.sum(x))(nnc.asarray(A))
    assert gradient.tolist() == np.ones(A.shape).tolist()


def test_minimising_with_a_decomposition_inside(device: str) -> None:
    """The covariance that fits best, by its Cholesky factor: the gradient finds what has a formula."""
    data = nnc.asarray(np.linalg.cholesky(S[0]))
    wanted = S[0]

    def loss(factor: nnc.Tensor) -> nnc.Tensor:
        covariance = factor @ factor.mT
        return 0.5 * L.logdet(covariance) + 0.5 * L.trace(L.solve(covariance, data @ data.mT))

    factor = nnc.asarray(2 * np.eye(3))
    for _ in range(30):
        natural = nnc.grad(loss)(factor)
        factor = factor - 0.5 * (factor @ factor.mT) @ natural
    np.testing.assert_allclose((factor @ factor.mT).numpy(), wanted, rtol=1e-4, atol=1e-4)
