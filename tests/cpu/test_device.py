"""The device itself: memory, transfers, arrays in buffers, errors, and what the user's NumPy sees of it."""

from __future__ import annotations

import contextvars
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base import dtype as dt
from nnc_core.base.command import Command
from nnc_core.base.errors import DeviceError, DeviceMemoryError, OutOfRangeError
from nnc_core.base.layout import Layout
from nnc_core.operator import OPERATORS
from nnc_cpu import host, nnc_devices, nnc_diagnose, nnc_plugin_info
from nnc_cpu.device import CpuDevice
from nnc_cpu.eager import EAGER
from nnc_cpu.silence import run_quietly
from tests.plugins.fixtures.distributions import run_with


@pytest.fixture(scope="module")
def device() -> CpuDevice:
    return CpuDevice()


def test_the_plugin_offers_one_device_that_opens() -> None:
    (offer,) = nnc_devices({})
    assert offer.id == "cpu:0"
    assert offer.describe
    device = offer.open()
    assert device.spec.id == "cpu:0"
    assert device.spec.dtypes == frozenset(dt.ALL_DTYPES)
    assert nnc_plugin_info()["name"] == "cpu"
    assert any(np.__version__ in line for line in nnc_diagnose({}))


def test_importing_the_plugin_imports_no_kernel() -> None:
    code = "import sys, nnc_cpu; print('numpy' in sys.modules, any(m.startswith('nnc_cpu.') for m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


@pytest.mark.parametrize("nbytes", [1, 64, 1000, 1 << 20])
def test_buffers_are_aligned(device: CpuDevice, nbytes: int) -> None:
    buffer = device.allocate(nbytes)
    assert buffer.nbytes == nbytes
    assert buffer.ctypes.data % device.spec.alignment == 0


@pytest.mark.parametrize("nbytes", [1 << 50, 1 << 63, 1 << 70])
def test_more_memory_than_there_is_is_an_error_that_says_so(device: CpuDevice, nbytes: int) -> None:
    with pytest.raises(DeviceMemoryError, match=f"{nbytes:,} bytes"):
        device.allocate(nbytes)
    assert device.allocate(16).nbytes == 16


def test_transfers_and_views(device: CpuDevice) -> None:
    source, target = device.allocate(256), device.allocate(128)
    data = np.arange(256, dtype=np.uint8)
    device.upload(data, source).wait()
    device.copy(device.view(source, 64, 100), target).wait()
    back = np.empty(100, np.uint8)
    device.download(target, back).wait()
    assert back.tolist() == data[64:164].tolist()
    with pytest.raises(DeviceError, match="do not lie within"):
        device.view(source, 192, 100)


@pytest.mark.parametrize("pattern", [b"\x01", b"\x01\x02", b"abcd", b"abcdefgh"])
def test_fill_repeats_a_pattern_to_the_last_byte(device: CpuDevice, pattern: bytes) -> None:
    buffer = device.allocate(21)
    device.fill(buffer, pattern).wait()
    assert buffer.tobytes() == (pattern * 21)[:21]


def test_host_arrays_with_gaps_are_refused(device: CpuDevice) -> None:
    buffer, host = device.allocate(64), np.zeros((4, 4), np.float32)
    for transfer in (lambda: device.download(buffer, host[:, ::2]), lambda: device.upload(host.T[:, :2], buffer)):
        with pytest.raises(DeviceError, match="without gaps"):
            transfer()


@pytest.mark.parametrize("array", [
    np.arange(24, dtype=np.float32).reshape(4, 6)[1:, ::2], np.arange(6.0).reshape(2, 3).T, np.float32(3),
    np.broadcast_to(np.arange(3), (4, 3)), np.empty((0, 3)), np.array(1, dt.bfloat16), np.ones((2, 1, 3))[:, :, 1:],
    dt.bfloat16.type(2),
], ids=repr)  # fmt: skip
def test_an_array_is_found_again_in_its_own_memory(device: CpuDevice, array: Any) -> None:
    again = device.array(device.buffer_of(array), device.layout_of(array))
    assert (again.dtype, again.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(np.asarray(again, np.float64), np.asarray(array, np.float64))
    if isinstance(array, np.ndarray) and array.size and array.flags.writeable:
        assert np.shares_memory(again, array)


def test_a_loop_nest_is_computed(device: CpuDevice) -> None:
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(12, dtype=np.float32).reshape(3, 4)
    layouts = device.layout_of(a), device.layout_of(b)
    out = Layout.packed((2, 4), dt.float32)
    nest = OPERATORS["matmul"].nest
    assert nest is not None
    kernel = device.compile(nest(Command("matmul", (False, False), layouts, (out,))))
    buffer = device.allocate(32)
    kernel.bind([device.buffer_of(a), device.buffer_of(b), buffer])()
    np.testing.assert_allclose(device.array(buffer, out), a @ b)


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint8, np.uint64])
def test_an_index_out_of_range_is_named(device: CpuDevice, dtype: Any) -> None:
    x, indices = np.arange(5.0), np.array([0, 4, 5], dtype)
    with pytest.raises(OutOfRangeError, match=r"index 5 .* length 5"):
        device.eager["take"](x, indices, 0, 0)
    with pytest.raises(OutOfRangeError, match="index 5"):
        device.eager["scatter"](x, indices, np.zeros(3), 0, "add", 0)
    assert device.eager["take"](x, indices[:2], 0, 0).tolist() == [0, 4]


def test_a_failing_scatter_in_place_writes_nothing(device: CpuDevice) -> None:
    x, indices, updates = np.arange(4.0), np.array([0, -5]), np.full(2, 9.0)
    layouts = tuple(map(device.layout_of, (x, indices, updates)))
    command = Command("scatter", (0, "set", 0), layouts, layouts[:1])
    for backend in device.backends("scatter"):
        buffers = [device.buffer_of(array) for array in (x, indices, updates, x)]
        note = [device.allocate(backend.workspace(command))] if backend.workspace(command) else []
        with pytest.raises(OutOfRangeError, match="index -5"):
            backend.prepare(command).bind([*buffers, *note])()
        assert x.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("dtype", dt.FLOATS, ids=str)
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "power", "maximum", "less", "equal"])
def test_python_numbers_take_the_dtype_of_the_array(device: CpuDevice, name: str, dtype: Any) -> None:
    x = np.array([1.5, -2.0, 2.3, 0.1]).astype(dtype)
    for number in (2.3, 2):
        weak = np.asarray(number).astype(dtype)
        for arguments, alike in (((x, number), (x, weak)), ((number, x), (weak, x))):
            actual, wanted = device.eager[name](*arguments), device.eager[name](*alike)
            assert actual.dtype == wanted.dtype == (dt.boolean if name in ("less", "equal") else dtype)
            np.testing.assert_array_equal(np.asarray(actual, np.float64), np.asarray(wanted, np.float64))


@pytest.mark.parametrize("dtype", dt.FLOATS, ids=str)
def test_python_numbers_in_choices(dtype: Any) -> None:
    for size in (4, 10_000):
        x = np.linspace(-2, 2, size).astype(dtype)
        for arguments in ((x > 0, x, 0.5), (x > 0, 1, x), (x > 0, 0.25, x)):
            result = EAGER["where"](*arguments)
            c, a, b = arguments
            wanted = np.where(c, np.asarray(a, np.float64), np.asarray(b, np.float64))
            assert result.dtype == dtype
            np.testing.assert_array_equal(np.asarray(result, np.float64), wanted)
        assert EAGER["clip"](x, -0.5, 1).dtype == dtype


def test_a_number_that_the_dtype_cannot_hold_is_left_to_others(device: CpuDevice) -> None:
    x = np.arange(4, dtype=np.uint8)
    for arguments in (("add", x, 300), ("multiply", -1, x), ("where", x > 1, x, 300), ("clip", x, 0, 300)):
        assert device.eager[arguments[0]](*arguments[1:]) is NotImplemented


def test_the_users_error_settings_stay_and_are_not_heeded(device: CpuDevice) -> None:
    x = np.array([0.0, -1.0, 1e308, np.nan])
    with np.errstate(all="raise"):
        before = np.geterr()
        for name in ("log", "sqrt", "exp"):
            device.eager[name](x)
        device.eager["divide"](x, 0.0)
        device.eager["multiply"](x, 1e10)
        device.eager["sum"](np.array([np.inf, -np.inf]), (0,), False)
        device.eager["cast"](x, np.dtype(np.int8))
        device.eager["sigmoid"](x)
        assert np.geterr() == before
        with pytest.raises(FloatingPointError):
            np.log(x)


def test_a_taken_context_is_got_around(device: CpuDevice) -> None:
    """As when another thread, or a finaliser in the middle of a kernel, computes at the same time."""
    x = np.array([-1.0, 4.0])
    column = x[:, None]
    calls = (("log", (x,)), ("add", (x, x)), ("sum", (x, (0,), False)),
             ("matmul", (column, column, True, False)), ("softmax", (column, 0)))

    def results() -> list[Any]:
        return [device.eager[name](*arguments) for name, arguments in calls]

    for inside, outside in zip(run_quietly(results), results(), strict=True):
        np.testing.assert_array_equal(inside, outside)


def test_errors_that_kernels_raise_come_through(device: CpuDevice) -> None:
    with pytest.raises(ValueError, match="broadcast"):
        device.eager["add"](np.ones(3), np.ones(4))


def test_threads_compute_at_once(device: CpuDevice) -> None:
    x, failures = np.linspace(0.1, 1, 50_000), []
    wanted = np.log(x) * x

    def work() -> None:
        try:
            for _ in range(30):
                np.testing.assert_array_equal(device.eager["multiply"](device.eager["log"](x), x), wanted)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=contextvars.copy_context().run, args=(work,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_matrix_times_itself_is_a_matrix_times_its_equal(device: CpuDevice) -> None:
    """NumPy would compute the first as a symmetric product, with other bits."""
    x = np.random.default_rng(0).standard_normal((65, 65)).astype(np.float32)
    for ta, tb in ((True, False), (False, True)):
        same = device.eager["matmul"](x, x, ta, tb)
        assert same.tobytes() == device.eager["matmul"](x, x.copy(), ta, tb).tobytes()


def test_small_depthwise_convolutions_run_by_their_loop_nests() -> None:
    rng = np.random.default_rng(0)
    x, k = (nnc.asarray(rng.standard_normal(shape).astype(np.float32)) for shape in ((1, 5, 5, 20), (3, 3, 1, 20)))
    with nnc.deferred():
        y = nnc.relu(nnc.conv2d(x, k, padding="SAME", groups=20))
    run = nnc.export({"x": x, "k": k}, {"y": y}).compile()
    assert "fused(conv relu)" in run.explain() and "[loop nest; " in run.explain()
    apart = np.maximum(np.asarray(nnc.conv2d(x, k, padding="SAME", groups=20)), 0)
    np.testing.assert_allclose(np.asarray(run(x=x, k=k)["y"]), apart, rtol=1e-5, atol=1e-5)


def test_the_diagnosis_says_what_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = host.diagnosis()
    assert any(line.startswith("machine code: LLVM ") and line.endswith(" float32") for line in lines)
    monkeypatch.setitem(sys.modules, "llvmlite.binding", None)
    assert any("pip install llvmlite" in line for line in host.diagnosis())


def test_without_llvm_all_is_numpy_and_it_is_said_once() -> None:
    """In a process of its own, which has never loaded it."""
    code = """
import sys, warnings
sys.modules["llvmlite"] = sys.modules["llvmlite.binding"] = None
import numpy as np
import nnc_core as nnc
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    x = nnc.asarray(np.linspace(-2, 2, 24, dtype=np.float32).reshape(4, 6), device="cpu:0")
    def f(x): return nnc.sum(nnc.gelu(x @ x.T) * nnc.softmax(x @ x.T, axis=-1))
    both = float(f(x)), float(nnc.jit(f)(x)), np.asarray(nnc.jit(nnc.grad(f))(x)), np.asarray(nnc.grad(f)(x))
assert abs(both[0] - both[1]) < 1e-4 and np.allclose(both[2], both[3], atol=1e-4), both
print(*[warning.message for warning in said], sep="\\n")
print("llvmlite" in str([name for name, module in sys.modules.items() if module is not None]))
"""
    said, loaded = run_with([], code).splitlines()
    assert "llvmlite is not installed" in said and loaded == "False"
