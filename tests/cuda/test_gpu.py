"""A GPU itself, where there is one (`-m gpu` chooses these): what the driver's calls do that the other tests have a
stand-in for.  It needs pytest and nnc alone, and runs on the device that NNC_CUDA_DEVICE names."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import Error
from nnc_core.device import Device
from nnc_core.stacks import stack_for
from nnc_cuda.dnn import backend

ID = os.environ.get("NNC_CUDA_DEVICE", "cuda:0")
HOST = np.arange(12, dtype=np.float32).reshape(3, 4)
pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def gpu() -> Device:
    try:
        return stack_for(ID).device
    except Error as error:
        pytest.skip(f"no {ID}: {error.message}")


@pytest.fixture
def here(gpu: Device) -> Any:
    with nnc.use_device(ID):
        yield gpu


@pytest.mark.parametrize("nbytes", [0, 1, 4096, (16 << 20) + 4, 64 << 20])
def test_there_and_back(gpu: Device, nbytes: int) -> None:
    sent = np.random.default_rng(0).integers(0, 256, nbytes).astype(np.uint8)
    buffer, back = gpu.allocate(max(nbytes, 1)), np.zeros_like(sent)
    gpu.upload(sent, buffer)
    gpu.download(buffer, back).wait()
    assert (back == sent).all()


def test_gates_hold_work_back(gpu: Device) -> None:
    stream, sent, back = gpu.stream(), np.ones(1000, np.float32), np.zeros(1000, np.float32)
    buffer = gpu.allocate(sent.nbytes)
    gpu.upload(np.zeros_like(sent), buffer).wait()
    gate = stream.gate()
    assert gate is not None, "the driver has no cuStreamWaitValue32"
    gpu.upload(sent, buffer, stream)
    event = gpu.download(buffer, back, stream)
    assert not event.done and not back.any()
    gate.open()
    event.wait()
    assert (back == 1).all()


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64", "int64", "int8"])
def test_sums_and_products(here: Device, dtype: str) -> None:
    rng = np.random.default_rng(0)
    a, b = (nnc.asarray(rng.integers(-3, 4, shape)).astype(dtype) for shape in ((70, 130), (130, 90)))
    for function in (lambda a, b: nnc.sum(a + a, axis=0), lambda a, b: a @ b):
        ours, theirs = function(a, b), function(a.to("cpu:0"), b.to("cpu:0"))
        np.testing.assert_allclose(ours.numpy().astype(float), theirs.numpy().astype(float), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_layers(here: Device, dtype: str) -> None:
    """A product with all that its library may take along; a NaN stays in its row."""
    rng = np.random.default_rng(0)
    shapes = (128, 256), (256, 192), (192,), (128, 192)
    x, w, b, r = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    x[3, 5] = np.nan
    given = [nnc.asarray(one).astype(dtype) for one in (x, w, b, r)]
    layer = nnc.jit(lambda x, w, b, r: nnc.relu(x @ w + b + r))
    ours, theirs = layer(*given), layer(*[one.to("cpu:0") for one in given])
    found = ours.numpy().astype(float)
    np.testing.assert_allclose(found, theirs.numpy().astype(float), rtol=3e-2, atol=3e-2)
    assert np.isnan(found[3]).all() and np.isfinite(np.delete(found, 3, 0)).all()


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_convolutional_layers(here: Device, dtype: str, layout: str) -> None:
    """By cuDNN where it is installed, and their gradients; a NaN goes no further than windows see it."""
    rng, last = np.random.default_rng(0), layout == "NHWC"
    shapes = ((2, 20, 18, 16), (3, 3, 16, 32), (32,)) if last else ((2, 16, 20, 18), (32, 16, 3, 3), (32, 1, 1))
    x, w, b = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    given = [nnc.asarray(one).astype(dtype) for one in (x, w, b)]

    def layer(x: nnc.Tensor, w: nnc.Tensor, b: nnc.Tensor) -> nnc.Tensor:
        return nnc.relu(nnc.conv2d(x, w, layout=layout, strides=2, padding="SAME") + b)

    gradients = nnc.grad(lambda *args: nnc.sum(layer(*args).astype("float32") ** 2), (0, 1, 2))
    for f in (lambda *args: (layer(*args),), gradients):
        ours, theirs = nnc.jit(f)(*given), f(*[one.to("cpu:0") for one in given])
        for found, wanted in zip(ours, theirs, strict=True):
            a, b_ = found.numpy().astype(float), wanted.numpy().astype(float)
            np.testing.assert_allclose(a, b_, rtol=3e-2, atol=3e-2 * np.abs(b_).max())
    x[1, 3, 3] = np.nan
    found = nnc.jit(layer)(nnc.asarray(x).astype(dtype), *given[1:]).numpy().astype(float)
    assert np.isnan(found[1]).any() and np.isfinite(found[0]).all()


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_attention(here: Device, dtype: str, causal: bool, ordered: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Halves by cuDNN where it is installed, gradients in both of its forms; no query sees a key behind it."""
    rng, rows = np.random.default_rng(0), 72 if ordered else 88
    if not ordered:
        monkeypatch.setattr(backend, "MOST_WORKSPACE", 0)
    query, key, value = (rng.standard_normal((2, heads, rows, 32)).astype(np.float32) for heads in (4, 2, 2))
    given = [nnc.asarray(one).astype(dtype) for one in (query, key, value)]

    def attend(*args: nnc.Tensor) -> nnc.Tensor:
        return nnc.scaled_dot_product_attention(*args, causal=causal)

    gradients = nnc.grad(lambda *args: nnc.sum(attend(*args).astype("float32") ** 2), (0, 1, 2))
    for f in (lambda *args: (attend(*args),), gradients):
        ours, theirs = nnc.jit(f)(*given), f(*[one.to("cpu:0") for one in given])
        for found, wanted in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(found.numpy().astype(float), wanted.numpy().astype(float), rtol=3e-2, atol=3e-2)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", ["boolean", "added", "lengths", "offset"])
def test_attention_with_masks(here: Device, kind: str, causal: bool) -> None:
    """Query 3 sees nothing, and the second sequence has no keys; numbers are added to scaled scores."""
    rng = np.random.default_rng(0)
    given = [nnc.asarray(rng.standard_normal((2, heads, 72, 32))).astype("float16") for heads in (4, 2, 2)]
    seen = rng.random((4, 72, 72)) > 1 / 3
    seen[:, 3] = False
    mask = nnc.asarray(seen if kind == "boolean" else np.where(seen, rng.standard_normal(seen.shape), -np.inf))
    lengths = nnc.asarray(np.array([50, 0]))

    def attend(query: Any, key: Any, value: Any) -> Any:
        near = query.device
        if kind in ("boolean", "added"):
            return nnc.scaled_dot_product_attention(query, key, value, mask.to(near), causal=causal)
        options: dict[str, Any] = {"offset": -5, "causal": True} if kind == "offset" else {"causal": causal}
        return nnc.scaled_dot_product_attention(query, key, value, key_lengths=lengths.to(near), **options)

    gradients = nnc.grad(lambda *args: nnc.sum(attend(*args).astype("float32") ** 2), (0, 1, 2))
    for f in (lambda *args: (attend(*args),), gradients):
        ours, theirs = nnc.jit(f)(*given), f(*[one.to("cpu:0") for one in given])
        for found, wanted in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(found.numpy().astype(float), wanted.numpy().astype(float), rtol=3e-2, atol=3e-2)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "uint8"])
def test_sorts_and_scatters(here: Device, dtype: str) -> None:
    """The bits of cpu:0: equal numbers stay as they came, updates of one element are put together in their order."""
    rng = np.random.default_rng(0)
    x = nnc.asarray(rng.integers(0, 50, (70, 1100)).astype(dtype))
    at = nnc.asarray(rng.integers(0, 70, 300))
    updates = nnc.asarray(rng.integers(0, 3, (300, 1100)).astype(dtype))
    for function in (lambda x, at, u: nnc.argsort(x, axis=1), lambda x, at, u: nnc.sort(x, axis=0, descending=True),
                     lambda x, at, u: x.at[at].add(u), lambda x, at, u: x.at[at].set(u)):
        ours, theirs = function(x, at, updates), function(*[y.to("cpu:0") for y in (x, at, updates)])
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint64"])
def test_long_rows_are_sorted_by_digits(here: Device, dtype: str) -> None:
    """The bits of cpu:0, numbers that are none among them."""
    bits = np.random.default_rng(0).integers(0, 256, (2, 300_000, np.dtype(dtype).itemsize), np.uint8)
    x = nnc.asarray(bits.view(dtype)[..., 0])
    for descending in (False, True):
        ours, theirs = (nnc.argsort(one, axis=1, descending=descending) for one in (x, x.to("cpu:0")))
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_determinants_of_complex_matrices(here: Device, dtype: str) -> None:
    rng = np.random.default_rng(0)
    a = ((rng.standard_normal((3, 40, 40)) + 1j * rng.standard_normal((3, 40, 40))) / 6).astype(dtype)
    sign, log = nnc.linalg.slogdet(nnc.asarray(a))
    signs, logs = np.linalg.slogdet(a)
    np.testing.assert_allclose(sign.numpy(), signs, rtol=1e-3 if dtype == "complex64" else 1e-10)
    np.testing.assert_allclose(log.numpy(), logs, rtol=1e-3 if dtype == "complex64" else 1e-10)
    np.testing.assert_allclose(nnc.linalg.det(nnc.asarray(a)).numpy(), np.linalg.det(a),
                               rtol=1e-3 if dtype == "complex64" else 1e-10)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("length", [4096, 1000, 61])
def test_fourier_transforms(here: Device, dtype: str, length: int) -> None:
    x = np.random.default_rng(0).standard_normal((6, length)).astype(dtype)
    ours = nnc.asarray(x)
    bound = 1e-12 if dtype == "float64" else 1e-5
    for found, wanted in ((nnc.fft.fftn(ours), np.fft.fftn(x)), (nnc.fft.rfft(ours), np.fft.rfft(x)),
                          (nnc.fft.irfft(nnc.fft.rfft(ours), n=length), x)):
        assert np.abs(found.numpy() - wanted).max() < bound * np.abs(wanted).max()


def test_steps_as_graphs(here: Device) -> None:
    """Buffers come together again and are captured; another input is right all the same."""
    step = nnc.jit(lambda x, y: nnc.tanh(x @ y) + nnc.sum(x, axis=1, keepdims=True))
    rng = np.random.default_rng(0)
    y = nnc.asarray(rng.standard_normal((64, 64)).astype(np.float32))
    for _ in range(12):
        x = rng.standard_normal((64, 64)).astype(np.float32)
        found = step(nnc.asarray(x), y).numpy()
        np.testing.assert_allclose(found, np.tanh(x @ y.numpy()) + x.sum(1, keepdims=True), rtol=1e-4, atol=1e-4)


def test_graphs_follow_other_arrays(here: Device) -> None:
    """Inputs that are never the same array, of which few kernels know."""
    def deep(x: nnc.Tensor) -> nnc.Tensor:
        for _ in range(6):
            x = nnc.cumsum(x, axis=1) / 8
        return x

    compiled, rng = nnc.jit(deep), np.random.default_rng(0)
    for _ in range(12):
        x = rng.standard_normal((64, 64)).astype(np.float32)
        expected = x
        for _ in range(6):
            expected = np.cumsum(expected, axis=1) / np.float32(8)
        np.testing.assert_allclose(compiled(nnc.asarray(x)).numpy(), expected, rtol=1e-3, atol=1e-3)


def test_clocks_and_memory(here: Device) -> None:
    stream = here.default_stream
    first = stream.record(timed=True)
    kept = nnc.zeros((1 << 20,)) + 1
    last = stream.record(timed=True)
    last.wait()
    assert (last.seconds_since(first) or 0) > 0 and kept.shape == (1 << 20,)
    info = here.memory_info()
    assert info.free is not None and info.total is not None and info.free <= info.total and info.used >= 4 << 20


def test_too_much_memory_is_an_error_of_its_own(here: Device) -> None:
    with pytest.raises(nnc.errors.DeviceMemoryError):
        here.allocate(1 << 50)
    assert (nnc.ones((3,)) + 1).numpy().tolist() == [2, 2, 2]


@pytest.mark.parametrize("library", ["torch", "cupy"])
def test_exchange_without_copies(here: Device, library: str) -> None:
    """DLPack both ways: the same memory, in the order of both streams."""
    other: Any = pytest.importorskip(library)
    if here.dlpack_device is None or here.dlpack_device[0] != 2:
        pytest.skip("no memory of CUDA")
    theirs = other.arange(12, dtype=other.float32).reshape(3, 4)
    theirs = theirs.to("cuda") if library == "torch" else theirs
    ours = nnc.from_dlpack(theirs)
    np.testing.assert_array_equal((ours + 1).numpy(), HOST + 1)
    theirs[0, 0] = 50
    if library == "torch":
        other.cuda.synchronize()
    assert ours.numpy()[0, 0] == 50, "it was copied"
    made = nnc.asarray(HOST) * 3
    back = other.from_dlpack(made)
    pointer = back.data_ptr() if library == "torch" else back.data.ptr
    np.testing.assert_array_equal(back.cpu().numpy() if library == "torch" else other.asnumpy(back), HOST * 3)
    assert pointer == made.__cuda_array_interface__["data"][0]


def test_gpus_copy_from_each_other(here: Device) -> None:
    others = [spec.id for spec in nnc.devices() if spec.kind == here.spec.kind and spec.id != here.spec.id]
    if not others:
        pytest.skip("there is one GPU")
    np.testing.assert_array_equal((nnc.asarray(HOST) + 1).to(others[0]).numpy(), HOST + 1)
