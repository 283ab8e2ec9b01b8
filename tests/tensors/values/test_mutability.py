"""Handles are rebound, values never change: in every mode, and against NumPy by random programs."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nnc_core as nnc
from tests.devices import devices
from tests.tensors.faults import fails

HOST = np.arange(6, dtype=np.float32).reshape(2, 3)

CHANGES: dict[str, Callable[[Any], Any]] = {
    "item": lambda x: x.__setitem__(0, 7), "slice": lambda x: x.__setitem__((slice(None), 1), 7),
    "everything": lambda x: x.__setitem__(..., 7), "mask": lambda x: x.__setitem__(x > 2, 7),
    "+=": lambda x: x.__iadd__(1), "*=": lambda x: x.__imul__(3), "-= itself": lambda x: x.__isub__(x),
}  # fmt: skip


def changed(change: str) -> Any:
    host = HOST.copy()
    CHANGES[change](host)
    return host


# ---- across modes
@pytest.mark.parametrize("change", CHANGES)
def test_what_was_recorded_lazily_uses_the_old_value(x: nnc.Tensor, change: str) -> None:
    with nnc.deferred():
        y = x * 2
    CHANGES[change](x)
    with nnc.deferred():
        z = x * 2
    np.testing.assert_array_equal(y.numpy(), HOST * 2)
    np.testing.assert_array_equal(z.numpy(), changed(change) * 2)


@pytest.mark.parametrize("change", CHANGES)
def test_a_compiled_function_reads_the_new_value_at_the_next_call(x: nnc.Tensor, change: str) -> None:
    f = nnc.jit(lambda: x * 2)
    before = f()
    CHANGES[change](x)
    np.testing.assert_array_equal(f().numpy(), changed(change) * 2)
    np.testing.assert_array_equal(before.numpy(), HOST * 2)
    assert f.traces == 1


@pytest.mark.parametrize("change", CHANGES)
def test_a_backward_pass_uses_the_old_value(x: nnc.Tensor, change: str) -> None:
    v = nnc.variable(np.ones((2, 3), np.float32))
    y = (v * x * x).sum()
    CHANGES[change](x)
    y.backward()
    assert v.grad is not None
    np.testing.assert_array_equal(v.grad.numpy(), HOST * HOST)


PURE: dict[str, Callable[[Any], Any]] = {
    "item": lambda x: x.at[0].set(7), "mask": lambda x: nnc.where(x > 2, 7, x), "+=": lambda x: x + 1,
    "*=": lambda x: x * 3, "-= itself": lambda x: x - x,
}  # fmt: skip


@pytest.mark.parametrize("change", PURE)
def test_a_change_inside_a_function_can_be_differentiated(x: nnc.Tensor, change: str) -> None:
    """And the argument of the caller stays what it was."""

    def in_place(t: nnc.Tensor) -> nnc.Tensor:
        CHANGES[change](t)
        return (t * t).sum()

    wanted = nnc.grad(lambda t: (PURE[change](t) ** 2.0).sum())(x)
    np.testing.assert_allclose(nnc.grad(in_place)(x).numpy(), wanted.numpy(), rtol=1e-6)
    np.testing.assert_array_equal(x.numpy(), HOST)


@pytest.mark.parametrize("change", CHANGES)
def test_a_compiled_function_writes_what_it_has_made_and_nothing_else(x: nnc.Tensor, change: str) -> None:
    """Neither its arguments nor tensors from outside: the error says how to write it instead."""

    def inside(t: nnc.Tensor) -> nnc.Tensor:
        y = t * 1
        CHANGES[change](y)
        return y

    def argument(t: nnc.Tensor) -> nnc.Tensor:
        CHANGES[change](t)
        return t

    def outside(t: nnc.Tensor) -> nnc.Tensor:
        CHANGES[change](x)
        return t

    np.testing.assert_array_equal(nnc.jit(inside)(x).numpy(), changed(change))
    for f in (argument, outside):
        with fails(NotImplementedError, ".at[key].set", line=False):
            nnc.jit(f)(x)
    np.testing.assert_array_equal(x.numpy(), HOST)


def test_a_loop_that_accumulates_in_place_can_be_differentiated(device: str) -> None:
    def horner(x: nnc.Tensor, coefficients: nnc.Tensor) -> nnc.Tensor:
        y = nnc.zeros_like(x)
        for i in range(4):
            y *= x
            y += coefficients[i]
        return y.sum()

    x, c = nnc.asarray([0.5, 2.0]), nnc.asarray([1.0, -2.0, 3.0, 4.0])
    gx, gc = nnc.grad(horner, (0, 1))(x, c)
    np.testing.assert_allclose(gx.numpy(), np.polyval(np.polyder([1, -2, 3, 4]), [0.5, 2.0]), rtol=1e-6)
    np.testing.assert_allclose(gc.numpy(), [0.5**3 + 8, 0.25 + 4, 2.5, 2], rtol=1e-6)


# ---- aliases
def test_names_of_one_handle_change_together_and_items_never(x: nnc.Tensor) -> None:
    y, row, kept = x, x[0], copy.copy(x)
    for change in CHANGES:
        CHANGES[change](x)
    assert y is x and y._value is x._value
    assert row.tolist() == [0, 1, 2] and kept.tolist() == HOST.tolist()
    row += 5
    assert row.tolist() == [5, 6, 7] and kept.tolist() == HOST.tolist()


def test_an_item_assigned_from_itself(x: nnc.Tensor) -> None:
    x[0], x[1] = x[1], x[0]
    assert x.tolist() == [[3, 4, 5], [0, 1, 2]]
    x[:, 1:] = x[:, :-1]
    assert x.tolist() == [[3, 3, 4], [0, 0, 1]]
    x[0] += x[1] + 1
    assert x.tolist() == [[4, 4, 6], [0, 0, 1]]


def test_a_value_assigned_keeps_no_link_to_where_it_came_from(x: nnc.Tensor) -> None:
    row = nnc.asarray([7.0, 8.0, 9.0])
    x[...] = row
    row[0] = -1
    x[1, 2] = 0
    assert x.tolist() == [[7, 8, 9], [7, 8, 0]] and row.tolist() == [-1, 8, 9]


# ---- variables
def test_a_variable_changed_under_no_grad_stays_one_with_its_gradient(device: str) -> None:
    v = nnc.variable([1.0, 2.0])
    (v * v).sum().backward()
    with nnc.no_grad():
        v -= 0.5 * v.grad  # type: ignore[operator]
        v[1] = 5
    assert v.requires_grad and v.grad is not None and v.grad.tolist() == [2, 4] and v.tolist() == [0, 5]
    (v * v).sum().backward()
    assert v.grad.tolist() == [2, 14]


def test_no_grad_cuts_a_result(device: str) -> None:
    v = nnc.variable([1.0, 2.0])
    y = v * 2
    with nnc.no_grad():
        y += 1
    assert not y.requires_grad and y.tolist() == [3, 5]


# ---- cells
@pytest.mark.parametrize("change", CHANGES)
def test_a_tensor_that_was_read_from_a_cell_is_apart(x: nnc.Tensor, change: str) -> None:
    cell = nnc.Cell(x)
    CHANGES[change](x)
    y = cell.read()
    CHANGES[change](y)
    assert cell.read().tolist() == HOST.tolist()
    cell.write(y)
    CHANGES[change](y)
    np.testing.assert_array_equal(cell.read().numpy(), changed(change))


def test_what_was_read_survives_an_update_in_the_cells_memory(device: str) -> None:
    cell = nnc.Cell(nnc.zeros(3))
    step = nnc.jit(lambda: cell.write(cell.read() + 1))
    step()
    step()
    held = cell.read()
    item = held[1:]
    step()
    assert held.tolist() == [2, 2, 2] and item.tolist() == [2, 2] and cell.read().tolist() == [3, 3, 3]


# ---- random programs against NumPy
ARRAYS = 3
SHAPE = (3, 4)
INDEX = st.one_of(
    st.integers(-3, 2), st.tuples(st.integers(-3, 2), st.integers(-4, 3)), st.just(...),
    st.builds(slice, st.none() | st.integers(-3, 3), st.none() | st.integers(-3, 3), st.sampled_from([None, 1, 2, -1])),
    st.tuples(st.just(slice(None)), st.builds(slice, st.integers(0, 3), st.integers(0, 4))),
)  # fmt: skip
SLOT = st.integers(0, ARRAYS - 1)
NUMBER = st.integers(-3, 3)
STATEMENT = st.one_of(
    st.tuples(st.just("set number"), SLOT, INDEX, NUMBER),
    st.tuples(st.just("set item"), SLOT, INDEX, SLOT),
    st.tuples(st.just("add number"), SLOT, NUMBER),
    st.tuples(st.just("multiply"), SLOT, SLOT),
    st.tuples(st.just("mask"), SLOT, SLOT, NUMBER),
    st.tuples(st.just("alias"), SLOT, SLOT),
    st.tuples(st.just("view"), SLOT, SLOT, st.sampled_from(["same", "flip", "rows", "reshape"])),
    st.tuples(st.just("at"), SLOT, SLOT, INDEX, NUMBER),
    st.tuples(st.just("keep"), SLOT),
)
VIEWS: dict[str, Callable[[Any], Any]] = {
    "same": lambda x: x[...], "flip": lambda x: x[::-1], "rows": lambda x: x[[2, 0, 1]],
    "reshape": lambda x: x.reshape((4, 3)).reshape(SHAPE),
}  # fmt: skip


class Machine:
    """A program over names of arrays; `fresh` is what makes a view an array of its own, which tensors are already."""

    def __init__(self, arrays: list[Any], fresh: Callable[[Any], Any], library: Any) -> None:
        self.names, self.fresh, self.library = arrays, fresh, library
        self.kept: list[Any] = []

    def run(self, statement: tuple[Any, ...]) -> None:
        action, i, *rest = statement
        x = self.names[i]
        match action:
            case "set number":
                x[rest[0]] = rest[1]
            case "set item":
                x[rest[0]] = self.fresh(self.names[rest[1]][rest[0]])
            case "add number":
                x += rest[0]
            case "multiply":
                x *= self.names[rest[0]]
                x[...] = self.library.clip(x, -50, 50)
            case "mask":
                x[self.names[rest[0]] > 0] = rest[1]
            case "alias":
                self.names[i] = self.names[rest[0]]
            case "view":
                self.names[i] = self.fresh(VIEWS[rest[1]](self.names[rest[0]]))
            case "at":
                self.names[i] = self.at(self.names[rest[0]], rest[1], rest[2])
            case "keep":
                self.keep(x)

    def at(self, x: Any, index: Any, number: int) -> Any:
        if isinstance(x, nnc.Tensor):
            return x.at[index].set(number)
        y = x.copy()
        y[index] = number
        return y

    def keep(self, x: Any) -> None:
        """Something lazy, and a plain item: both stay what they are."""
        if isinstance(x, nnc.Tensor):
            with nnc.deferred():
                self.kept += [x * 2, x[0]]
        else:
            self.kept += [x * 2, x[0].copy()]


@pytest.mark.parametrize("id", devices())
@given(program=st.lists(STATEMENT, max_size=12))
def test_random_programs_agree_with_numpy_that_copies(id: str, program: list[tuple[Any, ...]]) -> None:
    hosts = [np.arange(12, dtype=np.float32).reshape(SHAPE) - k for k in range(ARRAYS)]
    with nnc.use_device(id), nnc.config.using(deterministic=True):
        ours = Machine([nnc.asarray(h) for h in hosts], lambda x: x, nnc)
        theirs = Machine([h.copy() for h in hosts], np.copy, np)
        for statement in program:
            ours.run(statement)
            theirs.run(statement)
        for got, wanted in zip(ours.names + ours.kept, theirs.names + theirs.kept, strict=True):
            np.testing.assert_array_equal(got.numpy(), wanted)


@pytest.mark.parametrize("id", devices()[:1])
@given(program=st.lists(STATEMENT.filter(lambda s: s[0] not in ("keep", "mask")), max_size=6))
def test_gradients_of_random_programs_are_those_of_their_inputs(id: str, program: list[tuple[Any, ...]]) -> None:
    """Against central differences, whose perturbed inputs run the same program."""
    start = np.linspace(-1, 1, 12).reshape(SHAPE)
    direction = np.cos(np.arange(12.0)).reshape(SHAPE)

    def run(x: Any, fresh: Callable[[Any], Any], library: Any) -> Any:
        machine = Machine([x * 1, x * 2, x + 1], fresh, library)
        for statement in program:
            machine.run(statement)
        return sum((k + 1) * (y * y).sum() for k, y in enumerate(machine.names))

    with nnc.use_device(id):
        g = nnc.grad(lambda x: run(x, lambda y: y, nnc))(nnc.asarray(start)).numpy()
    step = 1e-6
    wanted = (run(start + step * direction, np.copy, np) - run(start - step * direction, np.copy, np)) / (2 * step)
    np.testing.assert_allclose((g * direction).sum(), wanted, rtol=1e-4, atol=1e-3)
