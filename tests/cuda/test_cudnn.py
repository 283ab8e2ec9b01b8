"""Convolutions by cuDNN, a stand-in for which does what its manual says: images and kernels in all their orders, both
gradients, what follows, and what is left to nnc's own tiles."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.command import Command
from nnc_core.base.config import config
from nnc_core.base.dtype import DType, bfloat16, float16, float32, float64
from nnc_core.base.errors import PluginError
from nnc_core.base.layout import Layout
from nnc_core.device import Buffer
from nnc_core.stacks import make_stack
from nnc_cuda.device import CudaDevice
from nnc_cuda.dnn import backend, cudnn
from nnc_cuda.dnn.backend import CudnnConvolutions
from nnc_cuda.dnn.cudnn import Cudnn
from nnc_cuda.driver import CudaError
from nnc_cuda.vendor import VendorLibraries
from tests.cpu.products.running import values
from tests.cuda.cudnn_problems import PROBLEMS, WRONG
from tests.cuda.host_compiler import HostCompiler, compiler
from tests.cuda.host_cudnn import PLAIN, Engine, FakeCudnn
from tests.cuda.host_driver import HostDriver
from tests.cuda.host_plugin import ID
from tests.cuda.real_cudnn import libraries, refused


@pytest.fixture
def dnn(driver: HostDriver) -> FakeCudnn:
    return FakeCudnn(driver)


@pytest.fixture
def gpu(driver: HostDriver, dnn: FakeCudnn) -> CudaDevice:
    if compiler() is None:
        pytest.skip("there is no C compiler")
    return CudaDevice(driver, HostCompiler(), ID, VendorLibraries(dnn=lambda driver: Cudnn(driver, dnn)))


def drawn(*shape: int, dtype: DType = float32) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def compare(gpu: CudaDevice, f: Callable[..., Any], *arrays: Any, traced: bool = False, rtol: float = 2e-5) -> Any:
    """The function on the device and on the processor; what the device gave."""
    expected = [np.asarray(x) for x in _results(f(*[nnc.asarray(x) for x in arrays]))]
    with nnc.use_device(make_stack(gpu)):
        given = [nnc.asarray(x) for x in arrays]
        run = nnc.jit(f) if traced else f
        found = [x.numpy() for x in _results(run(*given))]
    for a, b in zip(found, expected, strict=True):
        scale = float(np.abs(b.astype(np.float64)).max())
        np.testing.assert_allclose(a.astype(np.float64), b.astype(np.float64), rtol=rtol, atol=rtol * scale)
    return found


def _results(x: Any) -> Any:
    return x if isinstance(x, tuple) else (x,)


def steps_of(dnn: FakeCudnn) -> list[tuple[str, ...]]:
    return [steps for _, steps in dnn.calls]


@pytest.mark.parametrize("options", [
    {}, {"strides": 2, "padding": "SAME"}, {"padding": ((1, 2), (0, 1))}, {"dilation": 2, "padding": "SAME"}], ids=str)
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_images(gpu: CudaDevice, dnn: FakeCudnn, layout: str, options: dict[str, Any]) -> None:
    shapes = ((4, 19, 20, 8), (3, 3, 8, 16)) if layout == "NHWC" else ((4, 8, 19, 20), (16, 8, 3, 3))
    x, kernel = drawn(*shapes[0]), drawn(*shapes[1])
    compare(gpu, lambda x, k: nnc.conv2d(x, k, layout=layout, **options), x, kernel)
    assert dnn.calls == [("plain", ("conv",))]


@pytest.mark.parametrize("traced", [False, True], ids=["eager", "traced"])
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("groups", [1, 4])
def test_gradients(gpu: CudaDevice, dnn: FakeCudnn, layout: str, groups: int, traced: bool) -> None:
    shapes = (((4, 19, 20, 32), (3, 3, 32 // groups, 32)) if layout == "NHWC" else
              ((4, 32, 19, 20), (32, 32 // groups, 3, 3)))

    def loss(x: Any, kernel: Any) -> Any:
        y = nnc.conv2d(x, kernel, layout=layout, groups=groups, strides=2, padding="SAME")
        return nnc.sum(y * y * 0.01)

    compare(gpu, nnc.grad(loss, (0, 1)), drawn(*shapes[0]), drawn(*shapes[1]), traced=traced)
    found = {steps[0] for steps in steps_of(dnn)}
    assert found == {"conv", "conv_input_gradient", "conv_kernel_gradient"}


@pytest.mark.parametrize(("f", "shapes"), [
    (nnc.conv1d, ((4, 200, 8), (5, 8, 16))), (nnc.conv3d, ((1, 9, 8, 7, 8), (3, 2, 3, 8, 16)))], ids=["1", "3"])
def test_other_ranks(gpu: CudaDevice, dnn: FakeCudnn, f: Any, shapes: Any) -> None:
    x, kernel = drawn(*shapes[0]), drawn(*shapes[1])
    compare(gpu, nnc.grad(lambda x, k: nnc.sum(f(x, k, padding="SAME") ** 2), (0, 1)), x, kernel)
    assert len(dnn.calls) == 3


@pytest.mark.parametrize("dtype", [float16, bfloat16, float64], ids=str)
def test_other_dtypes(gpu: CudaDevice, dnn: FakeCudnn, dtype: DType) -> None:
    x, kernel = drawn(2, 8, 19, 20, dtype=dtype), drawn(16, 8, 3, 3, dtype=dtype)
    compare(gpu, lambda x, k: nnc.conv2d(x, k, layout="NCHW"), x, kernel, rtol=1e-12 if dtype == float64 else 1e-2)
    assert dnn.calls == [("on tensor cores", ("conv",))]


def test_halves_are_transposed_in_graphs_for_tensor_cores(gpu: CudaDevice, dnn: FakeCudnn) -> None:
    x, kernel = drawn(4, 16, 19, 20, dtype=float16), drawn(32, 16, 3, 3, dtype=float16)
    for dtype, turned in ((float16, True), (float32, False)):
        a, b = x.astype(dtype), kernel.astype(dtype)
        compare(gpu, lambda x, k: nnc.conv2d(nnc.tanh(nnc.conv2d(x, k, layout="NCHW"))[:, :16], k, layout="NCHW"), a, b,
                traced=True, rtol=2e-2 if turned else 1e-4)
        with nnc.use_device(make_stack(gpu)):
            text = nnc.jit(lambda x, k: nnc.conv2d(x, k, layout="NCHW")).explain(nnc.asarray(a), nnc.asarray(b))
        assert ("pack" in text) == turned and "cudnn" in text, text


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_what_follows(gpu: CudaDevice, dnn: FakeCudnn, layout: str) -> None:
    last = layout == "NHWC"
    x, kernel = (drawn(4, 19, 20, 8), drawn(3, 3, 8, 16)) if last else (drawn(4, 8, 19, 20), drawn(16, 8, 3, 3))
    bias = drawn(16) if last else drawn(16, 1, 1)
    added = drawn(4, 19, 20, 16) if last else drawn(4, 16, 19, 20)

    def layer(x: Any, kernel: Any, bias: Any, added: Any) -> Any:
        return nnc.relu(nnc.conv2d(x, kernel, layout=layout, padding="SAME") + added + bias)

    compare(gpu, layer, x, kernel, bias, added, traced=True)
    assert steps_of(dnn) == [("conv", "add", "add", "relu")]
    with config.using(deterministic=True):
        compare(gpu, layer, x, kernel, bias, added, traced=True)
    assert steps_of(dnn)[1:] == [("conv",)], "each step is rounded by itself"


def test_tensor_cores_round_float32_where_that_is_asked_for(gpu: CudaDevice, dnn: FakeCudnn) -> None:
    x, kernel = drawn(4, 19, 20, 8), drawn(3, 3, 8, 16)
    with nnc.use_device(make_stack(gpu)):
        a, b = nnc.asarray(x), nnc.asarray(kernel)
        for precision in ("float32", "tf32", "float32"):
            with config.using(matmul_precision=precision):
                nnc.conv2d(a, b).wait()
    assert [engine for engine, _ in dnn.calls] == ["plain", "on tensor cores", "plain"]


def test_engines_that_promise_too_little_are_left_out(gpu: CudaDevice, dnn: FakeCudnn) -> None:
    dnn.best = [Engine("sums of halves", (0, 2)), Engine("by Fourier", (3,)), Engine("in another order", (0, 4))]
    x, kernel = drawn(4, 19, 20, 8, dtype=float16), drawn(3, 3, 8, 16, dtype=float16)
    compare(gpu, nnc.conv2d, x, kernel, rtol=1e-2)
    assert [engine for engine, _ in dnn.calls] == ["plain"]


def test_what_no_plan_is_made_of_runs_by_tiles(gpu: CudaDevice, dnn: FakeCudnn) -> None:
    dnn.refused = {"plain", "on tensor cores", "unordered"}
    compare(gpu, nnc.conv2d, drawn(4, 19, 20, 8), drawn(3, 3, 8, 16))
    assert not dnn.calls


def test_what_is_left_to_other_code(gpu: CudaDevice) -> None:
    backend = backend_of(gpu, "conv")
    made = command(Layout.packed((4, 19, 20, 8), float32), Layout.packed((3, 3, 8, 16), float32))
    assert backend.refuse(made) is None
    for reason, other in {
            "too small": command(Layout.packed((1, 5, 5, 2), float32), Layout.packed((3, 3, 2, 2), float32)),
            "lie apart": made._replace(inputs=(Layout((4, 19, 20, 8), float32, 0, (40000, 1280, 64, 4)),
                                               made.inputs[1])),
            "lose pixels": made._replace(attributes=((1, 1), ((-1, 0), (0, 0)), (1, 1), 1, "NHWC")),
            "nothing to": command(Layout.packed((0, 19, 20, 8), float32), Layout.packed((3, 3, 8, 16), float32)),
            "made for": made._replace(name="conv_input_gradient")}.items():
        assert reason in (backend.refuse(other) or ""), reason


def backend_of(gpu: CudaDevice, name: str) -> CudnnConvolutions:
    found = [one for one in gpu.backends(name) if isinstance(one, CudnnConvolutions)]
    return found[0]


def command(x: Layout, kernel: Layout) -> Command:
    (n, h, w, _), (*window, _, outputs) = x.shape, kernel.shape
    shape = (n, h - window[0] + 1, w - window[1] + 1, outputs)
    return Command("conv", ((1, 1), ((0, 0), (0, 0)), (1, 1), 1, "NHWC"), (x, kernel),
                   (Layout.packed(shape, x.dtype),))


@pytest.mark.parametrize("shift", [0, 4, 8])
def test_arrays_anywhere(gpu: CudaDevice, dnn: FakeCudnn, shift: int) -> None:
    """A kernel with gaps is transposed from where it lies; arrays of other libraries are less aligned than ours."""
    kernel = Layout((3, 3, 8, 16), float32, 64, (3 * 8 * 20 * 4, 8 * 20 * 4, 80, 4))
    made = command(Layout.packed((4, 19, 20, 8), float32, 32), kernel)
    backend = backend_of(gpu, "conv")
    assert backend.refuse(made) is None
    layouts = [*made.inputs, made.output]
    arrays = [values(x, seed) for seed, x in enumerate(layouts)]
    whole: list[Any] = [gpu.allocate(array.nbytes + shift) for array in arrays]
    buffers: list[Buffer] = [gpu.view(one, shift, array.nbytes) for one, array in zip(whole, arrays, strict=True)]
    for array, buffer in zip(arrays, buffers, strict=True):
        gpu.upload(array, buffer)
    backend.prepare(made).bind([*buffers, gpu.allocate(backend.workspace(made))])()
    found = np.empty_like(arrays[-1])
    gpu.download(buffers[-1], found).wait()
    x, k = (np.lib.stride_tricks.as_strided(array[layout.offset // 4 :], layout.shape, layout.strides)
            for array, layout in zip(arrays[:2], layouts, strict=False))
    expected = np.asarray(nnc.conv2d(np.ascontiguousarray(x), np.ascontiguousarray(k))).ravel()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_networks_are_captured(gpu: CudaDevice, dnn: FakeCudnn, driver: HostDriver) -> None:
    x, kernel = drawn(4, 19, 20, 8), drawn(3, 3, 8, 8)
    with nnc.use_device(make_stack(gpu)):
        f = nnc.jit(lambda x, k: nnc.conv2d(nnc.tanh(nnc.conv2d(x, k)), k))
        a, b = nnc.asarray(x), nnc.asarray(kernel)
        for _ in range(4):
            found = f(a, b).numpy()
    expected = np.asarray(nnc.conv2d(nnc.tanh(nnc.conv2d(x, kernel)), kernel))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    assert driver.graph_launches and len(dnn.calls) < 8, "a graph does not call it again"


def test_constant_kernels_are_packed_once(gpu: CudaDevice, dnn: FakeCudnn) -> None:
    x, kernel = drawn(4, 19, 20, 8), drawn(3, 3, 8, 16)
    with nnc.use_device(make_stack(gpu)):
        f = nnc.jit(lambda x: nnc.conv2d(x, kernel))
        found = f(nnc.asarray(x)).numpy()
        text = f.explain(nnc.asarray(x))
    np.testing.assert_allclose(found, np.asarray(nnc.conv2d(x, kernel)), rtol=1e-4, atol=1e-4)
    assert "unpack conv" in text and "1 commands" in text, text
    assert dnn.calls == [("plain", ("conv",))]


def test_descriptors_go_with_what_they_describe(driver: HostDriver, dnn: FakeCudnn) -> None:
    library = Cudnn(driver, dnn)
    for problem in PROBLEMS.values():
        plan = library.plan(problem)
        assert plan is not None and library.plan(problem) is plan
    del plan, library
    gc.collect()
    assert not dnn.described


# ---- attention
@pytest.mark.parametrize("traced", [False, True], ids=["eager", "traced"])
@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
@pytest.mark.parametrize("key_heads", [4, 2])
def test_attention(gpu: CudaDevice, dnn: FakeCudnn, key_heads: int, causal: bool, traced: bool) -> None:
    query, key, value = (drawn(2, heads, rows, 16, dtype=float16)
                         for heads, rows in ((4, 40), (key_heads, 50), (key_heads, 50)))
    compare(gpu, lambda q, k, v: nnc.scaled_dot_product_attention(q, k, v, causal=causal), query, key, value,
            traced=traced, rtol=4e-3)
    assert steps_of(dnn) == [("attention",)]


def test_attention_of_projections(gpu: CudaDevice, dnn: FakeCudnn) -> None:
    """Heads behind rows, as projections leave them, in one array for all three."""
    x = drawn(2, 40, 3, 4, 16, dtype=bfloat16)

    def attend(x: Any) -> Any:
        query, key, value = (nnc.transpose(x[:, :, n], (0, 2, 1, 3)) for n in range(3))
        return nnc.scaled_dot_product_attention(query, key, value, causal=True)

    compare(gpu, attend, x, traced=True, rtol=2e-2)
    compare(gpu, attend, x, rtol=2e-2)
    assert steps_of(dnn) == [("attention",)] * 2


def squares(causal: bool = False) -> Callable[..., Any]:
    def loss(q: Any, k: Any, v: Any) -> Any:
        return nnc.sum(nnc.scaled_dot_product_attention(q, k, v, causal=causal).astype("float32") ** 2)

    return loss


@pytest.mark.parametrize("traced", [False, True], ids=["eager", "traced"])
@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
@pytest.mark.parametrize("key_heads", [4, 2])
def test_gradients_of_attention(gpu: CudaDevice, dnn: FakeCudnn, key_heads: int, causal: bool, traced: bool) -> None:
    query, key, value = (drawn(2, heads, rows, 16, dtype=float16)
                         for heads, rows in ((4, 40), (key_heads, 50), (key_heads, 50)))
    compare(gpu, nnc.grad(squares(causal), (0, 1, 2)), query, key, value, traced=traced, rtol=2e-2)
    ahead, back = steps_of(dnn)
    assert ahead == ("attention",) and back.count("product") == 5 and ("band" in back) == causal


def test_gradients_in_deferred_mode(gpu: CudaDevice, dnn: FakeCudnn) -> None:
    arrays = [drawn(2, 4, 40, 16, dtype=float16) for _ in range(3)]
    expected = nnc.grad(squares(), (0, 1, 2))(*map(nnc.asarray, arrays))
    with nnc.use_device(make_stack(gpu)), nnc.deferred():
        found = [x.numpy() for x in nnc.grad(squares(), (0, 1, 2))(*map(nnc.asarray, arrays))]
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a.astype(np.float32), np.asarray(b).astype(np.float32), rtol=2e-2, atol=2e-2)
    assert len(dnn.calls) == 2


def test_gradients_of_many_scores_take_memory_that_is_linear(gpu: CudaDevice, dnn: FakeCudnn,
                                                              monkeypatch: pytest.MonkeyPatch) -> None:
    """In no certain order, which is never taken where bits are promised."""
    monkeypatch.setattr(backend, "MOST_WORKSPACE", 2 * 4 * 40 * 40)
    arrays = [drawn(2, 4, 40, 16, dtype=float16) for _ in range(3)]
    compare(gpu, nnc.grad(squares(causal=True), (0, 1, 2)), *arrays, traced=True, rtol=2e-2)
    assert steps_of(dnn) == [("attention",), ("gradients",)]
    with config.using(deterministic=True):
        compare(gpu, nnc.grad(squares(causal=True), (0, 1, 2)), *arrays, traced=True, rtol=2e-2)
    assert "product" in steps_of(dnn)[-1]


@pytest.mark.parametrize("packs", [False, True])
def test_attention_of_arrays_anywhere(gpu: CudaDevice, dnn: FakeCudnn, packs: bool) -> None:
    """Features that lie apart, rows at odd places, sums with gaps: packed on the way."""
    backend = gpu.backends("scaled_dot_product_attention")[0]
    shape, size = (2, 4, 40, 16), 2
    even = Layout(shape, float16, 0, (4 * 40 * 16 * size, 16 * size, 4 * 16 * size, size))
    odd = Layout(shape, float16, 2, (4 * 40 * 18 * size, 40 * 18 * size, 18 * size, size))
    turned = Layout(shape, float16, 0, (4 * 40 * 16 * size, 40 * 16 * size, size, 40 * size))
    sums = Layout((2, 4, 40), float32, 0, (4 * 80 * 4, 80 * 4, 8))
    made = Command("scaled_dot_product_attention", (0.25, False, 0), (even, odd, turned), (odd, sums))
    if packs:
        dnn.best, dnn.others = [], []
        assert "no engine" in (backend.refuse(made) or "")
        dnn.best = [PLAIN]
        backend.dnn._plans.clear()  # type: ignore[attr-defined]
    assert backend.refuse(made) is None
    layouts = (*made.inputs, *made.outputs)
    arrays = [values(x, seed) for seed, x in enumerate(layouts)]
    buffers: list[Buffer] = [gpu.allocate(array.nbytes) for array in arrays]
    for array, buffer in zip(arrays, buffers, strict=True):
        gpu.upload(array, buffer)
    backend.prepare(made).bind([*buffers, gpu.allocate(backend.workspace(made))])()
    found = [np.empty_like(array) for array in arrays]
    for array, buffer in zip(found, buffers, strict=True):
        gpu.download(buffer, array).wait()
    seen = [np.lib.stride_tricks.as_strided(array[x.offset // x.dtype.itemsize :], x.shape, x.strides)
            for array, x in zip(found, layouts, strict=True)]
    query, key, value = (x.astype(np.float32) for x in seen[:3])
    scores = query @ key.swapaxes(-1, -2) * 0.25
    total = np.exp(scores).sum(-1)
    np.testing.assert_allclose(seen[4], np.log(total), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(seen[3].astype(np.float32), np.exp(scores) / total[..., None] @ value, rtol=4e-3,
                               atol=4e-3)


def test_attention_that_is_left_to_products(gpu: CudaDevice) -> None:
    backend = gpu.backends("scaled_dot_product_attention")[0]

    def reason(shape: tuple[int, ...], dtype: DType, causal: bool = False, offset: int = 0) -> str:
        x = Layout.packed(shape, dtype)
        made = Command("scaled_dot_product_attention", (0.25, causal, offset), (x, x, x),
                       (x, Layout.packed(shape[:-1], float32)))
        return backend.refuse(made) or ""

    right = (2, 4, 40, 16)
    assert "no attention of float32" in reason(right, float32)
    assert "too small" in reason((1, 1, 8, 8), float16)
    assert "no multiple of 8" in reason((2, 4, 40, 20), float16)
    assert not reason(right, float16, causal=True, offset=39)
    assert not reason(right, float16, causal=True, offset=3)


def test_the_stand_in_refuses_what_the_library_refuses(dnn: FakeCudnn) -> None:
    assert [name for name, problem in WRONG.items() if refused(dnn, problem)] == list(WRONG)


@pytest.mark.slow
def test_the_library_itself_makes_plans(tmp_path: Path) -> None:
    """Of all problems, for two devices that are described to it, on a machine that has none."""
    try:
        libraries()
    except PluginError as error:
        pytest.skip(f"{error.message}; `pip install nnc-cuda[cudnn12]` brings it")
    run = subprocess.run([sys.executable, "-m", "tests.cuda.real_cudnn", tmp_path], capture_output=True, text=True,
                         check=False)
    assert run.returncode == 0, run.stderr[-2000:]
    found = json.loads(run.stdout.splitlines()[-1])
    assert found.pop("refused") == list(WRONG)
    assert len(found) == 2 * len(PROBLEMS)
    assert not [name for name, workspace in found.items() if workspace is None]


def test_a_library_that_fails_is_said_and_one_that_is_not_there_is_not(
        driver: HostDriver, dnn: FakeCudnn, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(name: str) -> Any:
        raise PluginError(f"{name} cannot be loaded")

    monkeypatch.setattr(cudnn, "load", lambda name: dnn)
    assert isinstance(cudnn.open_dnn(driver), Cudnn)
    monkeypatch.setattr(dnn, "_cudnnCreate", lambda handle: 1002, raising=False)
    with pytest.warns(nnc.errors.FallbackWarning, match="cudnnCreate fails with status 1002"):
        assert cudnn.open_dnn(driver) is None
    monkeypatch.setattr(cudnn, "load", none)
    assert cudnn.open_dnn(driver) is None


def test_memory_that_is_missing_is_said(driver: HostDriver, dnn: FakeCudnn, monkeypatch: pytest.MonkeyPatch) -> None:
    library, problem = Cudnn(driver, dnn), next(iter(PROBLEMS.values()))
    monkeypatch.setattr(dnn, "_make", lambda plan: 4003)
    with pytest.raises(CudaError, match="as the stand-in says"):
        library.plan(problem)
