"""The dynamic graph: variables, backward, and what is remembered for it."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import nnc_core as nnc
from tests.tensors.faults import fails


def test_backward_adds_to_the_gradient(device: str) -> None:
    v = nnc.variable([1.0, 2.0])
    assert v.requires_grad and v.grad is None
    (v * v).sum().backward()
    assert v.grad is not None and v.grad.tolist() == [2.0, 4.0]
    (v * 3).sum().backward()
    assert v.grad.tolist() == [5.0, 7.0]
    v.grad = None
    (v * 3).sum().backward()
    assert v.grad.tolist() == [3.0, 3.0]


def test_backward_from_a_result_that_is_no_scalar(device: str) -> None:
    v = nnc.variable([1.0, 2.0])
    y = v * v
    with fails(ValueError, "scalar", "test_backward.py"):
        y.backward()
    y.backward(nnc.asarray([1.0, 10.0]))
    assert v.grad is not None and v.grad.tolist() == [2.0, 40.0]
    with fails(ValueError, "float32[3]", line=False):
        y.backward(nnc.ones(3))


def test_several_variables_and_shared_paths(device: str) -> None:
    a, b, unused = nnc.variable(2.0), nnc.variable(3.0), nnc.variable(1.0)
    c = a * b
    (c * c + a).backward()
    assert a.grad is not None and a.grad.item() == 2 * 6 * 3 + 1
    assert b.grad is not None and b.grad.item() == 2 * 6 * 2
    assert unused.grad is None


def test_backward_twice_through_the_same_history(device: str) -> None:
    v = nnc.variable(3.0)
    y = v * v
    y.backward()
    y.backward()
    assert v.grad is not None and v.grad.item() == 12.0


def test_nothing_is_remembered_without_variables(x: nnc.Tensor) -> None:
    y = nnc.tanh(x) * x
    assert not y.requires_grad and y._value.step is None
    with fails(ValueError, "no variable", "nnc.variable", line=False):
        nnc.sum(y).backward()


def test_no_grad_remembers_nothing(device: str) -> None:
    v = nnc.variable([1.0])
    with nnc.no_grad():
        y = v * 2
    assert not y.requires_grad and (v * 2).requires_grad
    total = (v * y).sum()
    total.backward()
    assert v.grad is not None and v.grad.tolist() == [2.0]


def test_integers_and_comparisons_are_not_tracked(device: str) -> None:
    v = nnc.variable([1.0, -1.0])
    assert not (v > 0).requires_grad and not nnc.argmax(v).requires_grad
    with fails(ValueError, "floating-point", line=False):
        nnc.variable(np.array([1, 2]))


def test_detached_tensors_are_constants(device: str) -> None:
    v = nnc.variable(3.0)
    y = (v * v).detach()
    assert not y.requires_grad
    (v * y).backward()
    assert v.grad is not None and v.grad.item() == 9.0


def test_gradient_descent_by_hand(device: str) -> None:
    v = nnc.variable([5.0])
    for _ in range(40):
        v.grad = None
        ((v - 3) * (v - 3)).sum().backward()
        with nnc.no_grad():
            v -= 0.2 * v.grad
        assert v.requires_grad
    np.testing.assert_allclose(v.numpy(), [3.0], rtol=1e-5)


def test_an_assignment_without_tracking_keeps_a_variable_and_its_gradient(device: str) -> None:
    v = nnc.variable([1.0, 2.0])
    (v * v).sum().backward()
    with nnc.no_grad():
        v[0] = 10
    assert v.requires_grad and v.grad is not None and v.grad.tolist() == [2.0, 4.0]
    v.grad = None
    (v * v).sum().backward()
    assert v.grad.tolist() == [20.0, 4.0]


def test_deferred_work_can_be_differentiated(device: str) -> None:
    v = nnc.variable([1.0, 2.0])
    with nnc.deferred():
        y = (v * v * v).sum()
    assert y.is_deferred and y.requires_grad
    y.backward()
    assert v.grad is not None and v.grad.tolist() == [3.0, 12.0]


def test_history_is_freed_with_the_result(device: str) -> None:
    """At once, by counting references, without the collector."""
    v = nnc.variable(np.ones(4, np.float32))
    gc.collect()
    gc.disable()
    try:
        y = nnc.exp(v)
        inner = weakref.ref(y._value)
        total = (y * y).sum()
        del y
        assert inner() is not None, "the history keeps what backward needs"
        total.backward()
        del total
        assert inner() is None
    finally:
        gc.enable()


def test_functions_leave_nothing_behind(device: str) -> None:
    seen: list[weakref.ref[object]] = []

    def f(x: nnc.Tensor) -> nnc.Tensor:
        y = nnc.tanh(x)
        seen.append(weakref.ref(y._value))
        return nnc.sum(y * y)

    x = nnc.ones(3)
    gc.collect()
    gc.disable()
    try:
        value, g = nnc.value_and_grad(f)(x)
        assert seen[0]() is None and value.item() > 0 and g.shape == (3,)
    finally:
        gc.enable()


@pytest.mark.parametrize("steps", [10_000])
def test_a_long_history_is_swept_and_freed(device: str, steps: int) -> None:
    v = nnc.variable(1.0)
    y = v
    for _ in range(steps):
        y = y + v
    y.backward()
    assert v.grad is not None and v.grad.item() == steps + 1
    del y
