"""Complex numbers: dtypes, values in all modes, gradients as conjugates, what has no order."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from tests.tensors.ways import in_mode

Array = np.ndarray[Any, Any]
pytestmark = pytest.mark.filterwarnings("ignore:.*has no kernel on:nnc_core.base.errors.FallbackWarning")


def drawn(*shape: int, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    return np.asarray(rng.normal(size=shape) + 1j * rng.normal(size=shape))


@pytest.fixture
def z(device: str) -> nnc.Tensor:
    return nnc.asarray(drawn(3, 4))


# ---- dtypes
def test_dtypes_of_numbers() -> None:
    assert nnc.asarray(1j).dtype == nnc.complex64
    assert nnc.asarray([1.0, 2j]).dtype == nnc.complex64
    assert nnc.asarray(np.array([1j])).dtype == nnc.complex128
    assert (nnc.asarray([1.0]) * 1j).dtype == nnc.complex64
    assert (nnc.asarray([1.0], dtype="float64") + 1j).dtype == nnc.complex128
    assert (nnc.asarray([1.0], dtype="float16") + 1j).dtype == nnc.complex64
    assert (nnc.asarray([1, 2]) * 1j).dtype == nnc.complex64
    assert (nnc.asarray([1j]) * 2.0).dtype == nnc.complex64


@pytest.mark.parametrize(("a", "b", "both"), [
    ("float64", "complex64", "complex128"), ("float32", "complex64", "complex64"), ("int64", "complex64", "complex64"),
    ("bfloat16", "complex64", "complex64"), ("bool", "complex128", "complex128"),
    ("complex64", "complex128", "complex128"),
])  # fmt: skip
def test_promotion(a: str, b: str, both: str) -> None:
    assert str((nnc.ones(2, dtype=a) + nnc.ones(2, dtype=b)).dtype) == both
    assert str((nnc.ones(2, dtype=b) * nnc.ones(2, dtype=a)).dtype) == both


@pytest.mark.parametrize("f", [
    lambda z: z < z, lambda z: nnc.maximum(z, z), lambda z: nnc.max(z), lambda z: nnc.argmax(z), lambda z: z // z,
    lambda z: z % z, lambda z: nnc.floor(z), lambda z: nnc.relu(z), lambda z: nnc.clip(z, 0, 1),
    nnc.isposinf, nnc.isneginf,
])  # fmt: skip
def test_no_order(z: nnc.Tensor, f: Callable[[nnc.Tensor], Any]) -> None:
    with pytest.raises(nnc.Error, match="complex128 has no order") as caught:
        f(z)
    assert "abs(x)" in str(caught.value) and "test_complex.py" in str(caught.value)


def test_no_part_is_dropped_silently(z: nnc.Tensor) -> None:
    with pytest.raises(nnc.Error, match="complex128 does not become float64") as caught:
        z.astype("float64")
    assert "real(x)" in str(caught.value)
    with pytest.raises(TypeError):
        float(z[0, 0])


def test_scalars(z: nnc.Tensor) -> None:
    first = complex(z.numpy()[0, 0])
    assert complex(z[0, 0]) == first == z[0, 0].item()
    assert bool(z[0, 0])


def test_copies(z: nnc.Tensor) -> None:
    for other in (copy.deepcopy(z), pickle.loads(pickle.dumps(z)), nnc.asarray(z, copy=True)):
        assert other.dtype == nnc.complex128 and (other.numpy() == z.numpy()).all()


# ---- values
def _parts(z: nnc.Tensor) -> nnc.Tensor:
    return nnc.complex(z.imag, z.real) - z.conj() * z.real


FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "arithmetic": (lambda z: (z * z - 2) / (z + 3j), lambda z: (z * z - 2) / (z + 3j)),
    "functions": (lambda z: nnc.exp(nnc.sin(z)) * nnc.sqrt(z) + nnc.log(z) * nnc.tanh(z) - nnc.cos(z),
                  lambda z: np.exp(np.sin(z)) * np.sqrt(z) + np.log(z) * np.tanh(z) - np.cos(z)),
    "power": (lambda z: z ** 2 + z ** (0.5 + 1j), lambda z: z**2 + z ** (0.5 + 1j)),
    "matmul": (lambda z: z @ z.conj().T, lambda z: z @ z.conj().T),
    "parts": (_parts, lambda z: (z.imag + 1j * z.real) - z.conj() * z.real),
    "abs": (lambda z: abs(z) * z, lambda z: abs(z) * z),
    "movement": (lambda z: nnc.concat([z.T[::-1], nnc.pad(z.T, ((0, 1), (0, 0)), value=0)]) * 1j,
                 lambda z: np.concatenate([z.T[::-1], np.pad(z.T, ((0, 1), (0, 0)))]) * 1j),
    "choice": (lambda z: nnc.where(z.real > 0, z, -1j), lambda z: np.where(z.real > 0, z, -1j)),
    "sums": (lambda z: nnc.sum(z, axis=0) / nnc.mean(z), lambda z: z.sum(0) / z.mean()),
    "equal": (lambda z: (z == z.conj()) | (z != 0), lambda z: (z == z.conj()) | (z != 0)),
}


@pytest.mark.parametrize("mode", ["eager", "deferred", "compiled"])
@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n != "equal"])
def test_values(z: nnc.Tensor, name: str, mode: str) -> None:
    ours, numpy = FUNCTIONS[name]
    np.testing.assert_allclose(in_mode(mode, ours, z).numpy(), numpy(z.numpy()), rtol=1e-12)


def test_strided_values(z: nnc.Tensor) -> None:
    np.testing.assert_array_equal((z.T[1:, ::2] + z.T[:-1, ::2]).numpy(), z.numpy().T[1:, ::2] + z.numpy().T[:-1, ::2])
    assert z.T[1:2].imag.tolist() == z.numpy().T[1:2].imag.tolist()


def test_real_numbers_have_parts() -> None:
    x = nnc.asarray([1.0, -2.0])
    assert nnc.real(x).tolist() == [1, -2] and nnc.imag(x).tolist() == [0, 0] and nnc.conj(x).tolist() == [1, -2]
    assert nnc.isrealobj(x) and nnc.iscomplexobj(x * 1j)


# ---- derivatives
def loss(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A real number of all parts of f(z)."""
    def total(z: Any) -> Any:
        y = f(z)
        weights = nnc.asarray(np.linspace(0.5, 1.5, y.size).reshape(y.shape))
        return nnc.sum(weights * (2 * nnc.real(y) - nnc.imag(y) * nnc.real(y)))
    return total


def differences(f: Callable[[Array], float], z: Array, h: float = 1e-6) -> Array:
    """dL/d(re z) + i dL/d(im z)"""
    g = np.zeros_like(z)
    for place in np.ndindex(z.shape):
        for unit in (1, 1j):
            step = np.zeros_like(z)
            step[place] = h * unit
            g[place] += unit * (f(z + step) - f(z - step)) / (2 * h)
    return g


DIFFERENTIABLE = [n for n in FUNCTIONS if n != "equal"]


@pytest.mark.parametrize("mode", ["eager", "compiled"])
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_are_conjugates(z: nnc.Tensor, name: str, mode: str) -> None:
    total = loss(FUNCTIONS[name][0])
    found = in_mode(mode, nnc.grad(total), z)
    assert found.dtype == nnc.complex128
    wanted = differences(lambda a: total(nnc.asarray(a)).item(), z.numpy())
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_tangents(z: nnc.Tensor, name: str) -> None:
    f, t, h = FUNCTIONS[name][0], drawn(3, 4, seed=1), 1e-6
    _, found = nnc.jvp(f, (z,), (nnc.asarray(t),))
    moved = [f(nnc.asarray(z.numpy() + s * h * t)).numpy() for s in (1, -1)]
    np.testing.assert_allclose(found.numpy(), (moved[0] - moved[1]) / (2 * h), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_second_order(z: nnc.Tensor, name: str) -> None:
    small = z[:2, :2]
    slope = loss(lambda w: nnc.grad(loss(FUNCTIONS[name][0]))(w))
    wanted = differences(lambda a: slope(nnc.asarray(a)).item(), small.numpy())
    np.testing.assert_allclose(nnc.grad(slope)(small).numpy(), wanted, rtol=1e-5, atol=1e-5)


def test_a_real_variable_in_complex_work_has_a_real_gradient(device: str) -> None:
    v = nnc.variable(nnc.asarray(np.array([0.5, -1.0])))
    nnc.sum(abs(nnc.exp(v * 1j) * v)).backward()
    assert v.grad is not None and v.grad.dtype == nnc.float64
    np.testing.assert_allclose(v.grad.numpy(), [1, -1], atol=1e-12)


def test_a_variable_may_be_complex(z: nnc.Tensor) -> None:
    v = nnc.variable(z)
    nnc.sum(nnc.real(v * v.conj())).backward()
    assert v.grad is not None
    np.testing.assert_allclose(v.grad.numpy(), 2 * z.numpy())


def test_what_is_differentiated_is_real(z: nnc.Tensor) -> None:
    with pytest.raises(nnc.Error, match="complex128"):
        nnc.grad(lambda z: nnc.sum(z))(z)


def test_gradient_descent_goes_downhill(device: str) -> None:
    """The root of z^3 = 1 that is next to where it begins."""
    z = nnc.asarray(np.array(-0.3 + 1.1j))
    step = nnc.jit(lambda z: z - 0.05 * nnc.grad(lambda z: nnc.abs(z * z * z - 1))(z) * nnc.abs(z * z * z - 1))
    for _ in range(100):
        z = step(z)
    assert abs(z.item() - np.exp(2j * np.pi / 3)) < 1e-6


# ---- loops, files, other libraries
def test_loops_carry_them(z: nnc.Tensor) -> None:
    def mandelbrot(c: nnc.Tensor) -> nnc.Tensor:
        return nnc.while_loop(lambda w, i: i < 5, lambda w, i: (w * w + c * 0.3, i + 1), (c * 0, nnc.asarray(0)))[0]

    w = z.numpy() * 0
    for _ in range(5):
        w = w * w + z.numpy() * 0.3
    np.testing.assert_allclose(nnc.jit(mandelbrot)(z).numpy(), w, rtol=1e-12)


def test_graph_files_keep_constants(z: nnc.Tensor, tmp_path: Any) -> None:
    with nnc.deferred():
        y = z * (2 - 1j) + nnc.full((4,), 1j, dtype="complex128")
    nnc.save_graph(nnc.export({"z": z}, {"y": y}), tmp_path / "g.nnc")
    found = nnc.load_graph(tmp_path / "g.nnc").compile(z.device.id)(z=z)["y"]
    assert (found.numpy() == y.numpy()).all()


def test_dlpack() -> None:
    host = drawn(3)
    assert (np.from_dlpack(nnc.asarray(host)) == host).all()
    assert nnc.from_dlpack(host).dtype == nnc.complex128


def test_a_device_without_them_says_so() -> None:
    with pytest.raises(nnc.Error, match="device has no complex128"):
        nnc.asarray(drawn(2), device="strict-nofloat64:0")


def test_nan_mode_sees_them(z: nnc.Tensor) -> None:
    with nnc.config.using(check_nan="nan"), pytest.raises(nnc.Error, match="divide"):
        (z * 0) / (z * 0)
