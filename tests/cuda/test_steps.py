"""Sorting, scatters, products of complex numbers and Fourier transforms by the kernels of OpenCL's GPUs, on CUDA."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.stacks import make_stack
from nnc_cuda.device import CudaDevice
from nnc_cuda.graphs import OTHERS
from tests.cuda.host_compiler import HostCompiler, compiler
from tests.cuda.host_driver import HostDriver
from tests.cuda.host_plugin import ID
from tests.opencl.test_folding import (  # noqa: F401 they run here too
    test_products_and_recurrences,
    test_where_numbers_end_they_are_as_numpy_has_them,
)
from tests.opencl.test_fourier import (  # noqa: F401 they run here too
    test_complex_numbers,
    test_double_precision,
    test_real_numbers,
)
from tests.opencl.test_ordering import (  # noqa: F401 they run here too
    test_an_index_out_of_range_changes_nothing,
    test_long_rows,
    test_positions_by_digits,
    test_positions_in_order,
    test_updates_by_index,
    test_updates_by_index_by_digits,
)


@pytest.fixture(scope="module")
def both() -> Iterator[CudaDevice]:
    """One for all tests, which share code."""
    if compiler() is None:
        pytest.skip("there is no C compiler")
    device = CudaDevice(HostDriver(), HostCompiler(), ID)
    yield device
    device.close()


def test_they_are_captured(driver: HostDriver, device: CudaDevice) -> None:
    """Kernels of several programs, and tables that they read, are in one graph with what is around them, which follows
    its inputs."""
    rng, kept = np.random.default_rng(0), list[nnc.Tensor]()
    with nnc.use_device(make_stack(device)):
        f = nnc.jit(lambda x: nnc.sort(nnc.real(nnc.fft.fftn(x)), axis=0) + 1)
        for _ in range(3 * OTHERS):
            x = rng.standard_normal((70, 12)).astype(np.float32)
            kept.append(nnc.asarray(x))  # so that no buffer comes back
            found = f(kept[-1]).numpy()
            np.testing.assert_allclose(found, np.sort(np.fft.fftn(x).real, axis=0) + 1, atol=1e-4)
    assert driver.graph_launches and driver.rebound


def test_stable_with_numbers_that_are_none(device: CudaDevice) -> None:
    x = np.tile(np.array([3, np.nan, -0.0, 0.0, -np.inf], np.float32), 40)
    with nnc.use_device(make_stack(device)):
        found = nnc.argsort(nnc.asarray(x)).numpy()
    np.testing.assert_array_equal(found, np.argsort(x, kind="stable"))
