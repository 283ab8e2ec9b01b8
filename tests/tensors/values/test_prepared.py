"""Operators without a remembered eager kernel run at once on operands that lie as others before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.command import Command
from nnc_core.base.errors import AttributeValueError, Error
from nnc_core.device import CommandBackend, Kernel
from nnc_core.stacks import Stack, make_stack
from nnc_core.values import repetition, slow_way
from nnc_cpu.backends import NumpyBackend
from nnc_cpu.device import CpuDevice

Function = Callable[..., Any]
MATRIX = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]], np.float32)
FUNCTIONS: dict[str, Function] = {
    "composite": lambda x: nnc.std(x), "composite of composites": lambda x: nnc.linalg.pinv(x),
    "several results": lambda x: nnc.linalg.eigh(x), "results of a composite": lambda x: nnc.modf(x),
    "number": lambda x: nnc.heaviside(x, 0.5), "numbers beside booleans": lambda x: nnc.where(x > 1, 0, 1.5),
    "counted": lambda x: nnc.nonzero(x > 1), "truth": lambda x: nnc.logical_and(x, x > 1),
    "complex": lambda x: nnc.exp(x.astype("complex64") / 3.0),
}
COMMANDS: dict[str, Function] = {
    **FUNCTIONS, "sum of two": lambda x: x + x, "view": lambda x: nnc.reshape(x, (9,)), "scaled": lambda x: x * 2.0,
    "whole number": lambda x: x * 2, "made": lambda x: nnc.full((2, 3), 1.5),
}


@pytest.fixture
def slow_ways(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The operators that have gone the slow way, of functions that are called as they are."""
    monkeypatch.setattr(repetition, "COUNTED", 1 << 30)
    found: list[str] = []
    record = slow_way._record

    def noted(op: Any, *arguments: Any) -> Any:
        found.append(op.name)
        return record(op, *arguments)

    monkeypatch.setattr(slow_way, "_record", noted)
    return found


def arrays_of(found: Any) -> list[Any]:
    return [x.numpy() for x in (found if isinstance(found, (tuple, list)) else [found])]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_second_call_asks_nothing_again(name: str, slow_ways: list[str]) -> None:
    x = nnc.asarray(MATRIX)
    for _ in range(2):
        first = arrays_of(FUNCTIONS[name](x))
    slow_ways.clear()
    again = arrays_of(FUNCTIONS[name](x))
    assert slow_ways == []
    assert [a.tobytes() for a in first] == [b.tobytes() for b in again]


@pytest.mark.filterwarnings("ignore:.* has no kernel on:nnc_core.base.errors.FallbackWarning")
@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("place", ["cpu:0", "strict:0"])
def test_commands_run_again_with_the_same_bits(name: str, place: str, slow_ways: list[str]) -> None:
    with nnc.use_device(place), nnc.config.using(deterministic=True):
        x = nnc.asarray(MATRIX)
        first = arrays_of(COMMANDS[name](x))
        COMMANDS[name](x)
        slow_ways.clear()
        again = arrays_of(COMMANDS[name](nnc.asarray(MATRIX)))
        late = [op for op in slow_ways if op not in ("nonzero", "cast", "greater")]
        assert late == []
        assert [a.tobytes() for a in first] == [b.tobytes() for b in again]


def test_results_are_in_memory_of_their_own() -> None:
    with nnc.config.using(deterministic=True):
        x = nnc.asarray(MATRIX)
        a, b = x + x, x + x
        a[...] = 0
        np.testing.assert_array_equal(b.numpy(), MATRIX + MATRIX)


WRONG: dict[str, tuple[Function, Function]] = {
    "std": (lambda: nnc.std(nnc.ones((2, 3)), axis=1), lambda: nnc.std(nnc.ones(3), axis=1)),
    "eigh": (lambda: nnc.linalg.eigh(nnc.eye(3)), lambda: nnc.linalg.eigh(nnc.ones(3))),
    "pinv": (lambda: nnc.linalg.pinv(nnc.eye(3)), lambda: nnc.linalg.pinv(nnc.ones(3))),
    "add": (lambda: nnc.ones(3) + nnc.ones(3), lambda: nnc.ones(3) + nnc.ones(2)),
    "heaviside": (lambda: nnc.heaviside(nnc.ones(3), 1.0), lambda: nnc.heaviside(nnc.ones(3), nnc.ones(2))),
    "cholesky": (lambda: nnc.linalg.cholesky(nnc.eye(2)), lambda: nnc.linalg.cholesky(-nnc.eye(2))),
    "integer": (lambda: nnc.full((2,), 3, dtype="int8") + 3, lambda: nnc.full((2,), 3, dtype="int8") + 300),
}


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("name", WRONG)
def test_errors_are_those_of_the_slow_way(name: str, deterministic: bool) -> None:
    right, wrong = WRONG[name]
    with nnc.config.using(deterministic=deterministic):
        with pytest.raises(Error) as before:
            wrong()
        for _ in range(3):
            right()
        with pytest.raises(Error) as after:
            wrong()
    assert (type(after.value), str(after.value)) == (type(before.value), str(before.value))
    assert "test_prepared.py" in str(after.value)


def test_numbers_are_those_of_the_call() -> None:
    with nnc.config.using(deterministic=True):
        x = nnc.asarray(np.array([1, 2], np.int8))
        assert [(x * k).tolist() for k in (2, 3, -4)] == [[2, 4], [3, 6], [-4, -8]]
        with pytest.raises(AttributeValueError, match="300"):
            x * 300
        assert (x + True).tolist() == [2, 3]
        assert (x * 0.5).dtype == nnc.float32


@pytest.mark.parametrize("deterministic", [False, True])
def test_numbers_take_the_default_dtype_of_the_call(deterministic: bool) -> None:
    x = nnc.asarray(MATRIX)
    for _ in range(3):
        for name in ("float64", "float32"):
            with nnc.config.using(default_float=name, deterministic=deterministic):
                assert str(nnc.where(x > 1, 0, 1.5).dtype) == name
                assert nnc.heaviside(x, 0.5).dtype == nnc.float32


class Louder(NumpyBackend):
    """Adds one to the sum."""

    def prepare(self, command: Command) -> Kernel:
        kernel = super().prepare(command)

        class Loud(Kernel):
            def bind(self, buffers: Any, stream: Any = None) -> Any:
                launch = kernel.bind(buffers)

                def loudly() -> None:
                    launch()
                    buffers[len(command.inputs)].view(np.float32)[...] += 1

                return loudly

        return Loud()


@pytest.fixture
def own() -> Iterator[Stack]:
    stack = make_stack(CpuDevice())
    with nnc.use_device(stack):
        yield stack


def test_code_that_is_added_later_is_asked(own: Stack) -> None:
    x = nnc.asarray(np.array([1.0, 2.0], np.float32))
    with nnc.config.using(deterministic=True):
        assert [(x + x).tolist() for _ in range(3)] == [[2, 4]] * 3
        backend: CommandBackend = Louder("add")
        own.device.take("add", backend)
        assert [(x + x).tolist() for _ in range(3)] == [[3, 5]] * 3
    with nnc.config.using(deterministic=False):
        assert (x * x).tolist() == [1, 4]


def test_modes_that_see_each_operation_see_it() -> None:
    x = nnc.asarray(np.array([1.0, -1.0], np.float32))
    with nnc.config.using(deterministic=True):
        for _ in range(3):
            nnc.sqrt(x)
        with nnc.config.using(check_nan="nan"), pytest.raises(Error, match="sqrt"):
            nnc.sqrt(x)


def test_gradients_go_through_what_has_run_without() -> None:
    x = nnc.asarray(MATRIX)
    for _ in range(3):
        nnc.std(x)
    found = nnc.grad(lambda x: nnc.std(x))(x).numpy()
    np.testing.assert_allclose(found, (MATRIX - MATRIX.mean()) / (MATRIX.size * MATRIX.std()), rtol=1e-5)


def test_sizes_with_names_are_not_remembered() -> None:
    with nnc.deferred():
        x = nnc.asarray(np.array([1.0, 0.0, 2.0], np.float32))
        first = nnc.ones(x[x > 0].shape) * 2
    for _ in range(2):
        assert first.tolist() == [2, 2]
        with nnc.deferred():
            x = nnc.asarray(np.array([1.0, 3.0, 2.0], np.float32))
            assert (nnc.ones(x[x > 0].shape) * 2).tolist() == [2, 2, 2]
