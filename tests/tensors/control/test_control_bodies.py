"""What the body of a loop or a branch may not do where it is recorded, and what it may."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import (
    ConcretizationError,
    DeferredInplaceError,
    LeakedTraceError,
    OperandError,
    ShapeError,
    StateError,
)
from tests.tensors.control.refusals import EVERYWHERE, RECORDED, counted, eagerly, refused, x, zero


def test_python_cannot_choose_by_what_is_carried(device: str) -> None:
    """Eager loops are Python, and may."""

    def step(i: nnc.Tensor, y: nnc.Tensor) -> tuple[nnc.Tensor, nnc.Tensor]:
        return i + 1, (y * 2 if y[1] > 0 else y)

    def branching() -> Any:
        return counted(step)

    def number() -> Any:
        return counted(lambda i, y: (i + 1, y * float(y[1])))

    def listed() -> Any:
        return nnc.scan(lambda c, r: (c, nnc.asarray(r.tolist())), zero(), x())

    assert eagerly(branching)[1].tolist() == [0, 8, 16]
    refused(ConcretizationError, "while_loop: the truth value of a symbol bool.*'the body step'.*nnc.cond",
            branching, RECORDED, "step")
    refused(ConcretizationError, "while_loop: the float value of a symbol float32", number, RECORDED, "<lambda>")
    refused(ConcretizationError, "scan: .* of a symbol float32", listed, RECORDED, "<lambda>")


def test_what_a_body_makes_does_not_leave_it(device: str) -> None:
    kept: list[nnc.Tensor] = []

    def leak() -> Any:
        def body(i: nnc.Tensor, y: nnc.Tensor) -> tuple[nnc.Tensor, nnc.Tensor]:
            kept.append(y * 3)
            return i + 1, y

        counted(body)
        return kept[-1] + 1

    def into_the_next() -> Any:
        return nnc.map(lambda r: r + kept[-1], x())

    refused(LeakedTraceError, "add: a symbolic tensor float32.*made at .*in body.*outlived 'the body body'", leak,
            RECORDED)
    refused(LeakedTraceError, "outlived 'the body body'.*return it from the function", into_the_next, RECORDED,
            "<lambda>")
    with pytest.raises(LeakedTraceError):
        kept[-1].numpy()


def test_a_value_of_an_outer_body_is_at_home_in_an_inner_one(device: str) -> None:
    for mode in EVERYWHERE:
        found = mode(lambda: nnc.map(lambda r: nnc.map(lambda q: q * r, x()), x()))
        assert found.tolist() == [[0, 0, 0], [0, 1, 2], [0, 2, 4]]


def test_what_is_carried_is_changed_in_place_and_nothing_else(device: str) -> None:
    """What is captured is not, where bodies are recorded; eager loops may."""

    def item() -> Any:
        def body(i: nnc.Tensor, y: nnc.Tensor) -> tuple[nnc.Tensor, nnc.Tensor]:
            y[0] = 5.0
            return i + 1, y

        return counted(body)

    def added() -> Any:
        def body(i: nnc.Tensor, y: nnc.Tensor) -> tuple[nnc.Tensor, nnc.Tensor]:
            y += 1.0
            return i + 1, y

        return counted(body)

    outer = x()

    def captured() -> Any:
        def body(i: nnc.Tensor, y: nnc.Tensor) -> tuple[nnc.Tensor, nnc.Tensor]:
            outer[0] = 7.0
            return i + 1, y

        return counted(body)

    for mode in EVERYWHERE:
        assert mode(item)[1].tolist() == [5, 1, 2] and mode(added)[1].tolist() == [3, 4, 5]
    refused(DeferredInplaceError, r"while_loop: in-place change of a tensor float32\[3\] while operations are recorded",
            captured, RECORDED, "body")
    assert outer.tolist() == [0, 1, 2]
    eagerly(captured)
    assert outer.tolist() == [7, 1, 2]


def test_a_carried_value_changed_by_at(device: str) -> None:
    for mode in EVERYWHERE:
        assert mode(lambda: counted(lambda i, y: (i + 1, y.at[1].set(i.astype(y.dtype)))))[1].tolist() == [0, 2, 2]


def test_a_condition_writes_nothing(device: str) -> None:
    """Where it is recorded: it may be asked any number of times."""
    cell = nnc.Cell(nnc.asarray(0.0), "asked")

    def program() -> Any:
        def test(i: nnc.Tensor, y: nnc.Tensor) -> nnc.Tensor:
            cell.write(cell.read() + 1)
            return i < 3

        return nnc.while_loop(test, lambda i, y: (i + 1, y), (zero(), x()))

    def drawn() -> Any:
        generator = nnc.Generator(0)
        return nnc.while_loop(lambda i, y: generator.uniform() < 0.5, lambda i, y: (i + 1, y), (zero(), x()))

    refused(StateError, "while_loop: the condition writes 'asked'.*in the body", program, RECORDED)
    refused(StateError, "while_loop: the condition writes 'random key'", drawn, RECORDED)
    assert cell.read().item() == 0


def test_errors_of_a_body_are_the_users_own(device: str) -> None:
    class OwnError(Exception):
        pass

    def broken(i: nnc.Tensor, y: nnc.Tensor) -> Any:
        raise OwnError("mine")

    for mode in EVERYWHERE:
        with pytest.raises(OwnError, match="mine"):
            mode(lambda: counted(broken))

    def shapes() -> Any:
        return counted(lambda i, y: (i + 1, y + nnc.ones(4)))

    refused(ShapeError, r"add: shapes \(3,\) and \(4,\) do not broadcast", shapes, line="<lambda>")


def test_nothing_is_left_behind_by_an_error(device: str) -> None:
    """The next loop, the next trace and eager code find everything as it was."""
    for mode in RECORDED:
        with pytest.raises(nnc.Error):
            mode(lambda: counted(lambda i, y: (i + 1, y[:2])))
    assert not nnc.is_deferred_mode() and not (x() + 1).is_deferred
    for mode in EVERYWHERE:
        assert mode(lambda: counted(lambda i, y: (i + 1, y * 2)))[1].tolist() == [0, 8, 16]


def test_a_generator_function_is_no_body(device: str) -> None:
    def body(i: nnc.Tensor, y: nnc.Tensor) -> Any:
        yield i + 1

    def program() -> Any:
        return counted(body)

    refused(OperandError, "while_loop: the body gives generator, not a tuple", program, line="counted")


def test_host_arrays_and_numpy_numbers_are_carried(device: str) -> None:
    for mode in EVERYWHERE:
        count, last = mode(lambda: counted(lambda i, y: (i + np.int64(1), y + 1), np.zeros(2, np.float32), times=2))
        assert count.item() == 2 and last.tolist() == [2, 2]
