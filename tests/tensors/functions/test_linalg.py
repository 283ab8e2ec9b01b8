"""nnc.linalg against NumPy's and SciPy's, of real and of complex matrices, on all devices and in all modes; errors."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import nnc_core as nnc
from nnc_core.base.errors import DTypeError, FallbackWarning, LinAlgError, ShapeError
from nnc_core.builtin import StrictDevice
from nnc_core.stacks import make_stack
from tests.tensors.linalg_cases import CASES, REAL
from tests.tensors.matrices import flat, same

pytestmark = pytest.mark.filterwarnings("ignore:.* has no kernel")
L, N = nnc.linalg, np.linalg
RNG = np.random.default_rng(0)
A, S, W, B, V = REAL.A, REAL.S, REAL.W, REAL.B, REAL.V
EVERY = [(kind, name) for kind, table in CASES.items() for name in table]


def test_every_name_has_a_case() -> None:
    named = {name.split(",")[0].split(" ")[0] for name in CASES["real"]}
    beside = {"LinAlgError", "lu_factor", "matrix_norm", "norm", "vector_norm"}
    assert named | beside | {n for n in L.__all__ if n.endswith(("Result", "Factors"))} == set(L.__all__) | {"norms"}
    for extension in ("linalg",):
        assert getattr(nnc, extension).__name__ == f"nnc_core.{extension}"


@pytest.mark.parametrize("kind, name", EVERY)
def test_as_numpy_and_scipy(device: str, kind: str, name: str) -> None:
    f, reference, given = CASES[kind][name]
    wanted = reference(*given)
    same(f(*given), wanted, name)
    narrow = [x.astype(np.complex64 if x.dtype.kind == "c" else np.float32) for x in given]
    single = flat(f(*[nnc.asarray(x) for x in narrow]))
    assert {y.dtype for y in single} <= {nnc.float32, nnc.complex64, nnc.int64}
    same(single, wanted, f"{name} in half the bits", 3e-3)


@pytest.mark.parametrize("kind, name", [(kind, name) for kind, name in EVERY if name != "norms"])
def test_deferred_and_compiled(kind: str, name: str) -> None:
    f, _, given = CASES[kind][name]
    with nnc.config.using(deterministic=True):
        wanted = [y.numpy() for y in flat(f(*given))]
        xs = [nnc.asarray(x) for x in given]
        with nnc.deferred():
            late = flat(f(*xs))
        for mode, found in (("deferred", late), ("jit", flat(nnc.jit(f)(*xs)))):
            for y, z in zip(found, wanted, strict=True):
                assert y.numpy().tobytes() == z.tobytes(), f"{name} {mode}"


@pytest.mark.parametrize("m", [0, 1, 3])
@pytest.mark.parametrize("n", [0, 1, 2])
def test_structures_of_few_elements_or_none(m: int, n: int) -> None:
    c, r = V[:m], V[2 : 2 + n]
    with nnc.deferred():
        late = [L.toeplitz(c, r), L.hankel(c, r), L.circulant(c)]
    for name, given, recorded in zip(("toeplitz", "hankel", "circulant"), ((c, r), (c, r), (c,)), late, strict=True):
        wanted = getattr(scipy.linalg, name)(*given)
        for found in (getattr(L, name)(*given), recorded):
            assert found.shape == wanted.shape
            np.testing.assert_array_equal(found.numpy(), wanted)
    np.testing.assert_allclose(L.companion(V[: m + 2]).numpy(), scipy.linalg.companion(V[: m + 2]))


SAMPLE = [("real", name) for name in ("svd, thin", "lu", "lstsq", "expm", "solve_sylvester", "slogdet", "cond")]
SAMPLE += [("complex", name) for name in ("lstsq", "expm", "cholesky_solve", "norms", "lu", "eigvals")]


@pytest.mark.parametrize("kind, name", SAMPLE)
def test_compiled_elsewhere(device: str, kind: str, name: str) -> None:
    f, reference, given = CASES[kind][name]
    same(nnc.jit(f)(*[nnc.asarray(x) for x in given]), reference(*given), name)


def test_integers_become_floats() -> None:
    assert L.inv([[2, 1], [1, 1]]).dtype == nnc.float32
    assert L.matrix_norm(np.array([[3, 4]])).tolist() == 5
    assert L.vector_norm([3, 4]).dtype == nnc.float32
    assert L.matrix_power(np.array([[1, 1], [1, 0]]), 10).tolist() == [[89, 55], [55, 34]]
    np.testing.assert_allclose(L.vector_norm(np.array([3 + 4j, 12j])).numpy(), 13)


EMPTY = {
    "inv": (L.inv, N.inv, (0, 0)), "det": (L.det, N.det, (2, 0, 0)), "cholesky": (L.cholesky, N.cholesky, (0, 3, 3)),
    "eigh": (L.eigh, N.eigh, (0, 0)), "svd": (L.svd, N.svd, (3, 0)), "svdvals": (L.svdvals, N.svdvals, (2, 0, 3)),
    "qr": (L.qr, N.qr, (0, 3)), "pinv": (L.pinv, N.pinv, (2, 0, 3)), "slogdet": (L.slogdet, N.slogdet, (0, 0)),
    "matrix_rank": (L.matrix_rank, lambda x: np.zeros(2, np.int64), (2, 0, 3)),
    "vector_norm": (L.vector_norm, N.vector_norm, (0,)), "matrix_power": (lambda x: L.matrix_power(x, 3),
                                                                          lambda x: N.matrix_power(x, 3), (0, 0)),
    "expm": (L.expm, lambda x: x, (0, 2, 2)), "solve": (lambda x: L.solve(x, x), N.inv, (0, 0)),
}  # fmt: skip


@pytest.mark.parametrize("name", EMPTY)
def test_empty_matrices(device: str, name: str) -> None:
    f, reference, shape = EMPTY[name]
    same(f(np.zeros(shape)), reference(np.zeros(shape)), name)


# ---- matrices that have no answer
def test_singular_matrices() -> None:
    singular = np.array([[1.0, 2], [2, 4]])
    assert L.det(singular).tolist() == 0 and L.slogdet(singular).sign.tolist() == 0
    assert L.logdet(singular).tolist() == -np.inf and np.isnan(L.logdet(-np.eye(3)).tolist())
    assert L.cond(singular, 1).tolist() == np.inf and L.cond(np.zeros((2, 2))).tolist() == np.inf
    assert L.matrix_rank(singular).tolist() == 1
    same(L.pinv(singular), N.pinv(singular), "pinv")
    found = L.lstsq(singular, np.array([1.0, 2.0]))
    same((found.x, found.rank), (np.array([0.2, 0.4]), np.int64(1)), "lstsq")


def test_an_error_says_which_matrix_where_and_what_to_try(device: str) -> None:
    a = nnc.asarray(np.stack([np.eye(2), np.ones((2, 2))]))
    with pytest.raises(LinAlgError, match="inv: matrix 1 of the stack is singular") as caught:
        L.inv(a)
    assert isinstance(caught.value, np.linalg.LinAlgError) and isinstance(caught.value, nnc.Error)
    assert caught.value.device == device and "float64" in str(caught.value.operands)
    assert "test_linalg.py" in str(caught.value) and "pinv" in str(caught.value)


def test_an_error_of_deferred_and_compiled_work_names_the_line_that_asked_for_it(device: str) -> None:
    x = nnc.asarray(-np.eye(2))
    with nnc.deferred():
        y = L.cholesky(x) + 1
    with pytest.raises(LinAlgError, match=r"cholesky: the matrix is not positive definite[\s\S]*test_linalg.py"):
        y.numpy()
    with pytest.raises(LinAlgError, match=r"cholesky: .*the matrix is not positive definite[\s\S]*test_linalg.py"):
        nnc.jit(lambda x: L.cholesky(x) + 1)(x)
    assert nnc.jit(lambda x: L.cholesky(x) + 1)(-x).tolist() == [[2, 1], [1, 2]]


REFUSED = {
    "half floats": (lambda: L.inv(np.eye(2, dtype=np.float16)), TypeError,
                    "of float32, float64 or complex numbers, not float16"),
    "forms": (lambda: L.schur(A, "quasi"), ValueError, "output 'quasi' is neither 'real' nor 'complex'"),
    "vectors": (lambda: L.qr(V), ValueError, r"needs matrices, not float64\[4\]"),
    "vectors of lq": (lambda: L.lq(V), ValueError, "needs matrices"),
    "rectangles": (lambda: L.det(W), ValueError, r"needs square matrices, not float64\[2,5,3\]"),
    "rectangles to a power": (lambda: L.matrix_power(W, 2), ValueError, "needs square matrices"),
    "powers": (lambda: L.matrix_power(A, 0.5), ValueError, "the power 0.5 is no integer"),
    "right-hand sides": (lambda: L.solve(A, W), ValueError, "has 4 rows, the right-hand sides .* have 5"),
    "modes": (lambda: L.qr(W, mode="raw"), ValueError, "mode 'raw' is neither"),
    "norms": (lambda: L.matrix_norm(W, ord=3), ValueError, "3 is no norm of matrices"),
    "norms of vectors": (lambda: L.vector_norm(V, ord="fro"), ValueError, "'fro' is no norm of vectors"),
    "axes": (lambda: L.norm(W, axis=(0, 1, 2)), ValueError, "norms over one axis or over two"),
    "nothing": (lambda: L.cond(np.zeros((0, 0))), np.linalg.LinAlgError, "it is empty"),
    "infinite eigenvalues": (lambda: L.eig(np.full((2, 2), np.inf)), np.linalg.LinAlgError, "no eigenvalues: it holds"),
    "infinities": (lambda: L.svdvals(np.full((2, 2), np.inf)), np.linalg.LinAlgError, "holds NaN or infinities"),
    "sides": (lambda: L.polar(W, "up"), ValueError, "side 'up' is neither 'right' nor 'left'"),
    "structures": (lambda: L.toeplitz(W), ValueError, "is no vector"),
    "no companion": (lambda: L.companion(V[:1]), ValueError, "have no companion"),
    "no blocks": (lambda: L.block_diag(), TypeError, "no matrices"),
    "blocks": (lambda: L.block_diag(A[0], W), ValueError, "is no matrix"),
    "sylvester": (lambda: L.solve_sylvester(A, A, W), ValueError, "should have 4 rows"),
    "riccati": (lambda: L.solve_continuous_are(A, W, A, A), ValueError, "asks for b of shape"),
    "tensors": (lambda: L.tensorinv(W), ValueError, "is not square"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    call, error, message = REFUSED[name]
    with pytest.raises(error, match=message) as caught:
        call()
    assert isinstance(caught.value, nnc.Error) and caught.value.operator
    assert "test_linalg.py" in str(caught.value)


def test_a_device_without_kernels_says_so_once() -> None:
    stack = make_stack(StrictDevice())
    x = nnc.asarray(S, device=stack.device)
    with pytest.warns(FallbackWarning, match=f"svd has no kernel on {stack.device.spec.id}: it runs on the host"):
        L.svd(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        L.svd(x)
        L.svd(x, full_matrices=False)


def test_equations_need_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.linalg", None)
    with pytest.raises(ImportError, match=r"needs the package scipy[\s\S]*pip install nnc-core\[linalg\]") as caught:
        L.solve_sylvester(A, A, S)
    assert isinstance(caught.value, nnc.Error)


# ---- what else knows operators
def test_named_dimensions() -> None:
    def f(x: nnc.Tensor) -> tuple[nnc.Tensor, ...]:
        return L.inv(x), *L.qr(x), L.svdvals(x), *L.lu_factor(x), L.matrix_power(x, 3), L.pinv(x), L.matrix_rank(x)

    with nnc.deferred():
        results = f(x := nnc.asarray(A))
    graph = nnc.export({"x": x}, {f"y{i}": y for i, y in enumerate(results)}, named_dims={"x": ("many", "n", "n")})
    assert str(graph.inputs["x"].spec) == "float64[many,n,n]"
    run = graph.compile("cpu:0")
    for shape in ((3, 2, 2), (1, 5, 5)):
        given = RNG.uniform(-1, 1, shape) + 2 * np.eye(shape[-1])
        for y, z in zip(run(x=given).values(), f(nnc.asarray(given)), strict=True):
            np.testing.assert_allclose(y.numpy(), z.numpy(), atol=1e-12)


def test_graphs_with_several_results_are_saved_and_read(tmp_path: Any, device: str) -> None:
    x = nnc.asarray(W)
    with nnc.deferred():
        u, s, vh = L.svd(x, full_matrices=False)
        y = (u * nnc.expand_dims(s, axis=-2)) @ vh + nnc.matrix_transpose(L.pinv(x, rtol=1e-6))
    nnc.save_graph(nnc.export({"x": x}, {"y": y, "s": s}), path := tmp_path / "svd.nnc")
    found = nnc.load_graph(path).compile(device)(x=x)
    same([found["y"], found["s"]], [W + N.pinv(W).swapaxes(-1, -2), N.svdvals(W)], "read")


def test_a_matrix_for_each_example(device: str) -> None:
    x = nnc.asarray(A)
    found = nnc.vmap(lambda m: (L.expm(m), *L.eigh(m), L.solve(m, B)))(x)
    for y, z in zip(found, (L.expm(x), *L.eigh(x), L.solve(x, B)), strict=True):
        np.testing.assert_allclose(y.numpy(), z.numpy(), rtol=1e-12, atol=1e-12)


def by_series(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """exp of matrices in long doubles: Taylor's series of a small part of them, squared."""
    part = x.astype(np.longdouble) / 2**12
    term = total = np.eye(x.shape[-1], dtype=np.longdouble)
    for k in range(1, 30):
        term = term @ part / k
        total = total + term
    for _ in range(12):
        total = total @ total
    return total


def test_exponentials_of_large_and_small_matrices() -> None:
    for scale in (1e-9, 1e-3, 1.0, 15.0):
        x = A * scale
        for y, tolerance in ((L.expm(x), 1e-12), (L.expm(x.astype(np.float32)), 1e-4)):
            wanted = by_series(x)
            np.testing.assert_allclose(y.numpy(), wanted, atol=tolerance * np.abs(wanted).max(), rtol=0)
    turn = 1e4 * np.array([[0.0, -1], [1, 0]])
    c, s = np.cos(1e4), np.sin(1e4)
    np.testing.assert_allclose(L.expm(turn).numpy(), [[c, -s], [s, c]], atol=1e-10)
    assert np.isnan(L.expm(np.array([[np.nan, 0], [0, 0]])).numpy()).any()
    assert np.isnan(L.expm(np.array([[np.inf, 0], [0, 0]])).numpy()).any()




def test_decompositions_of_constants_are_compiled(device: str) -> None:
    """Several results are no constant that could be folded."""
    fixed = nnc.asarray(np.array([[2.0, 1], [1, 2]]))

    @nnc.jit
    def f(x: nnc.Tensor) -> nnc.Tensor:
        return L.eigh(nnc.asarray(np.array([[2.0, 1], [1, 2]]))).eigenvalues + L.inv(fixed)[0] * x

    np.testing.assert_allclose(f(nnc.asarray(3.0, dtype=nnc.float64)).numpy(), [3, 2], atol=1e-14)


@pytest.mark.parametrize("rtol", [[0.001, 0.7], [0.7], 0.7, np.float32(0.7), [[0.7, 0.001]]], ids=repr)
def test_pseudoinverses_with_a_tolerance_for_each_matrix(device: str, rtol: Any) -> None:
    host = W if np.ndim(rtol) < 2 else np.stack([W, 2 * W + 1])
    wanted = N.pinv(host, rtol=np.asarray(rtol))
    x = nnc.asarray(host, device=device)
    for found in (L.pinv(x, rtol=rtol), L.pinv(x, rtol=nnc.asarray(rtol, device=device)),
                  nnc.jit(lambda x: L.pinv(x, rtol=rtol))(x)):
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-4, atol=1e-5)


def test_their_gradients_are_those_at_constant_rank() -> None:
    x = nnc.asarray(W)
    found = nnc.grad(lambda x: nnc.sum(nnc.sin(L.pinv(x, rtol=[0.001, 0.7]))))(x)
    for i, tolerance in enumerate([0.001, 0.7]):
        wanted = nnc.grad(lambda x, t=tolerance: nnc.sum(nnc.sin(L.pinv(x, rtol=t))))(x)
        np.testing.assert_allclose(np.asarray(found)[i], np.asarray(wanted)[i], rtol=1e-5, atol=1e-6)


def test_tolerances_that_fit_no_matrix() -> None:
    x = nnc.asarray(W)
    for rtol in ([0.1, 0.2, 0.3], [[0.1], [0.2]], []):
        with pytest.raises(ShapeError, match="rtol of shape"):
            L.pinv(x, rtol=rtol)
    with pytest.raises(DTypeError, match="real numbers"):
        L.pinv(x, rtol=1j)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (2, 0, 3), (2, 3, 0), (0, 3, 3)], ids=str)
@pytest.mark.parametrize("order", [1, -1, 2, -2, np.inf, -np.inf, "fro", "nuc"])
def test_norms_of_empty_matrices_are_numpys_or_an_error_where_it_has_none(shape: tuple[int, ...], order: Any) -> None:
    host = np.zeros(shape)
    try:
        wanted = N.matrix_norm(host, ord=order)
    except ValueError:
        with pytest.raises(ShapeError, match="empty"):
            L.matrix_norm(nnc.asarray(host), ord=order)
        return
    np.testing.assert_array_equal(np.asarray(L.matrix_norm(nnc.asarray(host), ord=order)), wanted)


@pytest.mark.parametrize("order", [0, 0.5, 1, 2, 3, np.inf])
def test_norms_of_empty_vectors_are_zero(device: str, order: float) -> None:
    norm = nnc.linalg.vector_norm
    assert norm(nnc.zeros(0), ord=order).item() == 0
    assert norm(nnc.zeros((2, 0)), axis=1, ord=order).tolist() == [0, 0]
    compiled = nnc.jit(nnc.grad(lambda x: nnc.sum(norm(x, axis=1, ord=order))))
    assert compiled(nnc.zeros((2, 0))).shape == (2, 0)
    with pytest.raises(ShapeError, match="no extremum over an empty axis"):
        norm(nnc.zeros(0), ord=-np.inf)
