"""Linear algebra by cuSOLVER and cuBLAS, stand-ins for which hold every call to NVIDIA's declarations and compute by
LAPACK."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.command import Command
from nnc_core.base.dtype import DType, complex64, complex128, float32, float64, is_complex, real_of
from nnc_core.base.errors import DeviceFailureError, LinAlgError
from nnc_core.base.layout import Layout
from nnc_core.operator import OPERATORS
from nnc_core.operator.phases import settled
from nnc_core.stacks import make_stack
from nnc_core.type import TensorSpec, TupleSpec
from nnc_cuda.device import CudaDevice
from nnc_cuda.matrices.backend import CusolverMatrices
from nnc_cuda.matrices.cusolver import Cusolver
from nnc_cuda.vendor import VendorLibraries
from nnc_plugins.conformance.agreement import with_signs_of
from tests.cuda.host_compiler import HostCompiler, compiler
from tests.cuda.host_cublas import FakeCublas
from tests.cuda.host_cusolver import FakeCusolver
from tests.cuda.host_driver import HostDriver
from tests.cuda.host_plugin import ID
from tests.opencl.running import get, put
from tests.opencl.test_fourier import packed, turned

Values = np.ndarray[Any, Any]
DTYPES = (float32, complex128)


@pytest.fixture(scope="module")
def shared() -> tuple[HostDriver, FakeCusolver, FakeCublas]:
    driver = HostDriver()
    return driver, FakeCusolver(driver), FakeCublas(driver)


@pytest.fixture(scope="module")
def gpu(shared: tuple[HostDriver, FakeCusolver, FakeCublas]) -> CudaDevice:
    if compiler() is None:
        pytest.skip("there is no C compiler")
    driver, solver, blas = shared
    return CudaDevice(driver, HostCompiler(), ID, VendorLibraries(lapack=lambda driver: Cusolver(driver, solver, blas)))


@pytest.fixture
def solver(shared: tuple[HostDriver, FakeCusolver, FakeCublas]) -> FakeCusolver:
    shared[1].calls.clear()
    return shared[1]


@pytest.fixture
def blas(shared: tuple[HostDriver, FakeCusolver, FakeCublas]) -> FakeCublas:
    shared[2].calls.clear()
    return shared[2]


def drawn(shape: tuple[int, ...], dtype: DType) -> Values:
    """Well conditioned, of whatever shape."""
    rng = np.random.default_rng(sum(shape))
    x = rng.standard_normal(shape)
    x = x + 1j * rng.standard_normal(shape) if is_complex(dtype) else x
    return np.asarray(x + 3 * shape[-1] ** 0.5 * np.eye(*shape[-2:])).astype(dtype)


def backend_of(gpu: CudaDevice, name: str) -> CusolverMatrices:
    """That of the device, for matrices of any size."""
    return CusolverMatrices(name, gpu, gpu.libraries.lapack, worth=1)


def command_of(name: str, attributes: Sequence[Any], layouts: Sequence[Layout]) -> Command:
    spec = OPERATORS[name].infer(*[TensorSpec(x.shape, x.dtype) for x in layouts], *attributes)
    parts = spec.parts if isinstance(spec, TupleSpec) else (spec,)
    return Command(name, tuple(attributes), tuple(layouts), tuple([part.layout() for part in parts]))


def run(gpu: CudaDevice, name: str, arrays: Sequence[Values], *attributes: Any, place: Any = packed) -> list[Values]:
    """The results of the library's code."""
    backend, placed = backend_of(gpu, name), [place(x) for x in arrays]
    command = command_of(name, attributes, [layout for _, layout in placed])
    assert backend.refuse(command) is None, backend.refuse(command)
    outputs = [np.full(x.shape, 7, x.dtype) for x in command.outputs]
    buffers = [put(gpu, x) for x in (*[source for source, _ in placed], *outputs)]
    backend.prepare(command).bind([*buffers, gpu.allocate(backend.workspace(command))])()
    return [get(gpu, buffer, out) for buffer, out in zip(buffers[len(arrays) :], outputs, strict=True)]


def check(gpu: CudaDevice, name: str, arrays: Sequence[Values], *attributes: Any) -> None:
    """What LAPACK finds on the host, of arrays that are packed and of such that lie across behind a gap."""
    op = OPERATORS[name]
    wanted = op.reference(*arrays, *attributes)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    for place in (packed, turned):
        found = run(gpu, name, arrays, *attributes, place=place)
        for x, y in zip(found, with_signs_of(op, found, wanted), strict=True):
            bound = 400 * float(np.finfo(real_of(arrays[0].dtype)).eps) * float(np.abs(y).max())
            np.testing.assert_allclose(x, y, rtol=0, atol=bound)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(5, 5), (2, 3, 4, 4), (1, 1)], ids=str)
def test_square_matrices(gpu: CudaDevice, shape: tuple[int, ...], dtype: DType) -> None:
    a = drawn(shape, dtype)
    check(gpu, "cholesky", [a])
    check(gpu, "inv", [a])
    check(gpu, "eigvalsh", [a])
    check(gpu, "eigh", [a])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(5, 3), (2, 3, 6), (4, 4)], ids=str)
def test_matrices_of_any_shape(gpu: CudaDevice, shape: tuple[int, ...], dtype: DType) -> None:
    a = drawn(shape, dtype)
    check(gpu, "qr", [a], "reduced")
    check(gpu, "lu", [a[..., ::-1, :].copy()])  # rows are exchanged
    check(gpu, "svd", [a], False)
    check(gpu, "svdvals", [a])


@pytest.mark.parametrize("dtype", [float32, float64, complex64, complex128], ids=str)
@pytest.mark.parametrize("shape", [(5, 5), (2, 3, 4, 4), (1, 1), (2, 7, 7)], ids=str)
def test_determinants(gpu: CudaDevice, solver: FakeCusolver, blas: FakeCublas, shape: tuple[int, ...],
                      dtype: DType) -> None:
    a = drawn(shape, dtype)
    for rows in (a, a[..., ::-1, :].copy(), -a):  # exchanges of rows, and negative pivots
        check(gpu, "det", [rows])
        check(gpu, "slogdet", [rows])
    assert set(solver.calls + blas.calls) == {"getrf" if len(shape) == 2 else "getrfBatched"}


def test_singular_matrices_have_determinants(gpu: CudaDevice) -> None:
    singular = np.ones((3, 3), np.float32)
    assert run(gpu, "det", [np.stack([np.eye(3, dtype=np.float32), singular])])[0].tolist() == [1, 0]
    sign, log = run(gpu, "slogdet", [singular])
    assert sign == 0 and log == -np.inf
    many = np.stack([np.eye(3), singular]).astype(np.complex64)
    assert run(gpu, "det", [many])[0].tolist() == [1, 0]
    sign, log = run(gpu, "slogdet", [many])
    assert sign.tolist() == [1, 0] and log.tolist() == [0, -np.inf]


def test_pivots_whose_product_leaves_the_range(gpu: CudaDevice) -> None:
    a = np.diag(np.array([1e-200, 1e-200, 1e-300, 1e200, 1e200j, 1e300]))
    np.testing.assert_allclose(run(gpu, "det", [a])[0], 1j, rtol=1e-10)
    np.testing.assert_allclose(run(gpu, "det", [a.T[::-1].copy()])[0], np.linalg.det(a.T[::-1]), rtol=1e-10)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("a", "b"), [((4, 4), (4, 3)), ((2, 3, 3), (3, 1)), ((2, 2), (3, 1, 2, 2))], ids=str)
def test_right_hand_sides(gpu: CudaDevice, a: tuple[int, ...], b: tuple[int, ...], dtype: DType) -> None:
    arrays = [drawn(a, dtype), drawn(b, dtype)]
    check(gpu, "solve", arrays)
    for lower in (False, True):
        check(gpu, "solve_triangular", arrays, lower, False)
    spoilt = arrays[0].copy()
    spoilt[..., ~np.tri(a[-1], k=-1, dtype=bool)] = np.nan  # what is not read may be anything
    check(gpu, "solve_triangular", [spoilt, arrays[1]], True, True)


@pytest.mark.parametrize("dtype", [float32, float64, complex64, complex128], ids=str)
def test_each_dtype_has_its_own_routines(gpu: CudaDevice, solver: FakeCusolver, dtype: DType) -> None:
    a = drawn((3, 3), dtype)
    check(gpu, "solve", [a, a])
    check(gpu, "qr", [a], "complete")
    check(gpu, "eigh", [a])
    assert solver.calls == 2 * ["getrf", "getrs"] + 2 * ["geqrf", "orgqr"] + 2 * ["syevd"]


def test_what_goes_wrong_is_said_by_the_reference(gpu: CudaDevice, solver: FakeCusolver) -> None:
    """Which matrix it was; NaN goes through elimination as on the host."""
    good, singular = np.eye(3, dtype=np.float32), np.ones((3, 3), np.float32)
    for name, arrays, attributes, text in (
            ("solve", [np.stack([good, singular]), good], (), "matrix 1 of the stack is singular"),
            ("inv", [singular], (), "the matrix is singular"),
            ("solve_triangular", [np.triu(singular, 1), good], (False, False), "zero on its diagonal"),
            ("cholesky", [np.stack([good, -good])], (), "matrix 1 of the stack is not positive definite"),
            ("eigh", [np.full((3, 3), np.inf, np.float32)], (), "holds NaN or infinities")):
        with pytest.raises(LinAlgError, match=text):
            run(gpu, name, arrays, *attributes)
    spoilt = good.copy()
    spoilt[0, 1] = np.nan
    [found], [_, order] = run(gpu, "solve", [spoilt, good]), run(gpu, "lu", [singular])
    np.testing.assert_array_equal(found, OPERATORS["solve"].reference(spoilt, good))
    np.testing.assert_array_equal(order, [0, 1, 2])


def test_what_the_library_refuses_is_an_error_of_the_device(gpu: CudaDevice, solver: FakeCusolver,
                                                            monkeypatch: pytest.MonkeyPatch) -> None:
    a = drawn((3, 3), float32)
    solver.wrong_argument = 4
    with pytest.raises(DeviceFailureError, match="cholesky: NVIDIA's library refuses argument 4 of a routine"):
        run(gpu, "cholesky", [a])
    solver.wrong_argument = 0
    monkeypatch.setattr(FakeCusolver, "_potrf", lambda *arguments: None)
    with pytest.raises(DeviceFailureError, match="cusolverDnSpotrf fails with status 3"):
        run(gpu, "cholesky", [a])
    monkeypatch.setattr(FakeCusolver, "_size", lambda *arguments: 3)
    refused = backend_of(gpu, "cholesky").refuse(command_of("cholesky", (), [Layout.packed((9, 9), float32)]))
    assert "cusolverDnSpotrf_bufferSize fails with status 3" in (refused or "")


def test_what_is_left_to_the_host(gpu: CudaDevice) -> None:
    for name, attributes, shape, reason in (
            ("inv", (), (8, 8), "too small"), ("svd", (True,), (40, 50), "beyond the rank"),
            ("qr", ("complete",), (50, 40), "beyond the rank"), ("svdvals", (), (300, 40, 40), "one matrix at a time"),
            ("inv", (), (300, 200, 200), "one matrix at a time"), ("lu", (), (300, 40, 41), "one matrix at a time"),
            ("inv", (), ((1 << 16) + 1, 4, 4), "too many"), ("inv", (), (63, 4, 4), "too small"),
            ("eig", (), (200, 200), "too small"),
            ("inv", (), (0, 40, 40), "empty"), ("svdvals", (), (40, 1 << 16), "32 bits")):
        command = command_of(name, attributes, [Layout.packed(shape, float32)])
        assert reason in (gpu.backends(name)[0].refuse(command) or ""), name
    without = CudaDevice(HostDriver(), HostCompiler(), ID)
    command = command_of("inv", (), [Layout.packed((40, 40), float32)])
    assert gpu.backends("inv")[0].refuse(command) is None
    assert without.backends("inv")[0].refuse(command) == "there is no library"


# ---- stacks of small matrices
@pytest.mark.parametrize("dtype", [float32, float64, complex64, complex128], ids=str)
def test_one_call_takes_all_matrices(gpu: CudaDevice, solver: FakeCusolver, blas: FakeCublas, dtype: DType) -> None:
    a = drawn((30, 6, 6), dtype)[:, ::-1].copy()  # rows are exchanged
    definite = a @ a.swapaxes(-1, -2).conj()
    b = drawn((30, 6, 2), dtype)
    for name, arrays, attributes, called in (
            ("cholesky", [definite], (), ["potrfBatched"]), ("eigvalsh", [a], (), ["syevjBatched"]),
            ("eigh", [a], (), ["syevjBatched"]), ("svdvals", [a], (), ["gesvdjBatched"]),
            ("svd", [a], (False,), ["gesvdjBatched"]), ("svd", [a[:, :4]], (False,), ["gesvdjBatched"]),
            ("lu", [a], (), ["getrfBatched"]), ("det", [a], (), ["getrfBatched"]),
            ("inv", [a], (), ["getrfBatched", "getrsBatched"]), ("solve", [a, b], (), ["getrfBatched", "getrsBatched"]),
            ("solve_triangular", [a + 9, b], (True, False), ["trsmBatched"]),
            ("qr", [a], ("reduced",), ["geqrfBatched"]),
            ("qr", [a[:, :, :4]], ("reduced",), ["geqrfBatched"]), ("qr", [a[:, :4]], ("reduced",), ["geqrfBatched"])):
        solver.calls.clear()
        blas.calls.clear()
        check(gpu, name, arrays, *attributes)
        assert solver.calls + blas.calls == 2 * called, name


@pytest.mark.parametrize(("a", "b"), [((4, 4), (7, 4, 2)), ((7, 4, 4), (4, 2)), ((3, 1, 4, 4), (2, 4, 1))], ids=str)
def test_exchanges_of_rows_are_those_of_each_right_hand_side(gpu: CudaDevice, blas: FakeCublas, a: tuple[int, ...],
                                                             b: tuple[int, ...]) -> None:
    """The routine reads those of one matrix behind those of the one before."""
    factors = drawn(a, float64)
    factors[..., :2, :] = factors[..., 1::-1, :].copy() * np.arange(1, 3)[:, None]
    factors = factors if factors.ndim == 2 else np.stack([np.roll(x, n, -2) for n, x in enumerate(
        factors.reshape(-1, 4, 4))]).reshape(a)
    check(gpu, "solve", [factors, drawn(b, float64)])
    assert "getrsBatched" in blas.calls


def test_stacks_that_go_to_the_library(gpu: CudaDevice) -> None:
    for name, attributes, shape in (("inv", (), (64, 4, 4)), ("cholesky", (), (300, 40, 40)),
                                    ("svd", (False,), (9, 32, 32)), ("qr", ("reduced",), (100, 8, 4)),
                                    ("eigh", (), (1 << 16, 2, 2))):
        command = command_of(name, attributes, [Layout.packed(shape, float32)])
        assert gpu.backends(name)[0].refuse(command) is None, name


def test_one_matrix_of_a_stack_without_a_result(gpu: CudaDevice, solver: FakeCusolver, blas: FakeCublas,
                                                monkeypatch: pytest.MonkeyPatch) -> None:
    many = np.stack([np.eye(3, dtype=np.float32)] * 5)
    many[3] = 1
    with pytest.raises(LinAlgError, match="matrix 3 of the stack is singular"):
        run(gpu, "inv", [many])
    with pytest.raises(LinAlgError, match="matrix 3 of the stack is not positive definite"):
        run(gpu, "cholesky", [many])
    monkeypatch.setattr(blas, "wrong_argument", 5)
    for name, text in (("inv", "getrsBatched, whose argument 5 is wrong"), ("qr", "geqrfBatched, whose argument 5")):
        with pytest.raises(DeviceFailureError, match=text):
            run(gpu, name, [many + 9 * np.eye(3, dtype=np.float32)], *(("reduced",) if name == "qr" else ()))
    monkeypatch.setattr(solver, "wrong_argument", 3)
    with pytest.raises(DeviceFailureError, match="eigh: NVIDIA's library refuses argument 3 of a routine"):
        run(gpu, "eigh", [many])


def test_launches_keep_the_addresses_of_their_matrices(gpu: CudaDevice) -> None:
    """Bound once and launched again, with other things in memory meanwhile."""
    backend, a = backend_of(gpu, "cholesky"), drawn((30, 4, 4), float64)
    a = a @ a.swapaxes(-1, -2)
    command = command_of("cholesky", (), [Layout.packed(a.shape, float64)])
    buffers = [put(gpu, x) for x in (a, np.zeros_like(a))]
    launch = backend.prepare(command).bind([*buffers, gpu.allocate(backend.workspace(command))])
    for factor in (1.0, 4.0):
        gpu.upload(a * factor, buffers[0]).wait()
        spoilt = [put(gpu, np.full(30, -1, np.int64)) for _ in range(4)]
        launch()
        np.testing.assert_allclose(get(gpu, buffers[1], a), np.linalg.cholesky(a * factor), rtol=1e-12, atol=1e-12)
        del spoilt


# ---- general eigenvalues
@pytest.mark.parametrize("dtype", [float32, float64, complex64, complex128], ids=str)
@pytest.mark.parametrize("shape", [(5, 5), (2, 4, 4), (1, 1), (3, 2, 2)], ids=str)
def test_general_eigenvalues(gpu: CudaDevice, solver: FakeCusolver, shape: tuple[int, ...], dtype: DType) -> None:
    """Of real matrices some are pairs, whose vectors are two columns."""
    a = drawn(shape, dtype)
    a[..., : shape[-1] // 2, :] = -a[..., : shape[-1] // 2, ::-1]
    size = float(np.abs(a).max()) * 400 * float(np.finfo(real_of(dtype)).eps)
    for place in (packed, turned):
        [alone], [values, vectors] = run(gpu, "eigvals", [a], place=place), run(gpu, "eig", [a], place=place)
        np.testing.assert_allclose(a @ vectors, vectors * values[..., None, :], rtol=0, atol=size)
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=-2), 1, rtol=0, atol=size)
        np.testing.assert_allclose(values.sum(-1), np.trace(a, axis1=-2, axis2=-1), rtol=0, atol=size * shape[-1])
        np.testing.assert_allclose(vectors, settled(vectors), rtol=0, atol=size)
        distance = np.abs(alone[..., :, None] - np.linalg.eigvals(a)[..., None, :])
        assert (distance.min(-1) < size).all() and (distance.min(-2) < size).all()
    assert set(solver.calls) == {"geev"}


def test_pairs_of_vectors_are_those_of_their_values(gpu: CudaDevice) -> None:
    a = np.array([[0, 0, 0, 1], [0, 2, -3, 0], [0, 3, 2, 0], [-1, 0, 0, 0]], np.float64)
    values, vectors = run(gpu, "eig", [a])
    np.testing.assert_allclose(a @ vectors, vectors * values, atol=1e-12)
    np.testing.assert_allclose(np.sort_complex(values), [-1j, 1j, 2 - 3j, 2 + 3j], atol=1e-12)


def test_older_libraries_leave_general_eigenvalues_to_the_host(gpu: CudaDevice, solver: FakeCusolver,
                                                               monkeypatch: pytest.MonkeyPatch) -> None:
    command = command_of("eig", (), [Layout.packed((300, 300), float32)])
    assert gpu.backends("eig")[0].refuse(command) is None
    monkeypatch.setattr(solver, "old", True)
    old = CudaDevice(HostDriver(), HostCompiler(), ID, VendorLibraries(lapack=lambda driver: Cusolver(
        driver, solver, FakeCublas(HostDriver()))))
    assert "older than CUDA 12.6" in (old.backends("eig")[0].refuse(command) or "")


def test_general_matrices_with_nan_are_said_by_the_reference(gpu: CudaDevice) -> None:
    with pytest.raises(LinAlgError, match="holds NaN or infinities"):
        run(gpu, "eigvals", [np.full((3, 3), np.nan)])


def test_in_programs(gpu: CudaDevice, solver: FakeCusolver) -> None:
    """Between captured kernels, with derivatives; no word of the host."""
    a = drawn((40, 40), float32)
    a = a @ a.T

    def f(x: nnc.Tensor) -> nnc.Tensor:
        values, vectors = nnc.linalg.eigh(x)
        return nnc.sum(nnc.linalg.cholesky(x) * vectors**2) + nnc.sum(nnc.linalg.solve(x, x) * values)

    wanted = nnc.value_and_grad(f)(nnc.asarray(a, device="cpu:0"))
    with nnc.use_device(make_stack(gpu)), nnc.config.using(fallback="error"):
        compiled = nnc.jit(nnc.value_and_grad(f))
        for _ in range(3):
            found = compiled(nnc.asarray(a))
    for x, y in zip(found, wanted, strict=True):
        np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=2e-3, atol=2e-3 * np.abs(y.numpy()).max())
    assert {"potrf", "syevd", "getrf", "getrs"} <= set(solver.calls)
