"""Products by cuBLAS, a fake of which does what its manual says: matrices column by column, on memory of the driver of
these tests, when its streams come to it."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.config import config
from nnc_core.base.dtype import DType, bfloat16, float16, float32, float64
from nnc_core.base.layout import Layout
from nnc_core.device import Buffer
from nnc_core.stacks import make_stack
from nnc_cuda.cublas import IN_FLOAT32, IN_FLOAT64, IN_TF32, TYPES, CuBlas
from nnc_cuda.device import CudaDevice
from nnc_cuda.products.library import WORKSPACE, LibraryProducts
from tests.cpu.products.test_joined import bias_and_relu
from tests.cpu.products.test_matmul import TURNED, command_of, matrices, packed
from tests.cuda.host_compiler import HostCompiler, compiler
from tests.cuda.host_driver import HostDriver
from tests.cuda.host_plugin import ID

DTYPES = {number: dtype for dtype, number in TYPES.items()}


class FakeCuBlas:
    """The functions of cuBLAS that are called."""

    def __init__(self, driver: HostDriver) -> None:
        self.driver = driver
        self.stream, self.workspace = 0, 0
        self.computed: list[int] = []
        """Compute types of the calls."""

    def cublasCreate_v2(self, handle: Any) -> int:  # noqa: N802
        handle._obj.value = 77
        return 0

    def cublasSetStream_v2(self, handle: Any, stream: Any) -> int:  # noqa: N802
        assert handle.value == 77
        self.stream, self.workspace = stream.value, 0  # as it says: the workspace is its own again
        return 0

    def cublasSetWorkspace_v2(self, handle: Any, address: Any, nbytes: Any) -> int:  # noqa: N802
        assert nbytes.value >= WORKSPACE and self.driver.holds(address.value)
        self.workspace = address.value
        return 0

    def cublasGemmStridedBatchedEx(self, handle: Any, *arguments: Any) -> int:  # noqa: N802
        assert self.workspace, "it would allocate"
        values = [x._obj.value if hasattr(x, "_obj") else x.value for x in arguments]
        self.computed.append(values[-2])
        self.driver._enqueue(self.stream, lambda: multiply(*values))
        return 0


def multiply(turn_a: int, turn_b: int, m: int, n: int, k: int, alpha: float, a: int, a_type: int, lda: int, a_step: int,
             b: int, b_type: int, ldb: int, b_step: int, beta: float, c: int, c_type: int, ldc: int, c_step: int,
             count: int, compute: int, algorithm: int) -> None:
    """C = alpha op(A) op(B) + beta C of column-major matrices, op(A) m x k and op(B) k x n."""
    assert a_type == b_type == c_type and algorithm == -1 and (alpha, beta) == (1, 0)
    dtype = DTYPES[a_type]
    assert (compute == IN_FLOAT64) == (dtype == float64)

    def matrix(address: int, rows: int, columns: int, distance: int, turned: int) -> Any:
        stored, lines = (columns, rows) if turned else (rows, columns)
        assert distance >= max(1, stored)
        nbytes = ((lines - 1) * distance + stored) * dtype.itemsize
        memory = np.frombuffer((ctypes.c_char * nbytes).from_address(address), dtype)
        strides = (dtype.itemsize, distance * dtype.itemsize)
        found = np.lib.stride_tricks.as_strided(memory, (stored, lines), strides)
        return found.T if turned else found

    for number in range(count):
        x = matrix(a + number * a_step * dtype.itemsize, m, k, lda, turn_a)
        y = matrix(b + number * b_step * dtype.itemsize, k, n, ldb, turn_b)
        z = matrix(c + number * c_step * dtype.itemsize, m, n, ldc, 0)
        wide = np.float64 if dtype == float64 else np.float32
        z[...] = (x.astype(wide) @ y.astype(wide)).astype(dtype)


@pytest.fixture
def fake(driver: HostDriver) -> FakeCuBlas:
    return FakeCuBlas(driver)


@pytest.fixture
def gpu(driver: HostDriver, fake: FakeCuBlas) -> Iterator[CudaDevice]:
    if compiler() is None:
        pytest.skip("there is no C compiler")
    yield CudaDevice(driver, HostCompiler(), ID, lambda driver: CuBlas(driver, fake))


def computed(gpu: CudaDevice, a: Any, b: Any, **options: Any) -> Any:
    with nnc.use_device(make_stack(gpu)):
        return nnc.matmul(nnc.asarray(a), nnc.asarray(b), **options).numpy()


def drawn(*shape: int, dtype: DType = float32) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize(("ta", "tb"), TURNED)
def test_matrices_either_way(gpu: CudaDevice, fake: FakeCuBlas, ta: bool, tb: bool) -> None:
    a, b = drawn(*((64, 65) if ta else (65, 64))), drawn(*((66, 64) if tb else (64, 66)))
    found = computed(gpu, a.T if ta else a, b.T if tb else b)
    np.testing.assert_allclose(found, (a.T if ta else a) @ (b.T if tb else b), rtol=1e-5, atol=1e-4)
    assert fake.computed == [IN_FLOAT32]


@pytest.mark.parametrize(("ta", "tb"), TURNED)
def test_commands_that_turn(gpu: CudaDevice, driver: HostDriver, ta: bool, tb: bool) -> None:
    """By the operator's own attributes, with distances between rows."""
    command = matrices(65, 66, 64, float32, ta, tb)
    a, b = (x._replace(strides=(4 * 80, 4), offset=16) for x in command.inputs)
    out = Layout((65, 66), float32, 8, (4 * 70, 4))
    run_and_check(gpu, command_of(a, b, ta, tb, out))


def test_batches(gpu: CudaDevice) -> None:
    run_and_check(gpu, packed((5, 40, 41), (5, 41, 42)))
    run_and_check(gpu, packed((5, 40, 41), (41, 42)))
    run_and_check(gpu, packed((40, 41), (5, 41, 42)))
    run_and_check(gpu, packed((5, 41, 40), (5, 42, 41), ta=True, tb=True))


def run_and_check(gpu: CudaDevice, command: Any) -> None:
    backend = gpu.backends("matmul")[0]
    assert isinstance(backend, LibraryProducts) and backend.refuse(command) is None, backend.refuse(command)
    layouts = [*command.inputs, command.output]
    arrays = [drawn(max(x.extent // 4, 1)) for x in layouts]
    buffers: list[Buffer] = [gpu.allocate(array.nbytes) for array in arrays]
    for array, buffer in zip(arrays, buffers, strict=True):
        gpu.upload(array, buffer)
    backend.prepare(command).bind([*buffers, gpu.allocate(backend.workspace(command))])()
    found = np.empty_like(arrays[-1])
    gpu.download(buffers[-1], found).wait()
    a, b, c = (np.lib.stride_tricks.as_strided(array[x.offset // 4 :], x.shape, x.strides)
               for array, x in zip(arrays, layouts, strict=True))
    ta, tb = command.attributes
    c[...] = np.matmul(a.swapaxes(-1, -2) if ta else a, b.swapaxes(-1, -2) if tb else b)
    np.testing.assert_allclose(found, arrays[-1], rtol=1e-5, atol=1e-4)  # what lies between rows as well


@pytest.mark.parametrize("dtype", [float16, bfloat16, float64], ids=str)
def test_other_dtypes(gpu: CudaDevice, fake: FakeCuBlas, dtype: DType) -> None:
    a, b = drawn(65, 64, dtype=dtype), drawn(64, 66, dtype=dtype)
    wide = np.float64 if dtype == float64 else np.float32
    expected = a.astype(wide) @ b.astype(wide)
    np.testing.assert_allclose(computed(gpu, a, b).astype(wide), expected, rtol=1e-2, atol=1e-1)
    assert fake.computed == [IN_FLOAT64 if dtype == float64 else IN_FLOAT32]


def test_tf32_is_asked_for(gpu: CudaDevice, fake: FakeCuBlas) -> None:
    a, b = drawn(65, 64), drawn(64, 66)
    with nnc.use_device(make_stack(gpu)):
        x, y, product = nnc.asarray(a), nnc.asarray(b), nnc.jit(lambda x, y: x @ y)
        for precision in ("float32", "tf32", "float32"):
            with config.using(matmul_precision=precision):
                product(x, y).wait()
                (x @ y).wait()
    assert fake.computed == [IN_FLOAT32] * 2 + [IN_TF32] * 2 + [IN_FLOAT32] * 2
    with pytest.raises(nnc.errors.AttributeValueError, match="one of float32, tf32"):
        config.matmul_precision = "half"


def test_products_in_graphs_are_captured(gpu: CudaDevice, fake: FakeCuBlas, driver: HostDriver) -> None:
    a, b = drawn(65, 64), drawn(64, 64)
    with nnc.use_device(make_stack(gpu)):
        f = nnc.jit(lambda x, y: nnc.tanh(x @ y) @ y)
        x, y = nnc.asarray(a), nnc.asarray(b)
        for _ in range(4):
            found = f(x, y).numpy()
    np.testing.assert_allclose(found, np.tanh(a @ b) @ b, rtol=1e-4, atol=1e-4)
    assert driver.graph_launches
    assert len(fake.computed) < 8, "a graph does not call it again"


def test_what_is_left_to_tiles(gpu: CudaDevice) -> None:
    library, tiles = gpu.backends("matmul")
    for command, reason in ((matrices(3, 4, 5, float32), "too small"),
                            (packed((4, 3, 40, 41), (3, 41, 42)), "several axes"),
                            (bias_and_relu(), "as they are")):
        assert reason in (library.refuse(command) or ""), command
    assert tiles.refuse(packed((4, 3, 40, 41), (3, 41, 42))) is None
