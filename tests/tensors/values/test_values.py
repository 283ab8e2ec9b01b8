"""Values, not views: a tensor is a handle on a value that never changes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import nnc_core as nnc
from tests.tensors.faults import fails

HOST = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize("view", [
    lambda x: x[0], lambda x: x[:, 1:], lambda x: x[...], lambda x: x.T, lambda x: x.reshape(3, 2),
    lambda x: nnc.broadcast_to(x, (2, 2, 3)), lambda x: nnc.expand_dims(x), lambda x: nnc.asarray(x), lambda x: +x * 1,
    lambda x: x.to(x.device.id), lambda x: x.astype(x.dtype), lambda x: x.detach(), lambda x: nnc.stop_gradient(x),
    lambda x: nnc.positive(x),
], ids=["row", "slice", "everything", "transposed", "reshaped", "broadcast", "expanded", "asarray", "times one", "to",
        "astype", "detach", "stop_gradient", "positive"])  # fmt: skip
def test_writing_to_one_never_changes_the_other(x: nnc.Tensor, view: Callable[[nnc.Tensor], nnc.Tensor]) -> None:
    y = view(x)
    before = y.numpy()
    x[0, 0] = 100
    np.testing.assert_array_equal(y.numpy(), before)
    y[...] = -1
    wanted = HOST.copy()
    wanted[0, 0] = 100
    np.testing.assert_array_equal(x.numpy(), wanted)


def test_host_arrays_are_copied(device: str) -> None:
    host = HOST.copy()
    x = nnc.asarray(host)
    host[...] = -1
    np.testing.assert_array_equal(x.numpy(), HOST)
    x.numpy()[...] = -1
    np.asarray(x)[...] = -1
    np.testing.assert_array_equal(x.numpy(), HOST)


def test_two_names_of_one_handle_are_one(x: nnc.Tensor) -> None:
    y = x
    y[0, 0] = 7
    assert x is y and x[0, 0].item() == 7


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "pow", "floordiv", "mod"])
def test_in_place_operators_point_the_handle_at_a_new_value(x: nnc.Tensor, name: str) -> None:
    before, kept, host = x._value, x + 0, HOST.copy()
    for operand in (2, nnc.asarray(HOST + 1)):
        other = operand if isinstance(operand, int) else HOST + 1
        x = getattr(x, f"__i{name}__")(operand)
        host = getattr(host, f"__{name}__")(other)
    assert x._value is not before
    np.testing.assert_allclose(x.numpy(), host, rtol=1e-5)
    np.testing.assert_array_equal(kept.numpy(), HOST)


def test_in_place_matmul(device: str) -> None:
    x = nnc.asarray(np.eye(2, dtype=np.float32) * 2)
    x @= nnc.asarray([[1.0, 2.0], [3.0, 4.0]])
    assert x.tolist() == [[2, 4], [6, 8]]


def test_a_result_that_does_not_fit_cannot_take_the_place(x: nnc.Tensor) -> None:
    with fails(ValueError, "x = x + y", line=False):
        x += nnc.ones((2, 2, 3))
    counts = nnc.asarray(np.array([1, 2, 3]))
    with fails(TypeError, "int64"):
        counts /= 2
    assert counts.tolist() == [1, 2, 3] and x.shape == (2, 3)


def test_a_backward_pass_uses_the_values_that_were_there(device: str) -> None:
    """y = x * w; w[0] = 5; backward: the derivative by x is the old w."""
    x, w = nnc.variable([1.0, 2.0]), nnc.asarray([3.0, 4.0])
    y = (x * w).sum()
    w[0] = 5
    y.backward()
    assert x.grad is not None and x.grad.tolist() == [3.0, 4.0]
    assert w.tolist() == [5.0, 4.0]


def test_writing_to_a_result_changes_no_gradient(device: str) -> None:
    x = nnc.variable([1.0, 2.0])
    squares = x * x
    total = (squares * squares).sum()
    with nnc.no_grad():
        squares[...] = 0
    total.backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), [4.0, 32.0])


def test_an_assignment_can_be_differentiated(device: str) -> None:
    def f(x: nnc.Tensor, v: nnc.Tensor) -> nnc.Tensor:
        y = x * 2
        y[1] = v
        y += x
        return (y * y).sum()

    gx, gv = nnc.grad(f, (0, 1))(nnc.asarray([1.0, 2.0]), nnc.asarray(5.0))
    assert gx.tolist() == [18.0, 14.0] and gv.item() == 14.0


@pytest.mark.parametrize("write", [
    pytest.param(lambda y: y.__setitem__(0, 1), id="item"), pytest.param(lambda y: y.__iadd__(1), id="operator"),
])
def test_a_deferred_value_is_written_by_recording(x: nnc.Tensor, write: Callable[[nnc.Tensor], object]) -> None:
    wanted = x * 2
    write(wanted)
    with nnc.deferred():
        y, z = x * 2, x.at[0].set(1)
        write(y)
        write(x)  # what is there already is recorded too
        assert y.is_deferred and x.is_deferred
    np.testing.assert_array_equal(y.numpy(), wanted.numpy())
    np.testing.assert_array_equal(z.numpy(), [[1, 1, 1], [3, 4, 5]])
    with nnc.deferred():
        late = wanted * 1
    write(late)  # computed, and then written
    write(wanted)
    np.testing.assert_array_equal(late.numpy(), wanted.numpy())


def test_assigned_symbols_cannot_be_written(device: str) -> None:
    s = nnc.var_arr("s", (2,))
    with fails(NotImplementedError, "symbol", line=False):
        s[0] = 1
    with fails(NotImplementedError, "symbol"):
        t = s + 1
        t[0] = 1


def test_functional_updates_leave_the_original(x: nnc.Tensor) -> None:
    y, z = x.at[0].set(9), x.at[:, 1].add(10)
    np.testing.assert_array_equal(x.numpy(), HOST)
    assert y.tolist() == [[9, 9, 9], [3, 4, 5]] and z.tolist() == [[0, 11, 2], [3, 14, 5]]
