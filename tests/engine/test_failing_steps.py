"""A step that raises leaves all state as it was: nothing is overwritten before the last command that may raise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn, optim
from nnc_core.engine.failing import may_fail
from tests.engine.plans import lowered

pytestmark = pytest.mark.filterwarnings("ignore::nnc_core.base.errors.FallbackWarning")
DEVICES = ("cpu:0", "strict:0", "strict-noviews:0", "strict-async:0")
X = np.linspace(-1, 1, 24, dtype=np.float32).reshape(6, 4)
FORWARD, LOSS, BACKWARD, MATRIX = "after the forward pass", "of the loss", "in the backward pass", "without an inverse"


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    with nnc.use_device(request.param):
        yield request.param


class Switch:
    """A function of the host that raises while it is on."""

    def __init__(self) -> None:
        self.on = False

    def __call__(self, x: Any) -> Any:
        if self.on:
            raise RuntimeError("the cable was pulled")
        return np.copy(x)


class Training:
    """A network with batch norms, its minimiser, and a compiled step that can be made to raise."""

    def __init__(self, where: str) -> None:
        nnc.manual_seed(1)
        self.network = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm(5), nn.ReLU(), nn.Linear(5, 3), nn.BatchNorm(3))
        self.minimiser = optim.Adam(self.network.named_parameters(), 0.1)
        self.switch, self.where = Switch(), where
        self.step = optim.make_step(nn.value_and_grad(self.network, self.loss), self.minimiser)

    def loss(self, x: Any) -> Any:
        y = self.network(x)
        if self.where in (FORWARD, BACKWARD):
            forward = self.switch if self.where == FORWARD else np.copy
            back = self.switch if self.where == BACKWARD else np.copy
            y = nnc.callback(forward, y, y, vjp=lambda g, y: back(g))
        value = nnc.mean(nnc.square(y - 0.5))
        if self.where == LOSS:
            nnc.callback(self.switch, None, value)
        if self.where == MATRIX:
            value = value + nnc.sum(nnc.linalg.inv(nnc.eye(2) * x[0, 0]))
        return value

    def run(self) -> float:
        return float(self.step(nnc.asarray(X)).item())

    def run_and_fail(self) -> None:
        x = X.copy()
        x[0, 0] = 0
        self.switch.on = True
        with pytest.raises((RuntimeError, np.linalg.LinAlgError)):
            self.step(nnc.asarray(x))
        self.switch.on = False

    def state(self) -> dict[str, np.ndarray[Any, Any]]:
        return {**self.network.state_dict(), **self.minimiser.state_dict()}


def same(found: dict[str, np.ndarray[Any, Any]], wanted: dict[str, np.ndarray[Any, Any]]) -> None:
    assert found.keys() == wanted.keys()
    for name, x in wanted.items():
        np.testing.assert_array_equal(found[name], x, err_msg=name)


@pytest.mark.parametrize("where", [FORWARD, LOSS, BACKWARD, MATRIX])
def test_a_training_step_that_raises_changes_nothing(device: str, where: str) -> None:
    training, undisturbed = Training(where), Training(where)
    for t in (training, undisturbed):
        t.run()
    training.run_and_fail()
    same(training.state(), undisturbed.state())
    training.run_and_fail()
    assert [training.run() for _ in range(2)] == [undisturbed.run() for _ in range(2)]
    same(training.state(), undisturbed.state())


def test_memory_is_still_taken_over_where_nothing_can_fail_any_more(device: str) -> None:
    cell, switch = nnc.Cell(nnc.ones(4), "cell"), Switch()

    def step(x: Any) -> Any:
        cell.write(cell.read() * 2)
        return nnc.callback(switch, x, x)

    assert nnc.jit(step).lower(nnc.ones(4)).donated


def test_state_that_is_read_anew_by_what_may_fail_has_memory_of_its_own(device: str) -> None:
    cell, switch = nnc.Cell(nnc.ones(4), "cell"), Switch()

    @nnc.jit
    def step(x: Any) -> Any:
        cell.write(cell.read() * 2)
        return nnc.callback(switch, x, cell.read())

    assert not step.lower(nnc.ones(4)).donated
    step(nnc.ones(4))
    switch.on = True
    with pytest.raises(RuntimeError, match="cable"):
        step(nnc.ones(4))
    assert cell.read().tolist() == [2, 2, 2, 2]


@pytest.mark.parametrize("mode", ["nan", "nonfinite"])
def test_a_watched_call_works_on_copies(device: str, mode: str) -> None:
    """Where every command is looked at, every one may raise."""
    first, second = nnc.Cell(nnc.ones(4), "first"), nnc.Cell(nnc.ones(4), "second")

    @nnc.jit
    def step(x: Any) -> None:
        first.write(first.read() * 2)
        second.write(nnc.sqrt(second.read() * first.read() - x))

    with nnc.config.using(check_nan=mode):
        step(nnc.zeros(4))
        before = second.read().tolist()
        with pytest.raises(FloatingPointError):
            step(nnc.ones(4) * 100)
        assert first.read().tolist() == [2, 2, 2, 2]
        assert second.read().tolist() == before
        step(nnc.zeros(4))
        assert first.read().tolist() == [4, 4, 4, 4]


def test_what_may_fail() -> None:
    def failing(f: Callable[..., Any], *args: Any, device: str = "strict:0") -> list[str]:
        run = lowered(f, *args, device=device)
        return [s.group.label for s in run.plan.steps if may_fail(s.group, run.device)]

    assert failing(lambda x: nnc.sum(nnc.exp(x) @ nnc.ones((4, 2))), X) == []
    assert failing(lambda x: nnc.linalg.solve(x[:4], x[:4]), X) == ["solve"]
    assert failing(lambda x: nnc.callback(np.copy, x, x) + 1, X) == ["callback"]
    indices = np.array([1, 2])
    gathers = [failing(lambda x, i: nnc.exp(nnc.take(x, i, axis=0)), X, indices, device=d) for d in DEVICES[:2]]
    assert gathers == [["fused(take exp)"], []]
