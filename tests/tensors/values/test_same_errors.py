"""An error is of one class, and names the same operator and line, in every mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import (
    Error,
    ExecutionError,
    LinAlgError,
    NonfiniteError,
    OutOfRangeError,
    ShapeError,
)

Function = Callable[[nnc.Tensor], nnc.Tensor]


def eager(f: Function, x: nnc.Tensor) -> nnc.Tensor:
    return f(x)


def deferred(f: Function, x: nnc.Tensor) -> nnc.Tensor:
    with nnc.deferred():
        return f(x)


def jitted(f: Function, x: nnc.Tensor) -> nnc.Tensor:
    return nnc.jit(f)(x)


def exported(f: Function, x: nnc.Tensor) -> nnc.Tensor:
    with nnc.deferred():
        y = f(x)
    return nnc.export({"x": x}, {"y": y}).compile(x.device.id)(x=x)["y"]


def refused(a: Any) -> Any:
    raise ValueError("not today")


def taken(x: nnc.Tensor) -> nnc.Tensor:
    return nnc.take(x, nnc.asarray([9]))


def factor(x: nnc.Tensor) -> nnc.Tensor:
    return nnc.linalg.cholesky(x)


def inverted(x: nnc.Tensor) -> nnc.Tensor:
    return nnc.linalg.inv(x)


def called(x: nnc.Tensor) -> nnc.Tensor:
    return nnc.callback(refused, x, x)


def shortened(x: nnc.Tensor) -> nnc.Tensor:
    return nnc.callback(lambda a: a[:1], x, x)


def logarithm(x: nnc.Tensor) -> nnc.Tensor:
    return nnc.log(x)


CASES = [
    pytest.param(factor, -np.eye(2), LinAlgError, "", id="not positive definite"),
    pytest.param(inverted, np.zeros((2, 2)), LinAlgError, "", id="singular"),
    pytest.param(called, np.arange(4.0), ExecutionError, "refused raised ValueError: not today", id="callback"),
    pytest.param(shortened, np.arange(4.0), ShapeError, "returned float32[1]", id="callback's shape"),
    pytest.param(logarithm, -np.ones(4), NonfiniteError, "NaN", id="NaN"),
]  # fmt: skip


def raised(run: Callable[[Function, nnc.Tensor], nnc.Tensor], f: Function, x: nnc.Tensor) -> Error:
    with nnc.config.using(check_nan="nan"), pytest.raises(Error) as caught:
        run(f, x).numpy()
    assert (x + 1).shape == x.shape, "the next call works"
    return caught.value


def check_same(run: Callable[..., nnc.Tensor], f: Function, host: Any, kind: type[Error], said: str) -> None:
    x = nnc.asarray(host.astype(np.float32))
    wanted, found = raised(eager, f, x), raised(run, f, x)
    assert type(wanted) is type(found) is kind
    assert said in wanted.message and found.message == wanted.message
    assert found.operator == wanted.operator and found.hint == wanted.hint and found.device == wanted.device
    assert found.operands and not found.lost
    assert found.line == wanted.line and f"in {f.__name__}" in str(found.line)


@pytest.mark.filterwarnings("ignore:.*has no kernel on")
@pytest.mark.parametrize("run", [deferred, jitted, exported])
@pytest.mark.parametrize(("f", "host", "kind", "said"), CASES)
def test_an_error_is_the_same_in_each_mode(
    device: str, run: Callable[..., nnc.Tensor], f: Function, host: Any, kind: type[Error], said: str
) -> None:
    check_same(run, f, host, kind, said)


@pytest.mark.parametrize("run", [deferred, jitted, exported])
def test_an_index_outside_is_the_same_error_in_each_mode(run: Callable[..., nnc.Tensor]) -> None:
    """Where the device looks at indices, as processors do."""
    check_same(run, taken, np.arange(4.0), OutOfRangeError, "index 9")


def test_a_call_that_fails_raises_the_same_class_and_leaves_cells_as_they_were() -> None:
    weight = nnc.Cell(nnc.ones(4), "weight")

    @nnc.jit
    def step(i: nnc.Tensor) -> nnc.Tensor:
        weight.write(weight.read() * 2.0)
        return nnc.take(weight.read(), i)

    step(nnc.asarray([0]))
    with pytest.raises(OutOfRangeError, match="index 9") as caught:
        step(nnc.asarray([9]))
    assert caught.value.operator == "take" and "in step" in str(caught.value.line)
    assert not caught.value.lost and weight.read().tolist() == [2.0] * 4
