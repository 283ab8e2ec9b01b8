"""Fourier transforms by cuFFT, a stand-in for which holds every call to NVIDIA's declarations and computes by NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.command import Command
from nnc_core.base.dtype import complex64, complex128, float32, float64, real_of
from nnc_core.base.layout import Layout
from nnc_core.operator import OPERATORS
from nnc_core.stacks import make_stack
from nnc_core.type import TensorSpec
from nnc_cuda.device import CudaDevice
from nnc_cuda.fourier.backend import CufftTransforms
from nnc_cuda.fourier.cufft import Cufft
from nnc_cuda.memory import CudaBuffer
from nnc_cuda.vendor import VendorLibraries
from tests.cuda.host_compiler import HostCompiler, compiler
from tests.cuda.host_cufft import FakeCufft
from tests.cuda.host_driver import HostDriver
from tests.cuda.host_plugin import ID
from tests.opencl.running import get, put
from tests.opencl.test_fourier import drawn, packed, turned

Values = np.ndarray[Any, Any]


@pytest.fixture(scope="module")
def shared() -> tuple[HostDriver, FakeCufft]:
    driver = HostDriver()
    return driver, FakeCufft(driver)


@pytest.fixture(scope="module")
def gpu(shared: tuple[HostDriver, FakeCufft]) -> CudaDevice:
    if compiler() is None:
        pytest.skip("there is no C compiler")
    return CudaDevice(shared[0], HostCompiler(), ID, VendorLibraries(fourier=lambda driver: Cufft(driver, shared[1])))


@pytest.fixture
def fake(shared: tuple[HostDriver, FakeCufft], monkeypatch: pytest.MonkeyPatch) -> FakeCufft:
    """RowSteps of any length are given to it."""
    monkeypatch.setattr("nnc_cuda.fourier.backend.LONG", 2)
    shared[1].calls.clear()
    return shared[1]


def result_of(name: str, x: Values, attributes: tuple[Any, ...]) -> tuple[tuple[int, ...], Any]:
    spec: Any = OPERATORS[name].infer(TensorSpec(x.shape, x.dtype), *attributes)
    return spec.shape, spec.dtype


def check(gpu: CudaDevice, name: str, x: Values, *attributes: Any, shift: int = 0) -> None:
    """NumPy's numbers, of rows one after another, and of such that lie across behind a gap; `shift`: bytes by which the
    input lies off its buffer's alignment."""
    expected, (shape, dtype) = OPERATORS[name].reference(x, *attributes), result_of(name, x, attributes)
    for place in (packed, turned):
        (source, before), (room, after) = place(x), place(np.full(shape, 7, dtype))
        command = Command(name, attributes, (before,), (after,))
        backend = gpu.backends(name)[0]
        assert isinstance(backend, CufftTransforms) and backend.refuse(command) is None, backend.refuse(command)
        given = put(gpu, np.concatenate([np.zeros(shift, np.uint8), source.reshape(-1).view(np.uint8)]))
        target = put(gpu, room)
        source_buffer = CudaBuffer(given.address + shift, given.nbytes - shift, given)
        backend.prepare(command).bind([source_buffer, target, gpu.allocate(backend.workspace(command))])()
        found = get(gpu, target, room)
        bound = 8 * float(np.finfo(real_of(dtype)).eps) * float(np.abs(expected).max(initial=0))
        np.testing.assert_allclose(found, place(expected.astype(dtype))[0], rtol=0, atol=bound)
        np.testing.assert_array_equal(get(gpu, given, source.reshape(-1).view(np.uint8))[shift:],
                                      source.reshape(-1).view(np.uint8)[: given.nbytes - 2 * shift or None])


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize(("shape", "axes"), [
    ((5,), (0,)), ((2, 3, 4), (0, 2)), ((3, 35, 4), (1,)), ((4, 12, 3), (2, 0, 1)), ((20, 3, 20, 2), (1,))], ids=str)
def test_complex_numbers(gpu: CudaDevice, fake: FakeCufft, shape: tuple[int, ...], axes: tuple[int, ...],
                         inverse: bool) -> None:
    check(gpu, "fft", drawn(shape, complex64), axes, inverse, "backward")
    assert set(fake.calls) == {"cufftExecC2C"}


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("size", [2, 5, 6])
def test_real_numbers(gpu: CudaDevice, fake: FakeCufft, size: int, norm: str) -> None:
    """Imaginary parts of frequencies that are their own conjugates are not read, and inputs stay as they are."""
    check(gpu, "rfft", drawn((3, size, 2), float32), 1, norm)
    check(gpu, "irfft", drawn((3, size // 2 + 1, 2), complex64), 1, size, norm)
    assert {"cufftExecR2C", "cufftExecC2R"} == set(fake.calls)


def test_double_precision(gpu: CudaDevice, fake: FakeCufft) -> None:
    check(gpu, "fft", drawn((3, 20), complex128), (1,), True, "ortho")
    check(gpu, "rfft", drawn((3, 20), float64), 1, "backward")
    check(gpu, "irfft", drawn((3, 11), complex128), 1, 20, "backward")
    assert set(fake.calls) == {"cufftExecZ2Z", "cufftExecD2Z", "cufftExecZ2D"}


def test_real_numbers_that_are_aligned_as_such(gpu: CudaDevice, fake: FakeCufft) -> None:
    """As parts of other libraries' arrays may be."""
    check(gpu, "rfft", drawn((3, 6), float32), 1, "backward", shift=4)


def test_which_code_is_preferred(gpu: CudaDevice, shared: tuple[HostDriver, FakeCufft]) -> None:
    def names(length: int, device: CudaDevice) -> list[str]:
        x = Layout.packed((2, length), complex64)
        command = Command("fft", ((1,), False, "backward"), (x,), (x,))
        return [backend.name for backend in device.backends("fft") if backend.refuse(command) is None]

    assert names(4096, gpu) == ["cufft", "stages"]
    assert names(2 * 1031, gpu) == ["cufft"] and names(1031, gpu) == ["cufft"]
    assert names(512, gpu) == ["stages"]
    without = CudaDevice(HostDriver(), HostCompiler(), ID)
    assert names(4096, without) == ["stages"] and not names(1031, without)
    shared[1].refuses = True
    try:
        assert names(8192, gpu) == ["stages"]
    finally:
        shared[1].refuses = False


def test_plans_go_with_their_kernels(gpu: CudaDevice, fake: FakeCufft) -> None:
    library: Any = gpu.libraries.fourier()
    check(gpu, "fft", drawn((2, 6), complex64), (1,), False, "backward")
    library._plans = type(library._plans)(1)
    for backend in (gpu.backends(name)[0] for name in ("fft", "rfft", "irfft")):
        assert isinstance(backend, CufftTransforms)
        backend.steps.cache_clear()
    assert not fake.plans


def test_they_are_captured(gpu: CudaDevice, fake: FakeCufft, shared: tuple[HostDriver, FakeCufft]) -> None:
    driver, launched = shared[0], shared[0].graph_launches
    x = drawn((2, 1031), complex64)
    with nnc.use_device(make_stack(gpu)), nnc.config.using(fallback="error"):
        f = nnc.jit(lambda x: nnc.fft.ifft(nnc.fft.fft(x + 1) * 2) - x)
        given = nnc.asarray(x)
        for _ in range(5):
            found = f(given).numpy()
    np.testing.assert_allclose(found, x + 2, atol=1e-4)
    assert driver.graph_launches > launched
    assert len(fake.calls) < 10, "a graph does not call it again"
