"""Whose memory is written: arrays of NumPy by augmented assignment, copies by nobody, variables under no_grad alone."""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import DetachedWarning, GradientError
from tests.tensors.faults import fails


# ---- array += tensor
def add(w: Any, t: Any) -> Any:
    w += t
    return w


def subtract(w: Any, t: Any) -> Any:
    w -= t
    return w


def multiply(w: Any, t: Any) -> Any:
    w *= t
    return w


def divide(w: Any, t: Any) -> Any:
    w /= t
    return w


def power(w: Any, t: Any) -> Any:
    w **= t
    return w


def floor_divide(w: Any, t: Any) -> Any:
    w //= t
    return w


def remainder(w: Any, t: Any) -> Any:
    w %= t
    return w


def matmul(w: Any, t: Any) -> Any:
    w @= t
    return w


@pytest.mark.parametrize("change", [add, subtract, multiply, divide, power, floor_divide, remainder, matmul])
@pytest.mark.parametrize("made", [lambda a: nnc.asarray(a), lambda a: nnc.Cell(nnc.asarray(a))])
def test_an_array_is_changed_in_place(device: str, change: Callable[[Any, Any], Any], made: Any) -> None:
    start, other = np.array([[4.0, 9], [2, 3]], np.float32), np.array([[2.0, 1], [3, 2]], np.float32)
    array = start.copy()
    assert change(array, made(other)) is array
    np.testing.assert_allclose(array, change(start.copy(), other), rtol=1e-6)


def test_parts_and_integers_of_arrays(device: str) -> None:
    array, seen = np.zeros((2, 2)), np.array([1, 2, 4])
    whole = array
    array[0] += nnc.ones(2)
    whole[:, 1] += nnc.ones(2)
    assert array.tolist() == [[1, 2], [0, 1]]
    seen &= nnc.asarray([3, 3, 3])
    seen <<= nnc.asarray([1, 1, 1])
    assert seen.tolist() == [2, 4, 0]
    with pytest.raises(TypeError, match="same_kind"):
        seen += nnc.ones(3)


NAMED = ("iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow")


@pytest.mark.parametrize("name", NAMED)
def test_functions_that_write_in_place(device: str, name: str) -> None:
    """`operator.iadd(array, t)`, by its name or a variable, again and again: Python runs warm code otherwise."""
    function, other = getattr(operator, name), np.array([1.0, 2.0], np.float32)
    for _ in range(20):
        array = np.full(2, 3, np.float32)
        assert function(array, nnc.asarray(other)) is array
        np.testing.assert_allclose(array, function(np.full(2, 3, np.float32), other), rtol=1e-6)


def test_functions_by_their_names(device: str) -> None:
    for _ in range(20):
        array, bits, matrix = np.ones(2), np.array([1, 3]), np.eye(2)
        assert operator.iadd(array, nnc.ones(2) * max(1, 2)) is array and array.tolist() == [3, 3]
        assert operator.iand(bits, nnc.asarray([1, 2])) is bits and bits.tolist() == [1, 2]
        assert operator.imatmul(matrix, nnc.ones((2, 2))) is matrix and matrix.tolist() == [[1, 1]] * 2
    with pytest.raises(TypeError, match="same_kind"):
        operator.iadd(np.array([1, 2]), nnc.ones(2))


def test_other_operators_give_what_they_gave(device: str) -> None:
    array, t = np.ones(2, np.float32), nnc.ones(2)
    for result in (array + t, array @ t, array == t, operator.mul(array, t), operator.add(array, t), np.float32(1) + t,
                   np.add(array, t)):
        assert isinstance(result, nnc.Tensor)
    assert array.tolist() == [1, 1]


def test_a_followed_gradient_is_not_dropped_in_silence(device: str) -> None:
    array = np.zeros(2)
    with pytest.warns(DetachedWarning, match="no gradient follows"):
        array += nnc.variable([1.0, 2.0])
    assert array.tolist() == [1, 2]


# ---- another program writes
def overwrite(t: nnc.Tensor) -> None:
    """Write into a tensor's memory as a consumer does that ignores DLPack's mark of read-only memory."""
    view = np.from_dlpack(t)
    ctypes.memset(view.ctypes.data, 0, view.nbytes)


COPIES: dict[str, Callable[[nnc.Tensor], nnc.Tensor]] = {
    "copy": lambda t: t.copy(), "asarray": lambda t: nnc.asarray(t, copy=True),
    "astype": lambda t: nnc.astype(t, "float32"), "reshape": lambda t: nnc.reshape(t, (3,), copy=True),
}  # fmt: skip


@pytest.mark.parametrize("name", COPIES)
@pytest.mark.parametrize("first", ["copy", "export"])
def test_a_copy_is_in_memory_of_its_own(device: str, name: str, first: str) -> None:
    t = nnc.asarray(np.array([1, 2, 3], np.float32))
    if first == "export":
        np.from_dlpack(t)
    kept = COPIES[name](t)
    overwrite(t)
    assert kept.tolist() == [1, 2, 3]


def test_a_deferred_copy_is_in_memory_of_its_own(device: str) -> None:
    with nnc.deferred():
        t = nnc.ones(3) * 2
        kept = t.copy()
    nnc.realize(t, kept)
    overwrite(t)
    assert kept.tolist() == [2, 2, 2]


def test_gradients_pass_through_a_copy(device: str) -> None:
    v = nnc.variable([1.0, 2.0])
    nnc.sum(v.copy() ** 2).backward()
    assert v.grad is not None and v.grad.tolist() == [2, 4]


def test_a_graph_of_symbols_holds_what_was_there_when_it_was_recorded(device: str) -> None:
    host = np.ones(3, np.float32)
    try:
        borrowed = nnc.asarray(host, copy=False)
    except nnc.Error:
        pytest.skip("the device has memory of its own")
    x = nnc.var_arr("x", (3,))
    y = x + borrowed
    host[:] = 5
    graph = nnc.export({"x": x}, {"y": y}, capture="constant")
    assert graph.compile(device)(x=np.zeros(3, np.float32))["y"].tolist() == [1, 1, 1]


# ---- variables
def at(v: nnc.Tensor) -> None:
    v[0] = 5.0


@pytest.mark.parametrize("change", [at, lambda v: add(v, 1), lambda v: multiply(v, v), lambda v: matmul(v, nnc.eye(2))])
def test_a_variable_changes_under_no_grad_alone(device: str, change: Callable[[nnc.Tensor], Any]) -> None:
    v = nnc.variable([[1.0, 2.0], [3.0, 4.0]])
    y = nnc.sum(v**3)
    with fails(GradientError, "in-place change of a variable", "no_grad"):
        change(v)
    with nnc.no_grad():
        change(v)
    y.backward()
    assert v.requires_grad and v.grad is not None and v.grad.tolist() == [[3, 12], [27, 48]]


def test_functions_that_are_differentiated_may_change_their_arguments(device: str) -> None:
    def f(x: nnc.Tensor) -> nnc.Tensor:
        x[0] = 5.0
        x *= 2
        return nnc.sum(x * x)

    assert nnc.grad(f)(nnc.asarray([1.0, 2.0])).tolist() == [0, 16]


# ---- cells that compiled code overwrites
LOOKS: dict[str, Callable[[Any], Any]] = {
    "the tensor": lambda c: c.read(), "a view": lambda c: c.read()[1:], "a shape": lambda c: c.read().reshape(2, 2),
    "detached": lambda c: c.read().detach(), "NumPy": lambda c: np.asarray(c.read()),
    "DLPack": lambda c: np.from_dlpack(c.read()), "another cell": lambda c: nnc.Cell(c.read()),
    "a part": lambda c: c.read()[::2], "a list": lambda c: [c.read()],
}  # fmt: skip


def _numbers(seen: Any) -> Any:
    held = seen[0] if isinstance(seen, list) else seen
    return np.array(held.read() if isinstance(held, nnc.Cell) else held)


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
@pytest.mark.parametrize("calls", [0, 1])
def test_what_has_been_read_of_a_cell_never_changes(look: Callable[[Any], Any], calls: int) -> None:
    cell = nnc.Cell(nnc.asarray([1.0, 2.0, 3.0, 4.0]))
    step = nnc.jit(lambda: cell.write(cell.read() * 2.0))
    for _ in range(calls):
        step()
    seen = look(cell)
    before = _numbers(seen)
    step()
    np.testing.assert_array_equal(_numbers(seen), before)
    assert float(cell.read()[0]) == 2.0 ** (calls + 1)


def test_deferred_results_of_a_cell_never_change() -> None:
    cell = nnc.Cell(nnc.asarray([1.0, 2.0]))
    with nnc.deferred():
        y = cell.read() + 1.0
    nnc.jit(lambda: cell.write(cell.read() * 2.0))()
    assert y.numpy().tolist() == [2.0, 3.0]


def test_a_cell_whose_tensor_nobody_keeps_is_overwritten_where_it_lies() -> None:
    step = nnc.jit(lambda: cell.write(cell.read() * 2.0))
    cell = nnc.Cell(nnc.ones(1000))
    for kept in (None, cell.read()):
        cell.write(nnc.asarray(np.arange(1000.0, dtype=np.float32)) + 1.0)
        kept = None if kept is None else cell.read()
        at = cell.lend().array.ctypes.data  # type: ignore[union-attr]
        step()
        assert (cell.lend().array.ctypes.data == at) == (kept is None)  # type: ignore[union-attr]
        assert float(cell.read()[0]) == 2.0 and (kept is None or float(kept[0]) == 1.0)


def test_a_cell_that_was_read_out_is_lost_with_its_array() -> None:
    cell = nnc.Cell(nnc.asarray([1.0, 2.0]))
    assert float(cell.read()[0]) == 1.0
    assert cell.take() is cell.lend().array
    assert not cell._shared
