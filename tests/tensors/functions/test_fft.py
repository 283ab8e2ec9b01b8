"""nnc.fft against NumPy's, on every device and in each mode; gradients, errors."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import FallbackWarning
from nnc_core.builtin import StrictDevice
from nnc_core.stacks import make_stack

pytestmark = pytest.mark.filterwarnings("ignore:.* has no kernel")
RNG = np.random.default_rng(0)
R = RNG.uniform(-1, 1, (3, 4, 5))
Z = R + 1j * RNG.uniform(-1, 1, R.shape)
NORMS = ("backward", "ortho", "forward", None)


def of(make: Callable[[Any, Any], Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The same calls of our functions and of NumPy's."""
    return lambda x: make(nnc.fft, x), lambda x: make(np.fft, x)


CASES: dict[str, tuple[tuple[Callable[..., Any], Callable[..., Any]], Any]] = {
    **{name: (of(lambda fft, x, name=name: [getattr(fft, name)(x, n=n, axis=a, norm=k) for k in NORMS
                                            for n, a in ((None, -1), (3, 0), (7, 1), (4, -1))]),
              R if name in ("rfft", "ihfft") else Z)
       for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")},
    **{name: (of(lambda fft, x, name=name: [getattr(fft, name)(x, s=s, axes=a, norm=k) for k in NORMS
                                            for s, a in ((None, None), ((4, 3), (0, 2)), ((3, 5, 6), (1, 2, 0)))]),
              R if name == "rfftn" else Z)
       for name in ("fftn", "ifftn", "rfftn", "irfftn")},
    **{name: (of(lambda fft, x, name=name: [getattr(fft, name)(x, s=s, axes=a, norm=k) for k in NORMS
                                            for s, a in ((None, (-2, -1)), ((4, 3), (0, 2)), ((3, 5), (2, 1)))]),
              R if name == "rfft2" else Z)
       for name in ("fft2", "ifft2", "rfft2", "irfft2")},
    "real numbers": (of(lambda fft, x: [fft.fft(x), fft.ifft(x, n=6), fft.fftn(x, axes=(0, 1)), fft.irfft(x)]), R),
    "fftshift": (of(lambda fft, x: [fft.fftshift(x), fft.fftshift(x, axes=2), fft.fftshift(x, axes=(0, -1))]), Z),
    "ifftshift": (of(lambda fft, x: [fft.ifftshift(x), fft.ifftshift(x, axes=2), fft.ifftshift(x, axes=(0, 1))]), R),
}  # fmt: skip


def same(found: Any, wanted: Any, tolerance: float) -> None:
    for y, z in zip(found, wanted, strict=True):
        assert (y.shape, y.numpy().dtype.kind) == (z.shape, z.dtype.kind)
        np.testing.assert_allclose(y.numpy(), z, atol=tolerance * max(1, np.abs(z).max(initial=0)), rtol=0)


def test_every_name_has_a_case() -> None:
    assert set(CASES) - {"real numbers"} | {"fftfreq", "rfftfreq"} == set(nnc.fft.__all__)


@pytest.mark.parametrize("name", CASES)
def test_as_numpy(device: str, name: str) -> None:
    (f, reference), x = CASES[name]
    same(f(nnc.asarray(x)), reference(x), 1e-13)
    narrow = x.astype(np.complex64 if x.dtype.kind == "c" else np.float32)
    found = f(nnc.asarray(narrow))
    assert {y.dtype for y in found} <= {nnc.float32, nnc.complex64}
    same(found, reference(x), 2e-5)


@pytest.mark.parametrize("name", CASES)
def test_deferred_and_compiled(name: str) -> None:
    (f, _), x = CASES[name]
    with nnc.config.using(deterministic=True):
        wanted = [y.numpy() for y in f(nnc.asarray(x))]
        with nnc.deferred():
            late = f(nnc.asarray(x))
        for found in (late, nnc.jit(f)(nnc.asarray(x))):
            assert [y.numpy().tobytes() for y in found] == [y.tobytes() for y in wanted]


def test_there_and_back(device: str) -> None:
    x, z = nnc.asarray(R), nnc.asarray(Z)
    for norm in NORMS:
        np.testing.assert_allclose(nnc.fft.ifftn(nnc.fft.fftn(z, norm=norm), norm=norm).numpy(), Z, atol=1e-14)
        back = nnc.fft.irfftn(nnc.fft.rfftn(x, norm=norm), s=R.shape, norm=norm)
        np.testing.assert_allclose(back.numpy(), R, atol=1e-14)
        np.testing.assert_allclose(nnc.fft.hfft(nnc.fft.ihfft(x, norm=norm), n=5, norm=norm).numpy(), R, atol=1e-14)


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_frequencies(device: str, n: int) -> None:
    for found, wanted in ((nnc.fft.fftfreq(n, d=0.5), np.fft.fftfreq(n, 0.5)),
                          (nnc.fft.rfftfreq(n, d=0.5), np.fft.rfftfreq(n, 0.5))):
        assert found.dtype == nnc.float32 and found.device.id == device
        np.testing.assert_allclose(found.numpy(), wanted.astype(np.float32))
    assert nnc.fft.fftfreq(n, dtype=nnc.float64).numpy().tolist() == np.fft.fftfreq(n).tolist()
    assert nnc.fft.rfftfreq(n, device="strict:0").device.id == "strict:0"


# ---- gradients
GRADIENTS: dict[str, tuple[Callable[[nnc.Tensor], nnc.Tensor], Any]] = {
    "fft": (lambda z: nnc.fft.fft(z, n=6), Z), "ifft": (lambda z: nnc.fft.ifft(z, axis=0, norm="ortho"), Z),
    "fftn": (lambda z: nnc.fft.fftn(z, axes=(0, 2), norm="forward"), Z), "rfft": (nnc.fft.rfft, R),
    "rfft, even": (lambda x: nnc.fft.rfft(x, axis=1, norm="ortho"), R), "rfftn": (nnc.fft.rfftn, R),
    "irfft": (nnc.fft.irfft, Z), "irfft, odd": (lambda z: nnc.fft.irfft(z, n=7, norm="forward"), Z),
    "irfftn": (lambda z: nnc.fft.irfftn(z, s=(3, 6), axes=(1, 2)), Z), "hfft": (nnc.fft.hfft, Z),
    "ihfft": (nnc.fft.ihfft, R), "of real numbers": (nnc.fft.fft, R),
    "fftshift": (nnc.fft.fftshift, Z),
}  # fmt: skip


def power(f: Callable[[nnc.Tensor], nnc.Tensor]) -> Callable[[nnc.Tensor], nnc.Tensor]:
    """A number that is not quadratic in the spectrum, and depends on its phase."""

    def g(x: nnc.Tensor) -> nnc.Tensor:
        y = f(x)
        weights = np.cos(np.arange(y.size)).reshape(y.shape)
        size, phase = nnc.abs(y), nnc.real(y) * weights + nnc.imag(y) * weights[::-1].copy()
        return nnc.sum(size * size * size + phase)

    return g


def paired(g: nnc.Tensor, d: nnc.Tensor) -> nnc.Tensor:
    """How much a number changes along d."""
    return nnc.sum(nnc.real(nnc.conj(g) * d))


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name: str) -> None:
    f, host = GRADIENTS[name]
    g, x, d = power(f), nnc.asarray(host), nnc.asarray(np.roll(host, 1, 0) - 0.5 * host)
    h = 1e-6
    gradient = nnc.grad(g)(x)
    assert gradient.spec == x.spec
    slope = (g(x + h * d) - g(x - h * d)).item() / (2 * h)
    np.testing.assert_allclose(paired(gradient, d).item(), slope, rtol=1e-7)
    np.testing.assert_allclose(nnc.jvp(g, (x,), (d,))[1].item(), slope, rtol=1e-7)
    twice = nnc.grad(lambda x: paired(nnc.grad(g)(x), d))(x).numpy()
    np.testing.assert_allclose(twice, nnc.jvp(nnc.grad(g), (x,), (d,))[1].numpy(), rtol=1e-9, atol=1e-9)
    difference = (nnc.grad(g)(x + h * d).numpy() - nnc.grad(g)(x - h * d).numpy()) / (2 * h)
    np.testing.assert_allclose(twice, difference, rtol=1e-6, atol=1e-6 * np.abs(difference).max())


def test_a_filter_is_found_by_its_gradient(device: str) -> None:
    """The frequency response that makes one signal another: least squares, through both transforms."""
    signal, wanted = nnc.asarray(R[0]), nnc.asarray(np.roll(R[0], 2, axis=1))

    def loss(response: nnc.Tensor) -> nnc.Tensor:
        error = nnc.fft.irfft(nnc.fft.rfft(signal) * response, n=5) - wanted
        return nnc.sum(error * error)

    response = nnc.asarray(np.ones(3, np.complex128))
    step = nnc.jit(lambda r: r - 0.2 * nnc.grad(loss)(r))
    for _ in range(200):
        response = step(response)
    delay = np.exp(-2j * np.pi * 2 * np.fft.rfftfreq(5))
    np.testing.assert_allclose(response.numpy(), delay, atol=1e-5)


def test_each_example_is_transformed(device: str) -> None:
    x = nnc.asarray(R)
    found = nnc.vmap(lambda row: (nnc.fft.rfftn(row), nnc.fft.irfft(nnc.fft.fft(row)), nnc.fft.fftshift(row)))(x)
    wanted = (nnc.fft.rfftn(x, axes=(1, 2)), nnc.fft.irfft(nnc.fft.fft(x)), nnc.fft.fftshift(x, axes=(1, 2)))
    for y, z in zip(found, wanted, strict=True):
        np.testing.assert_allclose(y.numpy(), z.numpy(), atol=1e-14)


# ---- errors
REFUSED = {
    "half floats": (lambda: nnc.fft.fft(R.astype(np.float16)), TypeError, "needs float32 or float64, not float16"),
    "complex numbers": (lambda: nnc.fft.rfft(Z), TypeError, "not complex128"),
    "norms": (lambda: nnc.fft.fft(Z, norm="both"), ValueError, "norm 'both' is none of"),
    "norms of hfft": (lambda: nnc.fft.hfft(Z, norm="both"), ValueError, "norm 'both' is none of"),
    "axes": (lambda: nnc.fft.fft(Z, axis=3), IndexError, "axis 3 is out of range"),
    "an axis twice": (lambda: nnc.fft.fftn(Z, axes=(0, -3)), ValueError, "name an axis twice"),
    "sizes": (lambda: nnc.fft.fftn(Z, s=(2, 3), axes=(0,)), ValueError, "2 sizes for 1 axes"),
    "no elements": (lambda: nnc.fft.fft(np.zeros((2, 0))), ValueError, "is empty: there is nothing to transform"),
    "no signal": (lambda: nnc.fft.irfft(Z[..., :1]), ValueError, "size 0 is not positive"),
    "cut off": (lambda: nnc.fft.fft(Z, n=0), ValueError, "size 0 is not positive"),
    "frequencies": (lambda: nnc.fft.fftfreq(0), ValueError, "the number of samples 0 is no integer from 1 on"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    call, error, message = REFUSED[name]
    with pytest.raises(error, match=message) as caught:
        call()
    assert isinstance(caught.value, nnc.Error) and caught.value.operator and "test_fft.py" in str(caught.value)


def test_a_device_without_kernels_says_so_once() -> None:
    stack = make_stack(StrictDevice())
    x = nnc.asarray(R, device=stack.device)
    with pytest.warns(FallbackWarning, match=f"rfft has no kernel on {stack.device.spec.id}: it runs on the host"):
        nnc.fft.rfft(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nnc.fft.rfft(x, axis=0)
