"""Fourier transforms by kernels: NumPy's numbers, whatever the lengths, the axes and the places of arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.command import Command
from nnc_core.base.dtype import complex64, complex128, float32, float64, real_of
from nnc_core.base.layout import Layout
from nnc_core.operator import OPERATORS
from nnc_core.operator.steps.fourier import Fourier, radices_of, roots_of
from nnc_core.type import TensorSpec
from nnc_opencl.device import OpenCLDevice
from tests.opencl.running import get, put

Values = np.ndarray[Any, Any]
RNG = np.random.default_rng(0)


def drawn(shape: tuple[int, ...], dtype: Any) -> Values:
    numbers = RNG.standard_normal((2, *shape))
    return (numbers[0] + 1j * numbers[1]).astype(dtype) if np.issubdtype(dtype, np.complexfloating) else numbers[
        0].astype(dtype)


def check(device: OpenCLDevice, name: str, x: Values, *attributes: Any) -> None:
    """Rows that lie one after another, and rows that lie across behind a gap, in the input and in the result."""
    expected = OPERATORS[name].reference(x, *attributes)
    y = OPERATORS[name].infer(TensorSpec(x.shape, x.dtype), *attributes)
    for place in (packed, turned):
        (source, before), (room, after) = place(x), place(np.full(y.shape, 7, y.dtype))
        command = Command(name, attributes, (before,), (after,))
        backend = device.backends(name)[-1]
        assert backend.refuse(command) is None
        buffers = [put(device, source), put(device, room), device.allocate(backend.workspace(command))]
        backend.prepare(command).bind(buffers)()
        largest = float(np.abs(expected).max(initial=0))
        bound = 8 * float(np.finfo(real_of(y.dtype)).eps) * largest
        np.testing.assert_allclose(get(device, buffers[1], room), place(expected)[0], rtol=0, atol=bound)


def packed(x: Values) -> tuple[Values, Layout]:
    return np.ascontiguousarray(x), Layout.packed(x.shape, x.dtype)


def turned(x: Values) -> tuple[Values, Layout]:
    """The last axis first, behind a gap."""
    room = np.full(3 + x.size, 7, x.dtype)
    room[3:] = x.transpose().reshape(-1)
    strides = tuple(np.cumprod([x.itemsize, *x.shape[:-1]]).tolist()) if x.shape else ()
    return room, Layout(x.shape, x.dtype, 3 * x.itemsize, strides)


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize(("shape", "axes"), [
    ((5,), (0,)), ((2, 3, 4), (0, 2)), ((1,), (0,)), ((2, 3), ()), ((0, 3), (1,)), ((3, 35, 4), (1,)),
    ((4, 128, 3), (2, 0, 1)), ((2, 1000), (1,)), ((2, 61), (1,)), ((3, 1009), (1,))])
def test_complex_numbers(both: OpenCLDevice, shape: tuple[int, ...], axes: tuple[int, ...], inverse: bool) -> None:
    check(both, "fft", drawn(shape, complex64), axes, inverse, "backward")


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("size", [1, 2, 5, 6, 96])
def test_real_numbers(both: OpenCLDevice, size: int, norm: str) -> None:
    """Imaginary parts of frequencies that are their own conjugates are not read."""
    check(both, "rfft", drawn((3, size, 2), float32), 1, norm)
    check(both, "irfft", drawn((3, size // 2 + 1, 2), complex64), 1, size, norm)
    check(both, "fft", drawn((3, size, 2), complex64), (1, 0), False, norm)


def test_double_precision(both: OpenCLDevice) -> None:
    if "float64" not in both.spec.dtypes:
        pytest.skip("no float64 here")
    for inverse in (False, True):
        check(both, "fft", drawn((3, 420), complex128), (1,), inverse, "ortho")
    check(both, "rfft", drawn((3, 420), float64), 1, "backward")


def test_lengths_with_large_prime_factors_are_the_hosts(device: OpenCLDevice) -> None:
    for length, refused in ((1021, False), (1031, True), (2 * 1031, True), (4096, False)):
        x = Layout.packed((2, length), complex64)
        command = Command("fft", ((1,), False, "backward"), (x,), (x,))
        assert (device.backends("fft")[0].refuse(command) is not None) == refused


def test_large_primes_are_convolutions_in_graphs(both: OpenCLDevice) -> None:
    """Those for which a stage takes longer, where the operator's own bits are not promised; of those which the host is
    quicker at, where it is the device, on GPUs alone."""
    x = drawn((2, 101, 3), complex64)
    functions: tuple[Callable[[Any, Any], Any], ...] = (
        lambda xp, x: xp.fft.fft(x, axis=1), lambda xp, x: xp.fft.ifft(x, axis=1, norm="ortho"),
        lambda xp, x: xp.fft.rfft(xp.real(x), axis=1), lambda xp, x: xp.fft.irfft(x, 202, axis=1))
    with nnc.use_device(nnc.make_stack(both)):
        for f in functions:
            compiled: Any = nnc.jit(lambda x, f=f: f(nnc, x))
            wanted = f(np, x.astype(np.complex128))
            found = compiled(nnc.asarray(x)).numpy()
            np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-6 * np.abs(wanted).max())
            assert any([f"{length}, 3]" in compiled.explain(nnc.asarray(x)) for length in (240, 480)])
        [stages] = both.backends("fft")
        assert isinstance(stages, Fourier)
        assert stages.suits(61) and not stages.suits(83) and stages.suits(1031) != stages.compiler.grouped
        assert "multiply" not in nnc.jit(nnc.fft.fft).explain(nnc.asarray(drawn((2, 61), complex64)))


@pytest.mark.parametrize("count", [1, 2, 7, 12, 360])
def test_roots_and_factors(count: int) -> None:
    exact = np.exp(-2j * np.pi * np.arange(count) / count)
    np.testing.assert_allclose(roots_of(count, False), exact, atol=1e-15)
    np.testing.assert_array_equal(roots_of(count, True), roots_of(count, False).conj())
    assert np.prod(radices_of(count), initial=1) == count
