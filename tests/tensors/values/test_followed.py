"""Eager operators that gradients go through: by remembered ways, with the same values, steps and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import ShapeError
from nnc_core.operator import Operator
from nnc_core.values import as_one, slow_way
from nnc_core.values.modes import no_grad
from nnc_cpu.device import CpuDevice

Function = Callable[[nnc.Tensor], nnc.Tensor]
MATRIX = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]], np.float32)
LABELS = np.array([0, 2, 1])
FUNCTIONS: dict[str, Function] = {
    "two of them": lambda x: x * x + x, "a float": lambda x: 2.5 * x - 0.5, "a whole number": lambda x: x / 3 + 1,
    "numbers beside booleans": lambda x: nnc.where(x > 1, 0, x) + nnc.where(x > 2, x, 1.5),
    "a view": lambda x: x.reshape(9)[2:7].T, "a composite with a rule": lambda x: nnc.softmax(x) * nnc.gelu(x),
    "composites without": lambda x: x - nnc.mean(x, axis=0), "no derivative": lambda x: nnc.floor(x) + x,
    "products": lambda x: x @ x.T, "a cast": lambda x: nnc.astype(nnc.astype(x, "float64") * 2, "float32"),
    "labels": lambda x: nnc.cross_entropy(x, LABELS, reduction="none"), "several results": lambda x: nnc.modf(x)[0] * x,
    "a norm": lambda x: nnc.group_norm(x, 1), "a reduction": lambda x: nnc.sum(x, axis=1) * nnc.max(x, axis=0),
    "a root": lambda x: nnc.sqrt(nnc.abs(x)) ** 3, "complex": lambda x: nnc.abs(nnc.exp(x.astype("complex64") / 3.0)),
}  # fmt: skip


def bits(x: Any) -> bytes:
    return bytes(x.numpy().tobytes())


def value_and_gradient(f: Function, x: nnc.Tensor) -> tuple[bytes, bytes]:
    """By a sweep that is never compiled."""
    y = f(x)
    (g,) = nnc.gradients(y, [x], nnc.ones_like(y.detach()), create_graph=True)
    assert g is not None and y._value.tracked
    return bits(y), bits(g)


@pytest.fixture(autouse=True)
def operator_by_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions of several operators do not become one program (`tests/tensors/algodiff/test_as_one.py`)."""
    monkeypatch.setattr(as_one, "STEPPED", 1 << 30)


@pytest.fixture
def slow_ways(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The operators that have gone the slow way with a step of their own."""
    found: list[str] = []
    record = slow_way._record

    def noted(op: Any, *arguments: Any) -> Any:
        if slow_way.has_own_rule(op):
            found.append(op.name)
        return record(op, *arguments)

    monkeypatch.setattr(slow_way, "_record", noted)
    return found


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_remembered_ways_change_no_bit(name: str, deterministic: bool) -> None:
    with nnc.config.using(deterministic=deterministic):
        stack = nnc.make_stack(CpuDevice())  # that has nothing remembered
        x = nnc.variable(nnc.asarray(MATRIX, device=stack))
        first = value_and_gradient(FUNCTIONS[name], x)
        assert [value_and_gradient(FUNCTIONS[name], x) for _ in range(3)] == [first] * 3


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "several results"])
def test_a_second_call_asks_nothing_again(name: str, slow_ways: list[str]) -> None:
    x = nnc.variable(MATRIX)
    for _ in range(2):
        FUNCTIONS[name](x)
    slow_ways.clear()
    FUNCTIONS[name](x)
    assert slow_ways == []


@pytest.mark.parametrize("tracked_first", [False, True])
def test_what_one_kind_of_operand_has_found_serves_the_other(tracked_first: bool) -> None:
    stack = nnc.make_stack(CpuDevice())
    x = nnc.asarray(MATRIX, device=stack)
    for tracked in (tracked_first, not tracked_first) * 2:
        y = nnc.softmax(nnc.variable(x) if tracked else x) * 2.0
        assert y._value.tracked is tracked and (y._value.step is not None) is tracked


def test_steps_say_what_they_were_and_where() -> None:
    x = nnc.variable(MATRIX)
    for _ in range(3):
        y = nnc.where(x > 1, 2, x)
    step = y._value.step
    assert step is not None and step.op.name == "where" and step.inputs[2] is x._value
    assert step.inputs[1].spec.dtype == np.float32 and "test_followed.py" in nnc.symbol.show_line(step.line)
    assert y._value.spec == nnc.asarray(MATRIX).spec


def test_no_step_under_no_grad_and_in_functions_without_derivative() -> None:
    x = nnc.variable(MATRIX)
    for _ in range(3):
        with no_grad():
            assert not (x * 2.0)._value.tracked
        assert not nnc.floor(x)._value.tracked and not (x > 1)._value.tracked


def test_errors_are_the_same_the_second_time() -> None:
    x, told = nnc.variable(MATRIX), []
    x + x
    for _ in range(2):
        with pytest.raises(ShapeError) as raised:
            x + nnc.ones((2, 2))
        told.append(str(raised.value))
    assert told[0] == told[1] and "add" in told[0]


def test_modes_are_asked_each_time() -> None:
    x = nnc.variable(MATRIX)
    x * x
    with nnc.deferred():
        assert (x * x).is_deferred
    seen = nnc.jit(lambda y: (x * y).sum())(nnc.ones((3, 3)))
    assert seen.item() == pytest.approx(MATRIX.sum())
    assert nnc.grad(lambda y: (y * x.detach()).sum())(nnc.ones((3, 3))).tolist() == MATRIX.tolist()


def test_an_operator_in_place_of_another_is_asked_each_time() -> None:
    class Halved(Operator):
        def tanh(self, F: Any, x: Any) -> Any:
            return F.multiply(x, 0.5)

    stack = nnc.make_stack(CpuDevice(), Operator=Halved)
    x = nnc.variable(nnc.asarray([2.0], device=stack))
    for _ in range(3):
        y = nnc.tanh(x)
        assert y.tolist() == [1.0] and nnc.gradients(y, [x], nnc.ones(1, device=stack))[0].tolist() == [0.5]  # type: ignore[union-attr]


def test_second_derivatives() -> None:
    for _ in range(3):
        assert nnc.grad(nnc.grad(lambda x: x * x * x * 2.0))(nnc.asarray(3.0)).item() == 36.0
