"""Memory shared with NumPy and by DLPack; what NumPy makes of tensors, and tensors of NumPy."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from tests.tensors.faults import fails
from tests.tensors.values.sharing import HOST, LAYOUTS, shares_memory


# ---- asarray(copy=False)
def test_a_device_shares_host_memory_or_refuses(device: str) -> None:
    a = HOST.copy()
    if not shares_memory(device):
        with fails(ValueError, "cannot be shared", device, "copy=None", line=False):
            nnc.asarray(a, copy=False)
        assert nnc.asarray(a, copy=None).tolist() == nnc.asarray(a, copy=True).tolist() == HOST.tolist()
        return
    x = nnc.asarray(a, copy=False)
    a[0, 0] = 100
    assert x[0, 0].item() == 100 and (x + 1)[0, 0].item() == 101 and x._value.borrowed


def test_only_the_cpu_of_the_built_in_devices_shares() -> None:
    found = {id: shares_memory(id) for id in ("cpu:0", "strict:0", "strict-async:0", "null:0")}
    assert found == {"cpu:0": True, "strict:0": False, "strict-async:0": False, "null:0": False}


@pytest.mark.parametrize("given", [
    lambda: [1.0, 2.0], lambda: 3.0, lambda: (1, 2), lambda: np.ones(3, ">f4"),
    lambda: np.frombuffer(b"\0" * 9, np.uint8)[1:].view(np.float32), lambda: np.ones(3, "f4,f4")["f1"][:0].view(">f4"),
], ids=["list", "number", "tuple", "byte order", "unaligned", "byte order, empty"])  # fmt: skip
def test_what_has_no_memory_to_share_is_refused(device: str, given: Callable[[], Any]) -> None:
    with fails(ValueError, "cannot be shared", line=False):
        nnc.asarray(given(), copy=False)
    np.testing.assert_array_equal(nnc.asarray(given()).numpy(), np.asarray(given()))


def test_another_dtype_or_device_needs_a_copy(device: str) -> None:
    with fails(ValueError, "cannot be shared", line=False):
        nnc.asarray(HOST, dtype="float64", copy=False)
    x = nnc.asarray(HOST)
    assert nnc.asarray(x, copy=False)._value is x._value
    with fails(ValueError, "int32", "without a copy", line=False):
        nnc.asarray(x, dtype="int32", copy=False)
    other = "strict:0" if device != "strict:0" else "cpu:0"
    with fails(ValueError, other, line=False):
        nnc.asarray(x, device=other, copy=False)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint16", "bool", "bfloat16"])
def test_any_layout_is_read_where_it_lies(sharing: str, layout: str, dtype: str) -> None:
    a = LAYOUTS[layout](HOST.astype(np.dtype(dtype)))
    a.flags.writeable = False
    x = nnc.asarray(a, copy=False)
    assert x.shape == a.shape and x.dtype == a.dtype
    assert np.shares_memory(a, np.asarray(x, copy=False)) or not a.size
    np.testing.assert_array_equal(x.numpy(), a)
    wanted = a.astype(np.float64) * 2
    np.testing.assert_array_equal((x.astype("float64") * 2).numpy(), wanted)
    np.testing.assert_array_equal(nnc.sum(x.astype("float64") * 2).numpy(), wanted.sum())
    np.testing.assert_array_equal(nnc.jit(lambda t: t.astype("float64") + t.astype("float64"))(x).numpy(), wanted)
    if a.ndim:
        np.testing.assert_array_equal(x[:1].numpy(), a[:1])
        np.testing.assert_array_equal(nnc.flip(x).numpy(), np.flip(a))
        np.testing.assert_array_equal(x.to("strict:0").numpy(), a)


# ---- what happens when the array is changed
@pytest.mark.parametrize("view", [
    lambda x: x[0], lambda x: x[:, 1:], lambda x: x.T, lambda x: x.reshape(3, 2), lambda x: x.copy(), lambda x: x + 0,
    lambda x: nnc.broadcast_to(x, (2, 2, 3)), lambda x: nnc.stop_gradient(x), lambda x: nnc.asarray(x, copy=True),
    lambda x: nnc.squeeze(nnc.expand_dims(x), axis=0), lambda x: nnc.concat([x]), lambda x: nnc.flip(nnc.flip(x)),
    lambda x: nnc.where(nnc.asarray(True), x, x), lambda x: nnc.variable(x), lambda x: nnc.Cell(x).read(),
    lambda x: nnc.clip(x, 0, 100), lambda x: x.at[0, 0].set(0), lambda x: nnc.jit(lambda t: t)(x),
    lambda x: nnc.jit(lambda: x[...])(), lambda x: nnc.jit(lambda: x)(), lambda x: copy.deepcopy(x),
    lambda x: x.to("strict:0"), lambda x: nnc.value_and_grad(lambda t: (t.sum(), t), has_aux=True)(x)[0][1],
    lambda x: nnc.softmax(x) * 0 + x, lambda x: nnc.Parameter(x).read() if hasattr(nnc, "Parameter") else x * 1,
])  # fmt: skip
def test_what_is_computed_keeps_what_was_there(sharing: str, view: Callable[[nnc.Tensor], nnc.Tensor]) -> None:
    a = HOST.copy()
    y = view(nnc.asarray(a, copy=False))
    before = y.numpy()
    a[...] = -1
    np.testing.assert_array_equal(y.numpy(), before)
    assert not y._value.borrowed


@pytest.mark.parametrize("same", [
    lambda x: nnc.asarray(x), lambda x: x.to(x.device.id), lambda x: x.astype(x.dtype, copy=False),
    lambda x: x.detach(), lambda x: +x, copy.copy, nnc.positive,
], ids=["asarray", "to", "astype", "detach", "+", "copy.copy", "positive"])  # fmt: skip
def test_another_handle_of_the_value_shows_the_array(sharing: str, same: Callable[[nnc.Tensor], nnc.Tensor]) -> None:
    a = HOST.copy()
    y = same(nnc.asarray(a, copy=False))
    a[...] = -1
    assert (y.numpy() == -1).all()


def test_a_tensor_never_writes_to_the_array(sharing: str) -> None:
    a = HOST.copy()
    x = nnc.asarray(a, copy=False)
    x += 1
    x[0] = 9
    x.at[1].set(7)
    np.testing.assert_array_equal(a, HOST)
    a[...] = -1
    assert x.tolist() == [[9, 9, 9], [4, 5, 6]], "the handle was rebound: it shares nothing any more"
    with nnc.use_device(sharing):
        v = nnc.asarray(a, copy=False)
        step = nnc.jit(lambda t: t * 0)
        step(v)
    assert (a == -1).all()


def test_a_deferred_step_keeps_what_was_there_when_it_was_recorded(sharing: str) -> None:
    a = HOST.copy()
    x = nnc.asarray(a, copy=False)
    with nnc.deferred():
        y = x * 2 + x
        z = x[0]
    a[...] = -1
    with nnc.deferred():
        w = x * 2
    a[...] = -5
    np.testing.assert_array_equal(y.numpy(), HOST * 3)
    np.testing.assert_array_equal(z.numpy(), HOST[0])
    assert (w.numpy() == -2).all() and (x.numpy() == -5).all()


def test_a_backward_pass_uses_what_was_there(sharing: str) -> None:
    a = np.array([3.0, 4.0], np.float32)
    x, w = nnc.variable([1.0, 2.0]), nnc.asarray(a, copy=False)
    y = (x * w * w).sum()
    a[...] = 100
    y.backward()
    assert x.grad is not None and x.grad.tolist() == [9.0, 16.0]

    def f(t: nnc.Tensor) -> nnc.Tensor:
        before = (t * t).sum()
        a[...] = -1
        return before

    a[...] = [3, 4]
    assert nnc.grad(f)(w).tolist() == [6.0, 8.0]


def test_a_gradient_that_is_set_is_a_copy(sharing: str) -> None:
    a = np.ones(2, np.float32)
    x = nnc.variable([1.0, 2.0])
    x.grad = nnc.asarray(a, copy=False)
    a[...] = 7
    assert x.grad.tolist() == [1, 1]


def test_compiled_code_reads_the_array_at_each_call(sharing: str) -> None:
    a = HOST.copy()
    x = nnc.asarray(a, copy=False)
    inside, given = nnc.jit(lambda: x.T + x[0, 1]), nnc.jit(lambda t: t.T + t[0, 1])
    for _ in range(3):
        for result in (inside(), given(x)):
            np.testing.assert_array_equal(result.numpy(), a.T + a[0, 1])
        a += 1
    assert inside.traces == given.traces == 1


def test_a_gradient_in_compiled_code_reads_the_array_at_each_call(sharing: str) -> None:
    a = np.array([1.0, 2.0], np.float32)
    x = nnc.asarray(a, copy=False)
    f = nnc.jit(lambda: nnc.grad(lambda t: (t * t * x).sum())(x))
    for _ in range(2):
        np.testing.assert_allclose(f().numpy(), 2 * a * a)
        a += 1


def test_a_graph_is_cut_at_the_tensor_or_keeps_what_was_recorded(sharing: str) -> None:
    a = HOST.copy()
    x, one = nnc.asarray(a, copy=False), nnc.ones(3)
    with nnc.deferred():
        y = x * 2 + one
    a[...] = -1
    cut: Any = nnc.export({"x": x, "one": one}, {"y": y}).compile(sharing)
    assert (cut(x=HOST, one=np.zeros(3, np.float32))["y"].numpy() == HOST * 2).all()
    kept: Any = nnc.export({"one": one}, {"y": y}, capture="constant").compile(sharing)
    assert (kept(one=np.zeros(3, np.float32))["y"].numpy() == HOST * 2).all()


def test_an_assigned_symbol_keeps_what_was_assigned(sharing: str) -> None:
    a = np.array([1.0, 2.0], np.float32)
    s = nnc.var_arr("s", (2,))
    y = s[::-1] + 0
    nnc.assign(s, nnc.asarray(a, copy=False))
    a[...] = 7
    nnc.eval_arr([y])
    assert nnc.unpack_arr(y).tolist() == [2, 1]


def test_a_cell_keeps_what_was_written(sharing: str) -> None:
    a = np.ones(2, np.float32)
    cell = nnc.Cell(nnc.zeros(2))
    cell.write(nnc.asarray(a, copy=False))
    a[...] = 5
    nnc.jit(lambda: cell.write(cell.read() + 1))()
    assert cell.read().tolist() == [2, 2] and a.tolist() == [5, 5]


def test_the_array_lives_as_long_as_the_tensor(sharing: str) -> None:
    import gc

    x = nnc.asarray(np.full(100_000, 3.0), copy=False)
    gc.collect()
    noise = [np.full(100_000, -1.0) for _ in range(4)]
    assert (x.numpy() == 3).all() and len(noise) == 4
