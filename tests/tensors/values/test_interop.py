"""Memory shared with NumPy and by DLPack; what NumPy makes of tensors, and tensors of NumPy."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.stacks import stack_for
from nnc_core.values.value import Value
from tests.devices import devices
from tests.tensors.faults import fails

HOST = np.arange(6, dtype=np.float32).reshape(2, 3)


def shares_memory(device: str) -> bool:
    return stack_for(device).device.adopt(np.ones(1)) is not None


@pytest.fixture
def sharing() -> Iterator[str]:
    """A device that computes in the host's memory, as the default one."""
    found = [id for id in devices() if shares_memory(id)]
    if not found:
        pytest.skip("no device here computes in the host's memory")
    with nnc.use_device(found[0]), nnc.config.using(deterministic=True):
        yield found[0]


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


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "whole": lambda a: a, "rows backwards": lambda a: a[::-1], "all backwards": lambda a: a[::-1, ::-1],
    "columns": lambda a: a[:, 1:], "every second": lambda a: a[:, ::2], "transposed": lambda a: a.T,
    "broadcast": lambda a: np.broadcast_to(a[0], (4, 3)), "one": lambda a: a[1, 2, ...], "empty": lambda a: a[:0],
    "backwards and transposed": lambda a: a[::-1].T, "fortran": np.asfortranarray,
}  # fmt: skip


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


# ---- __array__
def test_numpy_gets_a_copy_unless_it_refuses_one(device: str) -> None:
    x = nnc.asarray(HOST)
    for given in (np.asarray(x), np.array(x), np.array(x, copy=True), np.asarray(x, np.float64)):
        assert given.flags.writeable
        given[...] = -1
    np.testing.assert_array_equal(x.numpy(), HOST)
    assert np.asarray(x, np.int32).dtype == np.int32
    if not shares_memory(device):
        with pytest.raises(ValueError, match="without a copy"):
            np.asarray(x, copy=False)
        return
    view = np.asarray(x, copy=False)
    assert not view.flags.writeable and np.shares_memory(view, np.asarray(x, copy=False))
    with pytest.raises(ValueError, match="without a copy"):
        np.asarray(x, np.float64, copy=False)
    x += 1
    np.testing.assert_array_equal(view, HOST)


@pytest.mark.parametrize("shape", [(2, 3), (4, 1, 3), (5,), (), (0, 3)])
def test_fortran_order_in_and_out(device: str, shape: tuple[int, ...]) -> None:
    a = np.asarray(np.arange(np.prod(shape), dtype=np.float32).reshape(shape), order="F")
    for x in (nnc.asarray(a), nnc.from_dlpack(a), nnc.from_dlpack(Foreign(a)), nnc.asarray(a) + 0):
        np.testing.assert_array_equal((x * 2).numpy(), a * 2)
        for c, fortran in ((x.numpy(), x.numpy(order="F")), (np.asarray(x, order="C"), np.asarray(x, order="F"))):
            assert c.flags.c_contiguous and fortran.flags.f_contiguous and c.dtype == fortran.dtype == a.dtype
            assert c.shape == fortran.shape == shape
            fortran[...] = fortran + 0  # it can be written, and is nobody else's
            np.testing.assert_array_equal(fortran, a)
            np.testing.assert_array_equal(c, a)
            fortran[...] = -1
        np.testing.assert_array_equal(x.numpy(), a)


def test_shared_memory_in_fortran_order_is_handed_on_as_it_is(sharing: str) -> None:
    a = np.asfortranarray(HOST)
    x = nnc.asarray(a, copy=False)
    for view in (np.from_dlpack(x), np.asarray(x, copy=False)):
        assert np.shares_memory(view, a) and view.strides == a.strides
        np.testing.assert_array_equal(view, HOST)


def test_an_order_that_is_none(x: nnc.Tensor) -> None:
    with fails(ValueError, "order='K'", '"C" or "F"', line=False):
        x.numpy(order="K")


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "pow", "mod", "floordiv", "lt", "eq", "ge"])
def test_operators_between_arrays_and_tensors_give_tensors(x: nnc.Tensor, name: str) -> None:
    f = getattr(operator, name)
    a, y, b = HOST + 1, x + 1, HOST + 1
    for ours, wanted in ((f(a, y), f(a, b)), (f(y, a), f(b, a)), (f(a[0, 1], y), f(a[0, 1], b)),
                         (f(y, a[0, 1]), f(b, a[0, 1]))):
        assert isinstance(ours, nnc.Tensor) and ours.device.id == x.device.id
        np.testing.assert_allclose(ours.numpy(), wanted, rtol=1e-5)
    assert isinstance(a.T @ x, nnc.Tensor) and isinstance(np.float64(2) * x, nnc.Tensor)


def test_functions_of_numpy_give_arrays(x: nnc.Tensor) -> None:
    """A ufunc is NumPy's: it takes a tensor as an array and stays on the host."""
    a = HOST.copy()
    for result in (np.add(a, x), np.tanh(x), np.concatenate([a, x])):
        assert type(result) is np.ndarray
    a += x
    np.testing.assert_array_equal(a, HOST * 2)
    np.testing.assert_array_equal(np.asarray(np.sum(x, axis=0)), HOST.sum(0))
    for name in ("sum", "mean", "max", "min", "any", "all"):
        np.testing.assert_allclose(np.asarray(getattr(np, name)(x)), getattr(np, name)(HOST))
    with fails(TypeError, "out=", line=False):
        np.sum(x, axis=0, out=np.zeros(3, np.float32))


def test_the_namespace(x: nnc.Tensor) -> None:
    assert x.__array_namespace__() is nnc and x.__array_namespace__(api_version="2024.12") is nnc
    with fails(ValueError, "1999.12", line=False):
        x.__array_namespace__(api_version="1999.12")


# ---- DLPack
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "int64", "uint32", "bool"])
def test_numpy_takes_tensors_by_dlpack(device: str, dtype: str) -> None:
    x = nnc.asarray(HOST.astype(dtype))
    y = np.from_dlpack(x)
    assert y.dtype == x.dtype and x.__dlpack_device__() == (1, 0)
    np.testing.assert_array_equal(y, HOST.astype(dtype))
    assert y.flags.writeable is not shares_memory(device), "a tensor's own memory is not to be written"
    if shares_memory(device):
        assert np.shares_memory(y, np.asarray(x, copy=False))


def test_a_copy_by_dlpack_can_be_written(x: nnc.Tensor) -> None:
    y = np.from_dlpack(x, copy=True)
    y[...] = -1
    np.testing.assert_array_equal(x.numpy(), HOST)


class Old:
    """A consumer before DLPack 1.0, which cannot be told that memory is read-only."""

    def __init__(self, x: nnc.Tensor) -> None:
        self.x = x

    def __dlpack__(self, **options: Any) -> Any:
        return self.x.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.x.__dlpack_device__()


def test_an_old_consumer_gets_a_copy(x: nnc.Tensor, device: str) -> None:
    y = np.from_dlpack(Old(x))
    np.testing.assert_array_equal(y, HOST)
    if shares_memory(device):
        assert not np.shares_memory(y, np.asarray(x, copy=False))


def test_requests_that_dlpack_cannot_meet(x: nnc.Tensor, device: str) -> None:
    with fails(BufferError, "stream 3", line=False):
        x.__dlpack__(stream=3)
    with fails(BufferError, "(2, 0)", line=False):
        x.__dlpack__(dl_device=(2, 0))
    with fails(BufferError, "without a copy", line=False):
        x.__dlpack__(copy=False)
    with fails(BufferError, "bfloat16", "astype", line=False):
        x.astype("bfloat16").__dlpack__(max_version=(1, 0))
    with fails(TypeError, "symbol", line=False):
        nnc.var_arr("s", (2,)).__dlpack__()


def test_deferred_tensors_are_computed_for_dlpack(x: nnc.Tensor) -> None:
    with nnc.deferred():
        y = x * 2
    np.testing.assert_array_equal(np.from_dlpack(y), HOST * 2)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("writeable", [True, False])
def test_from_dlpack_takes_numpy_as_it_is(device: str, layout: str, writeable: bool) -> None:
    a = LAYOUTS[layout](HOST.copy())
    a.flags.writeable = writeable and a.flags.writeable
    x = nnc.from_dlpack(a)
    np.testing.assert_array_equal(x.numpy(), a)
    np.testing.assert_array_equal((x * 2).numpy(), a * 2)
    assert x._value.borrowed is shares_memory(device)
    y = nnc.from_dlpack(a, copy=True)
    assert not y._value.borrowed
    np.testing.assert_array_equal(y.numpy(), a)


class Foreign:
    """An array of another library."""

    def __init__(self, array: Any, device: tuple[int, int] = (1, 0)) -> None:
        self.array, self.device = array, device

    def __dlpack__(self, *, dl_device: Any = None, **options: Any) -> Any:
        if self.device != (1, 0) and dl_device != (1, 0):
            raise BufferError("this memory is not the host's")
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device


def test_from_dlpack_takes_other_libraries(device: str) -> None:
    a = HOST.copy()
    x = nnc.from_dlpack(Foreign(a[:, ::-1]))
    np.testing.assert_array_equal(x.numpy(), HOST[:, ::-1])
    a[...] = -1
    assert (x.numpy() == (-1 if shares_memory(device) else HOST[:, ::-1])).all()
    np.testing.assert_array_equal(nnc.from_dlpack(Foreign(HOST, (2, 0)), device=device).numpy(), HOST)
    assert nnc.asarray(Foreign(HOST)).tolist() == HOST.tolist(), "asarray copies"


def test_from_dlpack_of_a_tensor_is_its_value(x: nnc.Tensor, device: str) -> None:
    assert nnc.from_dlpack(x)._value is x._value and nnc.from_dlpack(x, device="strict:0").device.id == "strict:0"


def test_from_dlpack_says_what_it_cannot_take(device: str) -> None:
    with fails(TypeError, "__dlpack__", "nnc.asarray", line=False):
        nnc.from_dlpack([1, 2])
    with fails(BufferError, "Foreign", line=False):
        nnc.from_dlpack(Foreign(np.ones(2, ml_dtypes.bfloat16)))
    with fails(AttributeError, "no __dlpack__", line=False):
        nnc.from_dlpack(2)
    with fails(TypeError, "complex256", line=False):
        nnc.from_dlpack(np.ones(2, np.clongdouble))
    if not shares_memory(device):
        with fails(ValueError, device, line=False):
            nnc.from_dlpack(HOST, copy=False)


def test_values_know_whether_they_are_borrowed(sharing: str) -> None:
    assert nnc.asarray(HOST, copy=False)._value.borrowed and not nnc.asarray(HOST)._value.borrowed
    assert type((nnc.asarray(HOST, copy=False) + 1)._value) is Value


def test_numbers_are_formatted_as_pythons(device: str) -> None:
    x = nnc.asarray([1.0, 2.5])
    assert f"{x[1]:.3f} {x.sum():>6.1f} {nnc.asarray(3):04d}" == "2.500    3.5 0003"
    assert f"{x}" == str(x) and f"{x[0]}" == str(x[0])
    with pytest.raises(TypeError):
        f"{x:.3f}"
    with pytest.raises(TypeError):
        nnc.jit(lambda y: (f"{y.sum():.1f}", y)[1])(x)
