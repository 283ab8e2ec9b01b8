"""Products by cuBLASLt, a stand-in for which does what its manual says: matrices in all their places, and what
follows them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.config import config
from nnc_core.base.dtype import DType, bfloat16, float16, float32, float64
from nnc_core.base.layout import Layout
from nnc_core.device import Buffer
from nnc_core.stacks import make_stack
from nnc_cuda.cublaslt import IN_FLOAT32, IN_FLOAT64, IN_TF32
from nnc_cuda.device import CudaDevice
from nnc_cuda.products.library import LibraryProducts
from tests.cpu.products.test_matmul import TURNED, command_of, matrices, packed
from tests.cuda.host_cublaslt import FakeCublasLt
from tests.cuda.host_driver import HostDriver


@pytest.fixture
def gpu(with_library: CudaDevice) -> CudaDevice:
    return with_library


def computed(gpu: CudaDevice, a: Any, b: Any, **options: Any) -> Any:
    with nnc.use_device(make_stack(gpu)):
        return nnc.matmul(nnc.asarray(a), nnc.asarray(b), **options).numpy()


def computed_in(fake: FakeCublasLt) -> list[int]:
    """Compute types of the calls."""
    return [compute for compute, _ in fake.calls]


def drawn(*shape: int, dtype: DType = float32) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize(("ta", "tb"), TURNED)
def test_matrices_either_way(gpu: CudaDevice, fake: FakeCublasLt, ta: bool, tb: bool) -> None:
    a, b = drawn(*((64, 65) if ta else (65, 64))), drawn(*((66, 64) if tb else (64, 66)))
    found = computed(gpu, a.T if ta else a, b.T if tb else b)
    np.testing.assert_allclose(found, (a.T if ta else a) @ (b.T if tb else b), rtol=1e-5, atol=1e-4)
    assert computed_in(fake) == [IN_FLOAT32]


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
def test_other_dtypes(gpu: CudaDevice, fake: FakeCublasLt, dtype: DType) -> None:
    a, b = drawn(65, 64, dtype=dtype), drawn(64, 66, dtype=dtype)
    wide = np.float64 if dtype == float64 else np.float32
    expected = a.astype(wide) @ b.astype(wide)
    np.testing.assert_allclose(computed(gpu, a, b).astype(wide), expected, rtol=1e-2, atol=1e-1)
    assert computed_in(fake) == [IN_FLOAT64 if dtype == float64 else IN_FLOAT32]


def test_tf32_is_asked_for(gpu: CudaDevice, fake: FakeCublasLt) -> None:
    a, b = drawn(65, 64), drawn(64, 66)
    with nnc.use_device(make_stack(gpu)):
        x, y, product = nnc.asarray(a), nnc.asarray(b), nnc.jit(lambda x, y: x @ y)
        for precision in ("float32", "tf32", "float32"):
            with config.using(matmul_precision=precision):
                product(x, y).wait()
                (x @ y).wait()
    assert computed_in(fake) == [IN_FLOAT32] * 2 + [IN_TF32] * 2 + [IN_FLOAT32] * 2
    with pytest.raises(nnc.errors.AttributeValueError, match="one of float32, tf32"):
        config.matmul_precision = "half"


def test_products_in_graphs_are_captured(gpu: CudaDevice, fake: FakeCublasLt, driver: HostDriver) -> None:
    a, b = drawn(65, 64), drawn(64, 64)
    with nnc.use_device(make_stack(gpu)):
        f = nnc.jit(lambda x, y: nnc.tanh(x @ y) @ y)
        x, y = nnc.asarray(a), nnc.asarray(b)
        for _ in range(4):
            found = f(x, y).numpy()
    np.testing.assert_allclose(found, np.tanh(a @ b) @ b, rtol=1e-4, atol=1e-4)
    assert driver.graph_launches
    assert len(computed_in(fake)) < 8, "a graph does not call it again"


def test_what_is_left_to_tiles(gpu: CudaDevice) -> None:
    library, tiles = gpu.backends("matmul")
    for command, reason in ((matrices(3, 4, 5, float32), "too small"),
                            (packed((4, 3, 40, 41), (3, 41, 42)), "several axes")):
        assert reason in (library.refuse(command) or ""), command
    assert tiles.refuse(packed((4, 3, 40, 41), (3, 41, 42))) is None
