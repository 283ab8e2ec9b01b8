"""References of linear algebra against SciPy, or against plain loops and definitions in higher precision."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.linalg

from nnc_core.base import dtype as dt
from nnc_core.base.errors import LinAlgError
from nnc_core.operator import linalg_reference as by_numpy
from nnc_core.shape.linalg import LAPACK
from nnc_plugins.conformance.cases import Example
from tests.operator.host import arguments, call, cases

Array = np.ndarray[Any, Any]


def each(example: Example, rng: np.random.Generator, result: Any = None) -> Any:
    """For every place of the stack its operands in double precision, and the parts of the result there."""
    inputs, attributes = arguments(example, rng)
    found = call(example.op, *inputs, *attributes.values())
    parts = found if isinstance(found, tuple) else (found,)
    batch = np.broadcast_shapes(*[x.shape[:-2] for x in inputs])
    wide = [np.broadcast_to(x, (*batch, *x.shape[-2:])).astype(double(x)) for x in inputs]
    for at in np.ndindex(batch):
        yield [x[at] for x in wide], [p[at] for p in parts], attributes


def double(x: Any) -> Any:
    return np.complex128 if np.asarray(x).dtype.kind == "c" else np.float64


def extended(x: Any) -> Any:
    """The same numbers with the most digits that there are."""
    return np.asarray(x).astype(np.clongdouble if np.asarray(x).dtype.kind == "c" else np.longdouble)


def adjoint(x: Array) -> Array:
    return x.T.conj()


def hermitian(x: Array) -> Array:
    return (x + adjoint(x)) / 2


def examples(name: str) -> list[Example]:
    return [e for e in cases(name, dtypes=LAPACK) if "NaN" not in e.case.label]


def near(example: Example, found: Any, wanted: Any) -> None:
    """To as many digits as the dtype has, for well-conditioned matrices."""
    found, wanted = (np.asarray(x).astype(double(x)) for x in (found, wanted))
    assert found.shape == wanted.shape, str(example)
    scale = max(1.0, float(np.abs(wanted).max(initial=0)))
    tolerance = 3e-4 if dt.real_of(example.dtype) == dt.float32 else 1e-11
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance * scale, err_msg=str(example))


# ---- systems and determinants, by elimination in long doubles
def eliminated(a: Array, b: Array) -> tuple[Array, Any]:
    """x of a x = b, and the determinant, row by row."""
    n = len(a)
    rows = extended(np.concatenate([a, b], axis=1))
    determinant = extended(1)
    for k in range(n):
        pivot = max(range(k, n), key=lambda i: abs(rows[i, k]))
        if pivot != k:
            rows[[k, pivot]] = rows[[pivot, k]]
            determinant = -determinant
        determinant = determinant * rows[k, k]
        rows[k] /= rows[k, k]
        for i in range(n):
            if i != k:
                rows[i] -= rows[i, k] * rows[k]
    return rows[:, n:], determinant


def minors(a: Array) -> Array:
    """Determinants without a row and a column, with signs."""
    found = extended(np.empty_like(a))
    for i, j in np.ndindex(*a.shape):
        rest = np.delete(np.delete(a, i, 0), j, 1)
        found[i, j] = (-1) ** (i + j) * eliminated(rest, np.zeros((len(rest), 0)))[1]
    return found


def nothing(a: Array) -> Array:
    return np.zeros((len(a), 0))


SYSTEMS = {
    "inv": lambda a: [eliminated(a, np.eye(len(a)))[0]],
    "solve": lambda a, b: [eliminated(a, b)[0]],
    "det": lambda a: [eliminated(a, nothing(a))[1]],
    "slogdet": lambda a: [np.sign(d := eliminated(a, nothing(a))[1]), np.log(abs(d))],
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_systems_by_elimination(name: str, rng: np.random.Generator) -> None:
    for example in examples(name):
        for operands, found, _ in each(example, rng):
            if name == "det" and len(operands[0]) > 50:
                continue  # beyond float32
            for part, wanted in zip(found, SYSTEMS[name](*operands), strict=True):
                near(example, part, wanted)


def test_cofactors_by_minors(rng: np.random.Generator) -> None:
    for example in examples("cofactor"):
        for (a,), (found,), _ in each(example, rng):
            if len(a) <= 4:
                near(example, found, minors(a))


@pytest.mark.parametrize("a", [np.zeros((1, 1)), np.zeros((3, 3)), np.ones((3, 3)), np.diag([1.0, 0.0, 2.0]),
                               np.arange(9.0).reshape(3, 3)], ids=str)
def test_cofactors_of_singular_matrices(a: Array) -> None:
    wanted = [[(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(a, i, 0), j, 1)) for j in range(len(a))]
              for i in range(len(a))]
    np.testing.assert_allclose(by_numpy.cofactor(a), wanted, atol=1e-12)


def test_triangles_by_substitution(rng: np.random.Generator) -> None:
    for example in examples("solve_triangular"):
        for (a, b), (found,), how in each(example, rng):
            triangle = extended((np.tril if how["lower"] else np.triu)(a))
            if how["unit_diagonal"]:
                np.fill_diagonal(triangle, 1)
            x = extended(np.zeros_like(b))
            for i in range(len(a)) if how["lower"] else reversed(range(len(a))):
                x[i] = (b[i] - triangle[i] @ x) / triangle[i, i]
            near(example, found, x)


@pytest.mark.parametrize("lower", [False, True])
def test_long_triangles_are_substituted_block_by_block(rng: np.random.Generator, lower: bool) -> None:
    a, b = rng.normal(size=(200, 200)) + 20 * np.eye(200), rng.normal(size=(200, 2))
    wanted = scipy.linalg.solve_triangular(a, b, lower=lower)
    np.testing.assert_allclose(by_numpy.solve_triangular(a, b, lower, False), wanted, rtol=1e-10, atol=1e-14)


# ---- decompositions
def test_cholesky_by_definition(rng: np.random.Generator) -> None:
    for example in examples("cholesky"):
        for (a,), (found,), _ in each(example, rng):
            s, wanted = hermitian(a), extended(np.zeros_like(a))
            for i, j in itertools.product(range(len(a)), repeat=2):
                rest = s[i, j] - wanted[i, :j] @ wanted[j, :j].conj()
                wanted[i, j] = np.sqrt(rest) if i == j else rest / wanted[j, j] if i > j else 0
            near(example, found, wanted)


def orthonormal(example: Example, columns: Array) -> None:
    columns = columns.astype(double(columns))
    near(example, adjoint(columns) @ columns, np.eye(columns.shape[1], dtype=columns.dtype))


def test_qr_by_its_properties(rng: np.random.Generator) -> None:
    for example in examples("qr"):
        for (a,), (q, r), how in each(example, rng):
            orthonormal(example, q)
            near(example, q.astype(double(q)) @ r, a)
            assert (np.tril(r, -1) == 0).all() and (np.diagonal(r).imag == 0).all()
            assert q.shape[1] == (len(a) if how["mode"] == "complete" else min(a.shape))


def test_lu_against_scipy(rng: np.random.Generator) -> None:
    for example in examples("lu"):
        for (a,), (factors, order), _ in each(example, rng):
            k = min(a.shape)
            lower, upper = np.tril(factors[:, :k], -1) + np.eye(len(a), k), np.triu(factors[:k])
            near(example, lower.astype(double(lower)) @ upper, a[order])
            if a.size:
                p, wanted_lower, wanted_upper = scipy.linalg.lu(a)
                assert (np.eye(len(a))[order] == p.T).all()
                near(example, lower, wanted_lower)
                near(example, upper, wanted_upper)


def test_large_lu_is_made_of_blocks(rng: np.random.Generator) -> None:
    for shape in ((2, 200, 130), (150, 200), (129, 129)):
        a = rng.normal(size=shape)
        factors, order = by_numpy.lu(a)
        k = min(shape[-2:])
        product = (np.tril(factors[..., :k], -1) + np.eye(shape[-2], k)) @ np.triu(factors[..., :k, :])
        np.testing.assert_allclose(product, np.take_along_axis(a, order[..., None], -2), atol=1e-12)
        assert np.abs(np.tril(factors, -1)).max() <= 1


def test_eigenvalues_and_vectors_against_scipy(rng: np.random.Generator) -> None:
    for example in examples("eigh"):
        for (a,), (w, v), _ in each(example, rng):
            s = hermitian(a)
            near(example, w, scipy.linalg.eigh(s, eigvals_only=True) if len(a) else np.zeros(0))
            orthonormal(example, v)
            near(example, s @ v, v.astype(double(v)) * w)
    for example in examples("eigvalsh"):
        for (a,), (w,), _ in each(example, rng):
            near(example, w, scipy.linalg.eigh(hermitian(a), eigvals_only=True) if len(a) else np.zeros(0))


def test_singular_values_and_vectors_against_scipy(rng: np.random.Generator) -> None:
    for example in examples("svd"):
        for (a,), (u, s, vh), how in each(example, rng):
            k = min(a.shape)
            near(example, s, scipy.linalg.svdvals(a) if a.size else np.zeros(k))
            orthonormal(example, u)
            orthonormal(example, adjoint(vh))
            near(example, (u[:, :k].astype(double(u)) * s) @ vh[:k], a)
            assert (u.shape[1], len(vh)) == (a.shape if how["full_matrices"] else (k, k))
    for example in examples("svdvals"):
        for (a,), (s,), _ in each(example, rng):
            near(example, s, scipy.linalg.svdvals(a) if a.size else np.zeros(min(a.shape)))


@pytest.mark.parametrize("name", ["eigh", "svd", "eig"])
def test_the_largest_component_of_complex_vectors_is_positive(name: str, rng: np.random.Generator) -> None:
    for example in examples(name):
        for _, found, _ in each(example, rng):
            vectors = found[0] if name == "svd" else found[1]
            if vectors.size and vectors.dtype.kind == "c":
                chosen = vectors[:, : len(found[1])] if name == "svd" else vectors
                largest = np.argmax(np.abs(chosen), axis=0)
                chosen = np.take_along_axis(chosen, largest[None], 0)
                assert (chosen.imag == 0).all() and (chosen.real > 0).all(), str(example)


def test_eigenvalues_and_vectors_of_general_matrices(rng: np.random.Generator) -> None:
    """a V = V diag(w), with as many independent vectors as rows."""
    for example in examples("eig"):
        for (a,), (w, v), _ in each(example, rng):
            wide = v.astype(np.complex128)
            near(example, a @ wide, wide * w)
            near(example, np.linalg.norm(wide, axis=0), np.ones(len(a)))
            assert not len(a) or np.linalg.cond(wide) < 1e3


def test_eigenvalues_by_the_traces_of_powers(rng: np.random.Generator) -> None:
    """The sums of powers of n numbers, up to the n-th, tell which numbers they are."""
    for example in examples("eigvals") + examples("eig"):
        for (a,), found, _ in each(example, rng):
            if len(a) <= 5:
                power = np.eye(len(a))
                for k in range(1, len(a) + 1):
                    power = power @ a
                    near(example, (found[0].astype(np.complex128) ** k).sum(), np.trace(power) + 0j)


def test_triangular_forms_by_their_properties(rng: np.random.Generator) -> None:
    for example in examples("schur") + examples("hessenberg"):
        for (a,), (form, z), how in each(example, rng):
            orthonormal(example, z)
            wide = z.astype(double(z))
            near(example, wide @ form @ adjoint(wide), a.astype(z.dtype))
            assert (np.tril(form, -2) == 0).all()
            if form.dtype.kind == "c" and how:
                assert (np.tril(form, -1) == 0).all()
            elif how:  # blocks of two by two do not touch
                below = np.diagonal(form, -1) != 0
                assert not (below[1:] & below[:-1]).any()


def deficient(rng: np.random.Generator) -> Array:
    """4 x 3, of rank 2, with a singular value of a thousandth."""
    u, v = (np.linalg.qr(rng.normal(size=(n, n)))[0] for n in (4, 3))
    return np.asarray((u[:, :3] * [2.0, 1e-3, 0.0]) @ v)


def test_pseudoinverses_against_scipy(rng: np.random.Generator) -> None:
    for example in examples("pinv"):
        for (a,), (found,), how in each(example, rng):
            near(example, found, scipy.linalg.pinv(a, rtol=how["rtol"]) if a.size else adjoint(a))
    example, a = examples("pinv")[0], deficient(rng)
    for rtol in (None, 1e-2):
        wanted = scipy.linalg.pinv(a, rtol=rtol)
        np.testing.assert_allclose(call(example.op, a, rtol), wanted, atol=1e-9 * np.abs(wanted).max())


def test_least_squares_against_scipy(rng: np.random.Generator) -> None:
    for example in examples("lstsq"):
        for (a, b), (found,), how in each(example, rng):
            wanted = scipy.linalg.lstsq(a, b, cond=how["rtol"])[0] if a.size and b.size else np.zeros_like(found)
            near(example, found, wanted)
    example, a, b = examples("lstsq")[0], deficient(rng), rng.normal(size=(4, 2))
    for rtol in (None, 1e-2):
        wanted = scipy.linalg.lstsq(a, b, cond=rtol)[0]
        np.testing.assert_allclose(call(example.op, a, b, rtol), wanted, atol=1e-9 * np.abs(wanted).max())


# ---- equations
def by_kronecker(rows: Array, right: Array) -> Array:
    """X of the linear equation whose matrix, for X read row by row, is `rows`."""
    return np.linalg.solve(rows, right.reshape(-1, 1)).reshape(right.shape)


KRONECKER = {
    "sylvester": lambda a, b, q: np.kron(a, np.eye(len(b))) + np.kron(np.eye(len(a)), b.T),
    "stein": lambda a, b, q: np.eye(q.size) - np.kron(a, b.T),
}


@pytest.mark.parametrize("name", KRONECKER)
def test_linear_equations_as_systems(name: str, rng: np.random.Generator) -> None:
    for example in examples(name):
        for (a, b, q), (found,), _ in each(example, rng):
            if q.size <= 100:
                near(example, found, by_kronecker(KRONECKER[name](a, b, q), q))
            else:
                x = found.astype(double(found))
                near(example, a @ x + x @ b if name == "sylvester" else x - a @ x @ b, q)


@pytest.mark.parametrize("name", KRONECKER)
def test_equations_of_matrices_with_few_eigenvectors(name: str) -> None:
    """Jordan blocks, whose eigenvectors do not span the space."""
    a, b = np.eye(4, k=1) + 0.5 * np.eye(4), np.eye(3, k=1) + 0.25 * np.eye(3)
    q = np.arange(12.0).reshape(4, 3)
    (example, *_) = examples(name)
    np.testing.assert_allclose(call(example.op, a, b, q), by_kronecker(KRONECKER[name](a, b, q), q), rtol=1e-10)


def test_riccati_equations_by_their_properties(rng: np.random.Generator) -> None:
    """The residual is zero, X symmetric and the closed loop stable, which only one solution is."""
    for example in examples("care") + examples("dare"):
        for (a, b, q, r), (found,), _ in each(example, rng):
            x, q, r = found.astype(double(found)), hermitian(q), hermitian(r)
            if example.op.name == "care":
                gain = np.linalg.solve(r, adjoint(b) @ x)
                residual = adjoint(a) @ x + x @ a - x @ b @ gain + q
                stable = (np.linalg.eigvals(a - b @ gain).real < 0).all()
            else:
                gain = np.linalg.solve(r + adjoint(b) @ x @ b, adjoint(b) @ x @ a)
                residual = adjoint(a) @ x @ a - x - adjoint(a) @ x @ b @ gain + q
                stable = (np.abs(np.linalg.eigvals(a - b @ gain)) < 1).all()
            assert stable
            near(example, x, adjoint(x))
            near(example, residual / max(1.0, np.abs(x).max(initial=0)) ** 2, np.zeros_like(q))


def test_the_example_of_the_double_integrator() -> None:
    """Its Riccati equation in continuous time is solved on paper."""
    example = examples("care")[0]
    a, b, one = np.array([[0.0, 1], [0, 0]]), np.array([[0.0], [1]]), np.eye(2)
    np.testing.assert_allclose(call(example.op, a, b, one, np.eye(1)), [[3**0.5, 1], [1, 3**0.5]], rtol=1e-12)


# ---- what has no answer
def stacked(bad: Array) -> Array:
    return np.stack([np.eye(len(bad)), bad])


SINGULAR = np.array([[1.0, 2], [2, 4]])
REFUSED = [
    ("inv", (stacked(SINGULAR),), "matrix 1 of the stack is singular"),
    ("inv", (SINGULAR,), "the matrix is singular"),
    ("solve", (stacked(SINGULAR), np.ones((2, 1))), "matrix 1 of the stack is singular"),
    ("solve_triangular", (np.array([[0.0, 1], [1, 1]]), np.ones((2, 1)), False, False), "has a zero on its diagonal"),
    ("cholesky", (np.stack([stacked(np.eye(2)), stacked(-np.eye(2))]),), "matrix 1, 1 of the stack is not positive"),
    ("svdvals", (stacked(np.full((2, 2), np.nan)),), "matrix 1 of the stack has no singular values"),
    ("svd", (np.full((2, 2), np.inf), False), "has no singular values"),
    ("svd", (np.full((2, 2), np.inf + 0j), False), "has no singular values"),
    ("svdvals", (stacked(np.diag([1j, np.inf])),), "matrix 1 of the stack has no singular values"),
    ("eigh", (stacked(np.diag([np.inf, 1.0])),), "matrix 1 of the stack has no eigenvalues"),
    ("eigvalsh", (np.diag([np.nan, 1.0 + 0j]),), "the matrix has no eigenvalues: it holds NaN"),
    ("eig", (stacked(np.diag([np.inf, 1.0])),), "matrix 1 of the stack has no eigenvalues"),
    ("eigvals", (np.full((2, 2), np.nan + 0j),), "the matrix has no eigenvalues: it holds NaN"),
    ("schur", (np.full((2, 2), np.inf), "real"), "the matrix has no Schur form"),
    ("hessenberg", (stacked(np.full((2, 2), np.nan)),), "matrix 1 of the stack has no Hessenberg form"),
    ("cholesky", (stacked(np.diag([np.inf, 1.0])),), "matrix 1 of the stack is not positive definite"),
    ("cholesky", (np.diag([np.nan, 1.0 + 0j]),), "the matrix is not positive definite"),
    ("sylvester", (np.eye(2), -np.eye(2), np.ones((2, 2))), "no unique solution"),
    ("sylvester", (np.eye(2), np.eye(2), np.full((2, 2), np.nan)), "NaN or infinities"),
    ("stein", (2 * np.eye(2), np.eye(2) / 2, np.ones((2, 2))), "no unique solution"),
    ("care", (np.eye(2), np.zeros((2, 1)), np.eye(2), np.eye(1)), "no stabilising solution"),
    ("care", (np.eye(2), np.eye(2), np.eye(2), np.zeros((2, 2))), "no stabilising solution"),
    ("dare", (2 * np.eye(2), np.zeros((2, 1)), np.eye(2), np.eye(1)), "no stabilising solution"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "given", "message"), REFUSED,
                         ids=[f"{r[0]} {r[2][:20]} {i}" for i, r in enumerate(REFUSED)])
def test_what_has_no_answer_is_an_error(name: str, given: tuple[Any, ...], message: str) -> None:
    with pytest.raises(LinAlgError, match=message) as caught:
        call(examples(name)[0].op, *given)
    assert isinstance(caught.value, np.linalg.LinAlgError)


def test_not_a_number_goes_through_systems(rng: np.random.Generator) -> None:
    """As in NumPy: one NaN in a matrix spoils its inverse and its determinant, no other matrix'."""
    a = rng.normal(size=(2, 3, 3))
    a[0, 1, 2] = np.nan
    for name in ("inv", "det", "cofactor"):
        found = call(examples(name)[0].op, a)
        assert np.isnan(found[0]).any() and np.isfinite(found[1]).all(), name
