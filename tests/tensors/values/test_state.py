"""State in compiled code: cells read and written, memory taken over, random numbers, failing calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.stacks import stack_for
from tests.tensors.faults import fails


def array_of(cell: nnc.Cell) -> Any:
    return cell._value.array


def same_memory(a: Any, b: Any, cell: nnc.Cell) -> bool:
    device = stack_for(cell._value.stack).device
    x, y = device.buffer_of(a), device.buffer_of(b)
    return x is y or (isinstance(x, np.ndarray) and isinstance(y, np.ndarray) and np.shares_memory(x, y))


@pytest.fixture
def w(device: str) -> nnc.Cell:
    return nnc.Cell(nnc.asarray([1.0, 2.0, 3.0]), "w")


def doubled(w: nnc.Cell) -> Any:
    @nnc.jit
    def f() -> Any:
        w.write(w.read() * 2)
        return nnc.sum(w.read())

    return f


def test_a_cell_holds_a_tensor(w: nnc.Cell) -> None:
    assert w.read().tolist() == [1, 2, 3] and w.spec.shape == (3,)
    w.write(w.read() + 1)
    assert w.read().tolist() == [2, 3, 4]


def test_what_was_read_from_a_cell_does_not_change(w: nnc.Cell) -> None:
    f, seen = doubled(w), w.read()
    f()
    f()
    assert seen.tolist() == [1, 2, 3] and w.read().tolist() == [4, 8, 12]


def test_compiled_code_reads_and_writes_cells(w: nnc.Cell) -> None:
    f = doubled(w)
    assert [f().item() for _ in range(3)] == [12.0, 24.0, 48.0]
    assert w.read().tolist() == [8, 16, 24] and f.traces == 1
    w.write(nnc.asarray([1.0, 1.0, 1.0]))
    assert f().item() == 6.0 and f.traces == 1


def test_a_cell_is_updated_in_place_as_long_as_nobody_holds_its_array(w: nnc.Cell) -> None:
    f = doubled(w)
    before = array_of(w)
    f()
    first = array_of(w)
    assert first is not before, "the array that the cell was made of may be held elsewhere"
    f()
    assert same_memory(array_of(w), first, w), "now it is the cell's own"
    kept = w.read()
    f()
    assert not same_memory(array_of(w), first, w), "somebody has read it: copied"
    assert kept.tolist() == [4, 8, 12] and w.read().tolist() == [8, 16, 24]


def test_what_is_updated_in_place_is_aligned(device: str) -> None:
    """Eager code's arrays lie anywhere: vectors that cross lines of caches would do so at every call."""
    numbers = np.arange(1 << 16, dtype=np.float32)
    w = nnc.Cell(nnc.asarray(numbers) + 0.0, "w")
    f, own = doubled(w), stack_for(w._value.stack).device
    for factor in (2, 4, 8):
        if factor == 8:
            w.write(nnc.asarray(numbers) * 4)  # and again, when it has been written eagerly
        f()
        at = array_of(w)
        assert own.is_aligned(at) and np.array_equal(w.read().numpy(), factor * numbers)
        if device.startswith("cpu"):
            assert at.ctypes.data % own.spec.alignment == 0


def test_what_is_updated_in_place_stays_where_it_is_if_there_is_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = nnc.Cell(nnc.asarray(np.ones(1 << 16, np.float32)) + 0.0)
    device, executor = cell.stack.device, cell.stack.engine.executor

    def full(array: Any) -> Any:
        raise nnc.errors.DeviceMemoryError("full", device="cpu:0")

    monkeypatch.setattr(type(device), "is_aligned", lambda self, array: False)
    monkeypatch.setattr(executor, "duplicate", full)
    at = array_of(cell).ctypes.data
    assert float(doubled(cell)()) == 2 << 16 and array_of(cell).ctypes.data == at


def test_a_cell_that_is_only_read_is_not_touched(w: nnc.Cell) -> None:
    f = nnc.jit(lambda x: x * w.read())
    before = array_of(w)
    assert f(nnc.ones(3)).tolist() == [1, 2, 3] and array_of(w) is before
    w.write(nnc.asarray([5.0, 5.0, 5.0]))
    assert f(nnc.ones(3)).tolist() == [5, 5, 5]


def test_written_twice_the_last_value_counts(w: nnc.Cell) -> None:
    @nnc.jit
    def f() -> Any:
        w.write(w.read() + 1)
        between = w.read()
        w.write(w.read() * 10)
        return between

    assert f().tolist() == [2, 3, 4] and w.read().tolist() == [20, 30, 40]


def test_the_old_value_is_read_before_it_is_overwritten(w: nnc.Cell) -> None:
    @nnc.jit
    def f(x: Any) -> Any:
        old = w.read()
        w.write(old - x)
        return old * x, nnc.sum(old), old

    f(nnc.ones(3))
    product, total, old = f(nnc.asarray([1.0, 10.0, 100.0]))
    assert product.tolist() == [0, 10, 200] and total.item() == 3.0 and old.tolist() == [0, 1, 2]
    assert w.read().tolist() == [-1, -9, -98]


def test_two_cells_may_change_places(device: str) -> None:
    a, b = nnc.Cell(nnc.asarray([1.0])), nnc.Cell(nnc.asarray([2.0]))

    @nnc.jit
    def swap() -> None:
        x, y = a.read(), b.read()
        a.write(y)
        b.write(x)

    for _ in range(3):
        swap()
    assert a.read().item() == 2.0 and b.read().item() == 1.0


def test_a_cell_keeps_its_spec(w: nnc.Cell) -> None:
    with fails(ValueError, "'w'", "float32[3]", "float32[2]", line=False):
        w.write(nnc.ones(2))
    with fails(TypeError, "int64[3]", line=False):
        w.write(nnc.asarray(np.array([1, 2, 3])))
    assert w.read().tolist() == [1, 2, 3]


def test_training_with_cells(device: str) -> None:
    w = nnc.Cell(nnc.asarray([0.0, 0.0]), "w")
    steps = nnc.Cell(nnc.asarray(np.array(0)), "steps")
    points = nnc.asarray([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    wanted = points @ nnc.asarray([2.0, -1.0])

    @nnc.jit
    def step() -> Any:
        loss, g = nnc.value_and_grad(lambda w: nnc.sum((points @ w - wanted) ** 2))(w.read())
        w.write(w.read() - 0.1 * g)
        steps.write(steps.read() + 1)
        return loss

    losses = [step().item() for _ in range(60)]
    assert losses[-1] < 1e-4 < losses[0] and steps.read().item() == 60
    np.testing.assert_allclose(w.read().numpy(), [2.0, -1.0], atol=1e-2)


def test_random_numbers_are_drawn_anew_in_each_call(device: str) -> None:
    g = nnc.Generator(5)
    f = nnc.jit(lambda: g.uniform((4,)))
    other = nnc.Generator(5)
    for _ in range(3):
        assert f().tolist() == other.uniform((4,)).tolist()
    assert g.uniform((2,)).tolist() == other.uniform((2,)).tolist(), "eager goes on where compiled code stopped"
    assert f.traces == 1


def test_seeds(device: str) -> None:
    a, b, c = (nnc.Generator(s).normal((50,)).tolist() for s in (1, 1, 2))
    assert a == b != c
    default = nnc.manual_seed(3)
    assert default.uniform((2,)).tolist() == nnc.Generator(3).uniform((2,)).tolist()
    with fails(ValueError, "seed", line=False):
        nnc.Generator(1.5)  # type: ignore[arg-type]


class Refusing:
    """Makes the launches of one operator fail, on the strict device."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        from nnc_core.builtin.strict import StrictKernel

        run, self.armed = StrictKernel._interpret, False

        def interpret(kernel: Any, buffers: Any) -> None:
            if self.armed and kernel.nest.name == name:
                raise RuntimeError("the cable was pulled")
            run(kernel, buffers)

        monkeypatch.setattr(StrictKernel, "_interpret", interpret)


@pytest.fixture
def strict() -> Any:
    with nnc.use_device("strict:0"):
        yield


def _updates(first: nnc.Cell, second: nnc.Cell) -> Any:
    """first += 1, which is done before the sine that fails; then second."""

    @nnc.jit
    def f() -> Any:
        first.write(first.read() + 1)
        second.write(nnc.sin(second.read() * first.read()))

    return f


@pytest.mark.usefixtures("a_command_for_each_operator")
def test_a_failing_call_names_operator_line_and_what_is_lost(strict: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = nnc.Cell(nnc.ones(3), "a"), nnc.Cell(nnc.ones(3), "b")
    f, refusing = _updates(a, b), Refusing(monkeypatch, "sin")
    f()  # from now on the arrays are the cells' own
    refusing.armed = True
    with fails(RuntimeError, "the cable was pulled", "test_state.py", operator="sin"):
        f()
    with fails(RuntimeError, "'a'", "lost", "write it again", line=False):
        a.read()
    with fails(RuntimeError, "'a'", line=False):
        f()
    refusing.armed = False
    a.write(nnc.asarray([1.0, 1.0, 1.0]))
    b.write(nnc.asarray([0.0, 0.0, 0.0]))
    f()
    assert a.read().tolist() == [2, 2, 2] and b.read().tolist() == [0, 0, 0]


@pytest.mark.usefixtures("a_command_for_each_operator")
def test_a_call_that_fails_before_it_overwrites_loses_nothing(strict: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    a = nnc.Cell(nnc.ones(3), "a")

    @nnc.jit
    def f() -> None:
        a.write(nnc.sin(a.read()) * 0 + a.read() + 1)

    refusing = Refusing(monkeypatch, "sin")
    f()
    refusing.armed = True
    with fails(RuntimeError, "the cable was pulled", operator="sin"):
        f()
    assert a.read().tolist() == [2, 2, 2]
    refusing.armed = False
    f()
    assert a.read().tolist() == [3, 3, 3]


@pytest.mark.usefixtures("a_command_for_each_operator")
def test_a_cell_that_others_hold_is_never_lost(strict: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The call works on a copy."""
    a, b = nnc.Cell(nnc.ones(3), "a"), nnc.Cell(nnc.ones(3), "b")
    f = _updates(a, b)
    Refusing(monkeypatch, "sin").armed = True
    with fails(RuntimeError, "the cable was pulled", operator="sin"):
        f()
    assert a.read().tolist() == [1, 1, 1] and b.read().tolist() == [1, 1, 1]


def test_a_cell_stays_on_its_device() -> None:
    cell = nnc.Cell(nnc.zeros(2, device="strict:0"), "state")
    with pytest.raises(nnc.Error, match="cell 'state' and the tensor are on strict:0 and strict-poison:0") as caught:
        cell.write(nnc.zeros(2, device="strict-poison:0"))
    assert isinstance(caught.value, ValueError)
    cell.move("strict-poison:0")
    cell.write(nnc.ones(2, device="strict-poison:0"))
    assert cell.read().tolist() == [1, 1]


def test_softmax_of_nothing() -> None:
    x = nnc.zeros((3, 0), device="strict:0")
    assert nnc.softmax(x).shape == nnc.log_softmax(x).shape == (3, 0)
    assert nnc.jit(nnc.softmax)(x).shape == (3, 0)
